//! A server and its client, started as with perftest: what they print, how they find each other,
//! and how each ends when the other fails.

use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::Child;
use std::time::{Duration, Instant};

use measure::record::Status;
use rustix::process::Signal;

use crate::support::hands::Server;
use crate::support::processes::{agents, signal};
use crate::support::{Ended, Scratch, all_measured, collect, finish, until_measuring};

/// How long something may take on a busy machine that should happen at once.
const AT_ONCE: Duration = Duration::from_secs(10);
/// A key that no server has.
const NO_KEY: &str = "abcdefghijklmnopqrstuvwxyz";
/// Flags of a client that measures for several seconds, a point each second.
const LONG: [&str; 6] = ["-s", "2..4096", "-D", "1", "--out", "record"];

#[test]
fn the_command_that_the_server_prints_is_all_that_a_client_needs() {
    let scratch = Scratch::alone();
    let server = Server::start(&scratch, &["lat", "send"]);
    let banner = server.seen().join("\n");
    for words in
        ["server of lat send", "# rank 1: softdev0", "port Active, MTU 4096 B, GID ", "127.0.0.1, TCP port"]
    {
        assert!(banner.contains(words), "no {words:?} in {banner}");
    }
    assert!(
        banner.contains("\nWaiting for client to connect...\nrdmascope lat send 127.0.0.1 -p "),
        "{banner}"
    );
    let client = finish(server.client(&scratch, &["-s", "4..64", "-n", "500", "--out", "record"]));
    assert_eq!((client.status, client.stderr.as_str()), (Some(0), ""), "{client:?}");
    let (run, points) = scratch.record("record");
    assert!(points.len() == 5 && all_measured(&points), "{points:?}");
    // Rank 0 is the client, rank 1 the server. Here both are on this host, with a CPU each if there
    // are two.
    let cpus: Vec<_> = run.environments.iter().map(|environment| environment.pinned_cpus.clone()).collect();
    assert!(cpus.len() == 2 && (cpus[0].is_none() || cpus[0] != cpus[1]), "{cpus:?}");
    assert!(points.iter().all(|point| point.calibration.is_some()), "same host, same user");
    let key = server.key();
    let kept = fs::read_to_string(scratch.at("record/run.json")).unwrap();
    assert!(!kept.contains(&key) && kept.contains("\"--key\""), "the record keeps no key: {kept}");
    let ended = server.end();
    assert_eq!((ended.status, ended.stderr.as_str()), (Some(0), ""), "{ended:?}");
    assert!(ended.stdout.contains("\n5 points were measured for the client 127.0.0.1:"), "{ended:?}");
    scratch.assert_nothing_left();
}

#[test]
fn the_settings_of_the_client_count() {
    let scratch = Scratch::on_one_cpu();
    let given =
        ["bw", "send", "-s", "64", "-b", "-c", "UD", "--out", "here", "--cpus", "none", "-d", "softdev0"];
    let server = Server::start(&scratch, &given);
    let client = finish(server.client(&scratch, &["-s", "256", "-n", "200", "--out", "record"]));
    assert_eq!(client.status, Some(0), "{client:?}");
    let (run, points) = scratch.record("record");
    assert_eq!((&points[0].axes["size_bytes"], &points[0].axes["service"]), (&256.into(), &"RC".into()));
    assert_eq!(run.environments[1].pinned_cpus, None, "the server uses its own CPUs");
    let ended = server.end();
    assert_eq!(ended.status, Some(0), "{ended:?}");
    let told = "rdmascope: the client's settings apply; these options of this command have no effect: --size, \
                --bidirectional, --connection, --out\n";
    assert_eq!(ended.stderr, told);
    assert!(ended.stdout.contains("\n1 point was measured for the client ") && !scratch.at("here").exists());
}

#[test]
fn the_key_may_come_from_the_environment() {
    let scratch = Scratch::on_one_cpu();
    let server = Server::start(&scratch, &["lat", "send"]);
    let port = server.port().to_string();
    let mut client = scratch.program(["lat", "send", "127.0.0.1", "-p", &port, "-n", "50"]);
    let ended = finish({
        client.env("RDMASCOPE_KEY", server.key().to_uppercase());
        client
    });
    assert_eq!(ended.status, Some(0), "{ended:?}");
    assert_eq!(server.end().status, Some(0));
}

