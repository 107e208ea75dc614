//! Framed messages in a byte stream, and the recognition of everything else.
//!
//! A stream begins with a readable line, `rdmascope 0.2.0 protocol 3`. A banner of ssh, an error of
//! a shell or an older version is thus recognised at once, and printed. Frames follow:
//!
//! | bytes | what |
//! |---|---|
//! | 4 | marker F5 52 44 53: no text begins with it, so stray text is noticed |
//! | 4 | length of the message in bytes, little-endian, at most [`MESSAGE_BYTES_MAX`] |
//! | 4 | number of samples, little-endian, at most [`crate::point::RAW_SAMPLES_MAX`] |
//! | ... | the message, JSON |
//! | ... | the samples, 8 bytes each, little-endian |
//!
//! The reader trusts no input: it allocates memory for the bytes that have arrived, not for the
//! length that a header announces, and never panics.

use std::io::{self, Write};

use crate::Error;
use crate::point::RAW_SAMPLES_MAX;

/// The version of the messages and frames. Coordinator and agent must have the same.
pub const PROTOCOL: u32 = 3;

/// The longest message, in bytes: room for a histogram of 100,000 buckets.
pub const MESSAGE_BYTES_MAX: usize = 8 << 20;

/// The longest frame, in bytes.
pub const FRAME_BYTES_MAX: usize = HEADER_BYTES + MESSAGE_BYTES_MAX + 8 * RAW_SAMPLES_MAX as usize;

/// The first line of a stream.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Greeting {
    /// The version of the program that sent it.
    pub version: String,
    /// [`PROTOCOL`] of the program that sent it.
    pub protocol: u32,
}

impl Greeting {
    /// Returns the greeting of this program.
    pub fn ours() -> Self {
        Self { version: env!("CARGO_PKG_VERSION").to_owned(), protocol: PROTOCOL }
    }

    /// Returns the line, with its newline.
    pub fn to_line(&self) -> String {
        format!("{NAME} {} protocol {}\n", self.version, self.protocol)
    }

    /// Refuses a program with another protocol.
    ///
    /// # Errors
    ///
    /// [`Error::OtherProtocol`].
    pub fn check(&self) -> Result<(), Error> {
        let ours = Self::ours();
        if self.protocol == ours.protocol {
            return Ok(());
        }
        Err(Error::OtherProtocol {
            theirs: format!("{NAME} {} with protocol {}", self.version, self.protocol),
            ours: format!("{NAME} {} with protocol {}", ours.version, ours.protocol),
        })
    }
}

/// A received message: unparsed JSON, and its samples.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Frame {
    /// The message, JSON.
    pub message: Vec<u8>,
    /// Raw samples; empty where the message has none.
    pub samples: Vec<u64>,
}

impl Frame {
    /// Writes the frame.
    ///
    /// # Errors
    ///
    /// If the writer fails, or the frame is longer than a reader accepts.
    pub fn write(&self, writer: &mut impl Write) -> io::Result<()> {
        let too_long = || io::Error::new(io::ErrorKind::InvalidInput, "a message is too long for a frame");
        if self.message.len() > MESSAGE_BYTES_MAX || self.samples.len() as u64 > RAW_SAMPLES_MAX {
            return Err(too_long());
        }
        let length = u32::try_from(self.message.len()).map_err(|_| too_long())?;
        let count = u32::try_from(self.samples.len()).map_err(|_| too_long())?;
        let mut bytes = Vec::with_capacity(HEADER_BYTES + self.message.len() + 8 * self.samples.len());
        bytes.extend_from_slice(&MARKER);
        bytes.extend_from_slice(&length.to_le_bytes());
        bytes.extend_from_slice(&count.to_le_bytes());
        bytes.extend_from_slice(&self.message);
        self.samples.iter().for_each(|sample| bytes.extend_from_slice(&sample.to_le_bytes()));
        writer.write_all(&bytes)
    }
}

/// Decodes a stream piece by piece, as it arrives.
#[derive(Debug, Default)]
pub struct Decoder {
    bytes: Vec<u8>,
    /// The number of leading `bytes` that are decoded.
    done: usize,
}

impl Decoder {
    /// Appends bytes that have arrived.
    pub fn push(&mut self, bytes: &[u8]) {
        if self.done > self.bytes.len() / 2 {
            self.bytes.drain(..self.done);
            self.done = 0;
        }
        self.bytes.extend_from_slice(bytes);
    }

