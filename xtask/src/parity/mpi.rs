//! Ping-pongs and streams of programs that are linked to an MPI: `pingpong.c`, the OSU
//! Micro-Benchmarks and the Intel MPI Benchmarks. The last two are not built here: they are
//! measured if the directories in `OSU` and `IMB` or `PATH` have them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};

use super::plan::{Point, Quantity, Tool};
use crate::{process, shell};

const SOURCE: &str = "xtask/src/parity/pingpong.c";

/// The command that starts ranks of an MPI without binding them: both programs choose the same CPUs
/// themselves.
pub(super) fn launcher(mpi: &str) -> &'static str {
    match mpi {
        "openmpi" => "mpirun.openmpi --oversubscribe --bind-to none",
        _ => "mpirun.mpich",
    }
}

/// Variables that allow root to start ranks.
pub(super) const VARIABLES: [(&str, &str); 2] =
    [("OMPI_ALLOW_RUN_AS_ROOT", "1"), ("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")];

/// Returns why a point cannot be measured here, or `None` if it can.
pub(super) fn lacks(point: &Point) -> Option<String> {
    let mpi = point.service;
    let launcher = launcher(mpi).split(' ').next().unwrap_or_default();
    match point.tool {
        _ if !shell::is_there(launcher) => Some(format!("{launcher} is not installed")),
        Tool::Linked => {
            let compiler = format!("mpicc.{mpi}");
            (!shell::is_there(&compiler)).then(|| format!("{compiler} is not installed"))
        }
        _ => program(point).err().map(|error| error.to_string()),
    }
}

/// Runs the test once and returns a mean latency in ns, or messages per second.
pub(super) fn measure(point: &Point, scratch: &Path) -> Result<f64> {
    let size = point.size_bytes.to_string();
    let messages = point.messages.to_string();
    let program = program_or_build(point, scratch)?.to_string_lossy().into_owned();
    let lengths = scratch.join("lengths");
    fs::write(&lengths, format!("{size}\n"))?;
    let range = format!("{size}:{size}");
    // An iteration of the OSU Micro-Benchmarks is a window of 64 messages.
    let windows = (point.messages / 64).to_string();
    let lengths = lengths.to_string_lossy();
    let words: Vec<&str> = match (point.tool, point.quantity) {
        (Tool::Linked, _) => vec![&program, &size, &messages],
        (Tool::Imb, _) => {
            let exactly = ["-iter_policy", "off", "-iter", &messages, "-time", "100", "-msglen"];
            let name = point.test.rsplit(' ').next().unwrap_or_default();
            [&[&*program], &exactly[..], &[&lengths, name]].concat()
        }
        // Each message has its own buffer, as in rdmascope.
        (_, Quantity::Rate) => vec![&program, "-m", &range, "-i", &windows, "-b", "multiple"],
        // rdmascope reduces floats; the default of OSU would be chars.
        (_, Quantity::MeanOfRanks) => vec![&program, "-m", &range, "-i", &messages, "-T", "mpi_float"],
        _ => vec![&program, "-m", &range, "-i", &messages],
    };
    let mut command = start(point, &words);
    let printed = process::printed(&mut command, point.test)?;
    match point.tool {
        Tool::Linked => printed.trim().parse().context("the program printed no number"),
        Tool::Imb => imb(&printed, point),
        _ => osu(&printed, point),
    }
}

/// Starts two ranks, each on its CPU.
fn start(point: &Point, words: &[&str]) -> Command {
    let mut all: Vec<&str> = launcher(point.service).split(' ').collect();
    for (rank, cpu) in point.part.cpus().into_iter().enumerate() {
        if rank > 0 {
            all.push(":");
        }
        all.extend(["-np", "1", "taskset", "-c", cpu]);
        all.extend(words);
    }
    let mut command = Command::new(all[0]);
    command.args(&all[1..]).envs(VARIABLES).stdin(Stdio::null());
    command
}

/// The program of a point; `pingpong.c` is compiled once.
fn program_or_build(point: &Point, scratch: &Path) -> Result<PathBuf> {
    if point.tool != Tool::Linked {
        return program(point);
    }
    let program = scratch.join(format!("pingpong.{}", point.service));
    if !program.exists() {
        let source = shell::root().join(SOURCE);
        let compiler = format!("mpicc.{}", point.service);
        let options = ["-O2", "-Wall", "-Werror", "-o"];
        let words = [&[&*compiler], &options[..], &[&program.to_string_lossy(), &source.to_string_lossy()]];
        shell::output(&words.concat())?;
    }
    Ok(program)
}

