//! The trait of patterns, and its form without types, by which the rest of the program calls them.

use measure::presentation::Presentation;
use measure::record::{Axes, Status};
use serde::Deserialize;

use super::check::Check;
use super::command::Command;
use super::defaults::Defaults;
use super::outcome::{Merged, Outcome, Told};
use super::rank::Rank;
use crate::Error;
use crate::axis::{AxisList, AxisRow};
use crate::endpoint::capabilities::Capabilities;
use crate::endpoint::connecting::DrivenEndpoint;
use crate::endpoint::kind::{PreparedEndpoints, Site};
use crate::fault::{PointError, unreadable};
use crate::point::{Carrier, PointSpec, Tool};
use crate::topology::Topology;

/// How ranks exchange messages, and what is timed. A pattern is a module in `patterns/` and a line
/// of the list there.
pub(crate) trait Pattern: Sync + 'static {
    /// What other code may know about the pattern.
    const ROW: Row;
    /// What a rank reports to the coordinator in addition to its [`Outcome`].
    type Told: Told;

    /// The ranks of a point, and how they use their endpoints.
    fn topology(spec: &PointSpec) -> Topology;

    /// The defaults of an experiment with these axes given, where `carrier` carries the messages.
    fn defaults(given: &AxisList, carrier: Carrier) -> Defaults;

    /// Runs a rank's share of a point.
    ///
    /// # Errors
    /// The errors of the endpoint, and exceeded limits of the point.
    fn run<E: DrivenEndpoint>(rank: Rank<'_, E>) -> Result<(Outcome, Option<Self::Told>), PointError>;

    /// Why the point failed, if only the reports of all ranks together show it.
    fn failure(_told: &[Option<Self::Told>]) -> Option<String> {
        None
    }

    /// Merges the outcomes of all ranks. Those left in `outcomes` become the ranks of the record.
    fn merge(_spec: &PointSpec, outcomes: &mut Vec<Outcome>, _told: Vec<Option<Self::Told>>) -> Merged {
        Merged::of(outcomes)
    }
}

/// What other code may know about a pattern.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Row {
    /// The pattern's name in plans and records.
    pub(crate) name: &'static str,
    /// The capabilities that an endpoint must have.
    pub(crate) needs: Capabilities,
    /// Refuses experiments that are not possible, with every default filled in: the error says what
    /// the plan asks for, why that is not possible, and what to do.
    pub(crate) check: fn(&Check<'_>) -> Result<(), Error>,
    /// Axes that not every pattern has.
    pub(crate) axes: &'static [&'static AxisRow],
    /// Whether the pattern streams messages, in one direction or both, and so may post lists, use
    /// several streams and send without a copy.
    pub(crate) floods: bool,
    /// Whether a message may go to a multicast group.
    pub(crate) has_groups: bool,
    /// The pattern's command.
    pub(crate) command: Command,
    /// What a report shows: the pattern's table and its own quantities.
    pub(crate) shown: &'static Presentation,
    /// Computes the payload of a message in bytes from other axes; absent where it is an axis.
    pub(crate) size_bytes: Option<fn(&Axes) -> u64>,
    /// External tools that also measure the pattern.
    pub(crate) tools: &'static [Tool],
    /// Whether the pattern keeps files in the directory that a plan names.
    pub(crate) keeps_files: bool,
    /// The default carrier of messages.
    pub(crate) carrier: Carrier,
    /// All axes that its points may have. Where absent, they are `axes` and the axes of every
    /// pattern.
    pub(crate) only_axes: Option<&'static [&'static AxisRow]>,
    /// Whether a signal can end a point early, so that the numbers until then are kept.
    pub(crate) can_be_cut: fn(&PointSpec) -> bool,
    /// Sets up what replaces a rank's endpoints; absent where endpoints carry the messages.
    pub(crate) stands_in: Option<StandsIn>,
}

