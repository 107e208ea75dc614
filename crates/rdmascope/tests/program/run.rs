//! `rdmascope run`, `lat` and `bw` from the outside: what they print, what they keep, and that the
//! numbers agree.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::process::{Command, Stdio};

use measure::record::{Latency, LatencyKind, Point, Status};
use serde_json::Value;

use crate::support::{
    LONG, PROGRAM, SMALL, Scratch, all_measured, collect, copy_program, finish, has_librdmacm, is_installed,
    skip,
};

#[test]
fn the_quick_plan_runs_to_its_end_with_every_point_measured() {
    let scratch = Scratch::on_one_cpu();
    let out = scratch.at("record");
    let stdout = scratch.succeed(&["run", "quick", "--quick", "--out", out.to_str().unwrap()]);
    let last = stdout.lines().last().unwrap();
    assert_eq!(last, out.join("report.html").to_str().unwrap());
    assert!(fs::metadata(last).unwrap().len() > 10_000);

    let (run, points) = scratch.record("record");
    assert_eq!(points.len() as u64, run.points_planned);
    assert!(all_measured(&points), "{points:?}");
    let services: BTreeSet<_> = points.iter().map(|p| p.axes["service"].as_str().unwrap()).collect();
    assert_eq!(services, BTreeSet::from(["RC", "UC", "UD"]));
    assert!(run.ended.is_some() && run.quick);
    assert_eq!(run.devices.len(), 2);
    assert_eq!(run.environments.len(), 2);
    scratch.assert_nothing_left();
}

#[test]
fn the_plan_of_a_published_evaluation_runs_in_its_quick_form() {
    let scratch = Scratch::alone();
    let stdout = scratch.succeed(&["run", "gamess-2016", "--quick", "--out", "record"]);
    assert_eq!(stdout.lines().last(), Some("record/report.html"));
    let (run, points) = scratch.record("record");
    assert_eq!(points.len() as u64, run.points_planned);
    let failed = points.iter().filter(|p| matches!(p.status, Status::Failed { .. }));
    assert_eq!(failed.count(), 0);
}

#[test]
fn the_plan_of_a_thesis_runs_with_a_few_messages_and_answers_its_findings() {
    let scratch = Scratch::on_one_cpu();
    let few = ["iterations=20", "repetitions=1", "warmup=2"];
    let pauses = ["experiment.event-pause.pause_ns=1ms", "experiment.busy-pause.pause_ns=1ms"];
    let mut words = vec!["run", "potter-2018-hca", "--quick", "-d", "softdev0", "--out", "record"];
    words.extend(few.iter().chain(&pauses).flat_map(|set| ["--set", set]));
    let stdout = scratch.succeed(&words);
    let (run, points) = scratch.record("record");
    assert_eq!(points.len() as u64, run.points_planned);
    let has_manager = has_librdmacm();
    for point in &points {
        // More inline bytes than the device allows, and RDMA CM if librdmacm is missing.
        let is_missing = matches!(point.status, Status::NotMeasured { .. });
        let axis =
            |name: &str, value: &str| point.axes.get(name).is_some_and(|is| is.as_str() == Some(value));
        let large = point.axes["size_bytes"].as_u64() > Some(512) && point.axes["inline"] == true;
        assert_eq!(is_missing, large || (axis("setup", "rdma_cm") && !has_manager), "{point:?}");
        assert!(!matches!(point.status, Status::Failed { .. }), "{point:?}");
    }
    let cases = stdout.split(" findings: ").nth(1).expect("findings are answered");
    assert!(cases.lines().next().unwrap().contains(" not measured, of "), "{cases}");
    assert_eq!(cases.contains("librdmacm.so.1"), !has_manager, "{cases}");
    let report = fs::read_to_string(scratch.at("record/report.html")).unwrap();
    assert!(run.findings.iter().all(|finding| report.contains(&finding.claim)), "the report has every claim");
}

