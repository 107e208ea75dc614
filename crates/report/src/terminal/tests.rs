use std::collections::BTreeMap;

use bench::PATTERNS;
use measure::figure::{Figure, FigureKind};
use measure::finding::Finding;
use measure::record::{
    Cost, Direction, End, Fairness, Latency, LatencyKind, Mavericks, OneWay, Pipeline, Run, SinkReport,
    Throughput, Timed, TimerAlone,
};
use serde_json::json;

use super::*;
use crate::known;

fn tables(points: &[Point], devices: &[Device], bandwidth: Unit) -> Result<String, Error> {
    super::tables(Points { devices, ..known(points) }, bandwidth, None)
}

/// Asserts that the tables of points have room in 80 characters.
#[track_caller]
fn assert_narrow(points: &[Point], devices: &[Device]) {
    let text = super::tables(Points { devices, ..known(points) }, Unit::GbPerS, Some(80)).unwrap();
    let text = folded(&text, 80);
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
}

fn point(experiment: &str, size: u64, rate: &str) -> Point {
    Point {
        id: 0,
        experiment: experiment.to_owned(),
        pattern: "ping-pong".to_owned(),
        axes: BTreeMap::from([
            ("service".to_owned(), json!("RC")),
            ("operation".to_owned(), json!("send")),
            ("size_bytes".to_owned(), json!(size)),
            ("signal_rate".to_owned(), json!(rate)),
        ]),
        status: Status::Measured,
        repetition: 0,
        launch: None,
        fleet: None,
        link_model: None,
        conditions: Vec::new(),
        iterations: Some(1000),
        latency: None,
        kinds: Vec::new(),
        one_way: None,
        pipeline: None,
        reported: None,
        cost: None,
        own: BTreeMap::new(),
        throughput: None,
        fairness: None,
        throughput_total: None,
        ends: Vec::new(),
        calibration: None,
        oversubscribed: None,
        cut: false,
        unstable: None,
        counters: BTreeMap::new(),
        wall_ns: 1,
    }
}

fn latency(size: u64, p50_ns: u64) -> Point {
    let latency = Latency {
        kind: LatencyKind::RttHalf,
        count: 1000,
        min_ns: p50_ns - 20,
        p10_ns: p50_ns - 10,
        p50_ns,
        p90_ns: p50_ns + 30,
        p99_ns: p50_ns + 400,
        p999_ns: p50_ns + 2000,
        max_ns: p50_ns + 12_345,
        mean_ns: p50_ns as f64 + 4.5,
        stddev_ns: Some(61.4),
        p50_ci95_ns: Some([p50_ns, p50_ns]),
        share_above: BTreeMap::new(),
        share_above_bounds: BTreeMap::new(),
        mavericks: Mavericks { rule: "> 2 x mean".to_owned(), count: 0 },
        resolution: None,
    };
    Point { latency: Some(latency), ..point("rc-latency", size, "native") }
}

fn not_measured(size: u64, rate: &str, reason: &str) -> Point {
    Point { status: Status::NotMeasured { reason: reason.to_owned() }, ..point("rc-latency", size, rate) }
}

fn stream(size: u64, direction: Direction) -> Point {
    let throughput = |factor: f64, direction| Throughput {
        bytes_per_s: 6_272_500_000.0 * factor,
        messages_per_s: 6_272_500_000.0 * factor / size as f64,
        direction,
    };
    let mut point = Point {
        pattern: "stream".to_owned(),
        throughput: Some(throughput(1.0, direction)),
        throughput_total: (direction == Direction::BiOne).then(|| throughput(1.9, Direction::BiTotal)),
        ..point("rc-throughput", size, "native")
    };
    let axis = if direction == Direction::Uni { "uni" } else { "bi" };
    point.axes.insert("direction".to_owned(), json!(axis));
    point
}

/// Compares with a golden file line by line; writes the file where `RDMASCOPE_BLESS` is set.
#[track_caller]
fn assert_golden(text: &str, name: &str) {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name);
    if std::env::var_os("RDMASCOPE_BLESS").is_some() {
        std::fs::write(&path, text).unwrap();
    }
    let golden = std::fs::read_to_string(&path).unwrap();
    for (index, (line, wanted)) in text.lines().zip(golden.lines()).enumerate() {
        assert_eq!(line, wanted, "{name}:{}", index + 1);
    }
    assert_eq!(text.lines().count(), golden.lines().count(), "{text}");
}

