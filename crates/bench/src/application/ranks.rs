//! The numbers of ranks that an application can have.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The numbers of ranks that an application can have.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(from = "Words", into = "Words")]
pub enum RanksAllowed {
    /// Any number.
    #[default]
    Any,
    /// Square numbers: 1, 4, 9, 16 and so on, as for BT and SP of the NAS benchmarks.
    Squares,
    /// Powers of two: 1, 2, 4, 8 and so on, as for CG, FT, IS and MG of the NAS benchmarks.
    PowersOfTwo,
    /// The numbers of a list.
    These(Vec<u32>),
}

/// The form in a plan.
#[derive(Deserialize, Serialize)]
#[serde(untagged)]
enum Words {
    Rule(Rule),
    These(Vec<u32>),
}

#[derive(Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
enum Rule {
    Any,
    Squares,
    PowersOfTwo,
}

impl From<Words> for RanksAllowed {
    fn from(words: Words) -> Self {
        match words {
            Words::Rule(Rule::Any) => Self::Any,
            Words::Rule(Rule::Squares) => Self::Squares,
            Words::Rule(Rule::PowersOfTwo) => Self::PowersOfTwo,
            Words::These(these) => Self::These(these),
        }
    }
}

impl From<RanksAllowed> for Words {
    fn from(allowed: RanksAllowed) -> Self {
        match allowed {
            RanksAllowed::Any => Self::Rule(Rule::Any),
            RanksAllowed::Squares => Self::Rule(Rule::Squares),
            RanksAllowed::PowersOfTwo => Self::Rule(Rule::PowersOfTwo),
            RanksAllowed::These(these) => Self::These(these),
        }
    }
}

impl RanksAllowed {
    /// Whether the application can have so many ranks.
    pub(crate) fn allows(&self, ranks: u32) -> bool {
        match self {
            Self::Any => true,
            Self::Squares => ranks.isqrt().pow(2) == ranks,
            Self::PowersOfTwo => ranks.is_power_of_two(),
            Self::These(these) => these.contains(&ranks),
        }
    }
}

/// Completes the sentence "it runs on ".
impl fmt::Display for RanksAllowed {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Any => out.write_str("any number of ranks"),
            Self::Squares => out.write_str("a square number of ranks (1, 4, 9, 16)"),
            Self::PowersOfTwo => out.write_str("a power of two of ranks (1, 2, 4, 8)"),
            Self::These(these) => {
                let words: Vec<_> = these.iter().map(u32::to_string).collect();
                write!(out, "{} ranks", words.join(" or "))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_are_those_of_the_programs() {
        let allowed =
            |allowed: RanksAllowed| (1..=16).filter(|ranks| allowed.allows(*ranks)).collect::<Vec<_>>();
        assert_eq!(allowed(RanksAllowed::Squares), [1, 4, 9, 16]);
        assert_eq!(allowed(RanksAllowed::PowersOfTwo), [1, 2, 4, 8, 16]);
        assert_eq!(allowed(RanksAllowed::These(vec![3, 5])), [3, 5]);
        assert_eq!(allowed(RanksAllowed::Any).len(), 16);
    }

    #[test]
    fn a_plan_gives_a_word_or_a_list() {
        for (text, allowed) in [
            ("\"any\"", RanksAllowed::Any),
            ("\"squares\"", RanksAllowed::Squares),
            ("\"powers_of_two\"", RanksAllowed::PowersOfTwo),
            ("[1,2]", RanksAllowed::These(vec![1, 2])),
        ] {
            assert_eq!(serde_json::from_str::<RanksAllowed>(text).unwrap(), allowed, "{text}");
            assert_eq!(serde_json::to_string(&allowed).unwrap(), text);
        }
        assert!(serde_json::from_str::<RanksAllowed>("\"odd\"").is_err());
    }
}
