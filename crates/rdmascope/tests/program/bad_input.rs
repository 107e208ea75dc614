//! Impossible requests are refused with one clear sentence and the right exit status, before
//! anything is started or left behind.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;

use crate::support::{PROGRAM, SMALL, Scratch, finish, is_installed, skip};

/// Asserts that the plan `SMALL` is refused if one text of it is replaced by another.
fn refused(from: &str, to: &str, words: &[&str]) {
    let scratch = Scratch::new();
    assert!(SMALL.contains(from), "{from}");
    scratch.write("plan.toml", SMALL.replacen(from, to, 1));
    scratch.refused(&["run", "plan.toml", "--out", "record"], 2, &[&["plan.toml:"][..], words].concat());
    assert!(!scratch.at("record").exists(), "{to} made a directory");
}

#[test]
fn plans_are_refused_with_the_line_and_the_nearest_name() {
    refused(
        "iterations",
        "iteratoins",
        &["plan.toml:7", "unknown key \"iteratoins\"", "did you mean \"iterations\"?"],
    );
    refused("service =", "sevrice =", &["plan.toml:9", "\"sevrice\"", "did you mean \"service\"?"]);
    refused("\"ping-pong\"", "\"pingpong\"", &["did you mean \"ping-pong\"?"]);
    refused("[\"RC\", \"UC\", \"UD\"]", "[]", &["plan.toml:9", "the axis service", "is empty"]);
    refused("[\"RC\", \"UC\", \"UD\"]", "[\"RD\"]", &["unknown service \"RD\"", "RC, UC, UD"]);
    refused(
        "[4, 1024]",
        "[8192]",
        &["size_bytes 8192", "above its mtu_bytes 4096", "UD carries a message in one packet"],
    );
    refused("[4, 1024]", "\"5..9\"", &["doubling 5 does not reach 9"]);
    refused("[4, 1024]", "[4, 4]", &["has 4 twice"]);
    refused("iterations = 200", "iterations = 0", &["at least 1 message"]);
    refused("iterations = 200", "duration = \"1e9s\"", &["duration"]);
    refused("iterations = 200", "iterations = 20 0", &["plan.toml:7", "not TOML"]);
    refused("[\"latency\"]", "[\"latncy\"]", &["unknown experiment", "did you mean \"latency\"?"]);
    refused("latency.p50_ns", "latency.p51_ns", &["unknown quantity", "did you mean \"latency.p50_ns\"?"]);
    refused("series =", "unit = \"Gb/s\"\nseries =", &["latency.p50_ns is not measured in Gb/s"]);
}

#[test]
fn plans_that_are_none_are_named() {
    let scratch = Scratch::new();
    scratch.refused(&["run", "nope"], 2, &["no plan \"nope\"", "quick, applications, gamess-2016"]);
    scratch.refused(&["run", "quik"], 2, &["did you mean \"quick\"?"]);
    scratch.refused(&["plans", "quik"], 2, &["no plan \"quik\"", "gamess-2016", "did you mean \"quick\"?"]);
    scratch.refused(&["run", "nope.toml"], 2, &["nope.toml", "No such file"]);
    scratch.refused(&["run", "."], 2, &["Is a directory"]);
    scratch.write("binary.toml", [0xff, 0xfe, 0x00]);
    scratch.refused(&["run", "binary.toml"], 2, &["binary.toml", "UTF-8"]);
    scratch.write("empty.toml", "");
    scratch.refused(&["run", "empty.toml"], 2, &["no \"name\""]);
}

#[test]
fn settings_are_refused_by_the_name_that_they_were_given() {
    let scratch = Scratch::new();
    let set = |text: &str, words: &[&str]| {
        scratch.refused(&["run", "quick", "--set", text, "--dry-run"], 2, &[&["--set"][..], words].concat());
    };
    set("foo=1", &["unknown key \"foo\"", "iterations"]);
    set("iterations", &["no '='", "KEY=VALUE"]);
    set("size_bytes=", &["no value"]);
    set("experiment.latncy.iterations=1", &["did you mean \"latency\"?"]);
    set("warmup=1000000001", &["warmup of", "1000000001", "more than 1000000000"]);
    set("\u{1b}[31miterations", &["\\u{1b}[31miterations", "no '='"]);
    set("service=ud", &["did you mean \"UD\"?"]);
}

