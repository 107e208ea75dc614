use std::collections::BTreeMap;

use measure::record::{Cpu, End, LatencyKind, Point, Status};
use measure::stats;
use serde_json::json;

use super::compare::is_below;
use super::*;

/// Made-up points: name of the way, its rounds, messages that each round lost.
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
        link_model: None,
        iterations: Some(100),
        latency: stats::latency(LatencyKind::OneWay, &[value; 100], &[]),
        kinds: Vec::new(),
        one_way: None,
        throughput: None,
        throughput_total: None,
        ends: vec![end(0), end(1)],
        conditions: Vec::new(),
        calibration: None,
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

/// Nothing may be lost, at any rate.
const STRICT: Conditions = Conditions { allow_loss: false, rate: None };

fn chosen(ways: &[(Way, &[u64], u64)], allow_loss: bool) -> Option<Choice> {
    let conditions = Conditions { allow_loss, ..STRICT };
    choose(&candidates(&points(ways), Goal::Median, |_| true), "coarse", conditions)
}

/// What each step to these ways is said to be, the first being recommended.
fn printed(points: &[Point], ways: &[Way]) -> String {
    let steps =
        ways.iter().map(|way| Step { setting: "service", instead: way.service.clone(), to: Ok(way.clone()) });
    let choice = Choice { way: ways[0].clone(), equal: Vec::new() };
    let all = candidates(points, Goal::Median, |_| true);
    let advice = advise(&all, Goal::Median, &choice, steps.skip(1).collect(), STRICT).unwrap();
    text(&advice, "32 B", "rdmascope one-way send", None)
}

#[test]
fn the_rank_sum_test_is_that_of_the_tables() {
    let below = |n: usize, m: usize, against: usize| {
        // `against` of the pairs are the wrong way round: one of the first is above so many of the second.
        let high: Vec<f64> = (0..m).map(|i| 100.0 + i as f64).collect();
        let mut low: Vec<f64> = (0..n).map(|i| i as f64).collect();
        let mut left = against;
        for value in low.iter_mut().rev() {
            let above = left.min(m);
            *value = 99.5 + above as f64 - f64::from(u8::from(above == 0));
            left -= above;
        }
        is_below(&low, &high)
    };
    // Critical values of U, one-sided at 5 %: 0 for 3 and 3, 1 for 4 and 4, 4 for 5 and 5, 7 for 6 and 6, 27 for 10 and 10.
    for (n, critical) in [(3, 0), (4, 1), (5, 4), (6, 7), (10, 27)] {
        assert!(below(n, n, critical) && !below(n, n, critical + 1), "{n} rounds");
    }
    assert!(!below(2, 2, 0) && !below(2, 3, 0), "too few to tell anything apart");
    // As good as normal: U = 138 for 20 and 20, and 25 and 25 have 227.
    assert!(below(20, 20, 138) && !below(20, 20, 139));
    assert!(below(25, 25, 227) && !below(25, 25, 229));
    assert!(!is_below(&[1.0, 1.0, 1.0], &[1.0, 2.0, 3.0]), "a tie counts for both");
}

#[test]
fn what_is_clearly_least_wins_over_what_is_simpler() {
    let ways = [(way("RC", "event"), &[9000, 9100, 8900][..], 0), (way("UD", "busy"), &[240, 250, 230], 0)];
    let choice = chosen(&ways, false).unwrap();
    assert_eq!(choice, Choice { way: way("UD", "busy"), equal: vec![way("UD", "busy")] });
}

#[test]
fn of_what_noise_cannot_tell_apart_the_simplest_wins() {
    // One round of UC is above one of RC; one percent is no difference although every round agrees.
    for rc in [[250, 260, 244], [242, 242, 242]] {
        let uc = if rc[0] == 250 { [240, 245, 230] } else { [241, 241, 241] };
        let ways = [(way("UC", "busy"), &uc[..], 0), (way("RC", "busy"), &rc[..], 0)];
        let choice = chosen(&ways, false).unwrap();
        assert_eq!(choice.way, way("RC", "busy"), "{rc:?}");
        assert_eq!(choice.equal, [way("UC", "busy"), way("RC", "busy")], "the best stands first");
    }
    // The same rounds apart by more than that are a difference.
    let ways = [(way("UC", "busy"), &[240, 245, 230][..], 0), (way("RC", "busy"), &[250, 260, 249], 0)];
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
    let ways = [(way("UD", "busy"), &[100, 101, 102][..], 2), (way("RC", "busy"), &[200, 201, 202], 0)];
    assert_eq!(chosen(&ways, false).unwrap().way, way("RC", "busy"));
    assert_eq!(chosen(&ways, true).unwrap().way, way("UD", "busy"));
    let text = printed(&points(&ways), &[way("RC", "busy"), way("UD", "busy")]);
    assert!(text.contains("-100    -49.8  better, refused because it lost 6 of 306 messages"), "{text}");
    let text = printed(&points(&ways), &[way("UD", "busy"), way("RC", "busy")]);
    assert!(text.contains("It lost 6 of 306 messages"), "{text}");
    assert_eq!(chosen(&ways[..1], false), None);
}

