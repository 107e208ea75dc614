//! Exports of made-up runs, whose texts come from anywhere.

use measure::record::{LatencyKind, Point, Run};
use measure::stats;
use serde_json::{Value, json};

use super::*;
use crate::escaped;

const RUN: &str = r#"{
    "schema_version": 1, "program": { "name": "rdmascope", "version": "1.2.3" }, "command": ["rdmascope", "run"],
    "started": "2026-11-28T02:33:57Z", "title": "A & \"B\" <c>", "plan": { "name": "p" }, "points_planned": 3,
    "devices": [{ "rank": 0, "name": "mlx5_0", "provider": "p", "attributes": {} }],
    "environments": [{ "rank": 0, "hostname": "n1", "facts": {} }, { "rank": 1, "hostname": "n2", "facts": {} }],
    "expectations": [{ "quantity": "latency.p50_ns", "bound": "<= 1500 ns" }]
}"#;

fn point(id: u64, more: &Value) -> Point {
    let mut json = json!({
        "id": id, "experiment": "lat", "pattern": "ping-pong", "status": "measured", "repetition": 0,
        "wall_ns": 1_500_000, "axes": { "size_bytes": 8 << id },
    });
    json.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    serde_json::from_value(json).unwrap()
}

/// Two points with latencies of 1000 and 2000 ns, and one that was not measured.
fn points() -> Vec<Point> {
    let samples = |p50: u64| (0..11).map(|i| p50 - 5 + i).collect::<Vec<u64>>();
    let mut all = vec![
        point(0, &json!({ "counters": { "messages_lost": 0 } })),
        point(1, &json!({ "unstable": "=SUM(A1), \"quoted\"\nand more" })),
        point(2, &json!({ "status": "not_measured", "reason": "no <device> & no | port" })),
    ];
    for (point, p50) in all.iter_mut().zip([1000, 2000]) {
        let latency = stats::latency(LatencyKind::RttHalf, &samples(p50), &[1004]);
        point.latency = latency.clone();
        let end = json!({ "rank": 0, "samples": format!("samples/{}", point.id), "latency": latency });
        point.ends = vec![serde_json::from_value(end).unwrap()];
    }
    all
}

