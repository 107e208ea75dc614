//! The text on LogfP, with the results of LogGP for the same rounds.

use measure::stats::shape::Estimate;

use super::combine::sum;
use super::fans::Fan;
use super::logfp::LogfP;
use super::loggp::LogGp;
use super::rounds::Rounds;
use super::text::{MISS, interval, missed};
use crate::unit;
use measure::text::plain;

/// The text on the rounds of fan-out at one size. LogGP comes from the round trips with the same
/// settings.
pub(super) fn fan(fan: &Fan, rounds: &[Rounds]) -> String {
    let of_way = rounds.iter().filter(|rounds| fan.is_of(&rounds.way));
    let bursts = of_way.filter_map(|rounds| LogGp::of(rounds).ok()).next();
    let mut out =
        format!("{}\nmeasured, rounds of one to n at {}\n\n", plain(&fan.title), unit::size(fan.size));
    let model = LogfP::of(&fan.rounds);
    match &model {
        Ok(model) => out += &parameters(fan, model, bursts.as_ref()),
        Err(unfit) => out += &format!(" LogfP from rounds over n: none, as\n {unfit}\n"),
    }
    if bursts.is_none() {
        out += " LogGP does not apply: it needs bursts over size with the same settings (pattern prtt).\n";
    }
    out.push('\n');
    let half = |n| Some(bursts.as_ref()?.round(n, 0, fan.size)? / 2.0);
    out += &errors(fan, half, |n| Some(model.as_ref().ok()?.half(n)));
    if fan.unstable > 0 {
        out += &format!(" Unstable points, which count like all others: {}.\n", fan.unstable);
    }
    out
}

fn parameters(fan: &Fan, model: &LogfP, bursts: Option<&LogGp>) -> String {
    let mut out =
        " LogfP (after Hoefler, Mehlan, Mietke, Rehm 2006; the form of o(n) is not in the paper)\n \
                   2 fan_half = 2 (L + 2 o_max) + (n-1) o_min + max(0, n-f) g\n"
            .to_owned();
    let mut line = |name: &str, of: Estimate, decimals: usize, unit: &str, what: &str| {
        let ends = interval(of, decimals);
        out += &format!("   {name:<9} {:>9.decimals$} {unit:<3} {ends:<18} {what}\n", of.value);
    };
    line("L+2 o_max", model.single.map(|ns| ns / 2.0), 1, "ns", "half of a round of one to one");
    if let Some(overhead) = bursts.and_then(|bursts| bursts.overhead) {
        line("o_max", overhead, 1, "ns", "o of LogGP, from bursts with pauses");
        line("L", sum(0.0, &[(0.5, model.single), (-2.0, overhead)]), 1, "ns", "the rest of L + 2 o_max");
    }
    line("o_min", model.overhead_min, 1, "ns", "of each further message");
    let most = fan.rounds.last().map_or(0, |(n, _)| *n);
    match model.gap {
        Some((free, gap)) => {
            line("f", free, 1, "", "messages free of g");
            line("g", gap, 1, "ns", "of each message beyond f");
            out
        }
        None if fan.rounds.len() < LEAST_PEERS => {
            out + &format!(" f and g need rounds of {LEAST_PEERS} n; there are {}.\n", fan.rounds.len())
        }
        None => {
            out + &format!(
                " f and g are not determined: up to n = {most}, the line does not become steeper.\n"
            )
        }
    }
}

/// The error of each model at each n, and a list of the large ones.
fn errors(fan: &Fan, loggp: impl Fn(u64) -> Option<f64>, logfp: impl Fn(u64) -> Option<f64>) -> String {
    let mut out = format!(
        " {:>5} {:>14} {:>11} {:>9} {:>11} {:>9}\n",
        "n", "fan_half [us]", "LogGP [us]", "error [%]", "LogfP [us]", "error [%]"
    );
    let mut misses = String::new();
    for (n, measured) in &fan.rounds {
        out += &format!(" {n:>5} {:>14.3}", measured.value / 1e3);
        for (name, half) in [("LogGP", loggp(*n)), ("LogfP", logfp(*n))] {
            let Some(half) = half else {
                out += &format!(" {:>11} {:>9}", "-", "-");
                continue;
            };
            let error = 100.0 * (half / measured.value - 1.0);
            out += &format!(" {:>11.3} {error:>+9.1}", half / 1e3);
            if error.abs() > MISS {
                misses += &format!("   {name} n={n}: {error:+.1} %\n");
            }
        }
        out.push('\n');
    }
    out + &missed("round", &misses)
}

/// Rounds of fewer n do not determine four parameters with a useful interval.
const LEAST_PEERS: usize = 6;
