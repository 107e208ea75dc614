//! What is asked of a pattern by its place in the list.

use std::fmt;

use measure::record::Status;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::ENTRIES;
use crate::Error;
use crate::axis::{AxisList, AxisRow};
use crate::fault::PointError;
use crate::pattern::check::Check;
use crate::pattern::command::Command;
use crate::pattern::defaults::Defaults;
use crate::pattern::id::PatternId;
use crate::pattern::outcome::{Merged, Outcome};
use crate::pattern::registry::{Entry, Row};
use crate::point::{Carrier, PointSpec};
use crate::topology::Topology;

impl PatternId {
    fn entry(self) -> &'static Entry {
        &ENTRIES[usize::from(self.0)]
    }

    /// All of them, in the order of their names.
    pub fn all() -> impl Iterator<Item = Self> {
        (0..).zip(ENTRIES).map(|(place, _)| Self(place))
    }

    /// The pattern of a name.
    pub fn named(name: &str) -> Option<Self> {
        Self::all().find(|pattern| pattern.name() == name)
    }

    /// Its name in plans and records.
    pub fn name(self) -> &'static str {
        self.entry().row.name
    }

    /// Whether its experiments have an axis: all have those that no pattern lists as its own.
    pub(crate) fn has_axis(self, row: &AxisRow) -> bool {
        let lists = |pattern: Self| pattern.row().axes.iter().any(|own| own.name == row.name);
        lists(self) || !Self::all().any(lists)
    }

    /// How the command line offers it.
    pub fn command(self) -> &'static Command {
        &self.entry().row.command
    }

    /// What all others may know of it.
    pub(crate) fn row(self) -> &'static Row {
        &self.entry().row
    }

    /// What its experiments are where a plan does not say.
    pub(crate) fn defaults(self, given: &AxisList, carrier: Carrier) -> Defaults {
        (self.entry().defaults)(given, carrier)
    }

    /// Refuses what a plan must not ask of it.
    pub(crate) fn check(self, check: &Check<'_>) -> Result<(), Error> {
        (self.entry().check)(check)
    }

    /// The ranks of a point, and how they use their endpoints.
    pub(crate) fn topology(self, spec: &PointSpec) -> Topology {
        (self.entry().topology)(spec)
    }

    /// Why a point has failed although each rank by itself has not noticed.
    pub(crate) fn failure(self, outcomes: &[Outcome]) -> Option<String> {
        (self.entry().failure)(outcomes).unwrap_or_else(|error| Some(words(error)))
    }

    /// What the outcomes of all ranks come to.
    pub(crate) fn merge(self, spec: &PointSpec, outcomes: &mut Vec<Outcome>) -> Merged {
        (self.entry().merge)(spec, outcomes).unwrap_or_else(|error| {
            outcomes.clear();
            Merged::without_numbers(Status::Failed { error: words(error) })
        })
    }
}

impl fmt::Debug for PatternId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl Serialize for PatternId {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(self.name())
    }
}

impl<'de> Deserialize<'de> for PatternId {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let name = String::deserialize(from)?;
        Self::named(&name).ok_or_else(|| D::Error::custom(format!("there is no pattern {name:?}")))
    }
}

impl PointSpec {
    /// How many ranks it has.
    pub fn ranks(&self) -> u32 {
        self.topology().ranks
    }

    /// Its ranks, and how they use their endpoints.
    pub(crate) fn topology(&self) -> Topology {
        self.pattern.topology(self)
    }
}

fn words(error: PointError) -> String {
    match error {
        PointError::NotMeasured(words) | PointError::Failed(words) => words,
    }
}
