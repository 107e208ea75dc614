//! `rdmascope export`, read by the programs that it is for: pandas, DuckDB, promtool, JUnit's
//! readers.

use std::collections::BTreeSet;
use std::process::Stdio;

use crate::support::{Scratch, finish, is_installed, python, skip};

/// A record of two experiments with two repetitions, one point that cannot be measured, and bounds
/// of which one is met, one is not, and one is not decided.
const PLAN: &str = r#"
name = "p"
title = "P"

[[experiment]]
name = "lat"
pattern = "ping-pong"
iterations = 501
repetitions = 2
axes = { size_bytes = [8, 64] }

[[experiment]]
name = "bw"
pattern = "stream"
iterations = 200
axes = { size_bytes = 4096 }

[[experiment]]
name = "empty"
pattern = "ping-pong"
iterations = 10
axes = { service = "RC", operation = "write", size_bytes = 0 }

[[expect]]
quantity = "no_loss"

[[expect]]
quantity = "counters.packets_sent"
bound = "<= 1"
experiments = ["lat"]

[[expect]]
quantity = "missed"
bound = "<= 1 %"
"#;

fn recorded() -> Scratch {
    let scratch = Scratch::on_one_cpu();
    scratch.write("plan.toml", PLAN);
    let ended = scratch.run(&["run", "plan.toml", "--out", "run"]);
    assert_eq!(ended.status, Some(3), "{ended:?}");
    scratch
}

#[track_caller]
fn reads(scratch: &Scratch, python: &str, script: &str) {
    let ended = python::run(scratch, python, script);
    assert_eq!((ended.status, ended.stderr.as_str()), (Some(0), ""), "{ended:?}");
}

#[test]
fn pandas_reads_the_tables_and_finds_the_medians_in_the_samples() {
    let Some(python) = python::with(&["pandas"]) else { return };
    let scratch = recorded();
    scratch.succeed(&["export", "run", "--out", "run.csv"]);
    scratch.succeed(&["export", "run", "--format", "json", "--out", "run.json"]);
    scratch.succeed(&["export", "run", "--samples", "--out", "samples.csv"]);
    let schema = format!("{}/../../docs/schema", env!("CARGO_MANIFEST_DIR"));
    let script = r#"
import json, numpy, pandas
numbers = pandas.read_csv("run.csv", keep_default_na=False, na_values=[""])
lines = pandas.read_json("run.json", lines=True)
assert list(numbers.columns) == list(lines.columns), (numbers.columns, lines.columns)
assert len(numbers) == len(lines) and (numbers.quantity.fillna("") == lines.quantity.fillna("")).all()
assert numpy.allclose(numbers.value, lines.value, equal_nan=True, rtol=1e-12, atol=0)
keys = ["run", "point", "quantity"]
assert not numbers.duplicated(keys).any()
missing = numbers[numbers.quantity.isna()]
assert list(missing.status) == ["not_measured"] and missing.reason.notna().all(), missing
measured = numbers[numbers.status == "measured"]
assert measured.value.notna().all() and measured.quantity.notna().all()
assert ((measured.low <= measured.value) & (measured.value <= measured.high) | measured.low.isna()).all()

# Every column is described, and has the described type; every required cell has a value.
for table, name in [(numbers, "export"), (pandas.read_csv("samples.csv"), "export-samples")]:
    fields = {f["name"]: f for f in json.load(open(f"SCHEMA/{name}.schema.json"))["fields"]}
    assert set(table.columns) <= set(fields), set(table.columns) - set(fields)
    for column in table:
        field = fields[column]
        if field.get("constraints", {}).get("required"):
            assert table[column].notna().all(), column
        values = table[column].dropna()
        if field["type"] in ("integer", "number"):
            assert pandas.api.types.is_numeric_dtype(values) or len(values) == 0, column
        if field["type"] == "integer":
            assert (values == values.astype("int64")).all(), column

samples = pandas.read_csv("samples.csv", dtype={"source": str})
def inverted(samples, share):
    return numpy.quantile(samples, share, method="inverted_cdf")
checked = 0
for quantity, share in [("p10_ns", 0.1), ("p50_ns", 0.5), ("p99_ns", 0.99), ("max_ns", 1.0)]:
    for rank in ["0", "1"]:
        own = samples[samples.source == rank].groupby(["run", "point"]).latency_ns
        computed = own.apply(lambda s: inverted(s, share))
        stated = measured[measured.quantity == f"ends.{rank}.latency.{quantity}"]
        stated = stated.set_index(["run", "point"]).value
        assert len(stated) == 4 and (computed == stated).all(), (computed, stated)
        checked += len(stated)
    main = measured[(measured.quantity == f"latency.{quantity}") & (measured.experiment == "lat")]
    first = samples[samples.source == "0"].groupby(["run", "point"]).latency_ns.apply(lambda s: inverted(s, share))
    assert (main.set_index(["run", "point"]).value == first).all()
assert checked == 32
assert (samples.groupby(["point", "source"]).latency_ns.count() == 501).all()
"#;
    reads(&scratch, &python, &script.replace("SCHEMA", &schema));
}

