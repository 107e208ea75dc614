//! Texts of sizes, ranges, durations and units.

use std::time::Duration;

use proptest::prelude::*;

use super::*;

fn why<T: std::fmt::Debug>(result: Result<T>) -> String {
    result.expect_err("it should have been refused").to_string()
}

#[test]
fn sizes_have_binary_and_decimal_suffixes() {
    let sizes = [
        ("4", 4),
        ("0", 0),
        ("4B", 4),
        ("64KiB", 65_536),
        ("64 KiB", 65_536),
        (" 8MiB ", 8 << 20),
        ("2GiB", 2 << 30),
        ("1TiB", 1 << 40),
        ("100kB", 100_000),
        ("100MB", 100_000_000),
        ("1GB", 1_000_000_000),
        ("2K", 2048),
        ("2k", 2048),
        ("1M", 1 << 20),
        ("1g", 1 << 30),
        ("18446744073709551615", u64::MAX),
    ];
    for (text, bytes) in sizes {
        assert_eq!(parse_size(text).unwrap(), bytes, "{text}");
    }
}

#[test]
fn a_size_that_cannot_be_read_says_what_to_write() {
    assert_eq!(
        why(parse_size("64KB")),
        "cannot read \"64KB\" as a size: KB may mean 1024 or 1000; write KiB or kB"
    );
    assert_eq!(
        why(parse_size("-4")),
        "cannot read \"-4\" as a size: it does not start with a digit; write bytes as 4, 64KiB or 8MiB"
    );
    assert!(why(parse_size("")).contains("does not start with a digit"));
    for (size, instead) in
        [("1.5MiB", "write 1536KiB"), ("1.5K", "write 1536B"), ("0.25GB", "write 250000000B")]
    {
        let why = why(parse_size(size));
        assert!(why.contains(instead), "{why}");
    }
    assert!(why(parse_size("1.3KiB")).contains("a size is a whole number of bytes"));
    assert!(why(parse_size("4Kib")).contains("\"Kib\" is no unit of size"));
    assert!(why(parse_size("18446744073709551616")).contains("more than the largest size"));
    assert!(why(parse_size("16777216TiB")).contains("more than the largest size"));
    assert!(why(parse_size("4é")).contains("\"é\" is no unit of size"));
}

#[test]
fn a_range_doubles_from_end_to_end() {
    let sizes = parse_sizes("4..8MiB").unwrap();
    assert_eq!(sizes.len(), 22);
    assert_eq!((sizes[0], sizes[1], sizes[21]), (4, 8, 8 << 20));
    assert_eq!(parse_sizes("64KiB").unwrap(), [65_536]);
    assert_eq!(parse_sizes("3..12").unwrap(), [3, 6, 12]);
    assert_eq!(parse_sizes("5 .. 5").unwrap(), [5]);
    assert_eq!(parse_sizes("1..9223372036854775808").unwrap().len(), 64);
}

#[test]
fn a_range_that_does_not_end_is_refused() {
    assert_eq!(
        why(parse_sizes("4..1000")),
        "cannot read \"4..1000\" as a range of sizes: doubling 4 does not reach 1000; end at 512 or 1KiB, or write the \
         sizes as a list"
    );
    assert!(why(parse_sizes("0..8")).contains("start at 1 or more"));
    assert!(why(parse_sizes("8MiB..4")).contains("write 4..8MiB"));
    assert!(why(parse_sizes("4..x")).contains("does not start with a digit"));
    assert!(why(parse_sizes("4..")).contains("does not start with a digit"));
    // The next doubling is larger than the largest size.
    assert!(why(parse_sizes("1..18446744073709551615")).contains("end at 8388608TiB, or write"));
}

