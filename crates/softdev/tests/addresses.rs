//! GIDs that are the host's addresses, in a network namespace of this program, where they appear
//! and disappear.

use std::os::fd::AsFd;
use std::os::unix::thread::JoinHandleExt;
use std::process::Command;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use softdev::tree::{Node, node};
use softdev::{DEVICES_VARIABLE, LINK_LAYER_VARIABLE, MTU_VARIABLE, PROVIDER};
use verbs::abi::*;
use verbs::{Affected, AsyncEventType, Context, GidKind, Route, devices};

use conformance::node::{peer, serve};
use conformance::rig::gid_of;
use conformance::runner::{Skip, Trial, run};
use conformance::{Node as End, QKEY, Send, Shape, Subject, Tuning};

/// Set in the program once it is in the namespace, and for the processes that it starts there.
const INSIDE: &str = "RDMASCOPE_SOFTDEV_ADDRESSES";

/// A pair of interfaces.
const PAIR: &str = "veth0 type veth peer name veth1";

fn main() {
    if let Some(named) = peer() {
        return serve(&Subject::parse(&named, |_| Ok(&PROVIDER)).expect("the parent names a device"));
    }
    for (variable, value) in [(DEVICES_VARIABLE, "2"), (MTU_VARIABLE, "netdev")] {
        // SAFETY: this process has no other thread yet.
        unsafe { std::env::set_var(variable, value) };
    }
    // SAFETY: as above.
    unsafe { std::env::remove_var(LINK_LAYER_VARIABLE) };
    let why = std::env::var_os(INSIDE).is_none().then(enter).and_then(Result::err);
    // SAFETY: as above.
    unsafe { std::env::set_var(INSIDE, "1") };
    let trial_unless = |why: &Option<String>, name: &str, run: fn()| {
        let skipped = why.clone().map(|why| Skip { why, at_times: false });
        Trial { name: name.to_owned(), skipped, run: Box::new(run) }
    };
    let trial = |name: &str, run: fn()| trial_unless(&why, name, run);
    let no_pair = why.clone().or_else(|| ip_tries(&format!("link add {PAIR}")).err());
    if no_pair.is_none() {
        ip("link del veth0");
    }
    run(&[
        trial("addresses_are_gids_with_their_interfaces", addresses_are_gids_with_their_interfaces),
        trial("an_address_that_comes_or_goes_is_an_event", an_address_that_comes_or_goes_is_an_event),
        trial("an_interface_that_goes_down_or_up_is_an_event", an_interface_that_goes_down_or_up_is_an_event),
        trial("what_changes_no_gid_is_no_event", what_changes_no_gid_is_no_event),
        trial("who_has_polled_does_not_wait", who_has_polled_does_not_wait),
        trial("who_waits_for_an_event_is_woken", who_waits_for_an_event_is_woken),
        trial("a_signal_ends_a_wait_as_it_does_elsewhere", a_signal_ends_a_wait_as_it_does_elsewhere),
        trial("every_service_goes_by_every_address", every_service_goes_by_every_address),
        trial(
            "datagrams_name_the_addresses_that_they_went_by",
            datagrams_name_the_addresses_that_they_went_by,
        ),
        trial("a_handle_outlives_its_address", a_handle_outlives_its_address),
        trial_unless(
            &no_pair,
            "an_address_is_found_whatever_devices_there_are",
            an_address_is_found_whatever_devices_there_are,
        ),
        trial("datagrams_are_no_longer_than_the_interface_allows", datagrams_are_no_longer_than_allowed),
    ]);
}

/// Enters a network namespace, without root also a user namespace, and brings its loopback
/// interface up; or says why that is impossible.
fn enter() -> Result<(), String> {
    use rustix::thread::{UnshareFlags, unshare_unsafe};
    let user = rustix::process::geteuid().as_raw();
    let flags = if user == 0 { UnshareFlags::NEWNET } else { UnshareFlags::NEWUSER | UnshareFlags::NEWNET };
    // SAFETY: this process has no other thread, and opens what it uses afterwards.
    unsafe { unshare_unsafe(flags) }.map_err(|error| format!("cannot make a network namespace: {error}"))?;
    if user != 0 {
        let write = |file: &str, text: &str| {
            std::fs::write(format!("/proc/self/{file}"), text).map_err(|error| format!("{file}: {error}"))
        };
        write("setgroups", "deny")?;
        write("uid_map", &format!("0 {user} 1"))?;
    }
    ip_tries("link set lo up")
}

