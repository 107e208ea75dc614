//! The text of an advice.

use measure::text::plain;

use super::candidate::{Candidate, RATE_KEPT};
use super::choice::{Advice, Outcome, Step};
use super::compare::{Comparison, Verdict};
use super::counted::Counted;
use super::goal::{Goal, TAIL_MESSAGES};
use super::way::Way;

/// Prints the recommended configuration as a command and in the words of verbs, the evidence, and
/// the cost of each step away. `subject` is what is sent, `command` the command that measures the
/// configuration, `rate_asked` the posts per second that were asked for, infinite for no limit.
pub fn text(advice: &Advice, subject: &str, command: &str, rate_asked: Option<f64>) -> String {
    let title = folded(&format!("Recommended for {subject}, least {}:", advice.goal.name()), 2);
    // The command stays on one line, to be copied.
    let mut out = format!("\n{title}\n  {command}\n\n");
    for (name, words) in verbs(&advice.recommended.way) {
        out += &folded(&format!("  {name:<18}  {words}"), 22);
    }
    out += &evidence(advice, rate_asked);
    out += &steps(advice);
    out
}

/// Describes a configuration in the words of libibverbs.
fn verbs(way: &Way) -> [(&'static str, String); 6] {
    let inline = if way.inline {
        "IBV_SEND_INLINE, and max_inline_data of at least the size"
    } else {
        "no IBV_SEND_INLINE"
    };
    let signalled = match way.signal_interval {
        1 => "IBV_SEND_SIGNALED with every send".to_owned(),
        interval => format!("IBV_SEND_SIGNALED with every {interval}th send, sq_sig_all = 0"),
    };
    let operation =
        if way.operation == "write_imm" { "IBV_WR_RDMA_WRITE_WITH_IMM" } else { "IBV_WR_SEND_WITH_IMM" };
    let completions = match way.poll.as_str() {
        "event" => "ibv_get_cq_event, then ibv_req_notify_cq before ibv_poll_cq until empty",
        // Without the last poll, a completion just before the request wakes no thread.
        "event_repoll" => {
            "ibv_get_cq_event, then ibv_poll_cq until empty, ibv_req_notify_cq, and ibv_poll_cq once more before sleeping"
        }
        "hybrid" => "ibv_poll_cq without a pause for receives, ibv_get_cq_event for sends",
        _ => "ibv_poll_cq without a pause",
    };
    [
        ("queue pair", format!("IBV_QPT_{}", way.service)),
        ("operation", operation.to_owned()),
        ("inline", inline.to_owned()),
        ("signalled", signalled),
        ("completions", completions.to_owned()),
        ("buffers", format!("{} at each rank, used in turn", way.buffers)),
    ]
}

fn evidence(advice: &Advice, rate_asked: Option<f64>) -> String {
    let Advice { goal, recommended, equal, .. } = advice;
    let Counted { rounds, unstable } = recommended.counted(None);
    let values = || rounds.iter().copied();
    let least = values().fold(f64::INFINITY, f64::min);
    let largest = values().fold(0.0, f64::max);
    let value = recommended.median(None).unwrap_or_default();
    let value = format!(
        "  {}: {value:.0} ns{} (median of {} rounds of {} messages, from {least:.0} to {largest:.0} ns)",
        goal.name(),
        mark(unstable),
        rounds.len(),
        recommended.messages,
    );
    let mut out = "\n".to_owned() + &folded(&value, 4);
    for note in notes(advice, rate_asked) {
        out += &folded(&format!("  {note}"), 4);
    }
    let is_simpler = |way: &&Way| way.complexity() < recommended.way.complexity();
    let (simpler, others): (Vec<&Way>, Vec<&Way>) = equal.iter().partition(is_simpler);
    for (about, ways) in
        [("but less simple", others), ("and simpler, but its steps were not measured", simpler)]
    {
        if !ways.is_empty() {
            out += &format!("  Equal within the error, {about}:\n");
            ways.iter().for_each(|way| out += &format!("    {way}\n"));
        }
    }
    out
}

/// What limits the numbers.
fn notes(advice: &Advice, rate_asked: Option<f64>) -> Vec<String> {
    let Candidate { way, messages, rate, lost, posted, .. } = &advice.recommended;
    let mut notes = Vec::new();
    match advice.repeated {
        0 => {}
        1 => notes.push("1 round was measured again because the machine was unstable.".to_owned()),
        rounds => {
            notes.push(format!("{rounds} rounds were measured again because the machine was unstable."));
        }
    }
    if advice.goal == Goal::P999 && *messages < TAIL_MESSAGES {
        let above = messages / 1000;
        notes.push(format!(
            "A round has {messages} messages, of which {above} are above its p99.9; with -n {TAIL_MESSAGES} there are ten."
        ));
    }
    let polls = way.poll == "busy" || way.poll == "hybrid";
    if advice.goal == Goal::Cpu && polls {
        let ends = if way.poll == "busy" { "Both ranks poll" } else { "The receiver polls" };
        notes.push(format!("{ends} all the time: the CPU time of a message is the time between messages."));
    }
    match rate_asked.zip(*rate) {
        Some((asked, kept)) if asked.is_infinite() => {
            notes.push(format!("The sender posted {kept:.0} messages per second."));
        }
        Some((asked, kept)) if kept < RATE_KEPT * asked => notes.push(format!(
            "The sender did not keep the rate, nor did any configuration that may be recommended: {kept:.0} of {asked:.0} \
             messages per second."
        )),
        _ => {}
    }
    if *lost > 0 {
        notes.push(format!("It lost {lost} of {posted} messages; only messages that arrived count."));
    }
    notes
}

/// The table of the steps.
fn steps(advice: &Advice) -> String {
    let mut out = format!(
        "\nOne step away: the difference in the same rounds, with its interval\n  {:<9}  {:<12}  \
         {:>18}  {:>7}  verdict\n",
        "setting", "instead", "more[ns]", "[%]"
    );
    for (Step { setting, instead, .. }, outcome) in &advice.steps {
        let known = match outcome {
            Outcome::NotMeasured(reason) => format!("not measured: {}", brief(reason)),
            Outcome::Compared { comparison, candidate, refused } => {
                row(comparison, candidate, refused.as_deref())
            }
        };
        out += &folded(&format!("  {setting:<9}  {instead:<12}  {known}"), 27);
    }
    let is_marked = |outcome: &Outcome| matches!(outcome, Outcome::Compared { comparison, .. } if comparison.unstable > 0);
    let marked = advice.steps.iter().any(|(_, outcome)| is_marked(outcome));
    if marked || advice.recommended.counted(None).unstable > 0 {
        let about = " ! a round was unstable, so the number and its verdict are uncertain: the record (--out) has the reason";
        out += &format!("\n{}", folded(about, 3));
    }
    out
}

/// Shortens a reason to the room of a row.
fn brief(reason: &str) -> String {
    const CHARACTERS: usize = 100;
    let reason = plain(reason);
    match reason.char_indices().nth(CHARACTERS) {
        Some((end, _)) => format!("{} ...", reason[..end].trim_end()),
        None => reason,
    }
}

fn row(comparison: &Comparison, candidate: &Candidate, refused: Option<&str>) -> String {
    let Comparison { more_ns, interval_ns, more_share, verdict, unstable, .. } = comparison;
    let verdict = match (verdict, refused) {
        (Verdict::Worse, _) => "worse".to_owned(),
        (Verdict::Equal, _) => "equal".to_owned(),
        (Verdict::Better, None) => "better".to_owned(),
        (Verdict::Better, Some(why)) => format!("better, {why}"),
    };
    let lost = match candidate.lost {
        lost if lost > 0 && refused.is_none() => format!(", lost {lost} of {}", candidate.posted),
        _ => String::new(),
    };
    let undecided = if *unstable > 0 { ", not decided" } else { "" };
    let percent = 100.0 * more_share;
    let interval = interval_ns.map(|[least, most]| format!(" [{least:+.0}, {most:+.0}]")).unwrap_or_default();
    let more = format!("{more_ns:+.0}{interval}");
    let numbers = format!("{more:>18}  {percent:>+7.1}");
    format!("{numbers}  {verdict}{lost}{undecided}{}", mark(*unstable))
}

/// The mark of unstable numbers; `unstable` is the number of their unstable rounds.
fn mark(unstable: usize) -> &'static str {
    if unstable > 0 { "  !" } else { "" }
}

/// Characters of a line, which every terminal has.
const WIDTH: usize = 80;

/// Breaks a line that is too long between words and indents the rest.
fn folded(line: &str, indent: usize) -> String {
    let mut out = String::new();
    let mut rest = line;
    let mut begin = line.len() - line.trim_start().len();
    let mut room = WIDTH;
    while let Some((limit, last)) = rest.char_indices().nth(room) {
        let limit = limit + last.len_utf8();
        // A word that is longer than a line stays whole.
        let blank = rest[begin..limit].rfind(' ').or_else(|| rest[begin..].find(' ')).map(|at| begin + at);
        let Some(at) = blank else { break };
        out += &format!("{}\n{:indent$}", rest[..at].trim_end(), "");
        rest = rest[at..].trim_start();
        (begin, room) = (0, WIDTH - indent);
    }
    out + rest + "\n"
}
