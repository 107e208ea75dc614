//! The programs of librdmacm.

use super::case::{Cases, Device, ETHERNET, HERE, INFINIBAND, Kind, Lines, PORT, Ready, words};

/// Programs whose server and client have the same options, but for the client's `-s` with the
/// server's address: whether the server ends by itself, and whether the quick run has the program.
const ALIKE: [(&str, bool, bool); 13] = [
    ("ucmatose", true, true),
    ("ucmatose -m", true, false),
    ("ucmatose -c 50", true, false),
    ("cmtime -c 100", false, true),
    // By default, rstream and riostream exchange some hundred thousand messages, which takes
    // minutes on busy CPUs. `-T a` of rstream fails if the peer has shut down before all messages
    // are read.
    ("rstream -S 64 -C 500 -T v", true, true),
    ("rstream -S 100000 -C 20 -I 5 -T v", true, false),
    ("rstream -S 5000 -C 50 -T b", true, false),
    ("rstream -S 5000 -C 50 -T n", true, false),
    ("rstream -S 5000 -C 50 -k 1", true, false),
    ("riostream -S 64 -C 500 -T v", true, false),
    ("riostream -S 100000 -C 20 -I 5 -T v", true, false),
    ("riostream -S 5000 -C 50 -T b", true, false),
    ("riostream -S 5000 -C 50 -T n", true, false),
];

/// Other programs: the name, the server and the client, whether the server ends by itself, and
/// whether the quick run has the program. ADDRESS is the address of a network interface.
const OTHERS: [(&str, &str, &str, bool, bool); 11] = [
    ("rping", "rping -s -a HERE", "rping -c -a HERE -C 100", true, false),
    ("rping -V", "rping -s -a HERE -V", "rping -c -a HERE -C 100 -V", true, true),
    ("rping -V -a ::1", "rping -s -a ::1 -V", "rping -c -a ::1 -C 100 -V", true, false),
    ("rping -V -a ADDRESS", "rping -s -a ADDRESS -V", "rping -c -a ADDRESS -C 100 -V", true, false),
    ("rping -V -I ADDRESS", "rping -s -V", "rping -c -a ADDRESS -I ADDRESS -C 100 -V", true, false),
    ("rping -V -q", "rping -s -a HERE -V -q", "rping -c -a HERE -C 100 -V -q", true, false),
    ("rping -V -S 65000", "rping -s -a HERE -V -S 65000", "rping -c -a HERE -C 20 -V -S 65000", true, false),
    ("rping -V -P", "rping -s -P -a HERE -V", "rping -c -a HERE -C 100 -V", false, false),
    ("rdma_client", "rdma_server", "rdma_client -s HERE", true, true),
    ("rdma_xclient", "rdma_xserver", "rdma_xclient -s HERE", true, false),
    ("rdma_xclient -c x", "rdma_xserver -c x", "rdma_xclient -c x -s HERE", false, true),
];

/// Programs that also run on InfiniBand.
const ON_INFINIBAND: [&str; 4] = ["rping -V", "ucmatose", "rdma_client", "rstream -S 64 -C 500 -T v"];

/// Programs with a fixed port: the name, the server and the client.
const OWN_PORT: [(&str, &str, &str, Ready); 3] = [
    ("udaddy", "udaddy", "udaddy -s HERE", Ready::Manager(7174)),
    ("udaddy -c 10", "udaddy -c 10", "udaddy -c 10 -s HERE", Ready::Manager(7174)),
    // A member of a multicast group does not listen, and waits for three seconds before it sends.
    (
        "mckey -m 239.1.2.3",
        "mckey -m 239.1.2.3 -b ADDRESS",
        "mckey -m 239.1.2.3 -b ADDRESS -s",
        Ready::Started,
    ),
];

/// Adds all cases.
pub(super) fn cases(cases: &mut Cases) {
    for (line, ends, is_quick) in ALIKE {
        both(cases, line, [line, &format!("{line} -s HERE")], ends, is_quick);
    }
    for (name, server, client, ends, is_quick) in OTHERS {
        both(cases, name, [server, client], ends, is_quick);
    }
    for (name, server, client, ready) in OWN_PORT {
        for device in [ETHERNET, INFINIBAND] {
            let client = &client.replace("HERE", HERE);
            let lines = Lines { server, client, ready: &|_| ready };
            cases.pair(device, name, false, &lines, true);
        }
    }
    // Datagrams of rsockets: a UDP socket exchanges the numbers of the queue pairs.
    let server = &format!("udpong -p {PORT}");
    let client = &format!("udpong -p {PORT} -s {HERE}");
    cases.pair(ETHERNET, "udpong", true, &Lines { server, client, ready: &Ready::Socket }, false);
    let port = cases.port();
    let kind = Kind::Alone(words(&format!("rping -c -a {HERE} -p {port}")));
    cases.push(ETHERNET, "rping -c (no listener)", true, kind);
}

/// Adds a server and a client with the option `-p` for the port, on Ethernet and, if
/// [`ON_INFINIBAND`] has the name, on InfiniBand.
fn both(cases: &mut Cases, name: &str, lines: [&str; 2], ends: bool, is_quick: bool) {
    let [server, client] = lines.map(|line| format!("{} -p {PORT}", line.replace("HERE", HERE)));
    let lines = Lines { server: &server, client: &client, ready: &Ready::Manager };
    let devices: &[Device] =
        if ON_INFINIBAND.contains(&name) { &[ETHERNET, INFINIBAND] } else { &[ETHERNET] };
    for device in devices {
        cases.pair(device, name, is_quick && *device == ETHERNET, &lines, ends);
    }
}
