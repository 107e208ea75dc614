//! A bound as people write it, and the numbers that keep it.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::figure::Unit;
use crate::units::{self, Dimension};

/// A bound on a number: `<= 5 us`, `>= 90 % of link`, `> 2 Mmsg/s`, `<= 0.1 %`, `<= 0`.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub struct Bound {
    /// The side of the limit that the number has to be on.
    pub relation: Relation,
    /// The limit.
    pub limit: Limit,
    text: String,
}

/// The side of a limit that a number has to be on.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Relation {
    /// `<`
    Below,
    /// `<=`
    AtMost,
    /// `>`
    Above,
    /// `>=`
    AtLeast,
}

/// The limit of a bound.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Limit {
    /// A number in the base of records: ns, bytes per second, messages per second, a part of 1.
    Number {
        /// The number.
        at: f64,
        /// What its unit measures; a number without a unit is plain.
        dimension: Dimension,
    },
    /// This part of what the link can carry.
    OfLink(f64),
}

impl Bound {
    /// The bound of a count of which there is none.
    pub(super) fn nothing() -> Self {
        let limit = Limit::Number { at: 0.0, dimension: Dimension::Number };
        Self { relation: Relation::AtMost, limit, text: "<= 0".to_owned() }
    }

    /// Reads a bound.
    ///
    /// # Errors
    ///
    /// A sentence on what is wrong with the text, and what it could be.
    pub fn parse(text: &str) -> Result<Self, String> {
        let text = text.trim();
        let found = RELATIONS.iter().find_map(|(sign, relation)| Some((text.strip_prefix(sign)?, *relation)));
        let (rest, relation) = found.ok_or_else(|| format!("{text:?} is no bound: {EXAMPLES}"))?;
        let limit = limit(rest.trim()).ok_or_else(|| format!("{text:?} has no limit: {EXAMPLES}"))?;
        Ok(Self { relation, limit, text: text.to_owned() })
    }

    /// Whether a number keeps the bound; `limit` is the limit as a number.
    pub fn is_kept(&self, number: f64, limit: f64) -> bool {
        match self.relation {
            Relation::Below => number < limit,
            Relation::AtMost => number <= limit,
            Relation::Above => number > limit,
            Relation::AtLeast => number >= limit,
        }
    }

    /// The unit to print numbers in that are compared with the limit.
    pub fn unit(&self) -> Option<Unit> {
        match self.limit {
            Limit::OfLink(_) => None,
            Limit::Number { dimension, .. } => {
                let mut of_kind = Unit::ALL.into_iter().filter(|unit| unit.dimension() == dimension);
                of_kind.find(|unit| {
                    let number = self.text.strip_suffix(unit.symbol()).map(str::trim_end);
                    number.is_some_and(|text| text.ends_with(|c: char| c.is_ascii_digit() || c == '.'))
                })
            }
        }
    }

    /// Refuses a limit that does not fit what a quantity measures; the error continues a sentence.
    ///
    /// # Errors
    ///
    /// What fits.
    pub fn check(&self, dimension: Dimension) -> Result<(), String> {
        use Dimension::{Bandwidth, MessageRate, Number, Share, Time};
        let fits = match (self.limit, dimension) {
            (Limit::OfLink(_), _) => matches!(dimension, Bandwidth | MessageRate),
            // Every number keeps an infinite limit, and no time, rate or share is below 0.
            (Limit::Number { at, dimension }, _) if !at.is_finite() || (at < 0.0 && dimension != Number) => {
                false
            }
            // `2.5` could mean 2.5 % or the part 2.5 of 1, but 0 is the same in both.
            (Limit::Number { dimension: Number, at }, Share) => at == 0.0,
            (Limit::Number { dimension: own, .. }, _) => own == dimension,
        };
        let right = match dimension {
            Bandwidth => "a bandwidth such as \"12 Gb/s\" or a part of the link such as \"90 % of link\"",
            MessageRate => {
                "a rate such as \"2 Mmsg/s\" or \"500k/s\", or a part of the link such as \"90 % of link\""
            }
            Number => "a number without a unit",
            Share => "a share such as \"0.1 %\"",
            Time => "a time such as \"5 us\"",
        };
        if fits { Ok(()) } else { Err(format!("give {right}")) }
    }
}

impl fmt::Display for Bound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl TryFrom<String> for Bound {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        Self::parse(&text)
    }
}

impl From<Bound> for String {
    fn from(bound: Bound) -> Self {
        bound.text
    }
}

/// Reads a limit: a number and its unit.
fn limit(text: &str) -> Option<Limit> {
    let number = |text: &str| text.trim().parse::<f64>().ok().filter(|number| number.is_finite());
    let percent = |text: &str| Some(number(text.trim_end().strip_suffix('%')?)? / 100.0);
    if let Some(of_link) = text.strip_suffix("of link") {
        return percent(of_link).filter(|share| *share > 0.0).map(Limit::OfLink);
    }
    if let Some(at) = percent(text) {
        return Some(Limit::Number { at, dimension: Dimension::Share });
    }
    // `5 ms` also ends in `s`, but `5 m` is no number.
    let with_unit = Unit::ALL.into_iter().find_map(|unit| {
        let at = number(text.strip_suffix(unit.symbol())?)? * unit.one();
        Some(Limit::Number { at, dimension: unit.dimension() })
    });
    let rate = || {
        let at = text.ends_with("/s").then(|| units::parse_rate_hz(text).ok()).flatten()?;
        Some(Limit::Number { at, dimension: Dimension::MessageRate })
    };
    let plain = || Some(Limit::Number { at: number(text)?, dimension: Dimension::Number });
    with_unit.or_else(rate).or_else(plain)
}

/// The signs of relations; a longer sign comes before its beginning.
const RELATIONS: [(&str, Relation); 4] =
    [("<=", Relation::AtMost), ("<", Relation::Below), (">=", Relation::AtLeast), (">", Relation::Above)];

/// What to write instead of a text that is no bound.
pub const EXAMPLES: &str =
    "write one such as \"<= 5 us\", \">= 90 % of link\", \">= 12 Gb/s\", \"<= 0.1 %\" or \"<= 0\"";
