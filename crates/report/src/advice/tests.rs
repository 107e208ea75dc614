use std::collections::BTreeMap;

use measure::quantity::cpu_ns_per_message;
use measure::record::{Cpu, End, LatencyKind, Point, Status};
use measure::stats;
use serde_json::json;

use super::compare::is_below;
use super::*;

/// Made-up points, from configurations with their rounds and the messages that each round lost.
fn points(ways: &[(Way, &[u64], u64)]) -> Vec<Point> {
    let rounds = ways.iter().map(|(_, rounds, _)| rounds.len()).max().unwrap_or(0);
    let mut points = Vec::new();
    for round in 0..rounds {
        for (way, values, lost) in ways {
            if let Some(value) = values.get(round) {
                points.push(point(way, round as u32, *value, *lost));
            }
        }
    }
    points
}

fn point(way: &Way, round: u32, value: u64, lost: u64) -> Point {
    let axes = [
        ("service", json!(way.service)),
        ("operation", json!(way.operation)),
        ("inline", json!(way.inline)),
        ("signal_interval", json!(way.signal_interval)),
        ("poll", json!(way.poll)),
        ("buffers", json!(way.buffers)),
    ];
    let cpu = Cpu { wall_ns: 1_000_000, user_ns: 100 * value, system_ns: 0, ..Cpu::default() };
    let end = |rank| End { rank, cpu: Some(cpu), ..End::default() };
    Point {
        id: 0,
        experiment: "coarse".to_owned(),
        pattern: "one-way".to_owned(),
        axes: axes.map(|(name, value)| (name.to_owned(), value)).into(),
        status: Status::Measured,
        repetition: round,
        launch: None,
        fleet: None,
        link_model: None,
        iterations: Some(100),
        latency: stats::latency(LatencyKind::OneWay, &[value; 100], &[]),
        kinds: Vec::new(),
        one_way: None,
        pipeline: None,
        reported: None,
        cost: None,
        own: BTreeMap::new(),
        throughput: None,
        fairness: None,
        throughput_total: None,
        ends: vec![end(0), end(1)],
        conditions: Vec::new(),
        calibration: None,
        oversubscribed: None,
        cut: false,
        unstable: None,
        counters: BTreeMap::from([("messages_lost".to_owned(), lost)]),
        wall_ns: 1,
    }
}

fn way(service: &str, poll: &str) -> Way {
    Way {
        service: service.to_owned(),
        operation: "send_imm".to_owned(),
        inline: false,
        signal_interval: 1,
        poll: poll.to_owned(),
        buffers: 16,
    }
}

/// No message may be lost; any rate is allowed.
const STRICT: Conditions = Conditions { allow_loss: false, rate: None };

fn chosen(ways: &[(Way, &[u64], u64)], allow_loss: bool) -> Option<Choice> {
    let conditions = Conditions { allow_loss, ..STRICT };
    choose(&candidates(&points(ways), Goal::Median, |_| true), "coarse", conditions)
}

/// The printed comparison of these configurations with the first, which is recommended.
fn printed(points: &[Point], ways: &[Way]) -> String {
    let steps =
        ways.iter().map(|way| Step { setting: "service", instead: way.service.clone(), to: Ok(way.clone()) });
    let choice = Choice { way: ways[0].clone(), equal: Vec::new() };
    let all = candidates(points, Goal::Median, |_| true);
    let advice = advise(&all, Goal::Median, &choice, steps.skip(1).collect(), STRICT).unwrap();
    unfolded(&text(&advice, "32 B", "rdmascope one-way send", None))
}

/// The lines of a text, with folded lines joined again: their rest begins below the start.
fn unfolded(text: &str) -> String {
    let is_rest = |line: &str| {
        [4, 22, 27].iter().any(|indent| {
            line.len() > *indent && line[..*indent].trim().is_empty() && !line[*indent..].starts_with(' ')
        })
    };
    let is_way = |line: &str| line.ends_with("buffers");
    text.lines().fold(String::new(), |out, line| match is_rest(line) && !is_way(line) {
        true => format!("{} {}\n", out.trim_end(), line.trim_start()),
        false => out + line + "\n",
    })
}

