//! The process of an agent: it is started in its own process group, killed with the whole group,
//! and always reaped.
//!
//! # Invariants
//!
//! * An agent does not outlive its coordinator, and a coordinator leaves no agent behind, whichever
//!   way they end.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

use measure::clock::Deadline;
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, WaitIdStatus, kill_process, kill_process_group,
    pidfd_open, waitid,
};

/// A child process. Dropping it kills and reaps the process.
#[derive(Debug)]
pub(crate) struct Process {
    child: Child,
    reaped: bool,
    /// Whether a helper of the process ends what the process has started on other hosts.
    has_helper: bool,
    /// Readable once the process has ended, even if one of its children holds its streams open.
    death: Option<OwnedFd>,
}

/// The parent's side of a child's standard streams, non-blocking.
#[derive(Debug)]
pub(crate) struct Streams {
    pub(crate) input: ChildStdin,
    pub(crate) output: ChildStdout,
    pub(crate) errors: ChildStderr,
}

impl Process {
    /// Starts a program that dies with this process.
    pub(crate) fn start(words: &[String]) -> io::Result<(Self, Streams)> {
        let variables = AGENT_VARIABLES.map(|(name, value)| (name, value.to_owned()));
        Self::spawn(words, &variables, true)
    }

    /// Starts a program that outlives this process, to clean up after it. Its environment is that
    /// of this process plus `variables`.
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
        // In its own group: ^C reaches the coordinator alone, and a kill also reaches the children
        // of the agent.
        command.process_group(0);
        command.envs(variables.iter().map(|(name, value)| (name, value)));
        if dies_with_us {
            end_with_us(&mut command);
        }
        let mut child = command.spawn()?;
        let streams = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let has_helper = words.iter().any(|word| word.rsplit('/').next() == Some(SRUN));
        let mut process = Self { child, reaped: false, has_helper, death: None };
        // Absent before Linux 5.3, where the end of the output must do.
        process.death = process.raw_pid().and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok());
        let (Some(input), Some(output), Some(errors)) = streams else {
            return Err(io::Error::other("a requested pipe is missing"));
        };
        rustix::io::ioctl_fionbio(&input, true)?;
        rustix::io::ioctl_fionbio(&output, true)?;
        rustix::io::ioctl_fionbio(&errors, true)?;
        Ok((process, Streams { input, output, errors }))
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Returns a descriptor that is readable once the process has ended; `None` before Linux 5.3.
    pub(crate) fn death(&self) -> Option<BorrowedFd<'_>> {
        self.death.as_ref().map(AsFd::as_fd)
    }

    /// Whether the process has ended.
    pub(crate) fn is_dead(&self) -> bool {
        self.status().is_some()
    }

    /// Whether the process has ended with exit status 0.
    pub(crate) fn has_succeeded(&self) -> bool {
        self.status().is_some_and(|status| status.exit_status() == Some(0))
    }

    /// Whether a signal has ended the process.
    pub(crate) fn was_killed(&self) -> bool {
        self.status().is_some_and(|status| status.terminating_signal().is_some())
    }

    /// Waits for the process to end until the deadline. Returns how it ended, in words.
    pub(crate) fn end(&self, deadline: Deadline) -> String {
        loop {
            match self.status() {
                Some(status) => return in_words(&status),
                None if deadline.is_over() => return "closed its output".to_owned(),
                None => std::thread::sleep(REAP_INTERVAL),
            }
        }
    }

    /// Kills the whole process group, or the process if it has a helper, and reaps the process.
    pub(crate) fn kill(&mut self) {
        if self.reaped {
            return;
        }
        if let Some(pid) = self.raw_pid() {
            // The process is not reaped yet, so its ID and the ID of its group cannot belong to
            // another process. The only possible failure is ESRCH, which means that it is gone.
            let _ = match self.has_helper {
                true => kill_process(pid, Signal::KILL),
                false => kill_process_group(pid, Signal::KILL),
            };
        }
        let deadline = Deadline::after(REAP_TIMEOUT);
        while matches!(self.child.try_wait(), Ok(None)) && !deadline.is_over() {
            std::thread::sleep(REAP_INTERVAL);
        }
        self.reaped = true;
    }

    /// Returns how the process ended, if it has, without reaping it.
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

/// Slurm's srun(1). The agent behind it is a child of a daemon. Once srun has died, its helper
/// cancels the job or step of the agent, and then ends.
const SRUN: &str = "srun";
/// Environment of agents, of which programs that start agents read their own variables. srun would
/// hold an answer back until a line ends, and an answer has no lines.
const AGENT_VARIABLES: [(&str, &str); 1] = [("SLURM_UNBUFFEREDIO", "1")];

/// Returns how a child ended, if it has, without reaping it.
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

/// Makes the kernel kill what a command starts when this process dies, even by SIGKILL. The end of
/// the input also ends an agent, and is the only way for one on another host.
pub fn end_with_us(command: &mut Command) {
    // SAFETY: between fork and exec only prctl is called, which is async-signal-safe.
    unsafe { command.pre_exec(die_with_parent) };
}

fn die_with_parent() -> io::Result<()> {
    // SAFETY: PR_SET_PDEATHSIG takes a signal number and touches no memory.
    if unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL as libc::c_ulong) } == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

/// The interval at which an ending process is checked. No check runs while a point is measured.
const REAP_INTERVAL: Duration = Duration::from_millis(2);
/// The longest wait for a killed process. Only the kernel, for a device that hangs, takes longer.
const REAP_TIMEOUT: Duration = Duration::from_secs(5);
