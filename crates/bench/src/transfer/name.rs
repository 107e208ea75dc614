//! Names of files and directories from the peer, one component each.

use std::ffi::OsStr;
use std::fmt;
use std::os::unix::ffi::OsStrExt;

use measure::text::plain;

/// A component of a path that stays in its directory: it is not empty, contains neither `/` nor
/// NUL, and is not `.` or `..`. Every other byte is allowed.
#[derive(Clone, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub(crate) struct Name(Box<[u8]>);

/// The longest component of a path on Linux (`NAME_MAX`), in bytes.
pub(crate) const NAME_BYTES_MAX: usize = 255;

/// The mark in the names of unfinished files. 16 hexadecimal digits follow it.
const MARK: &[u8] = b".rdmascope-";
/// The digits of the session after the mark.
const SESSION_DIGITS: usize = 16;
/// The most bytes of a file's name that the name of its unfinished file keeps.
const KEPT_BYTES: usize = 200;

impl Name {
    /// Checks a component.
    ///
    /// # Errors
    /// Why the bytes are not a component, in words that follow "the name".
    pub(crate) fn new(bytes: &[u8]) -> Result<Self, &'static str> {
        match bytes {
            b"" => Err("is empty"),
            b"." | b".." => Err("leads to another directory"),
            _ if bytes.contains(&b'/') => Err("contains a slash"),
            _ if bytes.contains(&0) => Err("contains a zero byte"),
            _ if bytes.len() > NAME_BYTES_MAX => Err("has more than 255 bytes"),
            _ if is_unfinished(bytes) => Err("is reserved for unfinished files"),
            _ => Ok(Self(bytes.into())),
        }
    }

    /// Returns the bytes of the name.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// Returns the name for system calls.
    pub(crate) fn os(&self) -> &OsStr {
        OsStr::from_bytes(&self.0)
    }

    /// Returns the name of the unfinished file of a session: a hidden file in the same directory.
    pub(crate) fn unfinished(&self, session: u64) -> Box<OsStr> {
        let mut name = b".".to_vec();
        name.extend(self.kept());
        name.extend(MARK);
        name.extend(format!("{session:016x}").as_bytes());
        OsStr::from_bytes(&name).into()
    }

    /// Returns the part that the name of the unfinished file keeps.
    fn kept(&self) -> &[u8] {
        &self.0[..self.0.len().min(KEPT_BYTES)]
    }

    /// Whether a name is that of an unfinished file for this name, in any session.
    pub(crate) fn is_unfinished_as(&self, name: &[u8]) -> bool {
        is_unfinished(name) && name[1..name.len() - MARK.len() - SESSION_DIGITS] == *self.kept()
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

/// Prints the name with invalid UTF-8 and control characters replaced.
impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&plain(&String::from_utf8_lossy(&self.0)))
    }
}

/// Whether a name is that of an unfinished file.
pub(crate) fn is_unfinished(name: &[u8]) -> bool {
    let Some((head, digits)) = name.split_last_chunk::<SESSION_DIGITS>() else { return false };
    let is_digit = |byte: &u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(byte);
    name.first() == Some(&b'.')
        && head.len() > MARK.len()
        && head.ends_with(MARK)
        && digits.iter().all(is_digit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_components_are_names() {
        for wrong in [&b""[..], b".", b"..", b"a/b", b"/", b"a\0", &[b'x'; 256]] {
            assert!(Name::new(wrong).is_err(), "{wrong:?}");
        }
        for right in [&b"a"[..], b"...", b"..a", b"-rf", b"\xff\x01\n", b" ", b"\\", &[b'x'; 255]] {
            assert_eq!(Name::new(right).unwrap().bytes(), right);
        }
    }

    #[test]
    fn unfinished_files_are_told_from_others() {
        let name = Name::new(b"data.bin").unwrap();
        let unfinished = name.unfinished(0xbeef);
        assert_eq!(unfinished.as_bytes(), b".data.bin.rdmascope-000000000000beef");
        assert!(name.is_unfinished_as(unfinished.as_bytes()));
        assert!(Name::new(unfinished.as_bytes()).is_err(), "nobody sends one");
        assert!(!Name::new(b"other").unwrap().is_unfinished_as(unfinished.as_bytes()));
        let long = Name::new(&[b'y'; 255]).unwrap();
        let unfinished = long.unfinished(u64::MAX);
        assert!(unfinished.len() <= NAME_BYTES_MAX && long.is_unfinished_as(unfinished.as_bytes()));
        for other in
            [&b".rdmascope-000000000000beef"[..], b"a.rdmascope-000000000000beef", b".a.rdmascope-beef"]
        {
            assert!(!is_unfinished(other), "{other:?}");
        }
    }
}
