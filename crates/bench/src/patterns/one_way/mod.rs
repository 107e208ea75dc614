//! Messages that are timed one way: what each rank stamps, and what the stamps of both come to.
//!
//! ```text
//! rank 0: submitted, completed ─┐
//! rank 1: received, sent       ─┴─► the coordinator: one_way, one_way_send, completion
//! ```
//!
//! # Invariants
//!
//! * Messages that are timed one way carry their numbers. Each end stamps what it sees, and the
//!   coordinator puts the stamps together. Two clocks are compared by what must be true (no message
//!   arrives before it is sent): a stamp of the other clock becomes an interval. The assumptions
//!   stand in `clock::Nominal`; where they are contradicted, the point has a reason and no number.

pub(crate) mod check;
pub(crate) mod choices;
mod command;
mod merge;
pub(crate) mod messages;
mod run;
mod settings;
mod stamped;
/// Messages of a one-way point: one run of the thesis (V10).
const ITERATIONS: u64 = 8000;
/// The thesis's size: a value and its meta data (V11).
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

/// A line for each kind of latency, as every pattern with several kinds has.
static SHOWN: Presentation = Presentation { traffic: Traffic::between_two, ..Presentation::PLAIN };

/// The pattern.
pub(crate) struct OneWay;

impl Pattern for OneWay {
    const ROW: Row = Row {
        check: check::experiment,
        command: command::COMMAND,
        shown: &SHOWN,
        axes: settings::AXES,
        ..Row::named("one-way")
    };
    type Told = Stamped;

    fn defaults(_given: &AxisList, _carrier: Carrier) -> Defaults {
        Defaults {
            length: Length::Iterations(ITERATIONS),
            size_bytes: SIZE_BYTES,
            // Messages are told apart by their immediate data.
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
    /// What the point comes to.
    pub(crate) fn merged(self, outcomes: &[Outcome]) -> Merged {
        let Self { kinds, one_way, samples, counters, unstable } = self;
        let unstable = unstable.into_iter().collect();
        Merged { kinds, one_way: Some(one_way), samples, counters, unstable, ..Merged::of(outcomes) }
    }
}

/// What a point is whose stamps cannot be put together.
pub(crate) fn why(error: &Error) -> Status {
    let words = error.to_string();
    match error.is_limit() {
        true => Status::NotMeasured { reason: words },
        false => Status::Failed { error: words },
    }
}
