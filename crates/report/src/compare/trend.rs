//! Where a series of runs changes, and what else changed there.

use std::collections::BTreeSet;

use maud::{Markup, html};
use measure::presentation::Patterns;
use measure::record::{Axes, Point, Status};
use measure::text::{axes_text, counted, plain};
use serde::Serialize;
use verdict::regime;
use verdict::trend::{SEGMENT, find};

use super::asked::{Measured, Session};
use super::comparison::Word;
use super::differences::{Difference, Known, changed};
use super::history::by_start;
use super::number::Number;
use super::sheet::{Line, Sheet, percent, ratio};
use crate::Error;
use crate::list::grouped;
use crate::series_table::median;
use crate::varying::Varying;

/// What is looked for, and in which runs.
#[derive(Clone, Copy, Debug)]
pub struct Asked<'a> {
    /// The runs, in any order.
    pub runs: &'a [Session<'a>],
    /// Paths of the numbers; the main number of each point if empty.
    pub quantities: &'a [String],
    /// The ratio, as a share, up to which levels count as the same.
    pub margin: f64,
    /// Whether runs of other hosts than those of the last run are used, too.
    pub anyway: bool,
    /// The patterns that the program knows.
    pub patterns: Patterns,
}

/// The changes of all points.
#[derive(Clone, Debug, Serialize)]
pub struct Trend {
    /// The names of the runs, in the order of their start.
    pub runs: Vec<String>,
    /// When and where the last run was measured.
    pub last: Measured,
    /// The ratio, as a share, up to which levels count as the same.
    pub margin: f64,
    /// A line for each point and number.
    pub rows: Vec<Row>,
    /// Points of too few runs of one placement, in words.
    pub left_out: Vec<String>,
    /// Runs of other hosts than those of the last run, in words.
    pub other_hosts: Vec<String>,
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
    /// The smallest and the largest of them, printed.
    #[serde(skip)]
    pub ends: [String; 2],
    /// The changes, in their order.
    pub changes: Vec<Change>,
    /// Whether the last change made the number worse or better, and whether that is known.
    pub verdict: Word,
    /// Why nothing was decided; empty where something was.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub reason: String,
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
    /// What else differs between most runs since the change before it and most runs until the
    /// next.
    pub differences: Vec<Difference>,
}

/// Looks for changes in the runs.
///
/// # Errors
///
/// If no point was measured in enough runs, or if a quantity does not exist or has no better
/// direction.
pub fn trend(asked: &Asked<'_>) -> Result<Trend, Error> {
    let runs = by_start(asked.runs);
    let (runs, other_hosts) = if asked.anyway { (runs, Vec::new()) } else { of_last_hosts(runs) };
    let measured = runs.iter().enumerate().flat_map(|(run, session)| {
        let points = session.points.iter().filter(|point| point.status == Status::Measured);
        points.map(move |point| ((&point.experiment, &point.axes), (run, point)))
    });
    let mut varying = Varying::default();
    let mut all = Vec::new();
    for ((experiment, axes), points) in grouped(measured) {
        let first = points[0].1;
        varying.see(first);
        for path in Number::paths(asked.quantities, first) {
            let number = Number::named(path, points.iter().map(|(_, point)| *point), asked.patterns)?;
            let mut series = Series::of(experiment, axes, number, &points, asked.patterns);
            series.ends(&runs);
            all.push(series);
        }
    }
    let is_long = |series: &Series<'_>| series.compared().len() >= 2 * SEGMENT;
    let quantities = all.iter().filter(|series| is_long(series)).count();
    if quantities == 0 {
        let left_out = match other_hosts.len() {
            0 => String::new(),
            count => {
                format!("; runs of other hosts than the last are left out ({count}): keep them with --anyway")
            }
        };
        let most = all.iter().map(|series| series.compared().len()).max().unwrap_or(0);
        return Err(Error::TooFewRuns { runs: runs.len(), most, least: 2 * SEGMENT, left_out });
    }
    let known: Vec<Known> = runs.iter().map(|session| Known::of(session.run)).collect();
    let mut rows = Vec::new();
    let mut left_out = Vec::new();
    for series in all {
        let is_shown = |axis: &str| axis == "size_bytes" || varying.has(series.experiment, axis);
        let point = axes_text(series.axes, is_shown);
        if is_long(&series) {
            rows.push(series.row(point, quantities, asked, &runs, &known));
        } else {
            let counts = format!("{} of {} runs", series.compared().len(), series.values.len());
            left_out.push(format!("{} {point}: {counts}", plain(series.experiment)));
        }
    }
    let names = runs.iter().map(|session| session.name.to_owned()).collect();
    let (verdict, sentence) = said(&rows);
    let last = runs.last().map(|last| Measured::of(last)).unwrap_or_default();
    Ok(Trend { runs: names, last, margin: asked.margin, rows, left_out, other_hosts, verdict, sentence })
}

