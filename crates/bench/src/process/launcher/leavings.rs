//! What a launch leaves on this host, and how that is cleared up.

use std::path::PathBuf;
use std::time::Duration;

use measure::clock::Deadline;
use rustix::process::{Pid, Signal, kill_process};

use super::environments::{processes, variable};

/// What a launch leaves on this host where it was not ended gently.
#[derive(Debug)]
pub(super) struct Leavings {
    /// Token by which the processes of the launch are found.
    token: String,
    /// Numbers of Open MPI's jobs.
    jobs: Vec<u32>,
}

impl Leavings {
    /// Finds out what processes of a launch know of it.
    pub(super) fn of(token: String) -> Self {
        let jobs = processes(&token).into_iter().filter_map(|(_, environment)| {
            let job = variable(&environment, "OMPI_MCA_ess_base_jobid")?;
            job.parse().ok()
        });
        let mut jobs: Vec<u32> = jobs.collect();
        jobs.sort_unstable();
        jobs.dedup();
        Self { token, jobs }
    }

    /// Kills the processes of the launch that are still on this host after `patience`, and removes
    /// what their MPI has made for them.
    pub(super) fn remove(self, launcher: Option<Pid>, patience: Duration) {
        self.await_end(patience, |_| {});
        self.await_end(KILLED, |pid| {
            // It may have ended since it was found.
            let _ = kill_process(pid, Signal::KILL);
        });
        for path in self.files(launcher) {
            // Most are gone, for a launcher that ends gently removes them.
            let _ = std::fs::remove_file(&path).or_else(|_| std::fs::remove_dir_all(&path));
        }
        // It has the sessions of other launches too, unless it is empty.
        let _ = std::fs::remove_dir(sessions());
    }

    /// Waits until no process of the launch is left, for `patience` at most. Meanwhile calls
    /// `to_each` for those that are, again and again.
    fn await_end(&self, patience: Duration, to_each: impl Fn(Pid)) {
        let deadline = Deadline::after(patience);
        loop {
            let strays = processes(&self.token);
            if strays.is_empty() || deadline.is_over() {
                return;
            }
            strays.iter().for_each(|(pid, _)| to_each(*pid));
            std::thread::sleep(REAP_INTERVAL);
        }
    }

    /// Files of Open MPI (releases before 5): memory that ranks share, and the directory of the
    /// session.
    fn files(&self, launcher: Option<Pid>) -> Vec<PathBuf> {
        let owner = owner();
        let names: Vec<_> = self.jobs.iter().map(|job| format!("vader_segment.{owner}.{job:x}.")).collect();
        let is_ours = |path: &PathBuf| {
            let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
            names.iter().any(|begin| name.starts_with(begin))
        };
        let shared = std::fs::read_dir("/dev/shm").into_iter().flatten().flatten();
        let shared = shared.map(|entry| entry.path()).filter(is_ours);
        let session = launcher.map(|launcher| sessions().join(format!("pid.{launcher}")));
        shared.chain(session).collect()
    }
}

/// Waits until no process of a launch is left on this host, as long as its supervisor may take.
pub(super) fn await_end(token: &str) {
    let leavings = Leavings { token: token.to_owned(), jobs: Vec::new() };
    leavings.await_end(ASKED + ALONE + KILLED + KILLED, |_| {});
}

/// The directory of Open MPI's sessions of this user.
fn sessions() -> PathBuf {
    std::env::temp_dir().join(format!("ompi.{}", owner()))
}

/// This host and user, as Open MPI has them in names.
fn owner() -> String {
    let user = rustix::process::geteuid().as_raw();
    format!("{}.{user}", rustix::system::uname().nodename().to_string_lossy())
}

/// How long ranks may go on by themselves: they end when they notice that they are alone.
pub(super) const ALONE: Duration = Duration::from_millis(1300);
/// How long a launcher may take that was asked to end, once: Open MPI gives its ranks a second, and
/// those that do not end another one. Asked twice, it leaves what it has made.
pub(super) const ASKED: Duration = Duration::from_millis(2500);
/// How long only the kernel can keep a process.
pub(super) const KILLED: Duration = Duration::from_secs(2);
/// How often what ends is looked at.
pub(super) const REAP_INTERVAL: Duration = Duration::from_millis(5);
