//! Whether a run as a whole was made by CPUs that were far from each other: what a report says
//! before anything else.

use measure::placement::{Placed, Verdict};
use measure::record::Point;

/// The sentence, if the run was.
pub(crate) fn headline(points: &[Point]) -> Option<String> {
    let placed: Vec<Placed> = points.iter().filter_map(Placed::of).collect();
    Verdict::of(&placed)?.headline()
}