#[test]
fn flags_are_refused_before_anything_starts() {
    let scratch = Scratch::new();
    let lat = |flags: &[&str], words: &[&str]| {
        // Both ranks are started in each case: a server would wait for its client.
        let local: &[&str] = if flags.contains(&"--via") { &[] } else { &["--local"] };
        scratch.refused(&[&["lat", "send"][..], local, flags].concat(), 2, words);
    };
    lat(&["-s", "banana"], &["\"banana\"", "does not start with a digit"]);
    lat(&["-c", "UD", "-s", "8192"], &["--size 8192", "--mtu 4096"]);
    lat(&["-m", "5000"], &["not a path MTU", "256, 512, 1024, 2048 or 4096"]);
    lat(&["-n", "0"], &["--iters of rdmascope lat send is 0", "at least 1 message"]);
    for many in ["1000000001", "18446744073709551615"] {
        let words = ["--iters of", "rdmascope lat send", many, "more than 1000000000", "give a duration"];
        lat(&["-n", many], &words);
    }
    lat(&["-D", "0"], &["above zero"]);
    lat(&["-D", "10000h"], &["36000000 s", "at most 30 days"]);
    lat(&["-t", "0"], &["at least 1 request"]);
    lat(&["-Q", "0"], &["at least 1"]);
    lat(&["-Q", "1000"], &["--cq-mod 1000", "--tx-depth 128"]);
    lat(&["-d", "mlx5_7"], &["no device named \"mlx5_7\"", "this host has softdev0"]);
    lat(&["-d", "softdevO"], &["this host has softdev0", "did you mean \"softdev0\"?"]);
    lat(&["--cpus", "0"], &["--cpus 0", "two numbers"]);
    lat(&["--cpus", "0,999999"], &["CPU 999999", "may not use", "choose from"]);
    lat(&["--via", "ssh {host}"], &["{host}", "--hosts"]);
    lat(&["--via", "ssh {host}", "--hosts", "a"], &["--hosts names 1"]);
    lat(&["--via", "ssh", "--hosts", "a,b"], &["{host} in --via"]);
    lat(&["--via", "ssh 'x {host}", "--hosts", "a,b"], &["it has an unclosed quote"]);
    lat(&["--via", "ssh {host}", "--hosts=-oProxyCommand=x,b"], &["is not the name of a host"]);
    lat(&["--via", "", "--cpus", "none"], &["it is empty"]);
}

#[test]
fn a_size_that_an_endpoint_does_not_carry_is_refused_under_the_name_of_its_command() {
    let scratch = Scratch::new();
    for (command, name, endpoint) in [
        (&["lat", "tcp"][..], "lat tcp", "TCP"),
        (&["bw", "udp"], "bw udp", "UDP"),
        (&["one-way", "shmem"], "one-way shmem", "shared memory"),
    ] {
        let said = format!("--size of rdmascope {name} has 0: a message over {endpoint} has at least 1 byte");
        scratch.refused(&[command, &["--local", "-s", "0"]].concat(), 2, &[&said]);
    }
}

#[test]
fn ends_started_by_hand_are_refused_before_they_wait() {
    let scratch = Scratch::new();
    let lat = |flags: &[&str], words: &[&str]| {
        scratch.refused(&[&["lat", "send"][..], flags].concat(), 2, words);
    };
    lat(&["node7"], &["client of node7 needs the key", "--key KEY", "RDMASCOPE_KEY"]);
    lat(&["node7", "--key", "abc"], &["the key has 3 characters"]);
    lat(&["node7", "--key", "abcdefghijklmnopqrstuvwxy0"], &["the key has a '0'"]);
    lat(&["", "--key", "x"], &["HOST is empty"]);
    lat(&["node7", "--key", "x", "-p", "0"], &["-p 0"]);
    lat(&["--listen", "node7"], &["--listen node7", "an address of this host"]);
    lat(&["--listen", ""], &["--listen", "an address of this host"]);
    lat(&["--key", "abc"], &["the key has 3 characters"]);
    lat(&["--cpus", "0,1,2"], &["--cpus 0,1,2", "the CPU of this rank"]);
    lat(&["--cpus", "999999"], &["CPU 999999", "may not use"]);
    lat(&["-d", "mlx5_7"], &["no device named \"mlx5_7\"", "this host has softdev0"]);
    for (flags, words) in [
        (&["node7", "--local"][..], "cannot be used with '--local'"),
        (&["node7", "--via", "env"], "cannot be used with '--via"),
        (&["node7", "--listen", "0.0.0.0"], "cannot be used with '--listen"),
        (&["--local", "--via", "env"], "cannot be used with"),
        (&["--local", "--key", "x"], "cannot be used with"),
        (&["--local", "-p", "7"], "cannot be used with"),
        (&["--via", "env", "--wait", "7"], "cannot be used with"),
        (&["-p", "70000"], "70000"),
        (&["--wait", "soon"], "--wait"),
    ] {
        let ended = scratch.run(&[&["lat", "send"][..], flags].concat());
        assert_eq!((ended.status, ended.stdout.as_str()), (Some(2), ""), "{flags:?}");
        assert!(ended.stderr.contains(words), "{flags:?}: {}", ended.stderr);
    }
}

