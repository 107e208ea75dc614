//! The tarball for systems whose package manager is not Debian's, or whose glibc is old.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Result, ensure};

use super::build::{Build, OLD_GLIBC};
use super::{deb, stage};
use crate::shell;

/// Makes `rdmascope-VERSION-ARCH-glibc2.28.tar.gz`.
pub(super) fn make(build: &Build, out: &Path) -> Result<PathBuf> {
    for file in [build.program(), build.library()] {
        let newest = deb::newest_glibc(&file)?;
        ensure!(
            deb::parsed(&newest) <= deb::parsed(OLD_GLIBC),
            "{} uses a function of glibc {newest}: it would not start with {OLD_GLIBC}",
            file.display()
        );
    }
    let name = format!("rdmascope-{}-{}-glibc{OLD_GLIBC}", build.version, std::env::consts::ARCH);
    let scratch = build.scratch("tarball")?;
    stage::stage(build, &scratch.join(&name), false)?;
    let tar = scratch.join("tar");
    archive(&scratch, &name, &build.epoch, &tar)?;
    let path = out.join(format!("{name}.tar.gz"));
    gzip(&tar, &path)?;
    Ok(path)
}

/// Writes an archive of a directory's entry that is the same for the same files: sorted, of root,
/// and of one time.
pub(super) fn archive(directory: &Path, entry: &str, epoch: &str, path: &Path) -> Result<()> {
    shell::run_quietly(&[
        "tar",
        "--create",
        "--format=gnu",
        "--sort=name",
        "--owner=root:0",
        "--group=root:0",
        "--numeric-owner",
        &format!("--mtime=@{epoch}"),
        "--file",
        &path.to_string_lossy(),
        "--directory",
        &directory.to_string_lossy(),
        entry,
    ])
}

/// Compresses a file without its name and time.
pub(super) fn gzip(from: &Path, to: &Path) -> Result<()> {
    let from = from.to_string_lossy();
    shell::run_quietly(&["gzip", "-9", "-n", "-k", "-f", &from])?;
    Ok(fs::rename(format!("{from}.gz"), to)?)
}