fn ip_tries(line: &str) -> Result<(), String> {
    let output = Command::new("ip").args(line.split(' ')).output().map_err(|error| format!("ip: {error}"))?;
    let why = || format!("ip {line}: {}", String::from_utf8_lossy(&output.stderr).trim());
    if output.status.success() { Ok(()) } else { Err(why()) }
}

#[track_caller]
fn ip(line: &str) {
    ip_tries(line).unwrap();
}

fn subject(name: &str) -> Subject {
    Subject::parse(name, |_| Ok(&PROVIDER)).expect("that is a device")
}

fn context(device: usize) -> Context {
    devices(&PROVIDER).expect("the devices").remove(device).open().expect("it opens")
}

/// Returns the indexes and addresses of a table.
fn table(context: &Context) -> Vec<(u8, String)> {
    context.gids(1).unwrap().iter().map(|entry| (entry.index, entry.gid.to_string())).collect()
}

fn addresses_are_gids_with_their_interfaces() {
    let first = context(0);
    let own = first.gid(1, 0).unwrap().to_string();
    let localhost = [(1, "::ffff:127.0.0.1"), (2, "::1")].map(|(index, text)| (index, text.to_owned()));
    assert_eq!(table(&first), [&[(0, own)], &localhost[..]].concat());
    assert!(first.gids(1).unwrap().iter().all(|entry| entry.kind == GidKind::RoceV2));
    let second = context(1);
    assert_eq!(table(&second).len(), 1, "loopback is the first device's");
    for (context, index) in [(&first, 0), (&first, 1), (&first, 2), (&second, 0)] {
        let name = context.device().name();
        let path = format!("/sys/class/infiniband/{name}/ports/1/gid_attrs/ndevs/{index}");
        assert_eq!(node(path.as_bytes()), Some(Node::File("lo\n".to_owned())), "{path}");
    }
    for (index, why) in [(63, "No data available"), (64, "Invalid argument")] {
        let refused = first.gid_entry(1, index).expect_err("nothing is there").to_string();
        assert!(refused.contains(why), "{refused}");
    }
    assert_eq!(first.gid(1, 63).unwrap().0, [0; 16]);
    assert!(first.gid(1, 64).is_err());
    // No route begins with an empty entry.
    let pd = first.protection_domain().unwrap();
    let gid = first.gid(1, 0).unwrap();
    let route = |gid_index| {
        let global = Some(verbs::GlobalRoute { gid_index, gid, traffic_class: 0 });
        Route { port: 1, lid: 0, service_level: 0, global }
    };
    assert!(pd.address_handle(&route(2)).is_ok());
    assert!(pd.address_handle(&route(3)).is_err());
}

/// Whether a context has an event within `ms` milliseconds.
fn speaks(context: &Context, ms: u64) -> bool {
    let descriptor = context.async_descriptor();
    let limit = Timespec::try_from(Duration::from_millis(ms)).unwrap();
    poll(&mut [PollFd::from_borrowed_fd(descriptor.as_fd(), PollFlags::IN)], Some(&limit)).unwrap() == 1
}

/// Takes the next event without waiting.
fn event(context: &Context) -> Option<(AsyncEventType, Affected)> {
    rustix::io::ioctl_fionbio(context.async_descriptor(), true).unwrap();
    context.async_event().ok().map(|event| (event.event, event.of))
}

const CHANGED: Option<(AsyncEventType, Affected)> =
    Some((AsyncEventType(IBV_EVENT_GID_CHANGE), Affected::Port(1)));

fn an_address_that_comes_or_goes_is_an_event() {
    let [first, again, second] = [0, 0, 1].map(context);
    assert!(!speaks(&first, 0) && event(&first).is_none());
    let before = table(&first);
    ip("addr add 10.1.2.3/32 dev lo");
    assert!(speaks(&first, 5000), "no event arrives");
    assert_eq!([event(&first), event(&first)], [CHANGED, None]);
    assert!(!speaks(&first, 0), "each change is reported once");
    let with = [before.clone(), vec![(3, "::ffff:10.1.2.3".to_owned())]].concat();
    assert_eq!(table(&first), with);
    // Each context is told, even of a change that another one has already found; another device is
    // not.
    assert_eq!([event(&again), event(&second)], [CHANGED, None]);
    ip("addr add 10.1.2.4/32 dev lo");
    ip("addr del 10.1.2.3/32 dev lo");
    assert!(speaks(&first, 5000));
    let other = [before.clone(), vec![(4, "::ffff:10.1.2.4".to_owned())]].concat();
    // If the table was looked at in between, the address keeps its index; otherwise it takes the
    // first free one.
    let first_free = [before.clone(), vec![(3, "::ffff:10.1.2.4".to_owned())]].concat();
    let found = table(&first);
    assert!(found == other || found == first_free, "{found:?}");
    assert_eq!([event(&first), event(&first)], [CHANGED, None]);
    ip("addr del 10.1.2.4/32 dev lo");
    assert_eq!(event(&first), CHANGED);
    assert_eq!(table(&first), before);
}

