//! Several messages go out, one comes back: the parametrised round trip PRTT(n, d, s) of LogGP.
//!
//! # In a plan
//!
//! ```toml
//! [[experiment]]                       # parametrised round trips PRTT(n, d, s): what LogGP is fitted to
//! name = "loggp"
//! pattern = "prtt"
//! [experiment.axes]
//! burst = [1, 16]                      # n: messages that one message answers
//! pause_ns = 0                         # d: from the end of a post to the next, or a duration such as "20us"
//! ```

pub(crate) mod check;
mod command;
mod rounds;
mod settings;

use std::time::Duration;

use measure::record::{Cpu, LatencyKind};
use measure::samples::Recorder;

use self::rounds::Burst;
use self::settings::Settings;
use crate::Error;
use crate::axis::AxisList;
use crate::cpu::watched;
use crate::endpoint::Endpoint;
use crate::endpoint::capabilities::Capabilities;
use crate::endpoint::connecting::DrivenEndpoint;
use crate::fault::PointError;
use crate::pattern::defaults::{BURST, Defaults};
use crate::pattern::outcome::Outcome;
use crate::pattern::rank::Rank;
use crate::pattern::registry::{Pattern, Row};
use crate::pattern::timed::{Timed, latency_outcome, timed};
use crate::point::{Carrier, PointSpec};
use crate::topology::{Links, PartSpec, Topology, Usage};

/// The pattern.
pub(crate) struct Prtt;

impl Pattern for Prtt {
    const ROW: Row = Row {
        check: check::experiment,
        needs: Capabilities::COUNTED,
        command: command::COMMAND,
        axes: settings::AXES,
        can_be_cut: |_| true,
        ..Row::named("prtt")
    };
    type Told = ();

    fn defaults(_given: &AxisList, _carrier: Carrier) -> Defaults {
        Defaults { size_bytes: SIZE_BYTES, axes: Settings::usual(), ..Defaults::default() }
    }

    fn topology(spec: &PointSpec) -> Topology {
        Topology::of_one(PartSpec::main(&spec.message, Usage::PACED, Links::of_two()))
    }

    /// Times the rounds at rank 0, answers them at rank 1.
    fn run<E: DrivenEndpoint>(rank: Rank<'_, E>) -> Result<(Outcome, Option<()>), PointError> {
        let spec = rank.spec;
        let number = rank.rank;
        let clock = rank.clock();
        let endpoint = rank.main()?;
        let Settings { burst, pause_ns } = Settings::of(spec);
        let messages = burst.unwrap_or(BURST);
        let burst = Burst { messages, pause: Duration::from_nanos(pause_ns) };
        if number > 0 {
            let (done, cpu) = watched(clock, || rounds::answer(endpoint, messages));
            done?;
            return Ok((Outcome { cpu, ..Outcome::default() }, None));
        }
        let (samples, cpu) = timed(Rounds { endpoint, spec, burst }, spec, LatencyKind::Prtt, clock)?;
        let outcome = latency_outcome(&samples, LatencyKind::Prtt, spec, messages.into());
        Ok((Outcome { cpu, ..outcome }, None))
    }
}

/// The rounds that rank 0 times.
struct Rounds<'a, E> {
    endpoint: &'a mut E,
    spec: &'a PointSpec,
    burst: Burst,
}

impl<E: Endpoint> Timed for Rounds<'_, E> {
    fn run<R: Recorder>(self, recorder: &mut R) -> (Result<(), Error>, Option<Cpu>) {
        let Self { endpoint, spec, burst } = self;
        watched(endpoint.clock(), || rounds::prtt(endpoint, recorder, burst, spec.warmup, spec.length))
    }
}

/// The size at which LogGP's time per byte plays no part.
const SIZE_BYTES: u64 = 1;
