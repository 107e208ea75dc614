//! Connections by RDMA CM on the software device, with nothing more than the flag `-R`.

use std::fs;
use std::process::Command;

use measure::record::{Point, Status};

use crate::support::hands::Server;
use crate::support::{Scratch, all_measured, finish, has_librdmacm, skip};

/// The software device's settings of ports and devices.
const LINK_LAYER: &str = "RDMASCOPE_SOFTDEV_LINK_LAYER";
const DEVICES: &str = "RDMASCOPE_SOFTDEV_DEVICES";

/// Runs a command with these variables; returns its points, all of which are measured.
fn measured(scratch: &Scratch, flags: &str, variables: &[(&str, &str)]) -> Vec<Point> {
    let words = flags.split(' ').chain(["--out", "record"]);
    let mut command = scratch.program(words);
    command.envs(variables.iter().copied());
    let ended = finish(command);
    assert_eq!((ended.status, ended.stderr.as_str()), (Some(0), ""), "{flags}: {ended:?}");
    let (run, points) = scratch.record("record");
    assert!(!points.is_empty() && all_measured(&points), "{flags}: {points:?}");
    for environment in &run.environments {
        // The record describes the host, not the files of the device that the library shows.
        let facts = environment.facts.get("infiniband").into_iter().flat_map(|facts| facts.keys());
        assert_eq!(facts.filter(|name| name.starts_with("softdev")).count(), 0, "{environment:?}");
    }
    fs::remove_dir_all(scratch.at("record")).unwrap();
    points
}

#[test]
fn one_letter_connects_through_rdma_cm() {
    if !has_librdmacm() {
        return;
    }
    let scratch = Scratch::on_one_cpu();
    for flags in [
        "lat send -R -n 200",
        "lat send -R -n 200 -c UD",
        "lat send -R -n 200 -e",
        "bw write -R -n 300 -q 4",
        "bw send -R -n 300 -q 4 -c UD -s 1KiB",
        "lat read -R -n 50 --link 40Gb/s,latency=5us",
        "one-way send -R -n 50",
    ] {
        let points = measured(&scratch, &format!("{flags} -d softdev0 --local"), &[]);
        assert!(points.iter().all(|point| point.axes["setup"] == "rdma_cm"), "{points:?}");
        if flags.contains("latency=5us") {
            let ns = points[0].latency.as_ref().unwrap().p50_ns;
            assert!(ns > 10_000, "the link is modelled: {ns} ns");
        }
    }
    measured(&scratch, "fan-out send -R -n 20 --peers 3", &[]);
    scratch.assert_nothing_left();
}

#[test]
fn ports_of_infiniband_are_connected_through_rdma_cm() {
    if !has_librdmacm() {
        return;
    }
    let scratch = Scratch::on_one_cpu();
    for flags in ["lat send -R -n 200", "lat send -R -n 200 -c UD", "bw write -R -n 300 -q 2"] {
        measured(&scratch, &format!("{flags} --local"), &[(LINK_LAYER, "infiniband")]);
    }
}

/// Each of two devices has the addresses of another interface.
#[test]
fn several_devices_are_connected_through_rdma_cm() {
    if !has_librdmacm() {
        return;
    }
    let unshared = |script: &str| {
        let mut command = Command::new("unshare");
        command.args(["-n", "sh", "-ec", script]);
        command
    };
    let interfaces = "ip link set lo up\n\
                      for i in 1 2; do ip link add br$i type bridge; ip addr add 10.99.$i.1/24 dev br$i; \
                      ip link set br$i up; done\n";
    match unshared(interfaces).output() {
        Ok(output) if output.status.success() => {}
        Ok(output) => return skip("namespaces", &String::from_utf8_lossy(&output.stderr)),
        Err(why) => return skip("namespaces", &why.to_string()),
    }
    let scratch = Scratch::on_one_cpu();
    for (device, layer) in [0, 1].into_iter().flat_map(|n| [(n, "ethernet"), (n, "infiniband")]) {
        let words = format!("lat send -R -n 100 -d softdev{device} --local --out {layer}{device}");
        let script = format!("{interfaces}exec \"$0\" {words}");
        let mut command = scratch.command("unshare");
        command.args(["-n", "sh", "-ec", &script, *crate::support::PROGRAM]);
        command.envs([(DEVICES, "2"), (LINK_LAYER, layer)]);
        let ended = finish(command);
        assert_eq!(ended.status, Some(0), "{words}: {ended:?}");
        assert!(all_measured(&scratch.record(&format!("{layer}{device}")).1), "{words}: {ended:?}");
    }
    // A third device has no interface.
    let mut command = scratch.program("lat send -R -n 100 -d softdev7 --local".split(' '));
    command.env(DEVICES, "8").env(LINK_LAYER, "infiniband");
    let ended = finish(command);
    let words = "not measured: port 1 of softdev7 has no IP address that RDMA CM could use";
    assert!(ended.stdout.contains(words), "{ended:?}");
}

