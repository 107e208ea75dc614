//! The job that `srun` makes: Slurm's daemons run it, so that it does not end with the processes of
//! this host. Where `srun` was killed with all of its helpers, somebody has to cancel it.

use std::collections::BTreeSet;
use std::process::{Command, Stdio};
use std::time::Duration;

use measure::clock::Deadline;

use super::environments::variable;
use super::kind;

/// What is known of the job of a launch; nothing where another launcher was started.
#[derive(Debug, Default)]
pub(super) struct SlurmJob {
    /// Whether the launcher is srun.
    is_srun: bool,
    /// The name that it was given, by which it is found on any host.
    name: Option<String>,
    /// The job that this process runs in, which is the user's.
    outer: Option<String>,
    /// The step of it.
    outer_step: Option<String>,
}

impl SlurmJob {
    /// Of a launch by these words. Within a job of the user's, and where the user has chosen a
    /// name, it has no name of ours.
    pub(super) fn of(words: &[String], token: &str) -> Self {
        let program = kind::program(words);
        if program.rsplit('/').next() != Some("srun") {
            return Self::default();
        }
        let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        let outer = variable(JOB);
        let is_named = outer.is_some() || variable(NAME).is_some() || token.is_empty();
        let name = (!is_named).then(|| format!("rdmascope-{token}"));
        Self { is_srun: true, name, outer, outer_step: variable(STEP) }
    }

    /// The variables that srun is started with. An option `--job-name` goes before them.
    pub(super) fn variables(&self) -> impl Iterator<Item = (&'static str, &str)> {
        self.name.iter().map(|name| (NAME, name.as_str()))
    }

    /// Cancels it, if it is still there: by its name, and by what the environments of its ranks on
    /// this host say.
    pub(super) fn cancel(&self, ranks: impl Iterator<Item = Vec<u8>>) {
        if !self.is_srun {
            return;
        }
        let by_name = self.name.iter().map(|name| format!("--name={name}"));
        let by_number: BTreeSet<String> = ranks.filter_map(|environment| self.number(&environment)).collect();
        for which in by_name.chain(by_number) {
            // It fails where the job has ended.
            let started = Command::new("scancel")
                .args(["--quiet", &which])
                .stdin(Stdio::null())
                .stderr(Stdio::null())
                .spawn();
            let Ok(mut child) = started else { return };
            let deadline = Deadline::after(SCANCEL);
            while matches!(child.try_wait(), Ok(None)) && !deadline.is_over() {
                std::thread::sleep(LOOK_AGAIN);
            }
            // It waits for a controller that does not answer.
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    /// The job of a rank, or its step where the job is the user's; none of a process that is no
    /// rank.
    fn number(&self, environment: &[u8]) -> Option<String> {
        let job = variable(environment, JOB)?;
        let step = variable(environment, STEP)?;
        match &self.outer {
            Some(outer) if *outer == job => {
                (self.outer_step.as_ref() != Some(&step)).then(|| format!("{job}.{step}"))
            }
            _ => Some(job),
        }
    }
}

const NAME: &str = "SLURM_JOB_NAME";
const JOB: &str = "SLURM_JOB_ID";
const STEP: &str = "SLURM_STEP_ID";
/// How long the controller may take to take note.
const SCANCEL: Duration = Duration::from_secs(2);
const LOOK_AGAIN: Duration = Duration::from_millis(5);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_srun_has_made_is_cancelled() {
        let job = |outer: Option<&str>, step: Option<&str>| SlurmJob {
            is_srun: true,
            name: None,
            outer: outer.map(str::to_owned),
            outer_step: step.map(str::to_owned),
        };
        let rank = b"A=1\0SLURM_JOB_ID=7\0SLURM_STEP_ID=0\0";
        assert_eq!(job(None, None).number(rank).as_deref(), Some("7"));
        assert_eq!(job(Some("7"), None).number(rank).as_deref(), Some("7.0"), "the job is the user's");
        assert_eq!(job(Some("7"), Some("0")).number(rank), None, "and so is the step");
        assert_eq!(job(None, None).number(b"SLURM_JOB_ID=7\0"), None, "it is no rank");
    }

    #[test]
    fn other_launchers_make_no_job() {
        let of = |words: &str| {
            let words: Vec<String> = words.split(' ').map(str::to_owned).collect();
            SlurmJob::of(&words, "abc")
        };
        assert!(of("nice srun -n 2 x").is_srun && of("/opt/slurm/bin/srun -n 2 x").is_srun);
        let mpirun = of("mpirun -np 2 x");
        assert!(!mpirun.is_srun && mpirun.variables().next().is_none());
    }
}
