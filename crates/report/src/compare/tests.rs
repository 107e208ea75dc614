use measure::record::{Point, Run};
use serde_json::{Value, json};

use super::*;

/// A run that started on a day, with values below its keys.
fn run(day: u32, set: &[(&str, Value)]) -> Run {
    let mut run = json!({
        "schema_version": 1, "program": {"name": "rdmascope", "version": "0.2.0"}, "command": [],
        "started": format!("2026-01-{day:02}T00:00:00Z"), "title": "t", "points_planned": 1,
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
    assert_eq!(found.unmatched, ["only in old: e size_bytes 2", "only in young: e size_bytes 8"]);
    let row = &found.rows[0];
    assert_eq!((found.rows.len(), row.point.as_str(), row.units), (1, "size_bytes 4", [8, 8]));
    assert_eq!(row.medians, Some([1009.0, 1309.0]));
    assert_eq!((row.verdict, found.verdict, found.order), (Word::Differs, Word::Differs, Order::Sessions));
    assert!((row.ratio.unwrap() - 1.3).abs() < 0.01, "{row:?}");
    assert_eq!(found.sentence, "differs, but one session a side");
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
    let other = [("/devices/0/name", json!("d1"))];
    let elsewhere: Vec<_> = (1..=5).map(|day| side(day, &other, &[2], 1000)).collect();
    assert_eq!(verdict(&elsewhere), (0, Word::Differs));
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
    assert!(formats::markdown(&sheet).contains("- base: a \\| <b> (1 run)\n"));
    let junit = formats::junit(&sheet);
    assert_eq!(junit.matches("tests=\"2\" failures=\"0\" errors=\"0\" skipped=\"2\"").count(), 2, "{junit}");
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
