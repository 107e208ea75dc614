//! A clock that is wrong on purpose, by a known amount, for tests.
//!
//! A skew is applied to stamps that have been taken. So [`super::Clock::now`] is not affected, and
//! a test that compares two clocks of one machine can shift one of them by a known offset and
//! drift.

use std::fmt;
use std::str::FromStr;

use crate::units::{format_duration, parse_duration};
use crate::{Error, Result};

/// The error of a clock. Written and read as `offset=3ms,drift=40ppm`; either part may be left out,
/// both may be negative.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Skew {
    /// The offset that is added to the clock, in ns of its nominal rate.
    pub offset_ns: i64,
    /// How much too fast the clock runs, in parts per million, since its zero.
    pub drift_ppm: f64,
}

impl Skew {
    /// The reading of the skewed clock when a true one shows `ticks`; `tick_hz` is the clock's
    /// nominal rate. Rounded down, as clocks are, with an error of less than a tick plus 2^-53 of
    /// the offset. Like any counter it counts modulo 2^64: a clock that is set back beyond its zero
    /// shows very large values, whose differences are right.
    pub fn apply(&self, ticks: u64, tick_hz: f64) -> u64 {
        let offset = (self.offset_ns as f64 * (tick_hz / 1e9)).round() as i128;
        let drift = (self.drift_ppm * PARTS_PER_PPM).round() as i128;
        let gained = (i128::from(ticks) * drift).div_euclid(PARTS);
        (i128::from(ticks) + gained + offset) as u64
    }
}

impl fmt::Display for Skew {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.offset_ns < 0 { "-" } else { "" };
        let offset = format_duration(std::time::Duration::from_nanos(self.offset_ns.unsigned_abs()));
        write!(f, "offset={sign}{offset},drift={}ppm", self.drift_ppm)
    }
}

impl FromStr for Skew {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        read(text).map_err(|why| Error::Skew { text: text.to_owned(), why })
    }
}

fn read(text: &str) -> std::result::Result<Skew, String> {
    let mut offset_ns = None;
    let mut drift_ppm = None;
    for part in text.split(',') {
        let twice = match part.trim().split_once('=') {
            Some(("offset", value)) => offset_ns.replace(read_offset(value)?).is_some(),
            Some(("drift", value)) => drift_ppm.replace(read_drift(value)?).is_some(),
            _ => return Err(format!("{part:?} is neither an offset nor a drift; {EXAMPLE}")),
        };
        if twice {
            return Err(format!("{:?} is given twice; {EXAMPLE}", part.trim()));
        }
    }
    Ok(Skew { offset_ns: offset_ns.unwrap_or(0), drift_ppm: drift_ppm.unwrap_or(0.0) })
}

fn read_offset(text: &str) -> std::result::Result<i64, String> {
    let (sign, length) = text.strip_prefix('-').map_or((1, text), |length| (-1, length));
    let nanos = parse_duration(length).map_err(|error| error.to_string())?.as_nanos();
    let nanos = i64::try_from(nanos).map_err(|_| format!("the offset {text} is longer than 292 years"))?;
    Ok(sign * nanos)
}

fn read_drift(text: &str) -> std::result::Result<f64, String> {
    let number =
        text.strip_suffix("ppm").ok_or_else(|| format!("the drift {text:?} is not in ppm; {EXAMPLE}"))?;
    let drift: f64 =
        number.trim().parse().map_err(|_| format!("the drift {text:?} is not a number; {EXAMPLE}"))?;
    // NaN is outside every range.
    if !(-DRIFT_PPM_MAX..=DRIFT_PPM_MAX).contains(&drift) {
        return Err(format!(
            "the drift {text} is above {DRIFT_PPM_MAX}ppm, the most that a kernel slews a clock"
        ));
    }
    Ok(drift)
}