#[test]
fn limits_of_the_device_are_named() {
    let scratch = Scratch::on_one_cpu();
    let refused = |flags: &[&str], words: &[&str]| {
        let all = [&["lat", "send", "--local", "--out", "record"][..], flags].concat();
        scratch.refused(&all, 2, &[&["nothing of this plan can be measured"][..], words].concat());
        assert!(!scratch.at("record").exists());
    };
    refused(&["-I", "1MiB", "-s", "64KiB"], &["at most 512 bytes inline", "softdev0"]);
    refused(&["-s", "8GiB"], &["messages of at most", "softdev0"]);
    scratch.assert_nothing_left();
}

#[test]
fn usage_that_clap_refuses_is_status_2_with_a_hint() {
    let scratch = Scratch::new();
    for (arguments, hint) in [
        (&["frobnicate"][..], "Usage: rdmascope"),
        (&["lat", "sned"], "a similar subcommand exists: 'send'"),
        (&["latency"], "tip: use 'rdmascope lat'"),
        (&["stream", "send"], "tip: use 'rdmascope bw'"),
        (&["lat", "verbs"], "tip: use send, write, read or atomic"),
        (&["bw", "sockets"], "tip: use tcp, udp, sctp, unix-stream or unix-datagram"),
        (&["lat", "send", "--iterations", "4"], "tip: use '--iters'"),
        (&["run", "quick", "--local"], "run on this host unless --hosts names others"),
        (&["lat", "send", "--sise", "4"], "a similar argument exists: '--size'"),
        (&["lat", "send", "-c", "RD"], "possible values: RC, UC, UD"),
        (&["lat", "send", "-a", "-s", "4"], "cannot be used with"),
        (&["lat", "send", "-n", "5", "-D", "1"], "cannot be used with"),
        (&["lat", "send", "-D", "-1"], "cannot read \"-1\" as a duration: it does not start with a digit"),
        (&["lat", "send", "-D", "nan"], "cannot read \"nan\" as a duration: it does not start with a digit"),
        (&["lat", "send", "-D", "1e300"], "cannot read \"1e300\" as a duration: it is not a whole number"),
        (
            &["lat", "send", "-n", "ten"],
            "cannot read \"ten\" as a count: write a whole number such as 1000, 10k or 1e6",
        ),
        (&["run"], "<PLAN>"),
        (&["run", "quick", "--hosts", "a,b"], "tip: --via says how to start a command on a host"),
        (&["run", "quick", "--start-timeout", "0"], "--start-timeout"),
        (&["run", "quick", "--out", ""], "--out"),
        (&["completions", "tcsh"], "bash"),
    ] {
        let ended = scratch.run(arguments);
        assert_eq!((ended.status, ended.stdout.as_str()), (Some(2), ""), "{arguments:?}");
        assert!(ended.stderr.contains(hint), "{arguments:?}: {}", ended.stderr);
    }
}

#[test]
fn tips_name_only_what_the_help_lists_and_helps() {
    let scratch = Scratch::new();
    for (arguments, not) in [
        (&["agnet"][..], "'agent'"),
        (&["lat", "send", "--inline"], "--inline_recv"),
        (&["lat", "tcp", "--local", "-i", "1"], "as a value"),
    ] {
        let ended = scratch.run(arguments);
        assert_eq!(ended.status, Some(2), "{arguments:?}");
        assert!(!ended.stderr.contains(not), "{arguments:?}: {}", ended.stderr);
    }
}

