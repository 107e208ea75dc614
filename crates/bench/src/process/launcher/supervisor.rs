//! The process between a coordinator and a launcher: it starts the launcher, ends it when the
//! coordinator is gone or has done, and leaves nothing behind.
//!
//! A coordinator that is killed can do nothing about what it has started, and a launcher that is
//! killed can do nothing about its ranks and their shared memory. This process waits for either,
//! asleep, and does that.

use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use measure::clock::{Clock, Deadline};
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

/// Starts a launcher with these words and stays until it has ended: by itself, or because standard
/// input ends, which is the coordinator's. Gives its exit status as a shell does: 128 and the
/// signal, where one ended it.
///
/// # Errors
/// If the launcher cannot be started.
pub fn supervise(words: &[String]) -> Result<u8, Error> {
    Ok(stay(words, None)?.map_or(1, code))
}

/// The same with a program of somebody else in the place of ranks, which runs in a directory. What
/// the program has started ends with it, and behind its output stands what it has taken.
///
/// # Errors
/// If the program cannot be started.
pub fn supervise_program(words: &[String], directory: &Path) -> Result<u8, Error> {
    Ok(stay(words, Some(directory))?.map_or(1, code))
}

/// Stays until standard input ends, and then removes a directory with all that is in it: whoever
/// made it may have been killed.
pub fn remove_in_the_end(directory: &Path) {
    let Ok(interrupt) = Interrupt::install() else { return };
    while is_wanted(&interrupt) {
        let input = io::stdin();
        let fds = vec![PollFd::new(&input, PollFlags::IN)];
        let _ = wait(fds, Deadline::after(Duration::MAX), Some(&interrupt));
    }
    // What runs in it is being ended, and may still write.
    let deadline = Deadline::after(REMOVED);
    while std::fs::remove_dir_all(directory).is_err() && directory.exists() && !deadline.is_over() {
        std::thread::sleep(REAP_INTERVAL);
    }
}

fn stay(words: &[String], directory: Option<&Path>) -> Result<Option<ExitStatus>, Error> {
    let token = std::env::var(TOKEN_VARIABLE).unwrap_or_default();
    // SIGINT and SIGTERM end the launcher as the end of the input does.
    let interrupt = Interrupt::install()?;
    let job = SlurmJob::of(words, &token);
    if directory.is_some() {
        // What this process starts may run on every CPU, although a rank was pinned to one. If the
        // kernel refuses, the program has fewer.
        let _ = sched_setaffinity(None, &conditions::every_cpu());
        adopt_orphans();
    }
    let clock = Clock::monotonic();
    let begun = clock.now();
    let mut launcher = start(words, &job, directory)?;
    let pid = Pid::from_child(&launcher);
    // If this process is killed, the coordinator needs the launcher's PID to clear up.
    let _ = writeln!(io::stdout(), "{}", announcement(&token, pid));
    let death = pidfd_open(pid, PidfdFlags::empty()).ok();
    while is_wanted(&interrupt) && status(pid).is_none() {
        let input = io::stdin();
        let mut fds = vec![PollFd::new(&input, PollFlags::IN)];
        fds.extend(death.as_ref().map(|death| PollFd::from_borrowed_fd(death.as_fd(), PollFlags::IN)));
        // Without such a descriptor (Linux before 5.3) its end is looked for now and then.
        let look_again = if death.is_some() { Duration::MAX } else { REAP_INTERVAL };
        if wait(fds, Deadline::after(look_again), Some(&interrupt)).is_err() {
            break;
        }
    }
    let wall_ns = clock.ns(clock.now().since(begun));
    // Taken before the ranks end, which know what there is to remove.
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
        // Nobody may hear it any more.
        let _ = write!(io::stdout(), "{}", usage.line(&token));
    }
    Ok(status)
}

/// Makes this process the parent of what its descendants leave behind, whatever that does to its
/// group, session and environment.
fn adopt_orphans() {
    // SAFETY: PR_SET_CHILD_SUBREAPER takes a number and touches no memory.
    unsafe { libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1 as libc::c_ulong) };
}

/// Ends what descendants have left behind, and waits for it: generation after generation, for the
/// children of what ends come here next. Some of it clears up, such as the daemon that Open MPI
/// starts for a rank without a launcher, and ends by itself.
fn end_orphans() {
    for (signal, patience) in [(None, ALONE), (Some(Signal::TERM), BY_ITSELF), (Some(Signal::KILL), KILLED)] {
        let deadline = Deadline::after(patience);
        loop {
            if let Some(signal) = signal {
                // Not reaped yet, so that their numbers are their own.
                children().into_iter().for_each(|orphan| _ = kill_process(orphan, signal));
            }
            match waitid(WaitId::All, WaitIdOptions::EXITED | WaitIdOptions::NOHANG) {
                Ok(Some(_)) => {}
                Ok(None) if !deadline.is_over() => std::thread::sleep(REAP_INTERVAL),
                Ok(None) => break,
                // There is none.
                Err(_) => return,
            }
        }
    }
}

/// The children of this process.
fn children() -> Vec<Pid> {
    let own = rustix::process::getpid().as_raw_nonzero().get().to_string();
    let all = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let parent = |pid: &str| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // Its name may have blanks and brackets in it.
        Some(stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.to_owned())
    };
    let pids = all.filter_map(|entry| entry.file_name().into_string().ok());
    let is_own = |pid: &String| parent(pid).as_ref() == Some(&own);
    pids.filter(is_own).filter_map(|pid| Pid::from_raw(pid.parse().ok()?)).collect()
}

/// Starts the launcher in a process group of its own, so that all of it can be ended.
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
/// coordinator too. Gives how the launcher ended, if it did.
fn end(launcher: &mut Child, pid: Pid) -> Option<ExitStatus> {
    for (signal, patience) in [(None, BY_ITSELF), (Some(Signal::TERM), ASKED), (Some(Signal::KILL), KILLED)] {
        if let Some(signal) = signal {
            // Not reaped yet, so that its number is its own. It fails where the launcher has ended.
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

/// An exit status as a shell gives it.
fn code(status: ExitStatus) -> u8 {
    use std::os::unix::process::ExitStatusExt;
    let code = status.code().or_else(|| Some(128 + status.signal()?));
    code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1)
}

/// How long what runs in a directory may keep it from being removed: a supervisor that ends it
/// takes less.
const REMOVED: Duration = Duration::from_secs(10);
/// How long a launcher may take whose ranks have ended.
const BY_ITSELF: Duration = Duration::from_millis(500);