#[test]
fn the_plan_of_one_to_n_runs_with_a_few_rounds_and_answers_its_findings() {
    let scratch = Scratch::on_one_cpu();
    let few = ["iterations=8", "repetitions=1", "warmup=1", "bytes_max=64KiB", "peers=1,10,15"];
    let mut words = vec!["run", "hoefler-2006", "--quick", "-v", "-d", "softdev0", "--out", "record"];
    words.extend(few.iter().flat_map(|set| ["--set", set]));
    let stdout = scratch.succeed(&words);
    let (run, points) = scratch.record("record");
    assert_eq!(points.len() as u64, run.points_planned);
    assert!(all_measured(&points), "{points:?}");
    assert!(stdout.contains(" message: the median") && stdout.contains(", 0 not measured, of "), "{stdout}");
    assert!(stdout.contains("RC, read, memory ") && stdout.contains("R^2 "), "{stdout}");
    let report = fs::read_to_string(scratch.at("record/report.html")).unwrap();
    assert!(run.findings.iter().all(|finding| report.contains(&finding.claim)), "the report has every claim");
}

/// Whether a point needs a tool that this host does not have.
fn lacks_tool(point: &Point) -> bool {
    let Status::NotMeasured { reason } = &point.status else { return false };
    let name = point.axes.get("tool").and_then(|tool| tool.as_str()).unwrap_or_default();
    let lacks = reason.contains(&format!("has no {name}"));
    if lacks {
        skip(name, reason);
    }
    lacks
}

/// One host without an adapter has neither a link nor an IPoIB interface, and no other number takes
/// their place.
#[test]
fn plans_of_links_that_are_not_there_measure_what_is_there_and_say_so() {
    let scratch = Scratch::on_one_cpu();
    for (plan, missing, found, words) in
        [("subramoni-2009", "modes", "as-found", "22.71"), ("gamess-2016-ipoib", "mode", "found", "10446.27")]
    {
        let few = ["--set", "size_bytes=64,32KiB", "--quick", "-d", "softdev0"];
        // Other tools measure for a second each.
        let of_tools =
            ["throughput", "latency"].map(|what| format!("experiment.{what}-of-tools.size_bytes=64"));
        let fewer = of_tools.iter().filter(|_| plan == "gamess-2016-ipoib").flat_map(|set| ["--set", set]);
        // With --via, no ranks of MPI are started, even if MPI is installed.
        let by = ["--via", "env"].into_iter().filter(|_| plan == "subramoni-2009");
        let command: Vec<&str> =
            ["run", plan, "--out", plan].into_iter().chain(few).chain(fewer).chain(by).collect();
        let stdout = scratch.succeed(&command);
        let (run, points) = scratch.record(plan);
        assert_eq!(points.len() as u64, run.points_planned);
        let is_missing = |point: &Point| match point.axes.get("ipoib_mode") {
            Some(mode) => mode != found,
            None => {
                let is_of_mpi = point.experiment.starts_with("mpi") || point.pattern == "application";
                // Not every file system of temporary files supports O_DIRECT.
                let is_direct = point.experiment == "zero-copy";
                let is_cached = is_direct && point.status != Status::Measured;
                point.experiment == missing || is_of_mpi || is_cached
            }
        };
        let (not, measured): (Vec<Point>, Vec<Point>) = points.into_iter().partition(is_missing);
        let measured: Vec<_> = measured.into_iter().filter(|point| !lacks_tool(point)).collect();
        assert!(all_measured(&measured) && !not.is_empty(), "{measured:?}");
        for point in &not {
            let Status::NotMeasured { reason } = &point.status else { panic!("{point:?}") };
            let known = [
                "no IPoIB interface",
                "exchange messages without a link",
                "has neither an InfiniBand nor an Ethernet link",
                "over loopback and not over",
                "--via does not start ranks of MPI",
                "has no O_DIRECT",
            ];
            assert!(known.iter().any(|words| reason.contains(words)), "{reason}");
        }
        // A single run of a second decides nothing, and no other number takes the place of missing
        // points.
        assert!(stdout.contains(" findings: 0 reproduced, "), "{stdout}");
        let report = fs::read_to_string(scratch.at(plan).join("report.html")).unwrap();
        assert!(report.contains(words) && !report.contains("class=\"complaint\">Cannot"), "{plan}");
    }
}

