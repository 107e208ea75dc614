//! A point of samples at a fixed rate: what its ranks do, and what they say of it.

use measure::record::{Direction, Throughput};

use super::endpoints::Endpoints;
use crate::endpoint::connecting::End;
use crate::pipeline::{self, Part};
use crate::point::PointSpec;
use crate::process::agent::PointError;
use crate::process::message::Outcome;
use crate::timepiece::Timepiece;

/// One rank of it.
pub(super) fn pipeline<E: End>(
    endpoints: &mut Endpoints<E>,
    spec: &PointSpec,
    rank: u32,
    timepiece: &Timepiece,
) -> Result<Outcome, PointError> {
    let has_one_clock = endpoints.company.has_one_clock;
    let Part { stamped, generated, sunk, cpu } =
        pipeline::run(endpoints.main()?, spec, rank, has_one_clock, timepiece)?;
    let of = |messages_per_s| Throughput::of(messages_per_s, spec.size_bytes, Direction::Uni);
    Ok(Outcome {
        stamped: Some(Box::new(stamped)),
        throughput: generated.as_ref().map(|generated| of(generated.achieved_hz)),
        generated: generated.map(Box::new),
        sunk,
        cpu,
        ..Outcome::default()
    })
}
