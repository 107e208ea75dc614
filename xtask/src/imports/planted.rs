//! A crate for tests of the code that reads crates.

use std::fs;

use anyhow::Result;

use super::{Graph, of_crate};

/// A crate in a temporary folder, which is removed when this is dropped.
pub(crate) struct Planted(tempfile::TempDir);

impl Planted {
    pub(crate) fn new(files: &[(&str, &str)]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = folder.path().join("crates/planted/src").join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        Self(folder)
    }

    pub(crate) fn read(&self) -> Result<Graph> {
        of_crate(self.0.path(), "crates/planted")
    }

    pub(crate) fn graph(&self) -> Graph {
        self.read().unwrap()
    }
}