#[test]
fn latencies_have_the_columns_of_ib_send_lat() {
    let mut unstable = latency(4096, 2840);
    unstable.unstable = Some("the core-to-core latency changed\nfrom 58 ns to 131 ns".to_owned());
    let mut second = latency(4096, 2850);
    second.repetition = 1;
    let failed = Point {
        status: Status::Failed { error: "retry counter exceeded".to_owned() },
        ..point("rc-latency", 8192, "native")
    };
    let text = tables(&[latency(4, 820), unstable, second, failed], &[], Unit::GbPerS).unwrap();
    assert_golden(&text, "latency.txt");
}

fn call(step: &str, size: u64, calls: u32, batch_ns: u64) -> Point {
    let mut point = latency(size, batch_ns);
    let batches = point.latency.as_mut().unwrap();
    (batches.kind, batches.p50_ci95_ns) = (LatencyKind::Call, Some([batch_ns - 10, batch_ns + 10]));
    point.cost = Some(Cost::new(step, calls, batches, 14.5));
    point.pattern = "overhead".to_owned();
    point.axes.insert("step".to_owned(), json!(step));
    point.axes.insert("batch".to_owned(), json!("step"));
    point
}

#[test]
fn calls_share_a_table_with_a_line_for_each_step() {
    let mut few = call("create_qp", 64, 1, 183_400);
    few.cost.as_mut().unwrap().ci95_ns = None;
    let mut marked = call("post_send", 4096, 64, 12_160);
    marked.unstable = Some("it shifted".to_owned());
    let failed = Point {
        status: Status::Failed { error: "no memory".to_owned() },
        cost: None,
        own: BTreeMap::new(),
        latency: None,
        ..call("register_cold", 64, 1, 1000)
    };
    let missing = Point {
        status: Status::NotMeasured { reason: "more bytes inline than the limit of 512".to_owned() },
        ..failed.clone()
    };
    let points = [call("poll_empty", 64, 64, 202), marked, few, failed, missing];
    assert_golden(&tables(&points, &[], Unit::GbPerS).unwrap(), "calls.txt");
}

#[test]
fn bandwidths_name_their_direction_and_their_unit() {
    let mut lossy = stream(32768, Direction::Uni);
    lossy.axes.insert("service".to_owned(), json!("UC"));
    lossy.counters.insert("messages_lost".to_owned(), 17);
    let points = [
        stream(32768, Direction::Uni),
        stream(65536, Direction::Uni),
        stream(32768, Direction::BiOne),
        lossy,
    ];
    let text = tables(&points, &[], Unit::GbPerS).unwrap();
    assert_golden(&text, "bandwidth.txt");
    assert!(tables(&points, &[], Unit::MiBPerS).unwrap().contains(" BW[MiB/s]"));
    assert!(Stream::new(PATTERNS, Unit::Us, None).is_err());
}

/// A device with link models under RoCE v2: 82 B of headers around the payload of each packet, as
/// RoCE over IPv4 has them.
fn imitating() -> Device {
    let attributes = json!({"kind": "user-space software", "link_layer": "Ethernet", "gid_type": "RoCE v2", "gid": "fe80::1"});
    let device = json!({"rank": 0, "name": "softdev0", "provider": "softdev", "attributes": attributes});
    serde_json::from_value(device).unwrap()
}

#[test]
fn throughputs_stand_beside_what_their_link_carries() {
    let on_link = |size: u64, direction, model: Option<&str>| {
        let mut point = stream(size, direction);
        point.axes.insert("mtu_bytes".to_owned(), json!(4096));
        point.link_model = model.map(str::to_owned);
        point
    };
    let mut lossy = on_link(32768, Direction::Uni, Some("4X QDR"));
    lossy.axes.insert("service".to_owned(), json!("UC"));
    lossy.counters.insert("messages_lost".to_owned(), 17);
    let points = [
        // 4 x 14.0625 Gb/s in 64b/66b are 54.545 Gb/s; with 4096 of 4178 B as payload, 53.475 Gb/s.
        // 50.180 are 93.8 %.
        on_link(4096, Direction::Uni, Some("4X FDR,latency=1us")),
        on_link(32768, Direction::Uni, Some("4X FDR,latency=1us")),
        // 4 x 25.78125 Gb/s in 64b/66b are 100 Gb/s each way; of 98.037, 50.180 are 51.2 %.
        on_link(32768, Direction::BiOne, Some("4X EDR")),
        // The share is not limited to 100 %: 50.180 of 31.372 Gb/s.
        lossy,
        on_link(65536, Direction::Uni, None),
    ];
    let text = tables(&points, &[imitating()], Unit::GbPerS).unwrap();
    assert_golden(&text, "links.txt");
    assert_narrow(&points, &[imitating()]);
    assert!(!tables(&points, &[], Unit::GbPerS).unwrap().contains("of link"), "on nothing known");
}

