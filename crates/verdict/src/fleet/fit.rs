//! The two-way model of a quantity, by median polish (Tukey, Exploratory Data Analysis, 1977,
//! chapter 11), over the cells that exist.

use super::cells::Cell;
use super::distance::Distances;
use super::robust::{median, median_of};

/// Sweeps over senders and receivers. Effects change by less than their error after that.
const SWEEPS: usize = 4;
/// The same where distances are known: a slow group moves that of its paths, and more sweeps move
/// it back.
const SWEEPS_APART: usize = 10;

/// `value = level + apart(from, to) + send[from] + receive[to] + residual` of each cell. The
/// medians of all effects are 0. A host without cells has the effect 0.
#[derive(Clone, Debug, Default)]
pub(super) struct Fit {
    pub(super) level: f64,
    pub(super) send: Vec<f64>,
    pub(super) receive: Vec<f64>,
    pub(super) distances: Distances,
    /// The effect of each distance.
    pub(super) of_distances: Vec<f64>,
    /// The number of cells in which a host sends, and receives.
    pub(super) sent: Vec<usize>,
    pub(super) received: Vec<usize>,
    /// In the order of the cells.
    pub(super) residuals: Vec<f64>,
}

impl Fit {
    /// Fits cells that are sorted by sender.
    pub(super) fn of(count: usize, distances: Distances, cells: &[Cell]) -> Self {
        debug_assert!(cells.is_sorted_by_key(|cell| cell.from));
        let level = median(cells.iter().map(|cell| cell.value)).unwrap_or(0.0);
        let mut residuals: Vec<f64> = cells.iter().map(|cell| cell.value - level).collect();
        let senders = Lines::of(count, cells, |cell| cell.from);
        let receivers = Lines::of(count, cells, |cell| cell.to);
        let between = |cell: &Cell| distances.between(cell.from as usize, cell.to as usize);
        // The level is that of the only distance.
        let apart =
            (distances.count() > 1).then(|| Lines::of(distances.count(), cells, |cell| between(cell) as u32));
        let mut send = vec![0.0; count];
        let mut receive = vec![0.0; count];
        let mut of_distances = vec![0.0; distances.count()];
        for _ in 0..if apart.is_some() { SWEEPS_APART } else { SWEEPS } {
            apart.iter().for_each(|apart| apart.sweep(&mut residuals, &mut of_distances));
            senders.sweep(&mut residuals, &mut send);
            receivers.sweep(&mut residuals, &mut receive);
        }
        let sent = senders.lengths();
        let received = receivers.lengths();
        let apart = median(cells.iter().map(|cell| of_distances[between(cell)])).unwrap_or(0.0);
        of_distances.iter_mut().for_each(|effect| *effect -= apart);
        let level = level + apart + centre(&mut send, &sent) + centre(&mut receive, &received);
        Self { level, send, receive, distances, of_distances, sent, received, residuals }
    }

    /// Fits a quantity without direction, whose cells are there in both directions: one effect for
    /// each host.
    pub(super) fn symmetric(count: usize, distances: Distances, cells: &[Cell]) -> Self {
        let mut fit = Self::of(count, distances, cells);
        let effects: Vec<f64> =
            fit.send.iter().zip(&fit.receive).map(|(&a, &b)| f64::midpoint(a, b)).collect();
        fit.send.clone_from(&effects);
        fit.receive = effects;
        fit.residuals = cells.iter().map(|cell| cell.value - fit.expected(cell.from, cell.to)).collect();
        fit
    }

    /// The value of a cell without its residual.
    pub(super) fn expected(&self, from: u32, to: u32) -> f64 {
        let [from, to] = [from as usize, to as usize];
        self.level + self.apart(from, to) + self.send[from] + self.receive[to]
    }

    /// The effect of the distance between two hosts.
    pub(super) fn apart(&self, a: usize, b: usize) -> f64 {
        self.of_distances[self.distances.between(a, b)]
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

/// The cells of each sender, or of each receiver: indices, and the first one of each host.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fleet::hosts::Hosts;

    const VALUES: [[f64; 5]; 5] = [
        [f64::NAN, -1.32, -0.25, 0.42, 1.14],
        [0.11, f64::NAN, -0.78, 0.75, 1.63],
        [0.27, -1.23, f64::NAN, 1.6, 0.2],
        [-1.73, -0.08, -1.16, f64::NAN, -0.49],
        [-0.71, 0.55, -0.06, -0.59, f64::NAN],
    ];

    fn cells(values: &[[f64; 5]]) -> Vec<Cell> {
        let row = |(from, row): (u32, &[f64; 5])| {
            (0..)
                .zip(*row)
                .filter(|(_, value)| !value.is_nan())
                .map(move |(to, value)| Cell { from, to, value })
                .collect::<Vec<Cell>>()
        };
        (0..).zip(values).flat_map(row).collect()
    }

    fn is_near(found: &[f64], expected: &[f64]) -> bool {
        found.len() == expected.len() && found.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-12)
    }

