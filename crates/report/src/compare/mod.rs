//! Whether a new side differs from a base, from the records of both: what matches, the numbers of
//! each unit, the verdicts, and their output.
//!
//! The statistics are those of [`verdict::compare`]; `docs/compare.md` has every definition.
//!
//! # Invariants
//!
//! - A side is `worse` only if the design holds the error rate: turns, runs in a mixed order, or a
//!   history of sessions. Otherwise it `differs`.
//! - What was left out is listed: points without a partner, and what differs between the sides.

mod asked;
mod comparison;
mod differences;
pub mod formats;
mod matching;
mod number;
mod page;
mod sheet;
#[cfg(test)]
mod tests;
pub mod trend;
mod units;

use measure::presentation::Patterns;
use measure::text::counted;
use verdict::compare::{Answer, Design, Verdict, Why, compare as answers};

pub use asked::{Asked, Order, Session};
pub use comparison::{Comparison, Row, Word};
pub use differences::Difference;
pub use sheet::Sheet;

use crate::Error;
use matching::{Matched, match_points};
use number::Number;

/// Compares two sides.
///
/// # Errors
///
/// If the sides differ in what matters and `anyway` is not set, if no point of theirs matches, or
/// if a quantity does not exist or has no better direction.
pub fn compare<'a>(asked: &Asked<'a>) -> Result<Comparison, Error> {
    let matched = match_points(asked)?;
    let differences = differences::between(asked.sides, &matched.contrasts);
    let mattering: Vec<&Difference> = differences.iter().filter(|difference| difference.matters).collect();
    if !asked.by_turns && !asked.anyway && !mattering.is_empty() {
        let list = mattering.iter().map(ToString::to_string).collect();
        return Err(Error::SidesDiffer { list });
    }
    // A session of another machine or of other settings says nothing about these.
    let is_alike = |session: &&Session<'a>| {
        let of = [asked.sides[0], std::slice::from_ref(*session)];
        !differences::between(of, &[]).iter().any(|difference| difference.matters)
    };
    let history: Vec<Session<'a>> = asked.history.iter().filter(is_alike).copied().collect();
    let asked = &Asked { history: &history, ..*asked };
    let order = units::order(asked);
    let questions = units::questions(asked, &matched, order)?;
    if questions.is_empty() {
        return Err(Error::NothingToCompare { names: asked.names.map(str::to_owned) });
    }
    let design = match order {
        Order::Turns => Design::of_turns(asked.sides[0].len().min(asked.sides[1].len())),
        Order::Mixed | Order::Sessions => Design::Unpaired,
    };
    let numbers: Vec<_> = questions.iter().map(|question| question.numbers.clone()).collect();
    let answers = answers(&numbers, design, asked.margin);
    let holds = |question: &units::Asking| order != Order::Sessions || units::has_floor(&question.numbers);
    let rows: Vec<Row> = questions
        .iter()
        .zip(answers)
        .map(|(question, answer)| row(question, &answer, holds(question), asked.patterns))
        .collect();
    let verdict = overall(&rows);
    let sentence = sentence(&rows, verdict, &differences, asked);
    let Matched { unmatched, .. } = matched;
    Ok(Comparison {
        names: asked.names.map(str::to_owned),
        runs: asked.sides.map(<[Session<'_>]>::len),
        order,
        history: asked.history.len(),
        margin: asked.margin,
        rows,
        differences,
        unmatched,
        verdict,
        sentence,
    })
}

fn row(question: &units::Asking, answer: &Answer, holds: bool, patterns: Patterns) -> Row {
    let sign = question.sign;
    let ratio = |y: f64| (sign * y).exp();
    let interval = answer.interval.map(|[low, high]| {
        let ends = [ratio(low), ratio(high)];
        [ends[0].min(ends[1]), ends[0].max(ends[1])]
    });
    let (verdict, reason) = word(answer.verdict, holds);
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

/// Returns a verdict in print, and its reason. `holds` says whether the design holds the error
/// rate.
fn word(verdict: Verdict, holds: bool) -> (Word, String) {
    let reason = match verdict {
        Verdict::Worse | Verdict::Better if !holds => {
            return (Word::Differs, "one session a side".to_owned());
        }
        Verdict::Same => return (Word::Same, String::new()),
        Verdict::Better => return (Word::Better, String::new()),
        Verdict::Worse => return (Word::Worse, String::new()),
        Verdict::Undecided(Why::Placement) => "placement differs".to_owned(),
        Verdict::Undecided(Why::TooFew { least }) => format!("needs at least {least} repetitions a side"),
        Verdict::Undecided(Why::Wide { units }) => format!("{units} repetitions a side would decide"),
        Verdict::Undecided(Why::Noise) => "not with this noise".to_owned(),
    };
    (Word::Undecided, reason)
}

/// The verdict on all: the worst of those that decide.
fn overall(rows: &[Row]) -> Word {
    let has = |word: Word| rows.iter().any(|row| row.verdict == word);
    let order = [Word::Worse, Word::Differs, Word::Better, Word::Undecided];
    order.into_iter().find(|word| has(*word)).unwrap_or(Word::Same)
}

/// The verdict on all in a sentence.
fn sentence(rows: &[Row], verdict: Word, differences: &[Difference], asked: &Asked<'_>) -> String {
    let count = |word: Word| rows.iter().filter(|row| row.verdict == word).count();
    let words = [Word::Worse, Word::Better, Word::Differs, Word::Same, Word::Undecided];
    let found = words.map(|word| (count(word), word)).into_iter().filter(|(count, _)| *count > 0);
    let counts: Vec<String> = found.map(|(count, word)| format!("{count} {}", word.text())).collect();
    let of = if rows.len() == 1 { String::new() } else { format!(" ({})", counts.join(", ")) };
    let mut text = match verdict {
        Word::Differs => format!("differs, but one session a side{of}"),
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