#[test]
fn what_was_not_measured_is_not_chosen_and_says_why() {
    let mut points =
        points(&[(way("UC", "busy"), &[100, 101, 102], 0), (way("RC", "busy"), &[200, 201, 202], 0)]);
    points[2].status = Status::Failed { error: "nothing arrived\nfor 30 s".to_owned() };
    let all = candidates(&points, Goal::Median, |_| true);
    assert_eq!(
        choose(&all, "coarse", STRICT).unwrap().way,
        way("RC", "busy"),
        "two rounds of three are no evidence"
    );
    let text = printed(&points, &[way("RC", "busy"), way("UC", "busy")]);
    assert!(text.contains("not measured: failed: nothing arrived for 30 s\n"), "{text}");
    points.retain(|point| point.repetition < 2);
    let all = candidates(&points, Goal::Median, |_| true);
    assert_eq!(choose(&all, "coarse", STRICT), None, "two rounds tell nothing apart");
    assert_eq!(choose(&[], "coarse", STRICT), None);
}

#[test]
fn what_another_beats_is_not_equal_to_the_best() {
    // The noisy one has the least median and is no evidence against the slow one, but the steady one is.
    let ways = [
        (way("RC", "event"), &[400, 410, 420][..], 0),
        (way("UC", "busy"), &[200, 205, 210], 0),
        (way("UD", "busy"), &[190, 195, 900], 0),
    ];
    let choice = chosen(&ways, false).unwrap();
    assert_eq!(choice, Choice { way: way("UC", "busy"), equal: vec![way("UD", "busy"), way("UC", "busy")] });
}

#[test]
fn unstable_rounds_are_marked_wherever_their_numbers_stand() {
    let ways = [(way("RC", "busy"), &[200, 201, 202][..], 0), (way("UC", "busy"), &[300, 301, 302], 0)];
    let mut points = points(&ways);
    let both = [way("RC", "busy"), way("UC", "busy")];
    assert!(!printed(&points, &both).contains('!'));
    points[1].unstable = Some("a neighbour".to_owned());
    let text = printed(&points, &both);
    assert!(text.contains("+49.8  worse  !\n") && text.contains(" ! a round of it was unstable"), "{text}");
    assert!(
        text.contains("one-way median: 201 ns (median of 3 rounds of 100 messages, from 200 to 202 ns)"),
        "{text}"
    );
}

#[test]
fn only_rounds_that_both_were_measured_in_are_compared() {
    // The machine was twice as fast in the second experiment, where only one of them was.
    let mut points =
        points(&[(way("RC", "busy"), &[200, 201, 202], 0), (way("UC", "busy"), &[190, 191, 192], 0)]);
    for round in 0..3 {
        let later = Point { experiment: "step-1".to_owned(), ..point(&way("RC", "busy"), round, 100, 0) };
        points.push(later);
    }
    let all = candidates(&points, Goal::Median, |_| true);
    assert_eq!(choose(&all, "coarse", STRICT).unwrap().way, way("UC", "busy"));
    let comparison = compare(&all[0], &all[1]).unwrap();
    assert_eq!((comparison.rounds, comparison.more_ns, comparison.verdict), (3, 10.0, Verdict::Worse));
    assert_eq!(compare(&all[1], &Candidate { rounds: BTreeMap::new(), ..all[0].clone() }), None);
}

#[test]
fn cpu_time_is_that_of_both_ends_and_a_short_tail_is_said() {
    let one = point(&way("RC", "busy"), 0, 240, 0);
    assert_eq!(cpu_ns_per_message(&one), Some(2.0 * 100.0 * 240.0 / 100.0));
    let with_lost = point(&way("UD", "busy"), 0, 240, 300);
    assert_eq!(cpu_ns_per_message(&with_lost), Some(2.0 * 100.0 * 240.0 / 400.0));
    let uncounted = Point { ends: vec![End::default(), End::default()], ..one };
    assert_eq!(cpu_ns_per_message(&uncounted), None);
    let points = points(&[(way("RC", "busy"), &[240, 241, 242], 0)]);
    let said = |goal, rate| {
        let all = candidates(&points, goal, |_| true);
        let choice = choose(&all, "coarse", STRICT).unwrap();
        text(&advise(&all, goal, &choice, Vec::new(), STRICT).unwrap(), "32 B", "x", rate)
    };
    assert!(
        said(Goal::P999, None).contains("The p99.9 is that of 100 messages a round, of which 0 are above it")
    );
    assert!(said(Goal::Cpu, None).contains("Both ends poll all the time"));
    // 100 messages in a millisecond.
    assert!(said(Goal::Median, Some(2e5)).contains("did not keep the rate, and no way"));
    assert!(said(Goal::Median, Some(2e5)).contains("did: 100000 of 200000 messages per second."));
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
    assert!(elaborate.contains("and not so simple:\n    UD send_imm, busy"), "{text}");
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
    let ways = [(way("RC", "event"), &[100, 101, 102][..], 0), (way("RC", "busy"), &[200, 201, 202], 0)];
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
    assert_eq!(chosen_at(Some(1e6)), ways[0].0, "what none keeps is no condition");
    assert_eq!(chosen_at(None), ways[0].0);
    let conditions = Conditions { rate: Some(1e5), ..STRICT };
    let choice = Choice { way: ways[1].0.clone(), equal: Vec::new() };
    let step = Step { setting: "poll", instead: "event".to_owned(), to: Ok(ways[0].0.clone()) };
    let text =
        text(&advise(&all, Goal::Median, &choice, vec![step], conditions).unwrap(), "32 B", "x", Some(1e5));
    assert!(text.contains("better, refused because it kept 20000 of 100000 messages per second"), "{text}");
}
