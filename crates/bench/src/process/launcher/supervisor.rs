//! The process between a coordinator and a launcher: it starts the launcher, ends it when the
//! coordinator is gone or has done, and leaves nothing behind.
//!
//! A coordinator that is killed can do nothing about what it has started, and a launcher that is
//! killed can do nothing about its ranks and their shared memory. This process waits for either,
//! asleep, and does that.

use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use measure::clock::Deadline;
use rustix::event::{PollFd, PollFlags};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open};

use super::super::interrupt::Interrupt;
use super::super::wait::wait;
use super::environments::{TOKEN_VARIABLE, announcement, processes};
use super::leavings::{ALONE, ASKED, KILLED, Leavings, REAP_INTERVAL};
use super::slurm::SlurmJob;
use crate::Error;

/// Starts a launcher with these words and stays until it has ended: by itself, or because standard
/// input ends, which is the coordinator's. Gives its exit status as a shell does: 128 and the
/// signal, where one ended it.
///
/// # Errors
/// If the launcher cannot be started.
pub fn supervise(words: &[String]) -> Result<u8, Error> {
    let token = std::env::var(TOKEN_VARIABLE).unwrap_or_default();
    // SIGINT and SIGTERM end the launcher as the end of the input does.
    let interrupt = Interrupt::install()?;
    let job = SlurmJob::of(words, &token);
    let mut launcher = start(words, &job)?;
    let pid = Pid::from_child(&launcher);
    // If this process is killed, the coordinator needs the launcher's PID to clear up.
    let _ = writeln!(io::stdout(), "{}", announcement(&token, pid));
    let death = pidfd_open(pid, PidfdFlags::empty()).ok();
    while is_wanted(&interrupt) && matches!(launcher.try_wait(), Ok(None)) {
        let input = io::stdin();
        let mut fds = vec![PollFd::new(&input, PollFlags::IN)];
        fds.extend(death.as_ref().map(|death| PollFd::from_borrowed_fd(death.as_fd(), PollFlags::IN)));
        // Without such a descriptor (Linux before 5.3) its end is looked for now and then.
        let look_again = if death.is_some() { Duration::MAX } else { REAP_INTERVAL };
        if wait(fds, Deadline::after(look_again), Some(&interrupt)).is_err() {
            break;
        }
    }
    // Taken before the ranks end, which know what there is to remove.
    let left = Leavings::of(token.clone());
    let status = end(&mut launcher, pid);
    if status != 0 {
        job.cancel(processes(&token).into_iter().map(|(_, environment)| environment));
    }
    left.remove(Some(pid), ALONE);
    Ok(status)
}

/// Starts the launcher in a process group of its own, so that all of it can be ended.
fn start(words: &[String], job: &SlurmJob) -> Result<Child, Error> {
    let (program, arguments) = words.split_first().ok_or_else(|| {
        let cause = io::Error::new(io::ErrorKind::InvalidInput, "the command has no words");
        Error::NoLauncher { launcher: String::new(), cause }
    })?;
    let mut command = Command::new(program);
    command.args(arguments).envs(job.variables()).stdin(Stdio::null()).process_group(0);
    // SAFETY: between fork and exec only prctl is called, which is async-signal-safe.
    unsafe { command.pre_exec(end_with_supervisor) };
    command.spawn().map_err(|cause| Error::NoLauncher { launcher: program.clone(), cause })
}

/// If this process is killed, the kernel asks its launcher to end. The coordinator removes what the
/// launcher then leaves.
fn end_with_supervisor() -> io::Result<()> {
    // SAFETY: PR_SET_PDEATHSIG takes a signal number and touches no memory.
    match unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGTERM as libc::c_ulong) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Whether the coordinator is still there: its end of the input is open, and no signal has come.
fn is_wanted(interrupt: &Interrupt) -> bool {
    let input = io::stdin();
    let mut ready = [PollFd::new(&input, PollFlags::IN)];
    let has_ended = match rustix::event::poll(&mut ready, Some(&Deadline::after(Duration::ZERO).timespec())) {
        // Nothing is ever said there: what can be read is the end.
        Ok(count) if count > 0 => !matches!(io::stdin().read(&mut [0; 64]), Ok(1..)),
        _ => false,
    };
    !has_ended && interrupt.received().is_none()
}

/// Waits for the launcher to end, and ends it: its ranks end by themselves, for they have lost the
/// coordinator too.
fn end(launcher: &mut Child, pid: Pid) -> u8 {
    for (signal, patience) in [(None, BY_ITSELF), (Some(Signal::TERM), ASKED), (Some(Signal::KILL), KILLED)] {
        if let Some(signal) = signal {
            // Not reaped yet, so that its number is its own. It fails where the launcher has ended.
            let _ = kill_process_group(pid, signal);
        }
        let deadline = Deadline::after(patience);
        loop {
            match launcher.try_wait() {
                Ok(Some(status)) => return code(status),
                Ok(None) if !deadline.is_over() => std::thread::sleep(REAP_INTERVAL),
                _ => break,
            }
        }
    }
    1
}

/// An exit status as a shell gives it.
fn code(status: std::process::ExitStatus) -> u8 {
    use std::os::unix::process::ExitStatusExt;
    let code = status.code().or_else(|| Some(128 + status.signal()?));
    code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1)
}

/// How long a launcher may take whose ranks have ended.
const BY_ITSELF: Duration = Duration::from_millis(500);