#[test]
fn a_client_waits_for_a_server_that_comes_later() {
    let scratch = Scratch::on_one_cpu();
    let port = free_port().to_string();
    let arguments = ["lat", "send", "127.0.0.1", "-p", &port, "--key", NO_KEY, "-n", "50"];
    let client = scratch.program(arguments).spawn().unwrap();
    std::thread::sleep(Duration::from_millis(500));
    let mut command = scratch.program(["lat", "send", "-p", &port]);
    command.env("RDMASCOPE_KEY", NO_KEY);
    let server = Server::of(command);
    let ended = collect(client);
    assert_eq!(ended.status, Some(0), "{ended:?}");
    assert_eq!(ended.stderr.lines().count(), 1, "said once: {ended:?}");
    let waiting =
        format!("rdmascope: waiting up to 30 s for the server 127.0.0.1:{port}: nothing listens on");
    assert!(ended.stderr.starts_with(&waiting), "{ended:?}");
    let ended = server.end();
    let given = "rdmascope: the key was given, not generated: use a key only once\n";
    assert_eq!((ended.status, ended.stderr.as_str()), (Some(0), given), "{ended:?}");
}

#[test]
fn a_server_listens_where_it_is_told_to_and_nowhere_else() {
    let scratch = Scratch::on_one_cpu();
    let server = Server::start(&scratch, &["lat", "send"]);
    assert!(TcpStream::connect(("127.0.0.2", server.port())).is_err(), "on one address of this host only");
    drop(server);
    let server = Server::start(&scratch, &["lat", "send", "--listen", "0.0.0.0"]);
    let name = rustix::system::uname().nodename().to_str().unwrap().to_owned();
    assert_eq!(server.words()[2], name, "any address will do, so it is the host's name");
    let port = server.port().to_string();
    let client = ["lat", "send", "127.0.0.2", "-p", &port, "--key", &server.key(), "-n", "50"];
    assert_eq!(scratch.run(&client).status, Some(0));
    assert_eq!(server.end().status, Some(0));
    if TcpListener::bind("[::1]:0").is_err() {
        return crate::support::skip("ipv6", "this host has no IPv6");
    }
    let server = Server::start(&scratch, &["lat", "send", "--listen", "::1"]);
    assert_eq!(server.words()[2], "::1");
    assert_eq!(finish(server.client(&scratch, &["-n", "50"])).status, Some(0));
    assert_eq!(server.end().status, Some(0));
}

#[test]
fn cpus_are_each_ends_own() {
    let scratch = Scratch::alone();
    let allowed = rustix::thread::sched_getaffinity(None).unwrap();
    let cpus: Vec<String> = (0..1024).filter(|cpu| allowed.is_set(*cpu)).map(|cpu| cpu.to_string()).collect();
    let [a, b, ..] = &cpus[..] else { return crate::support::skip("cpus", "there is only one CPU") };
    // The same two CPUs for both commands, and one CPU for each.
    for (server_cpus, client_cpus) in [(format!("{b},{a}"), format!("{b},{a}")), (a.clone(), b.clone())] {
        let server = Server::start(&scratch, &["lat", "send", "--cpus", &server_cpus]);
        let out = format!("record-{server_cpus}");
        let client = finish(server.client(&scratch, &["-n", "50", "--cpus", &client_cpus, "--out", &out]));
        assert_eq!(client.status, Some(0), "{client:?}");
        let pinned =
            scratch.record(&out).0.environments.into_iter().map(|e| e.pinned_cpus.unwrap()[0].to_string());
        assert_eq!(pinned.collect::<Vec<_>>(), [b.clone(), a.clone()]);
        assert_eq!(server.end().status, Some(0));
    }
}

#[test]
fn millions_of_samples_come_over_the_channel() {
    let scratch = Scratch::alone();
    let server = Server::start(&scratch, &["lat", "send"]);
    let client = finish(server.client(&scratch, &["-s", "8", "-n", "2000000", "--out", "record"]));
    assert_eq!(client.status, Some(0), "{client:?}");
    let (_, points) = scratch.record("record");
    for end in &points[0].ends {
        let path = scratch.at("record").join(end.samples.as_ref().unwrap());
        assert_eq!(fs::metadata(path).unwrap().len(), 16_000_000);
    }
    assert_eq!(server.end().status, Some(0));
}

