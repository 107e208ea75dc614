//! Reading small files below a root.
//!
//! Files are opened by system calls and not through the C library. The library that brings the
//! software device into a process (`rdmascope exec`, and ranks that connect through RDMA CM) shows
//! files of the device to callers of the C library, while a record holds what the kernel has.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use rustix::fs::{Dir, Mode, OFlags};

/// Facts by name; absent ones are not set.
#[derive(Debug, Default)]
pub(super) struct Facts(BTreeMap<String, String>);

impl Facts {
    pub(super) fn set(&mut self, name: impl Into<String>, value: Option<impl ToString>) {
        let value = value.map(|value| value.to_string()).filter(|value| !value.is_empty());
        self.0.extend(value.map(|value| (name.into(), value)));
    }

    pub(super) fn into_map(self) -> BTreeMap<String, String> {
        self.0
    }
}

/// The root of a file tree: `/`, or a tree that was made up or copied.
#[derive(Clone, Debug)]
pub struct Root(PathBuf);

impl Root {
    /// The tree below a path.
    pub fn new(path: &Path) -> Self {
        Self(path.to_owned())
    }

    /// A path below the root, absolute or not.
    pub fn path(&self, path: &str) -> PathBuf {
        self.0.join(path.trim_start_matches('/'))
    }

    /// The bytes of a file.
    pub fn bytes(&self, path: &str) -> io::Result<Vec<u8>> {
        let file = rustix::fs::open(self.path(path), OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
        let mut bytes = Vec::new();
        File::from(file).read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    /// The text of a file.
    pub fn text(&self, path: &str) -> Option<String> {
        Some(String::from_utf8_lossy(&self.bytes(path).ok()?).into_owned())
    }

    /// The first line of a file, without the space around it; `None` when it is empty.
    pub fn line(&self, path: &str) -> Option<String> {
        let text = self.text(path)?;
        text.lines().next().map(str::trim).filter(|line| !line.is_empty()).map(str::to_owned)
    }

    /// The names in a directory, with numbers in numeric order; empty when it cannot be read.
    pub fn names(&self, path: &str) -> Vec<String> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let directory = rustix::fs::open(self.path(path), flags, Mode::empty()).and_then(Dir::new);
        let entries = directory.into_iter().flatten().flatten();
        let names = entries.filter_map(|entry| entry.file_name().to_str().ok().map(str::to_owned));
        let mut names: Vec<String> = names.filter(|name| name != "." && name != "..").collect();
        names.sort_unstable_by_key(|name| (number_at_end(name), name.clone()));
        names
    }

    /// The names that consist of a prefix and a number, e.g. `cpu12` but not `cpuidle`.
    pub fn numbered(&self, path: &str, prefix: &str) -> Vec<String> {
        let is_numbered =
            |name: &String| name.strip_prefix(prefix).is_some_and(|rest| rest.parse::<u32>().is_ok());
        self.names(path).into_iter().filter(is_numbered).collect()
    }

    /// The different first lines of a file in several directories, e.g. of every CPU.
    pub(super) fn distinct(&self, directories: &[String], file: &str) -> Option<String> {
        distinct(directories.iter().filter_map(|directory| self.line(&format!("{directory}/{file}"))))
    }
}

/// The different values, each with its number of occurrences if there are several: `performance`,
/// or `performance x 6, powersave x 2`.
pub fn distinct(values: impl Iterator<Item = String>) -> Option<String> {
    let mut counts = BTreeMap::<String, usize>::new();
    values.for_each(|value| *counts.entry(value).or_default() += 1);
    match counts.len() {
        0 => None,
        1 => counts.into_keys().next(),
        _ => Some(
            counts.iter().map(|(value, count)| format!("{value} x {count}")).collect::<Vec<_>>().join(", "),
        ),
    }
}

/// The value of `name: value` or `name = value` in a text of such lines.
pub(super) fn field<'a>(text: &'a str, separator: char, name: &str) -> Option<&'a str> {
    fields(text, separator, name).next()
}

/// Every value of a name.
pub(super) fn fields<'a>(text: &'a str, separator: char, name: &str) -> impl Iterator<Item = &'a str> {
    let pairs = text.lines().filter_map(move |line| line.split_once(separator));
    pairs.filter(move |(key, _)| key.trim() == name).map(|(_, value)| value.trim())
}

/// The bracketed word in a list of choices: `always [madvise] never`.
pub(super) fn chosen(choices: &str) -> Option<&str> {
    choices.split_once('[')?.1.split_once(']').map(|(chosen, _)| chosen)
}

fn number_at_end(name: &str) -> u64 {
    let digits = name.len() - name.bytes().rev().take_while(u8::is_ascii_digit).count();
    name[digits..].parse().unwrap_or(0)
}
