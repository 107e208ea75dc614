//! A running supervisor, seen from the process that has started it.

use std::os::fd::BorrowedFd;
use std::process::ChildStdin;
use std::time::Duration;

use measure::clock::Deadline;
use rustix::process::Pid;

use super::super::child::Process;
use super::environments::{announced, announcing};
use super::leavings::{ALONE, ASKED, Leavings};

/// A supervisor and its launch.
#[derive(Debug)]
pub(crate) struct Supervised {
    /// The token by which the processes of the launch are found.
    token: String,
    /// The process ID of the launcher, once the supervisor has announced it.
    launcher: Option<Pid>,
    process: Process,
    /// The standard input of the supervisor. Dropping it asks the supervisor to end.
    input: Option<ChildStdin>,
}

impl Supervised {
    pub(crate) fn new(token: String, process: Process, input: ChildStdin) -> Self {
        Self { token, launcher: None, process, input: Some(input) }
    }

    /// Returns the token by which the processes of the launch are found.
    pub(crate) fn token(&self) -> &str {
        &self.token
    }

    /// Returns whether a printed line announces the launcher, and keeps its process ID.
    pub(crate) fn announces(&mut self, line: &str) -> bool {
        let announced = announced(line, &self.token);
        self.launcher = self.launcher.or(announced);
        announced.is_some()
    }

    /// Removes the line that announces the launcher from `output`, wherever it is.
    pub(crate) fn take_announcement(&mut self, output: &mut String) {
        let Some(at) = output.find(&announcing(&self.token)) else { return };
        let end = output[at..].find('\n').map_or(output.len(), |end| at + end + 1);
        let line: String = output.drain(at..end).collect();
        self.announces(line.trim_end());
    }

    /// Returns a descriptor that is readable once the supervisor has ended; `None` before Linux
    /// 5.3.
    pub(crate) fn death(&self) -> Option<BorrowedFd<'_>> {
        self.process.death()
    }

    /// Whether the supervisor has ended.
    pub(crate) fn is_dead(&self) -> bool {
        self.process.is_dead()
    }

    /// Returns how the supervisor has ended, in words.
    pub(crate) fn end(&self) -> String {
        self.process.end(Deadline::after(Duration::ZERO))
    }

    /// Tells the supervisor to end the launcher and its descendants, and waits until it has ended.
    /// Returns whether the supervisor was killed instead. The caller then has to read its
    /// announcement, if it has not yet, and call [`Supervised::clear_up`].
    pub(crate) fn let_end(&mut self) -> bool {
        self.input = None;
        self.process.end(Deadline::after(SUPERVISED));
        self.process.was_killed()
    }

    /// Cleans up in the place of a killed supervisor. The kernel has sent SIGTERM to the launcher.
    pub(crate) fn clear_up(&self) {
        Leavings::of(self.token.clone()).remove(self.launcher, ASKED + ALONE);
    }
}

/// The time that a supervisor has to end.
const SUPERVISED: Duration = Duration::from_secs(8);