#[test]
fn arguments_that_are_no_text_reach_the_program() {
    let scratch = Scratch::new();
    let name = OsStr::from_bytes(b"name-\xff");
    fs::write(scratch.path().join(name), "content").unwrap();
    let output = scratch.command(*PROGRAM).args(["exec", "cat"]).arg(name).output().unwrap();
    assert_eq!((output.status.code(), output.stdout.as_slice()), (Some(0), &b"content"[..]), "{output:?}");
}

#[test]
fn a_directory_that_holds_a_run_is_never_written_to() {
    let scratch = Scratch::on_one_cpu();
    scratch.write("plan.toml", SMALL);
    scratch.succeed(&["run", "plan.toml", "--out", "record"]);
    let before = listing(&scratch);
    for command in [&["run", "quick"][..], &["lat", "send", "--local"], &["bw", "send", "--local"]] {
        let all = [command, &["--out", "record"]].concat();
        scratch.refused(&all, 2, &["record already holds a run", "never overwritten"]);
    }
    for part in ["run.json", "points.jsonl"] {
        let output = format!("record/{part}");
        scratch.refused(&["report", "record", "-o", &output], 2, &[part, "part of the record"]);
    }
    assert_eq!(listing(&scratch), before);
}

/// Returns the files of a record with their contents.
fn listing(scratch: &Scratch) -> Vec<(String, Vec<u8>)> {
    let mut files: Vec<_> = fs::read_dir(scratch.at("record"))
        .unwrap()
        .flatten()
        .filter(|entry| entry.path().is_file())
        .map(|entry| (entry.file_name().into_string().unwrap(), fs::read(entry.path()).unwrap()))
        .collect();
    files.sort();
    files
}

#[test]
fn a_directory_that_cannot_be_made_is_status_1() {
    let scratch = Scratch::new();
    scratch.write("file", "");
    scratch.refused(&["run", "quick", "--out", "file"], 1, &["file", "File exists"]);
    scratch.refused(&["run", "quick", "--out", "file/below"], 1, &["file/below", "Not a directory"]);
    scratch.refused(&["run", "quick", "--out", "/proc/nothing"], 1, &["/proc/nothing"]);
    assert_eq!(fs::read(scratch.at("file")).unwrap(), b"");
}

#[test]
fn a_directory_that_may_not_be_written_is_status_1() {
    let scratch = Scratch::new();
    if rustix::process::geteuid().is_root() {
        return skip("user", "root may write everywhere; an unprivileged user is needed");
    }
    fs::create_dir(scratch.at("closed")).unwrap();
    let mut permissions = fs::metadata(scratch.at("closed")).unwrap().permissions();
    permissions.set_readonly(true);
    fs::set_permissions(scratch.at("closed"), permissions).unwrap();
    scratch.refused(&["run", "quick", "--out", "closed/record"], 1, &["closed/record", "Permission denied"]);
    scratch.refused(&["run", "quick", "--out", "closed"], 1, &["closed", "Permission denied"]);
}

#[test]
fn a_record_that_is_none_or_spoilt_is_refused() {
    let scratch = Scratch::on_one_cpu();
    scratch.refused(&["report", "nothing"], 2, &["nothing does not hold a run", "no such directory"]);
    scratch.refused(&["report", "."], 2, &["no run.json"]);
    scratch.succeed(&["lat", "send", "--local", "-n", "20", "--out", "record"]);
    scratch.refused(
        &["report", "record", "-o", "no/such/dir.html"],
        1,
        &["no/such/dir.html", "No such file"],
    );
    let run = fs::read_to_string(scratch.at("record/run.json")).unwrap();
    fs::write(scratch.at("record/run.json"), run.replace("\"schema_version\": 1", "\"schema_version\": 99"))
        .unwrap();
    let ended = scratch.run(&["report", "record"]);
    assert!(ended.status != Some(0) && ended.stderr.contains("99"), "{ended:?}");
    fs::write(scratch.at("record/run.json"), &run[..run.len() / 2]).unwrap();
    let ended = scratch.run(&["report", "record"]);
    assert!(ended.status != Some(0) && ended.stderr.contains("run.json"), "{ended:?}");
}

