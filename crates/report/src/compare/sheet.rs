//! A comparison or a trend as lines of cells, which every format writes.

use measure::stats::shape::Estimate;
use measure::text::{counted, plain};

use super::asked::{Measured, Order};
use super::comparison::{Comparison, Row, Word};

/// Lines of cells with their verdicts.
#[derive(Clone, Debug)]
pub struct Sheet {
    /// What it is of: `compare`, `trend`.
    pub(super) name: &'static str,
    /// When and where the last run was measured.
    pub(super) last: Measured,
    /// What was compared, a sentence each.
    pub(super) about: Vec<String>,
    /// The names of the columns. The first is that of the points.
    pub(super) head: Vec<String>,
    /// The lines.
    pub(super) lines: Vec<Line>,
    /// The ratios that count as the same, which the forest plots of a page shade.
    pub(super) same: [f64; 2],
    /// Lists below the lines, with their headings.
    pub(super) lists: Vec<(&'static str, Vec<String>)>,
    /// The verdict on all.
    pub(super) verdict: Word,
    /// The same in a sentence.
    pub(super) sentence: String,
}

/// A line.
#[derive(Clone, Debug)]
pub(super) struct Line {
    /// What all lines of a group have in common: the experiment, and the number in words.
    pub(super) group: String,
    /// The experiment.
    pub(super) experiment: String,
    /// The cells, of which the first is the point.
    pub(super) cells: Vec<String>,
    pub(super) verdict: Word,
    pub(super) reason: String,
    /// Whether this is the present verdict on its point: an earlier change of a trend is not.
    pub(super) is_present: bool,
    /// The ratio with its interval, for a forest plot.
    pub(super) ratio: Option<Estimate>,
    /// A drawing of the series, for a page.
    pub(super) drawing: Option<maud::Markup>,
}

impl Line {
    /// The verdict with its reason.
    pub(super) fn said(&self) -> String {
        match self.reason.as_str() {
            "" => self.verdict.text().to_owned(),
            reason => format!("{}: {reason}", self.verdict.text()),
        }
    }
}

/// A cell without a number.
const NONE: &str = "-";

impl Comparison {
    /// The comparison as lines of cells.
    #[must_use]
    pub fn sheet(&self) -> Sheet {
        let names = self.names.each_ref().map(|name| plain(name));
        let head = ["point", "base", "new", "new/base", "interval", "detects"].map(str::to_owned);
        let differences = self.differences.iter().map(ToString::to_string).collect();
        Sheet {
            name: "compare",
            last: self.last.clone(),
            about: vec![
                format!("base: {} ({})", names[0], counted(self.runs[0] as u64, "run")),
                format!("new:  {} ({})", names[1], counted(self.runs[1] as u64, "run")),
                format!("order: {}; margin {}", self.order_text(), percent(self.margin)),
            ],
            head: head.into(),
            lines: self.rows.iter().map(line).collect(),
            same: [1.0 / (1.0 + self.margin), 1.0 + self.margin],
            lists: vec![
                ("differences between the sides", differences),
                ("not compared", self.unmatched.clone()),
                ("left out of the history", self.left_out.clone()),
            ],
            verdict: self.verdict,
            sentence: self.sentence.clone(),
        }
    }

    fn order_text(&self) -> String {
        match (self.order, self.history) {
            (Order::Turns, _) => "by turns, in random order".to_owned(),
            (Order::Mixed, _) => "runs in mixed order".to_owned(),
            (Order::Sessions, 0) => "one side after the other, no history".to_owned(),
            (Order::Sessions, n) => {
                format!("one side after the other, history of {}", counted(n as u64, "session"))
            }
        }
    }
}

fn line(row: &Row) -> Line {
    let [base, new] = row.printed.clone().unwrap_or([NONE.to_owned(), NONE.to_owned()]);
    let interval = row.interval.map(|[low, high]| format!("{} .. {}", ratio(low), ratio(high)));
    let numbers = [row.ratio.map(ratio), interval, row.detectable.map(percent)];
    let numbers = numbers.into_iter().map(|cell| cell.unwrap_or_else(|| NONE.to_owned()));
    let kept = [0, 1].map(|side| format!("{} of {}", row.units[side], row.units_measured[side]));
    let is_whole = row.units == row.units_measured;
    let counts = format!("compared base {}, new {}", kept[0], kept[1]);
    let reason = match (row.reason.as_str(), is_whole) {
        (reason, true) => reason.to_owned(),
        ("", false) => counts,
        (reason, false) => format!("{reason}; {counts}"),
    };
    let estimate = row.ratio.zip(row.interval);
    Line {
        group: format!("{}: {}", plain(&row.experiment), row.help),
        experiment: plain(&row.experiment),
        cells: [plain(&row.point), base, new].into_iter().chain(numbers).collect(),
        verdict: row.verdict,
        reason,
        is_present: true,
        ratio: estimate.map(|(value, [low, high])| Estimate { value, low, high }),
        drawing: None,
    }
}

/// Prints a ratio with three to four digits.
pub(super) fn ratio(ratio: f64) -> String {
    let decimals = match ratio {
        r if r < 10.0 => 3,
        r if r < 100.0 => 2,
        r if r < 1000.0 => 1,
        _ => 0,
    };
    format!("{ratio:.decimals$}")
}

/// Prints a share in percent, with two digits or more.
pub(super) fn percent(share: f64) -> String {
    let percent = share * 100.0;
    let decimals = match percent {
        p if p < 0.995 => 2,
        p if p < 9.95 && p.fract() != 0.0 => 1,
        _ => 0,
    };
    format!("{percent:.decimals$} %")
}
