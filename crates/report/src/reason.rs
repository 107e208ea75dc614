//! Merges reasons that differ in one word, such as the name of a signal rate, or in numbers.

use std::collections::BTreeSet;

/// A sentence with alternatives at one word.
#[derive(Debug)]
pub(crate) struct Merged {
    words: Vec<String>,
    /// The position of the word that differs, and its alternatives.
    differs: Option<(usize, Vec<String>)>,
    /// How many times it was added.
    pub(crate) count: u64,
    /// The labels that it was added for, without repeats.
    pub(crate) labels: Vec<String>,
}

/// Of more alternatives than this, the first and the last are shown.
const ALTERNATIVES_MAX: usize = 6;

/// Adds a sentence to a list: to a sentence that differs from it in one word, if there is one.
pub(crate) fn add(list: &mut Vec<Merged>, sentence: &str, label: &str) {
    let words: Vec<String> = sentence.split_whitespace().map(str::to_owned).collect();
    let merged = match list.iter().position(|known| known.takes(&words).is_some()) {
        Some(index) => &mut list[index],
        None => {
            list.push(Merged { words: words.clone(), differs: None, count: 0, labels: Vec::new() });
            let last = list.len() - 1;
            &mut list[last]
        }
    };
    merged.take(&words);
    merged.count += 1;
    if !merged.labels.iter().any(|known| known == label) {
        merged.labels.push(label.to_owned());
    }
}

impl Merged {
    /// The sentence, with all alternatives.
    pub(crate) fn text(&self) -> String {
        let Some((at, alternatives)) = &self.differs else { return self.words.join(" ") };
        let tail: String = common_tail(alternatives);
        let bare: Vec<&str> = alternatives.iter().map(|a| &a[..a.len() - tail.len()]).collect();
        let said = match &bare[..] {
            [first, .., last] if bare.len() > ALTERNATIVES_MAX => format!("{first}, ..., {last}"),
            _ => bare.join(", "),
        };
        let mut words = self.words.clone();
        words[*at] = said + &tail;
        words.join(" ")
    }

    /// The position where the words differ from these; `None` if they differ in more than one
    /// place, or in another place than before.
    fn takes(&self, words: &[String]) -> Option<Option<usize>> {
        if words.len() != self.words.len() {
            return None;
        }
        let mut places = (0..words.len()).filter(|at| words[*at] != self.words[*at]);
        match (places.next(), places.next(), &self.differs) {
            (None, _, _) => Some(None),
            (Some(at), None, None) => Some(Some(at)),
            (Some(at), None, Some((known, _))) if at == *known => Some(Some(at)),
            _ => None,
        }
    }

    fn take(&mut self, words: &[String]) {
        let Some(Some(at)) = self.takes(words) else { return };
        let first = self.words[at].clone();
        let (_, alternatives) = self.differs.get_or_insert_with(|| (at, vec![first]));
        if !alternatives.contains(&words[at]) {
            alternatives.push(words[at].clone());
        }
    }
}

/// The punctuation at the end of all words.
fn common_tail(words: &[String]) -> String {
    let tail = |word: &String| word.len() - word.trim_end_matches(['.', ',', ';', ':', ')', '\'', '"']).len();
    let Some(first) = words.first() else { return String::new() };
    let end = &first[first.len() - tail(first)..];
    if words.iter().all(|word| word.ends_with(end) && word.len() > end.len()) {
        end.to_owned()
    } else {
        String::new()
    }
}

/// The causes of a reason: the first words of its parts that are no numbers. Reasons of the same
/// causes differ in their numbers, and in the ranks.
pub(crate) fn cause(text: &str) -> String {
    let is_number = |word: &&str| word.starts_with(|c: char| c.is_ascii_digit() || c == '-' || c == '+');
    let part = |part: &str| {
        let words = part.split_whitespace().filter(|word| !is_number(word));
        words.take(CAUSE_WORDS).collect::<Vec<_>>().join(" ")
    };
    let causes: BTreeSet<String> = text.split("; ").map(part).collect();
    causes.into_iter().collect::<Vec<_>>().join("; ")
}

/// Words that distinguish causes, such as "rank latency jumped" and "oversubscribed: ranks share".
const CAUSE_WORDS: usize = 3;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentences_that_differ_in_one_word_become_one() {
        let mut list = Vec::new();
        for rate in ["SDR", "DDR", "SDR", "QDR"] {
            add(&mut list, &format!("cannot set {rate}: no such link"), rate);
        }
        add(&mut list, "cannot open SDR: no such link", "x");
        let texts: Vec<_> = list.iter().map(|m| (m.text(), m.count, m.labels.len())).collect();
        let expected =
            [("cannot set SDR, DDR, QDR: no such link", 4, 3), ("cannot open SDR: no such link", 1, 1)];
        assert_eq!(texts, expected.map(|(text, n, labels)| (text.to_owned(), n, labels)));
    }

    #[test]
    fn many_alternatives_are_abridged() {
        let mut list = Vec::new();
        for size in 1..=9 {
            add(&mut list, &format!("{size} B is too much"), "");
        }
        assert_eq!(list[0].text(), "1, ..., 9 B is too much");
    }
}
