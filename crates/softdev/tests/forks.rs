//! A process forked from one that has opened the device opens it, too. The child does not keep its
//! parent's name, by which peers tell whether the parent is alive.

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use conformance::runner::{Trial, run};
use softdev::PROVIDER;
use verbs::devices;

/// Set in the process that forks.
const FORKS: &str = "RDMASCOPE_SOFTDEV_FORKS";
/// Longer than anything here takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(30);

fn main() {
    if std::env::var_os(FORKS).is_some() {
        return fork();
    }
    let name = "a_child_keeps_nothing_of_its_parent_alive".to_owned();
    run(&[Trial { name, skipped: None, run: Box::new(a_child_keeps_nothing_of_its_parent_alive) }]);
}

/// Opens the device, as does a child of this process; then both wait. The child ends when its
/// standard input closes.
fn fork() {
    let opened = || devices(&PROVIDER).unwrap().remove(0).open().unwrap();
    let own = opened();
    // SAFETY: this process has no other thread.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let also_own = opened();
        println!("ready");
        let _ = std::io::stdin().lines().next();
        drop(also_own);
    } else {
        let _ = std::io::stdin().lines().next();
    }
    drop(own);
}

/// Returns the names of softdev's processes.
fn names() -> BTreeSet<String> {
    let list = fs::read_to_string("/proc/net/unix").unwrap();
    let names = list.lines().filter_map(|line| line.split_once("@rdmascope-softdev-"));
    names.map(|(_, name)| name.to_owned()).collect()
}

fn a_child_keeps_nothing_of_its_parent_alive() {
    let before = names();
    let mut command = Command::new(std::env::current_exe().unwrap());
    let mut parent = command.env(FORKS, "1").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut said = String::new();
    BufReader::new(parent.stdout.take().unwrap()).read_line(&mut said).unwrap();
    assert_eq!(said, "ready\n");
    // Other tests may start and end meanwhile.
    let both: BTreeSet<String> = names().difference(&before).cloned().collect();
    let left = || both.intersection(&names()).count();
    assert!(left() >= 2, "each has a name: {both:?}");
    let input = parent.stdin.take();
    parent.kill().unwrap();
    parent.wait().unwrap();
    let end = Instant::now() + PATIENCE;
    while left() > 1 && Instant::now() < end {
        sleep(Duration::from_millis(10));
    }
    assert_eq!(left(), 1, "the parent's name goes with it, the child's stays");
    drop(input);
    while left() > 0 && Instant::now() < end {
        sleep(Duration::from_millis(10));
    }
    assert_eq!(left(), 0, "the child's name goes with it");
}
