//! Machines that measure runs one after the other. A run has a number of each point.

use measure::random::Random;
use verdict::compare::Cell;

use crate::noise::{RECORDED, Series, mixed};

/// Standard deviation of the drift from one run to the next.
const DRIFT: f64 = 0.003;
/// The share of runs of the far regime, the core-to-core latencies of both in ns, and the shift of
/// the far one: as on a machine whose hypervisor moves CPUs.
const FAR_SHARE: f64 = 0.2;
const PLACEMENTS_NS: [f64; 2] = [30.0, 198.0];
const FAR_SHIFT: f64 = -1.166;

/// A machine that measures runs one after the other.
pub(super) trait Machine {
    /// The numbers of the next run, one for each point.
    fn run(&mut self) -> Vec<Cell>;

    /// The step of the clock at a point, as a difference of logarithms.
    fn step(&self, _point: usize) -> f64 {
        0.0
    }
}

/// A machine whose runs have the level of each point, noise of a recorded shape (half of its
/// variance common to all points of the run), the drift of the machine, and in one of five runs the
/// far regime of placement.
pub(super) struct Synthetic {
    random: Random,
    series: &'static Series,
    scales: Vec<f64>,
    level: f64,
}

impl Synthetic {
    /// A machine whose points vary by 0.5 to 2 % from run to run; a single point by 0.5 %.
    pub(super) fn new(points: usize, seed: u64) -> Self {
        let mut random = Random(seed);
        let scale = |random: &mut Random| if points == 1 { 0.005 } else { random.magnitude(0.005, 0.02) };
        let scales = (0..points).map(|_| scale(&mut random)).collect();
        Self { random, series: Series::drawn(mixed(&[seed, 3])), scales, level: 0.0 }
    }

    /// A residual of the recorded series, in units of its scale.
    fn residual(&mut self) -> f64 {
        self.series.residual(self.random.bits())
    }
}

impl Machine for Synthetic {
    fn run(&mut self) -> Vec<Cell> {
        self.level += DRIFT * self.random.normal();
        let is_far = self.random.fraction() < FAR_SHARE;
        let common = self.residual();
        let scales = self.scales.clone();
        let mut cell = |scale: f64| {
            let noise = (common + self.residual()) * std::f64::consts::FRAC_1_SQRT_2;
            let far = if is_far { FAR_SHIFT } else { 0.0 };
            Cell {
                y: self.level + scale * noise + far,
                placement_ns: Some(PLACEMENTS_NS[usize::from(is_far)]),
            }
        };
        scales.into_iter().map(&mut cell).collect()
    }
}

/// The machine of the recording, which measures its runs again in their order: with its own
/// placement, drift and neighbours, and with whatever the points of a run have in common.
pub(super) struct Recorded {
    points: Vec<&'static Series>,
    next: usize,
}

impl Recorded {
    /// One point or all, from a random run on, so that a number of runs follow.
    pub(super) fn new(points: usize, runs: usize, seed: u64) -> Self {
        let first = (mixed(&[seed, 4]) % RECORDED.len() as u64) as usize;
        let points = RECORDED.iter().cycle().skip(first).take(points).collect();
        let starts = (RECORDED[0].y.len() - runs + 1) as u64;
        Self { points, next: (mixed(&[seed, 5]) % starts) as usize }
    }
}

impl Machine for Recorded {
    fn run(&mut self) -> Vec<Cell> {
        let run = self.next;
        self.next += 1;
        let cell = |series: &&Series| Cell { y: series.y[run], placement_ns: series.placements[run] };
        self.points.iter().map(cell).collect()
    }

    fn step(&self, point: usize) -> f64 {
        let mut y = self.points[point].y.clone();
        y.sort_unstable_by(f64::total_cmp);
        let gaps = y.windows(2).map(|pair| pair[1] - pair[0]);
        gaps.filter(|gap| *gap > 0.0).fold(f64::INFINITY, f64::min)
    }
}
