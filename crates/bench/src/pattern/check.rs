//! What checks of experiments have in common: what they look at, and how they refuse.

use std::fmt;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::experiment::Filled;
use crate::Error;
use crate::axis::{self, AxisRow, Key};
use crate::point::{Flow, Pattern};

/// An experiment that is checked.
pub(crate) struct Check<'a>(pub(crate) &'a Filled);

impl Check<'_> {
    /// The least depth of a queue: the axis, or else the setting.
    pub(crate) fn least_depth(&self, depth: Key<u32>) -> u32 {
        self.0.least_depth(depth)
    }

    /// The largest number of an axis of numbers below 2^32; 1 where it is not there.
    pub(crate) fn largest_u32(&self, row: &AxisRow) -> u32 {
        u32::try_from(self.largest(row)).unwrap_or(u32::MAX)
    }

    /// The largest number of an axis; 1 where it is not there.
    pub(crate) fn largest(&self, row: &AxisRow) -> u64 {
        self.0.axes.numbers(row).max().unwrap_or(1)
    }

    /// Whether some sends do not ask for their completion.
    pub(crate) fn signals_seldom(&self) -> bool {
        self.0.axes.get(axis::SIGNAL_INTERVAL).into_iter().any(|every| every != Some(1))
    }

    /// Refuses what cannot be, at the place of the key that asks for it.
    pub(crate) fn refuse(&self, key: &str, what: &str, why: &str) -> Result<(), Error> {
        self.wrong(key, format!("{self} asks for {what}, which cannot be: {why}"))
    }

    /// Refuses in these words, at the place of a key.
    pub(crate) fn wrong(&self, key: &str, words: String) -> Result<(), Error> {
        Err(Error::Plan { place: self.place(key), words })
    }

    /// Whether some points have this value of an axis.
    pub(crate) fn has<T: DeserializeOwned + PartialEq + Serialize>(&self, key: Key<T>, value: T) -> bool {
        self.0.axes.get(key).contains(&value)
    }

    /// Whether messages flow both ways at some points.
    pub(crate) fn goes_both_ways(&self) -> bool {
        self.has(axis::DIRECTION, Flow::Bi)
    }

    /// Where a key was set, or else the experiment.
    pub(crate) fn place(&self, key: &str) -> String {
        self.0.settings.place(key).unwrap_or_else(|| self.0.place.clone())
    }
}

/// The quoted names of some patterns, for errors.
pub(crate) fn patterns(is_one: impl Fn(&Pattern) -> bool) -> Vec<String> {
    Pattern::all().filter(is_one).map(|pattern| format!("{:?}", pattern.name())).collect()
}

/// The experiment, in errors.
impl fmt::Display for Check<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "experiment {:?}", self.0.name)
    }
}