#[test]
fn a_wrong_key_is_one_sentence_and_the_server_waits_on() {
    let scratch = Scratch::on_one_cpu();
    let server = Server::start(&scratch, &["lat", "send"]);
    let port = server.port().to_string();
    for _ in 0..5 {
        let start = Instant::now();
        let wrong = ["lat", "send", "127.0.0.1", "-p", &port, "--key", NO_KEY];
        let place = format!("the server 127.0.0.1:{port} cannot be used: it does not know this key");
        scratch.refused(&wrong, 1, &[&place, "copy the command that it printed"]);
        assert!(start.elapsed() < AT_ONCE, "it does not try again");
    }
    assert_eq!(finish(server.client(&scratch, &["-n", "50"])).status, Some(0));
    let ended = server.end();
    assert_eq!(ended.status, Some(0), "{ended:?}");
    let told = "rdmascope: the client at 127.0.0.1 was rejected: it has another key";
    assert_eq!(ended.stderr, format!("{told}\n{told}\n{told} (more are not reported)\n"));
}

#[test]
fn a_key_is_good_for_one_client() {
    let scratch = Scratch::on_one_cpu();
    let mut server = Server::start(&scratch, &["lat", "send"]);
    let first = server.client(&scratch, &["-D", "1"]).spawn().unwrap();
    server.wait_for("The client ");
    let second = finish(server.client(&scratch, &["--wait", "0"]));
    assert_eq!(second.status, Some(1), "{second:?}");
    assert!(second.stderr.contains("nothing listens on 127.0.0.1:"), "{second:?}");
    assert_eq!(collect(first).status, Some(0));
    assert_eq!(server.end().status, Some(0));
}

#[test]
fn another_version_is_told_from_a_wrong_key() {
    let scratch = Scratch::on_one_cpu();
    // A server of another version.
    let (port, _newer) = answer_with(b"rdmascope 9.9.9 protocol 999\n");
    let client = ["lat", "send", "127.0.0.1", "-p", &port.to_string(), "--key", NO_KEY];
    scratch.refused(
        &client,
        1,
        &["rdmascope 9.9.9 with protocol 999", "install the same version on both hosts"],
    );
    // A client of another version: the server sends its version and closes the connection.
    let server = Server::start(&scratch, &["lat", "send"]);
    let mut newer = TcpStream::connect(("127.0.0.1", server.port())).unwrap();
    newer.write_all(b"rdmascope 9.9.9\x1b[31m protocol 999\n").unwrap();
    let mut answer = String::new();
    newer.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("rdmascope ") && answer.ends_with(" protocol 3\n"), "{answer:?}");
    assert_eq!(finish(server.client(&scratch, &["-n", "50"])).status, Some(0));
    let ended = server.end();
    assert!(
        ended.stderr.contains("it is another version: rdmascope 9.9.9\\u{1b}[31m with protocol 999"),
        "{ended:?}"
    );
    assert!(!ended.stderr.contains('\u{1b}') && ended.stderr.lines().count() == 1, "{ended:?}");
}

#[test]
fn what_is_no_server_is_named_at_once() {
    let scratch = Scratch::new();
    let refused = |answer: &'static [u8], words: &[&str]| {
        let (port, _other) = answer_with(answer);
        let start = Instant::now();
        let client = ["lat", "send", "127.0.0.1", "-p", &port.to_string(), "--key", NO_KEY];
        scratch.refused(&client, 1, &[&["no server of rdmascope", "-p"][..], words].concat());
        assert!(start.elapsed() < AT_ONCE);
    };
    refused(b"SSH-2.0-OpenSSH_9.2p1\r\n", &["\"SSH-2.0-OpenSSH_9.2p1\""]);
    refused(b"HTTP/1.1 400 Bad", &["\"HTTP/1.1 400 Bad\""]);
    refused(b"\x1b[31mred\n", &["\\u{1b}[31mred"]);
}

