//! One verbs call is timed by itself, in batches (Hoefler et al. 2006, section 4.2).
//!
//! # In a plan
//!
//! ```toml
//! [[experiment]]                       # the cost of calls, timed in batches: cost.ns
//! name = "calls"
//! pattern = "overhead"
//! iterations = 1000                    # batches
//! [experiment.axes]
//! step = ["post_send", "poll_empty"]   # all steps: point::Step
//! batch = "step"                       # calls between two stamps: a number, or that of the step
//! ```
//!
//! # Connections of RDMA CM
//!
//! Rank 0 times both steps, and rank 1 is the peer, in another process. Before the first stamp each
//! rank has created a queue pair and moved it to INIT, as for `connect_qp`, and rank 0 has created
//! an event channel.
//!
//! * `rdma_cm_connect` is, at rank 0, `rdma_create_id`, `rdma_resolve_addr`, `rdma_resolve_route`,
//!   `rdma_connect`, the wait for each of their events (`poll`, `rdma_get_cm_event`,
//!   `rdma_ack_cm_event`), RTR and RTS (`rdma_init_qp_attr` and `ibv_modify_qp`, twice) and
//!   `rdma_establish`. Rank 1's part happens between `rdma_connect` and its event: it takes the
//!   request from a listener that waits in `poll`, moves its queue pair to RTS and calls
//!   `rdma_accept`.
//! * `rdma_cm_disconnect` is `rdma_disconnect` and the wait for its event, which rank 1 causes by
//!   its call of `rdma_disconnect`.
//!
//! The cost that RDMA CM adds to a set-up by hand is `rdma_cm_connect` minus `connect_qp`, which is
//! only rank 0's RTR and RTS. Queue pairs and identifiers are destroyed after the second stamp.
//!
//! # Invariants
//!
//! * Calls that cost less than a stamp are timed in batches of equal calls, with everything that
//!   they need prepared before. A batch in which a poll finds nothing does not count. The stamp
//!   that a batch includes is shown next to its time and never subtracted.

mod batches;
pub(crate) mod check;
mod command;
mod settings;
mod table;

use std::collections::BTreeMap;

use measure::clock::{Clock, StampCost};
use measure::record::{Cost, LatencyKind};
use measure::samples::{RawSamples, Scale};
use measure::step::step as step_of;

use self::batches::{Count, answer, overhead, time};
use self::settings::Settings;
use crate::Error;
use crate::axis::{self, AxisList};
use crate::endpoint::calls::{Calls, CallsVisitor};
use crate::endpoint::capabilities::Capabilities;
use crate::endpoint::connecting::DrivenEndpoint;
use crate::fault::{PointError, out_of_order};
use crate::pattern::defaults::Defaults;
use crate::pattern::outcome::{Merged, Outcome, Told};
use crate::pattern::rank::Rank;
use crate::pattern::registry::{Pattern, Row};
use crate::pattern::timed::latency_outcome;
use crate::point::{Carrier, Length, Operation, PointSpec, Step};
use crate::topology::{Links, PartSpec, Topology, Usage};

/// The pattern.
pub(crate) struct Overhead;

impl Told for Cost {}

impl Pattern for Overhead {
    const ROW: Row = Row {
        check: check::experiment,
        needs: Capabilities::COUNTED.and(Capabilities::VERBS_CALLS),
        command: command::COMMAND,
        shown: &table::SHOWN,
        axes: settings::AXES,
        // The other rank of the connection manager's steps counts them.
        can_be_cut: |spec| !Settings::of(spec).step.is_of_manager(),
        ..Row::named("overhead")
    };
    type Told = Cost;

    /// By default all verbs calls that apply to the operations.
    fn defaults(given: &AxisList, _carrier: Carrier) -> Defaults {
        let arrives = given.get(axis::OPERATION).into_iter().all(Operation::arrives);
        let steps = Step::OF_VERBS.into_iter().filter(|step| arrives || !step.is_of_receiver());
        Defaults {
            length: Length::Iterations(ITERATIONS),
            size_bytes: SIZE_BYTES,
            axes: vec![axis::STEP.values(steps), axis::BATCH.value(None)],
            ..Defaults::default()
        }
    }

    fn topology(spec: &PointSpec) -> Topology {
        Topology::of_one(PartSpec::main(&spec.message, Usage::PACED, Links::of_two()))
    }

    fn run<E: DrivenEndpoint>(rank: Rank<'_, E>) -> Result<(Outcome, Option<Cost>), PointError> {
        let spec = rank.spec;
        let number = rank.rank;
        let clock = rank.clock();
        let share = Share { spec, rank: number, clock };
        rank.main()?.visit_calls(share).ok_or_else(|| out_of_order("run"))?.map_err(PointError::from)
    }

    fn merge(_spec: &PointSpec, outcomes: &mut Vec<Outcome>, told: Vec<Option<Cost>>) -> Merged {
        Merged { cost: told.into_iter().flatten().next(), ..Merged::of(outcomes) }
    }
}

/// A rank's share of a point.
struct Share<'a> {
    spec: &'a PointSpec,
    rank: u32,
    clock: Clock,
}

impl CallsVisitor for Share<'_> {
    type Done = Result<(Outcome, Option<Cost>), Error>;

    /// Times the step of the point, or acts as the peer of the rank that times it.
    fn visit<C: Calls>(self, endpoint: &mut C) -> Self::Done {
        let Self { spec, rank, clock } = self;
        let settings = Settings::of(spec);
        let step = settings.step;
        let batch = settings.batch(spec);
        let Length::Iterations(batches) = spec.length else { return Ok((Outcome::default(), None)) };
        let is_answered = step.has_messages() && spec.message.operation.arrives();
        if rank != step.rank() && step.is_of_manager() {
            endpoint.accept(step, batch, spec.warmup + batches)?;
            return Ok((Outcome::default(), None));
        }
        if rank != step.rank() {
            let (takes, gives) = if step.is_of_receiver() { (1, batch) } else { (batch, 1) };
            if is_answered {
                answer(endpoint, takes, gives)?;
            }
            return Ok((Outcome::default(), None));
        }
        let stamp_ns = StampCost::measure(&clock).stamp_ns;
        let count = Count { calls: batch, warmup: spec.warmup, batches };
        let mut samples = RawSamples::new(usize::try_from(batches).unwrap_or(usize::MAX))?;
        let incomplete = if step.is_hot() {
            overhead(endpoint, &mut samples, step, is_answered, count)?
        } else {
            time(&mut endpoint.objects(step, batch)?, &mut samples, clock, count)?
        };
        let counters = BTreeMap::from([("batches_incomplete".to_owned(), incomplete)]);
        let samples = samples.finish(&clock, Scale::of(LatencyKind::Call));
        let unstable = step_of(&samples.series()).map(|shift| shift.of("the time of a batch"));
        let outcome = latency_outcome(&samples, LatencyKind::Call, spec, 1);
        let mut outcome = Outcome { counters, unstable, ..outcome };
        let cost = outcome.latency.as_ref().map(|batches| Cost::new(step.word(), batch, batches, stamp_ns));
        if !spec.keep_samples {
            outcome.samples.clear();
            outcome.histogram = Some(samples.histogram());
        }
        Ok((outcome, cost))
    }
}

/// The number of batches: enough for a confidence interval of about a percent, and done in a second
/// if a call takes a millisecond.
const ITERATIONS: u64 = 1000;
/// A cache line: about the most that every adapter posts inline.
const SIZE_BYTES: u64 = 64;
