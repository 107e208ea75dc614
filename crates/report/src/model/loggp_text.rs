//! The text on LogGP.

use measure::stats::shape::Estimate;

use super::combine::sum;
use super::loggp::LogGp;
use super::rounds::{Round, Rounds};
use super::text::{MISS, interval, missed};
use crate::unit;
use measure::text::plain;

/// The text on some parametrised round trips.
pub(super) fn rounds(rounds: &Rounds) -> String {
    let mut out = format!("{}\nmeasured\n\n", plain(&rounds.title));
    let model = match LogGp::of(rounds) {
        Ok(model) => model,
        Err(lack) => return out + &format!(" LogGP from parametrised round trips: none, as\n {lack}\n"),
    };
    out += &parameters(rounds, &model);
    out += &sizes(rounds, &model);
    out.push('\n');
    out += &errors(rounds, &model);
    if rounds.unstable > 0 {
        out += &format!(" Unstable points, which count like all others: {}.\n", rounds.unstable);
    }
    out
}

fn parameters(rounds: &Rounds, model: &LogGp) -> String {
    let mut out = format!(
        " LogGP from PRTT(n, d, s), n = {} (Hoefler, Lichei, Rehm 2007)\n \
         PRTT = 2 (L + 2o + (s-1) G) + (n-1) max(o + d, g + (s-1) G)\n",
        model.messages
    );
    let mut line = |name: &str, of: Estimate, decimals: usize, unit: &str, what: &str| {
        let ends = interval(of, decimals);
        out += &format!("   {name:<7} {:>9.decimals$} {unit:<5} {ends:<18} {what}\n", of.value);
    };
    let at = format!("at {}", unit::size(model.size));
    if let (Some(latency), Some(overhead)) = (model.latency, model.overhead) {
        line("L", latency, 1, "ns", &at);
        line("o", overhead, 1, "ns", &at);
    }
    line("L + 2o", model.one_way, 1, "ns", &at);
    line("g", model.gap, 1, "ns", "of each message of a burst");
    line("G", model.gap_per_byte, 4, "ns/B", &format!("{:.1} Gb/s", 8.0 / model.gap_per_byte.value));
    for (name, steps, what) in DIRECT {
        if let Some(cost) = rounds.cost(steps, model.size) {
            line(name, cost, 1, "ns", what);
        }
    }
    let all: Vec<&str> = DIRECT.iter().flat_map(|(_, steps, _)| steps.iter().copied()).collect();
    if let Some(cost) = rounds.cost(&all, model.size) {
        let rest = sum(0.0, &[(1.0, model.one_way), (-1.0, cost)]);
        line("L", rest, 1, "ns", "with o_s + o_r instead of 2o");
    }
    if model.latency.is_some_and(|latency| latency.value < 0.0) {
        out += " L is negative: o, which includes the overshoot of pauses, is longer than a message.\n";
    }
    if model.overhead.is_none() {
        out += " No pause is as long as a round of one message: L and o cannot be separated.\n";
    }
    if model.chance < FITS {
        let chance =
            if model.chance < 1e-6 { "< 1e-6".to_owned() } else { format!("= {:.0e}", model.chance) };
        out += &format!(
            " The sizes are not on one line g + (s-1) G (lack of fit, p {chance}): a change of\n \
             protocol, or of what limits the rate, lies between them.\n"
        );
    }
    out + "\n"
}

/// The table of the sizes.
fn sizes(rounds: &Rounds, model: &LogGp) -> String {
    let mut out = format!(
        " {:>9} {:>10} {:>10} {:>7} {:>8} {:>8} {:<18} {:>7} {:>7}\n",
        "bytes", "gap [ns]", "g+(s-1)G", "error", "d [us]", "o [ns]", "", "o_s", "o_r"
    );
    for of in &model.sizes {
        let gap = model.gap_at(of.size);
        let error = format!("{:+.1} %", 100.0 * (gap / of.gap.value - 1.0));
        let [pause, overhead, ends] = match of.overhead {
            Some((pause, overhead)) => [
                format!("{:.1}", pause as f64 / 1e3),
                format!("{:.1}", overhead.value),
                interval(overhead, 1),
            ],
            None => ["-", "-", ""].map(str::to_owned),
        };
        let [sent, received] = [DIRECT[0].1, DIRECT[1].1].map(|steps| {
            rounds.cost(steps, of.size).map_or_else(|| "-".to_owned(), |cost| format!("{:.1}", cost.value))
        });
        out += &format!(
            " {:>9} {:>10.1} {gap:>10.1} {error:>7} {pause:>8} {overhead:>8} {ends:<18} {sent:>7} {received:>7}\n",
            of.size, of.gap.value,
        );
    }
    out
}

/// The error of every point, and a list of the large ones.
fn errors(rounds: &Rounds, model: &LogGp) -> String {
    let mut columns: Vec<(u64, u64)> =
        rounds.rounds.iter().map(|round| (round.messages, round.pause)).collect();
    columns.sort_unstable();
    columns.dedup();
    let mut lines: Vec<u64> = rounds.rounds.iter().map(|round| round.size).collect();
    lines.sort_unstable();
    lines.dedup();
    let error = |column: (u64, u64), size: u64| {
        let is_it = |round: &&Round| (round.messages, round.pause, round.size) == (column.0, column.1, size);
        let round = rounds.rounds.iter().find(is_it)?;
        Some(100.0 * (model.round(round.messages, round.pause, round.size)? / round.ns.value - 1.0))
    };
    let mut out = " Error of each PRTT(n, d, s), the model against the point, in %\n".to_owned();
    out += &format!(" {:>9}", "bytes");
    for (messages, pause) in &columns {
        out += &format!(" {:>11}", name(*messages, *pause));
    }
    out.push('\n');
    let mut misses = String::new();
    for size in lines {
        out += &format!(" {size:>9}");
        for column in &columns {
            let error = error(*column, size);
            out += &format!(" {:>11}", error.map_or_else(|| "-".to_owned(), |error| format!("{error:+.1}")));
            if let Some(error) = error.filter(|error| error.abs() > MISS) {
                misses += &format!("   {} {}: {error:+.1} %\n", name(column.0, column.1), unit::size(size));
            }
        }
        out.push('\n');
    }
    out + &missed("point", &misses)
}

/// A burst in print: `n=16 d=2us`.
fn name(messages: u64, pause: u64) -> String {
    match pause {
        0 => format!("n={messages}"),
        pause if pause % 1000 == 0 => format!("n={messages} d={}us", pause / 1000),
        pause => format!("n={messages} d={pause}"),
    }
}

/// Overheads that are measured directly, and the calls that they consist of.
const DIRECT: [(&str, &[&str], &str); 2] = [
    ("o_s", &["post_send"], "timed by itself: post_send"),
    ("o_r", &["poll_receive", "post_receive"], "timed by itself: poll_receive and post_receive"),
];
/// Below this probability a line does not fit.
const FITS: f64 = 0.01;
