//! What is exported.

use measure::presentation::Patterns;
use measure::record::{Point, Run};
use serde_json::Value;

use crate::expectations::{Judged, judge};
use crate::list::distinct;
use crate::{Points, SampleSource};

/// A run to export.
pub struct Exported<'a> {
    /// The name of its directory, which no other run of the export has.
    pub name: String,
    /// The run.
    pub run: &'a Run,
    /// Its points.
    pub points: &'a [Point],
    /// Its samples.
    pub samples: &'a dyn SampleSource,
    /// Names and values of labels that are added to all of its metrics.
    pub labels: &'a [(String, String)],
}

impl Exported<'_> {
    /// Its points with what is needed to show them.
    pub(super) fn points(&self, patterns: Patterns) -> Points<'_> {
        Points { points: self.points, devices: &self.run.devices, patterns }
    }

    /// The names of its devices, with commas between them.
    pub(super) fn devices(&self) -> String {
        distinct(self.run.devices.iter().map(|device| device.name.as_str())).join(",")
    }

    /// The judgements of its expectations.
    pub(super) fn judged(&self, patterns: Patterns) -> Vec<Judged<'_>> {
        judge(&self.run.expectations, &self.run.plan, self.points(patterns))
    }
}

/// A cell of a table with a name; null where it has no value.
pub(super) type Cell<'a> = (&'a str, Value);
