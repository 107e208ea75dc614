//! Values of flags that are words of an axis: the words and their help are those of plans.

use bench::point::{Choice, Operation};
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use serde::de::DeserializeOwned;

/// A type whose values are words that a flag can take.
pub(crate) trait Word: Choice + Clone + DeserializeOwned + Send + Sync {}

impl<T: Choice + Clone + DeserializeOwned + Send + Sync> Word for T {}

/// Reads any word of a type.
pub(crate) fn words<T: Word>() -> impl TypedValueParser<Value = T> {
    parser(T::VARIANTS.iter().map(|variant| (variant.word, variant.help())))
}

/// Reads a word of a type, where the pattern has these words only.
pub(crate) fn some_words<T: Word>(some: &[&str]) -> impl TypedValueParser<Value = T> {
    let variants = T::VARIANTS.iter().filter(|variant| some.contains(&variant.word));
    parser(variants.map(|variant| (variant.word, variant.help())))
}

/// Reads an atomic operation, as perftest's `-A` names them.
pub(crate) fn atomics() -> impl TypedValueParser<Value = Operation> {
    let possible = [("CMP_AND_SWAP", "Compare and swap"), ("FETCH_AND_ADD", "Fetch and add")];
    PossibleValuesParser::new(possible.map(|(name, help)| PossibleValue::new(name).help(help))).map(|text| {
        if text.eq_ignore_ascii_case("CMP_AND_SWAP") { Operation::CompareSwap } else { Operation::FetchAdd }
    })
}

fn parser<T: Word>(
    words: impl Iterator<Item = (&'static str, &'static str)>,
) -> impl TypedValueParser<Value = T> {
    // The rest of what documents a variant is for readers of the code.
    let sentence = |help: &'static str| help.split(". ").next().unwrap_or(help);
    let possible = words.map(|(word, help)| PossibleValue::new(spelled(word)).help(sentence(help)));
    PossibleValuesParser::new(possible).map(|text| {
        // The flag may ignore case, so the text need not be the word.
        let is_meant = |word: &&'static str| spelled(word).eq_ignore_ascii_case(&text);
        let word = T::VARIANTS.iter().map(|variant| variant.word).find(is_meant);
        let word = word.expect("clap accepts possible values alone");
        serde_json::from_value(word.into()).expect("a type reads its own words")
    })
}

/// A word of a plan as the command line spells it: with dashes.
fn spelled(word: &'static str) -> &'static str {
    match word {
        "event_repoll" => "event-repoll",
        "pub_sub" => "pub-sub",
        _ => word,
    }
}

#[cfg(test)]
mod tests {
    use bench::axis::{Kind, ROWS};
    use bench::point::{Poll, Protocol, Service};
    use clap::{Arg, Command};

    use super::*;

    fn read<T: Word>(text: &str) -> Option<T> {
        let arg = Arg::new("value").ignore_case(true).value_parser(words::<T>());
        let matches = Command::new("test").arg(arg).try_get_matches_from(["test", text]).ok()?;
        matches.get_one::<T>("value").cloned()
    }

    #[test]
    fn flags_take_the_words_of_plans() {
        assert_eq!(read("rc"), Some(Service::Rc));
        assert_eq!(read("event-repoll"), Some(Poll::EventRepoll));
        assert_eq!(read("pub-sub"), Some(Protocol::PubSub));
        assert_eq!(read::<Poll>("event_repoll"), None);
    }

    #[test]
    fn words_of_flags_have_dashes() {
        let skipped = ["operation", "endpoint", "setup", "traffic", "step"];
        for row in ROWS.iter().filter(|row| !row.flags.is_empty() && !skipped.contains(&row.name)) {
            let Kind::Choice(variants) = row.kind else { continue };
            assert!(variants.iter().all(|variant| !spelled(variant.word).contains('_')), "{}", row.name);
        }
    }
}
