//! A message goes out, one comes back, and both ranks time every one (Gamess and Ortiz-Zuazaga
//! 2016, section V). The peer's adapter alone answers a fetch; a put or a get of MPI completes
//! without an answer.

mod bounce;
mod command;
mod fetch;
mod table;

use measure::record::{Cpu, LatencyKind};
use measure::samples::Recorder;

pub(crate) use bounce::ping_pong;
use fetch::fetch;

use crate::Error;
use crate::axis::{self, AxisList};
use crate::cpu::watched;
use crate::endpoint::Endpoint;
use crate::endpoint::connecting::DrivenEndpoint;
use crate::fault::PointError;
use crate::pattern::check::Check;
use crate::pattern::defaults::{Defaults, over_mpi};
use crate::pattern::outcome::Outcome;
use crate::pattern::rank::Rank;
use crate::pattern::registry::{Pattern, Row};
use crate::pattern::timed::{Timed, latency_outcome, timed};
use crate::point::{Carrier, MpiCall, Operation, PointSpec, Tool};
use crate::topology::{Links, PartSpec, Topology, Usage};

/// The pattern.
pub(crate) struct PingPong;

impl Pattern for PingPong {
    const ROW: Row = Row {
        check,
        axes: &[axis::MPI_CALL.row, axis::MPI_OPERATION.row, axis::MPI_SYNC.row],
        command: command::COMMAND,
        shown: &table::SHOWN,
        tools: &[Tool::Qperf, Tool::Sockperf],
        can_be_cut: |_| true,
        ..Row::named("ping-pong")
    };
    type Told = ();

    fn defaults(given: &AxisList, _carrier: Carrier) -> Defaults {
        Defaults { axes: over_mpi(given, MpiCall::Blocking), ..Defaults::default() }
    }

    fn topology(spec: &PointSpec) -> Topology {
        Topology::of_one(PartSpec::main(&spec.message, Usage::ALTERNATING, Links::of_two()))
    }

    fn run<E: DrivenEndpoint>(rank: Rank<'_, E>) -> Result<(Outcome, Option<()>), PointError> {
        let spec = rank.spec;
        let number = rank.rank;
        let clock = rank.clock();
        let endpoint = rank.main()?;
        let fetches = spec.message.completes_alone();
        if fetches && number > 0 {
            let (done, cpu) = watched(clock, || endpoint.attend());
            done?;
            return Ok((Outcome { cpu, ..Outcome::default() }, None));
        }
        let kind = kind(spec);
        let bounce = Bounce { endpoint: &mut *endpoint, spec, rank: number };
        let (samples, cpu) = timed(bounce, spec, kind, clock)?;
        if fetches {
            endpoint.release()?;
        }
        // Each message that goes out is answered by another; two end no interval.
        let messages = match fetches {
            true => samples.count() + spec.warmup,
            false => 2 * (samples.count() + spec.warmup + 2),
        };
        let cpu = cpu.map(|cpu| cpu.of(messages));
        Ok((Outcome { cpu, ..latency_outcome(&samples, kind, spec, 1) }, None))
    }
}

/// The kind of latency of the samples.
fn kind(spec: &PointSpec) -> LatencyKind {
    if spec.message.mpi.operation.is_one_sided() {
        LatencyKind::OneSided
    } else if spec.message.operation.is_fetch() {
        LatencyKind::Rtt
    } else {
        LatencyKind::RttHalf
    }
}

/// Refuses a target of RDMA Write that sleeps.
fn check(check: &Check<'_>) -> Result<(), Error> {
    let sleeps = check.0.axes.get(axis::POLL).iter().any(|poll| poll.queues().0.sleeps());
    if sleeps && check.has(axis::OPERATION, Operation::Write) {
        let what = format!("{} with a receiver that sleeps", Operation::Write.name());
        let why = "an RDMA Write causes no completion at the receiver: use write_imm";
        return check.refuse("poll", &what, why);
    }
    Ok(())
}

/// A message that goes out and comes back.
struct Bounce<'a, E> {
    endpoint: &'a mut E,
    spec: &'a PointSpec,
    rank: u32,
}

impl<E: Endpoint> Timed for Bounce<'_, E> {
    fn run<R: Recorder>(self, recorder: &mut R) -> (Result<(), Error>, Option<Cpu>) {
        let Self { endpoint, spec, rank } = self;
        watched(endpoint.clock(), || {
            if spec.message.completes_alone() {
                fetch(endpoint, recorder, spec.warmup, spec.length)
            } else {
                ping_pong(endpoint, recorder, rank == 0, spec.warmup, spec.length)
            }
        })
    }
}