#[test]
fn unstable_points_are_named_by_what_tells_them_apart() {
    let marked = |size: u64, service: &str| {
        let mut point = latency(size, 900);
        point.axes.insert("service".to_owned(), json!(service));
        point.unstable = Some("it shifted".to_owned());
        point
    };
    let points = [latency(4, 820), marked(8, "RC"), latency(16, 820)];
    let text = tables(&points, &[], Unit::GbPerS).unwrap();
    assert!(text.contains("   rc-latency (size_bytes 8): it shifted\n"), "{text}");
    let points = [latency(4, 820), marked(8, "RC"), marked(8, "UC"), marked(16, "UC"), marked(64, "UC")];
    let text = tables(&points, &[], Unit::GbPerS).unwrap();
    assert!(
        text.ends_with("   rc-latency (4 points: service RC, UC; size_bytes 8..64): it shifted\n"),
        "{text}"
    );
    let each = |size: u64| Point { unstable: Some(format!("it shifted at {size} ns")), ..marked(size, "RC") };
    let many: Vec<Point> = (1..=13).map(each).collect();
    let text = tables(&many, &[], Unit::GbPerS).unwrap();
    let line = "   rc-latency (13 points: size_bytes 1..13): for example, it shifted at 1 ns\n";
    assert!(text.ends_with(line), "reasons that differ in numbers have one cause: {text}");
    let elsewhere = |name: &str| Point { experiment: name.to_owned(), ..marked(8, "RC") };
    let text = tables(&[elsewhere("one"), elsewhere("two")], &[], Unit::GbPerS).unwrap();
    assert!(text.ends_with("   2 points of one, two: it shifted\n"), "{text}");
    let cause = |word: &str| Point { unstable: Some(format!("because of {word}")), ..marked(8, "RC") };
    let many: Vec<Point> = ('a'..='k').map(|word| cause(&word.to_string())).collect();
    let text = tables(&many, &[], Unit::GbPerS).unwrap();
    assert!(text.ends_with("   and 3 more, each with its reason in the record\n"), "{text}");
}

/// The points of a plan with two services, three repetitions each, of which one is missing.
fn repeated() -> Vec<Point> {
    let of = |service: &str, size: u64, repetition: u32, p50_ns: u64| {
        let mut point = Point { repetition, ..latency(size, p50_ns) };
        point.axes.insert("service".to_owned(), json!(service));
        point
    };
    let mut points = Vec::new();
    for (repetition, p50_ns) in (0..).zip([900, 700, 800]) {
        points.push(of("RC", 4, repetition, p50_ns));
        points.push(of("UD", 4, repetition, p50_ns + 50));
        points.push(of("RC", 1024, repetition, p50_ns + 1000));
    }
    points[5].unstable = Some("it shifted".to_owned());
    let mut failed = of("UD", 1024, 0, 100);
    failed.latency = None;
    failed.status = Status::Failed { error: "no answer".to_owned() };
    points.push(failed);
    points.extend([4, 8].map(|size| not_measured(size, "FDR", "no link")));
    points
}

#[test]
fn a_summary_has_medians_and_an_axis_that_varies_is_a_column() {
    let mut summary = Summary::new(PATTERNS, Unit::GbPerS, Some(80)).unwrap();
    repeated().iter().for_each(|point| summary.see(point));
    assert_golden(&folded(&summary.finish(&[]), 80), "summary.txt");
    assert!(Summary::new(PATTERNS, Unit::Us, None).is_err());
}

#[test]
fn a_long_summary_says_where_the_rest_is() {
    let mut summary = Summary::new(PATTERNS, Unit::GbPerS, None).unwrap();
    (1..=50).for_each(|size| summary.see(&latency(size, 900)));
    let text = summary.finish(&[]);
    assert!(text.contains(" and 10 more rows: the report has them"), "{text}");
    assert!(text.lines().count() < 50, "{text}");
}

#[test]
fn a_narrow_page_leaves_out_what_matters_less_and_says_so() {
    let text = super::tables(known(&[latency(4, 820)]), Unit::GbPerS, Some(80)).unwrap();
    assert!(
        text.contains("\n not shown for lack of room: stdev[us]; a wider terminal shows them\n"),
        "{text}"
    );
    let rows = text.lines().filter(|line| line.contains("[us]") || line.contains("1000"));
    assert!(rows.clone().count() > 1 && rows.clone().all(|line| line.len() <= 80), "{text}");
    let wide = super::tables(known(&[latency(4, 820)]), Unit::GbPerS, Some(120)).unwrap();
    assert!(wide.contains("stdev[us]") && !wide.contains("for lack of room"), "{wide}");
}