/// The runs on the hosts of the last one, and the others in words: a change from one machine to
/// another is none in time.
fn of_last_hosts<'s, 'a>(runs: Vec<&'s Session<'a>>) -> (Vec<&'s Session<'a>>, Vec<String>) {
    let hosts = |session: &Session<'_>| -> BTreeSet<String> {
        session.run.environments.iter().map(|host| plain(&host.hostname)).collect()
    };
    // A run has no hosts if it ended before its ranks had started.
    let last = runs.iter().map(|session| hosts(session)).rfind(|hosts| !hosts.is_empty());
    let (kept, other): (Vec<_>, Vec<_>) =
        runs.into_iter().partition(|session| last.as_ref().is_none_or(|last| hosts(session) == *last));
    let words = |session: &Session<'_>| {
        let names: Vec<String> = hosts(session).into_iter().collect();
        let names = if names.is_empty() { "none".to_owned() } else { names.join(" and ") };
        format!("{}: {names}", plain(session.name))
    };
    (kept, other.into_iter().map(words).collect())
}

/// The numbers of the runs that have one, of one point.
struct Series<'a> {
    experiment: &'a str,
    axes: &'a Axes,
    number: Number<'a>,
    values: Vec<Value>,
    /// The core-to-core latency of each.
    placements: Vec<Option<f64>>,
    /// The runs after the last value that have points of the experiment.
    without: Vec<usize>,
    /// Whether the point failed in one of these runs.
    fails: bool,
    /// Whether it failed in the last run, which has no value.
    fails_last: bool,
}

impl<'a> Series<'a> {
    fn of(
        experiment: &'a str,
        axes: &'a Axes,
        number: Number<'a>,
        points: &[(usize, &Point)],
        patterns: Patterns,
    ) -> Self {
        let mut placements = Vec::new();
        let mut values = Vec::new();
        for points in points.chunk_by(|a, b| a.0 == b.0) {
            let numbers: Vec<f64> =
                points.iter().filter_map(|(_, point)| number.of(point, patterns)).collect();
            let Some(middle) = median(numbers) else { continue };
            let calibrations = points.iter().filter_map(|(_, point)| point.calibration.as_ref());
            placements.push(calibrations.map(|found| found.before_ns.max(found.after_ns)).reduce(f64::max));
            values.push(Value { run: points[0].0, number: middle, is_compared: true });
        }
        for (value, kept) in values.iter_mut().zip(regime::most_frequent(&placements)) {
            value.is_compared = kept;
        }
        Self {
            experiment,
            axes,
            number,
            values,
            placements,
            without: Vec::new(),
            fails: false,
            fails_last: false,
        }
    }

