//! Thresholds: from which deficit on a host and a pair stand out among all of a fleet.

use super::examined::{Reason, Thresholds};
use super::fit::Fit;
use super::options::Level;
use super::robust::{median, normal_quantile, scale, winsorised_rms};

/// From this number of hosts on, residuals tell how much a cell varies; below, differences between
/// passes do.
const HOSTS_FOR_RESIDUALS: usize = 16;
/// From this number of hosts on, their effects tell how much healthy hosts differ.
const HOSTS_FOR_EFFECTS: usize = 64;
/// The least hosts with cells, and the least cells of a host, for a model.
pub(super) const LEAST: usize = 4;
/// The least scale of a cell of few hosts: differences of a handful of cells can be 0 by chance.
const LEAST_SCALE: f64 = 0.005;
/// The standard error of a median is that of a mean, times this (sqrt(pi / 2)); the square is the
/// variance that the centre of the other effects adds.
const MEDIAN: f64 = 1.2533;
const MEDIAN_SQUARED: f64 = 1.57;
/// Nothing is decided where only a larger deficit than this could be seen: half, as a logarithm.
const TOO_NOISY: f64 = std::f64::consts::LN_2;

/// The scales of one quantity, from which the thresholds follow.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scales {
    level: Level,
    hosts: usize,
    host_z: f64,
    pair_z: f64,
    /// The scale of a cell.
    pub(super) cell: f64,
    /// The scale of hosts' effects, with the correction for their number.
    spread: f64,
    /// The median number of cells of a host in one direction.
    pub(super) cells: usize,
    /// The least threshold of a pair: 0 unless suspects were left out.
    least_pair: f64,
}

/// What is known of a quantity besides its fit.
#[derive(Clone, Copy, Debug)]
pub(super) struct Known<'a> {
    /// Whether each pair has two values.
    pub(super) directed: bool,
    /// Complete passes.
    pub(super) passes: usize,
    /// Differences between passes of one cell.
    pub(super) differences: &'a [f64],
    /// Whether the cells are differences from another examination, which varies as much.
    pub(super) has_baseline: bool,
}

impl Scales {
    /// The scales of a fit.
    ///
    /// # Errors
    ///
    /// The reason why nothing can be decided.
    pub(super) fn of(fit: &Fit, known: Known<'_>, level: Level) -> Result<Self, Reason> {
        let sent: Vec<usize> = fit.sent.iter().copied().filter(|&cells| cells > 0).collect();
        let hosts = sent.len().max(fit.received.iter().filter(|&&cells| cells > 0).count());
        if hosts < LEAST {
            return Err(Reason::TooFewHosts);
        }
        let cells = median(sent.iter().map(|&cells| cells as f64)).unwrap_or(0.0) as usize;
        if cells < LEAST.min(hosts - 1) {
            return Err(Reason::TooFewCells(cells));
        }
        if hosts < HOSTS_FOR_RESIDUALS && known.passes < 2 {
            return Err(Reason::OnePass);
        }
        let cell =
            if hosts < HOSTS_FOR_RESIDUALS { of_passes(known) } else { of_residuals(fit, cells, hosts) };
        let ways = if known.directed { 2.0 } else { 1.0 };
        let pairs = fit.residuals.len() as f64 * ways / 2.0;
        let spread = effects(&fit.send, &fit.sent).max(effects(&fit.receive, &fit.received));
        let scales = Self {
            level,
            hosts,
            // Half of the level is for hosts, half for pairs.
            host_z: normal_quantile(1.0 - level.alpha / (2.0 * ways * hosts as f64)),
            pair_z: normal_quantile(1.0 - level.alpha / (2.0 * pairs)),
            cell,
            spread: spread * (1.0 + 1.5 / (hosts as f64).sqrt()),
            cells,
            least_pair: 0.0,
        };
        let is_too_noisy = scales.host(cells) > TOO_NOISY.max(level.least);
        if is_too_noisy { Err(Reason::TooNoisy) } else { Ok(scales) }
    }

    /// The threshold of a host with this number of cells.
    pub(super) fn host(&self, cells: usize) -> f64 {
        self.level.least.max(self.host_z * self.host_scale(cells))
    }

    /// The threshold of a pair.
    pub(super) fn pair(&self) -> f64 {
        let others = (self.cells - 1) as f64;
        let factor = (1.0 + 2.0 * MEDIAN_SQUARED / others + MEDIAN_SQUARED / others.powi(2)).sqrt();
        self.level.least.max(self.pair_z * self.cell * factor).max(self.least_pair)
    }

    /// How far the middle of this many cells may be from the truth by the noise of measurements
    /// alone, of any host or pair of the fleet. In isolation and under load, a place is measured
    /// about as often as a cell, whatever its number of cells.
    pub(super) fn noise(&self, cells: usize) -> f64 {
        let of_middle = (MEDIAN / (cells.max(1) as f64).sqrt()).min(1.0);
        self.pair_z.max(self.host_z) * self.cell * of_middle
    }

    /// Raises the threshold of a pair to this one.
    pub(super) fn raise_pair(&mut self, threshold: f64) {
        self.least_pair = self.least_pair.max(threshold);
    }

    /// What a report prints.
    pub(super) fn thresholds(&self) -> Thresholds {
        Thresholds {
            host: self.host(self.cells),
            pair: self.pair(),
            cell_scale: self.cell,
            host_scale: self.host_scale(self.cells),
            cells: self.cells,
        }
    }

