//! perftest and qperf, without and with RDMA CM.

use super::case::{Cases, Device, ETHERNET, HERE, INFINIBAND, Lines, PORT, Ready, TWO_DEVICES};

/// perftest's programs with their services.
const PERFTEST: [(&str, &[&str]); 8] = [
    ("ib_send_lat", &["RC", "UC", "UD"]),
    ("ib_send_bw", &["RC", "UC", "UD"]),
    ("ib_write_lat", &["RC", "UC"]),
    ("ib_write_bw", &["RC", "UC"]),
    ("ib_read_lat", &["RC"]),
    ("ib_read_bw", &["RC"]),
    ("ib_atomic_lat", &["RC"]),
    ("ib_atomic_bw", &["RC"]),
];

/// A mode: arguments, words of which the program's name must contain one, services, and whether the
/// quick run has the mode.
type Mode = (&'static str, &'static [&'static str], &'static [&'static str], bool);

const ALL: &[&str] = &["RC", "UC", "UD"];
const CONNECTED: &[&str] = &["RC", "UC"];

/// The modes. They have few messages, because a ping-pong that polls is slow on two busy CPUs.
const MODES: [Mode; 32] = [
    ("-n 1000", &[], ALL, true),
    ("-n 20 -a", &["send_lat", "write_lat", "read_lat"], ALL, false),
    ("-n 100 -a", &["send_bw", "write_bw", "read_bw"], ALL, false),
    ("-n 1000 -e", &["send", "read", "atomic"], ALL, false),
    ("-n 1000 -b", &["_bw"], ALL, false),
    ("-n 1000 -q 4", &["_bw"], ALL, false),
    ("-n 1000 -l 8", &["_bw"], ALL, false),
    ("-n 1000 -q 2 -l 4 -b", &["send_bw", "write_bw"], ALL, false),
    ("-n 1000 -Q 16 -t 512", &["_bw"], ALL, false),
    ("-D 1", &[], ALL, false),
    ("-D 1 -b", &["_bw"], CONNECTED, false),
    ("-n 1000 -s 32 -I 32", &["send", "write"], ALL, false),
    ("-n 1000 -s 4096 -m 1024", &["send", "write", "read"], CONNECTED, false),
    ("-n 1000 --use-srq", &["send"], ALL, false),
    ("-n 1000 --use-srq -q 4", &["send_bw"], &["RC"], true),
    // Over UC and UD, a message without a posted receive is lost, and perftest waits a minute for
    // it: 50 messages find posted receives.
    ("-n 50 --use-srq -q 4", &["send_bw"], &["UC", "UD"], false),
    ("-n 1000 -e --use-srq", &["send_lat"], ALL, false),
    ("-n 5000 -r 5000", &["send"], ALL, false),
    ("-n 1000 -e -b", &["send_bw", "read_bw"], &["RC"], false),
    ("-n 1000 -A CMP_AND_SWAP", &["atomic"], ALL, false),
    ("-n 1000 -o 1", &["read", "atomic"], ALL, false),
    ("-n 100 -g", &["send"], &["UD"], true),
    ("-n 5 -s 64 -q 1024 -t 1 -r 5", &["send_bw"], CONNECTED, false),
    ("-n 5 -s 64 -q 1024 -t 1", &["write_bw", "read_bw"], CONNECTED, false),
    ("-n 1000 --mr_per_qp -q 4", &["write_bw"], &["RC"], false),
    ("-n 1000 --odp", &["send_lat", "write_bw", "read_bw"], &["RC"], false),
    ("-n 1000 --inline_recv=32", &["send_lat"], &["RC"], false),
    ("-n 1000 --reversed", &["_bw"], &["RC"], false),
    ("-n 1000 -c XRC", &["send_lat", "write_bw"], &["RC"], true),
    ("-n 1000 -c DC", &["send_lat", "write_bw"], &["RC"], false),
    ("-n 1000 -c SRD", &["send_lat"], &["RC"], false),
    ("-n 1000 -z", &["send_lat"], &["RC"], false),
];

/// Modes in which perftest itself fails with RDMA CM, for the given services. It connects in the
/// wrong direction; it posts receives to queue pairs that have a shared queue; and it loses
/// credits, as without RDMA CM.
const NOT_BY_MANAGER: [(&str, &[&str]); 4] = [
    ("-n 1000 --reversed", ALL),
    ("-n 1000 --use-srq", &["UD"]),
    ("-n 1000 -e --use-srq", &["UD"]),
    ("-n 50 --use-srq -q 4", &["UD"]),
];

/// The programs and services of the quick run with RDMA CM, in the first mode.
const QUICK_BY_MANAGER: [(&str, &str); 2] = [("ib_send_lat", "UD"), ("ib_write_bw", "RC")];

/// The RDMA tests of Debian's qperf, which is built without XRC, and whether the quick run has
/// them.
const QPERF: [(&str, bool); 21] = [
    ("rc_bi_bw", false),
    ("rc_bw", false),
    ("rc_lat", true),
    ("uc_bi_bw", false),
    ("uc_bw", false),
    ("uc_lat", false),
    ("ud_bi_bw", false),
    ("ud_bw", false),
    ("ud_lat", true),
    ("rc_rdma_read_bw", false),
    ("rc_rdma_read_lat", false),
    ("rc_rdma_write_bw", false),
    ("rc_rdma_write_lat", false),
    ("rc_rdma_write_poll_lat", false),
    ("uc_rdma_write_bw", false),
    ("uc_rdma_write_lat", false),
    ("uc_rdma_write_poll_lat", false),
    ("rc_compare_swap_mr", false),
    ("rc_fetch_add_mr", false),
    ("ver_rc_compare_swap", false),
    ("ver_rc_fetch_add", false),
];

/// Adds all cases.
pub(super) fn cases(cases: &mut Cases) {
    for (program, services) in PERFTEST {
        for service in services {
            for mode in &MODES {
                perftest(cases, program, service, mode);
            }
        }
    }
    for line in ["ib_send_lat -c UD -n 1000", "ib_send_lat -c RC -n 1000", "ib_write_bw -c UC -n 1000"] {
        cases.own_server(INFINIBAND, line, false);
    }
    cases.own_server(TWO_DEVICES, "ib_send_lat -d softdev1 -n 1000", true);
    by_manager(cases, INFINIBAND, "ib_send_lat -c UD -n 1000", false);
    by_manager(cases, INFINIBAND, "ib_send_lat -c RC -n 1000", false);
    by_manager(cases, TWO_DEVICES, "ib_send_lat -c RC -n 1000", false);
    for (test, is_quick) in QPERF {
        qperf(cases, INFINIBAND, test, is_quick);
        // qperf uses RDMA CM only for RC.
        if test.starts_with("rc_") || test == "uc_lat" || test == "ud_lat" {
            qperf(cases, ETHERNET, &format!("{test} -cm 1"), test == "rc_lat");
        }
    }
    qperf(cases, ETHERNET, "rc_lat", false);
    qperf(cases, ETHERNET, "ud_lat", false);
}

/// Adds a program of perftest with a service in a mode, without and with RDMA CM.
fn perftest(cases: &mut Cases, program: &str, service: &str, mode: &Mode) {
    let (arguments, programs, services, is_quick) = mode;
    let is_named = programs.is_empty() || programs.iter().any(|name| program.contains(name));
    if !is_named || !services.contains(&service) {
        return;
    }
    let has_service = arguments.contains("-c ");
    let option = if has_service { String::new() } else { format!(" -c {service}") };
    let line = format!("{program}{option} {arguments}");
    // With `-z`, server and client exchange their parameters by RDMA CM.
    if arguments.ends_with("-z") {
        let server = format!("{line} -p {PORT}");
        let lines = Lines { server: &server, client: &format!("{server} {HERE}"), ready: &Ready::Manager };
        return cases.pair(ETHERNET, &line, *is_quick, &lines, true);
    }
    cases.own_server(ETHERNET, &line, *is_quick);
    let is_first = *arguments == MODES[0].0;
    let fails = NOT_BY_MANAGER.iter().any(|(mode, of)| mode == arguments && of.contains(&service));
    // librdmacm creates no queue pairs of UC: one case is enough to see the refusal.
    let is_left_out = has_service || (service == "UC" && !is_first);
    if !fails && !is_left_out {
        by_manager(cases, ETHERNET, &line, is_first && QUICK_BY_MANAGER.contains(&(program, service)));
    }
}

/// Adds a program of perftest that connects through RDMA CM.
fn by_manager(cases: &mut Cases, device: Device, line: &str, is_quick: bool) {
    let server = format!("{line} -R -p {PORT}");
    let lines = Lines { server: &server, client: &format!("{server} {HERE}"), ready: &Ready::Manager };
    cases.pair(device, &format!("{line} -R"), is_quick, &lines, true);
}

/// Adds a test of qperf, whose server does not end.
fn qperf(cases: &mut Cases, device: Device, test: &str, is_quick: bool) {
    let name = format!("qperf {test}");
    let (test, options) = test.split_once(' ').unwrap_or((test, ""));
    let lines = Lines {
        server: &format!("qperf -lp {PORT}"),
        client: &format!("qperf -lp {PORT} -t 1 {options} {HERE} {test}"),
        ready: &Ready::Socket,
    };
    cases.pair(device, &name, is_quick, &lines, false);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_mode_meets_a_program() {
        let cases = super::super::cases();
        for (arguments, ..) in MODES {
            assert!(cases.iter().any(|case| case.name.ends_with(arguments)), "{arguments}");
        }
        for (arguments, _) in NOT_BY_MANAGER {
            assert!(MODES.iter().any(|mode| mode.0 == arguments), "{arguments}");
        }
        for (program, service) in QUICK_BY_MANAGER {
            let name = format!("{program} -c {service} -n 1000 -R");
            assert!(cases.iter().any(|case| case.name == name && case.is_quick), "{name}");
        }
    }
}
