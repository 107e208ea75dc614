//! Two programs of librdmacm on softdev, one of which is killed at any moment: its peer learns of
//! it, and its port is free again.

use std::fs::{self, File};
use std::path::PathBuf;
use std::process::Child;
use std::sync::LazyLock;
use std::time::{Duration, Instant};

use rustix::process::{Signal, geteuid};

use crate::support::moments::Moments;
use crate::support::processes::signal;
use crate::support::{Scratch, is_installed, skip};

/// Number of kills. `cargo xtask ci --full` sets more; another seed gives other moments.
const KILLS: usize = 40;
const KILLS_VARIABLE: &str = "RDMASCOPE_KILLS";
const SEED_VARIABLE: &str = "RDMASCOPE_KILLS_SEED";
/// Moments are between the start of the client and some time after it has connected: within so many
/// times the time that its server took to listen, and at least [`RUN`].
const STARTS: u32 = 5;
const RUN: Duration = Duration::from_millis(120);
/// How long a peer or a name may stay that has to go. A process that has lost its peer learns of it
/// at once; the rest is for a machine with other work.
const GONE: Duration = Duration::from_secs(20);
/// How long a program may take to end after it has learned of it.
const ENDS: Duration = Duration::from_secs(2);
/// What rping prints for an event by which it learns that its connection has ended. It may hang
/// after that, on adapters, too: if its main thread still waits for the connection, it waits for a
/// completion or an event that never comes.
const TOLD: [&str; 2] = ["DISCONNECT EVENT", "cma event "];
/// One port for all pairs, because no pair may leave anything that disturbs the next. Other tests
/// use other ports.
static PORT: LazyLock<String> = LazyLock::new(|| (20_000 + std::process::id() % 10_000).to_string());

/// Two programs with their arguments, without the port.
struct Pair {
    program: &'static str,
    server: &'static [&'static str],
    client: &'static [&'static str],
}

/// Pings until it is killed.
const PINGS: Pair =
    Pair { program: "rping", server: &["-s", "-a", HERE, "-p"], client: &["-c", "-a", HERE, "-p"] };
/// Connects and disconnects, and sends nothing in between.
const CONNECTS: Pair = Pair {
    program: "ucmatose",
    server: &["-c", "20", "-C", "0", "-p"],
    client: &["-c", "20", "-C", "0", "-s", HERE, "-p"],
};
const HERE: &str = "127.0.0.1";

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Victim {
    Server,
    Client,
}

/// A program of a test, which does not outlive the test, and the file of its output.
struct Running {
    child: Child,
    said: PathBuf,
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Running {
    fn start(scratch: &Scratch, program: &str, who: &str, arguments: &[&str]) -> Self {
        let said = scratch.at(who);
        let out = File::create(&said).unwrap();
        let words = [&["exec", program][..], arguments, &[PORT.as_str()]].concat();
        Self { child: scratch.program(words).stderr(out).spawn().unwrap(), said }
    }

    fn kill(&mut self) {
        signal(self.child.id().cast_signed(), Signal::KILL);
        self.child.wait().unwrap();
    }

    fn ends_within(&mut self, patience: Duration) -> bool {
        is_so_within(patience, || self.child.try_wait().unwrap().is_some())
    }

    /// Whether the program has printed that its connection has ended.
    fn was_told(&self) -> bool {
        let said = fs::read_to_string(&self.said).unwrap();
        TOLD.iter().any(|told| said.contains(told))
    }

    /// Returns what becomes of a program whose peer was killed; `None` if it does not learn of it.
    fn end(&mut self) -> Option<&'static str> {
        let is_over = |program: &mut Self| program.ends_within(Duration::ZERO) || program.was_told();
        if !is_so_within(GONE, || is_over(self)) {
            return None;
        }
        Some(if self.ends_within(ENDS) { "ended" } else { "told, and went on by itself" })
    }
}

fn is_so_within(patience: Duration, mut is_so: impl FnMut() -> bool) -> bool {
    let start = Instant::now();
    while !is_so() {
        if start.elapsed() > patience {
            return false;
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    true
}

/// Returns the names that show that a process has the port.
fn names() -> Vec<String> {
    let prefix = format!("@rdmascope-cm-1/{}/", geteuid().as_raw());
    let list = fs::read_to_string("/proc/net/unix").unwrap();
    let of = |line: &str| Some(line.split_once(&prefix)?.1.to_owned());
    list.lines().filter_map(of).filter(|name| name.split('/').nth(2) == Some(&**PORT)).collect()
}

fn listens() -> bool {
    names().iter().any(|name| name.starts_with("listen/"))
}

/// Starts a pair, kills one of the two after a time, and returns what becomes of the other.
fn kill(scratch: &Scratch, pair: &Pair, victim: Victim, moments: &mut Moments) -> &'static str {
    let start = Instant::now();
    let mut server = Running::start(scratch, pair.program, "server", pair.server);
    assert!(is_so_within(GONE, listens), "{}: the server cannot listen: {:?}", pair.program, names());
    let moment = moments.next(RUN.max(start.elapsed() * STARTS));
    let what = format!("{} {victim:?} after {moment:?}", pair.program);
    let mut client = Running::start(scratch, pair.program, "client", pair.client);
    std::thread::sleep(moment);
    let outcome = match victim {
        Victim::Server => {
            server.kill();
            client.end().unwrap_or_else(|| panic!("{what}: the client goes on without a server"))
        }
        Victim::Client => {
            client.kill();
            if server.ends_within(Duration::from_millis(300)) || server.was_told() {
                server.end().expect("it has ended or was told")
            } else {
                // The server has not met the client, or is slow to notice: it can serve the next
                // client.
                let arguments = [&["-C", "1"], pair.client].concat();
                let mut next = Running::start(scratch, pair.program, "next", &arguments);
                let is_over = || next.ends_within(Duration::ZERO) || server.was_told();
                assert!(is_so_within(GONE, is_over), "{what}: the next client hangs");
                assert!(server.end().is_some(), "{what}: the server goes on without a client");
                "next client served"
            }
        }
    };
    drop((server, client));
    assert!(is_so_within(GONE, || names().is_empty()), "{what}: left {:?}", names());
    outcome
}

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok()?.parse().ok()
}

#[test]
fn who_is_killed_frees_its_port_and_disconnects_its_peers() {
    if !is_installed("rping") || !is_installed("ucmatose") {
        return skip("librdmacm", "there is no rping and no ucmatose (Debian: rdmacm-utils)");
    }
    let scratch = Scratch::alone();
    let kills = number(KILLS_VARIABLE).map_or(KILLS, |kills| kills as usize);
    let seed = number(SEED_VARIABLE).unwrap_or(0x3C6E_F372_FE94_F82B);
    eprintln!("connections: {kills} kills, seed {seed}");
    let mut moments = Moments(seed);
    let cases = [(&PINGS, Victim::Server), (&PINGS, Victim::Client), (&CONNECTS, Victim::Server)];
    let mut outcomes = std::collections::BTreeMap::new();
    for (pair, victim) in cases.into_iter().cycle().take(kills) {
        let outcome = kill(&scratch, pair, victim, &mut moments);
        *outcomes.entry(format!("{victim:?} killed: {outcome}")).or_insert(0) += 1;
    }
    eprintln!("connections: {outcomes:?}");
    let are_spread = outcomes.keys().any(|key| key.starts_with("Client") && !key.ends_with("served"));
    assert!(are_spread || kills < KILLS, "no client met its server before it was killed: {outcomes:?}");
    scratch.assert_nothing_left();
}
