//! Series of synthetic runs whose changes are known.

use measure::random::Random;
use verdict::regime;
use verdict::trend::changes;

use crate::noise::{Series, mixed};
use crate::settings::Settings;
use crate::{Answer, Row};

/// Runs of a series; in the full form also fewer than can be permuted in blocks.
const RUNS: usize = 100;
const FEWER: [usize; 3] = [60, 30, 15];
/// Points of a run, and how many runs are simulated in the full form.
const SERIES: [(usize, u64); 2] = [(8, 1000), (33, 400)];
/// Successive calls that have to say a change.
const CALLS: [usize; 2] = [1, 5];
/// Variation from run to run.
const SCALE: f64 = 0.01;
/// The share of runs after which a series changes, and how far from it a change still counts as
/// found.
const AFTER: f64 = 0.4;
const NEAR: f64 = 0.2;

/// The margin of the program.
const MARGIN: f64 = 0.05;

/// How runs vary.
#[derive(Clone, Copy)]
enum Noise {
    /// With the shape of a recorded series, each run alone.
    Recorded,
    /// The numbers of the recorded series in their order: neighbours resemble each other, and the
    /// machine itself drifted, which no test can tell from a change. The row has no bar: it says
    /// how often the program's margin lets such drift through.
    InOrder,
    /// Autoregressive (0.4), with the heavy tails of Student's distribution of 4 degrees of
    /// freedom.
    Autoregressive,
    /// As the first, with one of five runs of another regime of placement.
    Flips,
}

