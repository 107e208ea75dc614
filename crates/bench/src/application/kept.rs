//! What a program printed or wrote, as it is kept: whole, or its beginning and its end.

use serde::{Deserialize, Serialize};

/// A text of a program.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Kept {
    /// The text. What is no UTF-8, and control characters but line feeds and tabs, are replaced.
    pub(crate) text: String,
    /// How many bytes the program has written.
    pub(crate) bytes: u64,
    /// How many bytes are left out of the middle.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub(crate) left_out: u64,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde's signature")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// Takes in what a program writes: all of it up to [`WHOLE_BYTES_MAX`], and then the end.
#[derive(Debug, Default)]
pub(super) struct Keeper {
    head: Vec<u8>,
    /// The last bytes behind the head, of which twice as many as are kept may be there.
    tail: Vec<u8>,
    bytes: u64,
}

impl Keeper {
    /// Takes in more of it.
    pub(super) fn take(&mut self, bytes: &[u8]) {
        self.bytes += bytes.len() as u64;
        let room = (WHOLE_BYTES_MAX / 2).saturating_sub(self.head.len()).min(bytes.len());
        let (head, rest) = bytes.split_at(room);
        self.head.extend_from_slice(head);
        self.tail.extend_from_slice(rest);
        if self.tail.len() > WHOLE_BYTES_MAX {
            self.tail.drain(..self.tail.len() - WHOLE_BYTES_MAX / 2);
        }
    }

    /// The last bytes of it.
    pub(super) fn end(&self) -> &[u8] {
        let end = if self.tail.is_empty() { &self.head } else { &self.tail };
        &end[end.len().saturating_sub(END_BYTES)..]
    }

    /// What is kept of it.
    pub(super) fn kept(mut self) -> Kept {
        let surplus = self.tail.len().saturating_sub(WHOLE_BYTES_MAX / 2);
        self.tail.drain(..surplus);
        let kept = self.head.len() + self.tail.len();
        let left_out = self.bytes - kept as u64;
        let head = readable(&self.head);
        let tail = readable(&self.tail);
        let text = match left_out {
            0 => readable(&[self.head, self.tail].concat()),
            _ => format!("{head}\n[{left_out} bytes left out]\n{tail}"),
        };
        Kept { text, bytes: self.bytes, left_out }
    }
}

/// The text without what a terminal would act on.
fn readable(bytes: &[u8]) -> String {
    let is_odd = |c: char| c.is_control() && c != '\n' && c != '\t';
    String::from_utf8_lossy(bytes).replace("\r\n", "\n").replace(is_odd, "\u{fffd}")
}

impl Kept {
    /// The text of a program that has said this.
    #[cfg(test)]
    pub(super) fn of(text: &str) -> Self {
        let mut keeper = Keeper::default();
        keeper.take(text.as_bytes());
        keeper.kept()
    }

    /// Its last lines, in one.
    pub(super) fn last_lines(&self) -> String {
        let lines: Vec<&str> = self.text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
        let last = lines[lines.len().saturating_sub(LINES)..].iter();
        let short = last.map(|line| match line.char_indices().nth(LINE_CHARS_MAX) {
            Some((end, _)) => format!("{}...", &line[..end]),
            None => (*line).to_owned(),
        });
        short.collect::<Vec<_>>().join(" | ").replace('\t', " ")
    }

    /// The same for the end of a sentence about where something is not.
    pub(super) fn end(&self) -> String {
        match self.last_lines() {
            none if none.is_empty() => ", which is empty".to_owned(),
            last => format!(", which ends with: {last}"),
        }
    }
}

/// A text that is not longer is kept whole; of a longer one, so many bytes.
pub(super) const WHOLE_BYTES_MAX: usize = 1 << 20;
/// More than a supervisor's line has.
const END_BYTES: usize = 1024;
/// Lines that an error quotes.
const LINES: usize = 5;
/// Characters of a line that an error quotes.
const LINE_CHARS_MAX: usize = 160;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_kept_whole_up_to_a_limit_and_then_its_ends() {
        let whole = "x".repeat(WHOLE_BYTES_MAX);
        let kept = Kept::of(&whole);
        assert!(kept.text == whole && kept.left_out == 0);
        let mut keeper = Keeper::default();
        keeper.take(b"first\n");
        for _ in 0..5000 {
            keeper.take("y".repeat(999).as_bytes());
            keeper.take(b"\n");
        }
        keeper.take(b"last\n");
        let kept = keeper.kept();
        assert_eq!(kept.bytes, 5_000_011);
        assert_eq!(kept.left_out, kept.bytes - WHOLE_BYTES_MAX as u64);
        assert!(kept.text.starts_with("first\n") && kept.text.ends_with("last\n"));
        assert!(kept.text.contains(&format!("[{} bytes left out]", kept.left_out)));
    }

    #[test]
    fn a_terminal_acts_on_nothing_of_it() {
        assert_eq!(Kept::of("a\x1b[31m\tb\r\nc\0").text, "a\u{fffd}[31m\tb\nc\u{fffd}");
    }

    #[test]
    fn the_last_lines_are_quoted() {
        assert_eq!(Kept::of("1\n\n2\n3\n4\n5\n6\n").end(), ", which ends with: 2 | 3 | 4 | 5 | 6");
        assert_eq!(Kept::of("\n").end(), ", which is empty");
        assert!(Kept::of(&"z".repeat(1000)).end().len() < 200);
    }
}
