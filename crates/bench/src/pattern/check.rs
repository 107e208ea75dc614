//! What the checks of experiments share: what they look at, and how they refuse.

use std::fmt;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::experiment::Filled;
use crate::Error;
use crate::axis::{self, AxisRow, Key};
use crate::point::{Flow, Length, Operation, Pattern};

/// Above this rate, a message is due before the clock has shown that the one before it was due.
const RATE_HZ_MAX: u64 = 50_000_000;

/// Longest pause, in ns.
const PAUSE_NS_MAX: u64 = 60_000_000_000;

/// An experiment to check.
pub(crate) struct Check<'a>(pub(crate) &'a Filled);

impl Check<'_> {
    /// The smallest depth of a queue: that of the axis, or else of the setting.
    pub(crate) fn least_depth(&self, depth: Key<u32>) -> u32 {
        self.0.least_depth(depth)
    }

    /// The number of requests that every queue can hold.
    pub(crate) fn room(&self) -> u32 {
        self.least_depth(axis::TX_DEPTH).min(self.least_depth(axis::RX_DEPTH))
    }

    /// The largest value of an axis of numbers below 2^32; 1 without the axis.
    pub(crate) fn largest_u32(&self, row: &AxisRow) -> u32 {
        u32::try_from(self.largest(row)).unwrap_or(u32::MAX)
    }

    /// The largest value of an axis of numbers; 1 without the axis.
    pub(crate) fn largest(&self, row: &AxisRow) -> u64 {
        self.0.axes.numbers(row).max().unwrap_or(1)
    }

    /// The first operation that satisfies `is_one`.
    pub(crate) fn operation(&self, is_one: impl Fn(&Operation) -> bool) -> Option<Operation> {
        self.0.axes.get(axis::OPERATION).into_iter().find(is_one)
    }

    /// The first message size below `bytes`.
    pub(crate) fn size_below(&self, bytes: u64) -> Option<u64> {
        self.0.axes.get(axis::SIZE_BYTES).into_iter().find(|size| *size < bytes)
    }

    /// Refuses values of an axis above 1.
    pub(crate) fn one(&self, row: &AxisRow, what: &str, why: &str) -> Result<(), Error> {
        if self.largest(row) > 1 { self.refuse(row.name, what, why) } else { Ok(()) }
    }

    /// Refuses pauses that are longer than the peer or the coordinator waits.
    pub(crate) fn pauses(&self) -> Result<(), Error> {
        if self.largest(axis::PAUSE_NS.row) > PAUSE_NS_MAX {
            let why = "the peer would be taken for dead";
            return self.refuse("pause_ns", "a pause of more than a minute", why);
        }
        Ok(())
    }

    /// Refuses axes that the pattern's points do not have, where the pattern lists all its axes.
    pub(crate) fn only_own_axes(&self, whose: &str, why: &str) -> Result<(), Error> {
        let Some(only) = self.0.pattern.row().only_axes else { return Ok(()) };
        let mut given = self.0.settings.axes.iter().map(|axis| axis.row);
        match given.find(|row| !only.iter().any(|known| known.name == row.name)) {
            Some(row) => self.refuse(row.name, &format!("{} of {whose}", row.name), why),
            None => Ok(()),
        }
    }

    /// Refuses settings for the number of messages, in a pattern that counts no messages.
    pub(crate) fn no_length(&self, whose: &str, why: &str) -> Result<(), Error> {
        let settings = &self.0.settings;
        let lengths = [
            ("iterations", settings.iterations.is_some()),
            ("duration", settings.duration_s.is_some()),
            ("warmup", settings.warmup.is_some()),
            ("bytes_max", settings.bytes_max.is_some()),
        ];
        match lengths.into_iter().find(|(_, is_given)| *is_given) {
            Some((key, _)) => self.refuse(key, &format!("{key} of {whose}"), why),
            None => Ok(()),
        }
    }

    /// Whether some sends do not ask for a completion.
    pub(crate) fn signals_seldom(&self) -> bool {
        self.0.axes.get(axis::SIGNAL_INTERVAL).into_iter().any(|every| every != Some(1))
    }

    /// Refuses `what` at the place of the key that asks for it, because of `why`.
    pub(crate) fn refuse(&self, key: &str, what: &str, why: &str) -> Result<(), Error> {
        self.wrong(key, format!("{self} asks for {what}, which is not possible: {why}"))
    }

    /// Refuses with these words at the place of a key.
    pub(crate) fn wrong(&self, key: &str, words: String) -> Result<(), Error> {
        Err(Error::Plan { place: self.place(key), words })
    }

    /// Whether an axis has this value.
    pub(crate) fn has<T: DeserializeOwned + PartialEq + Serialize>(&self, key: Key<T>, value: T) -> bool {
        self.0.axes.get(key).contains(&value)
    }

    /// Whether some points stream in both directions.
    pub(crate) fn goes_both_ways(&self) -> bool {
        self.has(axis::DIRECTION, Flow::Bi)
    }

    /// Refuses rates that are not possible, or whose messages take longer than the time limit.
    pub(crate) fn rates(&self) -> Result<(), Error> {
        let rates = self.0.axes.get(axis::RATE_HZ);
        let sizes = self.0.axes.get(axis::SIZE_BYTES);
        // The smallest messages are the most numerous.
        let smallest = sizes.iter().copied().min().unwrap_or(1).max(1);
        for rate_hz in rates {
            if rate_hz == 0 || rate_hz > RATE_HZ_MAX {
                let why = format!("give 1 to {RATE_HZ_MAX} messages per second");
                return self.refuse("rate_hz", &format!("a rate of {rate_hz}/s"), &why);
            }
            let (length, warmup) = self.0.length_at(smallest, Some(rate_hz));
            let Length::Iterations(messages) = length else { continue };
            let takes_s = messages.saturating_add(warmup) as f64 / rate_hz as f64;
            if takes_s >= self.0.timeout_s {
                let what = format!("{messages} messages and {warmup} warm-up messages at {rate_hz}/s");
                let why = format!(
                    "that takes {takes_s:.0} s, but the point's time limit is {} s: raise timeout, or measure fewer messages",
                    self.0.timeout_s
                );
                return self.refuse("rate_hz", &what, &why);
            }
        }
        Ok(())
    }

    /// The place where a key was set, or else the place of the experiment.
    pub(crate) fn place(&self, key: &str) -> String {
        self.0.settings.place(key).unwrap_or_else(|| self.0.place.clone())
    }
}

/// The quoted names of some patterns, for errors.
pub(crate) fn patterns(is_one: impl Fn(&Pattern) -> bool) -> Vec<String> {
    Pattern::all().filter(is_one).map(|pattern| format!("{:?}", pattern.name())).collect()
}

/// The quoted names of the patterns that stream messages, with their commands.
pub(crate) fn floods() -> String {
    let named = |pattern: Pattern| format!("{:?} (rdmascope {})", pattern.name(), pattern.command().name);
    Pattern::all().filter(|pattern| pattern.row().floods).map(named).collect::<Vec<_>>().join(" or ")
}

/// The name of the experiment, for errors.
impl fmt::Display for Check<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "experiment {:?}", self.0.name)
    }
}
