//! Which file of a crate uses what another file defines, and the circles that such arrows make.
//!
//! An arrow leads from the file that names a thing, by a path or a `use`, to the file that defines
//! it: past every `pub use` between them, which is an arrow of the file that it stands in. `mod
//! child;` and what tests use are no arrows.

pub(crate) mod circles;
mod module;
mod names;
#[cfg(test)]
pub(crate) mod planted;
mod read;
mod resolve;
#[cfg(test)]
mod tests;
mod tokens;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use anyhow::Result;

/// Where the modules of a crate begin, relative to its folder.
const ROOTS: [&str; 2] = ["src/lib.rs", "src/main.rs"];

/// The files of a crate and the arrows between them.
#[derive(Default)]
pub(crate) struct Graph {
    /// Paths relative to the root of the repository.
    pub(crate) files: BTreeSet<String>,
    /// From a file to another one: the names that the first takes from the second.
    pub(crate) arrows: BTreeMap<(String, String), BTreeSet<String>>,
}

/// Reads the modules of the crate in a folder of a repository.
pub(crate) fn of_crate(repository: &Path, folder: &str) -> Result<Graph> {
    let mut graph = Graph::default();
    for root in crate_roots(&repository.join(folder)) {
        let tree = read::read(repository, &root)?;
        graph.files.extend(tree.files.iter().cloned());
        for (from, to, name) in resolve::arrows(&tree) {
            let arrow = (tree.files[from].clone(), tree.files[to].clone());
            graph.arrows.entry(arrow).or_default().insert(name);
        }
    }
    Ok(graph)
}

fn crate_roots(folder: &Path) -> Vec<PathBuf> {
    let programs = std::fs::read_dir(folder.join("src/bin")).into_iter().flatten().flatten();
    let programs =
        programs.map(|program| program.path()).filter(|path| path.extension().is_some_and(|x| x == "rs"));
    ROOTS.iter().map(|root| folder.join(root)).filter(|root| root.exists()).chain(programs).collect()
}