#[test]
fn a_report_into_a_device_leaves_the_device_alone() {
    let scratch = Scratch::on_one_cpu();
    scratch.succeed(&["lat", "send", "--local", "-n", "20", "--out", "record"]);
    let html = scratch.succeed(&["report", "record", "-o", "/dev/stdout"]);
    assert!(html.starts_with("<!DOCTYPE html>") && html.trim_end().ends_with("</html>"), "only the report");
    scratch.succeed(&["report", "record", "-o", "/dev/null"]);
    assert!(!fs::metadata("/dev/null").unwrap().is_file());
}

#[test]
fn a_limit_of_the_size_of_files_ends_the_run_with_the_points_before_it() {
    let scratch = Scratch::on_one_cpu();
    scratch.write("plan.toml", crate::support::LONG);
    // A soft limit, so that the agents can raise it for the memory that they share.
    let agent = "sh -c \"ulimit -S -f unlimited; exec \\\"\\$@\\\"\" sh";
    // Few messages, so that a point with its histogram is not too long for the limit.
    let script = "ulimit -S -f 48; \
                  exec \"$0\" run plan.toml --out record --set keep_samples=false --set iterations=50 --via \"$1\"";
    let mut command = scratch.command("sh");
    command.args(["-c", script, *PROGRAM, agent]);
    ends_with_what_fitted(&scratch, command, "record", "File too large");
}

#[test]
fn a_full_disk_ends_the_run_with_the_points_before_it() {
    if !rustix::process::geteuid().is_root() || !is_installed("unshare") {
        return skip("root", "mounting a small tmpfs in a mount namespace of its own needs root and unshare");
    }
    let scratch = Scratch::on_one_cpu();
    scratch.write("plan.toml", crate::support::LONG);
    fs::create_dir(scratch.at("disk")).unwrap();
    // The record is copied out at the end: the file system ends with its namespace.
    let script = "mount -t tmpfs -o size=256k none disk || exit 77; \
                  \"$0\" run plan.toml --out disk/record --set iterations=2000; \
                  status=$?; cp -r disk/record record; exit $status";
    let mut command = scratch.command("unshare");
    command.args(["-m", "sh", "-c", script, *PROGRAM]);
    ends_with_what_fitted(&scratch, command, "record", "No space left on device");
}

#[test]
fn a_point_whose_samples_have_no_room_is_kept_without_them() {
    if !rustix::process::geteuid().is_root() || !is_installed("unshare") {
        return skip("root", "mounting a small tmpfs in a mount namespace of its own needs root and unshare");
    }
    let scratch = Scratch::on_one_cpu();
    fs::create_dir(scratch.at("disk")).unwrap();
    // Room for the samples of one rank only.
    let script = "mount -t tmpfs -o size=300k none disk || exit 77; \
                  \"$0\" lat send --local -n 30000 --out disk/record; \
                  status=$?; cp -r disk/record record; exit $status";
    let mut command = scratch.command("unshare");
    command.args(["-m", "sh", "-c", script, *PROGRAM]);
    let ended = finish(command);
    if ended.status == Some(77) {
        return skip("mount", "a tmpfs cannot be mounted here");
    }
    assert_eq!(ended.status, Some(1), "{ended:?}");
    assert!(ended.stderr.contains("cannot write samples to disk/record/samples/000000-1.u64"), "{ended:?}");
    assert!(ended.stderr.contains("No space left on device"), "{ended:?}");
    let is_row = |line: &str| line.split_whitespace().nth(1) == Some("30000");
    assert!(ended.stdout.lines().any(is_row), "the numbers are printed: {}", ended.stdout);
    let (_, points) = scratch.record("record");
    assert_eq!(points.len(), 1);
    assert!(points[0].latency.is_some() && points[0].ends.iter().all(|end| end.samples.is_none()));
    assert_eq!(fs::read_dir(scratch.at("record/samples")).unwrap().count(), 0, "samples of half a point");
    assert!(scratch.succeed(&["report", "record", "--text"]).lines().any(is_row));
}

