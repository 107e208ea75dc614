//! What a pattern is, and the list of all: the rest of the program reaches each by its name.

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

/// What is done with endpoints, and what is timed. A pattern is a room in `patterns/` and a line of
/// its list.
pub(crate) trait Pattern: Sync + 'static {
    /// What all others may know of it.
    const ROW: Row;
    /// What a rank tells the coordinator beside what ranks of all patterns do.
    type Told: Told;

    /// The ranks of a point, and how they use their endpoints.
    fn topology(spec: &PointSpec) -> Topology;

    /// What its experiments are where a plan does not say, over what carries the messages, with
    /// these axes given.
    fn defaults(given: &AxisList, carrier: Carrier) -> Defaults;

    /// A rank's share of a point.
    ///
    /// # Errors
    /// What the endpoint says, and what the point's limits are.
    fn run<E: DrivenEndpoint>(rank: Rank<'_, E>) -> Result<(Outcome, Option<Self::Told>), PointError>;

    /// Why the point has failed although each rank by itself has not noticed.
    fn failure(_told: &[Option<Self::Told>]) -> Option<String> {
        None
    }

    /// What the outcomes of all ranks come to. What is left in them is what the ranks are in the
    /// record.
    fn merge(_spec: &PointSpec, outcomes: &mut Vec<Outcome>, _told: Vec<Option<Self::Told>>) -> Merged {
        Merged::of(outcomes)
    }
}

/// What all others may know of a pattern.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Row {
    /// Its name in plans and records.
    pub(crate) name: &'static str,
    /// What an endpoint must be able to do.
    pub(crate) needs: Capabilities,
    /// Refuses what a plan must not ask of it, with every default filled in: the error says what is
    /// asked, why that cannot be, and what to do.
    pub(crate) check: fn(&Check<'_>) -> Result<(), Error>,
    /// Axes that not every pattern has.
    pub(crate) axes: &'static [&'static AxisRow],
    /// Whether messages flow one after the other, each way or both: in lists, over several streams,
    /// without a copy.
    pub(crate) floods: bool,
    /// Whether one message may go to a group.
    pub(crate) has_groups: bool,
    /// How the command line offers it.
    pub(crate) command: Command,
    /// What a report shows of it: its table, and its own numbers.
    pub(crate) shown: &'static Presentation,
    /// Makes the payload of a message, in bytes, out of other axes where it is none itself.
    pub(crate) size_bytes: Option<fn(&Axes) -> u64>,
    /// Programs of others that measure it as well.
    pub(crate) tools: &'static [Tool],
    /// Whether it keeps files in the directory that a plan names.
    pub(crate) keeps_files: bool,
    /// What carries its messages where a plan does not say.
    pub(crate) carrier: Carrier,
    /// All axes that its points may have. Where absent, they are its own `axes` and those of every
    /// pattern.
    pub(crate) only_axes: Option<&'static [&'static AxisRow]>,
    /// Sets up what stands in the place of a rank's endpoints; absent where these carry messages.
    pub(crate) stands_in: Option<StandsIn>,
}

/// Sets up what stands in the place of a rank's endpoints.
pub(crate) type StandsIn = fn(&mut Site<'_>) -> Result<Box<dyn PreparedEndpoints>, PointError>;

impl Row {
    /// A pattern of this name that needs nothing, and has no axes of its own.
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
            stands_in: None,
        }
    }
}

/// A pattern whose types are not known.
pub(crate) trait Entry: Sync {
    /// What all others may know of it.
    fn row(&self) -> &'static Row;

    /// As [`Pattern::topology`].
    fn topology(&self, spec: &PointSpec) -> Topology;

    /// As [`Pattern::defaults`].
    fn defaults(&self, given: &AxisList, carrier: Carrier) -> Defaults;

    /// As [`Pattern::failure`], also where what a rank told cannot be read.
    fn failure(&self, outcomes: &[Outcome]) -> Option<String>;

    /// As [`Pattern::merge`]; a failed point where what a rank told cannot be read.
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

/// A rank's share of a point of a pattern, with what it tells ready to travel.
pub(crate) fn run_as<P: Pattern, E: DrivenEndpoint>(rank: Rank<'_, E>) -> Result<Outcome, PointError> {
    // A pattern is not compiled for an endpoint that lacks what it needs.
    if const { !E::CAPABILITIES.contain(P::ROW.needs) } {
        let reason = format!("the pattern {:?} needs more than this endpoint has", P::ROW.name);
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

/// Takes what a rank has told out of its outcome.
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
