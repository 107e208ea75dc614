use measure::record::{Point, Run, Status};
use serde_json::{Value, json};

use super::*;

/// A run that started on a day (months have 28), with values below its keys.
fn run(day: u32, set: &[(&str, Value)]) -> Run {
    let mut run = json!({
        "schema_version": 1, "program": {"name": "rdmascope", "version": "0.2.0"}, "command": [],
        "started": format!("2026-{:02}-{:02}T00:00:00Z", 1 + day / 28, 1 + day % 28), "title": "t", "points_planned": 1,
        "plan": {"experiments": [{"name": "e", "pattern": "p", "iterations": 100}]},
        "devices": [{"rank": 0, "name": "d0", "provider": "p", "attributes": {"firmware": "1"}}],
        "environments": [{"rank": 0, "hostname": "h", "facts": {
            "cpu": {"model": "M", "count": "2", "mhz": day.to_string()}, "kernel": {"release": "6.1"},
        }}],
    });
    for (path, value) in set {
        *run.pointer_mut(path).unwrap() = value.clone();
    }
    serde_json::from_value(run).unwrap()
}

/// A point with a median in ns.
fn point(repetition: u32, axes: Value, p50_ns: u64) -> Point {
    let value = json!({
        "id": repetition, "experiment": "e", "pattern": "p", "status": "measured", "repetition": repetition, "wall_ns": 1,
        "axes": axes,
        "latency": {
            "kind": "rtt_half", "count": 3, "min_ns": 1, "p10_ns": 1, "p50_ns": p50_ns, "p90_ns": p50_ns, "p99_ns": p50_ns,
            "p999_ns": p50_ns, "max_ns": p50_ns, "mean_ns": 1.0, "mavericks": {"rule": "> 2 x mean", "count": 0},
        },
    });
    serde_json::from_value(value).unwrap()
}

/// A side of a single run, with eight repetitions around a latency for each of some sizes.
fn side(day: u32, set: &[(&str, Value)], sizes: &[u64], ns: u64) -> (Run, Vec<Point>) {
    let repetitions = (0..8_u32).flat_map(|at| sizes.iter().map(move |size| (at, size)));
    let points = repetitions.map(|(at, size)| point(at, json!({"size_bytes": size}), ns + u64::from(at) * 3));
    (run(day, set), points.collect())
}

fn none(_: &str) -> Result<Vec<u64>, String> {
    Err("gone".to_owned())
}

fn sessions(sides: &[(Run, Vec<Point>)]) -> Vec<Session<'_>> {
    sides.iter().map(|(run, points)| Session { name: "side", run, points, samples: &none }).collect()
}

