//! The directories of a tree, identified by numbers, and opened from the root component by
//! component.
//!
//! # Invariants
//!
//! * No symbolic link below the root is ever followed, and no name leads upwards. An opened
//!   directory is in the tree, whatever the peer sends and other processes change meanwhile.
//! * At most two directories are open: the root, and the last opened one.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{Mode, OFlags, openat};

use super::name::Name;

/// The number of the root.
pub(crate) const ROOT: u32 = 0;
/// The deepest nesting of directories.
pub(crate) const DEPTH_MAX: u32 = 128;
/// The most directories of a tree.
const DIRECTORIES_MAX: usize = 1 << 26;

/// A tree of directories.
pub(crate) struct Tree {
    root: OwnedFd,
    /// All directories except the root, in the order of their numbers.
    nodes: Vec<Node>,
    current: Option<(u32, OwnedFd)>,
}

struct Node {
    parent: u32,
    name: Name,
    depth: u32,
}

impl Tree {
    /// Returns the tree below a directory.
    pub(crate) fn new(root: OwnedFd) -> Self {
        Self { root, nodes: Vec::new(), current: None }
    }

    /// Adds a directory, which need not exist yet. Returns its number.
    ///
    /// # Errors
    /// If its parent is unknown, it is nested too deep, or the tree is full. The words follow "it".
    pub(crate) fn add(&mut self, parent: u32, name: Name) -> Result<u32, &'static str> {
        let depth = match parent {
            ROOT => 1,
            _ => self.node(parent).ok_or("is in a directory that was not sent")?.depth + 1,
        };
        if depth > DEPTH_MAX {
            return Err("is nested more than 128 directories deep");
        }
        if self.nodes.len() >= DIRECTORIES_MAX {
            return Err("is beyond the limit of 67,108,864 directories in a transfer");
        }
        self.nodes.push(Node { parent, name, depth });
        Ok(self.nodes.len() as u32)
    }

    /// Returns the number of directories, without the root.
    pub(crate) fn len(&self) -> u32 {
        self.nodes.len() as u32
    }

    fn node(&self, number: u32) -> Option<&Node> {
        self.nodes.get((number as usize).checked_sub(1)?)
    }

    /// Whether there is a directory of this number.
    pub(crate) fn has(&self, number: u32) -> bool {
        number == ROOT || self.node(number).is_some()
    }

    /// Returns the parent of a directory, and its name there; none for the root.
    pub(crate) fn place(&self, number: u32) -> Option<(u32, &Name)> {
        self.node(number).map(|node| (node.parent, &node.name))
    }

    /// Opens a directory.
    ///
    /// # Errors
    /// If a component of its path is not a directory, or cannot be opened.
    pub(crate) fn open(&mut self, number: u32) -> io::Result<BorrowedFd<'_>> {
        if number == ROOT {
            return Ok(self.root.as_fd());
        }
        if self.current.as_ref().is_none_or(|(current, _)| *current != number) {
            self.current = Some((number, self.find(number)?));
        }
        match &self.current {
            Some((_, directory)) => Ok(directory.as_fd()),
            None => Err(io::ErrorKind::NotFound.into()),
        }
    }

    fn find(&self, number: u32) -> io::Result<OwnedFd> {
        let mut path = Vec::new();
        let mut at = number;
        let mut directory = None;
        while let Some(node) = self.node(at) {
            path.push(&node.name);
            at = node.parent;
            if let Some((_, current)) = self.current.as_ref().filter(|(current, _)| *current == at) {
                directory = Some(current.as_fd());
                break;
            }
        }
        let mut opened: Option<OwnedFd> = None;
        for name in path.into_iter().rev() {
            let from = opened.as_ref().map(AsFd::as_fd).or(directory).unwrap_or(self.root.as_fd());
            opened = Some(open_directory(from, name)?);
        }
        opened.ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    /// Returns the path from the root of a name in a directory, for messages.
    pub(crate) fn path(&self, directory: u32, name: &Name) -> String {
        let mut path = name.to_string();
        let mut at = directory;
        while let Some(node) = self.node(at) {
            path = format!("{}/{path}", node.name);
            at = node.parent;
        }
        path
    }
}

/// Opens a directory in another one, and refuses symbolic links.
///
/// # Errors
/// The errors of openat(2).
pub(crate) fn open_directory(from: BorrowedFd<'_>, name: &Name) -> io::Result<OwnedFd> {
    let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::RDONLY;
    Ok(openat(from, name.os(), flags, Mode::empty())?)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn links_are_not_followed_and_depth_is_bounded() {
        let scratch = tempfile::tempdir().unwrap();
        let root = scratch.path().join("root");
        std::fs::create_dir_all(root.join("a/b/c")).unwrap();
        std::fs::create_dir_all(scratch.path().join("outside/x")).unwrap();
        symlink(scratch.path().join("outside"), root.join("a/out")).unwrap();
        let mut tree = Tree::new(std::fs::File::open(&root).unwrap().into());
        let name = |text: &str| Name::new(text.as_bytes()).unwrap();
        let a = tree.add(ROOT, name("a")).unwrap();
        let b = tree.add(a, name("b")).unwrap();
        let c = tree.add(b, name("c")).unwrap();
        let out = tree.add(a, name("out")).unwrap();
        let x = tree.add(out, name("x")).unwrap();
        for directory in [c, a, b, ROOT, c] {
            tree.open(directory).unwrap();
        }
        assert!(tree.open(out).is_err() && tree.open(x).is_err());
        assert_eq!(tree.path(c, &name("f")), "a/b/c/f");
        assert_eq!(tree.add(99, name("d")), Err("is in a directory that was not sent"));
        let deepest = (0..DEPTH_MAX).try_fold(ROOT, |parent, _| tree.add(parent, name("d"))).unwrap();
        assert!(tree.add(deepest, name("d")).is_err());
    }
}