#[test]
fn a_point_that_a_signal_has_cut_is_marked() {
    let text = tables(&[Point { cut: true, ..latency(4, 820) }], &[], Unit::GbPerS).unwrap();
    assert!(text.contains("  cut\n") && text.contains("\n cut: a signal ended the point early"), "{text}");
}

#[test]
fn points_with_one_reason_take_one_line() {
    let no_link = "softdev0 has no link";
    let mut points: Vec<Point> =
        [4, 8, 16, 32, 64].map(|size| not_measured(size, "native", "too small")).into();
    points.push(latency(128, 900));
    points.extend([256, 512].map(|size| not_measured(size, "native", no_link)));
    points.extend([4, 8].map(|size| not_measured(size, "FDR", no_link)));
    points.push(not_measured(4, "QDR", "something else"));
    let text = tables(&points, &[], Unit::GbPerS).unwrap();
    assert_golden(&text, "not_measured.txt");
}

#[test]
fn a_line_is_printed_as_soon_as_its_point_ends() {
    let mut stream = Stream::new(PATTERNS, Unit::GbPerS, None).unwrap();
    assert!(stream.line(&latency(4, 820)).lines().count() > 1, "the first row comes with its headers");
    assert_eq!(stream.line(&latency(8, 830)).lines().count(), 1);
    assert_eq!(stream.line(&not_measured(16, "native", "why")), "");
    assert_eq!(stream.line(&latency(32, 830)).lines().count(), 2);
    assert_eq!(stream.finish(), "");
}

#[test]
fn statistics_of_a_histogram_are_marked_and_explained() {
    let mut point = latency(4, 820);
    point.latency.as_mut().unwrap().resolution = Some(0.0005);
    let text = tables(&[point], &[], Unit::GbPerS).unwrap();
    assert!(text.contains("  ~\n"), "{text}");
    assert!(text.ends_with("percentiles are exact to 0.05 % of their value\n"), "{text}");
}

#[test]
fn a_record_cannot_drive_the_terminal() {
    let point =
        Point { status: Status::Failed { error: "\u{1b}[2Jgone".to_owned() }, ..point("rc\u{7}", 4, "x") };
    let text = tables(&[point], &[], Unit::GbPerS).unwrap();
    assert!(!text.contains(['\u{1b}', '\u{7}']), "{text:?}");
}

#[test]
fn findings_are_answered_below_the_tables() {
    let finding = |json: serde_json::Value| serde_json::from_value::<Finding>(json).unwrap();
    let change = finding(json!({
        "kind": "change", "claim": "Large messages take longer\u{1b}[2J", "published": "0.82 to 2.84 us",
        "source": "A paper", "experiments": ["rc-latency"], "of": {"size_bytes": 4096}, "against": {"size_bytes": 4},
        "each": ["service"], "unit": "us", "holds": "> 200 %",
    }));
    let absent = finding(json!({
        "kind": "value", "claim": "An event takes longer than a poll, which is a claim that is so long that it does not fit \
                                   into a line of a terminal and goes on in the next",
        "experiments": ["rc-latency"], "where": {"poll": "event"}, "holds": "> 2 us",
    }));
    let mut shifted = latency(4096, 2840);
    shifted.unstable = Some("it shifted".to_owned());
    let run = |findings: Vec<Finding>| -> Run {
        let run = json!({
            "schema_version": 1, "program": {"name": "rdmascope", "version": "0"}, "command": [], "started": "",
            "title": "", "quick": false, "plan": {}, "points_planned": 0, "figures": [], "findings": findings,
            "devices": [], "environments": [], "overheads": [], "warnings": [],
        });
        serde_json::from_value(run).unwrap()
    };
    let text = findings(&run(vec![change, absent]), known(&[latency(4, 820), shifted]), true);
    assert_golden(&text, "findings.txt");
    assert_eq!(findings(&run(Vec::new()), known(&[latency(4, 820)]), true), "");
    // Without all cases, those are named that differ from the others.
    let slow = finding(json!({
        "kind": "value", "claim": "Latencies are below 3 us", "experiments": ["rc-latency"], "each": ["size_bytes"],
        "quantity": "latency.p50_ns", "unit": "us", "holds": "< 3 us",
    }));
    let sizes = [4, 64, 1024, 4096];
    let points = |slow: usize| -> Vec<Point> {
        let p50_ns = |at: usize| if at < slow { 9000 } else { 820 };
        sizes.iter().enumerate().map(|(at, size)| latency(*size, p50_ns(at))).collect()
    };
    let told = |slow_ones: usize| findings(&run(vec![slow.clone()]), known(&points(slow_ones)), false);
    let named = |slow_ones: usize| told(slow_ones).matches("9 us").count();
    assert_eq!([0, 1, 2, 3, 4].map(named), [0, 1, 2, 0, 0], "{}", told(2));
}

