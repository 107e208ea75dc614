//! Whether a new side differs from a base, from the records of both: what matches, the numbers of
//! each unit, the verdicts, and their output.
//!
//! The statistics are those of [`verdict::compare`]; `docs/compare.md` has every definition.
//!
//! # Invariants
//!
//! - A side is `worse` only if the design holds the error rate: turns, runs in a mixed order, or a
//!   history of sessions. Otherwise it `differs`. Any number of runs of a side that was measured
//!   after the other is one session.
//! - What was left out is listed: points and numbers without a partner, runs of the history, and
//!   what differs between the sides. What failed on the new side alone is a row.

mod asked;
mod comparison;
mod differences;
pub mod formats;
mod history;
mod matching;
mod number;
mod page;
mod sheet;
#[cfg(test)]
mod tests;
pub mod trend;
mod units;

use measure::presentation::Patterns;
use measure::record::{Axes, Point};
use measure::text::counted;
use verdict::compare::{Answer, Design, Verdict, Why, compare as answers};
use verdict::session::as_large;

pub use asked::{Asked, Measured, Order, Session};
pub use comparison::{Comparison, Row, Word};
pub use differences::{Difference, MATTERING_SETTINGS};
pub use sheet::Sheet;

use crate::Error;
use crate::list::distinct;
use history::History;
use matching::{Absent, Matched, Pair, match_points};
use number::Number;
use units::{Lacking, Questions};

