//! The agent's connection to its guard.

use std::io::{self, Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

use measure::clock::Deadline;
use rustix::event::{PollFd, PollFlags, poll};

use crate::pause::pause;
use crate::request::{Reply, Request};

/// A running guard. Dropping this makes the guard revert everything and end.
#[derive(Debug)]
pub(crate) struct Guardian {
    child: Child,
    /// The guard sees by this pipe that the agent lives. No child process inherits it.
    input: Option<ChildStdin>,
    output: ChildStdout,
}

impl Guardian {
    /// Starts a guard in a session of its own, so that signals to the agent's process group do not
    /// reach it.
    pub(crate) fn start(words: &[String]) -> io::Result<Self> {
        let (program, arguments) = words.split_first().ok_or(io::ErrorKind::InvalidInput)?;
        let mut command = Command::new(program);
        // Standard error is a pipe to the coordinator, which must end with the agent.
        command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        // SAFETY: between fork and exec only setsid and signal are called, which are
        // async-signal-safe.
        unsafe { command.pre_exec(part) };
        let mut child = command.spawn()?;
        let input = child.stdin.take();
        let output = child.stdout.take().ok_or_else(|| io::Error::other("the guard has no output"))?;
        Ok(Self { child, input, output })
    }

    /// The guard's process ID.
    pub(crate) fn process(&self) -> u32 {
        self.child.id()
    }

    /// Sends a request and returns the guard's answer. After an error or the deadline, the guard
    /// cannot be used any more.
    pub(crate) fn ask(&mut self, request: &Request, deadline: Deadline) -> io::Result<Reply> {
        let mut line = serde_json::to_vec(request)?;
        line.push(b'\n');
        let input = self.input.as_mut().ok_or(io::ErrorKind::BrokenPipe)?;
        input.write_all(&line)?;
        let mut reply = Vec::new();
        while !reply.ends_with(b"\n") {
            match poll(&mut [PollFd::new(&self.output, PollFlags::IN)], Some(&deadline.timespec())) {
                Ok(0) => {
                    return Err(io::Error::new(io::ErrorKind::TimedOut, "the guard did not answer in time"));
                }
                Err(error) if error != rustix::io::Errno::INTR => return Err(error.into()),
                Err(_) => continue,
                Ok(_) => {}
            }
            let mut bytes = [0; 4096];
            match self.output.read(&mut bytes)? {
                0 => return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the guard has ended")),
                count => reply.extend_from_slice(&bytes[..count]),
            }
        }
        Ok(serde_json::from_slice(&reply)?)
    }
}

impl Drop for Guardian {
    fn drop(&mut self) {
        self.input = None;
        for _ in 0..END_TRIES {
            if !matches!(self.child.try_wait(), Ok(None)) {
                return;
            }
            pause(END_INTERVAL);
        }
        // The guard goes on without the agent.
    }
}

/// Puts the guard into a session of its own and ignores signals: it ends when its agent ends.
fn part() -> io::Result<()> {
    for signal in [libc::SIGHUP, libc::SIGINT, libc::SIGTERM] {
        // SAFETY: ignoring a signal installs no handler; exec keeps the disposition.
        unsafe { libc::signal(signal, libc::SIG_IGN) };
    }
    // SAFETY: setsid has no arguments. A forked child leads no process group, so it cannot fail.
    unsafe { libc::setsid() };
    Ok(())
}

/// Two seconds, enough to revert everything except tuned.
const END_TRIES: u32 = 400;
const END_INTERVAL: Duration = Duration::from_millis(5);