#[test]
fn the_plan_of_several_pairs_runs_with_a_few_messages_and_answers_its_findings() {
    let scratch = Scratch::on_one_cpu();
    // Streams of several pairs end too soon if all ranks share one CPU; one pair always has its
    // number.
    let few = ["repetitions=1", "experiment.bandwidth.duration=50ms", "experiment.halo-processes.grid=4x1"];
    let pairs = ["write", "write-long", "read"].map(|name| format!("experiment.{name}.pairs=1,2,8"));
    let messages =
        ["write", "write-long", "read", "send"].map(|name| format!("experiment.{name}.iterations=8"));
    // With --via, no ranks of MPI are started, even if MPI is installed.
    let mut words = vec!["run", "sur-2007", "--quick", "-d", "softdev0", "--out", "record", "--via", "env"];
    let set = few.into_iter().chain(pairs.iter().chain(&messages).map(String::as_str));
    words.extend(set.flat_map(|set| ["--set", set]));
    let stdout = scratch.succeed(&words);
    let (run, points) = scratch.record("record");
    assert_eq!(points.len() as u64, run.points_planned);
    let (lammps, points): (Vec<Point>, Vec<Point>) =
        points.into_iter().partition(|point| point.pattern == "application");
    assert!(
        lammps.len() == 5 && lammps.iter().all(|point| matches!(point.status, Status::NotMeasured { .. }))
    );
    let (halo, points): (Vec<Point>, Vec<Point>) =
        points.into_iter().partition(|point| point.experiment.starts_with("halo"));
    let (over_verbs, over_mpi): (Vec<Point>, Vec<Point>) =
        halo.into_iter().partition(|point| point.axes["endpoint"] == "verbs");
    assert!(over_verbs.len() == 4 + 1 + 2 && all_measured(&over_verbs), "{over_verbs:?}");
    let is_not = |point: &Point| matches!(point.status, Status::NotMeasured { .. });
    assert!(over_mpi.iter().all(is_not) && over_mpi.len() == 4 + 1 + 5 * 2);
    let latencies: Vec<Point> = points.into_iter().filter(|point| point.experiment != "bandwidth").collect();
    assert!(latencies.len() == 27 && all_measured(&latencies), "{latencies:?}");
    assert!(
        stdout.contains(" 8 pairs, 1 B: the last pair starts") && stdout.contains(", of 24 cases"),
        "{stdout}"
    );
    let report = fs::read_to_string(scratch.at("record/report.html")).unwrap();
    assert!(run.findings.iter().all(|finding| report.contains(&finding.claim)), "the report has every claim");
    assert!(report.contains("Throughput of all pairs [MB/s]"));
}