/// Only IPv4, whose addresses stay with an interface that is down.
fn an_interface_that_goes_down_or_up_is_an_event() {
    let first = context(0);
    let before = table(&first);
    ip("addr del ::1/128 dev lo");
    assert!(speaks(&first, 5000));
    assert_eq!(event(&first), CHANGED);
    ip("link set lo down");
    assert!(speaks(&first, 5000), "no event arrives");
    assert_eq!(event(&first), CHANGED);
    assert_eq!(table(&first), before[..1]);
    ip("link set lo up");
    assert!(speaks(&first, 5000), "no event arrives");
    assert_eq!(event(&first), CHANGED);
    assert_eq!(table(&first), before);
}

/// A program that has found the descriptor readable, and reads from it while it blocks, gets an
/// event.
fn who_has_polled_does_not_wait() {
    let first = context(0);
    ip("addr change 127.0.0.1/8 dev lo valid_lft 10000 preferred_lft 10000");
    assert!(speaks(&first, 5000));
    let found = first.async_event().map(|event| (event.event, event.of)).ok();
    assert_eq!(found, CHANGED);
    ip("addr change 127.0.0.1/8 dev lo valid_lft forever preferred_lft forever");
}

fn what_changes_no_gid_is_no_event() {
    let first = context(0);
    // The kernel reports another lifetime like a new address.
    ip("addr change 127.0.0.1/8 dev lo valid_lft 10000 preferred_lft 10000");
    assert!(speaks(&first, 5000));
    assert_eq!(event(&first), None);
    assert!(!speaks(&first, 0));
    ip("addr change 127.0.0.1/8 dev lo valid_lft forever preferred_lft forever");
    assert_eq!(event(&first), None);
}

fn who_waits_for_an_event_is_woken() {
    let first = context(0);
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| first.async_event());
        std::thread::sleep(Duration::from_millis(50));
        ip("addr change 127.0.0.1/8 dev lo valid_lft 10000 preferred_lft 10000");
        std::thread::sleep(Duration::from_millis(50));
        assert!(!waiting.is_finished(), "that changed nothing");
        ip("addr add 10.1.2.5/32 dev lo");
        let found = waiting.join().unwrap().map(|event| (event.event, event.of)).ok();
        assert_eq!(found, CHANGED);
    });
    ip("addr change 127.0.0.1/8 dev lo valid_lft forever preferred_lft forever");
    ip("addr del 10.1.2.5/32 dev lo");
}

/// Installs a handler that does nothing.
fn handle(signal: i32, flags: i32) {
    extern "C" fn handler(_: i32) {}
    // SAFETY: all-zero bytes are a valid sigaction; the handler does nothing.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = handler as extern "C" fn(i32) as usize;
        action.sa_flags = flags;
        assert_eq!(libc::sigaction(signal, &raw const action, std::ptr::null_mut()), 0);
    }
}

/// The wait ends or goes on as the handler lets system calls restart.
fn a_signal_ends_a_wait_as_it_does_elsewhere() {
    handle(libc::SIGUSR1, libc::SA_RESTART);
    let waiting = std::thread::spawn(|| context(0).async_event().map_err(|error| error.to_string()));
    let signal = || {
        std::thread::sleep(Duration::from_millis(50));
        // SAFETY: the thread has not been joined.
        unsafe { libc::pthread_kill(waiting.as_pthread_t(), libc::SIGUSR1) };
        std::thread::sleep(Duration::from_millis(50));
    };
    signal();
    assert!(!waiting.is_finished(), "a read would have gone on");
    handle(libc::SIGUSR1, 0);
    // The thread may not be waiting yet when the first signal comes.
    for _ in 0..200 {
        signal();
        if waiting.is_finished() {
            break;
        }
    }
    assert!(waiting.is_finished(), "a read would have ended");
    let why = waiting.join().unwrap().expect_err("nothing has happened");
    assert!(why.contains("Interrupted"), "{why}");
    handle(libc::SIGUSR1, libc::SA_RESTART);
}

