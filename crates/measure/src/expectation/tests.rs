use serde_json::json;

use super::*;
use crate::figure::Unit;
use crate::units::Dimension::{Bandwidth, MessageRate, Number, Share, Time};

fn limit(text: &str) -> Limit {
    Bound::parse(text).unwrap().limit
}

#[test]
fn limits_are_read_in_the_base_of_records() {
    for (text, at, dimension) in [
        ("<= 5 us", 5e3, Time),
        ("<=5us", 5e3, Time),
        ("< 2 ms", 2e6, Time),
        ("< 1 s", 1e9, Time),
        (">= 100 Gb/s", 12.5e9, Bandwidth),
        ("> 8 Mb/s", 1e6, Bandwidth),
        (">= 1 MiB/s", 1_048_576.0, Bandwidth),
        (">= 2 Mmsg/s", 2e6, MessageRate),
        (">= 500k/s", 5e5, MessageRate),
        ("<= 0.1 %", 0.001, Share),
        ("<= 0", 0.0, Number),
    ] {
        assert_eq!(limit(text), Limit::Number { at, dimension }, "{text}");
    }
    assert_eq!(limit(">= 90 % of link"), Limit::OfLink(0.9));
    assert_eq!(limit(">=90% of link"), Limit::OfLink(0.9));
}

#[test]
fn a_limit_belongs_to_a_bound_as_it_is_written() {
    let kept = |text: &str| {
        let bound = Bound::parse(text).unwrap();
        [4.0, 5.0, 6.0].map(|number| bound.is_kept(number, 5.0))
    };
    assert_eq!(kept("< 5"), [true, false, false]);
    assert_eq!(kept("<= 5"), [true, true, false]);
    assert_eq!(kept("> 5"), [false, false, true]);
    assert_eq!(kept(">= 5"), [false, true, true]);
    assert!(!Bound::parse("<= 5").unwrap().is_kept(f64::NAN, 5.0));
}

#[test]
fn an_expectation_is_read_as_it_is_typed() {
    let read = |text: &str| Expectation::parse(text).unwrap().to_string();
    assert_eq!(read("p99 <= 5us"), "latency.p99_ns <= 5us");
    assert_eq!(read(" throughput >= 90% of link "), "throughput.bytes_per_s >= 90% of link");
    assert_eq!(read("rtt.max_ns<1 ms"), "rtt.max_ns <1 ms");
    assert_eq!(read("no_loss"), "messages_lost <= 0");
    let json = json!({ "quantity": "latency.p99_ns", "bound": "<= 5us" });
    let expectation = Expectation::parse("p99 <= 5us").unwrap();
    assert_eq!(serde_json::to_value(&expectation).unwrap(), json);
    assert_eq!(serde_json::from_value::<Expectation>(json).unwrap(), expectation);
}

#[test]
fn every_short_name_leads_to_a_number() {
    for (short, path) in SHORT.iter().filter(|(short, _)| *short != "missed") {
        assert!(crate::quantity::find(path).is_some(), "{short}");
    }
}

#[test]
fn what_is_no_expectation_is_refused_in_a_sentence() {
    let refusal = |text: &str| Expectation::parse(text).unwrap_err();
    assert_eq!(refusal("p99 5us"), format!("\"p99 5us\" is no quantity with a bound: {EXPRESSIONS}"));
    assert_eq!(refusal("<= 5us"), format!("\"<= 5us\" is no quantity with a bound: {EXPRESSIONS}"));
    assert_eq!(refusal("p99 <= 5 parsecs"), format!("\"<= 5 parsecs\" has no limit: {EXAMPLES}"));
    for limit in ["", "inf us", "0 % of link", "5 % of links", "1e/s", "-k/s"] {
        assert!(Bound::parse(&format!("<= {limit}")).is_err(), "{limit}");
    }
    assert_eq!(Bound::parse("5 us").unwrap_err(), format!("\"5 us\" is no bound: {EXAMPLES}"));
}

#[test]
fn a_limit_in_another_unit_is_refused_with_what_fits() {
    let refusal = |text: &str, of| Bound::parse(text).unwrap().check(of);
    assert_eq!(refusal("<= 5", Time), Err("give a time such as \"5 us\"".to_owned()));
    assert_eq!(refusal("<= 5 us", Share), Err("give a share such as \"0.1 %\"".to_owned()));
    for share in ["<= 2.5", "<= 0.1", "<= 1"] {
        assert_eq!(refusal(share, Share), Err("give a share such as \"0.1 %\"".to_owned()), "{share}");
    }
    assert!(refusal("<= 90 % of link", Time).is_err() && refusal("<= 90 %", Bandwidth).is_err());
    for (limit, of) in
        [("<= 1e300 s", Time), ("> -1 Gb/s", Bandwidth), ("> -5 %", Share), (">= 1e305 MB/s", Bandwidth)]
    {
        assert!(refusal(limit, of).is_err(), "{limit}");
    }
    // A metric of an application may be below 0.
    assert_eq!(refusal("<= -4.6", Number), Ok(()));
    assert!(refusal("<= 1 Gb/s", MessageRate).is_err() && refusal("<= 1 us", Number).is_err());
    for (text, of) in [("<= 1 us", Time), (">= 9 % of link", MessageRate), ("<= 0", Share), ("< 1 %", Share)]
    {
        assert_eq!(refusal(text, of), Ok(()), "{text}");
    }
}

#[test]
fn numbers_are_printed_in_the_unit_of_the_limit() {
    for (text, unit) in [
        ("<= 5 us", Some(Unit::Us)),
        ("<= 5s", Some(Unit::S)),
        ("<= 5.ms", Some(Unit::Ms)),
        (">= 1 MB/s", Some(Unit::MBPerS)),
        (">= 2k/s", None),
        (">= 90 % of link", None),
        ("<= 0", None),
    ] {
        assert_eq!(Bound::parse(text).unwrap().unit(), unit, "{text}");
    }
}

#[test]
fn an_expectation_without_experiments_is_for_all() {
    let axes: Axes = serde_json::from_value(json!({ "size_bytes": 64 })).unwrap();
    let mut expectation = Expectation::parse("p99 <= 5us").unwrap();
    assert!(expectation.picks("any", &axes));
    expectation.experiments = vec!["one".to_owned()];
    assert!(expectation.picks("one", &axes) && !expectation.picks("any", &axes));
    expectation.only.insert("size_bytes".to_owned(), json!([4, 8]));
    assert!(!expectation.picks("one", &axes));
}