#[test]
fn a_record_has_the_published_names_and_keeps_to_its_schema() {
    let scratch = Scratch::on_one_cpu();
    scratch.write("plan.toml", SMALL);
    scratch.succeed(&["run", "plan.toml", "--out", "record"]);
    let schema = |name: &str| -> Value {
        let path = format!("{}/../../docs/schema/{name}.schema.json", env!("CARGO_MANIFEST_DIR"));
        serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap()
    };
    let run: Value =
        serde_json::from_str(&fs::read_to_string(scratch.at("record/run.json")).unwrap()).unwrap();
    assert_eq!(crate::support::schema::errors(&schema("run"), &run), Vec::<String>::new());
    let point_schema = schema("point");
    let text = fs::read_to_string(scratch.at("record/points.jsonl")).unwrap();
    let points: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(points.len(), 10);
    for point in &points {
        assert_eq!(crate::support::schema::errors(&point_schema, point), Vec::<String>::new());
        let axes: Vec<_> = point["axes"].as_object().unwrap().keys().map(String::as_str).collect();
        let known = [
            "direction",
            "endpoint",
            "inline",
            "mtu_bytes",
            "operation",
            "poll",
            "service",
            "signal_interval",
            "signal_rate",
            "size_bytes",
        ];
        assert_eq!(axes, known);
        assert!(!has_null(point), "what does not apply is absent: {point}");
    }
    // The validator itself: it notices a missing and a wrong field.
    let mut spoilt = points[0].clone();
    spoilt["latency"]["p50_ns"] = "fast".into();
    spoilt.as_object_mut().unwrap().remove("wall_ns");
    assert_eq!(crate::support::schema::errors(&point_schema, &spoilt).len(), 2);
}

fn has_null(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(items) => items.iter().any(has_null),
        Value::Object(fields) => fields.values().any(has_null),
        _ => false,
    }
}

#[test]
fn statistics_are_those_of_the_samples_kept_beside_them() {
    let scratch = Scratch::on_one_cpu();
    scratch.write("plan.toml", SMALL);
    scratch.succeed(&["run", "plan.toml", "--out", "record"]);
    let (_, points) = scratch.record("record");
    let mut checked = 0;
    for point in points.iter().filter(|point| point.pattern == "ping-pong") {
        assert_eq!(point.latency.as_ref().map(|l| l.kind), Some(LatencyKind::RttHalf));
        assert_eq!(point.latency, point.ends[0].latency, "rank 0's is the point's");
        for end in &point.ends {
            let samples = samples(&scratch, end.samples.as_ref().unwrap());
            assert_eq!(samples.len() as u64, point.iterations.unwrap());
            agree(end.latency.as_ref().unwrap(), &samples);
            checked += 1;
        }
    }
    assert_eq!(checked, 12);
}

/// Reads samples from disk: 8 bytes each, little-endian.
fn samples(scratch: &Scratch, path: &str) -> Vec<u64> {
    let bytes = fs::read(scratch.at("record").join(path)).unwrap();
    assert_eq!(bytes.len() % 8, 0);
    bytes.chunks(8).map(|chunk| u64::from_le_bytes(chunk.try_into().unwrap())).collect()
}

/// Computes the statistics again, in the simplest way, and compares.
fn agree(latency: &Latency, samples: &[u64]) {
    let mut sorted = samples.to_vec();
    sorted.sort_unstable();
    let n = sorted.len();
    // The smallest sample that at least this share of all samples does not exceed.
    let quantile = |part: usize, whole: usize| sorted[(n * part).div_ceil(whole) - 1];
    let ours = (latency.count, latency.min_ns, latency.max_ns);
    assert_eq!(ours, (n as u64, sorted[0], sorted[n - 1]));
    assert_eq!(
        [latency.p10_ns, latency.p50_ns, latency.p90_ns, latency.p99_ns, latency.p999_ns],
        [quantile(10, 100), quantile(50, 100), quantile(90, 100), quantile(99, 100), quantile(999, 1000)]
    );
    let mean = sorted.iter().map(|x| *x as f64).sum::<f64>() / n as f64;
    let squares = sorted.iter().map(|x| (*x as f64 - mean).powi(2)).sum::<f64>();
    let stddev = (squares / (n as f64 - 1.0)).sqrt();
    let close = |a: f64, b: f64| (a - b).abs() <= 1e-9 * b.abs().max(1.0);
    assert!(close(latency.mean_ns, mean), "{} {mean}", latency.mean_ns);
    assert!(close(latency.stddev_ns.unwrap(), stddev), "{:?} {stddev}", latency.stddev_ns);
    let [low, high] = latency.p50_ci95_ns.unwrap();
    assert!(low <= latency.p50_ns && latency.p50_ns <= high);
    for (threshold, share) in &latency.share_above {
        let threshold: u64 = threshold.parse().unwrap();
        let above = sorted.iter().filter(|x| **x > threshold).count();
        assert!(close(*share, above as f64 / n as f64));
    }
    let mavericks = sorted.iter().filter(|x| **x as f64 > 2.0 * mean).count();
    assert_eq!(latency.mavericks.count, mavericks as u64);
}

