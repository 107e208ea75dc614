//! Look-ups of a pattern by its index in the list.

use std::fmt;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::ENTRIES;
use crate::application::{ApplicationSpec, Starter};
use crate::axis::AxisRow;
use crate::pattern::command::Command;
use crate::pattern::id::PatternId;
use crate::pattern::registry::{Entry, Row};
use crate::point::{PointSpec, Setup, World};
use crate::topology::Topology;

impl PatternId {
    /// The pattern without its types.
    pub(crate) fn entry(self) -> &'static dyn Entry {
        ENTRIES[usize::from(self.0)]
    }

    /// All patterns, in the order of their names.
    pub fn all() -> impl Iterator<Item = Self> {
        (0..).zip(ENTRIES).map(|(place, _)| Self(place))
    }

    /// The patterns that the command line offers.
    pub fn offered() -> impl Iterator<Item = Self> {
        Self::all().filter(|pattern| !pattern.command().is_of_plans)
    }

    /// The pattern with this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::all().find(|pattern| pattern.name() == name)
    }

    /// The pattern's name in plans and records.
    pub fn name(self) -> &'static str {
        self.row().name
    }

    /// Whether its experiments may have an axis: one of its own, or one that no pattern owns.
    pub fn has_axis(self, row: &AxisRow) -> bool {
        let lists = |pattern: Self| pattern.row().axes.iter().any(|own| own.name == row.name);
        lists(self) || !Self::all().any(lists)
    }

    /// The pattern's command.
    pub fn command(self) -> &'static Command {
        &self.row().command
    }

    /// What other code may know about the pattern.
    pub(crate) fn row(self) -> &'static Row {
        self.entry().row()
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
    /// The ranks that a launcher starts for a point over MPI; `None` for other points.
    pub(crate) fn world(&self) -> Option<World> {
        let is_mpi = self.message.endpoint.is_mpi();
        is_mpi.then(|| World::of(self.ranks(), &self.axes, self.link, self.launch))
    }

    /// Whether a launcher of MPI starts the ranks of the point, or of the program that it runs.
    pub fn has_launcher(&self) -> bool {
        let is_launched = |one: &ApplicationSpec| one.application.launcher != Starter::None;
        self.message.endpoint.is_mpi() || self.application.as_deref().is_some_and(is_launched)
    }

    /// Whether queue pairs are connected through RDMA CM.
    pub fn uses_rdma_cm(&self) -> bool {
        self.message.setup == Setup::RdmaCm
    }

    /// The number of ranks of the point.
    pub fn ranks(&self) -> u32 {
        self.topology().ranks
    }

    /// The ranks of the point, and how they use their endpoints.
    pub(crate) fn topology(&self) -> Topology {
        self.pattern.entry().topology(self)
    }
}
