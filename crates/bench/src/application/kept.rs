//! The output and files of an application: as they are searched, and as the record keeps them.

use serde::{Deserialize, Serialize};

/// The output of an application in one place.
#[derive(Debug, Default)]
pub(super) struct Said {
    /// The text. Bytes that are not UTF-8, and control characters except line feeds and tabs, are
    /// replaced.
    pub(super) text: String,
    /// The number of bytes that the application has written.
    pub(super) bytes: u64,
    /// The number of bytes of the middle that are not in the text, because there were too many to
    /// search.
    pub(super) left_out: u64,
}

/// The output of an application in the record: whole, or its start and its end.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Kept {
    /// The text. A separate line shows where the middle is left out.
    pub(crate) text: String,
    /// The number of bytes that the application has written.
    pub(crate) bytes: u64,
    /// Whether the middle is left out.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) is_cut: bool,
}

/// Collects the output of an application: all of it up to a limit, and then the end.
#[derive(Debug, Default)]
pub(super) struct Keeper {
    head: Vec<u8>,
    /// The last bytes after the head, up to twice as many as are kept.
    tail: Vec<u8>,
    bytes: u64,
}

impl Keeper {
    /// Adds bytes of the output.
    pub(super) fn take(&mut self, bytes: &[u8]) {
        self.bytes += bytes.len() as u64;
        let room = SEARCHED_BYTES_MAX.saturating_sub(self.head.len()).min(bytes.len());
        let (head, rest) = bytes.split_at(room);
        self.head.extend_from_slice(head);
        self.tail.extend_from_slice(rest);
        if self.tail.len() > 2 * TAIL_BYTES {
            self.tail.drain(..self.tail.len() - TAIL_BYTES);
        }
    }

    /// Drops all but the start and the end. The output of an application that did not end is not
    /// searched, and its point has no time left to handle more.
    pub(super) fn ends(mut self) -> Self {
        if self.head.len() > KEPT_BYTES_MAX {
            let mut rest = self.head.split_off(KEPT_BYTES_MAX);
            rest.append(&mut self.tail);
            self.tail = rest.split_off(rest.len().saturating_sub(TAIL_BYTES));
        }
        self
    }

    /// The collected output.
    pub(super) fn said(mut self) -> Said {
        let kept = self.head.len() + self.tail.len();
        let left_out = self.bytes - kept as u64;
        self.head.append(&mut self.tail);
        Said { text: readable(&self.head), bytes: self.bytes, left_out }
    }
}

/// The bytes as text, without control characters for terminals.
fn readable(bytes: &[u8]) -> String {
    let is_odd = |c: char| c.is_control() && c != '\n' && c != '\t';
    String::from_utf8_lossy(bytes).replace("\r\n", "\n").replace(is_odd, "\u{fffd}")
}

impl Said {
    /// The output `bytes` of an application.
    pub(super) fn of(bytes: &[u8]) -> Self {
        let mut keeper = Keeper::default();
        keeper.take(bytes);
        keeper.said()
    }

    /// The text for the record, cut so that its JSON has at most `json_bytes_max` bytes.
    pub(super) fn kept(&self, json_bytes_max: usize) -> Kept {
        let bytes = self.bytes;
        let is_whole = self.left_out == 0 && self.text.len() <= KEPT_BYTES_MAX;
        if is_whole && json_bytes(&self.text) <= json_bytes_max {
            return Kept { text: self.text.clone(), bytes, is_cut: false };
        }
        // An escaped character takes two bytes in JSON, so half of the room is always enough.
        let room = KEPT_BYTES_MAX.min(json_bytes_max / 2) / 2;
        let head = upto(&self.text, room);
        let tail = from(&self.text, self.text.len().saturating_sub(room).max(head.len()));
        Kept { text: format!("{head}[some of it is left out here]\n{tail}"), bytes, is_cut: true }
    }

    /// Its last lines, joined into one line.
    pub(super) fn last_lines(&self) -> String {
        let mut lines: Vec<&str> =
            self.text.lines().rev().map(str::trim).filter(|line| !line.is_empty()).take(LINES).collect();
        lines.reverse();
        let short = lines.into_iter().map(|line| match line.char_indices().nth(LINE_CHARS_MAX) {
            Some((end, _)) => format!("{}...", &line[..end]),
            None => line.to_owned(),
        });
        short.collect::<Vec<_>>().join(" | ").replace('\t', " ")
    }

    /// The last lines, as the end of a sentence about what the text lacks.
    pub(super) fn end(&self) -> String {
        match self.last_lines() {
            none if none.is_empty() => ", which is empty".to_owned(),
            last => format!(", which ends with: {last}"),
        }
    }
}

/// The bytes of a text in JSON.
fn json_bytes(text: &str) -> usize {
    text.len() + text.bytes().filter(|byte| matches!(byte, b'"' | b'\\' | b'\n' | b'\t')).count()
}

