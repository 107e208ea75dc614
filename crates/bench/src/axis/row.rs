//! What one axis is.

use std::ops::RangeInclusive;

use serde_json::Value;

use super::kind::Kind;
use crate::point::Carrier;

/// One axis. Rows are made in the table alone: `AxisRow::new`, and then what differs from the
/// usual.
#[derive(Clone, Copy, Debug)]
pub struct AxisRow {
    /// Its name in plans, records and exports.
    pub name: &'static str,
    /// How its values are written.
    pub kind: Kind,
    /// The word for no value, where there may be none: what the system, the device or another axis
    /// says.
    pub none: Option<&'static str>,
    /// Whether it says something of messages that are carried so.
    pub is_for: fn(Carrier) -> bool,
    /// Whether it says something of floods alone.
    pub is_of_floods: bool,
    /// The unit of its numbers.
    pub unit: Option<&'static str>,
    /// The flags that set it.
    pub flags: &'static [Flag],
    /// Where it stands in the order of points.
    pub walk: Walk,
    /// Where tables of results show it.
    pub shown: Shown,
    /// The least of its numbers. Checks of several axes may ask for more.
    pub least: u64,
    /// The largest of its numbers, where one is known for all patterns and endpoints.
    pub most: Option<Most>,
    /// Its documentation, as it is written in the table: with blanks where its lines begin.
    documentation: &'static str,
}

/// A flag of the command line that sets an axis.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Flag {
    /// Its name.
    pub long: &'static str,
    /// Its letter, of perftest or of the field's tools for sockets.
    pub letter: Option<char>,
    /// The other names that it has.
    pub aliases: &'static [&'static str],
    /// What it sets the axis to.
    pub sets: Sets,
}

/// What a flag sets its axis to.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Sets {
    /// True for messages up to the size that is given. Help calls that by the first text, and says
    /// the second of the flag.
    UpTo(&'static str, &'static str),
    /// The flag's value, which help calls by this text. The axis's help is the flag's help.
    Value(&'static str),
    /// Always the first text. The second is the flag's help.
    Word(&'static str, &'static str),
}

/// Where an axis stands in the order of points: the last ones change fastest.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Walk {
    /// Before all others, because changing it takes long.
    Outermost,
    /// Before all but those.
    Outer,
    /// Where the plan writes it.
    Written,
    /// After all others.
    Innermost,
}

/// Where tables of results show an axis.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Shown {
    /// In the banner above the table: its values have tables of their own.
    Banner,
    /// In a column, but it does not tell the rows apart.
    Column,
    /// In a column, and it tells the rows apart.
    Row,
}

/// The largest number of an axis.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Most {
    /// That number.
    pub most: u64,
    /// Why there are no more, for the error.
    pub why: &'static str,
}

impl AxisRow {
    /// An axis of verbs whose values have tables of their own.
    pub(super) const fn new(name: &'static str, kind: Kind) -> Self {
        Self {
            name,
            kind,
            none: None,
            is_for: Carrier::is_verbs,
            is_of_floods: false,
            unit: None,
            flags: &[],
            walk: Walk::Written,
            shown: Shown::Banner,
            least: 0,
            most: None,
            documentation: "",
        }
    }

    pub(super) const fn or(self, none: &'static str) -> Self {
        Self { none: Some(none), ..self }
    }

    pub(super) const fn on(self, is_for: fn(Carrier) -> bool) -> Self {
        Self { is_for, ..self }
    }

    pub(super) const fn of_floods(self) -> Self {
        Self { is_of_floods: true, ..self }
    }

    pub(super) const fn of(self, unit: &'static str) -> Self {
        Self { unit: Some(unit), ..self }
    }

    pub(super) const fn flags(self, flags: &'static [Flag]) -> Self {
        Self { flags, ..self }
    }

    pub(super) const fn walked(self, walk: Walk) -> Self {
        Self { walk, ..self }
    }

    pub(super) const fn shown(self, shown: Shown) -> Self {
        Self { shown, ..self }
    }

    pub(super) const fn least(self, least: u64) -> Self {
        Self { least, ..self }
    }

    pub(super) const fn most(self, most: u64, why: &'static str) -> Self {
        Self { most: Some(Most { most, why }), ..self }
    }

    pub(super) const fn documented(self, documentation: &'static str) -> Self {
        Self { documentation, ..self }
    }

    /// Its numbers: from the least to the largest.
    pub fn bounds(&self) -> RangeInclusive<u64> {
        self.least..=self.most.map_or(u64::MAX, |most| most.most)
    }

    /// Whether a value is within the bounds. What is no number is.
    pub fn is_within_bounds(&self, value: &Value) -> bool {
        value.as_u64().is_none_or(|number| self.bounds().contains(&number))
    }

    /// Whether this is one of its values as a record shows it, within its bounds.
    pub(super) fn has(&self, value: &Value) -> bool {
        let one = std::slice::from_ref(value);
        self.is_within_bounds(value) && self.read(one).is_ok_and(|read| read == one)
    }

    /// One line of help.
    pub fn help(&self) -> &'static str {
        self.documentation.trim().trim_end_matches('.')
    }
}

impl Flag {
    /// A flag with a value, and the name of that value in help.
    pub(super) const fn of(long: &'static str, value_name: &'static str) -> Self {
        Self { long, letter: None, aliases: &[], sets: Sets::Value(value_name) }
    }

    /// A flag without a value, and its help.
    pub(super) const fn sets(long: &'static str, text: &'static str, help: &'static str) -> Self {
        Self { sets: Sets::Word(text, help), ..Self::of(long, "") }
    }

    /// A flag that is true of messages up to a size, and its help.
    pub(super) const fn up_to(long: &'static str, value_name: &'static str, help: &'static str) -> Self {
        Self { sets: Sets::UpTo(value_name, help), ..Self::of(long, "") }
    }

    pub(super) const fn letter(self, letter: char) -> Self {
        Self { letter: Some(letter), ..self }
    }

    pub(super) const fn alias(self, aliases: &'static [&'static str]) -> Self {
        Self { aliases, ..self }
    }
}
