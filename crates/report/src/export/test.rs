//! The result of a test, for CI.

/// A test with its result.
pub(super) struct Test {
    /// What is tested, within a plan.
    pub(super) class: String,
    /// Its name, which is the same in every run of a plan.
    pub(super) name: String,
    /// The time that it took, in s.
    pub(super) seconds: f64,
    pub(super) result: Outcome,
    /// Its numbers; may be empty.
    pub(super) output: String,
}

impl Test {
    /// A test that took no time and has no numbers.
    pub(super) fn new(class: &str, name: &str, result: Outcome) -> Self {
        Self { class: class.to_owned(), name: name.to_owned(), seconds: 0.0, result, output: String::new() }
    }
}

/// How a test ended, with the reason.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Outcome {
    Passed,
    Failure(String),
    Error(String),
    Skipped(String),
}
