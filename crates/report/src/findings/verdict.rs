//! What is to be said to a claim.

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
