//! The process between a coordinator and a launcher: it starts the launcher, ends it when the
//! coordinator is gone or has finished, and leaves nothing behind.
//!
//! A killed coordinator cannot end the launcher, and a killed launcher cannot end its ranks or
//! remove their shared memory. This process sleeps until one of them has ended, and then does so.

use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use measure::clock::{Clock, Deadline};
use measure::environment::stat_field;
use rustix::event::{PollFd, PollFlags};
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, kill_process, kill_process_group, pidfd_open, waitid,
};
use rustix::thread::sched_setaffinity;

use super::super::child::status;
use super::super::interrupt::Interrupt;
use super::super::wait::wait;
use super::environments::{TOKEN_VARIABLE, announcement, processes};
use super::leavings::{ALONE, ASKED, KILLED, Leavings, REAP_INTERVAL};
use super::slurm::SlurmJob;
use super::usage::{Usage, of_children};
use crate::Error;

/// Starts a launcher with these words and waits until it has ended. When standard input ends, the
/// coordinator is gone, and this function ends the launcher. Returns its exit status as a shell
/// does: 128 plus the signal, if a signal ended it.
///
/// # Errors
/// If the launcher cannot be started.
pub fn supervise(words: &[String]) -> Result<u8, Error> {
    Ok(stay(words, None)?.map_or(1, code))
}

/// Starts the program of an application in a directory, and otherwise does the same as
/// [`supervise`]. Descendants of the program end with it, and the resources that it has used follow
/// its output.
///
/// # Errors
/// If the program cannot be started.
pub fn supervise_program(words: &[String], directory: &Path) -> Result<u8, Error> {
    Ok(stay(words, Some(directory))?.map_or(1, code))
}

/// Waits until standard input ends, and then removes a directory and its contents: the process that
/// made it may have been killed.
pub fn remove_in_the_end(directory: &Path) {
    let Ok(interrupt) = Interrupt::install() else { return };
    while is_wanted(&interrupt) {
        let input = io::stdin();
        let fds = vec![PollFd::new(&input, PollFlags::IN)];
        let _ = wait(fds, Deadline::after(Duration::MAX), Some(&interrupt));
    }
    // Processes in it are being ended, and may still write.
    let deadline = Deadline::after(REMOVED);
    while std::fs::remove_dir_all(directory).is_err() && directory.exists() && !deadline.is_over() {
        std::thread::sleep(REAP_INTERVAL);
    }
}

fn stay(words: &[String], directory: Option<&Path>) -> Result<Option<ExitStatus>, Error> {
    let token = std::env::var(TOKEN_VARIABLE).unwrap_or_default();
    // SIGINT and SIGTERM end the launcher, as the end of the input does.
    let interrupt = Interrupt::install()?;
    let job = SlurmJob::of(words, &token);
    if directory.is_some() {
        // The program may use every CPU, although the rank that starts it is pinned to one. If the
        // kernel refuses, the program has fewer CPUs.
        let _ = sched_setaffinity(None, &conditions::every_cpu());
        adopt_orphans();
    }
    let clock = Clock::monotonic();
    let begun = clock.now();
    let mut launcher = start(words, &job, directory)?;
    let pid = Pid::from_child(&launcher);
    // If this process is killed, the coordinator needs the launcher's PID to clean up.
    let _ = writeln!(io::stdout(), "{}", announcement(&token, pid));
    let death = pidfd_open(pid, PidfdFlags::empty()).ok();
    while is_wanted(&interrupt) && status(pid).is_none() {
        let input = io::stdin();
        let mut fds = vec![PollFd::new(&input, PollFlags::IN)];
        fds.extend(death.as_ref().map(|death| PollFd::from_borrowed_fd(death.as_fd(), PollFlags::IN)));
        // Without such a descriptor (Linux before 5.3), the launcher is checked regularly.
        let look_again = if death.is_some() { Duration::MAX } else { REAP_INTERVAL };
        if wait(fds, Deadline::after(look_again), Some(&interrupt)).is_err() {
            break;
        }
    }
    let wall_ns = clock.ns(clock.now().since(begun));
    // Collected before the ranks end: their environments say what to remove.
    let left = Leavings::of(token.clone());
    let status = end(&mut launcher, pid);
    if status.is_none_or(|status| !status.success()) {
        job.cancel(processes(&token).into_iter().map(|(_, environment)| environment));
    }
    if directory.is_some() {
        end_orphans();
    }
    left.remove(Some(pid), ALONE);
    if directory.is_some() {
        let usage = Usage::new(status, wall_ns, of_children());
        // It fails if the agent is gone.
        let _ = write!(io::stdout(), "{}", usage.line(&token));
    }
    Ok(status)
}

