//! A suspicion.

use super::examined::{Against, Place, Way};

/// One quantity of one place in one direction, compared with one thing.
#[derive(Clone, Copy, Debug)]
pub(super) struct Claim {
    pub(super) quantity: usize,
    pub(super) place: Place,
    pub(super) way: Way,
    pub(super) against: Against,
    /// Its effect in the screening; against a floor, its value minus the floor.
    pub(super) screened: f64,
    /// It is named if its effect is below this.
    pub(super) bound: f64,
    /// The number of its cells.
    pub(super) peers: usize,
}

impl Claim {
    /// How far beyond its threshold, to order claims of several quantities.
    pub(super) fn severity(&self) -> f64 {
        match self.against {
            Against::Others => self.screened / self.bound,
            Against::Floor => 1.0 - self.screened,
        }
    }
}

/// The ways of a quantity.
pub(super) fn ways(is_directed: bool) -> &'static [Way] {
    if is_directed { &[Way::Send, Way::Receive] } else { &[Way::Send] }
}