    fn host_scale(&self, cells: usize) -> f64 {
        let cells = cells.max(1) as f64;
        let centre = 1.0 + MEDIAN_SQUARED / cells;
        let error = MEDIAN * self.cell * (centre / cells).sqrt();
        let natural = self.level.tolerance.powi(2);
        let assumed = (natural * centre + error.powi(2)).sqrt();
        match self.hosts {
            ..HOSTS_FOR_RESIDUALS => assumed,
            HOSTS_FOR_RESIDUALS..HOSTS_FOR_EFFECTS => assumed.max(self.spread),
            HOSTS_FOR_EFFECTS.. => self.spread.max(error).max(self.level.tolerance / 2.0),
        }
    }
}

/// The scale of the middle (or better) of a cell's passes, from their differences.
fn of_passes(known: Known<'_>) -> f64 {
    let single =
        scale(known.differences.iter().copied()).max(winsorised_rms(known.differences)) / 2f64.sqrt();
    // The scale of the middle of three, and of the better of two, against that of one.
    let kept = if known.passes > 2 { 0.75 } else { 0.83 };
    let scale = LEAST_SCALE.hypot(kept * single);
    if known.has_baseline { scale * 2f64.sqrt() } else { scale }
}

/// The scale of a cell from the residuals. The fit takes two numbers from each host's cells.
fn of_residuals(fit: &Fit, cells: usize, hosts: usize) -> f64 {
    let is_sparse = cells + 1 < hosts;
    let lost = if is_sparse { 1.0 - 1.0 / cells as f64 } else { 1.0 };
    scale(fit.residuals.iter().copied()) / lost
}

/// The scale of the effects of hosts with cells.
fn effects(effects: &[f64], cells: &[usize]) -> f64 {
    scale(effects.iter().zip(cells).filter(|(_, cells)| **cells > 0).map(|(&effect, _)| effect))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEVEL: Level = Level { least: 0.0512932943875505, tolerance: 0.01, alpha: 0.01 };

    /// A fit of all pairs whose residuals and effects are half above and half below 0.
    fn fit(hosts: usize, residual: f64, effect: f64) -> Fit {
        let signs =
            |count: usize, size: f64| (0..count).map(|n| if n % 2 == 0 { size } else { -size }).collect();
        Fit {
            level: 0.0,
            send: signs(hosts, effect),
            receive: signs(hosts, effect),
            sent: vec![hosts - 1; hosts],
            received: vec![hosts - 1; hosts],
            residuals: signs(hosts * (hosts - 1), residual),
            ..Fit::default()
        }
    }

    fn known(directed: bool, differences: &[f64]) -> Known<'_> {
        Known { directed, passes: 3, differences, has_baseline: false }
    }

    /// The expected numbers follow from the formulas with scipy's `norm.ppf`.
    #[test]
    fn thresholds_are_those_of_the_formulas() {
        for (hosts, directed, residual, effect, host, pair) in [
            (32, true, 0.01, 0.005, 0.051293294, 0.068858235),
            (32, true, 0.01, 0.03, 0.212759960, 0.068858235),
            (128, true, 0.02, 0.015, 0.103595088, 0.149694862),
            (128, false, 0.02, 0.015, 0.099492657, 0.145620915),
        ] {
            let scales = Scales::of(&fit(hosts, residual, effect), known(directed, &[]), LEVEL).unwrap();
            let found = scales.thresholds();
            assert!((found.host - host).abs() < 1e-6, "{hosts} hosts: {} {host}", found.host);
            assert!((found.pair - pair).abs() < 1e-6, "{hosts} hosts: {} {pair}", found.pair);
        }
    }

    #[test]
    fn few_hosts_are_judged_by_the_differences_between_passes() {
        // Half above and half below 0: a scale of 0.75 c 1.4826 / sqrt 2, and 0.03 with the floor.
        let single = (0.03f64.powi(2) - LEAST_SCALE.powi(2)).sqrt() / 0.75;
        let c = single * 2f64.sqrt() / 1.4826;
        let differences = [c, -c, c, -c];
        let scales = Scales::of(&fit(8, 0.0, 0.0), known(true, &differences), LEVEL).unwrap();
        assert!((scales.cell - 0.03).abs() < 1e-12, "{}", scales.cell);
        assert!((scales.host(7) - 0.06576661178855604).abs() < 1e-6, "{}", scales.host(7));
        assert!((scales.pair() - 0.1407327901426044).abs() < 1e-6, "{}", scales.pair());
        let changed = Known { has_baseline: true, ..known(true, &differences) };
        let changed = Scales::of(&fit(8, 0.0, 0.0), changed, LEVEL).unwrap();
        assert!((changed.cell / scales.cell - 2f64.sqrt()).abs() < 1e-12);
    }

    #[test]
    fn what_cannot_be_decided_has_a_reason() {
        let reason = |fit: Fit, known: Known<'_>| Scales::of(&fit, known, LEVEL).map(|_| ()).unwrap_err();
        let one_pass = Known { passes: 1, ..known(true, &[]) };
        assert_eq!(reason(fit(3, 0.0, 0.0), known(true, &[])), Reason::TooFewHosts);
        assert_eq!(reason(fit(15, 0.0, 0.0), one_pass), Reason::OnePass);
        assert!(Scales::of(&fit(16, 0.0, 0.0), one_pass, LEVEL).is_ok());
        let sparse = Fit { sent: vec![3; 20], received: vec![3; 20], ..fit(20, 0.0, 0.0) };
        assert_eq!(reason(sparse, known(true, &[])), Reason::TooFewCells(3));
        assert_eq!(reason(fit(8, 0.0, 0.0), known(true, &[0.9, -0.9])), Reason::TooNoisy);
        let large = Level { least: 1.0, ..LEVEL };
        assert!(Scales::of(&fit(8, 0.0, 0.0), known(true, &[]), large).is_ok(), "nothing less is asked for");
    }
}
