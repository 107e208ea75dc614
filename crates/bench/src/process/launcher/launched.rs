//! A running launcher: the lines that it prints, and how it ends.

use std::os::fd::OwnedFd;

use measure::clock::Deadline;
use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;

use super::super::child::{Process, Streams};
use super::super::frame::quotable;
use super::super::wait::wait;
use super::supervised::Supervised;

/// A running launcher and its ranks. Dropping it ends them.
#[derive(Debug)]
pub(super) struct Launched {
    /// The name that the user gave.
    pub(super) name: String,
    supervised: Supervised,
    /// Its standard output and standard error; absent once they have ended.
    outputs: [Option<OwnedFd>; 2],
    /// The printed bytes that are not split into lines yet.
    unread: Vec<u8>,
    /// The first line that it printed: later lines only explain it.
    first_line: Option<String>,
    /// The first signal that it reported: later ones are consequences, such as those that end all
    /// ranks.
    first_signal: Option<u32>,
    line: Vec<u8>,
}

impl Launched {
    pub(super) fn new(name: String, token: String, process: Process, streams: Streams) -> Self {
        let Streams { input, output, errors } = streams;
        Self {
            name,
            supervised: Supervised::new(token, process, input),
            outputs: [Some(output.into()), Some(errors.into())],
            unread: Vec::new(),
            first_line: None,
            first_signal: None,
            line: Vec::new(),
        }
    }

    /// Returns the descriptors to wait for.
    pub(super) fn interest(&self) -> Vec<PollFd<'_>> {
        let both = self.outputs.iter().flatten().map(|output| PollFd::new(output, PollFlags::IN));
        let death = self.supervised.death().map(|death| PollFd::from_borrowed_fd(death, PollFlags::IN));
        // A dead launcher would be ready at every wait.
        if self.supervised.is_dead() { Vec::new() } else { both.chain(death).collect() }
    }

    /// Returns copies of its outputs, to wait for.
    pub(super) fn ears(&self) -> [Option<OwnedFd>; 2] {
        self.outputs.each_ref().map(|output| output.as_ref()?.try_clone().ok())
    }

    /// Returns a descriptor that is readable once the launcher has ended; `None` before Linux 5.3.
    pub(super) fn death(&self) -> Option<OwnedFd> {
        self.supervised.death()?.try_clone_to_owned().ok()
    }

    /// Returns, for each output, whether it is still open.
    pub(super) fn speaks(&self) -> [bool; 2] {
        self.outputs.each_ref().map(Option::is_some)
    }

    /// Reads the outputs.
    pub(super) fn take_in(&mut self) {
        let mut bytes = [0; 16 << 10];
        for slot in &mut self.outputs {
            while let Some(output) = slot {
                match rustix::io::read(&*output, &mut bytes) {
                    Ok(count @ 1..) => self.unread.extend_from_slice(&bytes[..count]),
                    Err(Errno::AGAIN | Errno::INTR) => break,
                    _ => *slot = None,
                }
            }
        }
    }

    /// Returns the whole lines that were not returned before. Lines without a letter or digit are
    /// left out.
    pub(super) fn lines(&mut self) -> Vec<String> {
        let mut lines = Vec::new();
        for byte in std::mem::take(&mut self.unread) {
            if byte != b'\n' && self.line.len() < LINE_BYTES_MAX {
                self.line.push(byte);
                continue;
            }
            let line = std::mem::take(&mut self.line);
            let text = String::from_utf8_lossy(&line).replace(|c: char| c.is_control() && c != '\t', "");
            let text = text.trim_end().to_owned();
            if self.supervised.announces(&text) {
                continue;
            }
            if text.chars().any(char::is_alphanumeric) {
                self.first_signal = self.first_signal.or_else(|| signal(&text));
                self.first_line.get_or_insert_with(|| quotable(text.as_bytes()));
                lines.push(text);
            }
        }
        lines
    }

    /// Returns the signal that ended a rank, if the launcher reports it before the deadline.
    pub(super) fn signal(&mut self, deadline: Deadline) -> Option<u32> {
        self.take_in();
        let mut kept = self.lines();
        while self.first_signal.is_none() && !self.has_ended() && !deadline.is_over() {
            if wait(self.interest(), deadline, None).is_err() {
                break;
            }
            self.take_in();
            kept.extend(self.lines());
        }
        // The lines are returned later, as all others.
        self.unread = kept.into_iter().flat_map(|line| (line + "\n").into_bytes()).collect();
        self.first_signal
    }

    /// Returns how the launcher has ended, in words.
    pub(super) fn end(&self) -> String {
        self.supervised.end()
    }

    /// Whether the launcher has ended.
    pub(super) fn has_ended(&self) -> bool {
        self.supervised.is_dead()
    }

    /// Returns the first line of the launcher, to follow the error of a rank.
    pub(super) fn quoted(&self) -> String {
        let name = &self.name;
        self.first_line.as_ref().map_or_else(String::new, |line| format!(" ({name} said {line})"))
    }

    /// Returns the first line of the launcher, for the end of an error.
    pub(super) fn said(&self) -> String {
        self.first_line.as_ref().map_or_else(String::new, |line| format!("; it said {line}"))
    }
}

