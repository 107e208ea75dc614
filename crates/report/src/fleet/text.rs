//! A fleet on a terminal.

use measure::record::{Fleet, Point, Run};
use measure::text::plain;
use verdict::fleet::{Examined, Judged};

use super::found::Found;
use super::matrix::{Matrix, tenths};
use super::outcome::open;
use super::quantiles::{SHARES, quantiles};
use super::question::Question;
use super::rows::{OverPairs, rows};
use super::stated::stated;
use super::tails::Tails;
use super::value::Row;
use super::words::Words;

/// Returns what is printed of the record of a fleet, as [`text()`]; none for other runs.
///
/// # Errors
///
/// Why it cannot be examined.
pub fn of_record(run: &Run, points: &[Point], line: Option<usize>) -> Option<Result<String, String>> {
    let print =
        |found: Found<'_>| text(run, found.fleet, &found.question, &found.examined, &Tails::of(points), line);
    Some(Found::of(run, points)?.map(print))
}

/// Returns what is printed when a fleet has been examined: the verdict, the culprits, what could
/// have been found, quantiles over the pairs, and matrices. `line` is the width of the terminal.
pub fn text(
    run: &Run,
    fleet: &Fleet,
    question: &Question,
    examined: &Examined,
    tails: &Tails,
    line: Option<usize>,
) -> String {
    let words = Words::new(fleet, question, examined);
    let width = line.unwrap_or(LINE).min(LINE_MAX);
    let rule = "-".repeat(width.min(LINE));
    let mut out = format!("{rule}\n {}: {}\n", plain(&run.title), words.verdict());
    let schedule = question.options.schedule.name;
    out += &format!(" schedule {schedule}{}: {}\n{rule}\n", words.rails(), words.measured());
    for culprit in &examined.culprits {
        out += &format!(" ! {}\n", words.culprit(culprit));
        words.evidence(culprit).iter().for_each(|line| out += &format!("     {line}\n"));
    }
    remarks(&words).iter().for_each(|line| out += &format!(" {line}\n"));
    out += &table(question, examined, tails);
    for judged in &examined.quantities {
        out += &matrix(&words, judged, width);
    }
    out
}

/// Returns the lines that follow the culprits: the members that were left out, the congested
/// places, what is not decided, the suspects that were cleared, the deficits that would have been
/// named, and whether stated limits are met.
pub(crate) fn remarks(words: &Words<'_>) -> Vec<String> {
    let Words { names, examined, .. } = words;
    let fleet = names.fleet;
    let left = fleet
        .left
        .iter()
        .map(|(member, reason)| format!("left out: {}: {}", names.member(*member as usize), plain(reason)));
    let named = examined.quantities.iter().filter_map(|judged| {
        let thresholds = judged.thresholds.as_ref()?;
        Some(format!("would have been named: {}", words.detectable(judged, thresholds)))
    });
    left.chain(listed("congested", examined.congestion.iter().map(|one| words.congestion(one))))
        .chain(listed("not decided", open(fleet, examined).map(|one| words.undecided(one))))
        .chain(listed("suspect at first", examined.cleared.iter().map(|one| words.cleared(one))))
        .chain(named)
        .chain(stated(words))
        .chain(words.across())
        .collect()
}

/// At most [`LISTED_MAX`] lines under a word, and how many more there are.
fn listed(word: &str, lines: impl Iterator<Item = String>) -> Vec<String> {
    let lines: Vec<String> = lines.collect();
    let mut out: Vec<String> = lines.iter().take(LISTED_MAX).map(|line| format!("{word}: {line}")).collect();
    if lines.len() > LISTED_MAX {
        out.push(format!("{word}: {} more in the report", lines.len() - LISTED_MAX));
    }
    out
}

/// The quantiles over pairs, a row for each quantity.
fn table(question: &Question, examined: &Examined, tails: &Tails) -> String {
    let rows = examined.quantities.iter().flat_map(|judged| rows(question, judged, tails));
    let rows: String = rows
        .map(|OverPairs { quantity, part, row, values, .. }| {
            let (unit, one) = row.unit(values[SHARES.len() / 2]);
            // A part is below all pairs of its quantity.
            let name = part.map_or(quantity, |part| format!("  {part}"));
            let mut out = format!(" {:<22}", format!("{name}[{unit}]"));
            for value in values {
                let value = value / one;
                let digits = if value < 10.0 { 2 } else { usize::from(value < 1000.0) };
                out += &format!("{value:>8.digits$}");
            }
            out + "\n"
        })
        .collect();
    if rows.is_empty() {
        return rows;
    }
    let heads: String = SHARES.iter().map(|(name, _)| format!("{name:>8}")).collect();
    format!("\n {:<22}{heads}\n{rows}", "of pairs")
}

/// The matrix of a quantity: a character for each pair.
fn matrix(words: &Words<'_>, judged: &Judged, width: usize) -> String {
    let Some(row) = Row::named(&judged.name).filter(|_| !judged.cells.is_empty()) else {
        return String::new();
    };
    let hosts = &words.question.hosts;
    let names: Vec<String> = (0..hosts.count).map(|member| words.names.member(member)).collect();
    let label = names.iter().map(|name| name.chars().count()).max().unwrap_or(0).min(LABEL_MAX);
    let matrix = Matrix::of(hosts, judged, width.saturating_sub(label + 3).min(ROWS_MAX));
    let middle = quantiles(row, &judged.cells).map_or(0.0, |values| values[SHARES.len() / 2]);
    let middle = match hosts.networks {
        Some(_) => " of its rail".to_owned(),
        None => format!(", {}", row.shown(middle)),
    };
    let from = if judged.directed { ", from row to column" } else { "" };
    let blocks = match matrix.blocks.first().map_or(1, Vec::len) {
        1 => String::new(),
        several => format!("; each row is {several} members, shown by their worst pair"),
    };
    let how = match row.is_rate {
        true => "1 is 10 % below it, 9 is 90 %",
        false => "1 is 10 % above it, 9 is 90 % and more",
    };
    let mut out = format!("\n {}{from}: '.' is near the median{middle}; {how}{blocks}\n", row.name);
    for (index, block) in matrix.blocks.iter().enumerate() {
        let name: String = names[block[0]].chars().take(label).collect();
        let cells: String = (0..matrix.blocks.len())
            .map(|column| match matrix.worst.get(&(index, column)) {
                Some(worst) => character(tenths(row, worst.relative)),
                None if column == index && block.len() == 1 => ' ',
                None => '-',
            })
            .collect();
        out += &format!(" {name:<label$}  {cells}\n");
    }
    out
}

/// The character of a cell.
fn character(tenths: u32) -> char {
    if tenths == 0 { '.' } else { char::from_digit(tenths, 10).unwrap_or('9') }
}

/// The usual width of a line.
const LINE: usize = 80;
/// The widest line of a matrix.
const LINE_MAX: usize = 200;
/// The most rows of a matrix.
const ROWS_MAX: usize = 64;
/// The longest name in a matrix.
const LABEL_MAX: usize = 20;
/// The most lines of a kind.
const LISTED_MAX: usize = 10;