#[test]
fn a_claim_about_networks_is_not_judged_without_one_whatever_its_number() {
    let never = json!({
        "kind": "crossover", "claim": "UC comes to take longer", "scope": "network", "experiments": ["rc-latency"],
        "x": "size_bytes", "of": {"service": "UC"}, "against": {"service": "RC"}, "holds": "<= 64",
    });
    let softdev = json!({
        "rank": 0, "name": "softdev0", "provider": "softdev (software device in user space)", "attributes": {},
    });
    let run: Run = serde_json::from_value(json!({
        "schema_version": 1, "program": {"name": "rdmascope", "version": "0"}, "command": [], "started": "",
        "title": "", "quick": false, "plan": {}, "points_planned": 0, "figures": [], "findings": [never],
        "devices": [softdev], "environments": [], "overheads": [], "warnings": [],
    }))
    .unwrap();
    let mut points = [latency(4, 2000), latency(64, 2100), latency(4, 820), latency(64, 830)];
    for point in &mut points[2..] {
        point.axes.insert("service".to_owned(), json!("UC"));
    }
    let text = findings(&run, known(&points), true);
    assert!(
        text.contains("    not judged (would be not shown: the series do not cross); not above"),
        "{text}"
    );
}

#[test]
fn what_slower_modes_cost_is_a_line_for_each_case() {
    let figure: Figure = serde_json::from_value(json!({
        "kind": "costs", "title": "What the slower rate costs", "row": [
            {
                "what": "Ping-pong", "level": "Verbs", "experiments": ["lat"], "modes": ["signal_rate"],
                "each": ["size_bytes"], "y": "latency.p50_ns", "unit": "us", "published": "x 1.2 at 4 B (a paper)",
            },
            {"what": "Nothing", "experiments": ["gone"], "modes": ["signal_rate"], "y": "latency.p50_ns"},
        ],
    }))
    .unwrap();
    let at = |rate: &str, size, p50_ns| {
        let mut point = latency(size, p50_ns);
        point.experiment = "lat".to_owned();
        point.axes.insert("signal_rate".to_owned(), json!(rate));
        point
    };
    let mut points = [at("FDR", 4, 820), at("SDR", 4, 1640), at("FDR", 1024, 1820)].to_vec();
    points[1].unstable = Some("clock <moved>\u{1b}[2J".to_owned());
    points
        .push(Point { experiment: "lat".to_owned(), ..not_measured(1024, "SDR", "cannot set \u{1b}[2JSDR") });
    let other = Figure::new(FigureKind::Table, "Another");
    assert_golden(&costs(&[other.clone(), figure], known(&points)), "costs.txt");
    assert_eq!(costs(&[other], known(&points)), "");
}

/// A point of the pattern one-way, as softdev might give it.
fn one_way(size: u64, clocks: serde_json::Value) -> Point {
    let kind = |kind, p50_ns| {
        let mut latency = latency(size, p50_ns).latency.unwrap();
        latency.kind = kind;
        latency.count = 200_000;
        latency.share_above = BTreeMap::from([("10000".to_owned(), 0.000_595)]);
        Timed { latency, samples: None, histogram: None }
    };
    let mut point = Point { pattern: "one-way".to_owned(), ..point("busy", size, "native") };
    point.kinds = vec![
        kind(LatencyKind::OneWay, 1251),
        kind(LatencyKind::Completion, 1190),
        kind(LatencyKind::OneWaySend, 726),
    ];
    point.latency = Some(point.kinds[0].latency.clone());
    let known = json!({
        "clocks": clocks, "completed_first_share": 0.5312,
        "gaps": [
            {"rank": 0, "threshold_ns": 1000, "count": 3, "total_ns": 9_300, "longest_ns": 4_100},
            {"rank": 1, "threshold_ns": 1000, "count": 12_345, "total_ns": 88_000_000, "longest_ns": 51_900},
        ],
        "largest": {"message": 4711, "ns": 53_100, "gaps_ns": {"0": 0, "1": 51_900}}, "above_explained": {"10000": 117},
    });
    let mut known: OneWay = serde_json::from_value(known).unwrap();
    known.first = Some(latency(size, 4000).latency.unwrap());
    point.one_way = Some(known);
    point
}

