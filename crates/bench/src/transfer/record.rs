//! The records that the blocks of a transfer consist of.
//!
//! A block is either *packed*, with whole records, or *raw*: bytes of the current file, from the
//! current offset on. Numbers are little-endian. Directories are numbered from 1, in the order in
//! which they are sent; 0 is the target itself.
//!
//! # Invariants
//!
//! * Records of the peer are untrusted: reading one never panics, and each length is checked
//!   against the bytes that are there. A [`Name`] is a component that leads nowhere else.

use super::digest::DIGEST_BYTES;
use super::name::{NAME_BYTES_MAX, Name};

/// A record of the source.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum Record {
    /// A directory in another one. It gets the next number.
    Directory { parent: u32, name: Name, attributes: Attributes },
    /// A file begins. The sink already has `from` bytes of it, in an unfinished file.
    File { parent: u32, name: Name, attributes: Attributes, size: u64, from: u64 },
    /// A question whether the sink needs a file. The sink answers the offers in order.
    Offer { parent: u32, name: Name, attributes: Attributes, size: u64 },
    /// The attributes of a file that the sink already has with the right contents.
    Same { parent: u32, name: Name, attributes: Attributes },
    /// A symbolic link.
    Link { parent: u32, name: Name, attributes: Attributes, target: Box<[u8]> },
    /// Bytes of the current file follow.
    Data { bytes: u32 },
    /// A hole in the current file: it continues at this offset.
    Hole { to: u64 },
    /// The current file ends.
    End { is_whole: bool, digest: [u8; DIGEST_BYTES] },
    /// The following blocks come over another connection.
    Renew,
    /// The transfer ends.
    Bye,
}

/// The attributes of a file that are kept.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct Attributes {
    /// The permissions: the lowest nine bits of `st_mode`.
    pub(crate) mode: u16,
    /// The time of the last modification, in seconds since 1970.
    pub(crate) seconds: i64,
    /// The nanoseconds of that time, below 10^9.
    pub(crate) nanoseconds: u32,
}

/// The permissions that are kept: not setuid, setgid and the sticky bit.
pub(crate) const MODE_MASK: u16 = 0o777;
/// The longest text of a link, in bytes (`PATH_MAX` less the zero at its end).
const TARGET_BYTES_MAX: usize = 4095;
/// The bytes of the longest record.
pub(crate) const RECORD_BYTES_MAX: usize = 1 + 4 + 14 + 2 + NAME_BYTES_MAX + 2 + TARGET_BYTES_MAX;
/// The bytes of a [`Record::Data`], without the bytes of the file.
pub(crate) const DATA_BYTES: usize = 5;

/// Why a record or an answer cannot be read, in words that follow "the source sent a record that".
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Broken(pub(crate) &'static str);

const DIRECTORY: u8 = 1;
const FILE: u8 = 2;
const OFFER: u8 = 3;
const LINK: u8 = 4;
const DATA: u8 = 5;
const HOLE: u8 = 6;
const END: u8 = 7;
const BYE: u8 = 8;
const SAME: u8 = 9;
const RENEW: u8 = 10;

impl Record {
    /// Appends the record to `to`.
    pub(crate) fn write(&self, to: &mut Vec<u8>) {
        let named = |to: &mut Vec<u8>, kind: u8, parent: u32, name: &Name, attributes: &Attributes| {
            to.push(kind);
            to.extend(parent.to_le_bytes());
            attributes.write(to);
            to.extend((name.bytes().len() as u16).to_le_bytes());
            to.extend(name.bytes());
        };
        match self {
            Self::Directory { parent, name, attributes } => named(to, DIRECTORY, *parent, name, attributes),
            Self::File { parent, name, attributes, size, from } => {
                named(to, FILE, *parent, name, attributes);
                to.extend(size.to_le_bytes());
                to.extend(from.to_le_bytes());
            }
            Self::Offer { parent, name, attributes, size } => {
                named(to, OFFER, *parent, name, attributes);
                to.extend(size.to_le_bytes());
            }
            Self::Same { parent, name, attributes } => named(to, SAME, *parent, name, attributes),
            Self::Link { parent, name, attributes, target } => {
                named(to, LINK, *parent, name, attributes);
                to.extend((target.len() as u16).to_le_bytes());
                to.extend(&**target);
            }
            Self::Data { bytes } => {
                to.push(DATA);
                to.extend(bytes.to_le_bytes());
            }
            Self::Hole { to: offset } => {
                to.push(HOLE);
                to.extend(offset.to_le_bytes());
            }
            Self::End { is_whole, digest } => {
                to.push(END);
                to.push(u8::from(*is_whole));
                to.extend(digest);
            }
            Self::Renew => to.push(RENEW),
            Self::Bye => to.push(BYE),
        }
    }

    /// Reads the record at the start of `bytes`. Returns the record and its length in bytes.
    ///
    /// # Errors
    /// Why the bytes are not a record.
    pub(crate) fn read(bytes: &[u8]) -> Result<(Self, usize), Broken> {
        let mut from = Bytes(bytes);
        let record = match from.array::<1>()?[0] {
            kind @ (DIRECTORY | FILE | OFFER | LINK | SAME) => {
                let parent = from.u32()?;
                let attributes = Attributes::read(&mut from)?;
                let name = from.counted(NAME_BYTES_MAX)?;
                let name = Name::new(name).map_err(Broken)?;
                match kind {
                    DIRECTORY => Self::Directory { parent, name, attributes },
                    SAME => Self::Same { parent, name, attributes },
                    LINK => {
                        let target = from.counted(TARGET_BYTES_MAX)?;
                        if target.is_empty() || target.contains(&0) {
                            return Err(Broken("has a link with an invalid target"));
                        }
                        Self::Link { parent, name, attributes, target: target.into() }
                    }
                    OFFER => Self::Offer { parent, name, attributes, size: from.size()? },
                    _ => Self::File { parent, name, attributes, size: from.size()?, from: from.size()? },
                }
            }
            DATA => Self::Data { bytes: from.u32()? },
            HOLE => Self::Hole { to: from.size()? },
            END => {
                let is_whole = match from.array::<1>()?[0] {
                    0 => false,
                    1 => true,
                    _ => return Err(Broken("ends a file with an unknown status")),
                };
                Self::End { is_whole, digest: from.array()? }
            }
            RENEW => Self::Renew,
            BYE => Self::Bye,
            _ => return Err(Broken("has an unknown type")),
        };
        Ok((record, bytes.len() - from.0.len()))
    }
}

impl Attributes {
    fn write(&self, to: &mut Vec<u8>) {
        to.extend(self.mode.to_le_bytes());
        to.extend(self.seconds.to_le_bytes());
        to.extend(self.nanoseconds.to_le_bytes());
    }

    fn read(from: &mut Bytes<'_>) -> Result<Self, Broken> {
        let mode = u16::from_le_bytes(from.array()?) & MODE_MASK;
        let seconds = i64::from_le_bytes(from.array()?);
        let nanoseconds = from.u32()?;
        if nanoseconds >= 1_000_000_000 {
            return Err(Broken("has a time with more than 999999999 nanoseconds"));
        }
        Ok(Self { mode, seconds, nanoseconds })
    }
}

/// An answer of the sink.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum Answer {
    /// To an offer: the sink has the file.
    Has,
    /// To an offer: the sink has no part of the file.
    Wants,
    /// To an offer: the sink has whole chunks of the file, with these checksums, in an unfinished
    /// file.
    Part { digests: Vec<[u8; DIGEST_BYTES]> },
    /// To an offer: the sink has a file of that size, whose contents have this checksum.
    Holds { digest: [u8; DIGEST_BYTES] },
    /// The sink can receive no more, for this reason.
    Stop { words: String },
    /// Everything that was sent is in its place, except for the failures that the sink reports.
    Done,
}

