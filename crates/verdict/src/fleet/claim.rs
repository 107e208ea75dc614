//! A suspicion.

use std::cmp::Ordering;

use super::cells::Cell;
use super::examined::{Against, Place, Way};
use super::model::Model;

/// One quantity of one place in one direction, compared with one thing.
#[derive(Clone, Copy, Debug)]
pub(super) struct Claim {
    pub(super) quantity: usize,
    pub(super) place: Place,
    pub(super) way: Way,
    pub(super) against: Against,
    /// Its effect in the screening; against a floor, its value minus the floor.
    pub(super) screened: f64,
    /// It is suspect near this effect. Below it, it is named against the others; against a floor,
    /// [`Claim::named_below`] tells.
    pub(super) bound: f64,
    /// The number of its cells.
    pub(super) peers: usize,
}

impl Claim {
    /// The effect below which it is named, or missed under load. Against a floor, that is further
    /// down than the bound: noise may explain what is between them.
    pub(super) fn named_below(&self, model: &Model) -> f64 {
        match self.against {
            Against::Others => self.bound,
            Against::Floor => -model.margin(self.place),
        }
    }

    /// Whether it is about one pair, which contains no other place.
    pub(super) fn is_pair(&self) -> bool {
        matches!(self.place, Place::Pair { .. })
    }

    /// How far beyond its threshold, to order claims of several quantities.
    pub(super) fn severity(&self) -> f64 {
        match self.against {
            Against::Others => self.screened / self.bound,
            Against::Floor => 1.0 - self.screened,
        }
    }

    /// The order in which claims get time: hosts and groups before pairs, which are many, and the
    /// worst first.
    pub(super) fn order(&self, other: &Self) -> Ordering {
        self.is_pair().cmp(&other.is_pair()).then(other.severity().total_cmp(&self.severity()))
    }
}

/// A suspicion against the others.
pub(super) fn claim(model: &Model, place: Place, way: Way, screened: f64, bound: f64, peers: usize) -> Claim {
    Claim { quantity: model.quantity, place, way, against: Against::Others, screened, bound, peers }
}

/// One of a pair. Without direction, each pair has two equal cells: the first one stands for both.
pub(super) fn pair_claim(model: &Model, cell: &Cell, screened: f64, bound: f64) -> Option<Claim> {
    let is_first = cell.from < cell.to;
    let way = if is_first { Way::Send } else { Way::Receive };
    let place = Place::Pair { a: cell.from.min(cell.to) as usize, b: cell.from.max(cell.to) as usize };
    (is_first || model.directed).then(|| claim(model, place, way, screened, bound, 1))
}

/// The ways of a quantity.
pub(super) fn ways(is_directed: bool) -> &'static [Way] {
    if is_directed { &[Way::Send, Way::Receive] } else { &[Way::Send] }
}
