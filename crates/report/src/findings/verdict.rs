//! The verdict on a claim.

/// The verdict on a claim.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Verdict {
    /// The number and its whole interval lie in the range of the claim, and the interval reaches
    /// the published size where there is one.
    Reproduced,
    /// The number and its whole interval lie in the range of the claim, away from the published
    /// size.
    OtherSize,
    /// There is a number, but it decides nothing, for this reason.
    Inconclusive(&'static str),
    /// The whole interval lies outside the range. With the reason, where it is another.
    Contradicted(&'static str),
    NotMeasured(String),
}

impl Verdict {
    /// All kinds that a number can get, in the order in which they are counted.
    pub(crate) const KINDS: [Self; 4] =
        [Self::Reproduced, Self::OtherSize, Self::Inconclusive(""), Self::Contradicted("")];

    /// The verdict in a few words. A claim that no paper makes is not reproduced, but shown.
    pub(crate) fn word(&self, is_of_paper: bool) -> &'static str {
        match self {
            Self::Reproduced if is_of_paper => "reproduced",
            Self::Reproduced => "shown",
            Self::OtherSize => "same direction, other size",
            Self::Inconclusive(_) => "inconclusive",
            Self::Contradicted(_) if is_of_paper => "contradicted",
            Self::Contradicted(_) => "not shown",
            Self::NotMeasured(_) => "not measured",
        }
    }

    /// The reason; empty where the number is the reason.
    pub(crate) fn why(&self) -> &str {
        match self {
            Self::Reproduced | Self::OtherSize => "",
            Self::Inconclusive(why) | Self::Contradicted(why) => why,
            Self::NotMeasured(reason) => reason,
        }
    }

    /// The verdict with its reason, in print.
    pub(crate) fn text(&self, is_of_paper: bool) -> String {
        let word = self.word(is_of_paper);
        match self.why() {
            "" => word.to_owned(),
            why => format!("{word}: {why}"),
        }
    }

    /// Whether two verdicts are of one kind, whatever their reasons.
    pub(crate) fn is_like(&self, other: &Self) -> bool {
        std::mem::discriminant(self) == std::mem::discriminant(other)
    }
}
