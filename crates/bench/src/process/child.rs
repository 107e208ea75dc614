//! An agent's process: started in a process group of its own, killed with all of it, and always
//! reaped.
//!
//! # Invariants
//!
//! * An agent does not outlive its coordinator, and a coordinator leaves no agent behind, however
//!   either ends.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

use measure::clock::Deadline;
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, WaitIdStatus, kill_process_group, pidfd_open, waitid,
};

/// A running process and what is left to do about it. Dropping it kills and reaps.
#[derive(Debug)]
pub(crate) struct Process {
    child: Child,
    reaped: bool,
    /// Readable once it has ended, even if something that it started holds its streams open.
    death: Option<OwnedFd>,
}

/// Our ends of its standard streams, non-blocking.
#[derive(Debug)]
pub(crate) struct Streams {
    pub(crate) input: ChildStdin,
    pub(crate) output: ChildStdout,
    pub(crate) errors: ChildStderr,
}

impl Process {
    /// Starts a program that dies with this process.
    pub(crate) fn start(words: &[String]) -> io::Result<(Self, Streams)> {
        Self::spawn(words, &[], true)
    }

    /// Starts a program that outlives this process, to clear up after it. It has these variables in
    /// its environment, beside those of this process.
    pub(crate) fn start_guard(words: &[String], variables: &[(&str, String)]) -> io::Result<(Self, Streams)> {
        Self::spawn(words, variables, false)
    }

    fn spawn(
        words: &[String],
        variables: &[(&str, String)],
        dies_with_us: bool,
    ) -> io::Result<(Self, Streams)> {
        let (program, arguments) = words
            .split_first()
            .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "the command has no words"))?;
        let mut command = Command::new(program);
        command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        // A group of its own: ^C reaches the coordinator alone, and a kill reaches whatever the
        // agent started.
        command.process_group(0);
        command.envs(variables.iter().map(|(name, value)| (name, value)));
        if dies_with_us {
            // SAFETY: between fork and exec only prctl is called, which is async-signal-safe.
            unsafe { command.pre_exec(die_with_parent) };
        }
        let mut child = command.spawn()?;
        let streams = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let mut process = Self { child, reaped: false, death: None };
        // Absent before Linux 5.3: then the end of its output has to do.
        process.death = process.raw_pid().and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok());
        let (Some(input), Some(output), Some(errors)) = streams else {
            return Err(io::Error::other("a pipe that was asked for is not there"));
        };
        rustix::io::ioctl_fionbio(&input, true)?;
        rustix::io::ioctl_fionbio(&output, true)?;
        rustix::io::ioctl_fionbio(&errors, true)?;
        Ok((process, Streams { input, output, errors }))
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Readable once it has ended; absent where the kernel has no such thing.
    pub(crate) fn death(&self) -> Option<BorrowedFd<'_>> {
        self.death.as_ref().map(AsFd::as_fd)
    }

    /// Whether it has ended.
    pub(crate) fn is_dead(&self) -> bool {
        self.status().is_some()
    }

    /// Whether it has ended, and with exit status 0.
    pub(crate) fn has_succeeded(&self) -> bool {
        self.status().is_some_and(|status| status.exit_status() == Some(0))
    }

    /// Whether a signal has ended it.
    pub(crate) fn was_killed(&self) -> bool {
        self.status().is_some_and(|status| status.terminating_signal().is_some())
    }

    /// Waits for its end until the deadline, and says in words how it ended.
    pub(crate) fn end(&self, deadline: Deadline) -> String {
        loop {
            match self.status() {
                Some(status) => return in_words(&status),
                None if deadline.is_over() => return "closed its output".to_owned(),
                None => std::thread::sleep(REAP_INTERVAL),
            }
        }
    }

    /// Kills its whole process group and reaps it.
    pub(crate) fn kill(&mut self) {
        if self.reaped {
            return;
        }
        if let Some(pid) = self.raw_pid() {
            // Not reaped yet, dead or alive: its number, and so that of its group, cannot belong to
            // anyone else. ESRCH, the only failure possible for a group of ours, is what we want.
            let _ = kill_process_group(pid, Signal::KILL);
        }
        let deadline = Deadline::after(REAP_TIMEOUT);
        while matches!(self.child.try_wait(), Ok(None)) && !deadline.is_over() {
            std::thread::sleep(REAP_INTERVAL);
        }
        self.reaped = true;
    }

    /// How it ended, if it has. It is not reaped by this.
    fn status(&self) -> Option<WaitIdStatus> {
        status(self.raw_pid()?)
    }

    fn raw_pid(&self) -> Option<Pid> {
        Pid::from_raw(self.child.id().cast_signed())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

/// How a child ended, if it has. It is not reaped by this.
pub(super) fn status(child: Pid) -> Option<WaitIdStatus> {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    waitid(WaitId::Pid(child), options).ok().flatten()
}

fn in_words(status: &WaitIdStatus) -> String {
    match (status.terminating_signal(), status.exit_status()) {
        (Some(signal), _) => format!("was killed by signal {signal}"),
        (None, Some(code)) => format!("ended with exit status {code}"),
        (None, None) => "ended".to_owned(),
    }
}

/// The kernel kills the agent when its coordinator dies, even by SIGKILL. The end of its input does
/// the same more politely, and is all there is for an agent on another host.
fn die_with_parent() -> io::Result<()> {
    // SAFETY: PR_SET_PDEATHSIG takes a signal number and touches no memory.
    if unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL as libc::c_ulong) } == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

/// How often an ending process is looked at. Never while a point is measured.
const REAP_INTERVAL: Duration = Duration::from_millis(2);
/// How long a killed process is waited for: only the kernel itself (a device that hangs) can take
/// longer.
const REAP_TIMEOUT: Duration = Duration::from_secs(5);
