//! Strangers on the port of a server: they learn nothing and stop nothing, however many they are
//! and whatever they send. The real client is served meanwhile.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::support::hands::Server;
use crate::support::{Scratch, all_measured, finish};

/// How long something may take on a busy machine that should happen at once.
const AT_ONCE: Duration = Duration::from_secs(10);
/// A greeting that the server understands.
const GREETING: &[u8] = concat!("rdmascope ", env!("CARGO_PKG_VERSION"), " protocol 3\n").as_bytes();

/// Connects to the server, which may have ended.
fn knock(address: SocketAddr) -> Option<TcpStream> {
    let stream = TcpStream::connect_timeout(&address, Duration::from_secs(5)).ok()?;
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    Some(stream)
}

/// Returns what the server sends before it closes the connection.
fn answer(stream: &mut TcpStream) -> Vec<u8> {
    let mut bytes = Vec::new();
    let _ = stream.read_to_end(&mut bytes);
    bytes
}

fn address(server: &Server) -> SocketAddr {
    ([127, 0, 0, 1], server.port()).into()
}

/// Asserts that the real client is served at once.
fn client_is_served(server: &Server, scratch: &Scratch) {
    let start = Instant::now();
    let client = finish(server.client(scratch, &["-n", "100"]));
    assert_eq!(client.status, Some(0), "{client:?}");
    assert!(start.elapsed() < AT_ONCE, "{:?}", start.elapsed());
}

#[test]
fn whoever_does_not_greet_learns_nothing() {
    let scratch = Scratch::waiting();
    let server = Server::start(&scratch, &["lat", "send"]);
    let garbage =
        [&b"GET / HTTP/1.1\r\n\r\n"[..], &[0; 4096], &[0xff; 200], b"SSH-2.0-x\r\n", b"{\"hello\":1}\n"];
    for bytes in garbage {
        let mut stream = knock(address(&server)).unwrap();
        stream.write_all(bytes).unwrap();
        assert_eq!(answer(&mut stream), b"", "{bytes:?}");
    }
    // The server closes a silent connection within seconds, without an answer.
    let start = Instant::now();
    assert_eq!(answer(&mut knock(address(&server)).unwrap()), b"");
    assert!((3..15).contains(&start.elapsed().as_secs()), "{:?}", start.elapsed());
    client_is_served(&server, &scratch);
    let ended = server.end();
    assert_eq!((ended.status, ended.stderr.as_str()), (Some(0), ""), "nothing is printed for them");
}

#[test]
fn whoever_greets_without_the_key_learns_the_version_and_no_more() {
    let scratch = Scratch::on_one_cpu();
    let server = Server::start(&scratch, &["lat", "send"]);
    for bytes in [&[&[0, 48][..], &[7; 48]].concat()[..], &[0xff; 60], &[0, 0], &[0, 49, 1]] {
        let mut stream = knock(address(&server)).unwrap();
        stream.write_all(&[GREETING, bytes].concat()).unwrap();
        let _ = stream.shutdown(Shutdown::Write);
        let told = answer(&mut stream);
        assert!(told == GREETING || told == [GREETING, &[0, 0]].concat(), "{bytes:?}: {told:?}");
    }
    client_is_served(&server, &scratch);
    assert_eq!(server.end().status, Some(0));
}

#[test]
fn a_crowd_that_stays_does_not_keep_the_client_out() {
    let scratch = Scratch::on_one_cpu();
    let server = Server::start(&scratch, &["lat", "send"]);
    // Five times as many as the server serves at a time: silent, and in the middle of a handshake.
    let mut crowd = Vec::new();
    for number in 0..320 {
        let mut stream = knock(address(&server)).unwrap();
        if number % 2 == 0 {
            let _ = stream.write_all(&GREETING[..number % GREETING.len()]);
        } else if number % 4 == 1 {
            let _ = stream.write_all(GREETING);
        }
        crowd.push(stream);
    }
    client_is_served(&server, &scratch);
    let ended = server.end();
    assert_eq!((ended.status, ended.stderr.as_str()), (Some(0), ""));
}

/// Strangers of every kind that keep connecting until they are told to stop.
struct Crowd {
    stop: Arc<AtomicBool>,
    knocks: Arc<AtomicU64>,
    threads: Vec<JoinHandle<()>>,
}

impl Crowd {
    fn gather(address: SocketAddr) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let knocks = Arc::new(AtomicU64::new(0));
        let visit = |kind: usize| {
            let stop = Arc::clone(&stop);
            let knocks = Arc::clone(&knocks);
            std::thread::spawn(move || {
                let mut kept = Vec::new();
                while !stop.load(Ordering::Relaxed) {
                    if let Some(mut stream) = knock(address) {
                        knocks.fetch_add(1, Ordering::Relaxed);
                        let _ = match kind {
                            0 => Ok(()),
                            1 => stream.write_all(b"GET / HTTP/1.0\r\n\r\n"),
                            2 => stream.write_all(&[GREETING, &[0, 48], &[9; 48]].concat()),
                            _ => stream.write_all(GREETING),
                        };
                        if kind == 3 && kept.len() < 100 {
                            kept.push(stream);
                        }
                    }
                    std::thread::sleep(Duration::from_millis(5));
                }
            })
        };
        let threads = (0..4).map(visit).collect();
        Self { stop, knocks, threads }
    }

    fn go(self) -> u64 {
        self.stop.store(true, Ordering::Relaxed);
        self.threads.into_iter().for_each(|thread| thread.join().unwrap());
        self.knocks.load(Ordering::Relaxed)
    }
}

#[test]
fn strangers_disturb_neither_the_wait_nor_the_measurement() {
    let scratch = Scratch::on_one_cpu();
    let server = Server::start(&scratch, &["lat", "send"]);
    let crowd = Crowd::gather(address(&server));
    std::thread::sleep(Duration::from_secs(1));
    let before = crowd.knocks.load(Ordering::Relaxed);
    assert!(before > 50, "there is a crowd: {before}");
    let client = finish(server.client(&scratch, &["-s", "2..64", "-D", "0.3", "--out", "record"]));
    assert_eq!(client.status, Some(0), "{client:?}");
    // On a busy machine, the client may have to wait for the crowd, which it reports.
    let mut said = client.stderr.lines();
    assert!(said.all(|line| line.starts_with("rdmascope: waiting up to 30 s for the server")), "{client:?}");
    let (_, points) = scratch.record("record");
    assert!(points.len() == 6 && all_measured(&points), "{points:?}");
    let ended = server.end();
    crowd.go();
    assert_eq!(ended.status, Some(0), "{ended:?}");
    let told = "rdmascope: the client at 127.0.0.1 was rejected: it has another key";
    assert!(
        ended.stderr.lines().count() <= 3 && ended.stderr.lines().all(|line| line.starts_with(told)),
        "{ended:?}"
    );
}

#[test]
fn nothing_listens_any_more_once_the_client_is_there() {
    let scratch = Scratch::on_one_cpu();
    let mut server = Server::start(&scratch, &["lat", "send"]);
    let early = knock(address(&server)).unwrap();
    let client = server.client(&scratch, &["-D", "2"]).spawn().unwrap();
    server.wait_for("The client ");
    assert!(knock(address(&server)).is_none(), "during the measurement there is no port to knock on");
    assert_eq!(answer(&mut { early }), b"", "the connections of the strangers are closed");
    assert_eq!(crate::support::collect(client).status, Some(0));
    assert_eq!(server.end().status, Some(0));
}
