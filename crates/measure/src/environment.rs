//! The machine, read from the files of the kernel and of the system. Nothing is run or changed, and
//! nothing needs root; what cannot be read is absent.
//!
//! Every function takes the root of a file tree, so that a test can make one up, and a report can
//! describe a tree that was copied from another machine.

use std::collections::BTreeMap;
use std::path::Path;

use crate::record::Environment;

mod cpu;
mod files;
mod infiniband;
mod isolation;
mod kernel;
mod memory;
mod network;
mod pcie;
mod process;
#[cfg(test)]
mod tests;

use files::Facts;
pub use files::{Root, distinct};
pub use process::stat_field;

impl Environment {
    /// The environment of this process.
    pub fn capture(rank: u32, pinned: Option<Vec<u32>>) -> Self {
        Self::read(Path::new("/"), rank, pinned)
    }

    /// The environment that a file tree describes.
    pub fn read(root: &Path, rank: u32, pinned: Option<Vec<u32>>) -> Self {
        let root = Root::new(root);
        let hostname = root.line("proc/sys/kernel/hostname").unwrap_or_else(|| "unknown".to_owned());
        let facts: BTreeMap<_, _> = GROUPS
            .iter()
            .map(|(name, read)| ((*name).to_owned(), read(&root).into_map()))
            .chain(
                pinned.as_deref().map(|cpus| ("pinned_cpu".to_owned(), cpu::pinned(&root, cpus).into_map())),
            )
            .filter(|(_, facts)| !facts.is_empty())
            .collect();
        Self { rank, hostname, pinned_cpus: pinned, facts }
    }
}

/// Reads a group of facts.
type Read = fn(&Root) -> Facts;

/// The groups of facts.
const GROUPS: [(&str, Read); 9] = [
    ("cpu", cpu::cpu),
    ("infiniband", infiniband::infiniband),
    ("isolation", isolation::isolation),
    ("kernel", kernel::kernel),
    ("limits", kernel::limits),
    ("memory", memory::memory),
    ("network", network::network),
    ("numa", memory::numa),
    ("power", cpu::power),
];
