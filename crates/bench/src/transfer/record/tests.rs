use proptest::prelude::*;

use super::*;

fn name() -> impl Strategy<Value = Name> {
    prop::collection::vec(any::<u8>(), 1..=255).prop_filter_map("a component", |bytes| Name::new(&bytes).ok())
}

fn attributes() -> impl Strategy<Value = Attributes> {
    (0..=MODE_MASK, any::<i64>(), 0u32..1_000_000_000).prop_map(|(mode, seconds, nanoseconds)| Attributes {
        mode,
        seconds,
        nanoseconds,
    })
}

fn size() -> impl Strategy<Value = u64> {
    0..=i64::MAX.cast_unsigned()
}

fn record() -> impl Strategy<Value = Record> {
    let named = || (any::<u32>(), name(), attributes());
    let text = prop::collection::vec(1u8.., 1..300);
    prop_oneof![
        named().prop_map(|(parent, name, attributes)| Record::Directory { parent, name, attributes }),
        (named(), size(), size()).prop_map(|((parent, name, attributes), size, from)| {
            Record::File { parent, name, attributes, size, from }
        }),
        (named(), size()).prop_map(|((parent, name, attributes), size)| Record::Offer {
            parent,
            name,
            attributes,
            size
        }),
        named().prop_map(|(parent, name, attributes)| Record::Same { parent, name, attributes }),
        (named(), text).prop_map(|((parent, name, attributes), target)| {
            Record::Link { parent, name, attributes, target: target.into() }
        }),
        any::<u32>().prop_map(|bytes| Record::Data { bytes }),
        size().prop_map(|to| Record::Hole { to }),
        (any::<bool>(), any::<[u8; DIGEST_BYTES]>())
            .prop_map(|(is_whole, digest)| Record::End { is_whole, digest }),
        Just(Record::Renew),
        Just(Record::Bye),
    ]
}

fn answer() -> impl Strategy<Value = Answer> {
    prop_oneof![
        Just(Answer::Has),
        Just(Answer::Wants),
        prop::collection::vec(any::<[u8; DIGEST_BYTES]>(), 0..70)
            .prop_map(|digests| Answer::Part { digests }),
        ".{0,80}".prop_map(|words| Answer::Stop { words }),
        Just(Answer::Done),
        any::<[u8; DIGEST_BYTES]>().prop_map(|digest| Answer::Holds { digest }),
    ]
}

proptest! {
    #[test]
    fn what_is_written_is_read_again(records in prop::collection::vec(record(), 1..8)) {
        let mut bytes = Vec::new();
        records.iter().for_each(|record| record.write(&mut bytes));
        let mut at = 0;
        for record in &records {
            let (read, length) = Record::read(&bytes[at..]).unwrap();
            prop_assert_eq!(&read, record);
            prop_assert!(length <= RECORD_BYTES_MAX);
            at += length;
        }
        prop_assert_eq!(at, bytes.len());
        // The last record cannot be read if it is cut anywhere.
        let (_, last) = Record::read(&{
            let mut alone = Vec::new();
            records[records.len() - 1].write(&mut alone);
            alone
        }).unwrap();
        for cut in 1..=last {
            prop_assert!(Record::read(&bytes[bytes.len() - last..bytes.len() - cut]).is_err());
        }
    }

    #[test]
    fn answers_are_read_again(answer in answer()) {
        let mut bytes = Vec::new();
        answer.write(&mut bytes);
        prop_assert!(bytes.len() <= ANSWER_BYTES_MAX.max(3 + WORDS_BYTES_MAX));
        prop_assert_eq!(Answer::read(&bytes), Ok((answer, bytes.len())));
    }

    #[test]
    fn foreign_bytes_do_not_panic(bytes in prop::collection::vec(any::<u8>(), 0..600)) {
        if let Ok((record, length)) = Record::read(&bytes) {
            prop_assert!(length <= bytes.len());
            let mut again = Vec::new();
            record.write(&mut again);
            prop_assert_eq!(again.len(), length);
        }
        if let Ok((_, length)) = Answer::read(&bytes) {
            prop_assert!(length <= bytes.len());
        }
    }
}

#[test]
fn long_words_are_cut_between_characters() {
    let mut bytes = Vec::new();
    Answer::Stop { words: "ä".repeat(WORDS_BYTES_MAX) }.write(&mut bytes);
    let (read, _) = Answer::read(&bytes).unwrap();
    assert_eq!(read, Answer::Stop { words: "ä".repeat(WORDS_BYTES_MAX / 2) });
}
