//! How launchers set environment variables for their ranks and not for themselves.

/// How a launcher sets environment variables for its ranks.
#[derive(Debug)]
pub(crate) struct Assigns {
    /// Returns the options that set these variables.
    pub(super) options: fn(&[(&str, String)]) -> Vec<String>,
    /// An option that may be given only once.
    pub(super) own: Option<&'static str>,
}

/// mpirun(1) of Open MPI.
pub(super) const OPEN_MPI: Assigns = Assigns {
    options: |variables| {
        let option = |(name, value): &(&str, String)| ["-x".to_owned(), format!("{name}={value}")];
        variables.iter().flat_map(option).collect()
    },
    own: None,
};

/// mpiexec(1) of Hydra.
pub(super) const HYDRA: Assigns = Assigns {
    options: |variables| {
        let option = |(name, value): &(&str, String)| ["-genv".to_owned(), (*name).to_owned(), value.clone()];
        variables.iter().flat_map(option).collect()
    },
    own: None,
};

/// srun(1): a value with commas is quoted.
pub(super) const SLURM: Assigns = Assigns {
    options: |variables| {
        let assign = |(name, value): &(&str, String)| match value.contains(',') {
            true => format!("{name}='{value}'"),
            false => format!("{name}={value}"),
        };
        let all: Vec<_> = std::iter::once("ALL".to_owned()).chain(variables.iter().map(assign)).collect();
        vec![format!("--export={}", all.join(","))]
    },
    own: Some("--export"),
};