#[test]
fn the_signed_rank_test_is_that_of_the_tables() {
    let below = |n: u32, against: u32| {
        // Ranks 1 to n by the ratio. Those against the hypothesis add up to this sum, with the
        // largest that fit first.
        let mut left = against;
        let mut high = vec![100.0; n as usize];
        for rank in (1..=n).rev() {
            let is_against = rank <= left;
            left -= if is_against { rank } else { 0 };
            high[rank as usize - 1] += f64::from(rank) * if is_against { -1e-6 } else { 1e-6 };
        }
        is_below(&vec![100.0; n as usize], &high)
    };
    // Critical values, one-sided at 5 %.
    for (n, critical) in [(5, 0), (6, 2), (7, 3), (8, 5), (10, 10), (20, 60), (30, 151)] {
        assert!(below(n, critical) && !below(n, critical + 1), "{n} rounds");
    }
    assert!(!below(4, 0), "too few to distinguish anything");
    assert!(!is_below(&[], &[]));
    assert!(!is_below(&[1.0; 5], &[1.0, 2.0, 2.0, 2.0, 2.0]), "a round without a difference does not count");
    // Rounds differ more from each other than from their pairs: an unpaired test would see no
    // difference.
    assert!(is_below(&[100.0, 200.0, 300.0, 400.0, 500.0], &[110.0, 220.0, 330.0, 440.0, 550.0]));
    assert!(!is_below(&[110.0, 220.0, 330.0, 440.0, 550.0], &[100.0, 200.0, 300.0, 400.0, 500.0]));
    // Equal ratios share a rank: one of six against is 3.5 of 21, as likely as 7 of 64.
    assert!(!is_below(&[1.0, 1.0, 1.0, 1.0, 1.0, 2.0], &[2.0, 2.0, 2.0, 2.0, 2.0, 1.0]));
}

#[test]
fn what_is_clearly_least_wins_over_what_is_simpler() {
    let ways = [
        (way("RC", "event"), &[9000, 9100, 8900, 9000, 9000][..], 0),
        (way("UD", "busy"), &[240, 250, 230, 240, 240], 0),
    ];
    let choice = chosen(&ways, false).unwrap();
    assert_eq!(choice, Choice { way: way("UD", "busy"), equal: vec![way("UD", "busy")] });
}

#[test]
fn of_what_noise_cannot_tell_apart_the_simplest_wins() {
    // One round of UC is above one of RC; one percent is no difference although all rounds agree.
    for rc in [[250, 260, 239, 250, 250], [242; 5]] {
        let uc = if rc[0] == 250 { [240, 245, 241, 240, 240] } else { [241; 5] };
        let ways = [(way("UC", "busy"), &uc[..], 0), (way("RC", "busy"), &rc[..], 0)];
        let choice = chosen(&ways, false).unwrap();
        assert_eq!(choice.way, way("RC", "busy"), "{rc:?}");
        assert_eq!(choice.equal, [way("UC", "busy"), way("RC", "busy")], "the best stands first");
    }
    // The same rounds with a larger difference differ.
    let ways = [
        (way("UC", "busy"), &[240, 245, 241, 240, 240][..], 0),
        (way("RC", "busy"), &[250, 260, 249, 250, 250], 0),
    ];
    assert_eq!(chosen(&ways, false).unwrap().way, way("UC", "busy"));
}

#[test]
fn the_order_of_simplicity_is_the_one_that_is_stated() {
    let plain = way("RC", "event");
    let mut ways = vec![
        plain.clone(),
        Way { buffers: 4096, ..plain.clone() },
        way("RC", "event_repoll"),
        way("RC", "hybrid"),
        way("RC", "busy"),
        Way { signal_interval: 64, ..plain.clone() },
        Way { inline: true, ..plain.clone() },
        Way { operation: "write_imm".to_owned(), ..plain },
        way("UC", "event"),
        way("UD", "event"),
    ];
    let expected = ways.clone();
    ways.reverse();
    ways.sort_by_key(Way::complexity);
    assert_eq!(ways, expected);
}

#[test]
fn what_loses_messages_wins_only_where_that_is_allowed() {
    let ways = [
        (way("UD", "busy"), &[100, 101, 102, 101, 101][..], 2),
        (way("RC", "busy"), &[200, 201, 202, 201, 201], 0),
    ];
    assert_eq!(chosen(&ways, false).unwrap().way, way("RC", "busy"));
    assert_eq!(chosen(&ways, true).unwrap().way, way("UD", "busy"));
    let text = printed(&points(&ways), &[way("RC", "busy"), way("UD", "busy")]);
    assert!(
        text.contains("-100 [-100, -100]    -49.8  better, refused because it lost 10 of 510 messages"),
        "{text}"
    );
    let text = printed(&points(&ways), &[way("UD", "busy"), way("RC", "busy")]);
    assert!(text.contains("It lost 10 of 510 messages"), "{text}");
    assert_eq!(chosen(&ways[..1], false), None);
}

