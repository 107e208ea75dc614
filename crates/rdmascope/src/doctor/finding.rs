//! The result of a check.

use serde::Serialize;

/// How serious a finding is.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Severity {
    /// Nothing can be measured.
    Problem,
    /// Numbers are worse than they could be, or show something else than the user expects.
    Warning,
    /// Worth knowing.
    Note,
    /// All is well.
    Good,
}

/// A finding of a check.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub(super) struct Finding {
    /// Name of the check. It is stable: programs read it.
    pub(super) check: &'static str,
    pub(super) severity: Severity,
    /// What was examined.
    pub(super) looked_at: String,
    pub(super) found: String,
    /// Why it matters; empty if all is well.
    pub(super) why: String,
    /// Commands that fix it, one a line.
    pub(super) remedy: Option<String>,
}

impl Finding {
    pub(super) fn good(check: &'static str, looked_at: impl Into<String>, found: impl Into<String>) -> Self {
        let looked_at = looked_at.into();
        let found = found.into();
        Self { check, severity: Severity::Good, looked_at, found, why: String::new(), remedy: None }
    }

    /// Returns the finding with another severity, and the reason why it matters.
    pub(super) fn but(mut self, severity: Severity, why: impl Into<String>) -> Self {
        (self.severity, self.why) = (severity, why.into());
        self
    }

    /// Returns the finding with the commands that fix it.
    pub(super) fn mended_by(mut self, remedy: impl Into<String>) -> Self {
        self.remedy = Some(remedy.into());
        self
    }
}