/// The whole lines in the first bytes of a text.
fn upto(text: &str, bytes: usize) -> &str {
    let end = boundary(text, bytes);
    &text[..text[..end].rfind('\n').map_or(0, |at| at + 1)]
}

/// The whole lines of a text after a place.
fn from(text: &str, bytes: usize) -> &str {
    let begin = boundary(text, bytes);
    &text[text[begin..].find('\n').map_or(text.len(), |at| begin + at + 1)..]
}

/// The last place between two characters, up to `bytes`.
fn boundary(text: &str, bytes: usize) -> usize {
    (0..=bytes.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or_default()
}

/// The number of first bytes that are kept of a longer output, besides its end.
const SEARCHED_BYTES_MAX: usize = 64 << 20;
/// The number of last bytes that are kept of a longer output.
const TAIL_BYTES: usize = 1 << 20;
/// The longest text that the record keeps whole.
const KEPT_BYTES_MAX: usize = 1 << 20;
/// The number of lines that an error quotes.
const LINES: usize = 5;
/// The number of characters of a line that an error quotes.
const LINE_CHARS_MAX: usize = 160;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_kept_whole_up_to_a_limit_and_then_its_first_and_last_lines() {
        let whole = "x".repeat(KEPT_BYTES_MAX);
        let kept = Said::of(whole.as_bytes()).kept(usize::MAX);
        assert!(kept.text == whole && !kept.is_cut);
        let mut keeper = Keeper::default();
        keeper.take(b"first\n");
        for _ in 0..5000 {
            keeper.take("y".repeat(999).as_bytes());
            keeper.take(b"\n");
        }
        keeper.take(b"last\n");
        let said = keeper.said();
        assert_eq!((said.bytes, said.text.len(), said.left_out), (5_000_011, 5_000_011, 0));
        let kept = said.kept(usize::MAX);
        assert!(kept.is_cut && kept.bytes == 5_000_011 && kept.text.len() <= KEPT_BYTES_MAX + 64);
        assert!(kept.text.starts_with("first\n") && kept.text.ends_with("last\n"));
        let lines: Vec<_> = kept.text.lines().map(str::len).collect();
        assert!(
            lines.iter().all(|length| [5, 4, 999, "[some of it is left out here]".len()].contains(length))
        );
    }

    #[test]
    fn what_is_kept_fits_its_room() {
        for text in
            ["\"\n".repeat(200_000), "\u{0}".repeat(900_000), "\u{e9}\n".repeat(300_000), "z".repeat(900_000)]
        {
            let kept = Said::of(text.as_bytes()).kept(100_000);
            let json = serde_json::to_string(&kept).unwrap();
            assert!(kept.is_cut && json.len() < 101_000, "{}", json.len());
        }
    }

    #[test]
    fn of_more_than_can_be_searched_the_end_is_there_too() {
        let mut keeper = Keeper::default();
        let block = vec![b'x'; 1 << 20];
        for _ in 0..70 {
            keeper.take(&block);
        }
        keeper.take(b"\nlast\n");
        let said = keeper.said();
        assert!(said.left_out > 0 && said.text.ends_with("\nlast\n"));
        assert_eq!(said.left_out + said.text.len() as u64, said.bytes);
    }

    #[test]
    fn of_what_did_not_end_the_ends_are_enough() {
        let of = |blocks: usize| {
            let mut keeper = Keeper::default();
            keeper.take(b"first\n");
            (0..blocks).for_each(|_| keeper.take(&[b'x'; 1 << 20]));
            keeper.take(b"\nlast\n");
            keeper.ends().said()
        };
        assert_eq!((of(0).left_out, of(0).text.as_str()), (0, "first\n\nlast\n"));
        for blocks in [1, 2, 70] {
            let said = of(blocks);
            assert!(said.text.starts_with("first\n") && said.text.ends_with("\nlast\n"));
            assert!(said.text.len() <= KEPT_BYTES_MAX + TAIL_BYTES);
            assert_eq!(said.left_out + said.text.len() as u64, said.bytes);
        }
    }

    #[test]
    fn a_terminal_acts_on_nothing_of_it() {
        assert_eq!(Said::of(b"a\x1b[31m\tb\r\nc\0").text, "a\u{fffd}[31m\tb\nc\u{fffd}");
    }

    #[test]
    fn the_last_lines_are_quoted() {
        assert_eq!(Said::of(b"1\n\n2\n3\n4\n5\t6\n7\n").end(), ", which ends with: 2 | 3 | 4 | 5 6 | 7");
        assert_eq!(Said::of(b"\n").end(), ", which is empty");
        assert!(Said::of(&[b'z'; 1000]).end().len() < 200);
    }
}