    /// Returns the greeting, once it is complete.
    ///
    /// # Errors
    ///
    /// [`Error::NoGreeting`] as soon as the bytes cannot become one.
    pub fn greeting(&mut self) -> Result<Option<Greeting>, Error> {
        let parsed = parse_greeting(&self.bytes[self.done..])?;
        Ok(parsed.map(|(greeting, used)| {
            self.done += used;
            greeting
        }))
    }

    /// Returns the next frame, once it is complete.
    ///
    /// # Errors
    ///
    /// [`Error::BrokenFrame`] as soon as the bytes cannot become one.
    pub fn frame(&mut self) -> Result<Option<Frame>, Error> {
        let parsed = parse_frame(&self.bytes[self.done..])?;
        Ok(parsed.map(|(frame, used)| {
            self.done += used;
            frame
        }))
    }

    /// Whether the bytes so far end in the middle of a greeting or frame.
    pub fn is_partial(&self) -> bool {
        self.unread_bytes() > 0
    }

    /// Returns the number of bytes that have arrived and are not decoded yet.
    pub fn unread_bytes(&self) -> usize {
        self.bytes.len() - self.done
    }

    /// Returns the first line of the undecoded bytes, shortened and escaped for a terminal.
    pub fn first_line(&self) -> String {
        quotable(&self.bytes[self.done..])
    }
}

/// Parses a greeting at the start of `bytes`. Returns the greeting and its length in bytes, or
/// `None` if more bytes are needed.
///
/// # Errors
///
/// [`Error::NoGreeting`] if the bytes cannot become a greeting.
pub fn parse_greeting(bytes: &[u8]) -> Result<Option<(Greeting, usize)>, Error> {
    let foreign = || Error::NoGreeting { line: quotable(bytes) };
    let window = &bytes[..bytes.len().min(GREETING_BYTES_MAX)];
    // Even if the first byte is wrong, the parser waits for the whole first line: the error quotes
    // it.
    let starts = window.iter().position(|byte| !byte.is_ascii_whitespace()).unwrap_or(window.len());
    let Some(end) = window[starts..].iter().position(|byte| *byte == b'\n').map(|end| starts + end) else {
        return if bytes.len() < GREETING_BYTES_MAX { Ok(None) } else { Err(foreign()) };
    };
    let line = std::str::from_utf8(&bytes[..end]).map_err(|_| foreign())?;
    let mut words = line.split(' ');
    let greeting = match (words.next(), words.next(), words.next(), words.next(), words.next()) {
        (Some(NAME), Some(version), Some("protocol"), Some(protocol), None) => {
            let protocol = protocol.parse().map_err(|_| foreign())?;
            Greeting { version: version.to_owned(), protocol }
        }
        _ => return Err(foreign()),
    };
    Ok(Some((greeting, end + 1)))
}

/// Parses a frame at the start of `bytes`. Returns the frame and its length in bytes, or `None` if
/// more bytes are needed.
///
/// # Errors
///
/// [`Error::BrokenFrame`] if the bytes cannot become a frame.
pub fn parse_frame(bytes: &[u8]) -> Result<Option<(Frame, usize)>, Error> {
    let known = bytes.len().min(MARKER.len());
    if bytes[..known] != MARKER[..known] {
        let line = quotable(bytes);
        return Err(Error::BrokenFrame { reason: format!("{line} came in the place of a message") });
    }
    let (Some(length), Some(count)) = (le_u32(bytes, 4), le_u32(bytes, 8)) else { return Ok(None) };
    if length as usize > MESSAGE_BYTES_MAX {
        let reason = format!("a message announces {length} bytes, and the limit is {MESSAGE_BYTES_MAX}");
        return Err(Error::BrokenFrame { reason });
    }
    if u64::from(count) > RAW_SAMPLES_MAX {
        let reason = format!("a message announces {count} samples, and the limit is {RAW_SAMPLES_MAX}");
        return Err(Error::BrokenFrame { reason });
    }
    let message_end = HEADER_BYTES + length as usize;
    let end = message_end + 8 * count as usize;
    let (Some(message), Some(samples)) = (bytes.get(HEADER_BYTES..message_end), bytes.get(message_end..end))
    else {
        return Ok(None);
    };
    let samples = samples.as_chunks::<8>().0.iter().map(|sample| u64::from_le_bytes(*sample)).collect();
    Ok(Some((Frame { message: message.to_vec(), samples }, end)))
}

/// Returns the first line of foreign bytes: quoted, shortened, and escaped for a terminal.
pub(super) fn quotable(bytes: &[u8]) -> String {
    let line = bytes.split(|byte| *byte == b'\n').find(|line| !line.trim_ascii().is_empty()).unwrap_or(bytes);
    let cut = &line[..line.len().min(QUOTE_BYTES_MAX)];
    let dots = if cut.len() < line.len() { "..." } else { "" };
    format!("\"{}{dots}\"", String::from_utf8_lossy(cut.trim_ascii()).escape_debug())
}