#[test]
fn a_server_that_is_not_reached_is_given_up_with_what_was_found() {
    let scratch = Scratch::new();
    let given_up = |host: &str, port: u16, words: &[&str]| {
        let start = Instant::now();
        let client = ["lat", "send", host, "-p", &port.to_string(), "--key", NO_KEY, "--wait", "1"];
        let ended = scratch.run(&client);
        assert_eq!((ended.status, ended.stdout.as_str()), (Some(1), ""), "{ended:?}");
        assert!((1..10).contains(&start.elapsed().as_secs()), "{:?}", start.elapsed());
        // If the first attempt takes all of the time, there is no second one.
        let (waiting, error) = ended.stderr.trim_end().rsplit_once('\n').unwrap_or(("", &ended.stderr));
        assert!(
            ["", "rdmascope: waiting up to 1 s for"].contains(&&waiting[..waiting.len().min(32)]),
            "{waiting}"
        );
        assert!(!waiting.contains('\n'), "said once: {waiting}");
        for word in [&["cannot reach the server", "within 1 s"][..], words].concat() {
            assert!(error.contains(word), "no {word:?} in {error}");
        }
    };
    let closed = free_port();
    let refused =
        [&format!("nothing listens on 127.0.0.1:{closed}"), "Connection refused", "--listen", "firewall"];
    given_up("127.0.0.1", closed, &refused);
    // The kernel accepts, and nothing is sent: a stopped server, or another program.
    let mute = TcpListener::bind("127.0.0.1:0").unwrap();
    given_up(
        "127.0.0.1",
        mute.local_addr().unwrap().port(),
        &["does not answer like an rdmascope server", "-p"],
    );
    // Closes without a byte: the near side of a tunnel.
    let (port, _tunnel) = answer_with(b"");
    given_up("127.0.0.1", port, &["closes the connection at once", "tunnel"]);
    // Drops packets, as a firewall does: a full queue of connections.
    let (port, _full) = blackhole();
    given_up("127.0.0.1", port, &["does not answer", "firewall", &format!("TCP port {port}")]);
}

#[test]
fn a_host_that_does_not_exist_is_an_error_at_once() {
    let scratch = Scratch::new();
    let start = Instant::now();
    let client = ["lat", "send", "no-such-host.invalid", "--key", NO_KEY];
    scratch.refused(&client, 1, &["cannot find the host \"no-such-host.invalid\"", "check the name"]);
    // The resolver's own timeout.
    assert!(start.elapsed() < Duration::from_secs(25));
}

#[test]
fn a_server_ends_when_no_client_comes() {
    let scratch = Scratch::new();
    let ended = Server::start(&scratch, &["lat", "send", "--wait", "1"]).end();
    let told = "rdmascope: no client connected within 1 s: start it with the command above, or wait longer with --wait\n";
    assert_eq!((ended.status, ended.stderr.as_str()), (Some(1), told));
}

#[test]
fn a_port_that_is_taken_is_named() {
    let scratch = Scratch::new();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    let words = [&format!("cannot listen on 127.0.0.1:{port}"), "Address already in use", "-p"];
    scratch.refused(&["lat", "send", "-p", &port.to_string()], 1, &words);
}

#[test]
fn a_signal_ends_a_server_that_waits() {
    let scratch = Scratch::new();
    for (kind, name, status) in [(Signal::INT, "SIGINT", 130), (Signal::TERM, "SIGTERM", 143)] {
        let server = Server::start(&scratch, &["lat", "send"]);
        signal(server.pid(), kind);
        let ended = server.end();
        let told = format!("rdmascope: stopped by {name} before a client connected\n");
        assert_eq!((ended.status, ended.stderr), (Some(status), told));
    }
    scratch.assert_nothing_left();
}

#[test]
fn a_signal_ends_a_client_that_waits() {
    let scratch = Scratch::new();
    let arguments =
        ["lat", "send", "127.0.0.1", "-p", &free_port().to_string(), "--key", NO_KEY, "--out", "record"];
    let client = scratch.program(arguments).spawn().unwrap();
    std::thread::sleep(Duration::from_millis(500));
    signal(client.id().cast_signed(), Signal::INT);
    let ended = collect(client);
    assert_eq!(ended.status, Some(130), "{ended:?}");
    assert!(
        ended.stderr.ends_with("rdmascope: stopped by SIGINT: no point had ended, so there is no record\n"),
        "{ended:?}"
    );
    assert!(!scratch.at("record").exists());
}

