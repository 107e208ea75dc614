use std::collections::BTreeMap;

use measure::figure::{Figure, FigureKind, Unit};
use serde_json::{Value, json};

use super::*;
use crate::known;

/// A point of an experiment with a median, in ns.
fn point(id: u64, size: u64, service: &str, median_ns: u64) -> measure::record::Point {
    let latency = json!({
        "kind": "rtt_half", "count": 9, "min_ns": median_ns, "p10_ns": median_ns - 10, "p50_ns": median_ns,
        "p90_ns": median_ns + 50, "p99_ns": median_ns + 60, "p999_ns": median_ns + 70, "max_ns": median_ns + 80,
        "mean_ns": median_ns as f64, "mavericks": { "rule": "> 2 x mean", "count": 0 },
    });
    let point = json!({
        "id": id, "experiment": "latency", "pattern": "ping-pong", "axes": { "size_bytes": size, "service": service },
        "status": "measured", "repetition": 0, "latency": latency, "wall_ns": 1,
    });
    serde_json::from_value(point).unwrap()
}

fn run(figures: Vec<Figure>) -> Run {
    let run = json!({
        "schema_version": 1, "program": {"name": "rdmascope", "version": "0"}, "command": [], "started": "",
        "title": "", "quick": false, "plan": {}, "points_planned": 0, "figures": figures, "devices": [],
        "environments": [], "overheads": [], "warnings": [],
    });
    serde_json::from_value(run).unwrap()
}

fn figure(kind: FigureKind, title: &str) -> Figure {
    Figure {
        experiments: vec!["latency".to_owned()],
        x: Some("size_bytes".to_owned()),
        y: Some("latency.p50_ns".to_owned()),
        series: vec!["service".to_owned()],
        unit: Some(Unit::Us),
        ..Figure::new(kind, title)
    }
}

/// A run with findings and without figures, on the software device or on no known one.
fn run_with(findings: &Value, is_on_softdev: bool) -> Run {
    let softdev = json!({
        "rank": 0, "name": "softdev0", "provider": "softdev (software device in user space)", "attributes": {},
    });
    let devices = if is_on_softdev { json!([softdev]) } else { json!([]) };
    Run {
        findings: serde_json::from_value(findings.clone()).unwrap(),
        devices: serde_json::from_value(devices).unwrap(),
        ..run(Vec::new())
    }
}

/// The drawings of the findings of a run.
fn drawn_findings(findings: &Value, points: &[measure::record::Point]) -> Drawings {
    drawings(&run_with(findings, false), known(points), &no_samples).unwrap()
}

fn no_samples(_: &str) -> Result<Vec<u64>, String> {
    Err("gone".to_owned())
}

/// The drawings of figures; every file of samples holds the same.
fn drawn(figures: Vec<Figure>, points: &[measure::record::Point]) -> Drawings {
    let samples = |_: &str| Ok(vec![1000, 1000, 1000, 1010, 1010, 1020, 1020, 1030, 1080]);
    drawings(&run(figures), known(points), &samples).unwrap()
}

fn points() -> Vec<measure::record::Point> {
    [(64, "RC", 1000), (4096, "RC", 2000), (64, "UC, \"<b>\"", 900), (4096, "UC, \"<b>\"", 90_000)]
        .into_iter()
        .zip(0..)
        .map(|((size, service, median_ns), id)| point(id, size, service, median_ns))
        .collect()
}

/// The numbers of an attribute in a drawing, in order.
fn numbers(svg: &str, element: &str, attribute: &str) -> Vec<f64> {
    let elements = svg.split('<').filter(|part| part.starts_with(element));
    let value = |part: &str| part.split(&format!(" {attribute}=\"")).nth(1)?.split('"').next()?.parse().ok();
    elements.filter_map(value).collect()
}

/// The places of a drawing's markers. The legend's markers, one for each series, are left out.
fn marks(svg: &str, series: usize) -> Vec<(f64, f64)> {
    let places = svg.split("transform=\"translate(").skip(1).filter_map(|rest| rest.split(')').next());
    let place = |text: &str| {
        let (x, y) = text.split_once(' ')?;
        Some((x.parse().ok()?, y.parse().ok()?))
    };
    places.filter_map(place).skip(series).collect()
}