/// The most checksums in an answer: those of the first 128 GiB of a file.
pub(crate) const PART_DIGESTS_MAX: usize = 2048;
/// The most bytes of words in an answer.
const WORDS_BYTES_MAX: usize = 4096;
/// The bytes of the longest answer.
pub(crate) const ANSWER_BYTES_MAX: usize = 3 + PART_DIGESTS_MAX * DIGEST_BYTES;

impl Answer {
    /// Appends the answer to `to`.
    pub(crate) fn write(&self, to: &mut Vec<u8>) {
        match self {
            Self::Has => to.push(1),
            Self::Wants => to.push(2),
            Self::Part { digests } => {
                to.push(3);
                to.extend((digests.len() as u16).to_le_bytes());
                digests.iter().for_each(|digest| to.extend(digest));
            }
            Self::Stop { words } => {
                let mut end = words.len().min(WORDS_BYTES_MAX);
                while !words.is_char_boundary(end) {
                    end -= 1;
                }
                to.push(4);
                to.extend((end as u16).to_le_bytes());
                to.extend(&words.as_bytes()[..end]);
            }
            Self::Done => to.push(5),
            Self::Holds { digest } => {
                to.push(6);
                to.extend(digest);
            }
        }
    }

    /// Reads the answer at the start of `bytes`. Returns the answer and its length in bytes.
    ///
    /// # Errors
    /// Why the bytes are not an answer.
    pub(crate) fn read(bytes: &[u8]) -> Result<(Self, usize), Broken> {
        let mut from = Bytes(bytes);
        let answer = match from.array::<1>()?[0] {
            1 => Self::Has,
            2 => Self::Wants,
            3 => {
                let count = usize::from(u16::from_le_bytes(from.array()?));
                if count > PART_DIGESTS_MAX {
                    return Err(Broken("has too many checksums"));
                }
                Self::Part { digests: (0..count).map(|_| from.array()).collect::<Result<_, _>>()? }
            }
            4 => {
                let words = from.counted(WORDS_BYTES_MAX)?;
                Self::Stop { words: String::from_utf8_lossy(words).into_owned() }
            }
            5 => Self::Done,
            6 => Self::Holds { digest: from.array()? },
            _ => return Err(Broken("has an unknown type")),
        };
        Ok((answer, bytes.len() - from.0.len()))
    }
}

/// Bytes that are read from the start.
struct Bytes<'a>(&'a [u8]);

impl<'a> Bytes<'a> {
    fn array<const N: usize>(&mut self) -> Result<[u8; N], Broken> {
        let (first, rest) = self.0.split_first_chunk().ok_or(CUT)?;
        self.0 = rest;
        Ok(*first)
    }

    fn u32(&mut self) -> Result<u32, Broken> {
        self.array().map(u32::from_le_bytes)
    }

    /// Reads the size of a file or an offset in it. The system's sizes are below 2^63.
    fn size(&mut self) -> Result<u64, Broken> {
        let size = u64::from_le_bytes(self.array()?);
        if i64::try_from(size).is_ok() { Ok(size) } else { Err(Broken("has a file of more than 2^63 bytes")) }
    }

    /// Reads bytes after their length, which is at most `most`.
    fn counted(&mut self, most: usize) -> Result<&'a [u8], Broken> {
        let count = usize::from(u16::from_le_bytes(self.array()?));
        if count > most {
            return Err(Broken("has a name or a text that is too long"));
        }
        let (first, rest) = self.0.split_at_checked(count).ok_or(CUT)?;
        self.0 = rest;
        Ok(first)
    }
}

const CUT: Broken = Broken("ends before it is complete");

#[cfg(test)]
mod tests;
