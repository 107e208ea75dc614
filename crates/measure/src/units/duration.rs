//! Durations: a number with a unit, `5s`, `200ms`, `1.5s`, `10us`, `100ns`, `2min`, `1h`.

use std::time::Duration;

use crate::{Error, Result};

/// Reads a duration. The number may have decimals down to the nanosecond; the unit is required.
pub fn parse_duration(text: &str) -> Result<Duration> {
    read_duration(text).map_err(|why| Error::Duration { text: text.to_owned(), why })
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
    let text = text.trim();
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let number = &text[..digits];
    let unit = text[digits..].trim_start();
    if !number.starts_with(|c: char| c.is_ascii_digit()) {
        return Err("it does not start with a digit; write 5s or 200ms".to_owned());
    }
    if unit.is_empty() {
        return Err(format!("it has no unit; write {number}s for seconds or {number}ms for milliseconds"));
    }
    let known = UNITS.iter().find(|(name, _)| *name == unit);
    let ns_per_unit =
        known.ok_or_else(|| format!("{unit:?} is no unit of time; write ns, us, ms, s, min or h"))?.1;
    let nanos = read_number(number, ns_per_unit)?;
    let too_long = || format!("it is longer than the longest duration, {} seconds", u64::MAX);
    let seconds = u64::try_from(nanos / NS_PER_S).map_err(|_| too_long())?;
    Ok(Duration::new(seconds, (nanos % NS_PER_S) as u32))
}

/// A decimal number times a whole one, exactly.
fn read_number(number: &str, ns_per_unit: u128) -> std::result::Result<u128, String> {
    let (whole, decimals) = number.split_once('.').unwrap_or((number, ""));
    let decimals = decimals.trim_end_matches('0');
    let number: Option<u128> = format!("{whole}{decimals}").parse().ok();
    let nanos = number
        .and_then(|number| number.checked_mul(ns_per_unit))
        .ok_or("it is not a number, or too large")?;
    let divisor = 10u128.checked_pow(decimals.len() as u32).filter(|&divisor| nanos.is_multiple_of(divisor));
    divisor.map(|divisor| nanos / divisor).ok_or_else(|| "it is not a whole number of nanoseconds".to_owned())
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
