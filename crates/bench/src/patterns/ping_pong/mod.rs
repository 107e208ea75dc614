//! A message goes forth, one comes back, every one is timed at both ends (G18); what fetches is
//! answered by an adapter alone.

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
use crate::pattern::defaults::Defaults;
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
        axes: &[axis::MPI_CALL.row],
        command: command::COMMAND,
        shown: &table::SHOWN,
        tools: &[Tool::Qperf, Tool::Sockperf],
        ..Row::named("ping-pong")
    };
    type Told = ();

    fn defaults(_given: &AxisList, _carrier: Carrier) -> Defaults {
        Defaults { axes: vec![axis::MPI_CALL.value(MpiCall::Blocking)], ..Defaults::default() }
    }

    fn topology(spec: &PointSpec) -> Topology {
        Topology::of_one(PartSpec::main(&spec.message, Usage::ALTERNATING, Links::of_two()))
    }

    fn run<E: DrivenEndpoint>(rank: Rank<'_, E>) -> Result<(Outcome, Option<()>), PointError> {
        let spec = rank.spec;
        let number = rank.rank;
        let clock = rank.clock();
        let fetches = spec.message.operation.is_fetch();
        if fetches && number > 0 {
            // The peer's adapter answers alone.
            return Ok((Outcome { cpu: watched(clock, || ()).1, ..Outcome::default() }, None));
        }
        let kind = if fetches { LatencyKind::Rtt } else { LatencyKind::RttHalf };
        let bounce = Bounce { endpoint: rank.main()?, spec, rank: number };
        let (samples, cpu) = timed(bounce, spec, kind, clock)?;
        // The first interval ends with the message after the warm-up; where one goes forth, another
        // comes back.
        let messages = (samples.count() + spec.warmup + 1) * if fetches { 1 } else { 2 };
        let cpu = cpu.map(|cpu| cpu.of(messages));
        Ok((Outcome { cpu, ..latency_outcome(&samples, kind, spec, 1) }, None))
    }
}

/// A target of RDMA Write cannot sleep.
fn check(check: &Check<'_>) -> Result<(), Error> {
    let sleeps = check.0.axes.get(axis::POLL).iter().any(|poll| poll.queues().0.sleeps());
    if sleeps && check.has(axis::OPERATION, Operation::Write) {
        let what = format!("{} with a receiver that sleeps", Operation::Write.name());
        let why = "the target is told of nothing that it could sleep for: use write_imm";
        return check.refuse("poll", &what, why);
    }
    Ok(())
}

/// A message that goes forth and back.
struct Bounce<'a, E> {
    endpoint: &'a mut E,
    spec: &'a PointSpec,
    rank: u32,
}

impl<E: Endpoint> Timed for Bounce<'_, E> {
    fn run<R: Recorder>(self, recorder: &mut R) -> (Result<(), Error>, Option<Cpu>) {
        let Self { endpoint, spec, rank } = self;
        watched(endpoint.clock(), || {
            if spec.message.operation.is_fetch() {
                fetch(endpoint, recorder, spec.warmup, spec.length)
            } else {
                ping_pong(endpoint, recorder, rank == 0, spec.warmup, spec.length)
            }
        })
    }
}