#[test]
fn ends_that_are_started_by_hand_connect_through_rdma_cm() {
    if !has_librdmacm() {
        return;
    }
    let scratch = Scratch::on_one_cpu();
    for (flags, variables) in [
        (&["-R"][..], &[][..]),
        (&["-R", "-c", "UD"], &[]),
        (&["-R"], &[(LINK_LAYER, "infiniband")]),
        // The server always has the library, and this client does not.
        (&[], &[]),
    ] {
        // Only the client knows what the server measures.
        let mut command = scratch.program(["lat", "send", "-p", "0"]);
        command.envs(variables.iter().copied());
        let server = Server::of(command);
        let mut client = server.client(&scratch, &[flags, &["-n", "100", "--out", "record"]].concat());
        client.envs(variables.iter().copied());
        let ended = finish(client);
        assert_eq!((ended.status, ended.stderr.as_str()), (Some(0), ""), "{flags:?}: {ended:?}");
        assert!(all_measured(&scratch.record("record").1), "{flags:?}");
        fs::remove_dir_all(scratch.at("record")).unwrap();
        let ended = server.end();
        assert_eq!((ended.status, ended.stderr.as_str()), (Some(0), ""), "{flags:?}: {ended:?}");
    }
    scratch.assert_nothing_left();
}

#[test]
fn a_server_that_starts_itself_again_is_the_same_process() {
    if !has_librdmacm() {
        return;
    }
    let scratch = Scratch::on_one_cpu();
    let theirs = "/usr/lib/librdmascope-test-not-there.so";
    let server = {
        let mut command = scratch.program(["lat", "send", "-p", "0"]);
        command.env("LD_PRELOAD", theirs);
        Server::of(command)
    };
    let pid = server.pid();
    let started = fs::read(format!("/proc/{pid}/environ")).unwrap();
    let started = String::from_utf8_lossy(&started).into_owned();
    let preloaded = started.split('\0').find(|entry| entry.starts_with("LD_PRELOAD=")).unwrap();
    assert!(preloaded.ends_with(&format!("librdmascope_preload.so:{theirs}")), "{preloaded}");
    let maps = fs::read_to_string(format!("/proc/{pid}/maps")).unwrap();
    assert!(maps.contains("librdmascope_preload.so"), "it is the same process, restarted");
    drop(server);
}

#[test]
fn without_the_library_of_rdmascope_the_reason_is_said() {
    if !has_librdmacm() {
        return;
    }
    let scratch = Scratch::on_one_cpu();
    let mut command = scratch.program("lat send -R -n 100 --local -d softdev0 --out record".split(' '));
    command.env("RDMASCOPE_PRELOAD", "/nowhere/x.so");
    let ended = finish(command);
    let reason = "softdev0 is not a device of the kernel, so RDMA CM cannot use it";
    assert!(ended.stdout.contains(&format!("not measured: {reason}")), "{ended:?}");
    let why = "[rank 0] rdmascope: RDMA CM cannot reach the software device, as its library is not loaded: \
               RDMASCOPE_PRELOAD: /nowhere/x.so is not a file";
    assert!(ended.stderr.contains(why), "{ended:?}");
    let points = scratch.record("record").1;
    assert_eq!(points[0].status, Status::NotMeasured { reason: reason.to_owned() });
}
