//! The names of the runs of an export, by which rows and metrics distinguish them.

use std::collections::BTreeMap;
use std::path::{Component, Path};

use crate::failure::{Usage, harmless};

/// Returns a name for each directory: the last part of its path, and as many parts before it as
/// tell it from the other directories. The name of `.` is that of the directory that it stands for.
///
/// # Errors
///
/// If a directory is given twice.
pub(super) fn names(directories: &[&Path]) -> Result<Vec<String>, Usage> {
    let parts: Vec<Vec<String>> = directories.iter().map(|directory| parts(directory)).collect();
    let mut lengths = vec![1; parts.len()];
    loop {
        let of =
            |(parts, length): (&Vec<String>, &usize)| parts[parts.len().saturating_sub(*length)..].join("/");
        let names: Vec<String> = parts.iter().zip(&lengths).map(of).collect();
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        names.iter().for_each(|name| *counts.entry(name).or_default() += 1);
        let shared: Vec<usize> = (0..names.len()).filter(|index| counts[&*names[*index]] > 1).collect();
        let Some(first) = shared.first() else { return Ok(names) };
        let longer: Vec<usize> =
            shared.iter().copied().filter(|index| lengths[*index] < parts[*index].len()).collect();
        if longer.is_empty() {
            let shown = harmless(&directories[*first].display().to_string());
            return Err(Usage(format!("the run {shown} is given twice: give each run once")));
        }
        longer.into_iter().for_each(|index| lengths[index] += 1);
    }
}

/// The names on the way from the root to a directory.
fn parts(directory: &Path) -> Vec<String> {
    let whole = directory.canonicalize();
    let name = |component: Component<'_>| match component {
        Component::Normal(name) => Some(name.to_string_lossy().into_owned()),
        _ => None,
    };
    whole.as_deref().unwrap_or(directory).components().filter_map(name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(directories: &[&str]) -> Result<Vec<String>, String> {
        let directories: Vec<&Path> = directories.iter().map(Path::new).collect();
        names(&directories).map_err(|error| error.to_string())
    }

    #[test]
    fn runs_of_one_name_are_told_apart_by_their_parents() {
        assert_eq!(named(&["/no/a", "/no/b"]).unwrap(), ["a", "b"]);
        let turns = ["/no/base/1", "/no/new/1", "/no/base/2", "/1"];
        assert_eq!(named(&turns).unwrap(), ["base/1", "new/1", "2", "1"]);
        assert_eq!(named(&["/x/a/1", "/y/a/1", "/y/b/1"]).unwrap(), ["x/a/1", "y/a/1", "b/1"]);
    }

    #[test]
    fn a_run_that_is_given_twice_is_refused() {
        let error = named(&["/no/a", "/no/b", "/no/a"]).unwrap_err();
        assert_eq!(error, "the run /no/a is given twice: give each run once");
        // Also under another name.
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().display().to_string();
        assert!(named(&[&path, &format!("{path}/.")]).is_err());
    }
}