#[test]
fn what_was_not_measured_is_not_chosen_and_says_why() {
    let mut points = points(&[
        (way("UC", "busy"), &[100, 101, 102, 101, 101], 0),
        (way("RC", "busy"), &[200, 201, 202, 201, 201], 0),
    ]);
    points[2].status = Status::Failed { error: "nothing arrived\nfor 30 s".to_owned() };
    let all = candidates(&points, Goal::Median, |_| true);
    assert_eq!(
        choose(&all, "coarse", STRICT).unwrap().way,
        way("RC", "busy"),
        "four rounds of five are not enough"
    );
    let text = printed(&points, &[way("RC", "busy"), way("UC", "busy")]);
    assert!(text.contains("not measured: failed: nothing arrived for 30 s\n"), "{text}");
    points.retain(|point| point.repetition < 4);
    let all = candidates(&points, Goal::Median, |_| true);
    assert_eq!(choose(&all, "coarse", STRICT), None, "four rounds are too few");
    assert_eq!(choose(&[], "coarse", STRICT), None);
}

#[test]
fn what_another_beats_is_not_equal_to_the_best() {
    // The noisy one has the smallest median but does not show that the slow one is worse; the
    // steady one does.
    let ways = [
        (way("RC", "event"), &[400, 410, 420, 410, 410][..], 0),
        (way("UC", "busy"), &[200, 205, 210, 205, 205], 0),
        (way("UD", "busy"), &[190, 195, 900, 195, 195], 0),
    ];
    let choice = chosen(&ways, false).unwrap();
    assert_eq!(choice, Choice { way: way("UC", "busy"), equal: vec![way("UD", "busy"), way("UC", "busy")] });
}

#[test]
fn unstable_rounds_are_marked_wherever_their_numbers_stand() {
    let ways = [
        (way("RC", "busy"), &[200, 201, 202, 201, 201][..], 0),
        (way("UC", "busy"), &[300, 301, 302, 301, 301], 0),
    ];
    let mut points = points(&ways);
    let both = [way("RC", "busy"), way("UC", "busy")];
    assert!(!printed(&points, &both).contains('!'));
    points[1].unstable = Some("a neighbour".to_owned());
    let text = printed(&points, &both);
    assert!(
        text.contains("+49.8  worse, not decided  !\n") && text.contains(" ! a round was unstable"),
        "{text}"
    );
    points[1].unstable = None;
    points[0].unstable = Some("a neighbour".to_owned());
    let of_recommended = printed(&points, &both);
    assert!(of_recommended.contains("+49.8  worse, not decided  !\n"), "{of_recommended}");
    assert!(
        text.contains("one-way median: 201 ns (median of 5 rounds of 100 messages, from 200 to 202 ns)"),
        "{text}"
    );
}

#[test]
fn only_rounds_that_both_were_measured_in_are_compared() {
    // The machine was twice as fast in the second experiment, which measured only one of them.
    let mut points = points(&[
        (way("RC", "busy"), &[200, 201, 202, 201, 201], 0),
        (way("UC", "busy"), &[190, 191, 192, 191, 191], 0),
    ]);
    for round in 0..5 {
        let later = Point { experiment: "step-1".to_owned(), ..point(&way("RC", "busy"), round, 100, 0) };
        points.push(later);
    }
    let all = candidates(&points, Goal::Median, |_| true);
    assert_eq!(choose(&all, "coarse", STRICT).unwrap().way, way("UC", "busy"));
    let comparison = compare(&all[0], &all[1]).unwrap();
    assert_eq!((comparison.rounds, comparison.more_ns, comparison.verdict), (5, 10.0, Verdict::Worse));
    assert_eq!(comparison.interval_ns, Some([10.0, 10.0]));
    assert_eq!(compare(&all[1], &Candidate { rounds: BTreeMap::new(), ..all[0].clone() }), None);
}