/// Starts a server and a client, and waits until the third point is measured.
fn measuring(scratch: &Scratch) -> (Server, Child) {
    let mut server = Server::start(scratch, &["lat", "send"]);
    let client = server.client(scratch, &LONG).spawn().unwrap();
    server.wait_for("The client ");
    let lines = || fs::read_to_string(scratch.at("record/points.jsonl")).unwrap_or_default().lines().count();
    while lines() < 2 {
        std::thread::sleep(Duration::from_millis(20));
    }
    std::thread::sleep(Duration::from_millis(300));
    (server, client)
}

/// Returns the points of a client that did not finish: the number of measured points, and the error
/// of a point that failed, if there is one.
fn kept(scratch: &Scratch) -> (usize, Option<String>) {
    let (run, points) = scratch.record("record");
    assert!(run.points_planned == 12 && points.len() < 12 && points.len() >= 2, "{}", points.len());
    let failed: Vec<String> = points
        .iter()
        .filter_map(|point| match &point.status {
            Status::Failed { error } => Some(error.clone()),
            _ => None,
        })
        .collect();
    assert!(failed.len() <= 1, "{failed:?}");
    (points.len() - failed.len(), failed.into_iter().next())
}

/// Asserts that the server and the client end soon after `harm` to one of them.
fn both_end(scratch: &Scratch, harm: impl FnOnce(&Server, &Child)) -> (Ended, Ended) {
    let (server, client) = measuring(scratch);
    harm(&server, &client);
    let start = Instant::now();
    let ends = (server.end(), collect(client));
    assert!(start.elapsed() < AT_ONCE, "{:?}", start.elapsed());
    scratch.assert_nothing_left();
    ends
}

#[test]
fn a_signal_to_the_server_ends_both_ends_and_the_client_keeps_what_it_has() {
    for (kind, name, status) in [(Signal::INT, "SIGINT", 130), (Signal::TERM, "SIGTERM", 143)] {
        let scratch = Scratch::waiting();
        let (server, client) = both_end(&scratch, |server, _| signal(server.pid(), kind));
        assert_eq!((server.status, client.status), (Some(status), Some(1)), "{server:?} {client:?}");
        assert!(
            server.stderr.starts_with(&format!("rdmascope: stopped by {name} before the client 127.0.0.1:"))
        );
        assert!(server.stderr.ends_with(" had finished: 2 points had been measured for it\n"), "{server:?}");
        let (points, error) = kept(&scratch);
        let error = error.unwrap();
        assert!(points == 2 && error.contains("closed the connection while measuring point 2"), "{error}");
        assert!(error.contains(&format!("it last said \"stopped by {name}\"")), "{error}");
        let last = client.stderr.lines().last().unwrap();
        assert!(last.starts_with(&format!("rdmascope: {error}: the run ends here")), "{last}");
        assert!(
            last.contains("can only be started again by hand; the points that had ended are kept"),
            "{last}"
        );
        assert!(scratch.at("record/report.html").exists());
    }
}

#[test]
fn a_signal_to_the_client_ends_both_ends() {
    let scratch = Scratch::waiting();
    let (server, client) = both_end(&scratch, |_, client| signal(client.id().cast_signed(), Signal::INT));
    assert_eq!((server.status, client.status), (Some(1), Some(130)), "{server:?} {client:?}");
    assert_eq!(client.stderr, "rdmascope: stopped by SIGINT: the points that had ended are kept\n");
    assert_eq!(kept(&scratch), (3, None), "the third point keeps its messages until then");
    assert!(scratch.record("record").1[2].cut);
    assert!(server.stderr.contains(" closed the connection before it had finished: 3 points"), "{server:?}");
}

#[test]
fn a_server_that_is_killed_costs_the_rest_of_the_run() {
    let scratch = Scratch::waiting();
    let (server, client) = both_end(&scratch, |server, _| signal(server.pid(), Signal::KILL));
    assert_eq!((server.status, client.status), (None, Some(1)), "{server:?} {client:?}");
    let (points, error) = kept(&scratch);
    assert!(points == 2 && error.unwrap().starts_with("the server 127.0.0.1:"));
    assert!(client.stderr.contains("can only be started again by hand"), "{client:?}");
}

