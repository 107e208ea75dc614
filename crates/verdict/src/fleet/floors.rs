//! Who is below a stated expectation after the screening.

use super::claim::{Claim, claim, pair_claim, ways};
use super::examined::{Against, Place, Way};
use super::model::Model;
use super::robust::median;

/// The fleet is suspect if this share of its cells is below the expectation.
const SHARE_OF_FLEET: f64 = 0.7;
/// The least cells of a host: one low cell does not tell the sender from the receiver.
const CELLS_OF_HOST: usize = 2;

/// The fleet if most of its cells are low, each host more than half of whose cells are low, and
/// each low pair of other hosts.
pub(super) fn of(model: &Model) -> Vec<Claim> {
    let mut cells = Cells::of(model);
    let mut claims: Vec<Claim> = fleet_claim(model, &cells).into_iter().collect();
    while let Some(line) = cells.worst() {
        let own = cells.take(line);
        let way = if line < model.count { Way::Send } else { Way::Receive };
        let screened = median(own.iter().copied()).unwrap_or(0.0);
        claims.push(claim(model, Place::Host(line % model.count), way, screened, 0.0, own.len()));
    }
    let low = cells.all.iter().filter(|cell| cell.is_open && cell.above < 0.0);
    claims.extend(low.filter_map(|low| pair_claim(model, &model.table.fitted[low.index], low.above, 0.0)));
    claims.into_iter().map(|claim| Claim { against: Against::Floor, ..claim }).collect()
}

fn fleet_claim(model: &Model, cells: &Cells) -> Option<Claim> {
    let low = cells.all.iter().filter(|cell| cell.above < 0.0).count();
    let is_most = low > 0 && low as f64 >= SHARE_OF_FLEET * cells.all.len() as f64;
    let middle = median(cells.all.iter().map(|cell| cell.above))?;
    is_most.then(|| claim(model, Place::Fleet, Way::Send, middle, 0.0, cells.all.len()))
}

/// The cells, and which of them no host explains yet. The host with the largest share of low cells
/// is taken first, and its cells do not count for others: where most receivers are slow, most cells
/// of a good sender are low too.
struct Cells {
    all: Vec<Own>,
    /// The cells of each host that sends, then of each that receives. Without direction, all cells
    /// of each host.
    lines: Vec<Line>,
}

/// One cell.
struct Own {
    /// Its index in the table.
    index: usize,
    /// Its value minus the expectation.
    above: f64,
    lines: [usize; 2],
    is_open: bool,
}

/// The cells of one host in one way: indices, how many are open, and how many of these are low.
#[derive(Clone, Default)]
struct Line {
    cells: Vec<usize>,
    open: usize,
    low: usize,
}

impl Cells {
    fn of(model: &Model) -> Self {
        let count = model.count;
        let mut lines = vec![Line::default(); ways(model.directed).len() * count];
        let mut all = Vec::new();
        for (index, (cell, value)) in model.table.fitted.iter().zip(&model.table.raw).enumerate() {
            // Without direction, each pair has two equal cells.
            if !model.directed && cell.from > cell.to {
                continue;
            }
            let [from, to] = [cell.from, cell.to].map(|host| host as usize);
            let Some(above) = model.above([from, to], *value) else { continue };
            let receiver = if model.directed { count } else { 0 } + to;
            let own = Own { index, above, lines: [from, receiver], is_open: true };
            for line in own.lines {
                lines[line].cells.push(all.len());
                lines[line].open += 1;
                lines[line].low += usize::from(own.above < 0.0);
            }
            all.push(own);
        }
        Self { all, lines }
    }

    /// The line with the largest share of low cells, if that is more than half.
    fn worst(&self) -> Option<usize> {
        let is_low = |line: &(usize, &Line)| line.1.open >= CELLS_OF_HOST && 2 * line.1.low > line.1.open;
        let share = |line: &Line| line.low as f64 / line.open as f64;
        let worst = self
            .lines
            .iter()
            .enumerate()
            .filter(is_low)
            .min_by(|(_, a), (_, b)| share(b).total_cmp(&share(a)).then(b.low.cmp(&a.low)));
        worst.map(|(line, _)| line)
    }

    /// Closes the open cells of a line, and returns their values minus the expectation.
    fn take(&mut self, line: usize) -> Vec<f64> {
        let mut taken = Vec::new();
        for index in std::mem::take(&mut self.lines[line].cells) {
            let cell = &mut self.all[index];
            if std::mem::replace(&mut cell.is_open, false) {
                taken.push(cell.above);
                for line in cell.lines {
                    self.lines[line].open -= 1;
                    self.lines[line].low -= usize::from(cell.above < 0.0);
                }
            }
        }
        taken
    }
}