    /// Looks at the runs after the last value.
    fn ends(&mut self, runs: &[&Session<'_>]) {
        let next = self.values.last().map_or(0, |last| last.run + 1);
        let is_own = |point: &&Point| point.experiment == self.experiment;
        let later = || runs.iter().enumerate().skip(next);
        self.without = later()
            .filter(|(_, run)| run.points.iter().any(|point| is_own(&point)))
            .map(|(at, _)| at)
            .collect();
        let has_failed =
            |point: &Point| matches!(point.status, Status::Failed { .. }) && point.axes == *self.axes;
        let fails = |run: &Session<'_>| run.points.iter().filter(is_own).any(has_failed);
        self.fails = later().any(|(_, run)| fails(run));
        self.fails_last = later().last().is_some_and(|(_, run)| fails(run));
    }

    fn compared(&self) -> Vec<&Value> {
        self.values.iter().filter(|value| value.is_compared).collect()
    }

    fn row(
        self,
        point: String,
        quantities: usize,
        asked: &Asked<'_>,
        runs: &[&Session<'_>],
        known: &[Known],
    ) -> Row {
        let compared = self.compared();
        let y: Vec<f64> = compared.iter().map(|value| value.number.ln()).collect();
        let found = find(&y, quantities, asked.margin);
        let places = found.changes.iter().map(|change| change.at);
        let bounds: Vec<usize> = std::iter::once(0).chain(places).chain([compared.len()]).collect();
        let change = |(change, around): (&verdict::trend::Change, &[usize])| {
            let of = |part: &[&Value]| part.iter().map(|value| &known[value.run]).collect::<Vec<_>>();
            let sides = [of(&compared[around[0]..change.at]), of(&compared[change.at..around[2]])];
            let run = compared[change.at].run;
            Change {
                run,
                started: plain(&runs[run].run.started),
                ratio: change.shift.exp(),
                verdict: if self.number.sign * change.shift < 0.0 { Word::Worse } else { Word::Better },
                differences: changed(sides),
            }
        };
        let changes: Vec<Change> = found.changes.iter().zip(bounds.windows(3)).map(change).collect();
        let last = changes.last().map_or(Word::Same, |change| change.verdict);
        let undecided = |reason: String| (Word::Undecided, reason);
        let (verdict, reason) = match (last, self.moved(quantities), found.least) {
            _ if last != Word::Worse && self.fails_last => {
                (Word::Failed, format!("in the last run, {}", plain(&runs[runs.len() - 1].run.started)))
            }
            _ if self.without.len() >= SEGMENT && !(last == Word::Worse && self.fails) => {
                let since = runs[self.without[0]];
                undecided(format!("no number since {} ({})", plain(&since.run.started), plain(since.name)))
            }
            (Word::Worse, ..) | (_, None, None) => (last, String::new()),
            (_, Some(run), _) => {
                let name = plain(runs[run].name);
                undecided(format!("placement differs from {} ({name}) on", plain(&runs[run].run.started)))
            }
            (_, _, Some(least)) => {
                let need = if quantities == 1 { "needs" } else { "need" };
                undecided(format!("{quantities} series {need} at least {least} runs"))
            }
        };
        let numbers = || self.values.iter().map(|value| value.number);
        let ends = [numbers().fold(f64::INFINITY, f64::min), numbers().fold(0.0, f64::max)];
        Row {
            experiment: self.experiment.to_owned(),
            point,
            ends: ends.map(|end| Number::printed(self.number.path, end, asked.patterns)),
            quantity: self.number.path.to_owned(),
            help: self.number.help,
            series: self.values,
            changes,
            verdict,
            reason,
        }
    }

    /// The run since which most runs are of another placement than those that are compared, if the
    /// placement changed for good. Nothing is known then of the present level.
    fn moved(&self, quantities: usize) -> Option<usize> {
        let known = self.values.iter().zip(&self.placements);
        let known: Vec<(&Value, f64)> =
            known.filter_map(|(value, placement)| Some((value, (*placement)?))).collect();
        let y: Vec<f64> = known.iter().map(|(_, placement)| placement.ln()).collect();
        let last = find(&y, quantities, regime::FAR - 1.0).changes.last()?.at;
        let since = &known[last..];
        let compared = since.iter().filter(|(value, _)| value.is_compared).count();
        (2 * compared < since.len()).then_some(since[0].0.run)
    }
}

/// The verdict on all series, and the same in a sentence.
fn said(rows: &[Row]) -> (Word, String) {
    let count = |word: Word| rows.iter().filter(|row| row.verdict == word).count();
    let words = [Word::Worse, Word::Failed, Word::Undecided, Word::Better];
    let verdict = words.into_iter().find(|word| count(*word) > 0).unwrap_or(Word::Same);
    let changes = match rows.iter().map(|row| row.changes.len() as u64).sum() {
        0 => "no change".to_owned(),
        changes => counted(changes, "change"),
    };
    let of = format!("{}: {changes} in {} series", verdict.text(), rows.len());
    let last = match verdict {
        Word::Worse => format!("; the last change of {} is for the worse", count(Word::Worse)),
        Word::Better => ", the last of each for the better".to_owned(),
        Word::Failed => format!("; {} failed in the last run", count(Word::Failed)),
        _ => String::new(),
    };
    let undecided = match count(Word::Undecided) {
        0 => String::new(),
        count => format!("; {count} undecided"),
    };
    (verdict, of + &last + &undecided)
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
            last: self.last.clone(),
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
                ("fewer than 10 runs of one placement, left out", self.left_out.clone()),
                ("runs of other hosts, left out", self.other_hosts.clone()),
            ],
            verdict: self.verdict,
            sentence: self.sentence.clone(),
        }
    }

    fn end(&self, run: usize) -> String {
        plain(&self.runs[run])
    }

    /// The series as a drawing, with its smallest and largest number and its first and last run.
    fn drawing(&self, row: &Row) -> Markup {
        let [least, most] = &row.ends;
        let run = |value: Option<&Value>| value.map(|value| self.end(value.run)).unwrap_or_default();
        html! {
            figure class="series" {
                div class="numbers" { span { (most) } span { (least) } }
                (marks(row))
                div class="runs" { span { (run(row.series.first())) } span { (run(row.series.last())) } }
            }
        }
    }

    fn lines(&self, row: &Row) -> Vec<Line> {
        let compared = row.series.iter().filter(|value| value.is_compared).count();
        let count = format!("{compared} of {}", self.runs.len());
        let mut all: Vec<Line> = Vec::new();
        let mut add = |cells: [String; 2], verdict: Word, reason: &str| {
            let drawing = all.is_empty().then(|| self.drawing(row));
            all.push(Line {
                group: format!("{}: {}", plain(&row.experiment), row.help),
                experiment: plain(&row.experiment),
                cells: [plain(&row.point), count.clone()].into_iter().chain(cells).collect(),
                verdict,
                reason: reason.to_owned(),
                is_present: false,
                ratio: None,
                drawing,
            });
        };
        for change in &row.changes {
            add([change.started.clone(), ratio(change.ratio)], change.verdict, "");
        }
        if row.changes.is_empty() || matches!(row.verdict, Word::Undecided | Word::Failed) {
            add(["-".to_owned(), "-".to_owned()], row.verdict, &row.reason);
        }
        all.last_mut().into_iter().for_each(|last| last.is_present = true);
        all
    }
}

/// The size of a drawing, in its own units, and the room around its marks. The page stretches it.
const WIDTH: f64 = 720.0;
const HEIGHT: f64 = 120.0;
const ROOM: f64 = 8.0;

/// The marks of a series: one for each run, pale if it is of another regime, and a line at each
/// change. The scale is logarithmic.
fn marks(row: &Row) -> Markup {
    let logs: Vec<f64> = row.series.iter().map(|value| value.number.ln()).collect();
    let least = logs.iter().copied().fold(f64::INFINITY, f64::min);
    let most = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let last = row.series.last().map_or(0, |value| value.run).max(1) as f64;
    let tenths = |place: f64| (place * 10.0).round() / 10.0;
    let x = |run: f64| tenths(ROOM + run / last * (WIDTH - 2.0 * ROOM));
    let height = (most - least).max(f64::MIN_POSITIVE);
    let y = |log: f64| tenths(HEIGHT - ROOM - (log - least) / height * (HEIGHT - 2.0 * ROOM));
    html! {
        svg viewBox={ "0 0 " (WIDTH) " " (HEIGHT) } preserveAspectRatio="none" role="img" {
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