impl Drop for Launched {
    /// Closes the input of the supervisor, which then ends the launcher and its ranks.
    fn drop(&mut self) {
        if self.supervised.let_end() {
            // The line with the launcher's process ID may not have been read yet.
            self.take_in();
            drop(self.lines());
            self.supervised.clear_up();
        }
    }
}

/// Returns the signal in a line of a launcher: "exited on signal 9 (Killed)" of Open MPI,
/// "KILLED BY SIGNAL: 9" of MPICH, "Killed" of Slurm.
fn signal(line: &str) -> Option<u32> {
    let after = |words: &str| {
        let rest = line.split_once(words)?.1.trim_start();
        let digits = rest.split(|c: char| !c.is_ascii_digit()).next()?;
        digits.parse().ok().filter(|signal| (1..=64).contains(signal))
    };
    after("on signal").or_else(|| after("BY SIGNAL:")).or_else(|| of_slurm(line))
}

/// Returns the signal in a line of srun such as "srun: error: n1: task 1: Killed". The line has the
/// signal's name (`strsignal` of libc), and may have more words after it, such as "(core dumped)".
fn of_slurm(line: &str) -> Option<u32> {
    let task = line.split_once("error: ")?.1.split_once(": task")?.1;
    let end = task.split_once(": ")?.1;
    SIGNALS.iter().find(|(name, _)| end.starts_with(name)).map(|(_, number)| *number as u32)
}

/// The names of signals that end ranks.
const SIGNALS: [(&str, i32); 7] = [
    ("Killed", libc::SIGKILL),
    ("Terminated", libc::SIGTERM),
    ("Segmentation fault", libc::SIGSEGV),
    ("Aborted", libc::SIGABRT),
    ("Bus error", libc::SIGBUS),
    ("Illegal instruction", libc::SIGILL),
    ("Floating point exception", libc::SIGFPE),
];

/// The longest line that is not split, in bytes.
const LINE_BYTES_MAX: usize = 4096;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_signal_of_a_rank_is_read_from_what_launchers_say() {
        for (line, number) in [
            (
                "mpirun noticed that process rank 1 with PID 0 on node vm exited on signal 9 (Killed).",
                Some(9),
            ),
            ("=   KILLED BY SIGNAL: 11", Some(11)),
            ("srun: error: n1: task 1: Killed", Some(9)),
            ("srun: error: n1: tasks 0-1: Segmentation fault (core dumped)", Some(11)),
            ("srun: error: n1: tasks 0-1: Exited with exit code 1", None),
            ("There are not enough slots available", None),
            ("exited on signal (Killed)", None),
        ] {
            assert_eq!(signal(line), number, "{line}");
        }
    }
}
