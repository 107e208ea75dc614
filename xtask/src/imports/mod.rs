//! Which file of a crate uses definitions of which other file, and the circles of these arrows.
//!
//! An arrow leads from the file that names an item, by a path or a `use`, to the file that defines
//! the item. A `pub use` between them is an arrow of its own file. `mod child;` and imports of
//! tests are no arrows.

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

/// The root files of a crate, relative to its folder.
const ROOTS: [&str; 2] = ["src/lib.rs", "src/main.rs"];

/// The files of a crate and the arrows between them.
#[derive(Default)]
pub(crate) struct Graph {
    /// Paths relative to the root of the repository.
    pub(crate) files: BTreeSet<String>,
    /// From one file to another file: the names that the first file uses from the second.
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