#[test]
fn a_difference_below_the_step_of_the_clock_is_none() {
    let compared = |ours: &[u64], theirs: &[u64]| {
        let all = candidates(
            &points(&[(way("RC", "busy"), ours, 0), (way("UC", "busy"), theirs, 0)]),
            Goal::Median,
            |_| true,
        );
        compare(&all[0], &all[1]).unwrap()
    };
    // A clock of 10 ns: half of the rounds are a step apart, so the difference is half a step.
    let half = compared(&[100, 110, 100, 110, 100, 110, 110, 100], &[100, 100, 100, 100, 100, 100, 100, 100]);
    assert_eq!((half.more_ns, half.verdict), (5.0, Verdict::Equal), "{half:?}");
    let whole = compared(&[110, 120, 110, 120, 110], &[100, 110, 100, 110, 100]);
    assert_eq!((whole.more_ns, whole.verdict), (10.0, Verdict::Worse), "{whole:?}");
    // The interval of eight rounds leaves out the five outermost means on each side (P = 0.0391).
    let spread = compared(&[101, 102, 103, 104, 105, 106, 107, 108], &[100; 8]);
    assert_eq!((spread.more_ns, spread.interval_ns), (4.5, Some([2.5, 6.5])));
    let few = compared(&[110, 111, 112, 113], &[100, 101, 102, 103]);
    assert_eq!((few.interval_ns, few.verdict), (None, Verdict::Equal));
}

#[test]
fn cpu_time_is_that_of_both_ends_and_a_short_tail_is_said() {
    let one = point(&way("RC", "busy"), 0, 240, 0);
    assert_eq!(cpu_ns_per_message(&one), Some(2.0 * 100.0 * 240.0 / 100.0));
    let with_lost = point(&way("UD", "busy"), 0, 240, 300);
    assert_eq!(cpu_ns_per_message(&with_lost), Some(2.0 * 100.0 * 240.0 / 400.0));
    let uncounted = Point { ends: vec![End::default(), End::default()], ..one };
    assert_eq!(cpu_ns_per_message(&uncounted), None);
    let points = points(&[(way("RC", "busy"), &[240, 241, 242, 241, 241], 0)]);
    let said = |goal, rate| {
        let all = candidates(&points, goal, |_| true);
        let choice = choose(&all, "coarse", STRICT).unwrap();
        unfolded(&text(&advise(&all, goal, &choice, Vec::new(), STRICT).unwrap(), "32 B", "x", rate))
    };
    assert!(said(Goal::P999, None).contains("A round has 100 messages, of which 0 are above its p99.9"));
    assert!(said(Goal::Cpu, None).contains("Both ranks poll all the time"));
    // 100 messages in a millisecond.
    assert!(said(Goal::Median, Some(2e5)).contains("did not keep the rate, nor did any"));
    assert!(said(Goal::Median, Some(2e5)).contains("recommended: 100000 of 200000 messages per second."));
    assert!(
        said(Goal::Median, Some(f64::INFINITY)).contains("The sender posted 100000 messages per second.")
    );
    assert!(!said(Goal::Median, Some(1e5)).contains("keep the rate"));
}

#[test]
fn what_is_equal_and_simpler_is_not_said_to_be_elaborate() {
    let ways = [(way("UC", "busy"), &[200, 201, 202][..], 0), (way("RC", "busy"), &[200, 201, 202], 0)];
    let all = candidates(&points(&ways), Goal::Median, |_| true);
    let equal = vec![way("RC", "busy"), way("UC", "busy"), way("UD", "busy")];
    let choice = Choice { way: way("UC", "busy"), equal };
    let text = text(&advise(&all, Goal::Median, &choice, Vec::new(), STRICT).unwrap(), "32 B", "x", None);
    let (elaborate, simpler) = text.split_once("and simpler, but its steps were not measured:\n").unwrap();
    assert!(elaborate.contains("but less simple:\n    UD send_imm, busy"), "{text}");
    assert!(simpler.starts_with("    RC send_imm, busy") && !elaborate.contains("    RC send_imm"), "{text}");
}

#[test]
fn who_copies_a_recipe_for_events_polls_after_the_last_request_for_one() {
    for poll in ["event", "event_repoll"] {
        let points = points(&[(way("RC", poll), &[200, 201, 202], 0)]);
        let text = printed(&points, &[way("RC", poll)]);
        let (_, after) = text.split_once("ibv_req_notify_cq").unwrap_or_else(|| panic!("{text}"));
        assert!(after.lines().next().unwrap().contains("ibv_poll_cq"), "{text}");
    }
}

