//! What a check says.

use serde::Serialize;

/// How bad it is.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Severity {
    /// Nothing can be measured.
    Problem,
    /// The numbers are worse than they could be, or those of something else.
    Warning,
    /// Worth knowing.
    Note,
    /// As it should be.
    Good,
}

/// What was found.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub(super) struct Finding {
    /// Name of the check, which stays.
    pub(super) check: &'static str,
    pub(super) severity: Severity,
    /// Where it was looked.
    pub(super) looked_at: String,
    pub(super) found: String,
    /// Why it matters; empty where all is well.
    pub(super) why: String,
    /// Commands that mend it, each on a line.
    pub(super) remedy: Option<String>,
}

impl Finding {
    pub(super) fn good(check: &'static str, looked_at: impl Into<String>, found: impl Into<String>) -> Self {
        let looked_at = looked_at.into();
        let found = found.into();
        Self { check, severity: Severity::Good, looked_at, found, why: String::new(), remedy: None }
    }

    /// The same as something that is not well, with the reason why it matters.
    pub(super) fn but(mut self, severity: Severity, why: impl Into<String>) -> Self {
        (self.severity, self.why) = (severity, why.into());
        self
    }

    /// The command that mends it.
    pub(super) fn mended_by(mut self, remedy: impl Into<String>) -> Self {
        self.remedy = Some(remedy.into());
        self
    }
}
