//! The first message of a rank to its coordinator.

use serde::{Deserialize, Serialize};

/// The identity of a rank, from its environment. The coordinator checks it.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Introduction {
    /// The process ID on its host.
    pub(crate) pid: u32,
    /// The name of its host.
    pub(crate) host: String,
    /// The number among the ranks of the launcher, if the launcher sets it.
    pub(crate) rank: Option<u32>,
    /// The number of ranks, if the launcher sets it.
    pub(crate) size: Option<u32>,
    /// Whether Slurm started the rank without a process management interface (PMI), so that no MPI
    /// can find the other ranks.
    pub(crate) lacks_pmi: bool,
}

/// The variables for the number of a rank, the number of all ranks, and the number among the ranks
/// of the host. Under nested launchers, the variables of all of them are set. The first row wins,
/// because no other launcher sets the variables of Open MPI.
const VARIABLES: &[[&str; 3]] = &[
    ["OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK"],
    ["PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID"],
    ["PALS_RANKID", "PALS_SIZE", "PALS_LOCAL_RANKID"],
    ["FLUX_TASK_RANK", "FLUX_JOB_SIZE", "FLUX_TASK_LOCAL_ID"],
    ["SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID"],
    ["PMIX_RANK", "PMIX_SIZE", "PMIX_LOCAL_RANK"],
];

/// Returns the numbers of this rank in the environment: its rank, the number of ranks, and its rank
/// on its host. `srun --mpi=pmi2` sets the first two in the variables of MPICH and the third in
/// that of Slurm. Where a row lacks the third, it is taken from a row with the same first two.
fn numbers(variable: impl Fn(&str) -> Option<String>) -> [Option<u32>; 3] {
    let number = |name: &str| variable(name)?.parse::<u32>().ok();
    let rows = || VARIABLES.iter().map(|row| row.map(number)).filter(|row| row[0].is_some());
    let Some([rank, size, local]) = rows().next() else { return [None; 3] };
    let elsewhere = || rows().filter(|row| row[..2] == [rank, size]).find_map(|row| row[2]);
    [rank, size, local.or_else(elsewhere)]
}

/// Whether the variables are those of a Slurm task without PMI (`--mpi=none`).
fn lacks_pmi(variable: impl Fn(&str) -> Option<String>) -> bool {
    let is_set = |name: &&str| variable(name).is_some();
    let is_task = ["SLURM_PROCID", "SLURM_STEP_ID"].iter().all(is_set);
    is_task && !["OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMI_FD", "PMIX_RANK"].iter().any(is_set)
}

impl Introduction {
    /// Returns the introduction of this process.
    pub(crate) fn own() -> Self {
        let variable = |name: &str| std::env::var(name).ok();
        let [rank, size, _] = numbers(variable);
        let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
        Self { pid: std::process::id(), host, rank, size, lacks_pmi: lacks_pmi(variable) }
    }
}

/// Returns the number of this process among the ranks of its host, if a launcher sets it.
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
        assert_eq!(numbers(outside), [Some(1), Some(2), None], "the local rank is that of another launcher");
        assert_eq!(numbers(environment(&[("PMI_RANK", "1"), ("PMI_SIZE", "2")])), [Some(1), Some(2), None]);
        assert_eq!(numbers(environment(&[("PMI_RANK", "one")])), [None; 3], "it is no number");
        assert_eq!(numbers(environment(&[])), [None; 3]);
    }
}
