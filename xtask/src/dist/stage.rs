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

/// Files and directories of documentation. Debian's packages have the licences in `copyright`, and
/// the changes in `changelog.gz`.
const DOCUMENTS: [&str; 7] =
    ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "SECURITY.md", "contrib", "docs", "plans"];

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
    let paths = shell::output(&[&["git", "ls-files"], &DOCUMENTS[..]].concat())?;
    for path in paths.lines() {
        place(&build.checkout.join(path), &docs.join(path), 0o644)?;
    }
    for page in paths.lines().filter(|path| path.ends_with(".md")).map(|path| docs.join(path)) {
        let directory = page.parent().context("a page has a directory")?;
        let text = fs::read_to_string(&page)?;
        write(&page, without_dead_links(&text, |file| directory.join(file).exists()).as_bytes())?;
    }
    write(&docs.join("copyright"), notices::copyright(&build.checkout, is_debian)?.as_bytes())
}

/// Returns a page in which links to files that are not there are only their words.
fn without_dead_links(page: &str, is_there: impl Fn(&str) -> bool) -> String {
    let part = |(index, part): (usize, &str)| match index % 2 {
        0 => linked(part, &is_there),
        // A block of code.
        _ => part.to_owned(),
    };
    page.split("```").enumerate().map(part).collect::<Vec<_>>().join("```")
}

/// The same for text without code.
fn linked(mut rest: &str, is_there: impl Fn(&str) -> bool) -> String {
    let mut text = String::new();
    while let Some((before, after)) = rest.split_once("](") {
        let (Some(start), Some((target, behind))) = (before.rfind('['), after.split_once(')')) else { break };
        let file = target.split('#').next().unwrap_or_default();
        if file.is_empty() || target.contains("://") || is_there(file) {
            text += &format!("{before}]({target})");
        } else {
            text += &before[..start];
            text += &before[start + 1..];
        }
        rest = behind;
    }
    text + rest
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_to_files_that_are_not_installed_are_words() {
        let page =
            "[a](a.md), [b](../b.md#c), [c](#c) and [d](https://d/e).\n```rust\nf[0](b)\n```\n[`e`](e) ](f";
        let installed = without_dead_links(page, |file| file == "a.md");
        assert_eq!(installed, page.replace("[b](../b.md#c)", "b").replace("[`e`](e)", "`e`"));
    }
}