fn with<R>(body: impl FnOnce(&[Exported<'_>]) -> R) -> R {
    let run: Run = serde_json::from_str(RUN).unwrap();
    let points = points();
    let samples = |path: &str| match path {
        "samples/0" => Ok(vec![3, 1, 2]),
        "samples/1" => Ok(vec![9]),
        other => Err(format!("no {other}")),
    };
    body(&[Exported { name: "r".to_owned(), run: &run, points: &points, samples: &samples, labels: &[] }])
}

fn text(format: Format, quantities: &[&str]) -> String {
    let quantities: Vec<String> = quantities.iter().map(|path| (*path).to_owned()).collect();
    let mut out = Vec::new();
    with(|runs| write(runs, bench::PATTERNS, format, &quantities, &mut out)).unwrap();
    String::from_utf8(out).unwrap()
}

#[test]
fn a_row_is_a_number_of_a_point() {
    let csv = text(Format::Csv, &["latency.p50_ns", "latency.share_above.1004"]);
    let expected = "\
run,started,hosts,devices,point,experiment,pattern,repetition,launch,round,stage,members,status,reason,unstable,quantity,kind,\
unit,\
value,low,\
high,samples,size_bytes
r,2026-11-28T02:33:57Z,\"n1,n2\",mlx5_0,0,lat,ping-pong,0,,,,,measured,,,latency.p50_ns,rtt_half,ns,1000.0,996.0,1004.0,11,8
r,2026-11-28T02:33:57Z,\"n1,n2\",mlx5_0,0,lat,ping-pong,0,,,,,measured,,,latency.share_above.1004,rtt_half,,\
0.09090909090909091,";
    assert!(csv.starts_with(expected), "{csv}");
    // A spreadsheet takes no text for a formula, and a text keeps its line break.
    assert!(csv.contains(",measured,,\"'=SUM(A1), \"\"quoted\"\"\nand more\",latency.p50_ns,"), "{csv}");
    let last = "r,2026-11-28T02:33:57Z,\"n1,n2\",mlx5_0,2,lat,ping-pong,0,,,,,not_measured,no <device> & no | port,,,,,,,,,32\n";
    assert!(csv.ends_with(last), "{csv}");
}

#[test]
fn every_number_of_a_point_has_a_row_and_a_group_is_all_of_its_numbers() {
    let quantities = |asked: &[&str]| -> Vec<String> {
        let lines = text(Format::Json, asked);
        let rows = lines.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        let of_first = rows.filter(|row| row["point"] == 0);
        of_first.filter_map(|row| Some(row["quantity"].as_str()?.to_owned())).collect()
    };
    let all = quantities(&[]);
    for path in
        ["latency.p50_ns", "ends.0.latency.max_ns", "wall_ns", "counters.messages_lost", "messages_lost"]
    {
        assert!(all.contains(&path.to_owned()), "{path}: {all:?}");
    }
    assert_eq!(all.len(), all.iter().collect::<std::collections::BTreeSet<_>>().len(), "each once");
    let group = quantities(&["latency"]);
    assert!(group.len() > 10 && group.iter().all(|path| path.starts_with("latency.")), "{group:?}");
    // The kind of the main latency is also a path.
    assert_eq!(quantities(&["rtt_half.p50_ns"]), ["rtt_half.p50_ns"]);
}

#[test]
fn a_line_of_json_has_all_columns() {
    let lines = text(Format::Json, &["latency.p50_ns"]);
    let names = |line: &str| -> Vec<String> {
        serde_json::from_str::<Value>(line).unwrap().as_object().unwrap().keys().cloned().collect()
    };
    let mut columns: Vec<String> = rows::COLUMNS.map(|column| column.name.to_owned()).to_vec();
    columns.push("size_bytes".to_owned());
    columns.sort_unstable();
    for line in lines.lines() {
        let mut names = names(line);
        names.sort_unstable();
        assert_eq!(names, columns);
    }
    assert_eq!(lines.lines().count(), 3);
}

#[test]
fn samples_have_a_row_each() {
    let of = |format| {
        let mut out = Vec::new();
        with(|runs| write_samples(runs, format, &mut out)).unwrap();
        String::from_utf8(out).unwrap()
    };
    let csv = "run,point,source,kind,sample,latency_ns\nr,0,0,rtt_half,0,3\nr,0,0,rtt_half,1,1\nr,0,0,rtt_half,2,2\n\
               r,1,0,rtt_half,0,9\n";
    assert_eq!(of(Format::Csv), csv);
    let line =
        "{\"run\":\"r\",\"point\":0,\"source\":\"0\",\"kind\":\"rtt_half\",\"sample\":0,\"latency_ns\":3}\n";
    assert!(of(Format::Json).starts_with(line));
    with(|runs| {
        let broken = |_: &str| Err("it is torn".to_owned());
        let run = Exported { name: "r".to_owned(), samples: &broken, ..runs[0] };
        let error = write_samples(&[run], Format::Csv, &mut Vec::new()).unwrap_err();
        assert_eq!(error.to_string(), "cannot read samples/0 of the run r: it is torn");
    });
}

#[test]
fn metrics_are_in_base_units() {
    let metrics = text(
        Format::OpenMetrics,
        &["latency.p50_ns", "latency.share_above.1004", "latency.count", "wall_ns"],
    );
    for line in [
        "# TYPE rdmascope_latency_p50_seconds gauge\nrdmascope_latency_p50_seconds{experiment=\"lat\",pattern=\"ping-pong\",\
         size_bytes=\"8\"} 0.000001\n",
        "\nrdmascope_latency_share_above_1004_ratio{experiment=\"lat\",pattern=\"ping-pong\",size_bytes=\"8\"} 0.0909090909",
        "\nrdmascope_latency_counts{experiment=\"lat\",pattern=\"ping-pong\",size_bytes=\"8\"} 11\n",
        "\nrdmascope_wall_seconds{experiment=\"lat\",pattern=\"ping-pong\",size_bytes=\"16\"} 0.0015\n",
        "\nrdmascope_expectation_met{expectation=\"latency.p50_ns <= 1500 ns\",points=\"lat, 8 B\"} 1\n",
        "\nrdmascope_points{status=\"not_measured\"} 1\n",
        "\nrdmascope_run_started_timestamp_seconds 1795833237\n",
        "\nrdmascope_run_info{devices=\"mlx5_0\",version=\"1.2.3\"} 1\n",
    ] {
        assert!(metrics.contains(line), "{line}: {metrics}");
    }
    assert!(metrics.ends_with("\n# EOF\n"));
    // The second point is unstable, so that its bound is not decided.
    assert_eq!(metrics.matches("\nrdmascope_expectation_met{").count(), 1);
}

#[test]
fn several_runs_have_a_label_each() {
    let mut out = Vec::new();
    with(|runs| {
        let again = Exported { name: "s\"\\\n".to_owned(), ..runs[0] };
        let first = Exported { name: "r".to_owned(), ..runs[0] };
        write(&[first, again], bench::PATTERNS, Format::OpenMetrics, &[], &mut out)
    })
    .unwrap();
    let metrics = String::from_utf8(out).unwrap();
    assert!(metrics.contains("\nrdmascope_points{run=\"r\",status=\"measured\"} 2\n"), "{metrics}");
    assert!(
        metrics.contains("\nrdmascope_points{run=\"s\\\"\\\\\\n\",status=\"measured\"} 2\n"),
        "{metrics}"
    );
    assert_eq!(metrics.matches("# TYPE rdmascope_points gauge").count(), 1);
}

#[test]
fn points_and_expectations_are_tests() {
    let xml = text(Format::Junit, &[]);
    for part in [
        "<testsuite id=\"0\" package=\"p\" name=\"A &amp; &quot;B&quot; &lt;c&gt;\" tests=\"7\" failures=\"0\" errors=\"0\" \
         skipped=\"3\" time=\"0.004500\" timestamp=\"2026-11-28T02:33:57\" hostname=\"n1\">",
        "<testcase classname=\"rdmascope.p.run\" name=\"every point of the plan\" time=\"0.000000\"/>",
        "<testcase classname=\"rdmascope.p.lat\" name=\"size_bytes 8\" time=\"0.001500\"/>",
        "name=\"size_bytes 32\" time=\"0.001500\"><skipped message=\"no &lt;device&gt; &amp; no | port\"/></testcase>",
        "classname=\"rdmascope.p.expectations\" name=\"latency.p50_ns &lt;= 1500 ns: lat, 8 B\"",
        "name=\"latency.p50_ns &lt;= 1500 ns: lat, 16 B\" time=\"0.000000\"><skipped message=\"not decided: unstable: =SUM(A1),",
        "    <system-out>\nsize_bytes 8: latency.p50_ns 1000 ns",
    ] {
        assert!(xml.contains(part), "{part}: {xml}");
    }
    assert_eq!(escaped::xml("a\u{0}\u{1b}[31m\u{ffff}"), "a  [31m ");
}

/// Exports a run that another one is made of.
fn exported(format: Format, run: &Value, points: &[Point]) -> String {
    let mut json: Value = serde_json::from_str(RUN).unwrap();
    json.as_object_mut().unwrap().extend(run.as_object().unwrap().clone());
    let run: Run = serde_json::from_value(json).unwrap();
    let none = |_: &str| Err("none".to_owned());
    let mut out = Vec::new();
    let runs = [Exported { name: "r".to_owned(), run: &run, points, samples: &none, labels: &[] }];
    write(&runs, bench::PATTERNS, format, &[], &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

#[test]
fn a_run_that_ended_early_is_an_error_and_its_tests_keep_their_names() {
    let plan = json!({ "name": "p", "experiments": [
        { "name": "lat", "axes": { "size_bytes": [8, 16] }, "repetitions": 2 },
    ] });
    let part = json!({ "plan": plan, "points_planned": 4 });
    let points = &points()[..1];
    let xml = exported(Format::Junit, &part, points);
    let missing = "<error message=\"3 of 4 points are missing: the run ended early\" type=\"measurement\"/>";
    assert!(xml.contains(missing) && xml.contains(" errors=\"1\""), "{xml}");
    assert!(xml.contains("name=\"size_bytes 8, repetition 0\""), "{xml}");
    assert!(xml.contains("name=\"latency.p50_ns &lt;= 1500 ns: lat, 8 B\""), "{xml}");
    let metrics = exported(Format::OpenMetrics, &part, points);
    assert!(metrics.contains("\nrdmascope_points{status=\"missing\"} 3\n"), "{metrics}");
    assert!(!metrics.contains("rdmascope_run_ended"), "{metrics}");
    let ended = exported(Format::OpenMetrics, &json!({ "ended": "2026-11-28T02:34:57Z" }), points);
    assert!(ended.contains("\nrdmascope_run_ended_timestamp_seconds 1795833297\n"), "{ended}");
}

/// The names and labels of all series.
fn series(metrics: &str) -> Vec<&str> {
    metrics
        .lines()
        .filter(|line| !line.starts_with('#'))
        .map(|line| line.rsplit_once(' ').unwrap().0)
        .collect()
}

#[test]
fn no_two_series_and_no_two_tests_are_the_same() {
    let twice = [json!("no_loss"), json!("reason")]
        .map(|reason| json!({ "quantity": "messages_lost", "bound": "<= 0", "reason": reason }));
    let run = json!({ "expectations": twice });
    let mut points = points();
    let metrics = json!({ "bw (GB/s)": { "value": 1.0 }, "bw [GB/s]": { "value": 2.0 } });
    points[0].pattern = "application".to_owned();
    points[0].own.insert("application".to_owned(), json!({ "metrics": metrics }));
    points[1] = Point { id: 1, ..points[0].clone() };
    let mut out = Vec::new();
    let json: Value = serde_json::from_str(RUN).unwrap();
    let mut json = json;
    json.as_object_mut().unwrap().extend(run.as_object().unwrap().clone());
    let of_all: Run = serde_json::from_value(json).unwrap();
    let none = |_: &str| Err("none".to_owned());
    let runs =
        [Exported { name: "r".to_owned(), run: &of_all, points: &points, samples: &none, labels: &[] }];
    let asked = ["application".to_owned(), "latency".to_owned()];
    write(&runs, bench::PATTERNS, Format::OpenMetrics, &asked, &mut out).unwrap();
    let metrics = String::from_utf8(out).unwrap();
    let all = series(&metrics);
    let distinct: std::collections::BTreeSet<&&str> = all.iter().collect();
    assert_eq!(all.len(), distinct.len(), "{metrics}");
    for free in ["bw (GB/s)", "bw [GB/s]"] {
        assert!(metrics.contains(&format!("quantity=\"application.metrics.{free}\"")), "{free}: {metrics}");
    }
    assert!(!metrics.contains("{}"), "{metrics}");
    let xml = exported(Format::Junit, &run, &points);
    let names = |xml: &str| {
        let names = xml
            .match_indices("<testcase ")
            .map(|(at, _)| xml[at..].split(" time=").next().unwrap().to_owned());
        names.collect::<Vec<String>>()
    };
    let all = names(&xml);
    assert_eq!(all.len(), all.iter().collect::<std::collections::BTreeSet<_>>().len(), "{xml}");
}

#[test]
fn axes_of_foreign_records_make_valid_columns_and_labels() {
    let mut points = points();
    let axes = json!({ "run": 1, "a,b": 2, "a b": 3, "8": 4, "__x": 5, "experiment": "e" });
    points[0].axes = serde_json::from_value(axes).unwrap();
    let csv = exported(Format::Csv, &json!({}), &points);
    let head = csv.lines().next().unwrap();
    let axes = ",8,__x,a b,\"a,b\",axis_experiment,axis_run,size_bytes";
    assert!(head.ends_with(axes), "{head}");
    let metrics = exported(Format::OpenMetrics, &json!({}), &points);
    let labels = "experiment=\"lat\",pattern=\"ping-pong\",axis_8=\"4\",axis___x=\"5\",a_b=\"3\",axis_a_b=\"2\",\
                  axis_experiment=\"e\",axis_run=\"1\"} ";
    assert!(metrics.contains(labels), "{metrics}");
}

#[test]
fn a_description_keeps_its_backslash() {
    assert_eq!(escaped::help("a\\b\nc"), "a\\\\b\\nc");
}

/// A fleet of four of which the first is slow and the last was left out.
fn fleet(examined: Option<Value>) -> Value {
    let members: Vec<Value> =
        ["n1", "n2", "n3", "n4"].map(|name| json!({ "name": name, "host": name })).to_vec();
    let mut fleet = json!({
        "members": members, "quantities": [{ "name": "latency" }, { "name": "throughput" }], "schedule": "all-pairs",
        "passes": 3, "rounds": 16, "least": 0.05, "tolerance": 0.02, "alpha": 0.01, "seed": 1, "left": { "3": "no <route>" },
    });
    if let Some(examined) = examined {
        fleet["examined"] = examined;
    }
    json!({ "plan": { "name": "fleet" }, "fleet": fleet, "expectations": [], "points_planned": 0 })
}

fn culprit() -> Value {
    let evidence = json!({
        "screened": -0.5, "visits": [-0.5, -0.5, -0.5], "confirmed": -0.5, "bound": -0.1, "is_named": true, "peers": 3,
        "partners": 2,
    });
    json!({ "quantity": 1, "place": { "host": 0 }, "against": "others", "send": evidence, "receive": null })
}

fn found(verdict: &str, culprits: &[Value]) -> Value {
    let thresholds = json!({ "host": 0.1, "pair": 0.2, "cell_scale": 0.01, "host_scale": 0.01, "cells": 3 });
    let judged = ["latency", "throughput"].map(|name| {
        json!({ "name": name, "directed": name == "throughput", "cells": [], "effects": null, "thresholds": thresholds })
    });
    let undecided = json!([{ "quantity": null, "place": null, "reason": "too_few_hosts" }]);
    json!({
        "verdict": verdict, "culprits": culprits, "congestion": [], "cleared": [], "quantities": judged,
        "undecided": if verdict == "undecided" { undecided } else { json!([]) },
        "measurements": {
            "passes": 3, "rounds": 9, "is_cut": false, "screening": 18, "again": 0, "confirmation": 0, "under_load": 0,
            "missing": 0,
        },
    })
}

#[test]
fn a_fleet_has_its_verdict_as_metrics() {
    let metrics = exported(Format::OpenMetrics, &fleet(Some(found("culprits", &[culprit()]))), &[]);
    for line in [
        "rdmascope_fleet_members 4",
        "rdmascope_fleet_members_left_out 1",
        "rdmascope_fleet_culprits 1",
        "rdmascope_fleet_undecided 0",
        "rdmascope_fleet_culprit_deficit_ratio{culprit=\"n1\",quantity=\"throughput\",against=\"others\"} 0.3934",
        "rdmascope_fleet_detectable_deficit_ratio{quantity=\"latency\",place=\"pair\"} 0.1812",
    ] {
        assert!(metrics.contains(&format!("\n{line}")), "{line}: {metrics}");
    }
    let open = exported(Format::OpenMetrics, &fleet(None), &[]);
    assert!(open.contains("\nrdmascope_fleet_members 4\n") && !open.contains("fleet_culprits"), "{open}");
}

#[test]
fn a_fleet_has_a_test_for_each_member_and_its_culprits_fail() {
    let xml = exported(Format::Junit, &fleet(Some(found("culprits", &[culprit()]))), &[]);
    for part in [
        " tests=\"5\" failures=\"1\" errors=\"0\" skipped=\"1\" ",
        "<testcase classname=\"rdmascope.fleet.verdict\" name=\"every member is examined\" time=\"0.000000\"/>",
        "classname=\"rdmascope.fleet.members\" name=\"n1\" time=\"0.000000\"><failure message=\"n1: throughput: sends 39 % below \
         the others to 3 members; whether it receives as slowly was not measured\"",
        "name=\"n2\" time=\"0.000000\"/>",
        "name=\"n4\" time=\"0.000000\"><skipped message=\"left out: no &lt;route&gt;\"/>",
    ] {
        assert!(xml.contains(part), "{part}: {xml}");
    }
    let mut pair = culprit();
    pair["place"] = json!({ "pair": { "a": 1, "b": 2 } });
    let xml = exported(Format::Junit, &fleet(Some(found("culprits", &[pair]))), &[]);
    assert!(
        xml.contains("classname=\"rdmascope.fleet.culprits\" name=\"n2 - n3\" time=\"0.000000\"><failure"),
        "{xml}"
    );
    let xml = exported(Format::Junit, &fleet(Some(found("undecided", &[]))), &[]);
    assert!(xml.contains("<skipped message=\"not decided: fewer than four members answered\""), "{xml}");
    let xml = exported(Format::Junit, &fleet(None), &[]);
    assert!(
        xml.contains(" tests=\"1\" failures=\"0\" errors=\"1\" ") && xml.contains("is not complete"),
        "{xml}"
    );
}

/// Such a fleet has no culprit and ends with status 3.
#[test]
fn what_misses_an_expectation_under_load_alone_fails_its_test() {
    let congestion = |place: Value| {
        json!({
            "quantity": 1, "place": place, "way": "send", "against": "floor", "screened": -0.5, "again": -0.5,
            "isolated": 0.1,
        })
    };
    let mut found = found("culprits", &[]);
    found["congestion"] =
        json!([congestion(json!({ "host": 0 })), congestion(json!({ "pair": { "a": 1, "b": 2 } }))]);
    let metrics = exported(Format::OpenMetrics, &fleet(Some(found.clone())), &[]);
    assert!(metrics.contains("\nrdmascope_fleet_missed_under_load 2\n"), "{metrics}");
    let xml = exported(Format::Junit, &fleet(Some(found)), &[]);
    for part in [
        " failures=\"2\" ",
        "classname=\"rdmascope.fleet.members\" name=\"n1\" time=\"0.000000\"><failure message=\"n1: throughput: ",
        "classname=\"rdmascope.fleet.culprits\" name=\"n2 - n3\" time=\"0.000000\"><failure message=\"n2 -&gt; n3: ",
    ] {
        assert!(xml.contains(part), "{part}: {xml}");
    }
}

#[test]
fn a_row_of_a_fleet_names_its_members_and_its_round() {
    let mut points = points();
    points[0].fleet = serde_json::from_value(json!({ "round": 7, "members": [2, 0] })).unwrap();
    let lines = exported(Format::Json, &fleet(None), &points);
    let first: Value = serde_json::from_str(lines.lines().next().unwrap()).unwrap();
    assert_eq!((&first["round"], &first["members"]), (&json!(7), &json!("n3,n1")));
    assert_eq!(first["stage"], "schedule");
    // Its schedule of three passes had nine rounds.
    points[0].fleet = serde_json::from_value(json!({ "round": 9, "members": [2, 0] })).unwrap();
    let lines = exported(Format::Json, &fleet(Some(found("culprits", &[culprit()]))), &points);
    let first: Value = serde_json::from_str(lines.lines().next().unwrap()).unwrap();
    assert_eq!(first["stage"], "suspects");
}

#[test]
fn a_fleet_is_a_verdict_for_people() {
    let cells = json!([[0, 1, 20.0], [1, 0, 19.3]]);
    let mut said = found("culprits", &[culprit()]);
    said["quantities"][1]["cells"] = cells;
    said["congestion"] = json!([{
        "quantity": 1, "place": { "pair": { "a": 1, "b": 2 } }, "way": "send", "against": "others", "screened": -0.4,
        "again": -0.3, "isolated": 0.0,
    }]);
    let metrics = exported(Format::OpenMetrics, &fleet(Some(said.clone())), &[]);
    assert!(metrics.contains("\nrdmascope_fleet_congested 1\n"), "{metrics}");
    let table = exported(Format::Markdown, &fleet(Some(said)), &points());
    for part in [
        "**1 culprit**; 18 measurements of pairs in 9 rounds (3 passes)\n\n- **n1: throughput: sends 39 % below",
        "\n  - sending: 39 % below under load; 39 % below, 39 % below, 39 % below in 3 visits in isolation",
        "\n- left out: n4: no \\<route\\>\n",
        "\n- congested: n2 -\\> n3: throughput: ",
        "\n- would have been named: throughput: ",
        "\n\n| of pairs | min |",
        "\n| throughput | ",
    ] {
        assert!(table.contains(part), "{part}: {table}");
    }
    assert!(!table.contains("| experiment |"), "{table}");
    let open = exported(Format::Markdown, &fleet(None), &[]);
    assert!(open.contains("\nthe examination is not complete, it ended in round 1: "), "{open}");
}

#[test]
fn a_table_for_people_escapes_its_syntax() {
    let table = text(Format::Markdown, &["latency.p50_ns"]);
    let expected = "\
### A & \"B\" \\<c\\> (r, 2026-11-28T02:33:57Z)

| experiment | axes | latency.p50\\_ns | remarks |
| --- | --- | ---: | --- |
| lat | size\\_bytes 8 | 1000 ns |  |
| lat | size\\_bytes 16 | 2000 ns | =SUM(A1), \"quoted\" and more |
| lat | size\\_bytes 32 | – | no \\<device\\> & no \\| port |

| expectation | points | judgement |
| --- | --- | --- |
| latency.p50\\_ns \\<= 1500 ns | lat, 8 B | met; 1000 ns \\[996 ns, 1004 ns\\] (n 11) |
";
    assert!(table.starts_with(expected), "{table}");
}
