//! Where a series of runs changes, and what else changed there.

use maud::{Markup, html};
use measure::presentation::Patterns;
use measure::record::{Axes, Point, Status};
use measure::stats::spread;
use measure::text::{axes_text, counted, plain};
use serde::Serialize;
use verdict::regime;
use verdict::trend::{SEGMENT, changes};

use super::asked::Session;
use super::comparison::Word;
use super::differences::{Difference, changed};
use super::number::Number;
use super::sheet::{Line, Sheet, percent, ratio};
use crate::Error;
use crate::list::distinct;
use crate::repeated::varies;

/// What is looked for, and in which runs.
#[derive(Clone, Copy, Debug)]
pub struct Asked<'a> {
    /// The runs, in any order.
    pub runs: &'a [Session<'a>],
    /// Paths of the numbers; the main number of each point if empty.
    pub quantities: &'a [String],
    /// The ratio, as a share, up to which levels count as the same.
    pub margin: f64,
    /// The patterns that the program knows.
    pub patterns: Patterns,
}

/// The changes of all points.
#[derive(Clone, Debug, Serialize)]
pub struct Trend {
    /// The names of the runs, in the order of their start.
    pub runs: Vec<String>,
    /// The ratio, as a share, up to which levels count as the same.
    pub margin: f64,
    /// A line for each point and number.
    pub rows: Vec<Row>,
    /// Points of too few runs, in words.
    pub left_out: Vec<String>,
    /// The verdict on the present level of all points.
    pub verdict: Word,
    /// The same in a sentence.
    pub sentence: String,
}

/// The series of one point.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// The experiment.
    pub experiment: String,
    /// The axes that tell the point from others of the experiment; empty without such.
    pub point: String,
    /// The path of the number.
    pub quantity: String,
    /// The number in words.
    pub help: String,
    /// The numbers, in the order of the runs.
    pub series: Vec<Value>,
    /// The changes, in their order.
    pub changes: Vec<Change>,
    /// Whether the last change made the number worse or better.
    pub verdict: Word,
}

/// The number of one run.
#[derive(Clone, Debug, Serialize)]
pub struct Value {
    /// The index of the run in [`Trend::runs`].
    pub run: usize,
    /// The median over its repetitions, in the base of the number's unit.
    pub number: f64,
    /// Whether it is of the regime of placement that is looked at.
    pub is_compared: bool,
}

/// A change.
#[derive(Clone, Debug, Serialize)]
pub struct Change {
    /// The index in [`Trend::runs`] of the first run after it.
    pub run: usize,
    /// When that run started.
    pub started: String,
    /// The ratio of the number after to before.
    pub ratio: f64,
    /// Whether it made the number worse or better.
    pub verdict: Word,
    /// What else changed between the runs around it.
    pub differences: Vec<Difference>,
}

/// Looks for changes in the runs.
///
/// # Errors
///
/// If no point was measured in enough runs, or if a quantity does not exist or has no better
/// direction.
pub fn trend(asked: &Asked<'_>) -> Result<Trend, Error> {
    let mut runs: Vec<&Session<'_>> = asked.runs.iter().collect();
    runs.sort_by_key(|session| &session.run.started);
    let mut series = Vec::new();
    for (experiment, axes) in combinations(&runs) {
        let points = |session: &Session<'_>| -> Vec<Point> {
            let is_it = |point: &&Point| {
                point.status == Status::Measured && point.experiment == experiment && point.axes == axes
            };
            session.points.iter().filter(is_it).cloned().collect()
        };
        let of_runs: Vec<Vec<Point>> = runs.iter().map(|session| points(session)).collect();
        let Some(first) = of_runs.iter().flatten().next() else { continue };
        for path in Number::paths(asked.quantities, first) {
            let number = Number::named(path, asked.patterns)?;
            let row = Series::of(&number, &of_runs, asked.patterns);
            series.push((experiment.clone(), axes.clone(), number.help, path.to_owned(), number.sign, row));
        }
    }
    let is_long = |series: &Series| series.compared().len() >= 2 * SEGMENT;
    let quantities = series.iter().filter(|(.., series)| is_long(series)).count();
    if quantities == 0 {
        return Err(Error::TooFewRuns { least: 2 * SEGMENT });
    }
    let axes_of = |experiment: &str| -> Vec<&Axes> {
        series.iter().filter(|one| one.0 == experiment).map(|one| &one.1).collect()
    };
    let mut rows = Vec::new();
    let mut left_out = Vec::new();
    for (experiment, axes, help, path, sign, values) in &series {
        let all = axes_of(experiment);
        let point = axes_text(axes, |axis| varies(&all, axis));
        if !is_long(values) {
            let count = values.compared().len();
            left_out.push(format!("{} {point}: {count} runs", plain(experiment)));
            continue;
        }
        let changes = values.changes(*sign, quantities, asked.margin, &runs);
        let verdict = changes.last().map_or(Word::Same, |change| change.verdict);
        rows.push(Row {
            experiment: experiment.clone(),
            point,
            quantity: path.clone(),
            help: help.clone(),
            series: values.0.clone(),
            changes,
            verdict,
        });
    }
    let names = runs.iter().map(|session| session.name.to_owned()).collect();
    let (verdict, sentence) = said(&rows);
    Ok(Trend { runs: names, margin: asked.margin, rows, left_out, verdict, sentence })
}