#[test]
fn the_tables_show_what_the_record_holds() {
    let scratch = Scratch::on_one_cpu();
    let stdout = scratch.succeed(&["lat", "send", "--local", "-s", "2..64", "-n", "500", "--out", "record"]);
    let (_, points) = scratch.record("record");
    let rows = rows(&stdout);
    assert_eq!(rows.len(), 6);
    for (point, row) in points.iter().zip(&rows) {
        let latency = point.latency.as_ref().unwrap();
        assert_eq!(row["#bytes"], point.axes["size_bytes"].to_string());
        assert_eq!(row["#iterations"], "500");
        assert_eq!(row["typ.[us]"], format!("{:.2}", latency.p50_ns as f64 / 1e3));
        assert_eq!(row["max[us]"], format!("{:.2}", latency.max_ns as f64 / 1e3));
        assert_eq!(row["99.9%[us]"], format!("{:.2}", latency.p999_ns as f64 / 1e3));
    }
    let text = scratch.succeed(&["report", "record", "--text"]);
    assert!(stdout.contains(text.trim_end()), "the same tables again:\n{text}\n{stdout}");
}

/// Returns the rows of tables, by the names of their columns.
fn rows(text: &str) -> Vec<BTreeMap<String, String>> {
    let mut rows = Vec::new();
    let mut columns: Vec<String> = Vec::new();
    for line in text.lines() {
        if line.trim_start().starts_with("#bytes") {
            columns = line.split_whitespace().map(str::to_owned).collect();
        } else if line.trim_start().starts_with(|c: char| c.is_ascii_digit()) {
            let cells = line.split_whitespace().map(str::to_owned);
            rows.push(columns.iter().cloned().zip(cells).collect());
        }
    }
    rows
}

#[test]
fn throughput_is_printed_in_the_unit_that_was_asked_for() {
    let scratch = Scratch::on_one_cpu();
    for (flags, column, divisor) in [
        (&[][..], "BW[MiB/s]", (1u64 << 20) as f64),
        (&["--report_gbits"], "BW[Gb/s]", 1e9 / 8.0),
        (&["-b"], "total[MiB/s]", (1u64 << 20) as f64),
    ] {
        let name = format!("record{}", flags.concat());
        let all = [&["bw", "send", "--local", "-s", "4KiB", "-n", "2000", "--out", &name], flags].concat();
        let rows = rows(&scratch.succeed(&all));
        let (_, points) = scratch.record(&name);
        let point = &points[0];
        let throughput = point.throughput_total.as_ref().or(point.throughput.as_ref()).unwrap();
        assert_eq!(rows[0][column], format!("{:.3}", throughput.bytes_per_s / divisor));
        let per_message = throughput.bytes_per_s / throughput.messages_per_s;
        assert!((per_message - 4096.0).abs() < 1e-6);
    }
}

#[test]
fn a_run_of_some_time_keeps_a_histogram_and_takes_that_time() {
    let scratch = Scratch::on_one_cpu();
    scratch.succeed(&["lat", "send", "--local", "-D", "0.3", "--out", "record"]);
    let (_, points) = scratch.record("record");
    let latency = points[0].latency.as_ref().unwrap();
    assert!(latency.resolution.is_some_and(|resolution| resolution <= 0.001), "{latency:?}");
    assert!(latency.count > 100);
    let histogram = points[0].ends[0].histogram.as_ref().unwrap();
    assert_eq!(histogram.buckets.iter().map(|bucket| bucket.2).sum::<u64>(), latency.count);
    assert!(points[0].wall_ns >= 300_000_000);
    let rows = rows(&scratch.succeed(&["bw", "send", "--local", "-D", "0.2", "-s", "1KiB"]));
    assert!(rows[0].contains_key("MsgRate[Mpps]"));
}

