//! One quantity of one pair in one direction.

use serde::{Deserialize, Serialize};

/// The value of a quantity from one host to another, as a logarithm (larger is better). It is
/// written as `[from, to, value]`.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Serialize)]
#[serde(from = "(u32, u32, f64)", into = "(u32, u32, f64)")]
pub struct Cell {
    /// The host that sends.
    pub from: u32,
    /// The host that receives.
    pub to: u32,
    /// The middle of all passes.
    pub value: f64,
}

impl From<(u32, u32, f64)> for Cell {
    fn from((from, to, value): (u32, u32, f64)) -> Self {
        Self { from, to, value }
    }
}

impl From<Cell> for (u32, u32, f64) {
    fn from(cell: Cell) -> Self {
        (cell.from, cell.to, cell.value)
    }
}

/// Each cell in both directions, of a quantity without direction.
pub(super) fn mirrored(cells: &[Cell]) -> Vec<Cell> {
    let back = cells.iter().map(|cell| Cell { from: cell.to, to: cell.from, ..*cell });
    cells.iter().copied().chain(back).collect()
}
