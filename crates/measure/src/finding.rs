//! What a paper found, as a plan states it: a claim about numbers, and when a run shows it.
//!
//! A finding stands in the plan and is stored with the run's record. The report answers it from
//! the points alone. Every kind computes one number from the points (a change, a ratio, a share, a
//! position) with a 95 % interval. The whole of that interval has to lie in the range `holds`. The
//! arithmetic is in [`crate::stats::shape`].

use std::collections::BTreeMap;
use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::figure::Unit;
use crate::record::Axes;
use crate::selection::{self, QUANTITY, Selection};

/// A finding of a paper, and how a run is tested for it.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Finding {
    /// What is computed from the points.
    pub kind: FindingKind,
    /// The claim in a sentence, e.g. `Busy polling takes a third of the time of events`.
    pub claim: String,
    /// The published numbers, e.g. `3608 to 1269 ns: -65 %`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub published: Option<String>,
    /// Where they were published, e.g. `Potter 2018, section 4.1`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// Names of the experiments whose points are used.
    pub experiments: Vec<String>,
    /// The measured quantity as a path into a point, e.g. `one_way.p50_ns`. A selection may name
    /// another one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quantity: Option<String>,
    /// Unit to print times or throughputs in; by default the unit that the quantity's name ends in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unit: Option<Unit>,
    /// Only points whose axes have these values.
    #[serde(default, rename = "where", skip_serializing_if = "BTreeMap::is_empty")]
    pub only: Selection,
    /// The axes that split the finding: it is answered for each of their values, e.g. `service`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub each: Vec<String>,
    /// The range that the number has to lie in for the claim to hold.
    pub holds: Range,
    /// The part of that range in which the effect also has the published size: the spread that the
    /// paper gives, or a factor around its number. A number of `holds` outside of it has the same
    /// direction and another size.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub matches: Option<Range>,
    /// What the claim is about. Absent, it is the network if the finding has `published` or
    /// `source`, and otherwise the host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scope: Option<Scope>,
    /// Of `change`, the points that change; of `crossover`, the series that comes to exceed
    /// `against`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub of: Selection,
    /// The points or the series that `of` is compared with.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub against: Selection,
    /// The axis over which the quantity is examined, e.g. `size_bytes`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub x: Option<String>,
    /// The smallest x that is used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<f64>,
    /// The largest x that is used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<f64>,
    /// Of `falls`, the x from which on the quantity has fallen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<f64>,
    /// Of `step`, the two neighbouring x between which the largest step has to be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub between: Option<[f64; 2]>,
    /// Of `order`, the series, the smallest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub order: Vec<Selection>,
}

/// What is computed from the points of a finding.
#[derive(Clone, Copy, Debug, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum FindingKind {
    /// The largest value of the quantity over the values of `x`, relative to the smallest: how well
    /// programs, devices or hosts agree. The values of `x` need not be numbers.
    Agree,
    /// The x at which the quantity is smallest.
    Argmin,
    /// The quantity of the points `of` relative to that of the points `against`.
    Change,
    /// The first x at which the series `of` exceeds the series `against` by more than their errors.
    Crossover,
    /// The median of the quantity over all x from `at` on, relative to its median over the x
    /// before.
    Falls,
    /// The largest value of the quantity over x, relative to the smallest.
    Flat,
    /// The share of the quantity's variance over x that a least-squares line explains, R^2.
    Linear,
    /// The share of the values of x at which the series rise in the given `order`.
    Order,
    /// The largest ratio of the quantity at two neighbouring x. These have to be the two of
    /// `between`.
    Step,
    /// The quantity itself.
    Value,
}

impl FindingKind {
    /// Its name in plans.
    pub fn name(self) -> &'static str {
        match self {
            Self::Agree => "agree",
            Self::Argmin => "argmin",
            Self::Change => "change",
            Self::Crossover => "crossover",
            Self::Falls => "falls",
            Self::Flat => "flat",
            Self::Linear => "linear",
            Self::Order => "order",
            Self::Step => "step",
            Self::Value => "value",
        }
    }
}

/// What a claim is about.
#[derive(Clone, Copy, Debug, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scope {
    /// Adapters and links. A run without a network between its ranks does not judge it.
    Network,
    /// The host: calls, copies, sleeps, its processors.
    Host,
}

impl Finding {
    /// Whether the claim is that of a paper.
    #[must_use]
    pub fn is_of_paper(&self) -> bool {
        self.published.is_some() || self.source.is_some()
    }

    /// What the claim is about.
    #[must_use]
    pub fn scope(&self) -> Scope {
        self.scope.unwrap_or(if self.is_of_paper() { Scope::Network } else { Scope::Host })
    }

    /// The path of the number that is read from the points of a selection.
    pub fn quantity_of<'a>(&'a self, selection: &'a Selection) -> &'a str {
        let own = selection.get(QUANTITY).and_then(Value::as_str);
        own.or(self.quantity.as_deref()).unwrap_or(QUANTITY_DEFAULT)
    }