#[test]
fn each_chart_is_a_drawing_and_its_numbers() {
    let figures = vec![
        Figure::new(FigureKind::Table, "No chart"),
        figure(FigureKind::Lines, "Latency over size: <all> & more"),
        figure(FigureKind::Bars, "The same as bars"),
    ];
    let Drawings { drawn: drawings, tables, .. } = drawn(figures, &points());
    assert_eq!(tables, ["1 (No chart)"]);
    let names: Vec<&str> = drawings.iter().map(|drawing| drawing.name.as_str()).collect();
    assert_eq!(names, ["figure-2-latency-over-size-all-more", "figure-3-the-same-as-bars"]);

    let lines = &drawings[0];
    let rows: Vec<&str> = lines.csv.lines().collect();
    assert!(
        rows[0].starts_with("series,kind,size,\"median latency") || rows[0].contains("[us]"),
        "{}",
        rows[0]
    );
    assert_eq!(rows[1], "RC,measured,64,1,0.99,1.05");
    assert_eq!(rows[4], "\"UC, \"\"<b>\"\"\",measured,4096,90,89.99,90.05");
    assert_eq!(rows.len(), 5);
    assert!(
        lines.svg.starts_with("<?xml") && lines.svg.contains("Latency over size: &lt;all&gt; &amp; more")
    );
    assert!(!lines.svg.contains("<b>"), "texts of a record are no elements");
    let (across, places): (Vec<f64>, Vec<f64>) = marks(&lines.svg, 2).into_iter().unzip();
    assert_eq!(places.len(), 4);
    // The two series have different markers: readers tell them apart without colours.
    assert!(lines.svg.contains("a3.4 3.4") && lines.svg.contains("M-3 -3h6v6h-6z"));
    // Higher numbers are further up: y grows downwards.
    assert!(places[0] > places[1] && places[2] > places[0] && places[1] > places[3], "{places:?}");
    let inside =
        |places: Vec<f64>, least: f64, most: f64| places.iter().all(|place| (least..=most).contains(place));
    assert!(inside(places, 0.0, 470.0) && inside(across, 78.0, 744.0));

    // Ninety times as long: the small bars are visible on a logarithmic scale.
    let bars = &drawings[1];
    let heights = numbers(&bars.svg, "rect", "height");
    let shown = &heights[heights.len() - 4..];
    assert!(shown.iter().all(|height| *height > 4.0), "{shown:?}");
}

/// A line far above the others, over an x without a logarithm.
#[test]
fn a_large_line_does_not_squash_the_others() {
    let by_service = Figure {
        x: Some("service".to_owned()),
        series: vec!["size_bytes".to_owned()],
        ..figure(FigureKind::Lines, "Over services")
    };
    let drawings = drawn(vec![by_service], &points()).drawn;
    let bottom = 470.0 - 58.0;
    let (_, places): (Vec<f64>, Vec<f64>) = marks(&drawings[0].svg, 2).into_iter().unzip();
    assert_eq!(places.len(), 4);
    // 0.9 us and 1 us are not at the bottom below 90 us.
    assert!(places.iter().all(|place| *place < bottom - 50.0), "{places:?}");
}

#[test]
fn numbers_that_are_all_zero_are_drawn() {
    let mut points = points();
    for point in &mut points {
        point.latency.as_mut().unwrap().p50_ns = 0;
    }
    let drawings = drawn(vec![figure(FigureKind::Lines, "x")], &points).drawn;
    assert_eq!(marks(&drawings[0].svg, 2).len(), 4);
    assert!(drawings[0].svg.len() < 20_000);
}

#[test]
fn a_cell_is_no_formula() {
    let mut points = points();
    for point in &mut points {
        point.axes = BTreeMap::from([
            ("size_bytes".to_owned(), json!(64)),
            ("service".to_owned(), Value::from("=1+1")),
        ]);
    }
    let drawings = drawn(vec![figure(FigureKind::Lines, "x")], &points).drawn;
    assert!(drawings[0].csv.contains("\n'=1+1,measured,"), "{}", drawings[0].csv);
}

