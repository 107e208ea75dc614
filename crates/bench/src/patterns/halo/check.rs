//! What a plan must not ask of halo exchanges.

use super::choices::{Grid, HaloMethod};
use crate::Error;
use crate::axis;
use crate::pattern::check::Check;
use crate::pattern::joint;

/// Checks an experiment of halo exchanges.
pub(super) fn experiment(check: &Check<'_>) -> Result<(), Error> {
    joint::length(check)?;
    let is_line = |grid: &Grid| grid.rows == 1 || grid.columns == 1;
    let line = check.0.axes.get(axis::GRID).into_iter().find(is_line);
    match line.filter(|_| check.has(axis::HALO_METHOD, HaloMethod::Neighbour)) {
        Some(grid) if grid.ranks() == 1 => {
            let why = "a rank that is its own neighbour on all sides gets them in an order that libraries do not agree on";
            check.refuse("grid", &format!("neighbourhood collectives on a grid of {grid}"), why)
        }
        _ => Ok(()),
    }
}
