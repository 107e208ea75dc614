//! The process between a coordinator and a launcher: it starts the launcher, ends it when the
//! coordinator is gone or has done, and leaves nothing behind.
//!
//! A coordinator that is killed can do nothing about what it has started, and a launcher that is
//! killed can do nothing about its ranks and their shared memory. This process waits for either,
//! asleep, and does that.

use std::io::{self, Read};
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use measure::clock::Deadline;
use rustix::event::{PollFd, PollFlags};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, kill_process_group, pidfd_open};

use super::super::interrupt::Interrupt;
use super::super::wait::wait;
use super::environments::{TOKEN_VARIABLE, processes, variable};
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
    let mut left = Leavings::of(&token);
    let status = end(&mut launcher, pid);
    if status != 0 {
        job.cancel(processes(&token).into_iter().map(|(_, environment)| environment));
    }
    left.remove(&token, pid);
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

/// Where this process is killed, its launcher is asked to end, which it does without leaving
/// anything.
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

/// What a launch leaves on this host where it was not ended gently.
#[derive(Debug, Default)]
struct Leavings {
    /// Numbers of Open MPI's jobs.
    jobs: Vec<u32>,
}

impl Leavings {
    /// Finds out what processes of a launch know of it.
    fn of(token: &str) -> Self {
        let jobs = processes(token).into_iter().filter_map(|(_, environment)| {
            let job = variable(&environment, "OMPI_MCA_ess_base_jobid")?;
            job.parse().ok()
        });
        let mut jobs: Vec<u32> = jobs.collect();
        jobs.sort_unstable();
        jobs.dedup();
        Self { jobs }
    }

    /// Ends processes of the launch that are left on this host, and removes what its MPI has made
    /// for them.
    fn remove(&mut self, token: &str, launcher: Pid) {
        let deadline = Deadline::after(STRAY);
        let mut signal = None;
        loop {
            let strays = processes(token);
            if strays.is_empty() {
                break;
            }
            for (pid, _) in strays.iter().filter(|_| signal.is_some()) {
                // It may have ended since it was found.
                let _ = kill_process(*pid, Signal::KILL);
            }
            if deadline.is_over() && signal.is_some() {
                break;
            }
            if deadline.is_over() {
                signal = Some(Signal::KILL);
                continue;
            }
            std::thread::sleep(REAP_INTERVAL);
        }
        for path in self.files(launcher) {
            // Most are gone, for a launcher that ends gently removes them.
            let _ = std::fs::remove_file(&path).or_else(|_| std::fs::remove_dir_all(&path));
        }
        // It has the sessions of other launches too, unless it is empty.
        let _ = std::fs::remove_dir(sessions());
    }

    /// Files of Open MPI (releases before 5): memory that ranks share, and the directory of the
    /// session.
    fn files(&self, launcher: Pid) -> Vec<PathBuf> {
        let user = rustix::process::geteuid().as_raw();
        let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
        let names = self.jobs.iter().map(|job| format!("vader_segment.{host}.{user}.{job:x}."));
        let names: Vec<_> = names.collect();
        let is_ours = |path: &PathBuf| {
            let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
            names.iter().any(|begin| name.starts_with(begin))
        };
        let shared = std::fs::read_dir("/dev/shm").into_iter().flatten().flatten();
        let shared = shared.map(|entry| entry.path()).filter(is_ours);
        shared.chain([sessions().join(format!("pid.{launcher}"))]).collect()
    }
}

/// The directory of Open MPI's sessions of this user.
fn sessions() -> PathBuf {
    let user = rustix::process::geteuid().as_raw();
    let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
    std::env::temp_dir().join(format!("ompi.{host}.{user}"))
}

/// How long a launcher may take whose ranks have ended.
const BY_ITSELF: Duration = Duration::from_millis(500);
/// How long it may take that was asked to end, once: Open MPI gives its ranks a second, and those
/// that do not end another one. Asked twice, it leaves what it has made.
const ASKED: Duration = Duration::from_millis(2500);
/// How long only the kernel can keep it.
const KILLED: Duration = Duration::from_secs(2);
/// How long ranks may go on by themselves: they end when they notice that they are alone.
const STRAY: Duration = Duration::from_millis(1300);
/// How often what ends is looked at.
const REAP_INTERVAL: Duration = Duration::from_millis(5);