#[test]
fn a_histogram_has_a_drawing_for_each_panel() {
    let mut points = vec![point(0, 64, "RC", 1000), point(1, 64, "UC", 1000)];
    for point in &mut points {
        let end = json!({ "rank": 0, "samples": "samples/0.u64", "latency": point.latency });
        point.ends = vec![serde_json::from_value(end).unwrap()];
    }
    let histogram = Figure {
        x: None,
        y: None,
        limits_ns: Some([1000, 1060]),
        log_counts: true,
        ..figure(FigureKind::Histogram, "Distribution")
    };
    let drawings = drawn(vec![histogram], &points).drawn;
    let names: Vec<&str> = drawings.iter().map(|drawing| drawing.name.as_str()).collect();
    assert_eq!(names, ["figure-1-distribution-1", "figure-1-distribution-2"]);
    assert!(drawings[0].svg.contains("<title>Distribution: RC</title>"), "{}", drawings[0].svg);
    let rows: Vec<&str> = drawings[1].csv.lines().collect();
    assert_eq!(rows[0], "series,kind,latency [ns],samples per bin,low,high");
    // The sample beyond the limits is counted in the name.
    let name = "\"rtt_half: n 9, 1 outside, max 1.08 us\"";
    assert_eq!(rows[1], format!("{name},measured,1000,3,,"));
    assert_eq!((rows[11], rows.len()), (format!("{name},measured,1010,2,,").as_str(), 62));
    // The outline starts and ends at the bottom, and one sample is above it.
    let outline = drawings[1].svg.split("<path d=\"M").nth(1).unwrap().split('"').next().unwrap();
    let heights: Vec<f64> = outline
        .split('V')
        .skip(1)
        .map(|to| to.split('H').next().unwrap())
        .map(|to| to.parse().unwrap())
        .collect();
    assert_eq!((heights.len(), heights[61], heights[1]), (62, 412.0, 412.0), "{outline}");
    assert!(heights[0] < heights[10] && heights[10] < 400.0, "{outline}");
}

#[test]
fn a_histogram_names_the_samples_that_it_lacks() {
    let mut points = vec![point(0, 64, "RC", 1000), point(1, 64, "UC", 1000)];
    for point in &mut points {
        let path = format!("samples/{}.u64", point.id);
        let end = json!({ "rank": 0, "samples": path, "latency": point.latency });
        point.ends = vec![serde_json::from_value(end).unwrap()];
    }
    let histogram = Figure { x: None, y: None, ..figure(FigureKind::Histogram, "Distribution") };
    let run = run(vec![histogram]);
    let drawn = |lost: &[&str]| {
        let samples = |path: &str| {
            let kept = vec![1000, 1000, 1000, 1010, 1010, 1020, 1020, 1030, 1080];
            if lost.contains(&path) { Err("it is gone".to_owned()) } else { Ok(kept) }
        };
        let Drawings { drawn, empty, incomplete, .. } = drawings(&run, known(&points), &samples).unwrap();
        (drawn.len(), empty.len(), incomplete)
    };
    assert_eq!(drawn(&[]), (2, 0, Vec::new()));
    let why = "1 (Distribution): some samples cannot be read and are not included";
    assert_eq!(drawn(&["samples/1.u64"]), (1, 0, vec![format!("{why}: samples/1.u64: it is gone")]));
    let others = "; the report has 1 more such reason";
    let both = drawn(&["samples/0.u64", "samples/1.u64"]);
    assert_eq!(both, (0, 1, vec![format!("{why}: samples/0.u64: it is gone{others}")]));
}

