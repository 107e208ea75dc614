//! One-way messages: what each rank stamps, and how the stamps of both ranks are merged.
//!
//! ```text
//! rank 0: submitted, completed ─┐
//! rank 1: received, sent       ─┴─► the coordinator: one_way, one_way_send, completion
//! ```
//!
//! # Invariants
//!
//! * One-way messages carry their numbers. Each rank stamps what it observes, and the coordinator
//!   merges the stamps. Two clocks are compared by causality (no message arrives before it is
//!   sent): a stamp of the other clock becomes an interval. The assumptions are those of
//!   `clock::Nominal`. If messages contradict them, the point has a reason and no number.

pub(crate) mod check;
pub(crate) mod choices;
mod command;
mod merge;
pub(crate) mod messages;
mod run;
mod settings;
mod stamped;
/// Messages of a point: one run of Potter 2018.
const ITERATIONS: u64 = 8000;
/// The size in Potter 2018: a value of 8 B and its metadata of 24 B.
const SIZE_BYTES: u64 = 32;

#[cfg(test)]
mod tests;

use measure::presentation::{Presentation, Traffic};
use measure::record::Status;

use self::choices::Stamp;
use self::settings::Settings;
pub(crate) use merge::{Joined, Messages};
pub(crate) use stamped::{Column, Stamped};

use crate::Error;
use crate::axis::{self, AxisList};
use crate::endpoint::connecting::DrivenEndpoint;
use crate::fault::PointError;
use crate::pattern::defaults::Defaults;
use crate::pattern::outcome::{Merged, Outcome};
use crate::pattern::rank::Rank;
use crate::pattern::registry::{Pattern, Row};
use crate::point::{Carrier, Length, Operation, PointSpec};
use crate::topology::{Form, Links, PartSpec, Topology, Usage};

/// A line for each kind of latency, as for every pattern with several kinds.
static SHOWN: Presentation = Presentation { traffic: Traffic::between_two, ..Presentation::PLAIN };

/// The pattern.
pub(crate) struct OneWay;

impl Pattern for OneWay {
    const ROW: Row = Row {
        check: check::experiment,
        command: command::COMMAND,
        shown: &SHOWN,
        axes: settings::AXES,
        can_be_cut: |_| true,
        ..Row::named("one-way")
    };
    type Told = Stamped;

    fn defaults(_given: &AxisList, _carrier: Carrier) -> Defaults {
        Defaults {
            length: Length::Iterations(ITERATIONS),
            size_bytes: SIZE_BYTES,
            // Immediate data numbers the messages.
            operation: Operation::SendImm,
            axes: [Settings::usual(), vec![axis::SEND_POLL.value(None)]].concat(),
            ..Defaults::default()
        }
    }

    fn topology(spec: &PointSpec) -> Topology {
        let form = Form::Numbered { is_stamped: Settings::of(spec).stamp == Stamp::Sent };
        let usage = Usage { form, ..Usage::PACED };
        Topology::of_one(PartSpec::main(&spec.message, usage, Links::of_two()))
    }

    fn run<E: DrivenEndpoint>(rank: Rank<'_, E>) -> Result<(Outcome, Option<Stamped>), PointError> {
        run::run(rank)
    }

    fn merge(spec: &PointSpec, outcomes: &mut Vec<Outcome>, told: Vec<Option<Stamped>>) -> Merged {
        let stamped: Vec<_> = told.into_iter().flatten().collect();
        let [sender, receiver] = &stamped[..] else { return Merged::of(outcomes) };
        match merge::merge(spec, sender, receiver) {
            Ok(joined) => joined.merged(outcomes),
            Err(error) => {
                outcomes.clear();
                Merged::without_numbers(why(&error))
            }
        }
    }
}

impl Joined {
    /// The merged point.
    pub(crate) fn merged(self, outcomes: &[Outcome]) -> Merged {
        let Self { kinds, one_way, samples, counters, unstable } = self;
        let unstable = unstable.into_iter().collect();
        Merged { kinds, one_way: Some(one_way), samples, counters, unstable, ..Merged::of(outcomes) }
    }
}

/// The status of a point whose stamps cannot be merged.
pub(crate) fn why(error: &Error) -> Status {
    let words = error.to_string();
    match error.is_limit() {
        true => Status::NotMeasured { reason: words },
        false => Status::Failed { error: words },
    }
}