/// A point of fan-out, as softdev might give it; a fetch has the readers' times, too.
fn fan_out(peers: u64, size: u64, operation: &str) -> Point {
    let of = |kind, count, p50_ns| {
        let latency = latency(size, p50_ns).latency.unwrap();
        Latency { kind, count, mavericks: Mavericks { count: 7, ..latency.mavericks.clone() }, ..latency }
    };
    let mut point = Point { pattern: "fan-out".to_owned(), ..stream(size, Direction::Uni) };
    point.axes.extend([("peers".to_owned(), json!(peers)), ("operation".to_owned(), json!(operation))]);
    point.latency = Some(of(LatencyKind::FanHalf, 1000, 900 * peers));
    if operation == "read" {
        let kinds = [of(LatencyKind::Fan, 1000, 1800 * peers), of(LatencyKind::Rtt, 1000 * peers, 1900)];
        point.latency = Some(kinds[0].clone());
        point.kinds = kinds.map(|latency| Timed { latency, samples: None, histogram: None }).into();
    }
    point
}

#[test]
fn rounds_of_one_to_n_have_a_reading_for_each_message() {
    let mut unstable = fan_out(15, 1024, "send");
    unstable.unstable = Some("oversubscribed: 16 ranks share 2 CPUs".to_owned());
    let failed = Point {
        status: Status::Failed { error: "retry counter exceeded".to_owned() },
        latency: None,
        throughput: None,
        ..fan_out(15, 2048, "send")
    };
    let absent = Point {
        status: Status::NotMeasured { reason: "too small".to_owned() },
        latency: None,
        throughput: None,
        ..fan_out(15, 4096, "send")
    };
    let fetches = [fan_out(1, 8, "read"), fan_out(15, 8, "read")];
    let points = [fan_out(1, 1024, "send"), unstable, failed, absent].into_iter().chain(fetches);
    let points: Vec<Point> = points.collect();
    let text = tables(&points, &[], Unit::GbPerS).unwrap();
    assert_golden(&text, "fan_out.txt");
    assert_narrow(&points, &[]);
}

/// A point of several pairs, the last of which is slower.
fn pairs(pairs: u64, size: u64, traffic: &str) -> Point {
    let mut point = Point {
        pattern: "pairs".to_owned(),
        fairness: (pairs > 1).then_some(Fairness { jain: 0.98765, least_share: 0.75 }),
        ends: (0..pairs).map(|pair| End { rank: 2 * pair as u32, ..End::default() }).collect(),
        ..latency(size, 900 * pairs)
    };
    point.axes.extend([("pairs".to_owned(), json!(pairs)), ("traffic".to_owned(), json!(traffic))]);
    if traffic == "stream" {
        let of = |share: f64, direction| {
            let messages_per_s = 1e7 * share;
            Some(Throughput { bytes_per_s: messages_per_s * size as f64, messages_per_s, direction })
        };
        (point.latency, point.throughput) = (None, of(1.0, Direction::Pairs));
        let least = 0.75 / (pairs as f64 - 0.25);
        let most = (1.0 - least) / (pairs as f64 - 1.0).max(1.0);
        point.ends.iter_mut().for_each(|end| end.throughput = of(most, Direction::Uni));
        point.ends.last_mut().unwrap().throughput = of(least, Direction::Uni);
    } else if pairs > 1 {
        let skew = latency(size, 120).latency.unwrap();
        point.ends[0].start_skew = Some(Latency { kind: LatencyKind::StartSkew, ..skew });
    }
    point
}

#[test]
fn pairs_share_a_table_over_how_many_they_are() {
    let mut unstable = pairs(8, 256, "ping-pong");
    unstable.unstable = Some("oversubscribed: 16 ranks share 2 CPUs".to_owned());
    let failed = Point {
        status: Status::Failed { error: "retry counter exceeded".to_owned() },
        latency: None,
        ..pairs(8, 512, "ping-pong")
    };
    let reason = "the pairs hardly ever sent at the same time".to_owned();
    let absent =
        Point { status: Status::NotMeasured { reason }, throughput: None, ..pairs(8, 1024, "stream") };
    let streams = [1, 2].map(|count| pairs(count, 1024, "stream"));
    let latencies = [pairs(1, 256, "ping-pong"), pairs(2, 256, "ping-pong"), unstable, failed];
    let points: Vec<Point> = latencies.into_iter().chain(streams).chain([absent]).collect();
    let text = tables(&points, &[], Unit::GbPerS).unwrap();
    assert_golden(&text, "pairs.txt");
    assert_narrow(&points, &[]);
}