    /// The expected numbers are those of the same four sweeps in numpy 2.4 (`nanmedian`).
    #[test]
    fn polish_gives_the_numbers_of_numpy() {
        let fit = Fit::of(5, Distances::default(), &cells(&VALUES));
        assert!((fit.level - -0.14875).abs() < 1e-12, "{}", fit.level);
        assert!(is_near(&fit.send, &[0.0, 0.51546875, 0.0525, -1.1125, -0.0525]), "{:?}", fit.send);
        let receive = [-0.362734375, -0.19125, 0.0, 0.476015625, 1.017265625];
        assert!(is_near(&fit.receive, &receive), "{:?}", fit.receive);
        assert!((fit.residuals[0] - -0.98).abs() < 1e-12);
        assert!((fit.residuals[18] - 0.14125).abs() < 1e-12);
    }

    #[test]
    fn effects_are_found_from_a_part_of_the_cells() {
        let n = 40u32;
        let send = |host: u32| f64::from(host * 7 % 11) / 10.0;
        let receive = |host: u32| f64::from(host * 5 % 13) / 10.0;
        let cell = |from: u32, step: u32| {
            let to = (from + step) % n;
            Cell { from, to, value: 3.0 + send(from) + receive(to) }
        };
        let cells: Vec<Cell> =
            (0..n).flat_map(|from| [1, 2, 5, 9, 14, 22, 30, 39].map(|step| cell(from, step))).collect();
        let fit = Fit::of(n as usize, Distances::default(), &cells);
        let difference = |effects: &[f64], truth: &dyn Fn(u32) -> f64| {
            (1..n)
                .map(|host| (effects[host as usize] - effects[0]) - (truth(host) - truth(0)))
                .fold(0.0, |a: f64, b| a.max(b.abs()))
        };
        // Four sweeps over a fifth of the cells come near.
        assert!(difference(&fit.send, &send) < 0.05, "{}", difference(&fit.send, &send));
        assert!(difference(&fit.receive, &receive) < 0.05, "{}", difference(&fit.receive, &receive));
        assert!(fit.sent.iter().all(|&count| count == 8));
    }

    #[test]
    fn what_pairs_of_a_distance_have_in_common_is_no_effect_of_hosts() {
        let labels: Vec<Option<&str>> =
            (0..16).map(|host| Some(if host < 12 { "large" } else { "small" })).collect();
        let distances = Distances::of(&Hosts::new(16).grouped("group", &labels));
        let slow = |from: u32| if from == 13 { -0.2 } else { 0.0 };
        let cell = |from: u32, to: u32| {
            let across = if (from < 12) == (to < 12) { 0.0 } else { -0.3 };
            Cell { from, to, value: 1.0 + across + slow(from) }
        };
        let cells: Vec<Cell> = (0..16)
            .flat_map(|from| (0..16).filter(move |to| from != *to).map(move |to| cell(from, to)))
            .collect();
        let fit = Fit::of(16, distances, &cells);
        let expected: Vec<f64> = (0..16).map(slow).collect();
        assert!(is_near(&fit.send, &expected), "{:?}", fit.send);
        assert!(is_near(&fit.receive, &[0.0; 16]), "{:?}", fit.receive);
        assert!((fit.apart(0, 15) - fit.apart(0, 1) - -0.3).abs() < 1e-12);
        assert!((fit.expected(13, 0) - 0.5).abs() < 1e-12);
    }

    #[test]
    fn without_direction_a_host_has_one_effect() {
        let slow = |host: u32| if host == 3 { -0.2 } else { 0.0 };
        let pairs: Vec<(u32, u32)> =
            (0..6).flat_map(|a| (0..6).map(move |b| (a, b))).filter(|(a, b)| a != b).collect();
        let cells: Vec<Cell> = pairs
            .into_iter()
            .map(|(from, to)| Cell { from, to, value: 1.0 + slow(from) + slow(to) })
            .collect();
        let fit = Fit::symmetric(6, Distances::default(), &cells);
        assert!(is_near(&fit.send, &[0.0, 0.0, 0.0, -0.2, 0.0, 0.0]), "{:?}", fit.send);
        assert_eq!(fit.send, fit.receive);
        assert!(fit.residuals.iter().all(|residual| residual.abs() < 1e-12));
    }
}