    /// The selections that the finding compares, or one of all points if it compares none.
    pub fn selections(&self) -> Vec<&Selection> {
        let named: Vec<&Selection> =
            [&self.of, &self.against].into_iter().filter(|s| !s.is_empty()).chain(&self.order).collect();
        if named.is_empty() { vec![&self.of] } else { named }
    }

    /// Whether a point of this experiment with these axes is among those of a selection.
    pub fn picks(&self, selection: &Selection, experiment: &str, axes: &Axes) -> bool {
        selection::picks(&self.experiments, self.only.iter().chain(selection), experiment, axes)
    }

    /// The values of the axes `each` (or the experiment) of a point.
    pub fn case(&self, experiment: &str, axes: &Axes) -> Vec<Value> {
        selection::values(&self.each, experiment, axes)
    }
}

/// The quantity of a finding that names none.
const QUANTITY_DEFAULT: &str = "latency.p50_ns";

/// A range of numbers as people write it: `< -30 %`, `>= 5`, `-5 % .. 5 %` (both bounds included),
/// `< 2 us`.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub struct Range {
    low: Bound,
    high: Bound,
    /// What its numbers are in.
    pub unit: RangeUnit,
    text: String,
}

/// A bound of a range.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Bound {
    at: f64,
    included: bool,
}

/// What the numbers of a range are in.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum RangeUnit {
    /// Percent: of the number that is compared with, or of a whole.
    Percent,
    /// As the number is: a ratio, a value of x, a count.
    Plain,
    /// Time; numbers are kept in ns.
    Time,
}

impl Range {
    /// Reads a range.
    ///
    /// # Errors
    ///
    /// A sentence on what is wrong with the text, and what it could be.
    pub fn parse(text: &str) -> Result<Self, String> {
        let trimmed = text.trim();
        let open = Bound { at: f64::INFINITY, included: true };
        let below = Bound { at: f64::NEG_INFINITY, included: true };
        let one =
            |rest: &str, included: bool| number(rest, text).map(|(at, unit)| (Bound { at, included }, unit));
        let (low, high, unit) = if let Some((low, high)) = trimmed.split_once("..") {
            let (low, first) = one(low, true)?;
            let (high, unit) = one(high, true)?;
            // The unit may stand behind the second number only: `-5 .. 5 %`.
            let low = if first == RangeUnit::Plain && unit == RangeUnit::Time {
                one(&format!("{}{}", low.at, high_unit(trimmed)), true)?.0
            } else {
                low
            };
            if first != unit && first != RangeUnit::Plain {
                return Err(format!("{text:?} has two units: give both bounds in the same unit"));
            }
            (low, high, unit)
        } else if let Some(rest) = trimmed.strip_prefix("<=") {
            one(rest, true).map(|(high, unit)| (below, high, unit))?
        } else if let Some(rest) = trimmed.strip_prefix('<') {
            one(rest, false).map(|(high, unit)| (below, high, unit))?
        } else if let Some(rest) = trimmed.strip_prefix(">=") {
            one(rest, true).map(|(low, unit)| (low, open, unit))?
        } else if let Some(rest) = trimmed.strip_prefix('>') {
            one(rest, false).map(|(low, unit)| (low, open, unit))?
        } else {
            return Err(format!("{text:?} is no range: {EXAMPLES}"));
        };
        if low.at > high.at {
            return Err(format!("{text:?} is empty: its first number is above its second"));
        }
        Ok(Self { low, high, unit, text: trimmed.to_owned() })
    }

    /// Whether some number from `low` to `high` lies in it.
    pub fn touches(&self, low: f64, high: f64) -> bool {
        self.contains(low) || self.contains(high) || (low <= self.low.at && high >= self.high.at)
    }

    /// Its bounds; infinite where it has none.
    pub fn bounds(&self) -> [f64; 2] {
        let side = |bound: Bound, open: f64| if bound.at.is_infinite() { open } else { bound.at };
        [side(self.low, f64::NEG_INFINITY), side(self.high, f64::INFINITY)]
    }

    /// Whether a number lies in it.
    pub fn contains(&self, number: f64) -> bool {
        let above = number > self.low.at || (self.low.included && number == self.low.at);
        let below = number < self.high.at || (self.high.included && number == self.high.at);
        above && below
    }
}

impl fmt::Display for Range {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl TryFrom<String> for Range {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        Self::parse(&text)
    }
}

impl From<Range> for String {
    fn from(range: Range) -> Self {
        range.text
    }
}