/// A point of messages at a set rate, with a number of loaders.
fn open_loop(load: &str, loaders: u64, rate_hz: u64) -> Point {
    let mut point = latency(64, 1000 * (1 + loaders));
    let of = point.latency.take().unwrap();
    let count = of.count;
    let kinds = [LatencyKind::Response, LatencyKind::Rtt, LatencyKind::Lateness];
    let timed =
        kinds.map(|kind| Timed { latency: Latency { kind, ..of.clone() }, samples: None, histogram: None });
    let messages_per_s = 1e6 * loaders as f64;
    let carried =
        Throughput { bytes_per_s: messages_per_s * 4096.0, messages_per_s, direction: Direction::Load };
    point.axes.extend([
        ("load".to_owned(), json!(load)),
        ("load_bytes".to_owned(), json!(4096)),
        ("loaders".to_owned(), json!(loaders)),
        ("rate_hz".to_owned(), json!(rate_hz)),
    ]);
    Point {
        pattern: "open-loop".to_owned(),
        latency: Some(timed[0].latency.clone()),
        kinds: timed.into(),
        throughput: (loaders > 0).then_some(carried),
        fairness: (loaders > 1).then_some(Fairness { jain: 0.98765, least_share: 0.75 }),
        counters: [("messages_late".to_owned(), count / 200 * loaders)].into(),
        ..point
    }
}

#[test]
fn rates_and_loads_share_a_table() {
    let mut late = open_loop("incast", 2, 1_000_000);
    late.unstable = Some("rank 0: the rate of 1000000/s was not held".to_owned());
    let failed = Point {
        status: Status::Failed { error: "retry counter exceeded".to_owned() },
        latency: None,
        kinds: Vec::new(),
        throughput: None,
        ..open_loop("beside", 4, 10_000)
    };
    let mut linked = open_loop("outcast", 2, 10_000);
    linked.link_model = Some("4X FDR".to_owned());
    linked.axes.insert("mtu_bytes".to_owned(), json!(4096));
    let points = [
        open_loop("incast", 0, 1000),
        open_loop("incast", 1, 1000),
        late,
        open_loop("outcast", 2, 10_000),
        failed,
        linked,
    ];
    let attributes = json!({ "link_layer": "Ethernet", "gid_type": "RoCE v2", "gid": "fe80::1" });
    let device = json!({ "rank": 0, "name": "softdev0", "provider": "softdev", "attributes": attributes });
    let devices = [serde_json::from_value(device).unwrap()];
    let text = tables(&points, &devices, Unit::GbPerS).unwrap();
    assert_golden(&text, "open_loop.txt");
    assert_narrow(&points, &devices);
}

/// A point of samples at a fixed rate.
fn pipeline(rate_hz: u64, values: u64) -> Point {
    let mut point = latency(24 + 8 * values, rate_hz);
    let of = point.latency.take().unwrap();
    let kinds = [LatencyKind::Arrival, LatencyKind::OneWay, LatencyKind::Lateness];
    let timed =
        kinds.map(|kind| Timed { latency: Latency { kind, ..of.clone() }, samples: None, histogram: None });
    let timer = TimerAlone {
        steps: rate_hz,
        missed: rate_hz / 500,
        rate_hz: 1.0,
        away_share: None,
        lateness: of.clone(),
    };
    let pipeline = Pipeline {
        rate_hz: 1.0,
        achieved_hz: 0.99 * rate_hz as f64,
        missed_waiting: 1,
        inline: None,
        timer,
        sinks: vec![],
    };
    point.axes.extend([("rate_hz".to_owned(), json!(rate_hz)), ("values".to_owned(), json!(values))]);
    let counters = [
        ("messages_lost", 1),
        ("messages_not_transmitted", 2),
        ("messages_received", of.count),
        ("messages_refused", 2),
        ("steps_missed", of.count / 100),
    ];
    Point {
        pattern: "pipeline".to_owned(),
        latency: Some(timed[0].latency.clone()),
        kinds: timed.into(),
        pipeline: Some(pipeline),
        counters: counters.map(|(name, count)| (name.to_owned(), count)).into(),
        ..point
    }
}

#[test]
fn rates_and_values_share_a_table_with_what_became_of_each_step() {
    let mut kept = pipeline(100_000, 8);
    let sink_report = |rank: u32, path: Option<&str>| SinkReport {
        rank,
        format: "csv".to_owned(),
        path: path.map(str::to_owned),
        handing_over_ns: 7.6,
        samples: 99_000,
        missing: 0,
        bytes: 18_000_000,
        write_ns: 40_000_000,
        error: None,
    };
    kept.pipeline.as_mut().unwrap().sinks =
        vec![sink_report(0, None), sink_report(1, Some("/tmp/logs/a_output.csv"))];
    kept.unstable = Some("2 of 3 steps were missed: the generator was late".to_owned());
    kept.ends = vec![serde_json::from_value(json!({"rank": 1, "host": {"Udp.RcvbufErrors": 135}})).unwrap()];
    let failed = Point {
        status: Status::Failed { error: "nothing arrived".to_owned() },
        latency: None,
        kinds: Vec::new(),
        ..pipeline(1_000_000, 64)
    };
    let points = [pipeline(100, 1), kept, failed];
    let text = tables(&points, &[], Unit::GbPerS).unwrap();
    assert_golden(&text, "pipeline.txt");
    assert_narrow(&points, &[]);
}

