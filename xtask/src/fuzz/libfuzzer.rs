//! Runs one target under libFuzzer and reads its output.

use std::fs::{self, File};
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result, ensure};

use crate::fuzz::build;
use crate::shell;

/// The limits of a run.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Limits {
    pub(super) runs: u64,
    pub(super) seconds: Option<u64>,
}

/// A directory in memory for temporary files of targets.
const MEMORY: &str = "/dev/shm";

/// The result of a run.
#[derive(Debug, PartialEq)]
pub(super) struct Done {
    runs: u64,
    seconds: f64,
    /// The number of edges that were taken, and of all edges in the program.
    edges: [u64; 2],
    pub(super) crashes: usize,
}

/// The heading of [`Done::row`].
pub(super) const HEADING: &str = "target           runs   seconds    runs/s     edges   in program   crashes";

impl Done {
    /// A row of the table.
    pub(super) fn row(&self, target: &str) -> String {
        let Self { runs, seconds, edges: [taken, edges], crashes } = self;
        let rate = *runs as f64 / seconds.max(0.1);
        format!("{target:<10} {runs:>10} {seconds:>9.0} {rate:>9.0} {taken:>9} {edges:>12} {crashes:>9}")
    }
}

/// The longest input of a target in bytes: about as long as its seeds, because longer ones are
/// slower.
pub(super) fn longest(target: &str) -> u64 {
    match target {
        "units" => 64,
        "settings" => 256,
        "channel" | "cm" | "programs" | "transfer" | "villas" => 512,
        "manager" => 1024,
        "record" => 32 << 10,
        _ => 4096,
    }
}

/// Runs a target on the kept inputs and on the inputs that it finds.
pub(super) fn run(target: &str, sanitized: bool, limits: &Limits) -> Result<Done> {
    let own = build::directory().join(target);
    let [found, artifacts] = ["corpus", "artifacts"].map(|name| own.join(name));
    for folder in [&found, &artifacts] {
        fs::create_dir_all(folder)?;
    }
    let before = files(&artifacts)?;
    let log = own.join("log.txt");
    let mut command = command(target, sanitized, &log)?;
    // libFuzzer writes new inputs to the first folder.
    command.arg(&found).args(kept(target)).arg(format!("-runs={}", limits.runs));
    command.arg(format!("-max_len={}", longest(target)));
    // No input of these lengths takes a second.
    command.arg("-timeout=60");
    command.arg(format!("-artifact_prefix={}/", artifacts.display()));
    if let Some(seconds) = limits.seconds {
        command.arg(format!("-max_total_time={seconds}"));
    }
    let start = Instant::now();
    let status = command.status().with_context(|| format!("cannot start {target}"))?;
    let seconds = start.elapsed().as_secs_f64();
    let crashes = files(&artifacts)?.saturating_sub(before);
    ensure!(status.success() || crashes > 0, "{target} failed ({status}): see {}", log.display());
    if crashes > 0 {
        eprintln!("xtask: {target} failed on the inputs in {}: see {}", artifacts.display(), log.display());
    }
    let text = String::from_utf8_lossy(&fs::read(&log)?).into_owned();
    let Said { runs, edges } = Said::read(&text);
    Ok(Done { runs, seconds, edges, crashes })
}

/// The program of a target. Its output goes to a file.
pub(super) fn command(target: &str, sanitized: bool, log: &Path) -> Result<Command> {
    let log = File::create(log)?;
    let mut command = Command::new(build::program(target, sanitized));
    command.current_dir(shell::root()).stdout(log.try_clone()?).stderr(log);
    // Without the call stacks of allocations, which are slow to collect: run a failing input again
    // without this variable to see them.
    command.env("ASAN_OPTIONS", "malloc_context_size=0:quarantine_size_mb=16");
    if Path::new(MEMORY).is_dir() {
        command.env("TMPDIR", MEMORY);
    }
    Ok(command)
}

/// The folders with kept inputs.
pub(super) fn kept(target: &str) -> Vec<std::path::PathBuf> {
    let folders = ["corpus", "regressions"].map(|name| shell::root().join("fuzz").join(name).join(target));
    folders.into_iter().filter(|folder| folder.is_dir()).collect()
}

fn files(folder: &Path) -> Result<usize> {
    Ok(fs::read_dir(folder)?.count())
}

/// The numbers in libFuzzer's output.
#[derive(Debug, Default, Eq, PartialEq)]
struct Said {
    runs: u64,
    edges: [u64; 2],
}

impl Said {
    fn read(text: &str) -> Self {
        let mut said = Self::default();
        for line in text.lines() {
            // `#1234 NEW    cov: 730 ft: 1034 corp: 44/4927b ...`, `Done 1234 runs in 5 second(s)`
            // and `INFO: Loaded 1 PC tables (5678 PCs): ...`.
            let words: Vec<&str> = line.split_whitespace().collect();
            let number =
                |at: usize| words.get(at).and_then(|word| word.trim_start_matches(['#', '(']).parse().ok());
            if line.starts_with('#') {
                said.runs = number(0).unwrap_or(said.runs);
                let at = words.iter().position(|word| *word == "cov:");
                said.edges[0] = at.and_then(|at| number(at + 1)).unwrap_or(said.edges[0]);
            } else if line.starts_with("Done ") {
                said.runs = number(1).unwrap_or(said.runs);
            } else if line.contains(" PC tables ") {
                said.edges[1] = number(5).unwrap_or(said.edges[1]);
            }
        }
        said
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_it_says_is_read() {
        let text = "INFO: Loaded 1 modules   (8514 inline 8-bit counters): 8514 [0x1, 0x2),\n\
            INFO: Loaded 1 PC tables (8514 PCs): 8514 [0x1,0x2),\n\
            #2\tINITED cov: 12 ft: 13 corp: 1/1b exec/s: 0 rss: 30Mb\n\
            #735810\tREDUCE cov: 730 ft: 1031 corp: 43/4685b lim: 512 exec/s: 5933 rss: 481Mb L: 173/256\n";
        assert_eq!(Said::read(text), Said { runs: 735_810, edges: [730, 8514] });
        let text = format!("{text}#1000000\tDONE   cov: 731 ft: 1\nDone 1000000 runs in 12 second(s)\n");
        assert_eq!(Said::read(&text), Said { runs: 1_000_000, edges: [731, 8514] });
        assert_eq!(Said::read("no such program"), Said::default());
    }

    #[test]
    fn a_row_is_as_wide_as_the_heading() {
        let done = Done { runs: 10_000_000, seconds: 362.4, edges: [506, 8514], crashes: 0 };
        assert_eq!(done.row("units").len(), HEADING.len());
    }
}
