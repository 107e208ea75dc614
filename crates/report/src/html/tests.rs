use measure::figure::{Figure, FigureKind, Reference, ReferenceTable, Unit};
use serde_json::json;

use super::*;
use crate::series_table::SeriesTable;

fn run() -> Run {
    let value = json!({
        "schema_version": 1, "program": {"name": "rdmascope", "version": "0.1.0"}, "command": ["rdmascope", "run", "a b"],
        "started": "2026-11-20T09:14:03Z", "title": "t", "plan": {}, "points_planned": 3,
    });
    serde_json::from_value(value).unwrap()
}

fn latency_point(id: u64, rate: &str, p50_ns: u64) -> Point {
    let value = json!({
        "id": id, "experiment": "e", "pattern": "ping-pong", "status": "measured", "repetition": id, "wall_ns": 1,
        "axes": {"size_bytes": 4, "signal_rate": rate},
        "latency": {
            "kind": "rtt_half", "count": 3, "min_ns": 800, "p10_ns": 810, "p50_ns": p50_ns, "p90_ns": 900, "p99_ns": 950,
            "p999_ns": 960, "max_ns": 1000, "mean_ns": 830.0, "mavericks": {"rule": "> 2 x mean", "count": 0},
        },
    });
    serde_json::from_value(value).unwrap()
}

fn figure() -> Figure {
    let value = json!({
        "kind": "table", "title": "Table 2", "experiments": ["e"], "x": "size_bytes", "y": "latency.p50_ns", "unit": "us",
        "series": ["signal_rate"],
        "reference": {"file": "f.csv", "source": "A paper", "table": {
            "columns": ["size_bytes", "sdr_us", "fdr_us"], "rows": [["4", "0.92", "0.82"], ["8", "NA", "0.83"]],
        }},
    });
    serde_json::from_value(value).unwrap()
}

fn points() -> Vec<Point> {
    let mut refused = latency_point(9, "SDR", 1);
    refused.status = measure::record::Status::NotMeasured { reason: "cannot set <SDR>".to_owned() };
    refused.latency = None;
    vec![latency_point(0, "FDR", 820), latency_point(1, "FDR", 840), refused]
}

fn rendered(run: &Run, points: &[Point]) -> String {
    page(run, points, &|_: &str| Err("gone".to_owned()))
}