/// Starts nodes on entries of the GID table of the first device, in two processes.
fn ends(near: u8, far: u8) -> (End, End) {
    let [near, far] = [near, far].map(|index| subject(&format!("softdev0:1:{index}")));
    (End::local(&near), End::remote(&far))
}

const TUNING: Tuning = Tuning { timeout: 10, retries: 1, ..Tuning::OPEN };

fn every_service_goes_by_every_address() {
    for (i, j) in [(1, 1), (2, 2), (0, 1), (1, 2)] {
        for service in [IBV_QPT_RC, IBV_QPT_UC] {
            let (mut near, mut far) = ends(i, j);
            let a = near.side(&Shape::open(service));
            let b = far.side(&Shape::open(service));
            near.connect_to(&a, b.number, b.gid, &TUNING);
            far.connect_to(&b, a.number, a.gid, &TUNING);
            far.receive(b.qp, 1, &[b.at(0, 4096)]);
            near.fill(a.region, 0, 4000, 3);
            near.send(a.qp, Send::new(2, &[a.at(0, 4000)]));
            assert_eq!(near.wait_one(a.send_cq).status, IBV_WC_SUCCESS, "{i} to {j}");
            assert_eq!(far.wait_one(b.receive_cq).status, IBV_WC_SUCCESS);
            far.check(b.region, 0, 4000, 3);
        }
    }
}

/// The ones' complement sum of 16-bit words (RFC 1071).
fn sum(bytes: &[u8]) -> u16 {
    let words = bytes.chunks(2).map(|pair| u16::from_be_bytes([pair[0], pair[1]]));
    words.fold(0, |sum, word| {
        let (sum, carry) = sum.overflowing_add(word);
        sum + u16::from(carry)
    })
}

fn datagrams_name_the_addresses_that_they_went_by() {
    for (i, j) in [(1, 1), (2, 2), (0, 0), (0, 2), (2, 1)] {
        let (mut near, mut far) = ends(i, j);
        let a = near.side(&Shape::of(IBV_QPT_UD));
        let b = far.side(&Shape::of(IBV_QPT_UD));
        near.connect_to(&a, 0, a.gid, &TUNING);
        far.connect_to(&b, 0, b.gid, &TUNING);
        let handle = near.handle(a.pd, b.gid);
        // In the slot, in the lane and in the receive's memory.
        for size in [8, 1000, 4000] {
            for (room, requests) in [(4096, 2), (8192, 1)] {
                for n in 0..requests {
                    far.receive(b.qp, n, &[b.at(0, room)]);
                    near.send(a.qp, Send::new(n, &[a.at(0, size)]).to(handle, b.number, QKEY));
                    let got = far.wait_one(b.receive_cq);
                    assert_eq!((got.flags, got.src_qp), (IBV_WC_GRH, a.number));
                    let header = far.read(b.region, 0, 40);
                    if [i, j] == [1, 1] {
                        assert_eq!((header[..20].to_vec(), header[20]), (vec![0; 20], 0x45));
                        assert_eq!(sum(&header[20..]), 0xffff, "{header:x?}");
                        assert_eq!(
                            (&header[32..36], &header[36..]),
                            (&[127, 0, 0, 1][..], &[127, 0, 0, 1][..])
                        );
                    } else {
                        assert_eq!(header[8..24], gid_of(a.gid), "the sender's GID, from {i} to {j}");
                        assert_eq!(header[24..], gid_of(b.gid), "the receiver's GID");
                    }
                }
            }
        }
    }
}