#[test]
fn duckdb_reads_the_tables() {
    let Some(python) = python::with(&["duckdb"]) else { return };
    let scratch = recorded();
    scratch.succeed(&["export", "run", "--out", "run.csv"]);
    scratch.succeed(&["export", "run", "--format", "json", "--out", "run.json"]);
    scratch.succeed(&["export", "run", "--samples", "--format", "json", "--out", "samples.json"]);
    let script = r#"
import duckdb
one = lambda text: duckdb.sql(text).fetchall()
query = "SELECT point, value FROM '{}' WHERE quantity = 'latency.p50_ns' AND size_bytes = 64 ORDER BY point"
stated = one(query.format("run.csv"))
assert len(stated) == 2 and stated == one(query.format("run.json")), stated
computed = one("""
    SELECT point, quantile_disc(latency_ns, 0.5) FROM 'samples.json'
    WHERE source = '0' AND point IN (SELECT point FROM 'run.json' WHERE size_bytes = 64 AND experiment = 'lat')
    GROUP BY point ORDER BY point""")
assert computed == stated, (computed, stated)
assert one("SELECT count(*) FROM 'run.csv' WHERE status = 'not_measured' AND quantity IS NULL") == [(1,)]
"#;
    reads(&scratch, &python, script);
}

#[cfg(feature = "parquet")]
#[test]
fn duckdb_reads_parquet_as_it_reads_csv() {
    let Some(python) = python::with(&["duckdb"]) else { return };
    let scratch = recorded();
    for (format, end) in [("csv", "csv"), ("parquet", "parquet")] {
        scratch.succeed(&["export", "run", "--format", format, "--out", &format!("run.{end}")]);
        scratch.succeed(&[
            "export",
            "run",
            "--samples",
            "--format",
            format,
            "--out",
            &format!("samples.{end}"),
        ]);
    }
    let script = r#"
import duckdb
one = lambda text: duckdb.sql(text).fetchall()
for table in ["run", "samples"]:
    columns = [row[0] for row in one(f"DESCRIBE FROM '{table}.csv'")]
    assert columns == [row[0] for row in one(f"DESCRIBE FROM '{table}.parquet'")], columns
    for column in columns:
        query = f'SELECT "{column}"::VARCHAR FROM \'{table}.{{}}\''
        if column != "started":
            query = f'SELECT coalesce(try_cast("{column}" AS DOUBLE)::VARCHAR, "{column}"::VARCHAR) FROM \'{table}.{{}}\''
            assert one(query.format("csv")) == one(query.format("parquet")), (table, column)
types = {row[0]: row[1] for row in one("DESCRIBE FROM 'run.parquet'")}
expected = {"started": "TIMESTAMP WITH TIME ZONE", "point": "BIGINT", "value": "DOUBLE", "quantity": "VARCHAR",
            "size_bytes": "BIGINT"}
assert {name: types[name] for name in expected} == expected, types
"#;
    reads(&scratch, &python, script);
}