fn page(run: &Run, points: &[Point], samples: &dyn SampleSource) -> String {
    let mut out = Vec::new();
    write(run, points, bench::PATTERNS, samples, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

#[test]
fn a_table_sets_measured_published_and_ratio_side_by_side() {
    let page = rendered(&Run { figures: vec![figure()], ..run() }, &points());
    let table = page.split("<table class=\"numbers\">").nth(1).unwrap().split("</section>").next().unwrap();
    let rows: Vec<&str> = table.lines().filter(|line| line.starts_with("<tr><th scope=\"row\">")).collect();
    assert_eq!(
        rows,
        [
            "<tr><th scope=\"row\">4</th><td><a href=\"#histogram=0\" \
             title=\"10th to 90th percentile within a run: 0.810 to 0.900 us\">\
             0.830</a></td><td class=\"spread\">0.820..0.840</td><td class=\"published\">0.92</td>\
             <td class=\"published\">0.82</td><td class=\"ratio\">1.01</td></tr>",
            "<tr><th scope=\"row\">8</th><td class=\"absent\">–</td><td class=\"spread\"></td>\
             <td class=\"published\">NA</td><td class=\"published\">0.83</td><td class=\"ratio absent\">–</td></tr>",
        ]
    );
    assert!(table.contains("<strong>Not measured: SDR.</strong> cannot set &lt;SDR&gt;"), "{table}");
    assert!(table.contains("Published numbers: A paper."), "{table}");
    assert!(table.contains(">measured [us]</th>") && table.contains(">published [us]</th>"), "{table}");
}

#[test]
fn numbers_that_are_derived_from_published_ones_are_called_so() {
    let mut derived = figure();
    derived.reference.as_mut().unwrap().derived = true;
    let drawn = Figure { kind: FigureKind::Lines, ..derived.clone() };
    let page = rendered(&Run { figures: vec![derived, drawn], ..run() }, &points());
    let figures = page.split("Derived from: A paper.").count() - 1;
    assert_eq!(figures, 2);
    assert!(page.contains(">derived [us]</th>") && page.contains(">measured / derived</th>"));
    assert!(page.contains("Ratio: measured divided by derived."));
    assert!(page.contains("Dashed or hatched: derived.") && !page.contains("Published numbers: A paper"));
}

#[test]
fn what_a_call_costs_has_its_own_decimals() {
    let costing = |id: u64, step: &str, ns: f64| {
        let mut point = latency_point(id, "native", 202);
        let cost = json!({"step": step, "calls": 64, "ns": ns, "stamp_ns": 14.5});
        point.cost = serde_json::from_value(cost).unwrap();
        point.axes.insert("step".to_owned(), step.into());
        (point.repetition, point.experiment) = (0, "e".to_owned());
        point
    };
    let x = Some("step".to_owned());
    let y = Some("cost.ns".to_owned());
    let figure = Figure { x, y, unit: None, reference: None, ..figure() };
    let points = [costing(0, "poll_empty", 3.15625), costing(1, "post_send", 190.0)];
    let page = rendered(&Run { figures: vec![figure], ..run() }, &points);
    assert!(page.contains("<p class=\"what\">Cost of a call [ns]</p>"), "{page}");
    let row = |step: &str, id: u64, ns: &str| {
        format!("<th scope=\"row\">{step}</th><td><a href=\"#histogram={id}\">{ns}</a></td>")
    };
    assert!(
        page.contains(&row("poll_empty", 0, "3.16")) && page.contains(&row("post_send", 1, "190.00")),
        "{page}"
    );
}

#[test]
fn a_count_stands_beside_an_extreme() {
    let figure = Figure { y: Some("latency.max_ns".to_owned()), reference: None, ..figure() };
    let mut points = points();
    points[1].latency.as_mut().unwrap().max_ns = 3000;
    let cells = |points: &[Point]| {
        let page = rendered(&Run { figures: vec![figure.clone()], ..run() }, points);
        let row = page.split("<tr><th scope=\"row\">4</th>").nth(1).unwrap();
        row.split("</tr>").next().unwrap().to_owned()
    };
    let two = "<td><a href=\"#histogram=0\">2.00</a></td><td class=\"spread\">1.00..3.00, n 6 in 2 repetitions</td>";
    assert_eq!(cells(&points), two);
    let one = "<td><a href=\"#histogram=0\">1.00</a></td><td class=\"spread\">n 3</td>";
    assert_eq!(cells(&points[..1]), one);
}

/// A run on softdev with a link model: 82 B of headers around a packet's payload.
fn on_links(figure: Figure) -> Run {
    let attributes = json!({"link_layer": "Ethernet", "gid_type": "RoCE v2", "gid": "fe80::1"});
    let device = json!({"rank": 0, "name": "softdev0", "provider": "softdev", "attributes": attributes});
    Run { devices: vec![serde_json::from_value(device).unwrap()], figures: vec![figure], ..run() }
}

/// A stream of 4096 or 64 B at a rate in Gb/s.
fn stream_point(id: u64, size: u64, service: &str, link: Option<&str>, gbps: f64) -> Point {
    let bytes_per_s = gbps * 1.25e8;
    let mut value = json!({
        "id": id, "experiment": "e", "pattern": "stream", "status": "measured", "repetition": 0, "wall_ns": 1,
        "axes": {"size_bytes": size, "service": service, "operation": "send", "mtu_bytes": 4096, "link": link.unwrap_or("none")},
        "throughput": {"bytes_per_s": bytes_per_s, "messages_per_s": bytes_per_s / size as f64, "direction": "uni"},
    });
    if let Some(link) = link {
        value["link_model"] = json!(link);
    }
    serde_json::from_value(value).unwrap()
}

fn throughputs(kind: &str) -> Figure {
    let value = json!({
        "kind": kind, "title": "Throughput", "experiments": ["e"], "x": "size_bytes", "y": "throughput.bytes_per_s",
        "unit": "Gb/s", "series": ["service", "link"],
    });
    serde_json::from_value(value).unwrap()
}

#[test]
fn throughputs_stand_beside_what_their_link_carries() {
    let points = [
        stream_point(0, 64, "RC", Some("4X SDR"), 1.0),
        stream_point(1, 4096, "RC", Some("4X SDR"), 7.0),
        stream_point(2, 4096, "RC", None, 90.0),
    ];
    let page = rendered(&on_links(throughputs("table")), &points);
    let table = page.split("<table class=\"numbers\">").nth(1).unwrap().split("</section>").next().unwrap();
    let rows: Vec<&str> = table.lines().filter(|line| line.starts_with("<tr><th scope=\"row\">")).collect();
    // Of 8 Gb/s, 64 of 146 B are 3.507 Gb/s, of which 1 is 28.5 %; 4096 of 4178 B are 7.843 Gb/s,
    // of which 7 are 89.3 %.
    assert_eq!(
        rows,
        [
            "<tr><th scope=\"row\">64</th><td><a href=\"#histogram=0\">1.00</a></td><td class=\"absent\">–</td>\
             <td class=\"ratio\" title=\"link limit 3.507 Gb/s\">28.5</td></tr>",
            "<tr><th scope=\"row\">4096</th><td><a href=\"#histogram=1\">7.00</a></td><td><a href=\"#histogram=2\">90.00</a></td>\
             <td class=\"ratio\" title=\"link limit 7.843 Gb/s\">89.3</td></tr>",
        ]
    );
    let head = "<th scope=\"colgroup\" colspan=\"1\" class=\"group ratio\">measured / link limit [%]</th>";
    assert!(table.contains(head), "{table}");
    let note = "Link limit</a>: 4X SDR: 8.00 Gb/s, 82 B around each packet's payload.</li>";
    assert!(table.contains(note), "{table}");
    assert!(page.contains("<dt>link limit</dt>"));
    let page = rendered(&on_links(throughputs("table")), &points[2..]);
    assert!(!page.contains("<dt>link limit</dt>") && !page.contains("Link limit</a>"), "memory has no link");
}

#[test]
fn a_chart_has_a_line_for_what_each_link_carries() {
    let figure = throughputs("lines");
    let lines = |points: &[Point]| {
        let devices = on_links(figure.clone()).devices;
        let points = Points { devices: &devices, ..crate::known(points) };
        let series_table = SeriesTable::with_links(&figure, points).unwrap();
        let chart = serde_json::to_value(chart::Chart::new("c".to_owned(), &figure, &series_table)).unwrap();
        let series = chart["series"].as_array().unwrap().iter().filter(|series| series["at_best"] == true);
        series.map(|series| (series["name"].to_string(), series["x"].to_string())).collect::<Vec<_>>()
    };
    let line = |name: &str, x: &str| (format!("\"{name}\""), x.to_owned());
    let sdr = Some("4X SDR");
    let fdr = Some("4X FDR");
    let mut points = vec![
        stream_point(0, 64, "RC", sdr, 1.0),
        stream_point(1, 4096, "RC", sdr, 7.0),
        stream_point(2, 4096, "UC", sdr, 7.0),
        stream_point(3, 4096, "RC", fdr, 40.0),
        stream_point(4, 4096, "RC", None, 90.0),
    ];
    let common = [line("limit of 4X SDR", "[64,4096]"), line("limit of 4X FDR", "[4096]")];
    assert_eq!(lines(&points), common, "RC and UC have the same headers");
    points.push(stream_point(5, 64, "UD", sdr, 1.0));
    let apart = [
        line("limit of 4X SDR (RC 4X SDR, UC 4X SDR)", "[64,4096]"),
        line("limit of 4X FDR", "[4096]"),
        line("limit of 4X SDR (UD 4X SDR)", "[64]"),
    ];
    assert_eq!(lines(&points), apart, "UD has more of them");
    assert!(lines(&points[4..5]).is_empty());
}

#[test]
fn many_reasons_are_folded() {
    let shifted = |id: u64| {
        let mut point = latency_point(id, "FDR", 820);
        point.unstable = Some(format!("it shifted at {id} %"));
        point
    };
    let boxed = |points: &[Point]| {
        let page = rendered(&run(), points);
        let list = page
            .split("<h2>Unstable: something disturbed these points, so their numbers may be wrong</h2>")
            .nth(1)
            .unwrap();
        list.split("</div>").next().unwrap().to_owned()
    };
    let points: Vec<Point> = (0..10).map(shifted).collect();
    let list = boxed(&points);
    let (seen, folded) = list
        .split_once("<details><summary>and the same of 9 points more</summary>")
        .expect("reasons that differ in numbers alone are folded");
    assert_eq!((seen.matches("<li>").count(), folded.matches("<li>").count()), (1, 9));
    assert!(seen.contains("it shifted at 0 %") && folded.contains("it shifted at 9 %"), "{list}");
    assert!(!boxed(&points[..1]).contains("<details>"));
    // Other causes have lines of their own.
    let mut points = points;
    points[3].unstable = Some("it was preempted for 3 us".to_owned());
    let list = boxed(&points);
    assert!(list.contains("and the same of 8 points more") && list.contains("preempted"), "{list}");
}

/// The name of a point has the axes that vary in its experiment and those of the rows of its table.
#[test]
fn points_with_a_reason_are_told_from_their_neighbours() {
    let of = |id: u64, endpoint: &str| {
        let mut point = latency_point(id, "FDR", 820);
        point.axes.insert("endpoint".to_owned(), json!(endpoint));
        point.unstable = Some("it shifted".to_owned());
        point
    };
    let apart = rendered(&run(), &[of(0, "nng"), of(1, "zeromq")]);
    assert!(apart.contains(", endpoint nng, ") && apart.contains(", endpoint zeromq, "));
    assert!(!rendered(&run(), &[of(0, "nng"), of(1, "nng")]).contains(", endpoint nng, "));
}

#[test]
fn one_figure_that_cannot_be_drawn_does_not_spoil_the_others() {
    let wrong = Figure { unit: Some(Unit::GbPerS), ..figure() };
    let empty = Figure {
        kind: FigureKind::Lines,
        experiments: vec!["other".to_owned()],
        reference: None,
        ..figure()
    };
    let page = rendered(&Run { figures: vec![wrong, empty, figure()], ..run() }, &points());
    assert!(page.contains("Cannot print latency.p50_ns in Gb/s: it is a time; use ns, us, ms or s"));
    assert!(page.contains("Nothing was measured for this figure."));
    assert!(page.contains("0.830"));
}

#[test]
fn a_run_without_points_or_end_still_has_a_report() {
    let page = rendered(&run(), &[]);
    assert!(page.contains("did not end"));
    assert!(page.contains("<dt>missing: the run ended early</dt><dd>3</dd>"));
    assert!(page.contains("rdmascope run 'a b'"));
}

#[test]
fn samples_that_cannot_be_read_are_a_warning() {
    let mut points = points();
    points[0].ends = serde_json::from_value(json!([{"rank": 0, "samples": "samples/000000-0.u64"}])).unwrap();
    let page = rendered(&run(), &points);
    assert!(page.contains(
        "One file of samples cannot be read, so its histogram is missing: samples/000000-0.u64: gone"
    ));
}

#[test]
fn samples_that_are_not_those_of_the_point_are_a_warning() {
    let mut points = points();
    let path = "samples/000000-0.u64";
    let latency = points[0].latency.clone();
    points[0].ends =
        serde_json::from_value(json!([{"rank": 0, "samples": path, "latency": latency}])).unwrap();
    for (samples, found) in [
        (vec![800, 820, 1000], None),
        (vec![800, 1000], Some("the file has 2 samples and the record says 3")),
        (vec![], Some("the file has 0 samples and the record says 3")),
        (vec![801, 820, 1000], Some("the file has 801 as the smallest in ns and the record says 800")),
        (vec![800, 820, 999], Some("the file has 999 as the largest in ns and the record says 1000")),
    ] {
        let page = page(&run(), &points, &|_: &str| Ok(samples.clone()));
        assert_eq!(page.contains("One file of samples cannot be read"), found.is_some(), "{samples:?}");
        let found =
            found.map(|found| format!("{path}: {found}, so it is not the file of this point; restore it"));
        assert!(found.is_none_or(|found| page.contains(&found)), "{samples:?}");
    }
}

#[test]
fn the_same_record_gives_the_same_bytes() {
    let run = Run { figures: vec![figure()], ..run() };
    assert_eq!(rendered(&run, &points()), rendered(&run, &points()));
}

#[test]
fn findings_stand_before_the_figures_with_their_verdicts() {
    let finding = |json: serde_json::Value| serde_json::from_value(json).unwrap();
    let findings = vec![
        finding(json!({
            "kind": "value", "claim": "Below <1> us", "published": "0.82 us", "source": "A paper", "experiments": ["e"],
            "each": ["signal_rate"], "holds": "< 1 us", "where": {"size_bytes": 4},
        })),
        finding(
            json!({"kind": "value", "claim": "Slow", "experiments": ["e"], "where": {"signal_rate": "FDR"}, "holds": "> 5 us"}),
        ),
    ];
    let mut points = points();
    points[1].unstable = Some("it <moved>".to_owned());
    let page = rendered(&Run { figures: vec![figure()], findings, ..run() }, &points);
    let table = page.split("<table class=\"findings\">").nth(1).unwrap().split("</section>").next().unwrap();
    assert!(page.find("id=\"findings\"") < page.find("id=\"figure-1\""));
    assert!(page.contains("<li><a href=\"#findings\">Findings of the paper</a></li>"));
    for score in [
        "<div class=\"reproduced\"><dt>reproduced</dt><dd>1</dd></div>",
        "<div class=\"contradicted\"><dt>contradicted</dt><dd>1</dd></div>",
        "<div class=\"not-measured\"><dt>not measured</dt><dd>1</dd></div>",
    ] {
        assert!(page.contains(score), "no {score}");
    }
    assert!(table.contains("Below &lt;1&gt; us<small>holds if &lt; 1 us</small></th>"), "{table}");
    assert!(table.contains("0.82 us<small>A paper</small></td>"), "{table}");
    // The cases of a claim stand behind a line that counts them.
    let summary = "<summary><strong class=\"reproduced\">1 reproduced</strong>, \
                   <strong class=\"not-measured\">1 not measured</strong> of 2 cases</summary>";
    assert!(table.contains(summary), "{table}");
    let shown = "<td class=\"reproduced\"><b class=\"case\">FDR</b> <strong>reproduced</strong></td>\
                 <td class=\"reproduced\"><svg class=\"forest\"";
    assert!(table.contains(shown), "{table}");
    let numbers = "</svg><a href=\"#histogram=0\">830\u{a0}ns (n\u{a0}6 in 2 repetitions) [820, 840\u{a0}ns]</a>\
                   <small class=\"doubt\">Uncertain: 1 of 2 repetitions unstable, the first: it &lt;moved&gt;</small></td>";
    assert!(table.contains(numbers), "{table}");
    let refused = "<td class=\"not-measured\" colspan=\"2\"><b class=\"case\">SDR</b> <strong>not measured</strong>\
                   <small>cannot set &lt;SDR&gt;</small></td>";
    assert!(table.contains(refused), "{table}");
    assert!(!rendered(&run(), &points).contains("Findings of the paper</h2>"));
}

#[test]
fn published_numbers_of_what_is_not_measured_say_why() {
    let table = ReferenceTable {
        columns: vec!["benchmark".to_owned(), "native_ib_us".to_owned()],
        rows: vec![vec!["MPI <1>".to_owned(), "1.80".to_owned()]],
    };
    let reference = Reference {
        file: "levels.csv".to_owned(),
        source: "A paper".to_owned(),
        derived: false,
        unit: Some(Unit::Us),
        table: Some(table),
    };
    let reason = Some("no MPI <yet>".to_owned());
    let published = Figure {
        kind: FigureKind::Published,
        experiments: Vec::new(),
        reason,
        reference: Some(reference),
        ..figure()
    };
    let page = rendered(&Run { figures: vec![published], ..run() }, &points());
    let row = "<tr><th scope=\"row\">MPI &lt;1&gt;</th><td class=\"published\">1.80</td>\
               <td class=\"not-measured\">not measured</td></tr>";
    assert!(
        page.contains(row) && page.contains("published [us]</th>") && page.contains(">NATIVE IB</th>"),
        "{page}"
    );
    assert!(page.contains("<li>Not measured: no MPI &lt;yet&gt;.</li>"), "{page}");
    assert!(page.contains("Published numbers: A paper."));
}

#[test]
fn what_became_of_environments_is_a_table_of_the_system() {
    let mut points = points();
    assert!(!rendered(&run(), &points).contains("<h3>Environments</h3>"));
    points[0].axes.insert("environment".to_owned(), json!("own"));
    let condition = json!({
        "rank": 1, "technique": "tuned", "asked": "<x>", "outcome": "not_applied", "reason": "tuned-adm is <not> installed",
    });
    points[0].conditions = vec![serde_json::from_value(condition).unwrap()];
    let page = rendered(&run(), &points);
    let table = page.split("<h3>Environments</h3>").nth(1).unwrap().split("</table>").next().unwrap();
    let row = "<tr><td>own</td><th scope=\"row\">tuned</th><td>&lt;x&gt;</td><td>not applied</td><td>–</td>\
               <td>tuned-adm is &lt;not&gt; installed</td><td>rank 1</td></tr>";
    assert!(table.contains(row), "{table}");
}

#[test]
fn libraries_that_carried_messages_are_a_table_of_the_system() {
    let mut points = points();
    assert!(!rendered(&run(), &points).contains("<h3>Libraries</h3>"));
    let end = json!({"rank": 0, "library": "Open MPI v4.1.4", "transport": "verbs <x>:1"});
    points[0].ends = vec![serde_json::from_value(end).unwrap()];
    let page = rendered(&run(), &points);
    let table = page.split("<h3>Libraries</h3>").nth(1).unwrap().split("</table>").next().unwrap();
    let row = "<th scope=\"row\">Open MPI v4.1.4</th><td>verbs &lt;x&gt;:1</td><td>1</td></tr>";
    assert!(table.contains(row), "{table}");
}

#[test]
fn what_slower_modes_cost_is_a_line_for_each_mode() {
    let row = json!({
        "what": "Ping-pong <4 B>", "level": "Verbs", "experiments": ["e"], "modes": ["signal_rate"], "y": "latency.p50_ns",
        "unit": "us", "published": "x 1.12",
    });
    let costs = Figure {
        rows: vec![serde_json::from_value(row).unwrap()],
        ..Figure::new(FigureKind::Costs, "What it costs")
    };
    let mut points = points();
    points[1] = latency_point(1, "QDR", 1640);
    let page = rendered(&Run { figures: vec![costs], ..run() }, &points);
    let table = page.split("<caption class=\"hidden\">What it costs").nth(1).unwrap();
    let lines: Vec<&str> = table.split("<tbody>").nth(1).unwrap().lines().take(3).collect();
    assert_eq!(
        lines[0],
        "<tr><td rowspan=\"3\">Verbs</td><th scope=\"rowgroup\" rowspan=\"3\">Ping-pong &lt;4 B&gt;</th>\
         <td rowspan=\"3\" class=\"published\">x 1.12</td><td>FDR</td>\
         <td><a href=\"#histogram=0\">0.820 us (n 3)</a></td><td>best</td></tr>"
    );
    assert!(lines[1].contains("<td>QDR</td><td><a href=\"#histogram=1\">1.640 us"), "{}", lines[1]);
    assert!(lines[1].contains("<td>x 2.00"), "{}", lines[1]);
    assert!(
        lines[2].contains("<strong>not measured</strong><small>cannot set &lt;SDR&gt;</small>"),
        "{}",
        lines[2]
    );
}

#[test]
fn figures_of_a_level_stand_under_its_name() {
    let of = |level: Option<&str>, title: &str| Figure {
        level: level.map(str::to_owned),
        title: title.to_owned(),
        ..figure()
    };
    let figures = vec![
        of(None, "One"),
        of(Some("Verbs & co"), "Two"),
        of(Some("Verbs & co"), "Three"),
        of(None, "Four"),
    ];
    let page = rendered(&Run { figures, ..run() }, &points());
    let main = page.split("<main>").nth(1).unwrap();
    let headings: Vec<&str> = [
        "<h2 id=\"figure-1-title\">One",
        "<h2 class=\"level\" id=\"level-2\">Verbs &amp; co",
        "<h3 class=\"title\" id=\"figure-2-title\">Two",
        "<h3 class=\"title\" id=\"figure-3-title\">Three",
        "<h2 id=\"figure-4-title\">Four",
    ]
    .to_vec();
    let places: Vec<Option<usize>> = headings.iter().map(|heading| main.find(heading)).collect();
    assert!(places.iter().all(Option::is_some) && places.is_sorted(), "{places:?}");
    assert_eq!(main.matches("class=\"level\"").count(), 1);
    let contents = "<li><a href=\"#level-2\">Verbs &amp; co</a><ul><li><a href=\"#figure-2\">Two</a></li>\
                    <li><a href=\"#figure-3\">Three</a></li></ul></li><li><a href=\"#figure-4\">Four</a></li>";
    assert!(
        page.contains(contents),
        "{}",
        page.split("<nav").nth(1).unwrap().split("</nav>").next().unwrap()
    );
}