#[test]
fn a_surface_is_a_drawing_that_needs_no_page() {
    let marked = Some(measure::figure::Marked { y: "latency.max_ns".to_owned(), above: 1500.0 });
    let surface = Figure { marked, ..figure(FigureKind::Surface, "Latency <over> both") };
    let drawings = drawn(vec![surface], &points()).drawn;
    assert_eq!(drawings.len(), 1);
    let svg = &drawings[0].svg;
    assert!(svg.starts_with("<?xml") && svg.contains(" xmlns=\"http://www.w3.org/2000/svg\""), "{svg}");
    assert!(svg.contains(".surface .corner { fill: #14181f; stroke: #14181f; }"), "{svg}");
    assert!(!svg.contains("var(") && !svg.contains("<b>") && svg.ends_with("</svg>\n"), "{svg}");
    assert_eq!(svg.matches("<circle").count(), 4);
    let rows: Vec<&str> = drawings[0].csv.lines().collect();
    assert!(rows[0].ends_with(",low,high,\"largest latency, half a round trip [ns]\""), "{}", rows[0]);
    assert_eq!(rows[1], "RC,measured,64,1,0.99,1.05,1080");
    assert_eq!(rows.len(), 5);
}

#[test]
fn a_figure_without_numbers_is_named() {
    let other = Figure { experiments: vec!["other".to_owned()], ..figure(FigureKind::Lines, "Other") };
    let kinds = [FigureKind::Lines, FigureKind::Histogram, FigureKind::Surface];
    let figures = kinds.map(|kind| Figure { kind, ..other.clone() });
    assert_eq!(drawn(figures.into(), &points()).empty, ["1 (Other)", "2 (Other)", "3 (Other)"]);
}

/// Points whose medians have intervals: those of 4 KiB from 5 % below to 10 % above.
fn points_with_intervals() -> Vec<measure::record::Point> {
    let mut points = points();
    for latency in points.iter_mut().filter_map(|point| point.latency.as_mut()) {
        let median_ns = latency.p50_ns;
        let is_exact = median_ns <= 1000;
        let ends = [median_ns * 95 / 100, median_ns * 11 / 10];
        latency.p50_ci95_ns = Some(if is_exact { [median_ns; 2] } else { ends });
    }
    points
}

/// A claim that holds for both services, and that only one of them shows in the published size.
fn longer() -> Value {
    json!({
        "kind": "change", "claim": "Large <messages> & \"long\" ones take longer", "experiments": ["latency"],
        "published": "0.8 to 1.6 us: +100 %", "source": "A paper, Table 1", "each": ["service"],
        "of": {"size_bytes": 4096}, "against": {"size_bytes": 64}, "holds": "> 50 %", "matches": "80 % .. 120 %",
    })
}

fn value(claim: &str, size_bytes: u64, holds: &str) -> Value {
    let only = json!({"service": "RC", "size_bytes": size_bytes});
    json!({"kind": "value", "claim": claim, "experiments": ["latency"], "where": only, "holds": holds})
}

