//! What a record says of its fleet.

use measure::record::{Fleet, Point, Run};
use verdict::fleet::Examined;

use super::question::Question;
use super::replay::examined;
use super::words::Words;

/// The fleet of a run, with what was asked of it and what its examination found.
pub(crate) struct Found<'a> {
    pub(crate) fleet: &'a Fleet,
    pub(crate) question: Question,
    pub(crate) examined: Examined,
}

impl<'a> Found<'a> {
    /// Examines the fleet of a run; none for other runs.
    ///
    /// # Errors
    ///
    /// Why it cannot be examined.
    pub(crate) fn of(run: &'a Run, points: &[Point]) -> Option<Result<Self, String>> {
        let fleet = run.fleet.as_ref()?;
        Some(Question::of(fleet).and_then(|question| match examined(&question, fleet, points) {
            Ok(examined) => Ok(Self { fleet, question, examined }),
            Err(missing) => Err(missing.to_string()),
        }))
    }

    /// Its sentences.
    pub(crate) fn words(&self) -> Words<'_> {
        Words::new(self.fleet, &self.question, &self.examined)
    }
}