/// A number with or without a unit; times in ns.
fn number(text: &str, whole: &str) -> Result<(f64, RangeUnit), String> {
    let text = text.trim();
    let (digits, unit, one) = UNITS
        .iter()
        .find_map(|(suffix, unit, one)| Some((text.strip_suffix(suffix)?, *unit, *one)))
        .unwrap_or((text, RangeUnit::Plain, 1.0));
    let read = digits.trim().parse::<f64>().ok().filter(|number| number.is_finite());
    let read = read.ok_or_else(|| format!("{text:?} of {whole:?} is no number: {EXAMPLES}"))?;
    Ok((read * one, unit))
}

/// The unit at the end of a range of times.
fn high_unit(text: &str) -> &'static str {
    UNITS.iter().map(|(suffix, ..)| *suffix).find(|suffix| text.ends_with(suffix)).unwrap_or_default()
}

/// Suffixes of numbers, and the value of one such unit.
const UNITS: [(&str, RangeUnit, f64); 6] = [
    ("%", RangeUnit::Percent, 1.0),
    ("ns", RangeUnit::Time, 1.0),
    ("us", RangeUnit::Time, 1e3),
    ("ms", RangeUnit::Time, 1e6),
    // After all that end in it.
    ("s", RangeUnit::Time, 1e9),
    ("x", RangeUnit::Plain, 1.0),
];
const EXAMPLES: &str = "give one such as \"< -30 %\", \">= 5\", \"-5 % .. 5 %\" or \"< 2 us\"";

#[cfg(test)]
mod tests {
    use super::*;

    fn holds(range: &str, numbers: &[f64]) -> Vec<bool> {
        let range = Range::parse(range).unwrap();
        numbers.iter().map(|number| range.contains(*number)).collect()
    }

    #[test]
    fn ends_belong_to_a_range_as_it_is_written() {
        assert_eq!(holds("< -30 %", &[-30.0, -30.1, 0.0]), [false, true, false]);
        assert_eq!(holds("<= -30%", &[-30.0, -29.9]), [true, false]);
        assert_eq!(holds("> 1.2x", &[1.2, 1.21]), [false, true]);
        assert_eq!(holds(">= 5", &[5.0, 4.9, f64::INFINITY]), [true, false, true]);
        assert_eq!(holds("-5 % .. 5 %", &[-5.0, 5.0, 5.1, f64::NAN]), [true, true, false, false]);
        assert_eq!(holds("< 2 us", &[1999.0, 2000.0]), [true, false]);
        assert_eq!(holds("1 .. 2 us", &[999.0, 1000.0, 2000.0, 2001.0]), [false, true, true, false]);
        assert_eq!(holds("<= 2 ms", &[2e6, 2e6 + 1.0]), [true, false]);
        assert_eq!(holds("0.5 .. 1.5 s", &[4e8, 5e8, 1.5e9, 2e9]), [false, true, true, false]);
    }

    #[test]
    fn an_interval_touches_a_range_that_it_overlaps() {
        let range = Range::parse("10 .. 20 %").unwrap();
        let touches = |low, high| range.touches(low, high);
        assert!(touches(5.0, 10.0) && touches(12.0, 13.0) && touches(20.0, 30.0) && touches(5.0, 30.0));
        assert!(!touches(5.0, 9.9) && !touches(20.1, 30.0) && !touches(f64::NAN, f64::NAN));
        assert_eq!(range.bounds(), [10.0, 20.0]);
        let open = Range::parse("> 5").unwrap();
        assert_eq!(open.bounds(), [5.0, f64::INFINITY]);
        assert!(open.touches(0.0, 6.0) && !open.touches(0.0, 5.0));
    }

    #[test]
    fn a_range_knows_its_unit_and_keeps_its_text() {
        let units = ["< 1 %", "> 3", "1 .. 3 %", "< 5 ns"].map(|text| Range::parse(text).unwrap().unit);
        assert_eq!(units, [RangeUnit::Percent, RangeUnit::Plain, RangeUnit::Percent, RangeUnit::Time]);
        let json = serde_json::to_string(&Range::parse(" < 1 % ").unwrap()).unwrap();
        assert_eq!(json, "\"< 1 %\"");
        assert_eq!(serde_json::from_str::<Range>(&json).unwrap().to_string(), "< 1 %");
    }

    #[test]
    fn what_is_no_range_is_refused_in_a_sentence() {
        let refusal = |text: &str| Range::parse(text).unwrap_err();
        let examples = "give one such as \"< -30 %\", \">= 5\", \"-5 % .. 5 %\" or \"< 2 us\"";
        assert_eq!(refusal("30 %"), format!("\"30 %\" is no range: {examples}"));
        assert_eq!(refusal("< many %"), format!("\"many %\" of \"< many %\" is no number: {examples}"));
        assert_eq!(refusal("5 .. 1"), "\"5 .. 1\" is empty: its first number is above its second");
        assert_eq!(
            refusal("1 % .. 5 us"),
            "\"1 % .. 5 us\" has two units: give both bounds in the same unit"
        );
        assert!(Range::parse("< inf").is_err());
    }
}