#[test]
fn a_limit_of_the_size_of_files_is_a_sentence_and_no_death() {
    let scratch = Scratch::on_one_cpu();
    scratch.succeed(&["lat", "send", "--local", "-n", "20", "--out", "record"]);
    let said = |script: &str, words: &[&str]| {
        let ended = finish(scratch.shell(script));
        assert_eq!((ended.status, ended.stderr.lines().count()), (Some(1), 1), "{ended:?}");
        words.iter().for_each(|word| assert!(ended.stderr.contains(word), "no {word:?}: {ended:?}"));
    };
    said("ulimit -f 8; exec \"$0\" report record -o page", &["cannot write page: File too large"]);
    let limit = ["open_device on softdev0", "File too large", "ulimit -f unlimited"];
    said("ulimit -f 8; exec \"$0\" lat send --local -n 20 --out other", &limit);
    let left = fs::read_dir(scratch.path()).unwrap().flatten().map(|entry| entry.file_name());
    assert_eq!(left.filter(|name| name != "tmp").collect::<Vec<_>>(), ["record"]);
}

#[test]
fn what_keeps_softdev_from_memory_is_named() {
    let scratch = Scratch::on_one_cpu();
    let failed = |script: &str, words: &[&str]| {
        let ended = finish(scratch.shell(script));
        assert_eq!(ended.status, Some(1), "{ended:?}");
        let said = ended.stdout + &ended.stderr;
        words.iter().for_each(|word| assert!(said.contains(word), "no {word:?}: {said}"));
        assert!(!said.contains("/dev/infiniband") && !said.contains("retry counter"), "{said}");
    };
    let own =
        ["open_device on softdev0 failed: Cannot allocate memory", "is 200000 KiB", "ulimit -v unlimited"];
    failed("ulimit -v 200000; exec \"$0\" lat send --local -n 20", &own);
    // Room for the memory of one process, but not of two.
    let peer = ["modify_qp on RC queue pair", "the peer's memory could not be mapped", "is 2000000 KiB"];
    failed("ulimit -v 2000000; exec \"$0\" lat send --local -n 20", &peer);
    let datagram = ["post_send on queue pair", "the peer's memory could not be mapped", "is 2000000 KiB"];
    failed("ulimit -v 2000000; exec \"$0\" lat send --local -c UD -n 20", &datagram);
    if !rustix::process::geteuid().is_root() || !is_installed("unshare") {
        return skip("root", "a PID namespace of its own needs root and unshare");
    }
    let namespace = ["modify_qp on RC queue pair", "/proc shows the processes of another PID namespace"];
    failed("exec unshare -p -f \"$0\" lat send --local -n 20", &namespace);
}

#[test]
fn how_an_agent_ended_is_known_where_ends_of_children_are_ignored() {
    let scratch = Scratch::waiting();
    // Not every shell's `trap '' CHLD` ignores the signal.
    let script = "exec env --ignore-signal=CHLD \"$0\" lat send -n 20 --via \"sh -c 'exit 3'\"";
    let ended = finish(scratch.shell(script));
    assert_eq!(ended.status, Some(1), "{ended:?}");
    assert!(ended.stderr.contains("ended with exit status 3"), "{ended:?}");
}

/// Asserts that the run ends with status 1 and one sentence, and that its earlier points are
/// readable.
fn ends_with_what_fitted(scratch: &Scratch, command: std::process::Command, name: &str, why: &str) {
    let ended = finish(command);
    if ended.status == Some(77) {
        return skip("mount", "a tmpfs cannot be mounted here");
    }
    assert_eq!(ended.status, Some(1), "{ended:?}");
    // On a busy machine, a calibration may fail, which is reported, too.
    let others = ["the core-to-core latency was not measured", "points are missing: `rdmascope run --resume"];
    let is_said = |line: &&str| !others.iter().any(|other| line.contains(other));
    let said: Vec<_> = ended.stderr.lines().filter(is_said).collect();
    let [message] = said[..] else { panic!("{said:?}") };
    assert!(message.contains(why) && message.contains("cannot"), "{message}");
    let (run, points) = scratch.record(name);
    assert!(!points.is_empty(), "{ended:?}");
    assert!((points.len() as u64) < run.points_planned, "it did not end early");
    assert!(scratch.run(&["report", name, "--text"]).stdout.contains("#bytes"));
    scratch.assert_nothing_left();
}