#[test]
fn a_server_that_is_stopped_is_not_waited_for_until_the_end_of_the_point() {
    is_given_up_when_stopped(&["lat", "tcp"]);
}

#[test]
fn neither_is_one_whose_messages_go_over_verbs() {
    is_given_up_when_stopped(&["lat", "send"]);
}

/// Stops a server in the middle of its point, and asserts that the client gives up.
fn is_given_up_when_stopped(benchmark: &[&str]) {
    let scratch = Scratch::waiting();
    let mut server = Server::start(&scratch, benchmark);
    let client = server.client(&scratch, &["-n", "100000000", "--out", "record"]).spawn().unwrap();
    server.wait_for("The client ");
    let client = until_measuring(client, &scratch.at("record"));
    // In the middle of the point.
    std::thread::sleep(Duration::from_secs(1));
    signal(server.pid(), Signal::STOP);
    let client = collect(client);
    signal(server.pid(), Signal::CONT);
    assert_eq!(client.status, Some(1), "{client:?}");
    let is_mute = |line: &str| {
        line.starts_with("rdmascope: the server 127.0.0.1:") && line.contains(" does not respond: ")
    };
    assert!(client.stderr.lines().any(is_mute), "{client:?}");
    let (_, points) = scratch.record("record");
    let Status::Failed { error } = &points[0].status else { panic!("{points:?}") };
    assert!(error.starts_with("rank 0: nothing came from the peer for 10."), "{error}");
    assert!(error.contains("its program has stopped"), "{error}");
    assert_eq!(server.end().status, Some(1));
    scratch.assert_nothing_left();
}

#[test]
fn a_client_that_is_killed_ends_its_server() {
    let scratch = Scratch::waiting();
    let (server, client) = both_end(&scratch, |_, client| signal(client.id().cast_signed(), Signal::KILL));
    assert_eq!((server.status, client.status), (Some(1), None), "{server:?} {client:?}");
    assert_eq!(server.stderr.lines().count(), 1, "{server:?}");
    assert!(
        server.stderr.contains("before it had finished: 2 points had been measured for it"),
        "{server:?}"
    );
    assert_eq!(kept(&scratch).0, 2);
}

#[test]
fn an_agent_of_the_client_that_dies_ends_the_run_for_there_is_one_server() {
    let scratch = Scratch::on_one_cpu();
    let (server, client) = both_end(&scratch, |_, _| {
        signal(agents(&scratch.token())[0].pid, Signal::KILL);
    });
    assert_eq!((server.status, client.status), (Some(1), Some(1)), "{server:?} {client:?}");
    let (points, error) = kept(&scratch);
    assert!(points == 2 && error.unwrap().contains("was killed by signal 9 while measuring point 2"));
    assert!(client.stderr.contains("the run ends here, because the server 127.0.0.1:"), "{client:?}");
}

/// A port on which nothing listens.
fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// Sends an answer to each connection and closes it, as long as the value lives.
fn answer_with(answer: &'static [u8]) -> (u16, TcpListener) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let accepting = listener.try_clone().unwrap();
    std::thread::spawn(move || {
        for mut stream in accepting.incoming().flatten() {
            // Reads what was sent, so that a reset does not discard the answer.
            let _ = stream.read(&mut [0; 64]);
            let _ = stream.write_all(answer);
        }
    });
    (port, listener)
}

/// Returns a port that does not refuse connections: its queue is full, so that the kernel drops
/// packets.
fn blackhole() -> (u16, Vec<TcpStream>) {
    use rustix::net::{AddressFamily, SocketType, bind, listen, socket};
    let socket = socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
    bind(&socket, &std::net::SocketAddr::from(([127, 0, 0, 1], 0))).unwrap();
    listen(&socket, 0).unwrap();
    let listener = TcpListener::from(socket);
    let address = listener.local_addr().unwrap();
    let mut streams = Vec::new();
    while let Ok(stream) = TcpStream::connect_timeout(&address, Duration::from_millis(300)) {
        streams.push(stream);
        assert!(streams.len() < 100, "the queue does not fill up");
    }
    // The listener must live as long as the connections in its queue.
    std::mem::forget(listener);
    (address.port(), streams)
}