/// Sets up what replaces a rank's endpoints.
pub(crate) type StandsIn = fn(&mut Site<'_>) -> Result<Box<dyn PreparedEndpoints>, PointError>;

impl Row {
    /// A pattern with this name that needs no capabilities and has no axes of its own.
    pub(crate) const fn named(name: &'static str) -> Self {
        Self {
            name,
            needs: Capabilities::NONE,
            check: |_| Ok(()),
            axes: &[],
            floods: false,
            has_groups: false,
            command: Command::new(name, "Measure the pattern of this name"),
            shown: &Presentation::PLAIN,
            size_bytes: None,
            tools: &[],
            keeps_files: false,
            carrier: Carrier::Verbs,
            only_axes: None,
            can_be_cut: |_| false,
            stands_in: None,
        }
    }
}

/// A pattern without its types.
pub(crate) trait Entry: Sync {
    /// As [`Pattern::ROW`].
    fn row(&self) -> &'static Row;

    /// As [`Pattern::topology`].
    fn topology(&self, spec: &PointSpec) -> Topology;

    /// As [`Pattern::defaults`].
    fn defaults(&self, given: &AxisList, carrier: Carrier) -> Defaults;

    /// As [`Pattern::failure`]. A report that cannot be read is a failure, too.
    fn failure(&self, outcomes: &[Outcome]) -> Option<String>;

    /// As [`Pattern::merge`]. Returns a failed point where a report cannot be read.
    fn merge(&self, spec: &PointSpec, outcomes: &mut Vec<Outcome>) -> Merged;
}

impl<P: Pattern> Entry for P {
    fn row(&self) -> &'static Row {
        &P::ROW
    }

    fn topology(&self, spec: &PointSpec) -> Topology {
        P::topology(spec)
    }

    fn defaults(&self, given: &AxisList, carrier: Carrier) -> Defaults {
        P::defaults(given, carrier)
    }

    fn failure(&self, outcomes: &[Outcome]) -> Option<String> {
        let told = |outcome: &Outcome| outcome.told.as_ref().map(P::Told::deserialize).transpose();
        match outcomes.iter().map(told).collect::<Result<Vec<_>, _>>() {
            Ok(told) => P::failure(&told),
            Err(error) => Some(words(unreadable(error))),
        }
    }

    fn merge(&self, spec: &PointSpec, outcomes: &mut Vec<Outcome>) -> Merged {
        match outcomes.iter_mut().map(told_by::<P>).collect() {
            Ok(told) => P::merge(spec, outcomes, told),
            Err(error) => {
                outcomes.clear();
                Merged::without_numbers(Status::Failed { error: words(error) })
            }
        }
    }
}

/// Runs a rank's share of a point, and serialises what the rank reports.
pub(crate) fn run_as<P: Pattern, E: DrivenEndpoint>(rank: Rank<'_, E>) -> Result<Outcome, PointError> {
    // A pattern is not compiled for an endpoint that lacks what it needs.
    if const { !E::CAPABILITIES.contain(P::ROW.needs) } {
        let reason =
            format!("the pattern {:?} needs a capability that this endpoint does not have", P::ROW.name);
        return Err(PointError::NotMeasured(reason));
    }
    let (mut outcome, told) = P::run(rank)?;
    if let Some(mut told) = told {
        outcome.columns = told.take_columns();
        outcome.column_words = outcome.columns.len();
        outcome.told = Some(serde_json::to_value(told).map_err(unreadable)?);
    }
    Ok(outcome)
}

/// Takes a rank's report out of its outcome.
fn told_by<P: Pattern>(outcome: &mut Outcome) -> Result<Option<P::Told>, PointError> {
    let Some(told) = outcome.told.take() else { return Ok(None) };
    let mut told: P::Told = serde_json::from_value(told).map_err(unreadable)?;
    let mut columns = std::mem::take(&mut outcome.columns);
    told.put_columns(&mut columns)?;
    Ok(Some(told))
}

fn words(error: PointError) -> String {
    match error {
        PointError::NotMeasured(words) | PointError::Failed(words) => words,
    }
}
