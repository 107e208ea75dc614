//! A scheduling class as text: `fifo:50`, `rr:50` or `other` (sched(7)).

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Scheduling class of a thread.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Scheduler {
    /// `SCHED_FIFO` with a priority from 1 to 99.
    Fifo(u8),
    /// `SCHED_OTHER`.
    Other,
    /// `SCHED_RR` with a priority from 1 to 99.
    RoundRobin(u8),
}

impl fmt::Display for Scheduler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fifo(priority) => write!(f, "fifo:{priority}"),
            Self::Other => f.write_str("other"),
            Self::RoundRobin(priority) => write!(f, "rr:{priority}"),
        }
    }
}

impl FromStr for Scheduler {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (class, priority) = text.split_once(':').unwrap_or((text, ""));
        let made: fn(u8) -> Self = match class {
            "other" if priority.is_empty() && text == class => return Ok(Self::Other),
            "fifo" => Self::Fifo,
            "rr" => Self::RoundRobin,
            _ => return Err(format!("{text:?} is no scheduling class: write fifo:N, rr:N or other")),
        };
        match priority.parse() {
            Ok(priority @ 1..=99) => Ok(made(priority)),
            _ => Err(format!("{text:?} has no priority from 1 to 99: write {class}:50")),
        }
    }
}

impl Serialize for Scheduler {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Scheduler {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        String::deserialize(from)?.parse().map_err(serde::de::Error::custom)
    }
}
