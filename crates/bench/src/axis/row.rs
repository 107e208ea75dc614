//! The row of an axis.

use std::ops::RangeInclusive;

use serde_json::Value;

use super::kind::Kind;
use crate::point::Carrier;

/// The definition of one axis. Only the table makes rows: with `AxisRow::new`, and then with what
/// differs from the usual.
#[derive(Clone, Copy, Debug)]
pub struct AxisRow {
    /// Its name in plans, records and exports.
    pub name: &'static str,
    /// How its values are written.
    pub kind: Kind,
    /// The word for no value, if there may be none. The system, the device or another axis then
    /// decides.
    pub none: Option<&'static str>,
    /// Whether it applies to an endpoint.
    pub is_for: fn(Carrier) -> bool,
    /// Whether it applies to streams only.
    pub is_of_floods: bool,
    /// The unit of its numbers.
    pub unit: Option<&'static str>,
    /// The flags that set it.
    pub flags: &'static [Flag],
    /// Its place in the order of points.
    pub walk: Walk,
    /// Where tables of results show it.
    pub shown: Shown,
    /// Its least number. A check of several axes may ask for more.
    pub least: u64,
    /// Its largest number, if there is one for all patterns and endpoints.
    pub most: Option<Most>,
    /// Its doc comment in the table. Each line starts with a blank.
    documentation: &'static str,
}

/// A flag of the command line that sets an axis.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Flag {
    /// Its name.
    pub long: &'static str,
    /// Its letter, as in perftest, iperf3 or another tool.
    pub letter: Option<char>,
    /// Its other names.
    pub aliases: &'static [&'static str],
    /// What it sets the axis to.
    pub sets: Sets,
}

/// What a flag sets its axis to.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Sets {
    /// True for messages up to the size that the flag gives. The first text names the size in the
    /// help, the second is the flag's help.
    UpTo(&'static str, &'static str),
    /// The flag's value, which this text names in the help. The axis's help is the flag's help.
    Value(&'static str),
    /// The first text. The second is the flag's help.
    Word(&'static str, &'static str),
}

/// The place of an axis in the order of points: the last axes change fastest.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Walk {
    /// Before all others, because changing it takes long.
    Outermost,
    /// After the outermost axes, before all others.
    Outer,
    /// In the order of the plan.
    Written,
    /// After all others.
    Innermost,
}

/// Where tables of results show an axis.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Shown {
    /// In the banner above the table: each value has its own table.
    Banner,
    /// In a column, but it does not distinguish rows.
    Column,
    /// In a column, and it distinguishes rows.
    Row,
}

/// The largest number of an axis.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Most {
    /// The number.
    pub most: u64,
    /// Why a larger number is refused, for the error.
    pub why: &'static str,
}

impl AxisRow {
    /// An axis of verbs that is shown in the banner.
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

    /// The range of its numbers.
    pub fn bounds(&self) -> RangeInclusive<u64> {
        self.least..=self.most.map_or(u64::MAX, |most| most.most)
    }

    /// Whether a value is within the bounds. Any value that is not a number is.
    pub fn is_within_bounds(&self, value: &Value) -> bool {
        value.as_u64().is_none_or(|number| self.bounds().contains(&number))
    }

    /// Whether `value` is a value of this axis as a record shows it, within its bounds.
    pub(super) fn has(&self, value: &Value) -> bool {
        let one = std::slice::from_ref(value);
        self.is_within_bounds(value) && self.read(one).is_ok_and(|read| read == one)
    }

    /// Its help: the doc comment without the last full stop.
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

    /// A flag that is true for messages up to a size, the name of the size, and its help.
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
