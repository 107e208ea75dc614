//! A point of samples at a fixed rate: what its ranks do, and what they say of it.

use super::run::{Part, run};
use crate::endpoint::connecting::End;
use crate::point::PointSpec;
use crate::process::agent::PointError;
use crate::process::message::Outcome;
use crate::timepiece::Timepiece;
use crate::worker::endpoints::Endpoints;

/// One rank of it.
pub(crate) fn pipeline<E: End>(
    endpoints: &mut Endpoints<E>,
    spec: &PointSpec,
    rank: u32,
    timepiece: &Timepiece,
) -> Result<Outcome, PointError> {
    let has_one_clock = endpoints.company.has_one_clock;
    let Part { stamped, generated, sunk, cpu } =
        run(endpoints.main()?, spec, rank, has_one_clock, timepiece)?;
    Ok(Outcome {
        stamped: Some(Box::new(stamped)),
        generated: generated.map(Box::new),
        sunk,
        cpu,
        ..Outcome::default()
    })
}