#[test]
fn findings_are_a_drawing_and_a_row_for_each_case() {
    let findings =
        json!([longer(), value("=Less than a nanosecond", 64, "< 1 ns"), value("Nothing", 7, "> 5")]);
    let mut points = points_with_intervals();
    points[2].unstable = Some("it moved".to_owned());
    let Drawings { drawn, empty, .. } = drawn_findings(&findings, &points);
    let [Drawing { name, svg, csv }] = &drawn[..] else { panic!("{drawn:?}") };
    assert_eq!((name.as_str(), empty.len()), ("findings", 0));
    assert!(svg.starts_with("<?xml") && svg.ends_with("</svg>\n") && !svg.contains("var("), "{svg}");
    assert!(svg.contains(" xmlns=\"http://www.w3.org/2000/svg\"") && !svg.contains("<b>"), "{svg}");
    for text in [
        "Findings of the paper",
        "Large &lt;messages&gt; &amp; &quot;long&quot; ones take longer",
        "holds if &gt; 50 %",
        "published size: 80 % .. 120 %",
        "published: 0.8 to 1.6 us: +100 %",
        "A paper, Table 1",
        "RC: reproduced",
        "+100\u{a0}% [+90, +120]",
        "2000\u{a0}ns (n\u{a0}9) against 1000\u{a0}ns (n\u{a0}9)",
        "UC, &quot;&lt;b&gt;&quot;: same",
        "direction, other size",
        "Uncertain: 1 of 2 repetitions unstable",
        "contradicted",
        "not measured",
        "this run has no such",
    ] {
        assert!(svg.contains(&format!(">{text}</text>")), "no {text}: {svg}");
    }
    assert!(svg.contains(">The light band is the range of the claim, "), "{svg}");
    // The page's rules for the drawings are there, with the colours of white paper.
    assert!(svg.contains(".forest .holds { fill: #14946a; fill-opacity: 0.16; }"), "{svg}");
    // One number is within its scale, two are far beyond it, and nothing is drawn for the last.
    assert_eq!(svg.matches("<circle class=\"value\"").count(), 1);
    assert_eq!(svg.matches("<path class=\"value\" d=\"M192 3 L200 8 L192 13 Z\"").count(), 2);
    let places = numbers(svg, "svg x", "y");
    assert!(places.len() == 3 && places.windows(2).all(|pair| pair[1] >= pair[0] + 24.0), "{places:?}");
    let height = numbers(svg, "svg width", "height")[0];
    assert!(numbers(svg, "text", "y").iter().all(|y| *y > 0.0 && *y < height), "{svg}");

    let rows: Vec<&str> = csv.lines().collect();
    let named =
        "claim,case,verdict,reason,measured,low,high,unit,holds from,holds to,matches from,matches to,";
    assert_eq!(rows[0], format!("{named}published,source,uncertain"));
    let claim = "\"Large <messages> & \"\"long\"\" ones take longer\"";
    let paper = "%,50,,80,120,0.8 to 1.6 us: +100 %,\"A paper, Table 1\"";
    assert_eq!(rows[1], format!("{claim},RC,reproduced,,100,90,120,{paper},"));
    let other = "\"UC, \"\"<b>\"\"\",\"same direction, other size\",,9900,9400,10900";
    assert_eq!(rows[2], format!("{claim},{other},{paper},1 of 2 repetitions unstable"));
    assert_eq!(rows[3], "'=Less than a nanosecond,,contradicted,,1000,1000,1000,ns,,1,,,,,");
    assert_eq!(rows[4..], ["Nothing,,not measured,this run has no such point,,,,,5,,,,,,"]);
}

#[test]
fn findings_without_numbers_are_named_and_not_drawn() {
    let absent = drawn_findings(&json!([value("Nothing", 7, "> 5")]), &points());
    assert_eq!((absent.drawn.len(), absent.empty), (0, vec!["findings".to_owned()]));
    let none = drawn_findings(&json!([]), &points());
    assert_eq!((none.drawn.len(), none.empty.len()), (0, 0));
}

#[test]
fn a_finding_that_is_not_judged_is_grey() {
    let run = run_with(&json!([longer()]), true);
    let drawn = drawings(&run, known(&points_with_intervals()), &no_samples).unwrap().drawn;
    let svg = &drawn[0].svg;
    assert_eq!(svg.matches("<svg class=\"not-judged\" ").count(), 2);
    assert!(svg.contains(".not-judged .forest .value { fill: #626a77; }"), "{svg}");
    assert!(svg.contains(">RC: not judged</text>") && svg.contains(">would be reproduced</text>"), "{svg}");
    let why = "Claims about networks are not judged: the software device is no network.";
    assert!(svg.contains(why), "{svg}");
    assert!(drawn[0].csv.contains(",RC,not judged,would be reproduced,100,90,120,%,"), "{}", drawn[0].csv);
}

#[test]
fn a_long_claim_is_broken_and_cut() {
    let word = "x".repeat(100);
    let claims = [word.clone(), "word ".repeat(100)];
    let claims = claims.each_ref().map(|claim| value(claim, 64, "> 5 ns"));
    let svg = drawn_findings(&json!(claims), &points_with_intervals()).drawn.remove(0).svg;
    let lines = [&word[..46], &word[..46], &word[..8]].map(|line| format!(">{line}</text>"));
    assert_eq!(lines.map(|line| svg.matches(&line).count()), [2, 2, 1]);
    // Nine words are a line of 44 characters.
    let line = ["word"; 9].join(" ");
    assert_eq!(svg.matches(&format!(">{line}</text>")).count(), 5);
    assert_eq!(svg.matches(&format!(">{line} ...</text>")).count(), 1);
}
