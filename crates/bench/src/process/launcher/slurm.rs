//! The job that `srun` creates. Slurm's daemons run it, so that it does not end with the processes
//! of this host. If `srun` was killed with all of its helpers, the supervisor must cancel the job.

use std::collections::BTreeSet;
use std::process::{Command, Stdio};
use std::time::Duration;

use measure::clock::Deadline;

use super::environments::variable;
use super::kind;

/// The job of a launch; empty where the launcher is not srun.
#[derive(Debug, Default)]
pub(super) struct SlurmJob {
    /// Whether the launcher is srun.
    is_srun: bool,
    /// The name that rdmascope gives to the job. Slurm finds it by that name on any host.
    name: Option<String>,
    /// The job of the user that srun runs in.
    outer: Option<String>,
    /// The step of this process, where it runs in that job.
    outer_step: Option<String>,
    /// Whether srun certainly creates a new job, because neither its command nor its environment
    /// names one.
    is_own: bool,
}

impl SlurmJob {
    /// Returns the job of a launch by these words. The job gets no name from rdmascope within a job
    /// of the user, or where the user has chosen a name.
    pub(super) fn of(words: &[String], token: &str) -> Self {
        Self::among(words, token, |name| std::env::var(name).ok().filter(|value| !value.is_empty()))
    }

    /// [`SlurmJob::of`] with these environment variables.
    fn among(words: &[String], token: &str, variable: impl Fn(&str) -> Option<String>) -> Self {
        let (before, options) = words.split_at(kind::place(words).min(words.len()));
        if options.first().and_then(|program| program.rsplit('/').next()) != Some("srun") {
            return Self::default();
        }
        let assigned = |name: &str| {
            before.iter().rev().find_map(|word| word.strip_prefix(name)?.strip_prefix('=').map(str::to_owned))
        };
        let here = JOBS.iter().find_map(|name| variable(name));
        let told = option(options, &["--jobi"]).or_else(|| JOBS.iter().find_map(|name| assigned(name)));
        let outer = told.or_else(|| here.clone());
        let outer_step = variable(STEP).filter(|_| outer == here);
        let has_name = option(options, &["--job-", "-J"]).or_else(|| variable(NAME)).is_some();
        let is_named = outer.is_some() || has_name || token.is_empty();
        let name = (!is_named).then(|| format!("rdmascope-{token}"));
        let is_own = outer.is_none() && before.is_empty();
        Self { is_srun: true, name, outer, outer_step, is_own }
    }

    /// Returns the variables that srun is started with. An option `--job-name` overrides them.
    pub(super) fn variables(&self) -> impl Iterator<Item = (&'static str, &str)> {
        self.name.iter().map(|name| (NAME, name.as_str()))
    }

    /// Cancels the job, if it still exists: by its name, and by the numbers in the environments of
    /// its ranks on this host.
    pub(super) fn cancel(&self, ranks: impl Iterator<Item = Vec<u8>>) {
        if !self.is_srun {
            return;
        }
        let by_name = self.name.iter().map(|name| format!("--name={name}"));
        let by_number: BTreeSet<String> = ranks.filter_map(|environment| self.number(&environment)).collect();
        for which in by_name.chain(by_number) {
            // It fails if the job has ended.
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
            // It hangs if the controller does not answer.
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    /// Returns the job of a rank, or its step where the job may be the user's; none for a process
    /// that is not a rank.
    fn number(&self, environment: &[u8]) -> Option<String> {
        let job = variable(environment, JOBS[0])?;
        let step = variable(environment, STEP)?;
        let is_outer_step = self.outer.as_ref() == Some(&job) && self.outer_step.as_ref() == Some(&step);
        match self.is_own {
            true => Some(job),
            false => (!is_outer_step).then(|| format!("{job}.{step}")),
        }
    }
}

/// Returns the value of the first option that begins with one of `begins`: srun accepts shortened
/// options.
fn option(words: &[String], begins: &[&str]) -> Option<String> {
    let index = words.iter().position(|word| begins.iter().any(|begin| word.starts_with(begin)))?;
    let value = words[index].split_once('=').map(|(_, value)| value.to_owned());
    value.or_else(|| words.get(index + 1).cloned())
}

const NAME: &str = "SLURM_JOB_NAME";
/// The variables for the job number. srun accepts either.
const JOBS: [&str; 2] = ["SLURM_JOB_ID", "SLURM_JOBID"];
const STEP: &str = "SLURM_STEP_ID";
/// The time that the controller has to accept the cancellation.
const SCANCEL: Duration = Duration::from_secs(2);
const LOOK_AGAIN: Duration = Duration::from_millis(5);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_srun_has_made_is_cancelled() {
        let rank = b"A=1\0SLURM_JOB_ID=7\0SLURM_STEP_ID=0\0";
        let of = |words: &str, here: &[(&str, &str)]| {
            let words: Vec<String> = words.split(' ').map(str::to_owned).collect();
            let variable = |name: &str| {
                here.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
            };
            SlurmJob::among(&words, "abc", variable)
        };
        let number = |words: &str, here: &[(&str, &str)]| of(words, here).number(rank);
        assert_eq!(number("srun -n 2 x", &[]).as_deref(), Some("7"));
        assert_eq!(number("srun -J mine -n 2 x", &[]).as_deref(), Some("7"));
        let inside = [("SLURM_JOB_ID", "7")];
        assert_eq!(number("srun -n 2 x", &inside).as_deref(), Some("7.0"), "the job is the user's");
        let step = [("SLURM_JOB_ID", "7"), ("SLURM_STEP_ID", "0")];
        assert_eq!(number("srun -n 2 x", &step), None, "and so is the step");
        let other = [("SLURM_JOB_ID", "6"), ("SLURM_STEP_ID", "0")];
        for words in ["srun --jobid=7 x", "srun -n 2 --jobid 7 x", "env SLURM_JOBID=7 srun x"] {
            for here in [&[][..], &other] {
                assert_eq!(number(words, here).as_deref(), Some("7.0"), "{words} from {here:?}");
                assert_eq!(of(words, here).name, None, "{words} makes no job to name");
            }
        }
        assert_eq!(number("sh in_job_7.sh srun x", &[]).as_deref(), Some("7.0"), "it may be the user's");
        assert_eq!(of("srun -n 2 x", &[]).number(b"SLURM_JOB_ID=7\0"), None, "it is no rank");
        assert_eq!(of("srun -n 2 x", &[]).name.as_deref(), Some("rdmascope-abc"));
        assert_eq!(of("srun --job-name=mine x", &[]).name, None);
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
