//! The report in a real browser: everything is drawn, no script fails, and no text of a record
//! becomes a script.

mod fixture;
#[path = "support/browser.rs"]
mod support;

use std::io::Read;

use bench::PATTERNS;
use fixture::Fixture;
use flate2::read::GzDecoder;
use measure::record::{Point, Status};
use serde_json::json;
use support::{Browser, Seen, View};

const WIDE: View<'_> = View { hash: "", width: 1300, dark: false, axe: "" };

fn html(fixture: &Fixture) -> String {
    let mut out = Vec::new();
    report::html::write(&fixture.run, &fixture.points, PATTERNS, &fixture.samples(), &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

fn open(browser: &Browser, html: &str, view: &View<'_>) -> Seen {
    let scratch = tempfile::tempdir().unwrap();
    let seen = browser.open(html, view, scratch.path());
    assert!(seen.ready, "the page did not finish: {seen:?}");
    assert!(seen.errors.is_empty(), "script errors: {:?}", seen.errors);
    seen
}

#[test]
fn every_figure_is_drawn_and_no_script_fails() {
    let Some(browser) = support::find_or_skip() else { return };
    let seen = open(&browser, &html(&Fixture::new()), &WIDE);
    let expected = [
        ("figure-5-plot", 5),
        ("figure-6-plot", 3),
        ("figure-7-plot", 4),
        ("figure-8-plot", 2),
        ("figure-9-plot", 2),
        ("figure-10-plot-1", 2),
        ("figure-10-plot-2", 2),
        ("figure-10-plot-3", 2),
        ("figure-11-plot", 5),
        // The surface is not drawn by a script.
        ("figure-13-plot", 2),
    ];
    assert_eq!(seen.plots, expected.map(|(id, traces)| (id.to_owned(), traces)));
    // Two buttons below each chart, and below the surface.
    assert_eq!(seen.fact("downloads"), "22");
    assert_eq!(seen.fact("csv"), "text/csv of rows,image/svg+xml of rows");
    assert_eq!(seen.fact("background"), "rgb(246, 247, 249)");
    assert!(seen.fact("chosen").contains("No point is selected"));
    assert_eq!(seen.fact("rows"), "0");
    // Each of the ten drawings of plotly is three elements.
    assert_eq!(seen.fact("prepared for print"), "30 of 30");
    assert_eq!(seen.fact("theme of print"), "rgb(246, 247, 249)");
}

/// The widths, colour schemes and views of a distribution at which a report is examined. A view of
/// the fixture takes half a minute, so that it has the first, or the two that differ most.
const EXAMINED: [(u32, bool, &str); 6] = [
    (360, true, "percentiles"),
    (1300, false, "time"),
    (360, false, "histogram"),
    (800, false, "percentiles"),
    (800, true, "time"),
    (1300, true, "histogram"),
];

/// axe-core finds nothing serious on a page with everything opened, and nothing is wider than the
/// window. `RDMASCOPE_REPORTS` names further reports, as `PATH` names directories.
#[test]
fn the_page_is_usable_by_everybody() {
    let Some(browser) = support::find_or_skip() else { return };
    let fixture = Fixture::new();
    let point = fixture.points.iter().find(|point| point.ends.len() == 2).unwrap();
    let others = std::env::var_os("RDMASCOPE_REPORTS").unwrap_or_default();
    let views = if others.is_empty() { 1 } else { 2 };
    examine(&browser, "the fixture", &html(&fixture), point.id, &EXAMINED[..views]);
    for path in std::env::split_paths(&others).filter(|path| !path.as_os_str().is_empty()) {
        let mut html = std::fs::read_to_string(&path).unwrap();
        // The pages of comparisons have no script, and are ready at once.
        if !html.contains("<script") {
            html = html.replacen("<html", "<html data-ready=\"yes\"", 1);
        }
        examine(&browser, &path.display().to_string(), &html, 0, &EXAMINED);
    }
}

fn examine(browser: &Browser, what: &str, html: &str, point: u64, examined: &[(u32, bool, &str)]) {
    let axe = axe();
    for (width, dark, view) in examined.iter().copied() {
        let hash = format!("histogram={point}&view={view}");
        let seen = open(browser, html, &View { hash: &hash, width, dark, axe: &axe });
        let kept: u32 = seen.fact("rules kept").parse().unwrap();
        assert!(kept > 20, "{what}: axe-core examined little: {seen:?}");
        let serious: Vec<&String> = seen.violations().filter(|text| is_serious(text)).collect();
        assert!(serious.is_empty(), "{what}: {width} px, dark {dark}: {serious:#?}");
        assert!(seen.widths.1 <= seen.widths.0, "{what}: {width} px, dark {dark}: {:?}", seen.widths);
    }
}

fn is_serious(violation: &str) -> bool {
    violation.starts_with("serious") || violation.starts_with("critical")
}

/// axe-core as it is vendored.
fn axe() -> String {
    let mut text = String::new();
    GzDecoder::new(&include_bytes!("support/axe.min.js.gz")[..]).read_to_string(&mut text).unwrap();
    text
}

#[test]
fn charts_have_lines_for_links_and_a_point_says_its_share() {
    let Some(browser) = support::find_or_skip() else { return };
    let mut fixture = Fixture::new();
    for device in &mut fixture.run.devices {
        device.attributes.insert("link_layer".to_owned(), json!("InfiniBand"));
    }
    for point in fixture.points.iter_mut().filter(|point| point.throughput.is_some()) {
        point.link_model = Some("4X EDR".to_owned());
    }
    let is_shown = |point: &&Point| point.throughput.is_some() && point.axes["size_bytes"] == json!(2048);
    let point = fixture.points.iter().find(is_shown).unwrap();
    let hash = format!("histogram={}", point.id);
    let seen = open(&browser, &html(&fixture), &View { hash: &hash, ..WIDE });
    // One line for RC and UC, which have the same headers.
    for plot in [("figure-7-plot", 5), ("figure-8-plot", 3), ("figure-9-plot", 3)] {
        assert!(seen.plots.contains(&(plot.0.to_owned(), plot.1)), "{plot:?}: {:?}", seen.plots);
    }
    // 2048 and 26 B at 100 Gb/s.
    let share = point.throughput.as_ref().unwrap().messages_per_s * (2048.0 + 26.0) * 8.0 / 100e9 * 100.0;
    let text = format!("{share:.1} % of the link limit");
    assert!(seen.fact("chosen").contains(&text), "{text}: {}", seen.fact("chosen"));
}

#[test]
fn a_histogram_opens_on_demand_with_both_ends() {
    let Some(browser) = support::find_or_skip() else { return };
    let fixture = Fixture::new();
    let point = fixture.points.iter().find(|p| p.ends.len() == 2).unwrap();
    let hash = format!("histogram={}", point.id);
    let seen = open(&browser, &html(&fixture), &View { hash: &hash, dark: true, ..WIDE });
    let histogram = seen.plots.iter().find(|(id, _)| id == "histogram").expect("no histogram");
    assert!(histogram.1 >= 2, "{histogram:?}");
    let latency = point.latency.as_ref().unwrap();
    let chosen = seen.fact("chosen");
    assert!(chosen.contains(&format!("{:.3} us", latency.max_ns as f64 / 1e3)), "{chosen}");
    assert!(chosen.contains("Rank 1: 2,000 samples, from a recorded histogram"), "{chosen}");
    let other = point.ends[1].latency.as_ref().unwrap();
    assert!(chosen.contains(&format!("the largest {:.3} us", other.max_ns as f64 / 1e3)), "{chosen}");
    assert_eq!(seen.fact("background"), "rgb(15, 18, 22)");
}

#[test]
fn a_point_is_shown_in_three_views_and_beside_another() {
    let Some(browser) = support::find_or_skip() else { return };
    let fixture = Fixture::new();
    let page = html(&fixture);
    let mut one_way = fixture.points.iter().filter(|point| !point.kinds.is_empty());
    let one = one_way.next().unwrap();
    let other = one_way.next().unwrap();
    let drawn = |hash: String| {
        let seen = open(&browser, &page, &View { hash: &hash, ..WIDE });
        let traces = seen.plots.iter().find(|(id, _)| id == "histogram").map_or(0, |(_, traces)| *traces);
        (traces, seen.fact("chosen").to_owned())
    };
    let kinds = one.kinds.len();
    let followed = one.kinds.iter().filter(|timed| timed.samples.is_some()).count();
    assert!(followed > 0);
    assert_eq!(drawn(format!("histogram={}&view=percentiles", one.id)).0, kinds);
    // The medians and the largest of windows, and the largest of all.
    assert_eq!(drawn(format!("histogram={}&view=time", one.id)).0, 3 * followed);
    for view in ["histogram", "percentiles", "time"] {
        let (traces, chosen) = drawn(format!("histogram={}&with={}&view={view}", one.id, other.id));
        assert!(traces > followed, "{view}: {traces}");
        let medians = [one, other].map(|point| point.kinds[0].latency.p50_ns as f64);
        let ratio = medians[0] / medians[1];
        for text in ["A: ", "B: ", "A / B", "stop comparing", &format!("{ratio:.2}")] {
            assert!(chosen.contains(text), "{view}: {text}: {chosen}");
        }
    }
    // The first of two points is chosen: nothing is compared yet.
    let (traces, chosen) = drawn(format!("histogram={0}&with={0}&view=histogram", one.id));
    assert!(traces >= kinds && chosen.contains("Select the point to compare") && !chosen.contains("A / B"));
    // What a stranger writes into a link changes nothing.
    let (traces, chosen) = drawn(format!("histogram={}&with=x&view=constructor", one.id));
    assert!(traces >= kinds && !chosen.contains("A / B"), "{chosen}");
}

#[test]
fn a_one_way_point_shows_its_kinds_and_its_clocks() {
    let Some(browser) = support::find_or_skip() else { return };
    let fixture = Fixture::new();
    let is_ud = |point: &&Point| !point.kinds.is_empty() && point.axes["service"] == json!("UD");
    let point = fixture.points.iter().find(is_ud).unwrap();
    let hash = format!("histogram={}", point.id);
    let seen = open(&browser, &html(&fixture), &View { hash: &hash, ..WIDE });
    let histogram = seen.plots.iter().find(|(id, _)| id == "histogram").expect("no histogram");
    assert!(histogram.1 >= 2, "{histogram:?}");
    let chosen = seen.fact("chosen");
    let file = point.kinds[0].samples.as_ref().unwrap();
    let median = |index: usize| point.kinds[index].latency.p50_ns as f64 / 1e3;
    for text in [
        &format!("One_way: 2,000 samples, all in {file} in the directory of the run; "),
        "Completion: 2,000 samples, from a recorded histogram; ",
        "Two clocks, +- 38 ns",
        "rank 1 was preempted for",
        "Rank 0: 4 preemptions of 1.00 us or more",
        "the first messages",
    ] {
        assert!(chosen.contains(text), "{text}: {chosen}");
    }
    // The bound is shown with numbers from two clocks, and only with those.
    assert!(
        chosen.contains(&format!("median{:.3} us ± 38 ns{:.3} us5.000 us ±", median(0), median(1))),
        "{chosen}"
    );
}

#[test]
fn a_point_without_numbers_says_why() {
    let Some(browser) = support::find_or_skip() else { return };
    let fixture = Fixture::new();
    let failed = fixture.points.iter().find(|p| matches!(p.status, Status::Failed { .. })).unwrap();
    let hash = format!("histogram={}&theme=dark", failed.id);
    let seen = open(&browser, &html(&fixture), &View { hash: &hash, ..WIDE });
    assert!(seen.fact("chosen").contains("transport retry counter exceeded"), "{seen:?}");
    assert_eq!(seen.fact("background"), "rgb(15, 18, 22)", "the hash sets the theme");
    assert_eq!(seen.fact("theme of print"), "rgb(246, 247, 249)", "paper is white");
}

#[test]
fn a_phone_does_not_scroll_sideways_and_all_points_can_be_listed() {
    let Some(browser) = support::find_or_skip() else { return };
    let fixture = Fixture::new();
    let seen = open(&browser, &html(&fixture), &View { hash: "all-points", width: 390, ..WIDE });
    assert_eq!(seen.widths.0, 390);
    assert!(seen.widths.1 <= 390, "the page is {} wide", seen.widths.1);
    assert_eq!(seen.fact("plots beyond the window"), "0");
    assert_eq!(seen.fact("rows"), fixture.points.len().to_string());
    // What never varies is not a column.
    assert!(seen.fact("same").starts_with("The same in all points: "), "{}", seen.fact("same"));
    assert!(seen.fact("columns").starts_with("point;experiment;pattern;"), "{}", seen.fact("columns"));
    let is_shown =
        |point: &&Point| matches!(point.status, Status::Failed { .. }) && point.experiment == "uc-latency";
    let shown = fixture.points.iter().filter(is_shown).count();
    assert_eq!(seen.fact("filtered"), format!("{shown} {shown} of {} points.", fixture.points.len()));
    // Longer lists say that they can be narrowed.
    assert!(fixture.points.len() > 400);
    assert_eq!(seen.fact("listed"), "400");
}

#[test]
fn text_of_the_record_never_runs() {
    let Some(browser) = support::find_or_skip() else { return };
    let evil = |n: u32| {
        format!(
            "</script></title><script>window.injected={n}</script><img src=x onerror=\"window.injected={n}\">"
        )
    };
    let mut fixture = Fixture::new();
    fixture.run.title = evil(1);
    fixture.run.about = Some(evil(2));
    fixture.run.command.push(evil(3));
    fixture.run.warnings.push(evil(4));
    fixture.run.devices[0].name = evil(5);
    fixture.run.plan = json!({ evil(6): evil(7) });
    for finding in &mut fixture.run.findings {
        finding.claim += &evil(13);
        finding.published = Some(evil(14));
    }
    for figure in &mut fixture.run.figures {
        figure.title += &evil(8);
        figure.caption = Some(evil(9));
    }
    for point in &mut fixture.points {
        for value in point.axes.values_mut().filter(|value| **value == json!("RC")) {
            *value = json!(evil(10));
        }
        if let Status::NotMeasured { reason } = &mut point.status {
            *reason = evil(11);
        }
        if point.unstable.is_some() {
            point.unstable = Some(evil(12));
        }
    }
    let shown = fixture.points.iter().find(|p| p.unstable.is_some()).unwrap().id;
    let page = html(&fixture);
    for hash in [format!("histogram={shown}"), "all-points".to_owned()] {
        let seen = open(&browser, &page, &View { hash: &hash, ..WIDE });
        assert_eq!(seen.fact("ran"), "nothing");
        assert!(seen.fact("title").contains("<script>window.injected=1"), "{}", seen.fact("title"));
    }
}

#[test]
fn an_old_browser_is_told_so_and_keeps_the_tables() {
    let Some(browser) = support::find_or_skip() else { return };
    let page = html(&Fixture::new());
    let nonce = page.split("nonce=\"").nth(1).unwrap().split('"').next().unwrap();
    let script = format!("<head><script nonce=\"{nonce}\">delete window.DecompressionStream</script>");
    let scratch = tempfile::tempdir().unwrap();
    let seen = browser.open(&page.replacen("<head>", &script, 1), &WIDE, scratch.path());
    assert!(!seen.ready);
    assert!(seen.errors.iter().any(|e| e.contains("too old to draw the charts")), "{:?}", seen.errors);
    assert!(page.contains("8512.54"), "the published table is plain HTML");
}

#[test]
fn the_watch_notices_a_script_that_fails_and_a_load_that_is_refused() {
    let Some(browser) = support::find_or_skip() else { return };
    let page = html(&Fixture::new());
    let nonce = page.split("nonce=\"").nth(1).unwrap().split('"').next().unwrap();
    let broken =
        page.replacen("</body>", &format!("<script nonce=\"{nonce}\">undefinedName()</script></body>"), 1);
    let loading = page.replacen("</body>", "<img src=\"file:///nowhere.png\"></body>", 1);
    let inline = page.replacen("</body>", "<script>window.injected=1</script></body>", 1);
    for (page, trace) in [(broken, "undefinedName"), (loading, "img-src"), (inline, "script-src")] {
        let scratch = tempfile::tempdir().unwrap();
        let seen = browser.open(&page, &WIDE, scratch.path());
        assert!(seen.errors.iter().any(|e| e.contains(trace)), "{trace}: {:?}", seen.errors);
        assert_eq!(seen.fact("ran"), "nothing");
    }
}
