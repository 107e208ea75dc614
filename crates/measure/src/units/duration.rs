//! Durations: a number with a unit, `5s`, `200ms`, `1.5s`, `10us`, `100ns`, `2min`, `1h`; a number
//! alone is seconds.

use std::time::Duration;

use serde_json::Value;

use super::number;
use crate::{Error, Result};

/// Reads a duration. The number may have decimals down to the nanosecond; without a unit it is
/// seconds.
pub fn parse_duration(text: &str) -> Result<Duration> {
    read_duration(text).map_err(|why| Error::Duration { text: text.to_owned(), why })
}

/// Reads a time of a plan in ns: a whole number of them, or a duration such as `"10us"`. `None` if
/// it is neither, or longer than 584 years.
pub fn time_ns(value: &Value) -> Option<u64> {
    match value.as_str() {
        Some(text) => u64::try_from(parse_duration(text).ok()?.as_nanos()).ok(),
        None => value.as_u64(),
    }
}

/// Writes a duration in the largest unit up to the second that divides it: `5s`, `1500ms`.
/// [`parse_duration`] reads it back.
pub fn format_duration(duration: Duration) -> String {
    let nanos = duration.as_nanos();
    let divides = |(_, ns): &&(&str, u128)| *ns <= NS_PER_S && nanos.is_multiple_of(*ns);
    let (unit, ns) = UNITS.iter().rfind(divides).expect("everything is a whole number of ns");
    format!("{}{unit}", nanos / ns)
}

fn read_duration(text: &str) -> std::result::Result<Duration, String> {
    let (number, unit) = number::split(text);
    if !number.starts_with(|c: char| c.is_ascii_digit()) {
        return Err("it does not start with a digit; write 5s or 200ms".to_owned());
    }
    let known = UNITS.iter().chain(&ALIASES).find(|(name, _)| *name == unit);
    let ns_per_unit = match known {
        Some((_, ns)) => *ns,
        None if unit.is_empty() => NS_PER_S,
        None => return Err(format!("{unit:?} is no unit of time; write ns, us, ms, s, min or h")),
    };
    let nanos =
        number::times(number, ns_per_unit).ok_or("it is not a whole number of nanoseconds, or too large")?;
    let too_long = || format!("it is longer than the longest duration, {} seconds", u64::MAX);
    let seconds = u64::try_from(nanos / NS_PER_S).map_err(|_| too_long())?;
    Ok(Duration::new(seconds, (nanos % NS_PER_S) as u32))
}

const NS_PER_S: u128 = 1_000_000_000;
/// Smallest first.
const UNITS: [(&str, u128); 6] = [
    ("ns", 1),
    ("us", 1_000),
    ("ms", 1_000_000),
    ("s", NS_PER_S),
    ("min", 60 * NS_PER_S),
    ("h", 3600 * NS_PER_S),
];
/// Other spellings that are read and never written.
const ALIASES: [(&str, u128); 3] = [("\u{b5}s", 1_000), ("\u{3bc}s", 1_000), ("m", 60 * NS_PER_S)];
