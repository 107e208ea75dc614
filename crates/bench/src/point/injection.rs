//! A delay that a test adds to the calls of one rank, to check that it appears where it should and
//! nowhere else.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use measure::clock::Clock;
use measure::units;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A delay of one rank: the axis `inject`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Injection {
    rank: u32,
    /// Before the time stamp at the start of a call: the rank is late.
    before: Duration,
    /// After the time stamp at the start of a call: the rank is slow.
    within: Duration,
}

impl Injection {
    /// The delays of a rank, in ticks: before a call, and within it.
    pub(crate) fn of(injection: Option<Self>, rank: u32, clock: Clock) -> [u64; 2] {
        let own = injection.filter(|injection| injection.rank == rank);
        own.map_or([0; 2], |own| [clock.ticks(own.before), clock.ticks(own.within)])
    }
}

impl FromStr for Injection {
    type Err = String;

    /// Reads `rank=1,before=100us` or `rank=1,within=100us`, or both.
    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || {
            format!(
                "{text:?} is not a delay of a rank: write rank=1,before=100us or rank=1,within=100us, at most 1 s"
            )
        };
        let time = |text: &str| match units::parse_duration(text.trim()) {
            Ok(time) if time <= MOST => Ok(time),
            _ => Err(wrong()),
        };
        let mut rank = None;
        let mut injection = Self { rank: 0, before: Duration::ZERO, within: Duration::ZERO };
        for part in text.split(',') {
            let (key, value) = part.split_once('=').ok_or_else(wrong)?;
            match key.trim() {
                "rank" => rank = Some(value.trim().parse().map_err(|_| wrong())?),
                "before" => injection.before = time(value)?,
                "within" => injection.within = time(value)?,
                _ => return Err(wrong()),
            }
        }
        Ok(Self { rank: rank.ok_or_else(wrong)?, ..injection })
    }
}

impl fmt::Display for Injection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "rank={}", self.rank)?;
        for (key, time) in [("before", self.before), ("within", self.within)] {
            if !time.is_zero() {
                // `Duration` prints "µs", which users do not type.
                write!(f, ",{key}={}", format!("{time:?}").replace('\u{b5}', "u"))?;
            }
        }
        Ok(())
    }
}

impl Serialize for Injection {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&self.to_string())
    }
}

impl<'de> Deserialize<'de> for Injection {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        String::deserialize(from)?.parse().map_err(D::Error::custom)
    }
}

/// The longest delay of a call.
const MOST: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_delay_is_read_and_is_one_ranks_own() {
        let clock = Clock::monotonic();
        let injection: Injection = "rank=1,before=100us".parse().unwrap();
        assert_eq!(Injection::of(Some(injection), 1, clock), [100_000, 0]);
        assert_eq!(Injection::of(Some(injection), 0, clock), [0, 0]);
        let injection: Injection = "rank=0, within=1.5us".parse().unwrap();
        assert_eq!(Injection::of(Some(injection), 0, clock), [0, 1500]);
        for text in ["rank=1,before=100us", "rank=0,before=2ms,within=1.5us", "rank=3"] {
            let again = text.parse::<Injection>().unwrap().to_string();
            assert_eq!(again, text);
            assert_eq!(again.parse::<Injection>(), text.parse());
        }
        for wrong in ["", "rank=1,before", "before=1us", "rank=x", "rank=1,after=1us", "rank=1,before=2s"] {
            let error = wrong.parse::<Injection>().unwrap_err();
            assert!(error.contains("rank=1,before=100us"), "{error}");
        }
    }
}
