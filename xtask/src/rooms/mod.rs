//! `cargo xtask rooms`: counts the files that a new pattern, axis, column or endpoint needs. A
//! patch of each is applied, built and tried.
//!
//! The patches are `xtask/rooms/NAME.patch`. The heading of a patch, above its first `diff`, says
//! how to try it: `$ rdmascope ...` runs in the patched checkout (`{out}` is a folder for its
//! files), and its output must contain the text of each line `> TEXT` below.

mod patch;
mod scratch;
#[cfg(test)]
mod tests;

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

use self::patch::Patch;
use self::scratch::Scratch;
use crate::{shell, tidy};

const USAGE: &str = "\
usage: cargo xtask rooms [--apply | --keep NAME]

Applies each patch of xtask/rooms to a copy of the checkout, builds it, tries it, and counts the files that it touches.

  --apply      only applies the patches and counts their files, in seconds
  --keep NAME  writes the uncommitted changes of the checkout into xtask/rooms/NAME.patch, below the heading of that patch";

/// An addition, and how many files it may touch.
struct Room {
    name: &'static str,
    files_max: usize,
}

const ROOMS: [Room; 4] = [
    Room { name: "pattern", files_max: 4 },
    Room { name: "axis", files_max: 3 },
    Room { name: "column", files_max: 1 },
    Room { name: "endpoint", files_max: 4 },
];

/// `cargo xtask rooms`.
pub(crate) fn with(mut arguments: impl Iterator<Item = String>) -> Result<()> {
    match (arguments.next().as_deref(), arguments.next()) {
        (None, _) => run(true),
        (Some("--apply"), None) => run(false),
        (Some("--keep"), Some(name)) if ROOMS.iter().any(|room| room.name == name) => {
            keep(&shell::root(), &name)
        }
        _ => bail!(USAGE),
    }
}

/// Tries all patches, or only applies them.
pub(crate) fn run(builds: bool) -> Result<()> {
    let root = shell::root();
    let mut wrong = Vec::new();
    for room in &ROOMS {
        match measure(&root, &root.join("target/rooms"), room, builds) {
            Ok(said) => println!("{}: {said}", room.name),
            Err(error) => wrong.push(format!("{}: {error:#}", room.name)),
        }
    }
    if builds {
        println!("{}", tidy::circles()?);
    }
    ensure!(wrong.is_empty(), "{}", wrong.join("\n"));
    Ok(())
}

/// Applies a room's patch and, if `builds` is set, builds and tries it. Returns a sentence about
/// the files that it touches.
fn measure(root: &Path, folder: &Path, room: &Room, builds: bool) -> Result<String> {
    let place = place(room.name);
    let text = fs::read_to_string(root.join(&place)).with_context(|| place.clone())?;
    let patch = Patch::read(&text).with_context(|| place.clone())?;
    let scratch = Scratch::new(root, folder)?;
    scratch.apply(&root.join(&place)).with_context(|| {
        format!(
            "{place} no longer applies: run `git apply --3way {place}`, resolve the conflicts, then \
             `cargo xtask rooms --keep {}`",
            room.name
        )
    })?;
    if builds {
        let tried =
            scratch.build().and_then(|()| patch.steps.iter().try_for_each(|step| scratch.attempt(step)));
        // The next copy removes the patch's changes.
        tried.with_context(|| format!("{place} applies, but does not work"))?;
    }
    let files = patch.files.len();
    let files_max = room.files_max;
    ensure!(files <= files_max, "{files} files touched, more than {files_max}: {}", patch.files.join(", "));
    Ok(format!("{files} files touched, at most {files_max}: {}", patch.files.join(", ")))
}

fn place(name: &str) -> String {
    format!("xtask/rooms/{name}.patch")
}

/// Writes the changes of the checkout into a patch, including files that git does not track.
fn keep(root: &Path, name: &str) -> Result<()> {
    let place = place(name);
    let path = root.join(&place);
    let old = fs::read_to_string(&path).unwrap_or_else(|_| format!("$ rdmascope --help\n> {name}\n\n"));
    // With a separate index, so that the staged changes of the checkout stay as they are.
    let index = tempfile::NamedTempFile::new()?;
    let git = |words: &[&str]| {
        let output =
            Command::new("git").args(words).env("GIT_INDEX_FILE", index.path()).current_dir(root).output()?;
        ensure!(output.status.success(), "git {}: {}", words[0], String::from_utf8_lossy(&output.stderr));
        Ok(String::from_utf8(output.stdout)?)
    };
    git(&["read-tree", "HEAD"])?;
    git(&["add", "--all", "."])?;
    let changes = git(&["diff", "--cached", "HEAD", "--", ".", ":!xtask/rooms"])?;
    ensure!(!changes.is_empty(), "the checkout has no changes to keep");
    fs::create_dir_all(root.join("xtask/rooms"))?;
    fs::write(&path, format!("{}{changes}", patch::heading(&old)))?;
    println!("{place} has these changes now; revert them in the checkout with `git apply --reverse {place}`");
    Ok(())
}
