//! A supervisor that runs, as whoever has started it sees it.

use std::os::fd::BorrowedFd;
use std::process::ChildStdin;
use std::time::Duration;

use measure::clock::Deadline;
use rustix::process::Pid;

use super::super::child::Process;
use super::environments::{announced, announcing};
use super::leavings::{ALONE, ASKED, Leavings};

/// A supervisor and what it supervises.
#[derive(Debug)]
pub(crate) struct Supervised {
    /// Token by which the processes of the launch are found.
    token: String,
    /// ID of the launcher's own process, once the supervisor has announced it.
    launcher: Option<Pid>,
    process: Process,
    /// Absent once the supervisor is to end.
    input: Option<ChildStdin>,
}

impl Supervised {
    pub(crate) fn new(token: String, process: Process, input: ChildStdin) -> Self {
        Self { token, launcher: None, process, input: Some(input) }
    }

    /// Token by which the processes of the launch are found.
    pub(crate) fn token(&self) -> &str {
        &self.token
    }

    /// Whether a line that it printed announces its launcher, which is then known.
    pub(crate) fn announces(&mut self, line: &str) -> bool {
        let announced = announced(line, &self.token);
        self.launcher = self.launcher.or(announced);
        announced.is_some()
    }

    /// Takes the line that announces the launcher out of what was printed, wherever it stands in
    /// that.
    pub(crate) fn take_announcement(&mut self, output: &mut String) {
        let Some(at) = output.find(&announcing(&self.token)) else { return };
        let end = output[at..].find('\n').map_or(output.len(), |end| at + end + 1);
        let line: String = output.drain(at..end).collect();
        self.announces(line.trim_end());
    }

    /// Readable once it has ended; absent where the kernel has no such thing.
    pub(crate) fn death(&self) -> Option<BorrowedFd<'_>> {
        self.process.death()
    }

    /// Whether it has ended.
    pub(crate) fn is_dead(&self) -> bool {
        self.process.is_dead()
    }

    /// How it has ended.
    pub(crate) fn end(&self) -> String {
        self.process.end(Deadline::after(Duration::ZERO))
    }

    /// Tells it to end the launcher and what that has started, and waits until it has. If it was
    /// killed instead, what it announced is to be read, and then [`Supervised::clear_up`] called.
    pub(crate) fn let_end(&mut self) -> bool {
        self.input = None;
        self.process.end(Deadline::after(SUPERVISED));
        self.process.was_killed()
    }

    /// Clears up in place of the supervisor, which was killed. The kernel has asked the launcher to
    /// end.
    pub(crate) fn clear_up(&self) {
        Leavings::of(self.token.clone()).remove(self.launcher, ASKED + ALONE);
    }
}

/// How long a supervisor may take for all that it does.
const SUPERVISED: Duration = Duration::from_secs(8);