#[test]
fn readers_of_junit_count_points_and_bounds() {
    let Some(python) = python::with(&["junitparser"]) else { return };
    let scratch = recorded();
    scratch.succeed(&["export", "run", "--format", "junit", "--out", "run.xml"]);
    let script = r#"
from junitparser import Error, Failure, JUnitXml, Skipped
suites = list(JUnitXml.fromfile("run.xml"))
assert [(s.name, s.tests, s.failures, s.errors, s.skipped) for s in suites] == [("P", 14, 2, 0, 3)], suites
cases = list(suites[0])
of = lambda kind: [c.name for c in cases if any(isinstance(r, kind) for r in c.result)]
assert len(cases) == 14 and len({(c.classname, c.name) for c in cases}) == 14
assert [name.split(":")[0] for name in of(Failure)] == ["counters.packets_sent <= 1"] * 2 and not of(Error)
assert len(of(Skipped)) == 3
"#;
    reads(&scratch, &python, script);
}

#[test]
fn junit_keeps_to_the_schema_of_ant() {
    let scratch = recorded();
    let first = format!("{}/tests/records/0.1.0", env!("CARGO_MANIFEST_DIR"));
    scratch.succeed(&["export", "run", &first, "--format", "junit", "--out", "run.xml"]);
    let compared = scratch.succeed(&["compare", "run", "run", "--anyway", "--format", "junit"]);
    scratch.write("compared.xml", &compared);
    let suites = std::fs::read_to_string(scratch.at("run.xml")).unwrap();
    assert_eq!(suites.matches("<testsuite ").count(), 2, "{suites}");
    python::keep_to_junit(&scratch, &["run.xml", "compared.xml"]);
}

/// A fleet in which each host misses a limit.
#[test]
fn a_fleet_has_metrics_and_cases() {
    let scratch = Scratch::on_one_cpu();
    let missed =
        "fleet send --local 4 --schedule ring --passes 1 -n 20 -D 2ms --visits-apart 0 --at-most 1ns";
    let ended = scratch.run(&missed.split(' ').chain(["--out", "run"]).collect::<Vec<_>>());
    assert_eq!(ended.status, Some(3), "{ended:?}");
    let metrics = scratch.succeed(&["export", "run", "--format", "openmetrics"]);
    for words in ["rdmascope_fleet_culprit", "against=\"expectation\""] {
        assert!(metrics.contains(words), "no {words} in {metrics}");
    }
    scratch.succeed(&["export", "run", "--format", "junit", "--out", "run.xml"]);
    let cases = std::fs::read_to_string(scratch.at("run.xml")).unwrap();
    assert!(cases.contains("<failure "), "{cases}");
    python::keep_to_junit(&scratch, &["run.xml"]);
    take_metrics(&scratch, &[metrics]);
}

#[test]
fn promtool_takes_the_metrics() {
    let scratch = recorded();
    let metrics = scratch.succeed(&["export", "run", "--format", "openmetrics", "--label", "unit=a \"b\""]);
    let own = metrics.lines().filter(|line| !line.starts_with('#'));
    assert!(
        own.clone().count() > 10 && own.clone().all(|line| line.contains("{unit=\"a \\\"b\\\"\"")),
        "{metrics}"
    );
    // Two records of one name, as `compare --interleave` lays them.
    let copied = finish(scratch.shell("mkdir base new && cp -r run base/1 && cp -r run new/1"));
    assert_eq!(copied.status, Some(0), "{copied:?}");
    scratch.refused(&["export", "run", "base/1", "./run"], 2, &["the run run is given twice"]);
    let all = scratch.succeed(&[
        "export",
        "base/1",
        "new/1",
        "--format",
        "openmetrics",
        "--quantity",
        "latency",
        "--quantity",
        "cpu",
        "--quantity",
        "cpu_ns_per_message",
        "--quantity",
        "counters",
        "--quantity",
        "wall_ns",
    ]);
    assert!(all.contains("# TYPE rdmascope_cpu_seconds_per_message gauge\n"), "{all}");
    assert!(all.contains("{run=\"base/1\",") && all.contains("{run=\"new/1\","), "{all}");
    // Prometheus refuses equal series, which promtool does not look for.
    let series = all.lines().filter(|line| !line.starts_with('#')).filter_map(|line| line.rsplit_once(' '));
    let series: Vec<&str> = series.map(|(series, _)| series).collect();
    assert_eq!(series.iter().collect::<BTreeSet<_>>().len(), series.len(), "{all}");
    take_metrics(&scratch, &[metrics, all]);
}

