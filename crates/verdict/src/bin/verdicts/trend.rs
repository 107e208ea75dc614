//! Series of synthetic runs whose changes are known.

use measure::random::Random;
use verdict::regime;
use verdict::trend::changes;

use crate::noise::{Series, mixed};
use crate::{Answer, Row, Settings};

/// Runs of a series; in the full form also fewer than can be permuted in blocks.
const RUNS: usize = 100;
const FEWER: [usize; 3] = [60, 30, 15];
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

const NOISES: [(&str, Noise); 4] = [
    ("recorded shape", Noise::Recorded),
    ("recorded order, margin 5 %", Noise::InOrder),
    ("AR(0.4), t4", Noise::Autoregressive),
    ("recorded shape, flips", Noise::Flips),
];

/// All rows: series without a change, in which none may be found, and with one.
pub(crate) fn rows(settings: &Settings) -> Vec<Row> {
    let trials = if settings.is_full { 4000 } else { 1000 };
    let steady = move |runs: usize, (name, noise): (&str, Noise)| Row {
        name: format!("{runs} runs, {name}: no change, one said"),
        bar: (!matches!(noise, Noise::InOrder)).then_some(0.03),
        trials,
        trial: Box::new(move |seed| match Runs::simulated(runs, noise, seed, 0.0).found(runs).as_slice() {
            [] => Answer::Right,
            places => Answer::Wrong(format!("changes at {places:?}")),
        }),
    };
    // Numbers to know: a pipeline calls `trend` after each run.
    let looked_at = move |times: usize, (name, noise): (&str, Noise)| Row {
        name: format!("{RUNS} runs, {name}: no change, one said by {times} successive calls"),
        bar: None,
        trials: trials / 4,
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
    };
    // Numbers to know, and no promise: what autocorrelation costs.
    let changed = move |runs: usize, (name, noise): (&str, Noise)| Row {
        name: format!("{runs} runs, {name}: 10 % worse, not said"),
        bar: None,
        trials: trials / 4,
        trial: Box::new(move |seed| {
            let places = Runs::simulated(runs, noise, seed, -0.1).found(runs);
            let is_near = |at: &usize| (*at as f64 / runs as f64 - AFTER).abs() <= NEAR;
            match places.iter().any(is_near) {
                true => Answer::Right,
                false => Answer::Wrong(format!("changes at {places:?}")),
            }
        }),
    };
    let fewer: &[usize] = if settings.is_full { &FEWER } else { &[] };
    let lengths = std::iter::once(RUNS).chain(fewer.iter().copied());
    let calls: &[usize] = if settings.is_full { &[1, 5] } else { &[] };
    let looks = calls.iter().flat_map(|times| NOISES.map(|noise| looked_at(*times, noise)));
    lengths
        .flat_map(|runs| {
            let steady = NOISES.into_iter().map(move |noise| steady(runs, noise));
            steady.chain(NOISES.into_iter().map(move |noise| changed(runs, noise)))
        })
        .chain(looks)
        .collect()
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
        let kept = (0..).zip(regime::most_frequent(&self.placements[..count]));
        let kept: Vec<usize> = kept.filter(|(_, kept)| *kept).map(|(run, _)| run).collect();
        let compared: Vec<f64> = kept.iter().map(|run| self.series[*run]).collect();
        // Without a margin, nothing but the test keeps false changes away.
        let margin = if matches!(self.noise, Noise::InOrder) { MARGIN } else { 0.0 };
        changes(&compared, 1, margin).into_iter().map(|change| kept[change.at]).collect()
    }
}