#[test]
fn what_keeps_the_rate_wins_over_what_is_fast_at_a_fifth_of_it() {
    let ways = [
        (way("RC", "event"), &[100, 101, 102, 101, 101][..], 0),
        (way("RC", "busy"), &[200, 201, 202, 201, 201], 0),
    ];
    let mut points = points(&ways);
    for point in points.iter_mut().filter(|point| Way::of(&point.axes) == Some(ways[0].0.clone())) {
        // 100 messages in 5 ms.
        point.ends[0].cpu.as_mut().unwrap().wall_ns *= 5;
    }
    let all = candidates(&points, Goal::Median, |_| true);
    let chosen_at = |rate| {
        let conditions = Conditions { rate, ..STRICT }.that_can_be_met(&all);
        choose(&all, "coarse", conditions).unwrap().way
    };
    assert_eq!(chosen_at(Some(1e5)), ways[1].0);
    assert_eq!(chosen_at(Some(1.1e5)), ways[1].0, "nine tenths are enough");
    assert_eq!(chosen_at(Some(1e6)), ways[0].0, "a rate that none keeps is no condition");
    assert_eq!(chosen_at(None), ways[0].0);
    let conditions = Conditions { rate: Some(1e5), ..STRICT };
    let choice = Choice { way: ways[1].0.clone(), equal: Vec::new() };
    let step = Step { setting: "poll", instead: "event".to_owned(), to: Ok(ways[0].0.clone()) };
    let advice = advise(&all, Goal::Median, &choice, vec![step], conditions).unwrap();
    let text = unfolded(&text(&advice, "32 B", "x", Some(1e5)));
    assert!(text.contains("better, refused because it kept 20000 of 100000 messages per second"), "{text}");
}

#[test]
fn what_is_worse_than_one_of_many_others_by_accident_is_equal() {
    // UC is below RC in every round by two percent, but is neither the best nor the steadiest.
    let ways = [
        (way("RC", "busy"), &[204, 306, 206, 205, 204][..], 0),
        (way("UC", "busy"), &[200, 300, 202, 201, 200], 0),
        (way("UD", "busy"), &[198, 220, 215, 198, 199], 0),
    ];
    let choice = chosen(&ways, false).unwrap();
    assert_eq!(choice.way, way("RC", "busy"));
    let all = candidates(&points(&ways), Goal::Median, |_| true);
    assert_eq!(compare(&all[0], &all[1]).unwrap().verdict, Verdict::Worse);
}

#[test]
fn a_lost_message_is_above_every_tail() {
    let value = |lost, count: usize| {
        let mut point = point(&way("UD", "busy"), 0, 240, lost);
        let samples: Vec<u64> = (1..=count as u64).collect();
        point.latency = stats::latency(LatencyKind::OneWay, &samples, &[]);
        Goal::P999.value(&point)
    };
    assert_eq!(value(0, 10_000), Some(9990.0));
    assert_eq!(value(1, 10_000), Some(10_000.0));
    assert_eq!((value(1, 999), value(1, 998)), (Some(999.0), None));
    let ways = [(way("UD", "busy"), &[100, 101, 102, 101, 101][..], 2), (way("RC", "busy"), &[200; 5], 0)];
    let all = candidates(&points(&ways), Goal::P999, |_| true);
    let conditions = Conditions { allow_loss: true, ..STRICT };
    assert_eq!(choose(&all, "coarse", conditions).unwrap().way, way("RC", "busy"));
    assert_eq!(all[0].not_measured.as_deref(), Some("its p99.9 is infinite: it lost 2 messages in a round"));
}