#[test]
fn durations_have_units_and_decimals() {
    let durations = [
        ("5s", Duration::from_secs(5)),
        ("200ms", Duration::from_millis(200)),
        ("1.5s", Duration::from_millis(1500)),
        ("0.25us", Duration::from_nanos(250)),
        ("100 ns", Duration::from_nanos(100)),
        ("5", Duration::from_secs(5)),
        ("0.5", Duration::from_millis(500)),
        ("1e-3s", Duration::from_millis(1)),
        ("3\u{b5}s", Duration::from_micros(3)),
        ("2m", Duration::from_secs(120)),
        ("2min", Duration::from_secs(120)),
        ("1h", Duration::from_secs(3600)),
        ("1.0000000000000s", Duration::from_secs(1)),
        ("18446744073709551615s", Duration::from_secs(u64::MAX)),
    ];
    for (text, duration) in durations {
        assert_eq!(parse_duration(text).unwrap(), duration, "{text}");
    }
}

#[test]
fn a_duration_that_cannot_be_read_says_what_to_write() {
    assert_eq!(
        why(parse_duration("5parsecs")),
        "cannot read \"5parsecs\" as a duration: \"parsecs\" is no unit of time; write ns, us, ms, s, min or h"
    );
    assert!(why(parse_duration("fast")).contains("does not start with a digit"));
    assert!(why(parse_duration(".5s")).contains("does not start with a digit"));
    assert!(why(parse_duration("5M")).contains("write ns, us, ms, s, min or h"));
    assert!(why(parse_duration("0.5ns")).contains("not a whole number of nanoseconds"));
    assert!(why(parse_duration("1.2.3s")).contains("not a whole number"));
    assert!(why(parse_duration("18446744073709551616s")).contains("longer than the longest"));
    assert!(why(parse_duration("999999999999999999999999999999999999999999h")).contains("too large"));
}

#[test]
fn units_convert_from_the_base_of_what_they_measure() {
    let converted = [Unit::Us, Unit::GbPerS, Unit::MBPerS, Unit::MiBPerS].map(|unit| 12.5e9 / unit.one());
    assert_eq!(converted, [12.5e6, 100.0, 12_500.0, 12.5e9 / 1_048_576.0]);
    assert_eq!((Unit::Ns.one(), 2.5e6 / Unit::MmsgPerS.one()), (1.0, 2.5));
    assert_eq!([Unit::Ms, Unit::S].map(|unit| 330_327_440.0 / unit.one()), [330.327_44, 0.330_327_44]);
}

#[test]
fn units_have_one_name_in_plans_and_texts() {
    for unit in Unit::ALL {
        assert_eq!(serde_json::to_value(unit).unwrap(), unit.symbol());
        assert_eq!(unit.symbol().parse::<Unit>().unwrap(), unit);
    }
    assert_eq!(format!("{:>6}", Unit::Us), "    us");
    assert_eq!(
        why("MB".parse::<Unit>()),
        "cannot read \"MB\" as a unit: write one of ns, us, ms, s, Gb/s, Mb/s, MB/s, MiB/s, Mmsg/s"
    );
}

proptest! {
    #[test]
    fn a_size_survives_being_written(bytes: u64, shift in 0u32..64) {
        let bytes = bytes >> shift << (shift / 2);
        prop_assert_eq!(parse_size(&format_size(bytes)).unwrap(), bytes);
    }

    #[test]
    fn a_duration_survives_being_written(seconds: u64, nanos in 0u32..1_000_000_000, zeros in 0u32..9) {
        let nanos = nanos / 10u32.pow(zeros) * 10u32.pow(zeros);
        let duration = Duration::new(seconds, nanos);
        prop_assert_eq!(parse_duration(&format_duration(duration)).unwrap(), duration);
    }

    #[test]
    fn a_range_of_doublings_survives_being_written(start in 1u64..1 << 20, doublings in 0u32..40) {
        let end = start << doublings;
        let sizes = parse_sizes(&format!("{}..{}", format_size(start), format_size(end))).unwrap();
        let expected: Vec<u64> = (0..=doublings).map(|doubling| start << doubling).collect();
        prop_assert_eq!(sizes, expected);
    }

    #[test]
    fn no_text_panics(text in "\\PC*|[0-9.]{0,30}(KiB|[kKMGTB]|ms|s|\\.\\.)?[0-9]{0,5}") {
        let _ = (parse_size(&text), parse_sizes(&text), parse_duration(&text), text.parse::<Unit>());
    }
}
