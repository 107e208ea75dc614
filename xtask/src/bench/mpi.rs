//! Open MPI's point-to-point calls over shared memory, by the program `pingpong.c`.

use std::path::Path;
use std::sync::OnceLock;

use anyhow::{Context, Result};

use super::process;
use super::value::Value;
use crate::shell;

const SOURCE: &str = "xtask/src/bench/pingpong.c";

/// Compiles the program.
pub(super) fn build(program: &Path) -> Result<()> {
    let source = shell::root().join(SOURCE);
    let words =
        ["mpicc", "-O3", "-march=native", "-o", &program.to_string_lossy(), &source.to_string_lossy()];
    process::alone(&words)?;
    Ok(())
}

/// The transport of the messages.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Over {
    SharedMemory,
    /// UCX's RC transport over softdev.
    Softdev,
}

/// Runs a test once, `lat`, `rate` or `stream`, and summarises its batches.
pub(super) fn measure(program: &Path, test: &str, over: Over, cpus: &[String; 2]) -> Result<Value> {
    let program = program.to_string_lossy();
    // Open MPI's shared-memory transport is vader up to version 4 and sm since version 5. The ranks
    // are bound to CPUs below.
    let transports = format!("self,{}", if version()? < 5 { "vader" } else { "sm" });
    let rdmascope = process::built("rdmascope");
    let mut words = match over {
        Over::SharedMemory => vec!["mpirun", "--mca", "pml", "ob1", "--mca", "btl", &transports],
        Over::Softdev => {
            // Open MPI does not use UCX unless these lists have its transports and devices.
            let ucx = ["pml", "ucx", "--mca", "pml_ucx_tls", "any", "--mca", "pml_ucx_devices", "any"];
            [&["env", "UCX_TLS=rc,self", "mpirun", "--mca"], &ucx[..]].concat()
        }
    };
    words.extend(["--bind-to", "none"]);
    if shell::is_root() {
        words.push("--allow-run-as-root");
    }
    for (rank, cpu) in cpus.iter().enumerate() {
        if rank > 0 {
            words.push(":");
        }
        words.extend(["-n", "1"]);
        let rank = ["taskset", "-c", cpu, &program, test];
        let exec = [rdmascope.as_str(), "exec", "--"];
        words.extend(process::rank(&match over {
            Over::SharedMemory => rank.to_vec(),
            Over::Softdev => [&exec[..], &rank].concat(),
        }));
    }
    read(&process::launcher(&words)?)
}

/// The major version of Open MPI, which is read once.
fn version() -> Result<u32> {
    static VERSION: OnceLock<u32> = OnceLock::new();
    if let Some(version) = VERSION.get() {
        return Ok(*version);
    }
    let version = read_version(&process::alone(&["mpirun", "--version"])?)?;
    Ok(*VERSION.get_or_init(|| version))
}

fn read_version(printed: &str) -> Result<u32> {
    let version = printed.lines().next().and_then(|line| line.strip_prefix("mpirun (Open MPI) "));
    let version = version.with_context(|| {
        format!("mpirun is not Open MPI's: `{}`", printed.lines().next().unwrap_or_default())
    })?;
    version.split('.').next().and_then(|number| number.parse().ok()).context("Open MPI has no version")
}

/// Reads the output: one number for each batch.
fn read(printed: &str) -> Result<Value> {
    let numbers = printed.split_whitespace().map(|word| {
        word.parse::<f64>().with_context(|| format!("the Open MPI program printed `{word}`, not a number"))
    });
    Value::of_parts(numbers.collect::<Result<_>>()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_batches_are_read() {
        assert_eq!(
            read("325.105\n331.417\n6370.496\n").unwrap(),
            Value { median: Some(331.417), mean: Some((325.105 + 331.417 + 6370.496) / 3.0) }
        );
        assert!(read("").is_err() && read("There are not enough slots available").is_err());
    }

    #[test]
    fn the_version_is_read() {
        let printed = "mpirun (Open MPI) 4.1.4\n\nReport bugs to http://www.open-mpi.org/community/help/\n";
        assert_eq!(read_version(printed).unwrap(), 4);
        let error = read_version("HYDRA build details:\n    Version: 4.0.2\n").unwrap_err().to_string();
        assert_eq!(error, "mpirun is not Open MPI's: `HYDRA build details:`");
    }
}