#[test]
fn stable_rounds_decide_where_there_are_five_of_them() {
    // The best of RC was measured in an unstable round, and UC looked good in another.
    let ways = [
        (way("RC", "busy"), &[200, 90, 202, 201, 201, 203][..], 0),
        (way("UC", "busy"), &[150, 151, 300, 151, 151, 152], 0),
    ];
    let both = [way("RC", "busy"), way("UC", "busy")];
    let mut points = points(&ways);
    let all = |points: &[Point]| candidates(points, Goal::Median, |_| true);
    assert_eq!(lacking(&all(&points), "coarse", 5), 0);
    // Without rounds 1 (of RC) and 2 (of UC), four are left.
    points[2].unstable = Some("a neighbour".to_owned());
    points[5].unstable = Some("a neighbour".to_owned());
    let found = all(&points);
    assert_eq!((lacking(&found, "coarse", 5), lacking(&found, "coarse", 6)), (1, 2));
    assert_eq!(lacking(&found, "steps-1", 5), 0, "no point of it was measured");
    let mut failed = points.clone();
    let error = "nothing arrived".to_owned();
    failed.push(Point { status: Status::Failed { error }, ..point(&both[1], 6, 150, 0) });
    assert_eq!(lacking(&all(&failed), "coarse", 5), 0, "RC has five, and UC is no longer compared");
    let comparison = compare(&found[0], &found[1]).unwrap();
    assert_eq!((comparison.rounds, comparison.unstable), (6, 2), "there are no five others");
    // Each has five stable rounds all the same.
    assert_eq!(found.iter().map(|one| one.median(None).unwrap()).collect::<Vec<_>>(), [201.0, 151.0]);
    let text = printed(&points, &both);
    assert!(text.contains("median of 5 rounds of 100 messages, from 200 to 203 ns"), "{text}");
    assert!(text.contains(", not decided  !"), "{text}");
    // The seventh round is the fifth in which both were stable.
    points.extend([point(&both[0], 6, 204, 0), point(&both[1], 6, 150, 0)]);
    let found = all(&points);
    assert_eq!(lacking(&found, "coarse", 5), 0);
    let comparison = compare(&found[0], &found[1]).unwrap();
    assert_eq!((comparison.rounds, comparison.unstable, comparison.verdict), (5, 0, Verdict::Worse));
    assert_eq!(choose(&found, "coarse", STRICT).unwrap().way, both[1]);
    assert!(!printed(&points, &both).contains('!'));
}

#[test]
fn rounds_that_were_measured_again_are_counted_in_print() {
    let points = points(&[(way("RC", "busy"), &[200; 5], 0)]);
    let said = |repeated| {
        let all = candidates(&points, Goal::Median, |_| true);
        let choice = choose(&all, "coarse", STRICT).unwrap();
        let advice = advise(&all, Goal::Median, &choice, Vec::new(), STRICT).unwrap();
        text(&Advice { repeated, ..advice }, "32 B", "x", None)
    };
    assert!(!said(0).contains("measured again"));
    assert!(said(1).contains("  1 round was measured again because the machine was unstable.\n"));
    assert!(said(3).contains("  3 rounds were measured again because the machine was unstable.\n"));
}

#[test]
fn lines_fit_a_terminal_of_80_columns() {
    let ways = [
        (way("RC", "event_repoll"), &[200_000_000; 5][..], 0),
        (way("UC", "hybrid"), &[300_000_000; 5], 0),
        (way("UC", "busy"), &[100; 5], 0),
        (way("UD", "busy"), &[100; 5], 2),
    ];
    let mut points = points(&ways);
    points[0].unstable = Some("a neighbour".to_owned());
    let error = "nothing arrived of what was sent in all of the 30 s that it had".to_owned();
    points[2].status = Status::Failed { error };
    let step =
        |way: &Way| Step { setting: "signalled", instead: "event_repoll".to_owned(), to: Ok(way.clone()) };
    let steps = ways[1..].iter().map(|(way, ..)| step(way)).collect();
    let all = candidates(&points, Goal::P999, |_| true);
    let choice = Choice { way: ways[0].0.clone(), equal: Vec::new() };
    let advice = advise(&all, Goal::P999, &choice, steps, STRICT).unwrap();
    let subject = "32 B, 1000000000 messages per second, as \u{fc}ber-fast as can be";
    let printed = text(&Advice { repeated: 2, ..advice }, subject, "x", Some(1e9));
    for line in printed.lines() {
        assert!(line.chars().count() <= 80, "{line}\nin\n{printed}");
    }
    let words = printed.split_whitespace().collect::<Vec<_>>().join(" ");
    for part in [
        "as can be, least one-way p99.9:",
        "and ibv_poll_cq once more before sleeping",
        "of which 0 are above its p99.9; with -n 10000 there are ten.",
        "may be recommended: 100000 of 1000000000 messages per second.",
        "+100000000 [+100000000, +100000000] +50.0 worse, not decided !",
        "not measured: failed: nothing arrived of what was sent",
        "not measured: its p99.9 is infinite: it lost 2 messages in a round",
        "the record (--out) has the reason",
    ] {
        assert!(words.contains(part), "{part}: {printed}");
    }
}
