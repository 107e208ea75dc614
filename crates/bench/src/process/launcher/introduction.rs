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

/// The numbers that the environment has for this rank: its own, of how many, and among those of its
/// host.
fn numbers(variable: impl Fn(&str) -> Option<String>) -> [Option<u32>; 3] {
    let number = |name: &str| variable(name)?.parse::<u32>().ok();
    let row = VARIABLES.iter().find(|row| number(row[0]).is_some());
    row.map_or([None; 3], |row| row.map(number))
}

impl Introduction {
    /// Of this process.
    pub(crate) fn own() -> Self {
        let [rank, size, _] = numbers(|name| std::env::var(name).ok());
        let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
        Self { pid: std::process::id(), host, rank, size }
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
        assert_eq!(numbers(environment(&[("PMI_RANK", "1"), ("PMI_SIZE", "2")])), [Some(1), Some(2), None]);
        assert_eq!(numbers(environment(&[("PMI_RANK", "one")])), [None; 3], "it is no number");
        assert_eq!(numbers(environment(&[])), [None; 3]);
    }
}