/// Every combination of experiment and axes, in the order of the runs.
fn combinations(runs: &[&Session<'_>]) -> Vec<(String, Axes)> {
    let points = runs.iter().flat_map(|session| session.points);
    distinct(points.map(|point| (point.experiment.clone(), point.axes.clone())))
}

/// The numbers of the runs that have one.
struct Series(Vec<Value>);

impl Series {
    fn of(number: &Number<'_>, runs: &[Vec<Point>], patterns: Patterns) -> Self {
        let mut placements = Vec::new();
        let mut values = Vec::new();
        for (run, points) in runs.iter().enumerate() {
            let numbers: Vec<f64> = points.iter().filter_map(|point| number.of(point, patterns)).collect();
            let Some(spread) = spread(&numbers) else { continue };
            let calibrations = points.iter().filter_map(|point| point.calibration.as_ref());
            placements.push(calibrations.map(|found| found.before_ns.max(found.after_ns)).reduce(f64::max));
            values.push(Value { run, number: spread.median, is_compared: true });
        }
        for (value, kept) in values.iter_mut().zip(regime::most_frequent(&placements)) {
            value.is_compared = kept;
        }
        Self(values)
    }

    fn compared(&self) -> Vec<&Value> {
        self.0.iter().filter(|value| value.is_compared).collect()
    }

    fn changes(&self, sign: f64, quantities: usize, margin: f64, runs: &[&Session<'_>]) -> Vec<Change> {
        let compared = self.compared();
        let y: Vec<f64> = compared.iter().map(|value| value.number.ln()).collect();
        let change = |change: verdict::trend::Change| {
            let before = runs[compared[change.at - 1].run].run;
            let run = compared[change.at].run;
            let after = runs[run].run;
            Change {
                run,
                started: after.started.clone(),
                ratio: change.shift.exp(),
                verdict: if sign * change.shift < 0.0 { Word::Worse } else { Word::Better },
                differences: changed(before, after),
            }
        };
        changes(&y, quantities, margin).into_iter().map(change).collect()
    }
}

fn said(rows: &[Row]) -> (Word, String) {
    let changed: Vec<&Row> = rows.iter().filter(|row| !row.changes.is_empty()).collect();
    let worse = changed.iter().filter(|row| row.verdict == Word::Worse).count();
    let changes: usize = changed.iter().map(|row| row.changes.len()).sum();
    let of = format!("{} in {} series", counted(changes as u64, "change"), rows.len());
    match (worse, changes) {
        (0, 0) => (Word::Same, format!("same: no change in {} series", rows.len())),
        (0, _) => (Word::Better, format!("better: {of}, the last of each for the better")),
        (worse, _) => (Word::Worse, format!("worse: {of}; the last change of {worse} is for the worse")),
    }
}

impl Trend {
    /// The trend as lines of cells: one for each change, or for a series without a change.
    #[must_use]
    pub fn sheet(&self) -> Sheet {
        let head = ["point", "runs", "changed", "after/before"].map(str::to_owned);
        let mut differences = Vec::new();
        for change in self.rows.iter().flat_map(|row| &row.changes) {
            let at = format!("{} ({})", change.started, plain(&self.runs[change.run]));
            let told: Vec<String> = change.differences.iter().map(ToString::to_string).collect();
            let told =
                if told.is_empty() { "nothing that the record shows".to_owned() } else { told.join("; ") };
            let line = format!("{at}: {told}");
            if !differences.contains(&line) {
                differences.push(line);
            }
        }
        Sheet {
            name: "trend",
            about: vec![
                format!(
                    "{} runs, from {} to {}",
                    self.runs.len(),
                    self.end(0),
                    self.end(self.runs.len() - 1)
                ),
                format!("margin {}", percent(self.margin)),
            ],
            head: head.into(),
            lines: self.rows.iter().flat_map(|row| self.lines(row)).collect(),
            same: [1.0 / (1.0 + self.margin), 1.0 + self.margin],
            lists: vec![
                ("what else changed", differences),
                ("measured in fewer than 10 runs, left out", self.left_out.clone()),
            ],
            sentence: self.sentence.clone(),
        }
    }

    fn end(&self, run: usize) -> String {
        plain(&self.runs[run])
    }

    fn lines(&self, row: &Row) -> Vec<Line> {
        let compared = row.series.iter().filter(|value| value.is_compared).count();
        let count = format!("{compared} of {}", self.runs.len());
        let line = |changed: String, of: String, verdict: Word, drawing: Option<Markup>| Line {
            group: format!("{}: {}", plain(&row.experiment), row.help),
            experiment: plain(&row.experiment),
            cells: vec![plain(&row.point), count.clone(), changed, of],
            verdict,
            reason: String::new(),
            ratio: None,
            drawing,
        };
        if row.changes.is_empty() {
            return vec![line("-".to_owned(), "-".to_owned(), Word::Same, Some(drawing(row)))];
        }
        let changes = row.changes.iter().enumerate();
        changes
            .map(|(at, change)| {
                let drawing = (at == 0).then(|| drawing(row));
                line(change.started.clone(), ratio(change.ratio), change.verdict, drawing)
            })
            .collect()
    }
}

/// The size of a drawing, in its own units, and the room around its marks.
const WIDTH: f64 = 720.0;
const HEIGHT: f64 = 120.0;
const ROOM: f64 = 8.0;

/// The series as a drawing: a mark for each run, hollow if it is of another regime, and a line at
/// each change. The scale is logarithmic.
fn drawing(row: &Row) -> Markup {
    let logs: Vec<f64> = row.series.iter().map(|value| value.number.ln()).collect();
    let least = logs.iter().copied().fold(f64::INFINITY, f64::min);
    let most = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let last = row.series.last().map_or(0, |value| value.run).max(1) as f64;
    let tenths = |place: f64| (place * 10.0).round() / 10.0;
    let x = |run: f64| tenths(ROOM + run / last * (WIDTH - 2.0 * ROOM));
    let height = (most - least).max(f64::MIN_POSITIVE);
    let y = |log: f64| tenths(HEIGHT - ROOM - (log - least) / height * (HEIGHT - 2.0 * ROOM));
    html! {
        svg class="series" viewBox={ "0 0 " (WIDTH) " " (HEIGHT) } preserveAspectRatio="none" role="img" {
            title { (row.series.len()) " runs, " (row.changes.len()) " changes" }
            @for change in &row.changes {
                @let at = x(change.run as f64 - 0.5);
                line class="change" x1=(at) x2=(at) y1="0" y2=(HEIGHT) { title { (change.started) } }
            }
            @for (value, log) in row.series.iter().zip(&logs) {
                @let opacity = if value.is_compared { "1" } else { "0.3" };
                circle class="run" cx=(x(value.run as f64)) cy=(y(*log)) r="2.5" opacity=(opacity) { }
            }
        }
    }
}
