//! The agent's end of its guard.

use std::io::{self, Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

use measure::clock::Deadline;
use rustix::event::{PollFd, PollFlags, poll};

use crate::pause::pause;
use crate::request::{Reply, Request};

/// A guard that runs. Dropping this lets it take everything back and end.
#[derive(Debug)]
pub(crate) struct Guardian {
    child: Child,
    /// The guard's sign that this process lives. No process that this one starts has it.
    input: Option<ChildStdin>,
    output: ChildStdout,
}

impl Guardian {
    /// Starts one, in a session of its own: what kills the agent's process group does not reach it.
    pub(crate) fn start(words: &[String]) -> io::Result<Self> {
        let (program, arguments) = words.split_first().ok_or(io::ErrorKind::InvalidInput)?;
        let mut command = Command::new(program);
        // Standard error is the coordinator's pipe, which must end with the agent.
        command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        // SAFETY: between fork and exec only setsid and signal are called, which are
        // async-signal-safe.
        unsafe { command.pre_exec(part) };
        let mut child = command.spawn()?;
        let input = child.stdin.take();
        let output = child.stdout.take().ok_or_else(|| io::Error::other("the guard has no output"))?;
        Ok(Self { child, input, output })
    }

    /// Its process.
    pub(crate) fn process(&self) -> u32 {
        self.child.id()
    }

    /// Its answer, which is there by the deadline or never. After an error it is of no more use.
    pub(crate) fn ask(&mut self, request: &Request, deadline: Deadline) -> io::Result<Reply> {
        let mut line = serde_json::to_vec(request)?;
        line.push(b'\n');
        let input = self.input.as_mut().ok_or(io::ErrorKind::BrokenPipe)?;
        input.write_all(&line)?;
        let mut reply = Vec::new();
        while !reply.ends_with(b"\n") {
            match poll(&mut [PollFd::new(&self.output, PollFlags::IN)], Some(&deadline.timespec())) {
                Ok(0) => {
                    return Err(io::Error::new(io::ErrorKind::TimedOut, "the guard gave no answer in time"));
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
        // It goes on without us: that is what it is for.
    }
}

/// In a session of its own, and deaf to what ends others: it ends when its agent does.
fn part() -> io::Result<()> {
    for signal in [libc::SIGHUP, libc::SIGINT, libc::SIGTERM] {
        // SAFETY: ignoring a signal installs no handler; it stays so across exec.
        unsafe { libc::signal(signal, libc::SIG_IGN) };
    }
    // SAFETY: setsid has no arguments. A child of fork leads no group, so that it cannot fail.
    unsafe { libc::setsid() };
    Ok(())
}

/// Two seconds, in which all but tuned is taken back.
const END_TRIES: u32 = 400;
const END_INTERVAL: Duration = Duration::from_millis(5);