fn a_handle_outlives_its_address() {
    ip("addr add 10.1.2.6/32 dev lo");
    let first = context(0);
    let entries = first.gids(1).unwrap();
    let entry = entries.iter().find(|entry| entry.gid.to_string() == "::ffff:10.1.2.6").expect("it is there");
    // The other process may have it at another index.
    let (mut near, mut far) = ends(entry.index, 0);
    let a = near.side(&Shape::of(IBV_QPT_UD));
    let b = far.side(&Shape::of(IBV_QPT_UD));
    near.connect_to(&a, 0, a.gid, &TUNING);
    far.connect_to(&b, 0, b.gid, &TUNING);
    let handle = near.handle(a.pd, a.gid);
    ip("addr del 10.1.2.6/32 dev lo");
    far.receive(b.qp, 1, &[b.at(0, 4096)]);
    near.send(a.qp, Send::new(1, &[a.at(0, 8)]).to(handle, b.number, QKEY));
    assert_eq!(far.wait_one(b.receive_cq).status, IBV_WC_SUCCESS);
    assert_eq!(far.read(b.region, 32, 8), [10, 1, 2, 6, 10, 1, 2, 6]);
    let route = near.origin.route(a.gid);
    assert_eq!(near.try_handle(a.pd, &route), Err(libc::EINVAL), "that entry is free");
}

/// Uses a pair of interfaces, and a process with another number of devices than its peer.
fn an_address_is_found_whatever_devices_there_are() {
    ip(&format!("link add {PAIR}"));
    for line in ["addr add 10.7.0.1/24 dev veth0", "addr add 10.7.1.1/24 dev veth1"] {
        ip(line);
    }
    let set =
        |state: &str| ["veth0", "veth1"].iter().for_each(|name| ip(&format!("link set {name} {state}")));
    set("up");
    let index_of = |context: &Context, address: &str| {
        table(context).into_iter().find(|entry| entry.1 == address).map(|entry| entry.0)
    };
    // The order of the names is not that of the numbers.
    let [first, second] = [0, 1].map(context);
    let [one, other] = ["::ffff:10.7.0.1", "::ffff:10.7.1.1"];
    let is_first = index_of(&first, one).is_some();
    let [a_address, b_address] = if is_first { [one, other] } else { [other, one] };
    let a_index = index_of(&first, a_address).expect("the first interface is the first device's");
    let b_index = index_of(&second, b_address).expect("the second one is the second's");
    assert_eq!(index_of(&first, b_address), None);
    // All of them belong to the only device of a process with one device.
    let listed = |devices: &str, name: &str| {
        let mut command = conformance::runner::this_program();
        command.env(DEVICES_VARIABLE, devices);
        End::spawn(command, &subject(name))
    };
    let mut near = End::local(&subject(&format!("softdev0:1:{a_index}")));
    let mut far = listed("2", &format!("softdev1:1:{b_index}"));
    let mut lone = listed("1", "softdev0");
    let a = near.side(&Shape::of(IBV_QPT_UD));
    near.connect_to(&a, 0, a.gid, &TUNING);
    for end in [&mut far, &mut lone] {
        let b = end.side(&Shape::of(IBV_QPT_UD));
        end.connect_to(&b, 0, b.gid, &TUNING);
        let gid = conformance::rig::gid_words(b_address.parse::<std::net::Ipv6Addr>().unwrap().octets());
        let handle = near.handle(a.pd, gid);
        end.receive(b.qp, 1, &[b.at(0, 4096)]);
        near.send(a.qp, Send::new(1, &[a.at(0, 8)]).to(handle, b.number, QKEY));
        assert_eq!(end.wait_one(b.receive_cq).status, IBV_WC_SUCCESS);
    }
    drop((near, far, lone));
    ip("link del veth0");
}

fn datagrams_are_no_longer_than_allowed() {
    ip("link set lo mtu 1500");
    let (mut near, mut far) = ends(0, 0);
    assert_eq!(near.datagram_bytes(), 1024);
    let a = near.side(&Shape::of(IBV_QPT_UD));
    let b = far.side(&Shape::of(IBV_QPT_UD));
    near.connect_to(&a, 0, a.gid, &TUNING);
    far.connect_to(&b, 0, b.gid, &TUNING);
    let handle = near.handle(a.pd, b.gid);
    far.receive(b.qp, 1, &[b.at(0, 8192)]);
    near.send(a.qp, Send::new(1, &[a.at(0, 1024)]).to(handle, b.number, QKEY));
    assert_eq!(near.wait_one(a.send_cq).status, IBV_WC_SUCCESS);
    assert_eq!(far.wait_one(b.receive_cq).byte_len, 1024 + 40);
    near.send(a.qp, Send::new(2, &[a.at(0, 1025)]).to(handle, b.number, QKEY));
    assert_eq!(near.wait_one(a.send_cq).status, IBV_WC_LOC_LEN_ERR);
    ip("link set lo mtu 65536");
}