/// Compares two sides.
///
/// # Errors
///
/// If the sides differ in what matters and `anyway` is not set, if no point of theirs matches, if
/// none has a number on both sides, or if a quantity does not exist or has no better direction.
pub fn compare(asked: &Asked<'_>) -> Result<Comparison, Error> {
    let matched = match_points(asked)?;
    let [base, new] = asked.sides.map(history::runs);
    let differences = differences::between([&base, &new], &matched.contrasts);
    let mattering: Vec<&Difference> = differences.iter().filter(|difference| difference.matters).collect();
    if !asked.by_turns && !asked.anyway && !mattering.is_empty() {
        let list = mattering.iter().map(ToString::to_string).collect();
        return Err(Error::SidesDiffer { list });
    }
    let order = units::order(asked);
    let history = History::of(asked, order);
    let found = units::questions(asked, &matched, &history.runs, order)?;
    let Questions { all: questions, lacking, absent } = found;
    if questions.is_empty() && !matched.has_failures() {
        let of_new = absent.iter().map(|one| format!("{}: {}", one.why, matched.pairs[one.at].name()));
        return Err(no_numbers(&matched, lacking.into_iter().chain(of_new).collect(), asked.patterns));
    }
    let design = match order {
        Order::Turns => Design::of_turns(asked.sides[0].len().min(asked.sides[1].len())),
        Order::Mixed => Design::Unpaired,
        Order::Sessions => Design::Sessions,
    };
    let numbers: Vec<_> = questions.iter().map(|question| question.numbers.clone()).collect();
    let answered = answers(&numbers, design, asked.margin);
    let mut rows: Vec<Row> = questions
        .iter()
        .zip(answered)
        .map(|(question, answer)| row(question, &answer, order, asked.patterns))
        .collect();
    let (failed, not_measured): (Vec<_>, Vec<_>) =
        matched.absent.iter().partition(|absent| absent.pair.failure.is_some());
    for Absent { pair, why, .. } in failed {
        rows.push(without_numbers(pair, None, Word::Failed, why, asked)?);
    }
    for Lacking { at, path, why } in &absent {
        rows.push(without_numbers(&matched.pairs[*at], Some(path), Word::Undecided, why, asked)?);
    }
    for Absent { pair, why, .. } in not_measured {
        rows.push(without_numbers(pair, None, Word::Undecided, why, asked)?);
    }
    let verdict = overall(&rows);
    let sentence = sentence(&rows, verdict, &differences, asked);
    Ok(Comparison {
        names: asked.names.map(str::to_owned),
        runs: asked.sides.map(<[Session<'_>]>::len),
        last: asked.sides[1].last().map(Measured::of).unwrap_or_default(),
        order,
        history: history.sessions,
        left_out: history.left_out,
        margin: asked.margin,
        rows,
        differences,
        unmatched: [matched.unmatched, lacking].concat(),
        verdict,
        sentence,
    })
}

/// Returns how many questions a comparison asks whose base has these points, if each has a partner.
#[must_use]
pub fn questions(points: &[Point], quantities: &[String], by_experiment: bool) -> usize {
    let key = |point: &Point| {
        let axes = if by_experiment { Axes::new() } else { point.axes.clone() };
        (point.experiment.clone(), axes)
    };
    distinct(points.iter().map(key)).len() * quantities.len().max(1)
}

/// The error of sides of which no pair has numbers.
fn no_numbers(matched: &Matched<'_>, lacking: Vec<String>, patterns: Patterns) -> Error {
    let known = matched.pairs.first().map(|pair| Number::known(pair.first, patterns)).unwrap_or_default();
    Error::NoNumbers { list: lacking, known: known.join(", ") }
}

fn row(question: &units::Asking, answer: &Answer, order: Order, patterns: Patterns) -> Row {
    let sign = question.sign;
    let ratio = |y: f64| (sign * y).exp();
    let interval = answer.interval.map(|[low, high]| {
        let ends = [ratio(low), ratio(high)];
        [ends[0].min(ends[1]), ends[0].max(ends[1])]
    });
    let as_large = as_large(&question.numbers.history, answer.shift.unwrap_or_default());
    let (verdict, reason) = word(answer.verdict, order, as_large);
    let [missing, wanted] = question.lacking;
    let (verdict, reason) = match (verdict, &question.failure) {
        (Word::Worse, Some(failure)) => (Word::Worse, failure.clone()),
        (_, Some(failure)) => (Word::Failed, failure.clone()),
        // Those that are missing may be the worst ones.
        (Word::Same | Word::Better, None) if missing > 0 => {
            (Word::Undecided, format!("{missing} of {wanted} numbers of the new side are missing"))
        }
        (verdict, None) => (verdict, reason),
    };
    Row {
        experiment: question.experiment.clone(),
        point: question.point.clone(),
        quantity: question.quantity.clone(),
        help: question.help.clone(),
        medians: question.medians,
        printed: question
            .medians
            .map(|medians| medians.map(|median| Number::printed(&question.quantity, median, patterns))),
        units: answer.counts,
        units_measured: answer.all,
        ratio: answer.shift.map(ratio),
        interval,
        detectable: answer.detectable().map(f64::exp_m1),
        verdict,
        reason,
    }
}

/// The row of a pair of which the new side has no values, or none of the quantity `path`.
fn without_numbers(
    pair: &Pair<'_>,
    path: Option<&str>,
    verdict: Word,
    why: &str,
    asked: &Asked<'_>,
) -> Result<Row, Error> {
    let path = path.unwrap_or_else(|| Number::paths(asked.quantities, pair.first)[0]);
    let number = Number::named(path, std::iter::once(pair.first), asked.patterns)?;
    Ok(Row {
        experiment: pair.experiment.clone(),
        point: pair.point.clone(),
        quantity: number.path.to_owned(),
        help: number.help,
        medians: None,
        printed: None,
        units: [0; 2],
        units_measured: [0; 2],
        ratio: None,
        interval: None,
        detectable: None,
        verdict,
        reason: why.to_owned(),
    })
}

/// Returns a verdict in print, and its reason. `as_large` counts the differences between earlier
/// sessions that are as large, and all of them.
fn word(verdict: Verdict, order: Order, as_large: [usize; 2]) -> (Word, String) {
    let units = match order {
        Order::Turns => "pairs",
        Order::Mixed => "runs a side",
        Order::Sessions => "repetitions a side",
    };
    let reason = match verdict {
        Verdict::Same => return (Word::Same, String::new()),
        Verdict::Better => return (Word::Better, String::new()),
        Verdict::Worse => return (Word::Worse, String::new()),
        Verdict::Differs => {
            let earlier = match as_large {
                [_, 0] => String::new(),
                [large, all] => format!(": {large} of {all} pairs of identical sessions differ as much"),
            };
            return (Word::Differs, format!("{ONE_SESSION}{earlier}"));
        }
        Verdict::Undecided(Why::Placement) => "placement differs".to_owned(),
        Verdict::Undecided(Why::TooFew { least }) => format!("needs at least {least} {units}"),
        Verdict::Undecided(Why::Wide { units: needed }) => format!("{needed} {units} would decide"),
        Verdict::Undecided(Why::Noise) => "not with this noise".to_owned(),
        Verdict::Undecided(Why::Clock) => "not with steps of this clock".to_owned(),
        Verdict::Undecided(Why::Sessions) => "earlier sessions differ by more".to_owned(),
    };
    (Word::Undecided, reason)
}

/// Why sides only differ.
const ONE_SESSION: &str = "one session a side";

/// The verdict on all: the worst of those that decide.
fn overall(rows: &[Row]) -> Word {
    let has = |word: Word| rows.iter().any(|row| row.verdict == word);
    let order = [Word::Worse, Word::Failed, Word::Differs, Word::Undecided, Word::Better];
    order.into_iter().find(|word| has(*word)).unwrap_or(Word::Same)
}

/// The verdict on all in a sentence.
fn sentence(rows: &[Row], verdict: Word, differences: &[Difference], asked: &Asked<'_>) -> String {
    let count = |word: Word| rows.iter().filter(|row| row.verdict == word).count();
    let words = [Word::Worse, Word::Failed, Word::Better, Word::Differs, Word::Same, Word::Undecided];
    let found = words.map(|word| (count(word), word)).into_iter().filter(|(count, _)| *count > 0);
    let counts: Vec<String> = found.map(|(count, word)| format!("{count} {}", word.text())).collect();
    let of = if rows.len() == 1 { String::new() } else { format!(" ({})", counts.join(", ")) };
    let mut text = match verdict {
        Word::Differs => format!("differs, but {ONE_SESSION}{of}"),
        word => format!("{}{of}", word.text()),
    };
    let mattering = differences.iter().filter(|difference| difference.matters).count();
    if !asked.by_turns && mattering > 0 {
        let despite = counted(mattering as u64, "difference");
        let matter = if mattering == 1 { "matters" } else { "matter" };
        text += &format!("; compared anyway, despite {despite} that {matter}");
    }
    text
}