#[test]
fn all_sizes_end_where_the_service_ends() {
    let scratch = Scratch::on_one_cpu();
    let sizes = |flags: &[&str]| -> Vec<String> {
        let arguments = [&["lat", "send", "--local", "-a", "-n", "20"], flags].concat();
        rows(&scratch.succeed(&arguments)).into_iter().map(|mut row| row.remove("#bytes").unwrap()).collect()
    };
    let reliable = sizes(&[]);
    assert_eq!(reliable.first().map(String::as_str), Some("2"));
    assert_eq!(reliable.last().map(String::as_str), Some("8388608"));
    assert_eq!(sizes(&["-c", "UD"]).last().map(String::as_str), Some("4096"));
    assert_eq!(sizes(&["-c", "ud", "-m", "1024"]).last().map(String::as_str), Some("1024"));
}

#[test]
fn a_dry_run_prints_the_plan_and_touches_nothing() {
    let scratch = Scratch::new();
    let stdout = scratch.succeed(&["run", "quick", "--dry-run", "--set", "iterations=7"]);
    let plan: Value = serde_json::from_str(&stdout).unwrap();
    assert!(plan["experiments"].as_array().unwrap().iter().all(|e| e["iterations"] == 7), "{plan:#}");
    assert_eq!(fs::read_dir(scratch.path()).unwrap().count(), 1, "only TMPDIR");
}

#[test]
fn a_run_without_a_directory_makes_one_of_its_own_each_time() {
    let scratch = Scratch::on_one_cpu();
    scratch.write("plan.toml", SMALL);
    let paths: BTreeSet<String> =
        (0..3).map(|_| scratch.succeed(&["run", "plan.toml"]).lines().last().unwrap().to_owned()).collect();
    assert_eq!(paths.len(), 3);
    assert!(
        paths.iter().all(|path| path.starts_with("runs/small-") && scratch.at(path).is_file()),
        "{paths:?}"
    );
}

#[test]
fn two_runs_at_the_same_time_do_not_disturb_each_other() {
    let scratch = Scratch::on_one_cpu();
    scratch.write("plan.toml", SMALL);
    let start = |out: &str| scratch.program(["run", "plan.toml", "--out", out]).spawn().unwrap();
    let children = [start("a"), start("b")];
    for ended in children.map(collect) {
        assert_eq!(ended.status, Some(0), "{ended:?}");
    }
    for name in ["a", "b"] {
        let (_, points) = scratch.record(name);
        assert_eq!(points.len(), 10);
        assert!(all_measured(&points), "{points:?}");
    }
    scratch.assert_nothing_left();
}

#[test]
fn one_cpu_is_enough() {
    let scratch = Scratch::on_one_cpu();
    let ended = scratch.run(&["lat", "send", "--local", "-n", "50", "-s", "4,1024", "--out", "record"]);
    assert_eq!(ended.status, Some(0), "{ended:?}");
    let (run, points) = scratch.record("record");
    assert!(points.len() == 2 && all_measured(&points));
    assert!(run.warnings.iter().any(|warning| warning.contains("not pinned to separate CPUs")), "{run:?}");
}

