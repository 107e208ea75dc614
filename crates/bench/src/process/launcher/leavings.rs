//! The processes and files that a launch leaves on this host, and how they are removed.

use std::path::PathBuf;
use std::time::Duration;

use measure::clock::Deadline;
use rustix::process::{Pid, Signal, kill_process};

use super::environments::{processes, variable};

/// The processes and files that a launch leaves on this host if it did not end cleanly.
#[derive(Debug)]
pub(super) struct Leavings {
    /// The token by which the processes of the launch are found.
    token: String,
    /// The numbers of Open MPI's jobs.
    jobs: Vec<u32>,
}

impl Leavings {
    /// Collects the job numbers from the environments of the launch's processes.
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

    /// Kills the processes of the launch that still run on this host after `patience`, and removes
    /// the files of their MPI.
    pub(super) fn remove(self, launcher: Option<Pid>, patience: Duration) {
        self.await_end(patience, |_| {});
        self.await_end(KILLED, |pid| {
            // It fails if the process has ended meanwhile.
            let _ = kill_process(pid, Signal::KILL);
        });
        for path in self.files(launcher) {
            // Most are gone, because a launcher that ends cleanly removes them.
            let _ = std::fs::remove_file(&path).or_else(|_| std::fs::remove_dir_all(&path));
        }
        // It fails while the directory has sessions of other launches.
        let _ = std::fs::remove_dir(sessions());
    }

    /// Waits until no process of the launch is left, for `patience` at most. Meanwhile calls
    /// `to_each` again and again for the remaining ones.
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

    /// Returns the files of Open MPI (releases before 5): the shared memory of ranks, and the
    /// directory of the session.
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

/// Waits until no process of a launch is left on this host, at most for the time that its
/// supervisor may take.
pub(super) fn await_end(token: &str) {
    let leavings = Leavings { token: token.to_owned(), jobs: Vec::new() };
    leavings.await_end(ASKED + ALONE + KILLED + KILLED, |_| {});
}

/// Returns the directory of Open MPI's sessions of this user.
fn sessions() -> PathBuf {
    std::env::temp_dir().join(format!("ompi.{}", owner()))
}

/// Returns this host and user, as they appear in names of Open MPI's files.
fn owner() -> String {
    let user = rustix::process::geteuid().as_raw();
    format!("{}.{user}", rustix::system::uname().nodename().to_string_lossy())
}

/// The time for ranks to end by themselves when they notice that the coordinator or the launcher is
/// gone.
pub(super) const ALONE: Duration = Duration::from_millis(1300);
/// The time for a launcher to end after SIGTERM. Open MPI gives its ranks a second, and another
/// second to ranks that do not end. After a second SIGTERM it would leave its files behind.
pub(super) const ASKED: Duration = Duration::from_millis(2500);
/// The time for a process to end after SIGKILL.
pub(super) const KILLED: Duration = Duration::from_secs(2);
/// The interval at which ending processes are checked.
pub(super) const REAP_INTERVAL: Duration = Duration::from_millis(5);