/// Makes this process the parent of all orphans among its descendants, even if these change their
/// process group, session or environment.
fn adopt_orphans() {
    // SAFETY: PR_SET_CHILD_SUBREAPER takes a number and touches no memory.
    unsafe { libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1 as libc::c_ulong) };
}

/// Ends the orphans among this process's descendants, and waits for them. When an orphan ends, its
/// children become orphans in turn, so this repeats. Some orphans clean up and end by themselves,
/// such as the daemon that Open MPI starts for a rank without a launcher.
fn end_orphans() {
    for (signal, patience) in [(None, ALONE), (Some(Signal::TERM), BY_ITSELF), (Some(Signal::KILL), KILLED)] {
        let deadline = Deadline::after(patience);
        loop {
            if let Some(signal) = signal {
                // They are not reaped yet, so their process IDs cannot belong to other processes.
                children().into_iter().for_each(|orphan| _ = kill_process(orphan, signal));
            }
            match waitid(WaitId::All, WaitIdOptions::EXITED | WaitIdOptions::NOHANG) {
                Ok(Some(_)) => {}
                Ok(None) if !deadline.is_over() => std::thread::sleep(REAP_INTERVAL),
                Ok(None) => break,
                // There are no children left.
                Err(_) => return,
            }
        }
    }
}

/// Returns the children of this process.
fn children() -> Vec<Pid> {
    let own = rustix::process::getpid().as_raw_nonzero().get().to_string();
    let all = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let parent = |pid: &str| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        Some(stat_field(&stat, 4)?.to_owned())
    };
    let pids = all.filter_map(|entry| entry.file_name().into_string().ok());
    let is_own = |pid: &String| parent(pid).as_ref() == Some(&own);
    pids.filter(is_own).filter_map(|pid| Pid::from_raw(pid.parse().ok()?)).collect()
}

/// Starts the launcher in its own process group, so that the whole group can be ended.
fn start(words: &[String], job: &SlurmJob, directory: Option<&Path>) -> Result<Child, Error> {
    let (name, arguments) = words.split_first().ok_or_else(|| {
        let cause = io::Error::new(io::ErrorKind::InvalidInput, "the command has no words");
        Error::NoLauncher { launcher: String::new(), cause }
    })?;
    let mut command = Command::new(name);
    command.args(arguments).envs(job.variables()).stdin(Stdio::null()).process_group(0);
    directory.map(|directory| command.current_dir(directory));
    // SAFETY: between fork and exec only prctl is called, which is async-signal-safe.
    unsafe { command.pre_exec(end_with_supervisor) };
    command.spawn().map_err(|cause| Error::NoLauncher { launcher: name.clone(), cause })
}

/// Makes the kernel send SIGTERM to the launcher if this process is killed. The coordinator then
/// removes what the launcher leaves.
fn end_with_supervisor() -> io::Result<()> {
    // SAFETY: PR_SET_PDEATHSIG takes a signal number and touches no memory.
    match unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGTERM as libc::c_ulong) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Whether the coordinator is still there: the input is open, and no signal has arrived.
fn is_wanted(interrupt: &Interrupt) -> bool {
    let input = io::stdin();
    let mut ready = [PollFd::new(&input, PollFlags::IN)];
    let has_ended = match rustix::event::poll(&mut ready, Some(&Deadline::after(Duration::ZERO).timespec())) {
        // The coordinator writes nothing there: only the end can be read.
        Ok(count) if count > 0 => !matches!(io::stdin().read(&mut [0; 64]), Ok(1..)),
        _ => false,
    };
    !has_ended && interrupt.received().is_none()
}

/// Waits for the launcher to end, and ends it if it does not. Its ranks have lost the coordinator,
/// too, and end by themselves. Returns how the launcher ended, if it did.
fn end(launcher: &mut Child, pid: Pid) -> Option<ExitStatus> {
    for (signal, patience) in [(None, BY_ITSELF), (Some(Signal::TERM), ASKED), (Some(Signal::KILL), KILLED)] {
        if let Some(signal) = signal {
            // The launcher is not reaped yet, so its ID cannot belong to another process. It fails
            // if the launcher has ended.
            let _ = kill_process_group(pid, signal);
        }
        let deadline = Deadline::after(patience);
        while status(pid).is_none() && !deadline.is_over() {
            std::thread::sleep(REAP_INTERVAL);
        }
        if status(pid).is_some() {
            return launcher.wait().ok();
        }
    }
    None
}

/// Returns an exit status as a shell does.
fn code(status: ExitStatus) -> u8 {
    use std::os::unix::process::ExitStatusExt;
    let code = status.code().or_else(|| Some(128 + status.signal()?));
    code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1)
}

/// The longest wait for processes that keep a directory from being removed. A supervisor takes less
/// time to end them.
const REMOVED: Duration = Duration::from_secs(10);
/// The time for a launcher to end after its ranks have ended.
const BY_ITSELF: Duration = Duration::from_millis(500);
