//! The judgements of a run.

use measure::expectation::Expectation;
use measure::record::Axes;

/// How a bound and a number relate.
#[derive(Clone, Debug, PartialEq)]
pub enum Judgement {
    /// The number keeps the bound.
    Met,
    /// It does not.
    NotMet,
    /// Neither can be said, for this reason.
    NotDecided(String),
}

impl Judgement {
    /// The judgement in a few words.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Met => "met",
            Self::NotMet => "not met",
            Self::NotDecided(_) => "not decided",
        }
    }

    /// The reason; empty where the number is the reason.
    pub fn why(&self) -> &str {
        match self {
            Self::Met | Self::NotMet => "",
            Self::NotDecided(why) => why,
        }
    }
}

/// An expectation with the run's judgement of each case.
#[derive(Debug)]
pub struct Judged<'a> {
    /// The expectation.
    pub expectation: &'a Expectation,
    /// A case for each combination of experiment and axes.
    pub cases: Vec<Case>,
}

/// The judgement of the repetitions of a point.
#[derive(Clone, Debug, PartialEq)]
pub struct Case {
    /// The experiment.
    pub experiment: String,
    /// The axes.
    pub axes: Axes,
    /// The experiment and the axes in which its points differ, in print.
    pub label: String,
    /// The measured number with its interval, in print; empty where there is none.
    pub figure: String,
    /// The limit in print, where the bound is a part of the link.
    pub limit: Option<String>,
    /// The judgement.
    pub judgement: Judgement,
    /// A point of the number.
    pub id: Option<u64>,
}

/// Whether an expectation is not met in one of its cases.
pub fn is_any_not_met(judged: &[Judged<'_>]) -> bool {
    judged.iter().flat_map(|judged| &judged.cases).any(|case| case.judgement == Judgement::NotMet)
}

/// How many cases have each judgement: met, not met, not decided.
pub(crate) fn score(judged: &[Judged<'_>]) -> [(&'static str, usize); 3] {
    let kinds = [Judgement::Met, Judgement::NotMet, Judgement::NotDecided(String::new())];
    kinds.map(|kind| {
        let of_kind = judged.iter().flat_map(|judged| &judged.cases);
        let word = kind.word();
        (word, of_kind.filter(|case| case.judgement.word() == word).count())
    })
}