/// A kind of noise with its name.
type Named = (&'static str, Noise);

const NOISES: [Named; 4] = [
    ("recorded shape", Noise::Recorded),
    ("recorded order, margin 5 %", Noise::InOrder),
    ("AR(0.4), t4", Noise::Autoregressive),
    ("recorded shape, flips", Noise::Flips),
];

/// All rows: series without a change, in which none may be found, and with one.
pub(crate) fn rows(settings: &Settings) -> Vec<Row> {
    if !settings.is_full {
        let trials = 1000;
        return NOISES
            .map(|noise| steady(RUNS, noise, trials))
            .into_iter()
            .chain(NOISES.map(|noise| changed(RUNS, noise, trials / 4)))
            .collect();
    }
    let trials = 4000;
    let lengths = std::iter::once(RUNS).chain(FEWER);
    let alone = lengths.flat_map(|runs| {
        NOISES
            .map(|noise| steady(runs, noise, trials))
            .into_iter()
            .chain(NOISES.map(|noise| changed(runs, noise, trials / 4)))
    });
    let together = SERIES.into_iter().flat_map(|(series, trials)| {
        let noises = NOISES.into_iter().filter(|(_, noise)| !matches!(noise, Noise::InOrder));
        noises.map(move |noise| together(series, noise, trials))
    });
    let looks = CALLS.into_iter().flat_map(|times| NOISES.map(|noise| looked_at(times, noise, trials / 4)));
    alone.chain(together).chain(looks).collect()
}

/// No change, in one series.
fn steady(runs: usize, (name, noise): Named, trials: u64) -> Row {
    Row {
        name: format!("{runs} runs, {name}: no change, one said"),
        bar: (!matches!(noise, Noise::InOrder)).then_some(0.03),
        trials,
        trial: Box::new(move |seed| match Runs::simulated(runs, noise, seed, 0.0).found(runs).as_slice() {
            [] => Answer::Right,
            places => Answer::Wrong(format!("changes at {places:?}")),
        }),
    }
}

/// No change in any of the series of the points of a run, which are asked about together.
fn together(series: usize, (name, noise): Named, trials: u64) -> Row {
    Row {
        name: format!("{RUNS} runs of {series} points, {name}: no change, one said"),
        bar: Some(0.03),
        trials,
        trial: Box::new(move |seed| {
            let found = |point| {
                let runs = Runs::simulated(RUNS, noise, mixed(&[seed, point as u64]), 0.0);
                runs.found_among(series, RUNS)
            };
            match (0..series).map(found).find(|places| !places.is_empty()) {
                Some(places) => Answer::Wrong(format!("changes at {places:?}")),
                None => Answer::Right,
            }
        }),
    }
}

/// No change, in the calls that a pipeline makes after each run: a number to know.
fn looked_at(times: usize, (name, noise): Named, trials: u64) -> Row {
    Row {
        name: format!("{RUNS} runs, {name}: no change, one said by {times} successive calls"),
        bar: None,
        trials,
        trial: Box::new(move |seed| {
            let runs = Runs::simulated(RUNS, noise, seed, 0.0);
            let mut in_a_row = 0;
            for count in 1..=RUNS {
                in_a_row = if runs.found(count).is_empty() { 0 } else { in_a_row + 1 };
                if in_a_row == times {
                    return Answer::Wrong(format!("{count} runs"));
                }
            }
            Answer::Right
        }),
    }
}

/// A change: a number to know, and no promise. It shows what autocorrelation costs.
fn changed(runs: usize, (name, noise): Named, trials: u64) -> Row {
    Row {
        name: format!("{runs} runs, {name}: 10 % worse, not said"),
        bar: None,
        trials,
        trial: Box::new(move |seed| {
            let places = Runs::simulated(runs, noise, seed, -0.1).found(runs);
            let is_near = |at: &usize| (*at as f64 / runs as f64 - AFTER).abs() <= NEAR;
            match places.iter().any(is_near) {
                true => Answer::Right,
                false => Answer::Wrong(format!("changes at {places:?}")),
            }
        }),
    }
}

/// Runs of a series, and their placements.
struct Runs {
    noise: Noise,
    series: Vec<f64>,
    placements: Vec<Option<f64>>,
}

impl Runs {
    /// A series of so many runs, which changes by a step.
    fn simulated(runs: usize, noise: Noise, seed: u64, step: f64) -> Self {
        let mut random = Random(seed);
        let mut drawn = (3..1000).map(|number| Series::drawn(mixed(&[seed, number])));
        let recorded = drawn.find(|series| series.len() > runs).expect("a long series");
        let start = random.bits() % (recorded.len() - runs) as u64;
        let mut last = 0.0;
        let mut placements = Vec::new();
        let mut series = Vec::new();
        for (run, time) in (0..runs).zip(start..) {
            let is_far = matches!(noise, Noise::Flips) && random.fraction() < 0.2;
            let anywhere = random.bits();
            let deviation = match noise {
                Noise::Recorded | Noise::Flips => recorded.residual(anywhere),
                Noise::InOrder => recorded.residual(time) * recorded.scale / SCALE,
                Noise::Autoregressive => {
                    let squares: f64 = (0..4).map(|_| random.normal().powi(2)).sum();
                    last = 0.4 * last + random.normal() / (squares / 4.0).sqrt();
                    last
                }
            };
            let level = if (run as f64) < AFTER * runs as f64 { 0.0 } else { step };
            series.push(level + SCALE * deviation - if is_far { 1.166 } else { 0.0 });
            placements.push(Some(if is_far { 198.0 } else { 30.0 }));
        }
        Self { noise, series, placements }
    }

    /// The changes that are found in the first runs.
    fn found(&self, count: usize) -> Vec<usize> {
        self.found_among(1, count)
    }

    /// The same if this is one of so many series.
    fn found_among(&self, series: usize, count: usize) -> Vec<usize> {
        let kept = (0..).zip(regime::most_frequent(&self.placements[..count]));
        let kept: Vec<usize> = kept.filter(|(_, kept)| *kept).map(|(run, _)| run).collect();
        let compared: Vec<f64> = kept.iter().map(|run| self.series[*run]).collect();
        // Without a margin, nothing but the test keeps false changes away.
        let margin = if matches!(self.noise, Noise::InOrder) { MARGIN } else { 0.0 };
        changes(&compared, series, margin).into_iter().map(|change| kept[change.at]).collect()
    }
}