fn asked<'a>(sides: [&'a [Session<'a>]; 2], history: &'a [Session<'a>]) -> Asked<'a> {
    Asked {
        sides,
        names: ["old", "young"],
        history,
        by_turns: false,
        quantities: &[],
        by_experiment: false,
        margin: 0.05,
        anyway: false,
        patterns: bench::PATTERNS,
    }
}

#[test]
fn points_without_a_partner_are_listed_and_the_others_compared() {
    let base = [side(1, &[], &[2, 4], 1000)];
    let new = [side(2, &[], &[4, 8], 1300)];
    let found = compare(&asked([&sessions(&base), &sessions(&new)], &[])).unwrap();
    assert_eq!(found.unmatched, ["only in young: e size_bytes 8"]);
    let absent = &found.rows[1];
    assert_eq!(
        (&*absent.point, absent.verdict, &*absent.reason),
        ("size_bytes 2", Word::Undecided, "only in old")
    );
    let row = &found.rows[0];
    assert_eq!((found.rows.len(), row.point.as_str(), row.units), (2, "size_bytes 4", [8, 8]));
    assert_eq!(row.medians, Some([1010.5, 1310.5]));
    assert_eq!((row.verdict, found.verdict, found.order), (Word::Differs, Word::Differs, Order::Sessions));
    assert!((row.ratio.unwrap() - 1.3).abs() < 0.01, "{row:?}");
    assert_eq!(found.sentence, "differs, but one session a side (1 differs, 1 undecided)");
    // A test that has gone passes nowhere.
    let junit = formats::junit(&found.sheet());
    assert_eq!((junit.matches("<testcase").count(), junit.matches("<skipped").count()), (2, 2), "{junit}");
}

#[test]
fn what_matters_is_refused_and_what_may_differ_is_told() {
    let base = [side(1, &[], &[2], 1000)];
    let refused = |path: &str, value: &str, line: &str| {
        let new = [side(2, &[(path, json!(value))], &[2], 1000)];
        let [base, new] = [sessions(&base), sessions(&new)];
        let error = compare(&asked([&base, &new], &[])).unwrap_err().to_string();
        assert!(error.contains(line), "{error}");
        let anyway = Asked { anyway: true, ..asked([&base, &new], &[]) };
        assert!(compare(&anyway).unwrap().sentence.ends_with("despite 1 difference that matters"));
    };
    refused("/devices/0/name", "d1", "device: d0 -> d1");
    refused("/environments/0/facts/cpu/model", "N", "cpu model: M -> N");
    refused("/plan/experiments/0/iterations", "7", "iterations: 100 -> 7");
    // Sockets between two hosts: the link matters, and a virtual interface does not.
    let by_socket = |speed: &str, virtual_mtu: &str| {
        let host = |rank: u32| {
            let facts = json!({ "network": {
                "eth0.speed_mbps": speed, "eth0.mtu_bytes": "1500", "veth0.mtu_bytes": virtual_mtu,
            } });
            json!({ "rank": rank, "hostname": format!("h{rank}"), "facts": facts })
        };
        let hosts = [("/devices", json!([])), ("/environments", json!([host(0), host(1)]))];
        [side(1, &hosts, &[2], 1000)]
    };
    let [fast, slow, other] = [("25000", "1500"), ("10000", "1500"), ("25000", "9000")]
        .map(|(speed, virtual_mtu)| by_socket(speed, virtual_mtu));
    let error = compare(&asked([&sessions(&fast), &sessions(&slow)], &[])).unwrap_err().to_string();
    assert!(error.contains("network eth0.speed_mbps: 25000 -> 10000"), "{error}");
    assert!(compare(&asked([&sessions(&fast), &sessions(&other)], &[])).is_ok());
    let told = [("/environments/0/facts/kernel/release", json!("6.2")), ("/program/version", json!("0.3.0"))];
    let new = [side(2, &told, &[2], 1000)];
    let found = compare(&asked([&sessions(&base), &sessions(&new)], &[])).unwrap();
    let lines: Vec<String> = found.differences.iter().map(ToString::to_string).collect();
    assert_eq!(lines, ["kernel release: 6.1 -> 6.2", "program: rdmascope 0.2.0 -> rdmascope 0.3.0"]);
    assert_eq!(found.verdict, Word::Same);
}

#[test]
fn a_history_of_this_machine_gives_sessions_their_floor() {
    let base = [side(10, &[], &[2], 1000)];
    let new = [side(11, &[], &[2], 1150)];
    let sides = [sessions(&base), sessions(&new)];
    let verdict = |history: &[(Run, Vec<Point>)]| {
        let found = compare(&asked([&sides[0], &sides[1]], &sessions(history))).unwrap();
        (found.history, found.verdict)
    };
    let steady: Vec<_> = (1..=5).map(|day| side(day, &[], &[2], 1000 + u64::from(day % 2) * 10)).collect();
    assert_eq!(verdict(&steady), (5, Word::Worse));
    let wild: Vec<_> = (1..=5).map(|day| side(day, &[], &[2], 1000 + u64::from(day % 2) * 300)).collect();
    assert_eq!(verdict(&wild), (5, Word::Undecided));
    let later: Vec<_> = (7..=14).map(|day| side(day, &[], &[2], 1000)).collect();
    let found = compare(&asked([&sides[0], &sides[1]], &sessions(&later))).unwrap();
    assert_eq!(
        found.left_out, ["side: this session started after the base"; 4],
        "the sessions of days 11 to 14"
    );
    let other = [("/devices/0/name", json!("d1"))];
    let elsewhere: Vec<_> = (1..=5).map(|day| side(day, &other, &[2], 1000)).collect();
    assert_eq!(verdict(&elsewhere), (0, Word::Differs));
    let some: Vec<_> = (1..=5).map(|day| side(day, &other[..usize::from(day < 3)], &[2], 1000)).collect();
    let found = compare(&asked([&sides[0], &sides[1]], &sessions(&some))).unwrap();
    assert_eq!(found.left_out, ["side: device: d0 -> d1"; 2]);
    let reason = "one session a side: 0 of 3 pairs of identical sessions differ as much";
    assert_eq!((found.history, found.rows[0].verdict, &*found.rows[0].reason), (3, Word::Differs, reason));
}

/// A run of one point.
fn single(day: u32, ns: u64) -> (Run, Vec<Point>) {
    (run(day, &[]), vec![point(0, json!({"size_bytes": 2}), ns)])
}

#[test]
fn blocks_of_runs_are_one_session_each() {
    let block = |days: std::ops::Range<u32>, ns: u64| -> Vec<_> {
        days.map(|day| single(day, ns + u64::from(day % 10))).collect()
    };
    let [base, new] = [block(60..70, 1000), block(70..80, 3000)];
    let [base, new] = [sessions(&base), sessions(&new)];
    let of = |sides: [&[Session<'_>]; 2], days: std::ops::Range<u32>| {
        compare(&asked(sides, &sessions(&block(days, 1000)))).unwrap()
    };
    let found = of([&base, &new], 0..0);
    assert_eq!((found.order, found.verdict), (Order::Sessions, Word::Differs));
    assert_eq!((found.rows[0].units, &*found.sentence), ([10, 10], "differs, but one session a side"));
    let four = of([&base, &new], 1..50);
    assert_eq!((four.history, four.left_out.len(), four.verdict), (4, 9, Word::Differs), "{four:?}");
    let five = of([&base, &new], 0..50);
    assert_eq!((five.history, five.left_out.len(), five.verdict), (5, 0, Word::Worse), "{five:?}");
    let unequal = of([&base, &new[1..]], 0..50);
    assert_eq!((unequal.history, unequal.verdict), (0, Word::Differs));
    assert!(unequal.left_out[0].ends_with("these have 10 and 9"), "{:?}", unequal.left_out);
}

#[test]
fn only_runs_that_alternate_are_in_mixed_order() {
    let order = |starts: [[&str; 5]; 2]| {
        let runs = starts.map(|starts| {
            starts.map(|second| {
                let started = json!(format!("2026-01-01T00:00:0{second}Z"));
                (run(0, &[("/started", started)]), vec![point(0, json!({}), 1000)])
            })
        });
        let [base, new] = runs.each_ref().map(|side| sessions(side));
        units::order(&asked([&base, &new], &[]))
    };
    let first = ["0", "0", "0", "1", "1"];
    let second = ["1", "1", "2", "2", "2"];
    assert_eq!(order([first, second]), Order::Sessions, "a start in the same second shows no order");
    assert_eq!(order([second, first]), Order::Sessions);
    assert_eq!(order([["1", "2", "3", "4", "5"], ["1.5", "2.5", "3.5", "4.5", "5.5"]]), Order::Mixed);
    assert_eq!(
        order([["1", "1.1", "1.2", "1.3", "1.4"], ["1.5", "1.6", "1.7", "1.8", "1.9"]]),
        Order::Sessions
    );
}

#[test]
fn a_point_that_fails_on_the_new_side_is_not_the_same() {
    let base = [side(1, &[], &[2, 4, 8, 16], 1000)];
    let mut new = [side(2, &[], &[2, 4, 8, 16], 1000)];
    for point in &mut new[0].1 {
        point.status = match point.axes["size_bytes"].as_u64() {
            Some(4) => Status::Failed { error: "RNR".to_owned() },
            Some(8) => Status::NotMeasured { reason: "no memory".to_owned() },
            Some(16) if point.repetition < 2 => Status::Failed { error: "lost".to_owned() },
            _ => continue,
        };
    }
    let [base, new] = [sessions(&base), sessions(&new)];
    let found = compare(&asked([&base, &new], &[])).unwrap();
    let rows: Vec<_> = found.rows.iter().map(|row| (&*row.point, row.verdict, &*row.reason)).collect();
    let expected = [
        ("size_bytes 2", Word::Same, ""),
        ("size_bytes 16", Word::Failed, "2 of 8 repetitions failed: lost"),
        ("size_bytes 4", Word::Failed, "RNR"),
        ("size_bytes 8", Word::Undecided, "not measured in young: no memory"),
    ];
    assert_eq!(rows, expected);
    assert_eq!((found.verdict, &*found.sentence), (Word::Failed, "failed (2 failed, 1 same, 1 undecided)"));
    assert_eq!(found.unmatched, ["2 of 8 repetitions failed in young: e size_bytes 16: lost"]);
    let junit = formats::junit(&found.sheet());
    assert!(junit.contains("><error message=\"failed: RNR; "), "{junit}");
    let back = compare(&asked([&new, &base], &[])).unwrap();
    assert_eq!((back.verdict, back.rows.len()), (Word::Same, 2), "what works again is not worse");
    assert_eq!(back.unmatched[0], "failed in old: e size_bytes 4: RNR");
}

#[test]
fn numbers_that_one_side_lacks_are_listed() {
    let base = [side(1, &[], &[2, 4], 1000)];
    let mut new = [side(2, &[], &[2, 4], 1000)];
    new[0].1.iter_mut().filter(|point| point.axes["size_bytes"] == 4).for_each(|point| point.latency = None);
    let [base, new] = [sessions(&base), sessions(&new)];
    let quantities = ["latency.p99_ns".to_owned()];
    let p99 = Asked { quantities: &quantities, ..asked([&base, &new], &[]) };
    let found = compare(&p99).unwrap();
    let absent = &found.rows[1];
    assert_eq!((absent.verdict, &*absent.reason), (Word::Undecided, "no latency.p99_ns above 0 in young"));
    let none =
        [(run(2, &[]), new[0].points.iter().filter(|point| point.latency.is_none()).cloned().collect())];
    let none = sessions(&none);
    let error = compare(&Asked { sides: [&base, &none], ..p99 }).unwrap_err().to_string();
    assert!(error.contains("no latency.p99_ns above 0 in young: e size_bytes 4; --quantity"), "{error}");
    assert!(error.contains("such as latency.") && !error.contains("same experiment"), "{error}");
}

/// Ten runs a side by turns, of which some fail.
fn by_turns(fail: [usize; 2], verdict: impl FnOnce(Comparison)) {
    let side = |ns: u64, failing: usize| -> Vec<(Run, Vec<Point>)> {
        let of = |day: u32| {
            let (run, mut points) = single(day, ns + u64::from(day));
            if (day as usize) < failing {
                points[0].status = Status::Failed { error: "lost".to_owned() };
            }
            (run, points)
        };
        (0..10).map(of).collect()
    };
    let [base, new] = [side(1000, fail[0]), side(1000, fail[1])];
    let [base, new] = [sessions(&base), sessions(&new)];
    verdict(compare(&Asked { by_turns: true, ..asked([&base, &new], &[]) }).unwrap());
}

#[test]
fn runs_that_fail_are_not_left_out_of_a_verdict() {
    let is = |fail, word: Word, reason: &str| {
        by_turns(fail, |found| {
            let row = &found.rows[0];
            assert_eq!((row.verdict, &*row.reason), (word, reason), "{fail:?}");
        });
    };
    is([0, 0], Word::Same, "");
    is([0, 1], Word::Failed, "1 of 10 repetitions failed: lost");
    // More often than the base, by Fisher's test.
    is([1, 9], Word::Failed, "9 of 10 repetitions failed (base: 1 of 10): lost");
    is([1, 10], Word::Failed, "10 of 10 repetitions failed (base: 1 of 10): lost");
    // As often: nothing is known of the runs that failed.
    is([2, 3], Word::Undecided, "3 of 10 numbers of the new side are missing");
    is([9, 10], Word::Undecided, "failed in young: lost");
    // What works again is not worse.
    is([2, 0], Word::Same, "");
}

#[test]
fn a_base_without_some_numbers_counts_as_the_worst_there() {
    let side = |slow: u64, missing: u32| -> Vec<(Run, Vec<Point>)> {
        let of = |day: u32| {
            let (run, mut points) = single(day, slow + u64::from(day));
            if day >= 10 - missing {
                points[0].latency = None;
            }
            (run, points)
        };
        (0..10).map(of).collect()
    };
    let verdict = |missing: u32| {
        let [base, new] = [side(1000, missing), side(3000, 0)];
        let [base, new] = [sessions(&base), sessions(&new)];
        let found = compare(&Asked { by_turns: true, ..asked([&base, &new], &[]) }).unwrap();
        let row = &found.rows[0];
        assert_eq!(row.units, [10, 10]);
        row.verdict
    };
    assert_eq!((verdict(0), verdict(1)), (Word::Worse, Word::Worse));
    // The half that is missing may be as slow as the new side.
    assert_eq!(verdict(5), Word::Undecided);
}

#[test]
fn a_run_that_loses_more_of_its_repetitions_fails() {
    let side = |failing: u32| -> Vec<(Run, Vec<Point>)> {
        let of = |day: u32| {
            let mut points: Vec<Point> =
                (0..5).map(|at| point(at, json!({}), 1000 + u64::from(day))).collect();
            for point in points.iter_mut().filter(|point| point.repetition < failing) {
                point.status = Status::Failed { error: "lost".to_owned() };
            }
            (run(day, &[]), points)
        };
        (0..10).map(of).collect()
    };
    let [base, new] = [side(1), side(4)];
    let [base, new] = [sessions(&base), sessions(&new)];
    let of = |sides: [&[Session<'_>]; 2]| {
        let row = compare(&Asked { by_turns: true, ..asked(sides, &[]) }).unwrap().rows.remove(0);
        (row.verdict, row.reason)
    };
    let failed = "40 of 50 repetitions failed (base: 10 of 50): lost".to_owned();
    assert_eq!(of([&base, &new]), (Word::Failed, failed));
    let missing = "10 of 50 numbers of the new side are missing".to_owned();
    assert_eq!(of([&base, &base]), (Word::Undecided, missing));
    // Runs of other experiments lack no number of this one.
    let other: Vec<(Run, Vec<Point>)> = (20..25)
        .map(|day| {
            let mut other = point(0, json!({}), 1000);
            other.experiment = "other".to_owned();
            (run(day, &[]), vec![other])
        })
        .collect();
    let [whole, other] = [side(0), other];
    let both = [sessions(&whole), sessions(&other)].concat();
    assert_eq!(of([&both, &both]).0, Word::Same);
}

#[test]
fn an_axis_is_compared_only_if_no_point_of_both_sides_has_the_same_value() {
    let [mut base, mut new] = [[side(1, &[], &[64, 128], 1000)], [side(2, &[], &[64, 128], 1000)]];
    let fail = |side: &mut [(Run, Vec<Point>)], size: u64| {
        for point in side[0].1.iter_mut().filter(|point| point.axes["size_bytes"] == size) {
            point.status = Status::Failed { error: "lost".to_owned() };
        }
    };
    fail(&mut base, 128);
    fail(&mut new, 64);
    let [base, new] = [sessions(&base), sessions(&new)];
    let found = compare(&asked([&base, &new], &[])).unwrap();
    assert!(found.differences.is_empty(), "{:?}", found.differences);
    assert_eq!(
        (found.rows.len(), found.rows[0].verdict, &*found.rows[0].point),
        (1, Word::Failed, "size_bytes 64")
    );
}

#[test]
fn what_more_runs_of_a_side_have_differs() {
    let side = |other: std::ops::Range<u32>| -> Vec<(Run, Vec<Point>)> {
        let of = |day: u32| {
            let set = [("/plan/experiments/0/iterations", json!(7)), ("/program/version", json!("0.3.0"))];
            let set = if other.contains(&day) { &set[..] } else { &[] };
            (run(day, set), vec![point(0, json!({}), 1000)])
        };
        (0..10).map(of).collect()
    };
    let [base, new] = [side(0..1), side(1..10)];
    let [base, new] = [sessions(&base), sessions(&new)];
    let error = compare(&asked([&base, &new], &[])).unwrap_err().to_string();
    assert!(
        error.contains("iterations: 100 (9 runs) and 7 (1 run) -> 100 (1 run) and 7 (9 runs)"),
        "{error}"
    );
    let found = compare(&Asked { by_turns: true, ..asked([&base, &new], &[]) }).unwrap();
    let lines: Vec<String> = found.differences.iter().map(ToString::to_string).collect();
    assert!(
        lines[1].starts_with("program: rdmascope 0.2.0 (9 runs) and rdmascope 0.3.0 (1 run) -> "),
        "{lines:?}"
    );
    // As many runs of each kind on both sides do not differ.
    let found = compare(&Asked { by_turns: true, ..asked([&base, &base[..]], &[]) }).unwrap();
    assert!(found.differences.is_empty(), "{:?}", found.differences);
}

#[test]
fn definitions_of_a_plan_that_both_sides_have_matter() {
    let side = |day: u32, problem: &str, only: &str| {
        let plan = json!({
            "experiments": [{"name": "e", "pattern": "p"}],
            "applications": [{"name": "melt", "command": ["lmp", problem]}, {"name": only, "command": ["x"]}],
            "environments": {"quiet": {"governor": "performance"}},
        });
        [(run(day, &[("/plan", plan)]), vec![point(0, json!({}), 1000)])]
    };
    let refused = |problem: &str| {
        let [base, new] = [side(1, "in.melt", "a"), side(2, problem, "b")];
        compare(&asked([&sessions(&base), &sessions(&new)], &[])).err().map(|error| error.to_string())
    };
    assert_eq!(refused("in.melt"), None, "what one side alone defines has no partner");
    let error = refused("in.big").expect("another problem");
    assert!(
        error.contains("application melt command: [\"lmp\",\"in.melt\"] -> [\"lmp\",\"in.big\"]"),
        "{error}"
    );
}

#[test]
fn one_question_for_an_experiment_is_in_the_middle_of_its_points() {
    let side = |ns: [u64; 2]| -> Vec<(Run, Vec<Point>)> {
        let point = |day: u32, at: usize| point(0, json!({ "size_bytes": at }), ns[at] + u64::from(day));
        (0..10).map(|day| (run(day, &[]), vec![point(day, 0), point(day, 1)])).collect()
    };
    let [base, new] = [side([10_000, 10_000]), side([9_000, 11_000])];
    let [base, new] = [sessions(&base), sessions(&new)];
    let found = compare(&Asked { by_turns: true, by_experiment: true, ..asked([&base, &new], &[]) }).unwrap();
    let [row] = &found.rows[..] else { panic!("one question") };
    assert_eq!(
        (row.verdict, &*row.point),
        (Word::Same, "2 points"),
        "one point is slower, and one is faster"
    );
}

#[test]
fn neighbours_of_many_repetitions_are_put_together() {
    let many =
        |day: u32| [(run(day, &[]), (0..1001).map(|at| point(at, json!({}), 1000)).collect::<Vec<_>>())];
    let [base, new] = [many(1), many(2)];
    let found = compare(&asked([&sessions(&base), &sessions(&new)], &[])).unwrap();
    assert_eq!((found.rows[0].units, found.verdict), ([501, 501], Word::Same));
}

#[test]
fn a_metric_of_a_program_says_itself_what_is_better() {
    let metric = |day: u32, value: f64, better: &str| {
        let points = (0..8).map(|at| {
            let mut point = point(at, json!({}), 1000);
            point.pattern = "application".to_owned();
            let score = json!({"value": value + f64::from(at) / 10.0, "unit": "", "better": better});
            let metrics = json!({"score": score, "overlap_ns": score});
            point.own.insert("application".to_owned(), json!({"metrics": metrics}));
            point
        });
        [(run(day, &[]), points.collect::<Vec<_>>())]
    };
    let score = ["application.metrics.score".to_owned()];
    // A time, of which more is better here.
    let overlap = ["application.metrics.overlap_ns".to_owned()];
    let history: Vec<_> = (1..=5).flat_map(|day| metric(day, 100.0, "more")).collect();
    let verdict = |quantities: &[String], better: &str| {
        let [base, new] = [metric(10, 100.0, better), metric(11, 200.0, better)];
        let [base, new, history] = [&base[..], &new, &history].map(sessions);
        compare(&Asked { quantities, ..asked([&base, &new], &history) }).unwrap().verdict
    };
    for quantities in [&score, &overlap] {
        assert_eq!(verdict(quantities, "more"), Word::Better, "{quantities:?}");
        assert_eq!(verdict(quantities, "less"), Word::Worse, "{quantities:?}");
    }
}

#[test]
fn reasons_name_the_units_of_the_order() {
    let base = [side(1, &[], &[2], 1000)];
    let base = sessions(&base);
    let reason = |by_turns: bool, runs: usize| {
        let side = vec![base[0]; runs];
        let found = compare(&Asked { by_turns, ..asked([&side, &side], &[]) }).unwrap();
        found.rows[0].reason.clone()
    };
    assert_eq!(reason(true, 3), "needs at least 5 pairs");
    let few = [(run(1, &[]), vec![point(0, json!({}), 1000)])];
    let few = sessions(&few);
    let found = compare(&asked([&few, &few], &[])).unwrap();
    assert_eq!(found.rows[0].reason, "needs at least 5 repetitions a side");
    assert_eq!(
        word(Verdict::Undecided(Why::TooFew { least: 8 }), Order::Mixed, [0, 0]).1,
        "needs at least 8 runs a side"
    );
}

#[test]
fn settings_of_experiments_are_compared_by_name() {
    let experiment = |name: &str, length: &str| json!({"name": name, "pattern": "p", length: 100});
    let run_of = |day: u32, experiments: Value| {
        [(run(day, &[("/plan/experiments", experiments)]), vec![point(0, json!({}), 1000)])]
    };
    let lines = |base: Value, new: Value| -> Vec<String> {
        let [base, new] = [run_of(1, base), run_of(2, new)];
        let runs = [&base[0].0, &new[0].0].map(|run| [run]);
        differences::between([&runs[0], &runs[1]], &[]).iter().map(ToString::to_string).collect()
    };
    let one = json!([experiment("e", "iterations")]);
    let timed = json!([experiment("e", "duration_s"), experiment("f", "warmup")]);
    let of_e = ["duration_s of e: not set -> 100", "iterations of e: 100 -> not set"];
    assert_eq!(lines(one.clone(), timed.clone()), of_e, "f has no partner");
    assert_eq!(lines(one.clone(), json!([experiment("g", "duration_s")])).len(), 2, "one of another name");
    assert_eq!(lines(timed.clone(), timed), [""; 0]);
}

#[test]
fn no_time_that_sits_on_steps_of_the_clock_is_known_better_than_a_step() {
    let at = |day: u32, ns: u64| {
        let points = (0..12).map(|repetition| {
            let mut point = point(repetition, json!({}), 1000);
            point.latency.as_mut().unwrap().min_ns = ns;
            point
        });
        [(run(day, &[]), points.collect::<Vec<_>>())]
    };
    let quantities = ["latency.min_ns".to_owned()];
    for [base, new] in [[95, 100], [100, 95]] {
        let [base, new] = [at(1, base), at(2, new)];
        let [base, new] = [sessions(&base), sessions(&new)];
        let found = compare(&Asked { quantities: &quantities, ..asked([&base, &new], &[]) }).unwrap();
        assert_eq!(found.verdict, Word::Undecided, "{found:?}");
    }
}

#[test]
fn questions_are_counted_once() {
    let points = side(1, &[], &[2, 4, 8], 1000).1;
    let two = ["latency.p50_ns".to_owned(), "latency.p99_ns".to_owned()];
    assert_eq!([questions(&points, &[], false), questions(&points, &two, false)], [3, 6]);
    assert_eq!([questions(&points, &[], true), questions(&points, &two, true)], [1, 2]);
}

#[test]
fn medians_on_clock_steps_are_never_known_better_than_a_step() {
    let on_steps = |day: u32| {
        let points = (0..12).map(|at| point(at, json!({"size_bytes": 2}), 95 + 5 * u64::from(at % 4 == 0)));
        [(run(day, &[]), points.collect::<Vec<_>>())]
    };
    let [base, new] = [on_steps(1), on_steps(2)];
    let found = compare(&asked([&sessions(&base), &sessions(&new)], &[])).unwrap();
    let step = 5.0 / 95.0;
    assert!(found.rows[0].detectable.unwrap() >= step - 1e-9, "{:?}", found.rows[0]);
}

#[test]
fn formats_escape_and_count() {
    let base = [side(1, &[], &[2, 4], 1000)];
    let new = [side(2, &[], &[2, 4], 1300)];
    let [base, new] = [sessions(&base), sessions(&new)];
    let names = ["a | <b>", "\"c\"&"];
    let found = compare(&Asked { names, by_turns: false, ..asked([&base, &new], &[]) }).unwrap();
    let sheet = found.sheet();
    assert!(formats::markdown(&sheet).contains("- base: a \\| \\<b\\> (1 run)\n"));
    let junit = formats::junit(&sheet);
    assert_eq!(junit.matches("tests=\"2\" failures=\"0\" errors=\"0\" skipped=\"2\"").count(), 1, "{junit}");
    let table = formats::table(&sheet);
    assert!(table.lines().all(|line| line.chars().count() <= 80), "{table}");
    let mut page = Vec::new();
    sheet.write_page(&mut page).unwrap();
    let page = String::from_utf8(page).unwrap();
    assert!(page.contains("a | &lt;b&gt;") && !page.contains("<b>"), "texts of a record are escaped");
    assert_eq!(page.matches("<svg class=\"forest\"").count(), 2);
    let whole = compare(&Asked { by_experiment: true, ..asked([&base, &new], &[]) }).unwrap();
    assert_eq!((whole.rows.len(), whole.rows[0].point.as_str()), (1, "2 points"));
}

/// Runs of one point, a day each, with their core-to-core latency.
fn series(runs: impl Iterator<Item = (u64, f64)>) -> Vec<(Run, Vec<Point>)> {
    let of = |(day, (ns, placement)): (u32, (u64, f64))| {
        let (run, mut points) = single(day, ns + u64::from(day * 37 % 11));
        let calibration = json!({"before_ns": placement, "after_ns": placement});
        points[0].calibration = Some(serde_json::from_value(calibration).unwrap());
        (run, points)
    };
    (0..).zip(runs).map(of).collect()
}

fn found(runs: &[(Run, Vec<Point>)]) -> trend::Trend {
    let runs = sessions(runs);
    trend::trend(&of_series(&runs)).unwrap()
}

fn of_series<'a>(runs: &'a [Session<'a>]) -> trend::Asked<'a> {
    trend::Asked { runs, quantities: &[], margin: 0.05, anyway: false, patterns: bench::PATTERNS }
}

#[test]
fn a_trend_that_moves_for_good_knows_no_present_level() {
    let runs = |near: usize, far: usize, again: usize| {
        let part = |runs: usize, ns: u64, placement: f64| std::iter::repeat_n((ns, placement), runs);
        found(&series(part(near, 1000, 30.0).chain(part(far, 3000, 198.0)).chain(part(again, 1000, 30.0))))
    };
    let moved = runs(60, 40, 0);
    assert_eq!((moved.verdict, moved.rows[0].verdict), (Word::Undecided, Word::Undecided));
    assert_eq!(moved.rows[0].reason, "placement differs from 2026-03-05T00:00:00Z (side) on");
    assert_eq!(moved.sentence, "undecided: no change in 1 series; 1 undecided");
    assert!(formats::table(&moved.sheet()).contains("undecided: placement differs from"), "{moved:?}");
    let back = runs(40, 20, 40);
    assert_eq!((back.verdict, &*back.sentence), (Word::Same, "same: no change in 1 series"));
    let flips = found(&series((0..60).map(|run| if run % 5 == 3 { (3000, 198.0) } else { (1000, 30.0) })));
    assert_eq!(flips.verdict, Word::Same, "{:?}", flips.rows[0].reason);
}

#[test]
fn a_trend_of_too_few_runs_of_one_placement_says_what_is_missing() {
    let mut two = series((0..10).map(|run| (if run < 5 { 1000 } else { 3000 }, 30.0)));
    for (_, points) in &mut two {
        let mut other = points[0].clone();
        other.axes.insert("size_bytes".to_owned(), json!(8));
        points.push(other);
    }
    let few = found(&two);
    assert_eq!((few.verdict, &*few.rows[1].reason), (Word::Undecided, "2 series need at least 12 runs"));
    let placed = series((0..18).map(|run| (1000, if run % 2 == 0 { 30.0 } else { 198.0 })));
    let placed = sessions(&placed);
    let error = trend::trend(&of_series(&placed)).unwrap_err().to_string();
    let expected =
        "it needs 10 runs of one placement that measured the same point, and these 18 have at most 9";
    assert!(error.ends_with(expected), "{error}");
}

#[test]
fn a_series_that_has_ended_or_a_run_without_hosts_decides_nothing() {
    let slower = |run: u32| (if run < 30 { 1000 } else { 1300 }, 30.0);
    let ended = |change: &dyn Fn(&mut Point)| {
        let mut runs = series((0..60).map(slower));
        runs[50..].iter_mut().for_each(|(_, points)| change(&mut points[0]));
        let row = found(&runs).rows.remove(0);
        (row.verdict, row.changes.len(), row.reason)
    };
    let (verdict, changes, reason) = ended(&|point| point.latency = None);
    assert_eq!((verdict, changes), (Word::Undecided, 1));
    assert!(reason.starts_with("no number since 2026-"), "{reason}");
    // What fails now was worse before, and is no better.
    let failed = |point: &mut Point| point.status = Status::Failed { error: "lost".to_owned() };
    assert_eq!(ended(&failed), (Word::Worse, 1, String::new()));
    let mut steady = series((0..30).map(|_| (1000, 30.0)));
    failed(&mut steady.last_mut().unwrap().1[0]);
    let trend = found(&steady);
    let row = &trend.rows[0];
    assert_eq!((trend.verdict, row.verdict), (Word::Failed, Word::Failed));
    assert!(row.reason.starts_with("in the last run, 2026-"), "{}", row.reason);
    assert!(trend.sentence.ends_with("; 1 failed in the last run"), "{}", trend.sentence);
    // Runs of another plan could not have the number.
    assert_eq!(ended(&|point| point.experiment = "other".to_owned()), (Word::Worse, 1, String::new()));
    // The last run was killed before its agents were there.
    let mut killed = series((0..60).map(slower));
    let (last, points) = killed.last_mut().unwrap();
    last.environments.clear();
    points.clear();
    let trend = found(&killed);
    assert_eq!((trend.verdict, &trend.other_hosts[..]), (Word::Worse, &["side: none".to_owned()][..]));
}

#[test]
fn a_regression_that_was_repaired_fails_no_test() {
    let trend = found(&series((0..60).map(|run| (if (20..40).contains(&run) { 1300 } else { 1000 }, 30.0))));
    assert_eq!((trend.verdict, trend.rows[0].changes.len()), (Word::Better, 2));
    let junit = formats::junit(&trend.sheet());
    assert_eq!((junit.matches("<testcase").count(), junit.matches("<failure").count()), (1, 0), "{junit}");
    assert_eq!(trend.sheet().lines.len(), 2, "the table has both changes");
    let worse = found(&series((0..40).map(|run| (if run < 20 { 1000 } else { 1300 }, 30.0))));
    assert_eq!(formats::junit(&worse.sheet()).matches("<failure").count(), 1);
}

#[test]
fn a_trend_names_changed_settings_of_the_plan() {
    let mut runs = series((0..30).map(|run| (if run < 15 { 1000 } else { 1300 }, 30.0)));
    for (run, _) in &mut runs[15..] {
        run.plan["experiments"][0]["iterations"] = json!(7);
    }
    // One run before the change had them already, and one after it not yet.
    for (run, iterations) in [(4, 7), (20, 100)] {
        runs[run].0.plan["experiments"][0]["iterations"] = json!(iterations);
    }
    let changes = &found(&runs).rows[0].changes;
    let lines: Vec<String> = changes[0].differences.iter().map(ToString::to_string).collect();
    assert_eq!((changes.len(), changes[0].run, &*lines), (1, 15, &["iterations: 100 -> 7".to_owned()][..]));
}

#[test]
fn a_trend_is_of_the_hosts_of_its_last_run() {
    let mut runs = series((0..30).map(|run| (if run % 3 == 1 { 3000 } else { 1000 }, 30.0)));
    for (index, (run, _)) in runs.iter_mut().enumerate() {
        let host = if index % 3 == 1 { "slow" } else { "fast" };
        host.clone_into(&mut run.environments[0].hostname);
    }
    let trend = found(&runs);
    assert_eq!((trend.runs.len(), trend.other_hosts.len()), (20, 10), "{trend:?}");
    assert_eq!((trend.verdict, &*trend.other_hosts[0]), (Word::Same, "side: slow"));
    assert!(formats::table(&trend.sheet()).contains("runs of other hosts, left out"));
    let few = sessions(&runs[..14]);
    let error = trend::trend(&of_series(&few)).unwrap_err().to_string();
    assert!(error.ends_with("than the last are left out (9): keep them with --anyway"), "{error}");
    let all = trend::trend(&trend::Asked { anyway: true, ..of_series(&few) }).unwrap();
    assert_eq!(all.runs.len(), 14);
}