#[test]
fn a_user_without_rights_can_measure() {
    if !rustix::process::geteuid().is_root() {
        return skip(
            "root",
            "the tests run as an unprivileged user already, which is what this one would try",
        );
    }
    if !is_installed("setpriv") {
        return skip("setpriv", "it is not installed (util-linux)");
    }
    let scratch = Scratch::on_one_cpu();
    // A home that no user can enter, and a copy of the program in the directory of the test: other
    // users may not be allowed to enter the build directory.
    let program = scratch.at("rdmascope");
    copy_program(&program);
    let plan = scratch.write("plan.toml", SMALL);
    let mut command = scratch.command("setpriv");
    command.args([
        "--reuid=65534",
        "--regid=65534",
        "--clear-groups",
        "--inh-caps=-all",
        "--bounding-set=-all",
    ]);
    command.arg(&program).arg("run").arg(plan).args(["--out", "record"]);
    let status = Command::new("chown").args(["-R", "65534:65534"]).arg(scratch.path()).status().unwrap();
    assert!(status.success());
    let ended = finish(command);
    assert_eq!(ended.status, Some(0), "{ended:?}");
    assert!(all_measured(&scratch.record("record").1));
    scratch.assert_nothing_left();
}

#[test]
fn a_reader_that_goes_away_stops_the_printing_but_not_the_run() {
    let scratch = Scratch::on_one_cpu();
    scratch.write("plan.toml", SMALL);
    let mut child = scratch.program(["run", "plan.toml", "--out", "record"]).spawn().unwrap();
    drop(child.stdout.take());
    let ended = collect(child);
    assert_eq!((ended.status, ended.stderr.as_str()), (Some(0), ""), "{ended:?}");
    let (run, points) = scratch.record("record");
    assert_eq!(points.len(), 10, "the record is whole although nobody reads the tables");
    assert!(run.ended.is_some() && scratch.at("record/report.html").is_file());

    // Without a record, there is nothing left to do.
    let mut command = scratch.command("sh");
    command.args(["-c", "\"$0\" lat send --local -a -n 20 | head -n 1", *PROGRAM]);
    let ended = finish(command);
    assert_eq!((ended.status, ended.stdout.lines().count(), ended.stderr.as_str()), (Some(0), 1, ""));
    scratch.assert_nothing_left();
}

#[test]
fn results_are_on_standard_output_and_progress_is_for_terminals() {
    let scratch = Scratch::on_one_cpu();
    scratch.write("plan.toml", LONG);
    let arguments = ["run", "plan.toml", "--out", "record", "--set", "iterations=100"];
    let mut command = scratch.program(arguments);
    command.stdout(Stdio::null());
    let ended = finish(command);
    assert_eq!((ended.status, ended.stderr.as_str()), (Some(0), ""), "no progress into a pipe");
}

#[test]
fn lost_messages_are_counted_in_the_record() {
    let scratch = Scratch::on_one_cpu();
    scratch.succeed(&["bw", "send", "--local", "-c", "UD", "-s", "64", "-n", "1000", "--out", "record"]);
    let (_, points) = scratch.record("record");
    let lost = |point: &Point| point.counters.get("messages_lost").copied();
    assert!(points.iter().all(|point| lost(point).is_some()), "{points:?}");
}

/// The table is made of points, even if no record keeps them.
#[test]
fn a_table_of_costs_is_printed_at_the_end_of_a_run() {
    let scratch = Scratch::new();
    let plan = r#"
name = "x"
title = "X"
[[experiment]]
name = "e"
pattern = "ping-pong"
iterations = 200
axes = { endpoint = ["shmem", "unix_stream"], size_bytes = 8 }
[[figure]]
kind = "costs"
title = "Costs"
[[figure.row]]
what = "Ping-pong of 8 B"
experiments = ["e"]
modes = ["endpoint"]
y = "latency.p50_ns"
"#;
    scratch.write("x.toml", plan);
    let printed = scratch.succeed(&["run", "x.toml", "--out", "r"]);
    let table = printed.split("Costs").nth(1).unwrap_or_default();
    assert!(table.contains("Ping-pong of 8 B") && table.contains("unix_stream"), "{printed}");
    assert!(!table.contains("no such point"), "{printed}");
}
