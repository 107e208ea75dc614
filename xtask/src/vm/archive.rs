//! Writes the archive of the kernel's first file system: cpio, format `newc`
//! (Documentation/driver-api/early-userspace/buffer-format.rst of Linux).

use std::collections::BTreeSet;

/// An archive in memory. A directory is added with its first file.
#[derive(Debug, Default)]
pub(super) struct Archive {
    bytes: Vec<u8>,
    directories: BTreeSet<String>,
}

impl Archive {
    /// Adds an empty directory and its parents. `path` has no leading slash.
    pub(super) fn directory(&mut self, path: &str) {
        if let Some((above, _)) = path.rsplit_once('/') {
            self.directory(above);
        }
        if self.directories.insert(path.to_owned()) {
            self.entry(path, DIRECTORY | 0o755, &[]);
        }
    }

    /// Adds a file that every user may read and, if it is a program, run.
    pub(super) fn file(&mut self, path: &str, is_program: bool, content: &[u8]) {
        if let Some((above, _)) = path.rsplit_once('/') {
            self.directory(above);
        }
        self.entry(path, FILE | if is_program { 0o755 } else { 0o644 }, content);
    }

    /// The finished archive.
    pub(super) fn finish(mut self) -> Vec<u8> {
        self.entry("TRAILER!!!", 0, &[]);
        self.bytes
    }

    fn entry(&mut self, path: &str, mode: u32, content: &[u8]) {
        // Inode, mode, user, group, links, time, size, device (2), device of a special file (2),
        // length of the name with its NUL, checksum (unused). Inodes matter only to files with
        // several links; this archive has none.
        let links = if mode & DIRECTORY == DIRECTORY { 2 } else { 1 };
        let fields = [0, mode, 0, 0, links, 0, content.len() as u32, 0, 0, 0, 0, path.len() as u32 + 1, 0];
        self.bytes.extend(b"070701");
        for field in fields {
            self.bytes.extend(format!("{field:08X}").bytes());
        }
        self.bytes.extend(path.bytes());
        self.bytes.push(0);
        self.pad();
        self.bytes.extend(content);
        self.pad();
    }

    /// Pads to a multiple of four bytes, after names and contents.
    fn pad(&mut self) {
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
    }
}

/// Types of files in a mode (inode(7)).
const DIRECTORY: u32 = 0o040_000;
const FILE: u32 = 0o100_000;

#[cfg(test)]
mod tests {
    use super::*;

    /// The bytes that GNU cpio 2.13 writes for the same file, with times, inodes and devices set to
    /// 0.
    #[test]
    fn is_the_format() {
        let mut archive = Archive::default();
        archive.file("d/abc", true, b"hello");
        let bytes = archive.finish();
        let text = String::from_utf8(bytes).unwrap();
        let directory = concat!(
            "07070100000000000041ED0000000000000000000000020000000000000000",
            "000000000000000000000000000000000000000200000000d\0",
        );
        let file = concat!(
            "07070100000000000081ED0000000000000000000000010000000000000005",
            "000000000000000000000000000000000000000600000000d/abc\0hello\0\0\0",
        );
        assert!(text.starts_with(directory), "{text:?}");
        assert!(text[directory.len()..].starts_with(file), "{text:?}");
        assert!(text.ends_with("TRAILER!!!\0\0\0\0"), "{text:?}");
        assert_eq!(text.len() % 4, 0);
    }

    #[test]
    fn names_each_directory_once_and_before_its_files() {
        let mut archive = Archive::default();
        archive.file("a/b/one", false, b"");
        archive.file("a/b/two", false, b"");
        archive.directory("a/b");
        let text = String::from_utf8(archive.finish()).unwrap();
        let names: Vec<&str> =
            text.split('\0').filter(|part| part.len() > HEADER).map(|part| &part[HEADER..]).collect();
        assert_eq!(names, ["a", "a/b", "a/b/one", "a/b/two", "TRAILER!!!"]);
    }

    const HEADER: usize = 110;
}
