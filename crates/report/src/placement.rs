//! Whether the whole run ran on CPUs that were far from each other: the first sentence of a report.

use measure::placement::{Placed, Verdict};
use measure::record::Point;

/// The sentence, if the run did.
pub(crate) fn headline(points: &[Point]) -> Option<String> {
    let placed: Vec<Placed> = points.iter().filter_map(Placed::of).collect();
    Verdict::of(&placed)?.headline()
}