/// Finds the OSU or Intel benchmark that is linked to the MPI of the point.
fn program(point: &Point) -> Result<PathBuf> {
    let (variable, name) = match point.tool {
        Tool::Imb => ("IMB", "IMB-MPI1"),
        _ => ("OSU", point.test),
    };
    let library = if point.service == "openmpi" { "libmpi.so.40" } else { "libmpich.so.12" };
    let named = std::env::var(variable).unwrap_or_default().replace("{mpi}", point.service);
    let directories: Vec<PathBuf> = std::env::split_paths(&named).collect();
    let found = find_all(name, &directories).find(|path| is_linked(path, library));
    found.with_context(|| {
        format!(
            "neither the directories in {variable} nor PATH have a {name} that is linked to {library} ({{mpi}} in {variable} \
             stands for {})",
            point.service
        )
    })
}

/// Whether a file contains the name of a library.
fn is_linked(path: &Path, library: &str) -> bool {
    let bytes = fs::read(path).unwrap_or_default();
    bytes.windows(library.len()).any(|window| window == library.as_bytes())
}

/// The files with a name in some directories, then in the directories of `PATH`.
fn find_all(name: &str, directories: &[PathBuf]) -> impl Iterator<Item = PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let all: Vec<PathBuf> = directories.iter().cloned().chain(std::env::split_paths(&path)).collect();
    let name = name.to_owned();
    all.into_iter().map(move |directory| directory.join(&name)).filter(|file| file.is_file())
}

/// Reads the last row of an OSU benchmark: `8   0.11` in us, `8   196.3` in 10^6 bytes per second,
/// or `8   196.3   24537500.0` with messages per second.
fn osu(printed: &str, point: &Point) -> Result<f64> {
    let mut rows = printed.lines().filter(|line| !line.trim().is_empty() && !line.starts_with('#'));
    let row = rows.next_back().context("the program printed no row")?;
    let numbers: Vec<f64> = row.split_whitespace().map_while(|word| word.parse().ok()).collect();
    ensure!(numbers.first() == Some(&(point.size_bytes as f64)), "the program printed a row `{row}`");
    let number = |index: usize| {
        numbers.get(index).copied().with_context(|| format!("the program printed a row `{row}`"))
    };
    Ok(match point.quantity {
        Quantity::Rate if numbers.len() > 2 => number(2)?,
        Quantity::Rate => number(1)? * 1e6 / point.size_bytes as f64,
        _ => number(1)? * 1e3,
    })
}

/// Reads the row of an Intel MPI Benchmark: `#bytes #repetitions t[usec] Mbytes/sec`, or of a
/// collective operation `#bytes #repetitions t_min[usec] t_max[usec] t_avg[usec]`.
fn imb(printed: &str, point: &Point) -> Result<f64> {
    let (columns, wanted) = if point.quantity == Quantity::MeanOfRanks { (5, 4) } else { (4, 2) };
    let numbers =
        |line: &str| -> Vec<f64> { line.split_whitespace().map_while(|word| word.parse().ok()).collect() };
    let mut rows = printed.lines().map(numbers);
    let row = rows.find(|row| row.len() == columns && row[0] == point.size_bytes as f64);
    Ok(row.context("the program printed no row for the size")?[wanted] * 1e3)
}

#[cfg(test)]
mod tests {
    use super::super::plan::{Amount, Part, points};
    use super::*;

    fn point(test: &str) -> Point {
        points(Part::Mpi, Amount::Quick, test)[0]
    }

    #[test]
    fn what_they_print_is_read() {
        let head = "# OSU MPI Latency Test v7.4\n# Datatype: MPI_CHAR.\n# Size       Avg Latency(us)\n";
        assert_eq!(
            osu(&format!("{head}8                       0.11\n"), &point("osu_latency")).unwrap(),
            110.0
        );
        assert_eq!(osu("# x\n8     196.0\n", &point("osu_bw")).unwrap(), 24.5e6);
        assert_eq!(osu("8  196.3   24537500.5\n", &point("osu_mbw_mr")).unwrap(), 24_537_500.5);
        assert!(osu(head, &point("osu_latency")).is_err() && osu("16 0.1\n", &point("osu_latency")).is_err());
        let printed = "#bytes #repetitions      t[usec]   Mbytes/sec\n            0       100000         0.10         0.00\n\
                       \x20           8       100000         0.12        66.67\n";
        let [pingpong, allreduce] = ["IMB PingPong", "IMB Allreduce"].map(point);
        assert_eq!(imb(printed, &pingpong).unwrap(), 120.0);
        assert!(imb(printed, &Point { size_bytes: 16, ..pingpong }).is_err());
        assert!(imb(printed, &allreduce).is_err());
        let printed = "#bytes #repetitions  t_min[usec]  t_max[usec]  t_avg[usec]\n\
                       \x20           8       100000         0.35         0.37         0.36\n";
        assert_eq!(imb(printed, &allreduce).unwrap(), 360.0);
    }

    #[test]
    fn a_program_of_another_mpi_is_not_taken() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("osu_latency");
        fs::write(&file, "\x7fELF libmpich.so.12 libc.so.6").unwrap();
        assert!(is_linked(&file, "libmpich.so.12") && !is_linked(&file, "libmpi.so.40"));
        assert_eq!(find_all("osu_latency", &[dir.path().to_owned()]).next(), Some(file));
    }
}
