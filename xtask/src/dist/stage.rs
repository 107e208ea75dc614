//! The tree of files that packages install.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use anyhow::{Context, Result};

use super::build::Build;
use super::notices;
use crate::shell;

/// Shells for which completions are installed, and where.
const COMPLETIONS: [(&str, &str); 3] = [
    ("bash", "share/bash-completion/completions/rdmascope"),
    ("zsh", "share/zsh/vendor-completions/_rdmascope"),
    ("fish", "share/fish/vendor_completions.d/rdmascope.fish"),
];

/// Puts all files below a prefix (`usr`, or the directory of a tarball). A system that `is_debian`
/// has the common licences.
pub(super) fn stage(build: &Build, prefix: &Path, is_debian: bool) -> Result<()> {
    place(&build.program(), &prefix.join("bin/rdmascope"), 0o755)?;
    // The program has a copy inside: with this one it writes none into a user's cache.
    place(&build.library(), &prefix.join("lib/rdmascope/librdmascope_preload.so"), 0o644)?;
    let program = build.program().to_string_lossy().into_owned();
    let pages = prefix.join("share/man/man1");
    fs::create_dir_all(&pages)?;
    shell::run_quietly(&[&program, "man", "--directory", &pages.to_string_lossy()])?;
    for (name, path) in COMPLETIONS {
        write(&prefix.join(path), shell::output(&[&program, "completions", name])?.as_bytes())?;
    }
    let docs = prefix.join("share/doc/rdmascope");
    for path in
        shell::output(&["git", "ls-files", "README.md", "ARCHITECTURE.md", "contrib", "docs", "plans"])?
            .lines()
    {
        place(&build.checkout.join(path), &docs.join(path), 0o644)?;
    }
    write(&docs.join("copyright"), notices::copyright(&build.checkout, is_debian)?.as_bytes())
}

/// Copies a file.
pub(super) fn place(from: &Path, to: &Path, mode: u32) -> Result<()> {
    let bytes = fs::read(from).with_context(|| format!("cannot read {}", from.display()))?;
    write(to, &bytes)?;
    Ok(fs::set_permissions(to, Permissions::from_mode(mode))?)
}

/// Writes a file that all may read.
pub(super) fn write(to: &Path, bytes: &[u8]) -> Result<()> {
    fs::create_dir_all(to.parent().context("a file has a directory")?)?;
    fs::write(to, bytes).with_context(|| format!("cannot write {}", to.display()))?;
    Ok(fs::set_permissions(to, Permissions::from_mode(0o644))?)
}

/// Compresses each file of a directory, as Debian does with manual pages: `gzip -9`, without names
/// and times.
pub(super) fn compress(directory: &Path) -> Result<()> {
    let mut words = vec!["gzip", "-9", "-n"];
    let paths: Vec<_> = fs::read_dir(directory)?.collect::<std::io::Result<Vec<_>>>()?;
    let paths: Vec<_> = paths.iter().map(|entry| entry.path().to_string_lossy().into_owned()).collect();
    words.extend(paths.iter().map(String::as_str));
    shell::run_quietly(&words)
}