#[test]
fn a_banner_says_what_a_library_took() {
    let banner = |transport: Option<&str>| {
        let mut point = pipeline(100, 1);
        let end = json!({"rank": 0, "library": "MPICH 4.0.2", "transport": transport});
        point.ends = vec![serde_json::from_value(end).unwrap()];
        tables(&[point], &[], Unit::GbPerS).unwrap()
    };
    assert!(banner(Some("verbs softdev0:1")).contains(", MPICH 4.0.2 over verbs softdev0:1"));
    assert!(banner(Some("transport not known")).contains(", MPICH 4.0.2, transport not known"));
    assert!(!banner(None).contains("MPICH"));
}

#[test]
fn shares_of_steps_are_of_all_that_were_due() {
    let point = pipeline(100_000, 8);
    let steps = measure::record::steps(&point.counters).unwrap()[0] as f64;
    let missed = point.counters["steps_missed"] as f64;
    for (share, number) in [
        ("missed_share", missed / steps),
        ("busy_share", (missed - 1.0) / steps),
        ("lost_share", 1.0 / steps),
        ("alone_share", 0.002),
    ] {
        let measured =
            PATTERNS.find_at(&point, &format!("pipeline.{share}")).unwrap().measured(&point).unwrap();
        assert_eq!((measured.estimate.value, measured.has_interval), (number, true), "{share}");
        assert!(measured.samples.is_some(), "{share}");
    }
}

/// A point in an environment, with the outcomes of its techniques on the ranks.
fn arranged(size: u64, environment: &str, conditions: &serde_json::Value) -> Point {
    let mut point = latency(size, 1000);
    point.axes.insert("environment".to_owned(), json!(environment));
    point.conditions = serde_json::from_value(conditions.clone()).unwrap();
    point
}

#[test]
fn one_way_points_have_a_line_for_each_kind_and_what_explains_them() {
    let two = json!({"kind": "two", "offset_ns": -1234.5, "bound_ns": 83.2, "drift_ppm": [-0.2, 0.15], "exchanges": 4000});
    let mut shifted = one_way(64, json!({"kind": "one"}));
    shifted.unstable = Some("it shifted".to_owned());
    shifted.one_way.as_mut().unwrap().largest.as_mut().unwrap().gaps_ns.clear();
    let mut stranger = one_way(8, two);
    stranger.one_way.as_mut().unwrap().negative = 2;
    for kind in [0, 2] {
        let bounds = BTreeMap::from([("10000".to_owned(), [0.000_585, 0.000_610])]);
        stranger.kinds[kind].latency.share_above_bounds = bounds;
    }
    stranger.one_way.as_mut().unwrap().largest.as_mut().unwrap().gaps_ns = BTreeMap::from([(0, 0), (1, 0)]);
    let points = [one_way(32, json!({"kind": "one"})), shifted, stranger];
    let text = tables(&points, &[], Unit::GbPerS).unwrap();
    assert_golden(&text, "one_way.txt");
    assert_narrow(&points, &[]);
}

#[test]
fn what_became_of_environments_is_said_once_below_the_tables() {
    let own = json!([
        {"rank": 0, "technique": "governor", "asked": "performance", "outcome": "applied", "before": "powersave x 4"},
        {"rank": 0, "technique": "memory", "asked": "locked", "outcome": "not_permitted", "reason": "raise\u{1b} the limit"},
        {"rank": 1, "technique": "governor", "asked": "performance", "outcome": "applied", "before": "powersave x 4"},
        {"rank": 1, "technique": "memory", "asked": "locked", "outcome": "applied", "before": "not locked"},
    ]);
    let points = [arranged(4, "own", &own), arranged(8, "own", &own), arranged(4, "as_is", &json!([]))];
    let text = tables(&points, &[], Unit::GbPerS).unwrap();
    let (_, said) = text.split_once("\n\n environment ").unwrap();
    let expected = "own:\n   governor performance: applied, powersave x 4 before (ranks 0, 1)\n   memory locked: not permitted: \
                    raise the limit (rank 0)\n   memory locked: applied, not locked before (rank 1)\n";
    assert_eq!(said, expected);
    assert!(
        !tables(&points[2..], &[], Unit::GbPerS).unwrap().contains("\n\n environment "),
        "no technique was asked for"
    );
}
