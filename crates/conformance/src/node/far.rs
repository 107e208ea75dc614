//! Far nodes: processes that execute commands from their standard input and answer on their
//! standard output.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::process::{Pid, Signal, kill_process};

use crate::program::this_program;
use crate::rig::{Rig, op};
use crate::subject::Subject;

/// A process that is a far node. It ends when it is dropped.
pub(super) struct Far {
    child: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
    /// The subject for which the process is kept after a case.
    kept_for: Option<String>,
}

/// The first argument of a far node's process.
const PEER: &str = "--peer";

/// Idle processes: starting one takes longer than most cases.
static IDLE: Mutex<Vec<Far>> = Mutex::new(Vec::new());

/// The processes of all far nodes.
static STARTED: Mutex<Vec<u32>> = Mutex::new(Vec::new());

impl Far {
    /// Takes an idle process, or starts one that will be kept.
    pub(super) fn lasting(subject: &Subject) -> Self {
        let kept_for = Some(subject.to_string());
        let mut idle = locked(&IDLE);
        if let Some(found) = idle.iter().position(|far| far.kept_for == kept_for) {
            return idle.swap_remove(found);
        }
        let mut made = Self::again(subject);
        made.kept_for = kept_for;
        made
    }

    /// Starts this program again.
    pub(super) fn again(subject: &Subject) -> Self {
        Self::start(this_program(), subject)
    }

    pub(super) fn start(mut command: Command, subject: &Subject) -> Self {
        command.args([PEER.to_owned(), subject.to_string()]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("the program starts again");
        locked(&STARTED).push(child.id());
        let to = child.stdin.take().expect("piped");
        let from = child.stdout.take().expect("piped");
        Self { child, to, from: BufReader::new(from), kept_for: None }
    }

    /// Sends a command.
    #[track_caller]
    pub(super) fn tell<'a>(&mut self, words: impl Iterator<Item = &'a u64>) {
        writeln!(self.to, "{}", row(words)).expect("the far node reads");
    }

    /// Reads the answer.
    #[track_caller]
    pub(super) fn hear(&mut self) -> Vec<u64> {
        let mut line = String::new();
        self.from.read_line(&mut line).expect("the far node answers");
        let words: Vec<u64> = parse(&line);
        assert!(!words.is_empty(), "the far node has ended");
        words
    }

    pub(super) fn kill(&mut self) {
        self.child.kill().expect("the far node can be killed");
        self.child.wait().expect("the far node has ended");
    }

    /// The node has been closed: its process is kept if it was started for that.
    pub(super) fn closed(self) {
        if self.kept_for.is_some() {
            locked(&IDLE).push(self);
        }
    }
}

impl Drop for Far {
    fn drop(&mut self) {
        locked(&STARTED).retain(|id| *id != self.child.id());
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Kills all far nodes, for a program that cannot wait for them.
pub(crate) fn abandon() {
    for id in locked(&STARTED).drain(..) {
        let id = Pid::from_raw(id as i32).expect("a process has a number");
        let _ = kill_process(id, Signal::KILL);
    }
}

/// The subject of this process if it is a far node.
pub fn peer() -> Option<String> {
    let mut arguments = std::env::args().skip(1);
    (arguments.next()? == PEER).then(|| arguments.next().unwrap_or_default())
}

/// Executes the commands of a far node until its input ends. After a close, the next command opens
/// the device again.
pub fn serve(subject: &Subject) {
    let mut rig: Option<Rig> = None;
    let mut out = std::io::stdout().lock();
    for line in std::io::stdin().lock().lines() {
        let Ok(line) = line else { return };
        let command = parse(&line);
        let answer = rig.get_or_insert_with(|| Rig::open(subject)).execute(&command);
        if command[0] == op::CLOSE {
            rig = None;
        }
        if writeln!(out, "{}", row(answer.iter())).and_then(|()| out.flush()).is_err() {
            return;
        }
    }
}

fn row<'a>(words: impl Iterator<Item = &'a u64>) -> String {
    words.map(u64::to_string).collect::<Vec<_>>().join(" ")
}

fn parse(line: &str) -> Vec<u64> {
    line.split_whitespace().map(|word| word.parse().expect("words are integers")).collect()
}

/// Locks a list. A panic of a case does not damage it.
fn locked<T>(list: &Mutex<T>) -> MutexGuard<'_, T> {
    list.lock().unwrap_or_else(PoisonError::into_inner)
}