const EXAMPLE: &str = "write offset=3ms,drift=40ppm";
/// adjtimex(2) accepts ticks from 900,000 / HZ to 1,100,000 / HZ microseconds: 10 % either way.
const DRIFT_PPM_MAX: f64 = 100_000.0;
/// The unit of a drift is 10^-18. In 2^64 ticks an error of half a unit is 9 ticks, in years at 4
/// GHz 0.3.
const PARTS: i128 = 1_000_000_000_000_000_000;
const PARTS_PER_PPM: f64 = 1e12;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_clock_is_off_by_what_was_said() {
        let skew = Skew { offset_ns: 3_000_000, drift_ppm: 40.0 };
        assert_eq!(skew.apply(0, 1e9), 3_000_000);
        assert_eq!(skew.apply(1_000_000_000, 1e9), 1_000_000_000 + 3_000_000 + 40_000);
        // 3 ms are 7.5 million ticks at 2.5 GHz.
        assert_eq!(skew.apply(1_000_000, 2.5e9), 1_000_000 + 7_500_000 + 40);
        let slow = Skew { offset_ns: -1, drift_ppm: -0.5 };
        assert_eq!(slow.apply(3_000_000, 1e9), 3_000_000 - 2 - 1, "1.5 ticks lost round down");
        assert_eq!(Skew::default().apply(u64::MAX, 2.1e9), u64::MAX);
    }

    #[test]
    fn hours_and_large_counters_lose_no_nanosecond() {
        // 100 hours apart at 2^62, where an f64 has steps of 1024: 12.3 ppm of the distance is
        // exact.
        let skew = Skew { offset_ns: 0, drift_ppm: 12.3 };
        let hours = 360_000_000_000_000u64;
        let gained = skew.apply((1 << 62) + hours, 1e9) - skew.apply(1 << 62, 1e9) - hours;
        assert!(gained.abs_diff(4_428_000_000) <= 1, "{gained}");
    }

    #[test]
    fn a_clock_that_is_set_back_beyond_its_zero_still_counts() {
        let skew = Skew { offset_ns: -1000, drift_ppm: 0.0 };
        assert_eq!(skew.apply(5, 1e9), u64::MAX - 994);
        assert_eq!(skew.apply(1005, 1e9).wrapping_sub(skew.apply(5, 1e9)), 1000);
    }

    #[test]
    fn texts_are_read() {
        let read = |text: &str| text.parse::<Skew>().unwrap();
        assert_eq!(read("offset=3ms,drift=40ppm"), Skew { offset_ns: 3_000_000, drift_ppm: 40.0 });
        assert_eq!(
            read("drift=-0.25ppm, offset=-2h"),
            Skew { offset_ns: -7_200_000_000_000, drift_ppm: -0.25 }
        );
        assert_eq!(read("offset=7ns"), Skew { offset_ns: 7, drift_ppm: 0.0 });
    }

    #[test]
    fn a_wrong_text_is_refused_in_one_sentence() {
        let why = |text: &str| text.parse::<Skew>().unwrap_err().to_string();
        assert_eq!(
            why("offset=3ms;drift=1ppm"),
            "cannot read \"offset=3ms;drift=1ppm\" as a skew: cannot read \"3ms;drift=1ppm\" as a duration: \
             \"ms;drift=1ppm\" is no unit of time; write ns, us, ms, s, min or h"
        );
        assert_eq!(
            why("drift=40"),
            "cannot read \"drift=40\" as a skew: the drift \"40\" is not in ppm; write offset=3ms,drift=40ppm"
        );
        assert!(why("").contains("\"\" is neither an offset nor a drift; write offset=3ms"));
        assert!(why("offset=1s,offset=2s").contains("\"offset=2s\" is given twice"));
        assert!(why("drift=NaNppm").contains("is above 100000ppm"));
        assert!(why("drift=fastppm").contains("is not a number"));
        assert!(why("offset=300000000h").contains("longer than 292 years"));
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_back(offset_ns in -i64::MAX..i64::MAX, drift_ppm in -1e5f64..1e5) {
            let skew = Skew { offset_ns, drift_ppm };
            prop_assert_eq!(skew.to_string().parse::<Skew>().unwrap(), skew);
        }
    }
}
