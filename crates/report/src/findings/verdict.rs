//! What is to be said to a claim, and what speaks against that.

/// What speaks against the runs of a figure.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Doubts {
    pub(super) runs: usize,
    pub(super) unstable: usize,
    pub(super) failed: usize,
    /// The first reason; the others stand with their points.
    pub(crate) first: Option<String>,
}

impl Doubts {
    /// Those of two figures together.
    pub(super) fn and(self, other: Self) -> Self {
        Self {
            runs: self.runs + other.runs,
            unstable: self.unstable + other.unstable,
            failed: self.failed + other.failed,
            first: self.first.or(other.first),
        }
    }

    /// Whether nothing speaks for them: no run was stable.
    pub(super) fn are_all(&self) -> bool {
        self.runs > 0 && self.unstable == self.runs
    }

    /// How many runs, in print: `2 of 6 runs unstable`; nothing without doubt.
    pub(crate) fn text(&self) -> Option<String> {
        let said =
            |count: usize, what: &str| (count > 0).then(|| format!("{count} of {} runs {what}", self.runs));
        let all: Vec<String> =
            [said(self.unstable, "unstable"), said(self.failed, "failed")].into_iter().flatten().collect();
        (!all.is_empty()).then(|| all.join(", "))
    }
}

/// What is to be said to a claim.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Verdict {
    Shown,
    /// With the reason, where it is another than that the figure lies outside the range.
    NotShown(&'static str),
    /// There is a figure, and the reason why it decides nothing.
    NotDecided(&'static str),
    NotMeasured(String),
}

impl Verdict {
    /// The verdict in print.
    pub(crate) fn text(&self) -> String {
        match self {
            Self::Shown => "shown".to_owned(),
            Self::NotShown("") => "not shown".to_owned(),
            Self::NotShown(why) => format!("not shown: {why}"),
            Self::NotDecided(why) => format!("not decided: {why}"),
            Self::NotMeasured(reason) => format!("not measured: {reason}"),
        }
    }
}
