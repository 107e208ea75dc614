//! The number of its points that a figure shows.

use measure::presentation::Patterns;
use measure::quantity::Found;
use measure::record::{Latency, Point};

use crate::unit::Scale;

/// The path of the number, and the unit that it is printed in.
#[derive(Clone, Copy)]
pub(super) struct Y<'p> {
    pub(super) path: &'p str,
    pub(super) patterns: Patterns,
    pub(super) scale: Scale,
}

impl<'p> Y<'p> {
    fn at(&self, point: &Point) -> Option<Found<'p>> {
        self.patterns.find_at(point, self.path)
    }

    /// The number of a point, in the unit of the figure.
    pub(super) fn number(&self, point: &Point) -> Option<f64> {
        self.at(point)?.number(point).map(|number| self.scale.apply(number))
    }

    /// The latency that the number belongs to.
    pub(super) fn latency<'a>(&self, point: &'a Point) -> Option<&'a Latency> {
        self.at(point)?.latency(point)
    }

    /// The largest error of the number from comparing two clocks, in the unit of the figure.
    pub(super) fn bound(&self, point: &Point) -> Option<f64> {
        self.at(point)?.bound(point).map(|bound| self.scale.apply(bound))
    }
}
