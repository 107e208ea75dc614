//! The two-way model of a quantity, by median polish (Tukey, Exploratory Data Analysis, 1977,
//! chapter 11), over the cells that exist.

use super::cells::Cell;
use super::robust::{median, median_of};

/// Sweeps over senders and receivers. Effects change by less than their error after that.
const SWEEPS: usize = 4;

/// `value = level + send[from] + receive[to] + residual` of each cell. The medians of both effects
/// are 0. A host without cells has the effect 0.
#[derive(Clone, Debug, Default)]
pub(super) struct Fit {
    pub(super) level: f64,
    pub(super) send: Vec<f64>,
    pub(super) receive: Vec<f64>,
    /// The number of cells in which a host sends, and receives.
    pub(super) sent: Vec<usize>,
    pub(super) received: Vec<usize>,
    /// In the order of the cells.
    pub(super) residuals: Vec<f64>,
}

impl Fit {
    /// Fits cells that are sorted by sender.
    pub(super) fn of(count: usize, cells: &[Cell]) -> Self {
        debug_assert!(cells.is_sorted_by_key(|cell| cell.from));
        let level = median(cells.iter().map(|cell| cell.value)).unwrap_or(0.0);
        let mut residuals: Vec<f64> = cells.iter().map(|cell| cell.value - level).collect();
        let senders = Lines::of(count, cells, |cell| cell.from);
        let receivers = Lines::of(count, cells, |cell| cell.to);
        let mut send = vec![0.0; count];
        let mut receive = vec![0.0; count];
        for _ in 0..SWEEPS {
            senders.sweep(&mut residuals, &mut send);
            receivers.sweep(&mut residuals, &mut receive);
        }
        let sent = senders.lengths();
        let received = receivers.lengths();
        let level = level + centre(&mut send, &sent) + centre(&mut receive, &received);
        Self { level, send, receive, sent, received, residuals }
    }

    /// Fits a quantity without direction, whose cells are there in both directions: one effect for
    /// each host.
    pub(super) fn symmetric(count: usize, cells: &[Cell]) -> Self {
        let mut fit = Self::of(count, cells);
        let effects: Vec<f64> =
            fit.send.iter().zip(&fit.receive).map(|(&a, &b)| f64::midpoint(a, b)).collect();
        fit.send.clone_from(&effects);
        fit.receive = effects;
        fit.residuals = cells.iter().map(|cell| cell.value - fit.expected(cell.from, cell.to)).collect();
        fit
    }

    /// The value of a cell without its residual.
    pub(super) fn expected(&self, from: u32, to: u32) -> f64 {
        self.level + self.send[from as usize] + self.receive[to as usize]
    }
}

/// Moves the median of the effects of hosts with cells out of them, and returns it.
fn centre(effects: &mut [f64], cells: &[usize]) -> f64 {
    let known = effects.iter().zip(cells).filter(|(_, cells)| **cells > 0).map(|(&effect, _)| effect);
    let middle = median(known).unwrap_or(0.0);
    for (effect, _) in effects.iter_mut().zip(cells).filter(|(_, cells)| **cells > 0) {
        *effect -= middle;
    }
    middle
}

/// The cells of each sender, or of each receiver: indices, and where each host's begin.
struct Lines {
    order: Vec<u32>,
    starts: Vec<usize>,
}

impl Lines {
    fn of(count: usize, cells: &[Cell], host: impl Fn(&Cell) -> u32) -> Self {
        let mut starts = vec![0; count + 1];
        for cell in cells {
            starts[host(cell) as usize + 1] += 1;
        }
        for line in 0..count {
            starts[line + 1] += starts[line];
        }
        let mut next = starts.clone();
        let mut order = vec![0; cells.len()];
        for (index, cell) in (0..).zip(cells) {
            let place = &mut next[host(cell) as usize];
            order[*place] = index;
            *place += 1;
        }
        Self { order, starts }
    }

    /// Moves the median of each line from its residuals to its effect.
    fn sweep(&self, residuals: &mut [f64], effects: &mut [f64]) {
        let mut scratch = Vec::new();
        for (line, effect) in self.starts.windows(2).zip(effects) {
            let cells = &self.order[line[0]..line[1]];
            scratch.clear();
            scratch.extend(cells.iter().map(|&cell| residuals[cell as usize]));
            let Some(middle) = median_of(&mut scratch) else { continue };
            *effect += middle;
            for &cell in cells {
                residuals[cell as usize] -= middle;
            }
        }
    }

    fn lengths(&self) -> Vec<usize> {
        self.starts.windows(2).map(|line| line[1] - line[0]).collect()
    }
}
