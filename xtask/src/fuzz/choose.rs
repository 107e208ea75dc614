//! Chooses the inputs that are kept: few, and as different as possible.

use std::collections::{BTreeMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};

use crate::fuzz::{build, libfuzzer};
use crate::shell;

/// The largest corpus of a target: its inputs and their bytes.
const MOST_FILES: usize = 150;
const MOST_BYTES: u64 = 300 << 10;

/// An input with its features: libFuzzer's numbers for edges with how often they are taken.
struct Input {
    path: PathBuf,
    bytes: u64,
    features: HashSet<u32>,
}

/// Chooses among the kept inputs and the new ones, and returns a line about the new corpus.
pub(super) fn keep(target: &str, sanitized: bool) -> Result<String> {
    let own = build::directory().join(target);
    let [merged, control] = ["merged", "merge.txt"].map(|name| own.join(name));
    for old in [&merged, &control] {
        let _ = fs::remove_dir_all(old).or_else(|_| fs::remove_file(old));
    }
    fs::create_dir_all(&merged)?;
    let log = own.join("merge-log.txt");
    let mut command = libfuzzer::command(target, sanitized, &log)?;
    command.arg("-merge=1").arg(format!("-max_len={}", libfuzzer::longest(target)));
    command.arg(format!("-merge_control_file={}", control.display()));
    command.arg(&merged).args(libfuzzer::kept(target)).arg(own.join("corpus"));
    let status = command.status().with_context(|| format!("cannot start {target}"))?;
    ensure!(status.success(), "{target} failed to merge its inputs ({status}): see {}", log.display());
    let text = fs::read_to_string(&control)?;
    let (chosen, all) = chosen(inputs(&text), MOST_FILES, MOST_BYTES);
    ensure!(!chosen.is_empty(), "{} names no input of {target}", control.display());
    let folder = shell::root().join("fuzz/corpus").join(target);
    let (files, bytes) = replace(&folder, &chosen)?;
    let reached = chosen.iter().flat_map(|input| &input.features).collect::<HashSet<_>>().len();
    Ok(format!("           kept: {files} inputs, {bytes} bytes, {reached} of {all} features"))
}

/// Reads libFuzzer's merge control file: the number of inputs, the number of inputs in the first
/// folder, their paths, and then a line `FT` with the features of each input, by its number.
fn inputs(text: &str) -> Vec<Input> {
    let mut lines = text.lines();
    let mut number = || lines.next().and_then(|line| line.parse::<usize>().ok()).unwrap_or_default();
    let files = number();
    number();
    let input = |path: &str| Input { path: path.into(), bytes: 0, features: HashSet::new() };
    let mut inputs: Vec<Input> = lines.by_ref().take(files).map(input).collect();
    for line in lines {
        let mut words = line.split(' ');
        let kind = words.next();
        let Some(input) = words.next().and_then(|at| inputs.get_mut(at.parse::<usize>().ok()?)) else {
            continue;
        };
        match kind {
            Some("STARTED") => {
                input.bytes = words.next().and_then(|word| word.parse().ok()).unwrap_or_default();
            }
            Some("FT") => input.features = words.filter_map(|word| word.parse().ok()).collect(),
            _ => {}
        }
    }
    inputs
}

/// Chooses, one after the other, the input that adds most features for its share of the limits.
/// Also returns how many features all inputs have.
fn chosen(mut inputs: Vec<Input>, most_files: usize, most_bytes: u64) -> (Vec<Input>, usize) {
    let all: HashSet<u32> = inputs.iter().flat_map(|input| input.features.iter().copied()).collect();
    let mut reached = HashSet::new();
    let mut chosen: Vec<Input> = Vec::new();
    let mut left = most_bytes;
    while chosen.len() < most_files {
        inputs.retain(|input| input.bytes <= left && !input.features.is_subset(&reached));
        let worth = |at: &usize| {
            let Input { bytes, features, .. } = &inputs[*at];
            let takes = 1.0 / most_files as f64 + *bytes as f64 / most_bytes as f64;
            features.difference(&reached).count() as f64 / takes
        };
        let best = (0..inputs.len()).max_by(|a, b| worth(a).total_cmp(&worth(b)));
        let Some(best) = best else { break };
        let input = inputs.swap_remove(best);
        left -= input.bytes;
        reached.extend(input.features.iter().copied());
        chosen.push(input);
    }
    (chosen, all.len())
}

/// Replaces the kept inputs by the chosen ones, which are named by a hash of their content. Returns
/// their number and their bytes.
fn replace(folder: &Path, chosen: &[Input]) -> Result<(usize, usize)> {
    let mut contents = BTreeMap::new();
    for input in chosen {
        let content = fs::read(&input.path)?;
        contents.insert(name(&content), content);
    }
    if folder.exists() {
        fs::remove_dir_all(folder)?;
    }
    fs::create_dir_all(folder)?;
    for (name, content) in &contents {
        fs::write(folder.join(name), content)?;
    }
    Ok((contents.len(), contents.values().map(Vec::len).sum()))
}

/// The name of a content (FNV-1a, 64 bits).
fn name(content: &[u8]) -> String {
    let hash = content.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    });
    format!("{hash:016x}")
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOTED: &str = "3\n0\na/long\na/short\na/other\nSTARTED 0 50\nFT 0 1 2 3\nCOV 0 1\nSTARTED 1 5\n\
        FT 1 1 2 3\nCOV 1 1\nSTARTED 2 9\nFT 2 3 4\nCOV 2\n";

    fn paths(most_files: usize, most_bytes: u64) -> Vec<String> {
        let (chosen, all) = chosen(inputs(NOTED), most_files, most_bytes);
        assert_eq!(all, 4);
        chosen.iter().map(|input| input.path.display().to_string()).collect()
    }

    #[test]
    fn the_most_different_inputs_are_kept() {
        assert_eq!(paths(9, 99), ["a/short", "a/other"]);
        assert_eq!(paths(1, 99), ["a/short"]);
        assert_eq!(paths(9, 4), Vec::<String>::new());
        assert_eq!(paths(9, 13), ["a/short"], "both have more than 13 bytes");
        assert!(inputs("").is_empty());
    }

    #[test]
    fn contents_have_names() {
        assert_eq!(name(b""), "cbf29ce484222325");
        assert_eq!(name(b"a"), "af63dc4c8601ec8c");
    }
}