/// Checks metrics with promtool.
fn take_metrics(scratch: &Scratch, texts: &[String]) {
    if !is_installed("promtool") {
        return skip("promtool", "it is not installed (the package prometheus)");
    }
    for text in texts {
        let file = scratch.write("metrics.prom", text);
        let mut command = scratch.command("promtool");
        command.args(["check", "metrics"]).stdin(Stdio::from(std::fs::File::open(file).unwrap()));
        let ended = finish(command);
        assert_eq!((ended.status, ended.stdout.as_str(), ended.stderr.as_str()), (Some(0), "", ""));
    }
}

#[test]
fn a_table_for_people_has_a_row_for_each_combination() {
    let scratch = recorded();
    let table = scratch.succeed(&["export", "run", "--format", "markdown", "--quantity", "latency.p50_ns"]);
    let rows: Vec<&str> = table.lines().filter(|line| line.starts_with("| lat | size\\_bytes ")).collect();
    assert_eq!(rows.len(), 2, "{table}");
    assert!(table.contains("| counters.packets\\_sent \\<= 1 | lat, 8 B | not met; "), "{table}");
}

#[test]
fn wrong_requests_are_refused() {
    let scratch = Scratch::new();
    scratch.refused(&["export", "none"], 2, &["none", "there is no such directory"]);
    let run = format!("{}/tests/records/0.1.0", env!("CARGO_MANIFEST_DIR"));
    let refused =
        |more: &[&str], words: &[&str]| scratch.refused(&[&["export", &run][..], more].concat(), 2, words);
    refused(
        &["--quantity", "latency.p98_ns"],
        &["unknown quantity \"latency.p98_ns\": give a path such as latency."],
    );
    refused(&["--label", "a=b"], &["--label is for --format openmetrics"]);
    let twice = ["--format", "openmetrics", "--label", "a=1", "--label", "a=2"];
    refused(&twice, &["--label a is given twice"]);
    for (label, words) in [
        ("unit", "give a name and a value such as unit=nightly"),
        ("pattern=x", "\"pattern\" cannot be the name of a label"),
        ("0a=x", "\"0a\" cannot be the name of a label"),
    ] {
        let ended = scratch.run(&["export", &run, "--format", "openmetrics", "--label", label]);
        assert!(ended.status == Some(2) && ended.stderr.contains(words), "{ended:?}");
    }
    for file in ["run.json", "points.jsonl", "samples/new.u64"] {
        let path = format!("{run}/{file}");
        refused(&["--format", "json", "--out", &path], &[&path, "is part of the record"]);
    }
    refused(&["--samples", "--format", "junit"], &["--samples writes csv, json or parquet"]);
    refused(&["--format", "junit", "--quantity", "latency"], &["leave --quantity out"]);
    if !cfg!(feature = "parquet") {
        refused(
            &["--format", "parquet"],
            &["built without Parquet: build it with --features parquet", "DuckDB"],
        );
    }
    let unwritable =
        scratch.refused(&["export", &run, "--out", "no/such.csv"], 1, &["cannot write no/such.csv"]);
    assert!(!unwritable.contains("panicked"));
}

#[test]
fn a_record_of_the_first_version_is_exported_in_every_format() {
    let scratch = Scratch::new();
    let run = format!("{}/tests/records/0.1.0", env!("CARGO_MANIFEST_DIR"));
    for format in ["csv", "json", "markdown", "openmetrics", "junit"] {
        let text = scratch.succeed(&["export", &run, "--format", format]);
        assert!(text.contains("0.1.0") || format == "openmetrics", "{format}: {text}");
        assert!(text.lines().count() > 20, "{format}: {text}");
    }
    // A reader that has seen enough is no failure.
    for more in ["", "--format json", "--samples"] {
        let ended = finish(scratch.shell(&format!("\"$0\" export {run} {more} | head -n 1")));
        assert_eq!((ended.status, ended.stderr.as_str()), (Some(0), ""), "{more}");
    }
}
