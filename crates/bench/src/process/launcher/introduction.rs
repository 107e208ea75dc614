//! What a rank says of itself when it has dialled back.

use serde::{Deserialize, Serialize};

/// What the environment of a rank tells of it. Whoever reads one believes none of it unchecked.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Introduction {
    /// Its process, on its host.
    pub(crate) pid: u32,
    /// Its host.
    pub(crate) host: String,
    /// Its number among the ranks of the launcher, if the launcher has told it.
    pub(crate) rank: Option<u32>,
    /// How many ranks there are, if the launcher has told it.
    pub(crate) size: Option<u32>,
    /// Whether Slurm started it without a process management interface, so that no MPI can find the
    /// other ranks.
    pub(crate) lacks_pmi: bool,
}

/// Variables that say the number of a rank, the number of all, and the number among those of the
/// host. Of several launchers that are nested, the variables of all are there: the first row wins,
/// because Open MPI's are the only ones that no other launcher sets.
const VARIABLES: &[[&str; 3]] = &[
    ["OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK"],
    ["PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID"],
    ["PALS_RANKID", "PALS_SIZE", "PALS_LOCAL_RANKID"],
    ["FLUX_TASK_RANK", "FLUX_JOB_SIZE", "FLUX_TASK_LOCAL_ID"],
    ["SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID"],
    ["PMIX_RANK", "PMIX_SIZE", "PMIX_LOCAL_RANK"],
];

/// The numbers that the environment has for this rank: its own, of how many, and among those of
/// its host. `srun --mpi=pmi2` says the first two as MPICH's launcher does and the third as Slurm
/// does: where a row lacks it, another row has it that says the same of the others.
fn numbers(variable: impl Fn(&str) -> Option<String>) -> [Option<u32>; 3] {
    let number = |name: &str| variable(name)?.parse::<u32>().ok();
    let rows = || VARIABLES.iter().map(|row| row.map(number)).filter(|row| row[0].is_some());
    let Some([rank, size, local]) = rows().next() else { return [None; 3] };
    let elsewhere = || rows().filter(|row| row[..2] == [rank, size]).find_map(|row| row[2]);
    [rank, size, local.or_else(elsewhere)]
}

/// Whether the variables are those of a task of Slurm that was given no PMI (`--mpi=none`).
fn lacks_pmi(variable: impl Fn(&str) -> Option<String>) -> bool {
    let is_set = |name: &&str| variable(name).is_some();
    let is_task = ["SLURM_PROCID", "SLURM_STEP_ID"].iter().all(is_set);
    is_task && !["OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMI_FD", "PMIX_RANK"].iter().any(is_set)
}

impl Introduction {
    /// Of this process.
    pub(crate) fn own() -> Self {
        let variable = |name: &str| std::env::var(name).ok();
        let [rank, size, _] = numbers(variable);
        let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
        Self { pid: std::process::id(), host, rank, size, lacks_pmi: lacks_pmi(variable) }
    }
}

/// The number of this process among the ranks of its host, if a launcher has told it.
pub fn local_rank() -> Option<u32> {
    let [_, _, local] = numbers(|name| std::env::var(name).ok());
    local
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_of_slurm_without_pmi_is_told() {
        let lacks = |set: &[(&str, &str)]| {
            lacks_pmi(|name| set.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned()))
        };
        let task = [("SLURM_PROCID", "0"), ("SLURM_STEP_ID", "0")];
        assert!(lacks(&task));
        for name in ["OMPI_COMM_WORLD_RANK", "PMI_FD", "PMIX_RANK"] {
            assert!(!lacks(&[&task[..], &[(name, "0")]].concat()), "{name}");
        }
        assert!(!lacks(&[("SLURM_STEP_ID", "0")]) && !lacks(&[]));
    }

    #[test]
    fn the_innermost_launcher_that_can_be_told_apart_is_believed() {
        let environment = |set: &'static [(&str, &str)]| {
            move |name: &str| set.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned())
        };
        let open_mpi_under_slurm = environment(&[
            ("SLURM_PROCID", "0"),
            ("SLURM_STEP_NUM_TASKS", "1"),
            ("OMPI_COMM_WORLD_RANK", "3"),
            ("OMPI_COMM_WORLD_SIZE", "4"),
            ("OMPI_COMM_WORLD_LOCAL_RANK", "1"),
            ("PMIX_RANK", "3"),
        ]);
        assert_eq!(numbers(open_mpi_under_slurm), [Some(3), Some(4), Some(1)]);
        let srun = environment(&[
            ("SLURM_PROCID", "1"),
            ("SLURM_STEP_NUM_TASKS", "2"),
            ("SLURM_LOCALID", "1"),
            ("PMIX_RANK", "1"),
        ]);
        assert_eq!(numbers(srun), [Some(1), Some(2), Some(1)]);
        let pmi2 = environment(&[
            ("PMI_RANK", "1"),
            ("PMI_SIZE", "2"),
            ("SLURM_PROCID", "1"),
            ("SLURM_STEP_NUM_TASKS", "2"),
            ("SLURM_LOCALID", "0"),
        ]);
        assert_eq!(numbers(pmi2), [Some(1), Some(2), Some(0)]);
        let outside = environment(&[
            ("PMI_RANK", "1"),
            ("PMI_SIZE", "2"),
            ("SLURM_PROCID", "0"),
            ("SLURM_STEP_NUM_TASKS", "1"),
            ("SLURM_LOCALID", "0"),
        ]);
        assert_eq!(numbers(outside), [Some(1), Some(2), None], "that is the rank of another launcher");
        assert_eq!(numbers(environment(&[("PMI_RANK", "1"), ("PMI_SIZE", "2")])), [Some(1), Some(2), None]);
        assert_eq!(numbers(environment(&[("PMI_RANK", "one")])), [None; 3], "it is no number");
        assert_eq!(numbers(environment(&[])), [None; 3]);
    }
}