fn le_u32(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..)?.first_chunk().map(|bytes| u32::from_le_bytes(*bytes))
}

const NAME: &str = "rdmascope";
/// F5 occurs in no UTF-8 text.
const MARKER: [u8; 4] = [0xF5, b'R', b'D', b'S'];
const HEADER_BYTES: usize = 12;
/// The longest greeting, in bytes. A stream without a greeting in these is an error.
const GREETING_BYTES_MAX: usize = 128;
/// The most bytes of a foreign line that are quoted.
const QUOTE_BYTES_MAX: usize = 100;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn bytes_of(frame: &Frame) -> Vec<u8> {
        let mut bytes = Vec::new();
        frame.write(&mut bytes).unwrap();
        bytes
    }

    fn greeting_error(bytes: &[u8]) -> String {
        parse_greeting(bytes).unwrap_err().to_string()
    }

    proptest! {
        #[test]
        fn foreign_bytes_never_panic(bytes: Vec<u8>) {
            let _ = parse_greeting(&bytes);
            let _ = parse_frame(&bytes);
            let _ = parse_frame(&[&MARKER, bytes.as_slice()].concat());
            let _ = parse_greeting(&[b"rdmascope ", bytes.as_slice()].concat());
        }

        #[test]
        fn what_was_written_is_read_however_it_is_cut(
            frames in prop::collection::vec((prop::collection::vec(any::<u8>(), 0..40),
                prop::collection::vec(any::<u64>(), 0..9)), 0..5),
            piece in 1usize..17,
        ) {
            let frames: Vec<Frame> =
                frames.into_iter().map(|(message, samples)| Frame { message, samples }).collect();
            let mut stream = Greeting::ours().to_line().into_bytes();
            frames.iter().for_each(|frame| stream.extend(bytes_of(frame)));
            let mut decoder = Decoder::default();
            let mut greeting = None;
            let mut read = Vec::new();
            for bytes in stream.chunks(piece) {
                decoder.push(bytes);
                if greeting.is_none() {
                    greeting = decoder.greeting().unwrap();
                }
                while greeting.is_some() && let Some(frame) = decoder.frame().unwrap() {
                    read.push(frame);
                }
            }
            prop_assert_eq!(greeting, Some(Greeting::ours()));
            prop_assert_eq!(read, frames);
            prop_assert!(!decoder.is_partial());
        }

        #[test]
        fn a_cut_frame_is_incomplete_not_wrong(message: Vec<u8>, samples: Vec<u64>, cut in 0.0..1.0) {
            let bytes = bytes_of(&Frame { message, samples });
            let cut = (bytes.len() as f64 * cut) as usize;
            prop_assert_eq!(parse_frame(&bytes[..cut]).unwrap(), None);
        }
    }

    #[test]
    fn what_is_no_greeting_is_shown() {
        for (bytes, shown) in [
            (
                &b"bash: line 1: rdmascope: command not found\n"[..],
                "\"bash: line 1: rdmascope: command not found\"",
            ),
            (b"\r\n\r\nWelcome to node7\nmore", "\"Welcome to node7\""),
            (b"rdmascope: error\n", "\"rdmascope: error\""),
            (b"rdmascope 1.0 protocol x\n", "\"rdmascope 1.0 protocol x\""),
            (b"\x1b[31mred\n", "\"\\u{1b}[31mred\""),
        ] {
            assert!(greeting_error(bytes).contains(shown), "{}", greeting_error(bytes));
        }
        assert!(greeting_error(&[b'x'; 500]).contains("xxx...\""));
        let endless = [b"rdmascope ".as_slice(), &[b'x'; 500]].concat();
        assert!(parse_greeting(&endless).is_err() && parse_greeting(&endless[..50]).unwrap().is_none());
    }

    #[test]
    fn lengths_are_bounded_before_anything_is_allocated() {
        for (length, count, reason) in [
            (u32::MAX, 0, "a message announces 4294967295 bytes, and the limit is 8388608"),
            (2, u32::MAX, "a message announces 4294967295 samples, and the limit is 4194304"),
        ] {
            let bytes = [&MARKER[..], &length.to_le_bytes(), &count.to_le_bytes()].concat();
            assert!(parse_frame(&bytes).unwrap_err().to_string().contains(reason));
        }
        let text = parse_frame(b"Segmentation fault\n").unwrap_err().to_string();
        assert!(text.contains("\"Segmentation fault\" came in the place of a message"), "{text}");
    }
}
