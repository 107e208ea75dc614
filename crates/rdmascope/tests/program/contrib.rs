//! The files in `contrib/`, as users of ReFrame, Node Health Check, systemd, node_exporter and
//! Kubernetes have them.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use bench::process::template::split;
use serde_json::{Value, json};

use crate::fleet::{SHORT, with_slow};
use crate::support::{Ended, PROGRAM, Scratch, all_measured, finish, is_installed, python, skip};

/// An expectation that no run meets, however unstable it is.
const NEVER_MET: &str = "counters.packets_sent <= 1";

/// Returns a file of `contrib/`.
fn contrib(name: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../contrib").join(name);
    path.canonicalize().unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Runs one of the tests for ReFrame with some variables set; returns how it ended and its results.
fn reframe(scratch: &Scratch, python: &str, test: &str, variables: &[&str]) -> (Ended, Value) {
    let mut command = scratch.command(python);
    command.args(["-c", "import sys; from reframe.frontend.cli import main; sys.exit(main())"]);
    command.arg("-C").arg(contrib("reframe/settings.py")).arg("-c").arg(contrib("reframe/rdmascope.py"));
    command.args(["--run", "--nocolor", "--prefix", "reframe", "--report-file", "report.json", "-n", test]);
    command.arg("-S").arg(format!("program={}", *PROGRAM));
    variables.iter().for_each(|variable| _ = command.args(["-S", variable]));
    command.env("HOME", scratch.path()).env("PYTHONDONTWRITEBYTECODE", "1");
    let ended = finish(command);
    let report = fs::read_to_string(scratch.at("report.json")).unwrap_or_else(|_| panic!("{ended:?}"));
    let report: Value = serde_json::from_str(&report).unwrap();
    (ended, report["runs"][0]["testcases"][0].clone())
}

/// Returns the names and units of what was read, and asserts that each value is above zero.
#[track_caller]
fn performance(case: &Value) -> Vec<(String, String)> {
    assert_eq!(case["result"], "pass", "{case}");
    let of_one = |(name, value): (&String, &Value)| {
        assert!(value[0].as_f64().unwrap() > 0.0, "{name}: {value}");
        (name.replace("here:local:", ""), value[4].as_str().unwrap().to_owned())
    };
    case["perfvalues"].as_object().unwrap().iter().map(of_one).collect()
}

#[test]
fn reframe_reads_points_and_says_what_is_not_met() {
    let Some(python) = python::with(&["reframe"]) else { return };
    let scratch = Scratch::on_one_cpu();
    let (_, case) = reframe(&scratch, &python, "RdmascopeLatency", &["device=softdev0", "sizes=8,64"]);
    let names: Vec<String> = performance(&case).into_iter().map(|(name, unit)| name + " " + &unit).collect();
    assert_eq!(names, ["p50_64B ns", "p50_8B ns", "p99_64B ns", "p99_8B ns"]);
    let (_, case) = reframe(&scratch, &python, "RdmascopeBandwidth", &["device=softdev0", "sizes=4KiB"]);
    assert_eq!(performance(&case), [("throughput_4096B".to_owned(), "B/s".to_owned())]);
    let expect = format!("options=--expect,{NEVER_MET}");
    for (device, variable, reason) in [
        ("softdev0", &*expect, "lat-send, 8 B    not met; 20000"),
        ("none", "sizes=8", "no device named \"none\" here"),
    ] {
        let device = format!("device={device}");
        let (ended, _) = reframe(&scratch, &python, "RdmascopeLatency", &[&device, variable]);
        assert_eq!(ended.status, Some(1), "{ended:?}");
        assert!(ended.stdout.contains("sanity error: ") && ended.stdout.contains(reason), "{}", ended.stdout);
    }
}

#[test]
fn reframe_passes_a_healthy_fleet_and_names_the_slow_member() {
    let Some(python) = python::with(&["reframe"]) else { return };
    let scratch = Scratch::alone();
    let fleet = |slow: &str| {
        let start = scratch.write("start.sh", with_slow(slow));
        let via = format!("sh {} {{host}}", start.display());
        let hosts = format!("hosts=--hosts,h[1-4],--via,{via},{}", SHORT.join(","));
        reframe(&scratch, &python, "RdmascopeFleet", &[&hosts])
    };
    let names: Vec<String> = performance(&fleet("none").1).into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["largest_latency", "least_throughput"]);
    let (ended, _) = fleet("h3");
    assert_eq!(ended.status, Some(1), "{ended:?}");
    // By half, as the links say.
    let said = ended.stdout.split("sanity error: h3: throughput: sends ").nth(1);
    let deficit = said.and_then(|said| said.split(' ').next()?.parse::<f64>().ok());
    assert!(deficit.is_some_and(|percent| (45.0..55.0).contains(&percent)), "{}", ended.stdout);
}

/// What Node Health Check does with a check that fails (`die`), and its functions that checks use.
const NHC: &str = r#"
    set -f
    TIMEOUT=${TIMEOUT-30}
    die() { local RET="$1"; shift; eval echo "'Health check failed:  $*'"; exit $RET; }
    vlog() { echo "$@"; }
    nhc_cmd_with_timeout() { timeout "$@"; local ret=$?; [ $ret = 124 ] && ret=143; return $ret; }
    while read -r line; do
        CHECK="${line#\* || }"
        eval $CHECK
    done < "$1"
"#;

#[test]
fn nodes_that_miss_an_expectation_fail_their_health_check() {
    let scratch = Scratch::on_one_cpu();
    let mut drivers = vec![vec!["bash", "-c", NHC, "nhc", "nhc.conf"]];
    match is_installed("nhc") {
        true => drivers.push(vec!["nhc", "-v", "-l", "-", "-c", "nhc.conf", "MARK_OFFLINE=0"]),
        false => skip("nhc", "it is not installed: only a stand-in runs the check"),
    }
    let never_met = format!("lat send --local -s 8,16 -n 100 --expect no_loss --expect '{NEVER_MET}'");
    for (words, expected) in [
        ("lat send --local -n 100 --expect no_loss", None),
        (&*never_met, Some("counters.packets_sent <= 1 is not met by lat-send, 8 B: 200")),
        (
            "lat send --local -d \"it's\"",
            Some("\"lat send --local -d it\"s\" failed: there is no device named \"it\"s\" here"),
        ),
        ("-t 1 bw send --local -D 60", Some("\"bw send --local -D 60\" took longer than 1 s")),
        ("", Some("Say what to measure")),
        ("-t 31 bw send --local -Z", Some("The time limit of 31 s exceeds the timeout of NHC, 30 s.")),
    ] {
        let file = contrib("nhc/rdmascope.nhc");
        let lines = [format!("export RDMASCOPE={}", *PROGRAM), format!(". {}", file.display())];
        let lines = lines.into_iter().chain([format!("check_rdmascope {words}")]);
        scratch.write("nhc.conf", lines.map(|line| format!("* || {line}\n")).collect::<String>());
        for driver in &drivers {
            let mut command = scratch.command(driver[0]);
            command.args(&driver[1..]);
            let ended = finish(command);
            let failed = format!("Health check failed:  check_rdmascope:  {}", expected.unwrap_or_default());
            let said = ended.stdout.contains(&failed);
            assert_eq!(
                (ended.status, said),
                (Some(expected.is_some().into()), expected.is_some()),
                "{ended:?}"
            );
        }
        scratch.assert_nothing_left();
    }
    // NHC has no time limit.
    let mut command = scratch.command("bash");
    command.args(["-c", NHC, "nhc", "nhc.conf"]).env("TIMEOUT", "0");
    let ended = finish(command);
    let said = ended.stdout.contains("failed:  check_rdmascope:  \"bw send --local -Z\" failed");
    assert!(ended.status == Some(1) && said, "it measures: {ended:?}");
}

#[test]
fn the_service_writes_metrics_and_keeps_the_last_ones() {
    let scratch = Scratch::on_one_cpu();
    fs::create_dir(scratch.at("textfile")).unwrap();
    let run = |words: &[&str]| {
        let mut command = scratch.command(contrib("systemd/rdmascope-textfile"));
        command.args(words).env("RDMASCOPE", *PROGRAM).env("TEXTFILE_DIRECTORY", scratch.at("textfile"));
        let ended = finish(command);
        assert_eq!(ended.stdout, "", "{ended:?}");
        scratch.assert_nothing_left();
        ended
    };
    let metrics = || fs::read_to_string(scratch.at("textfile/rdmascope.prom")).unwrap();
    assert_eq!(run(&["lat", "send", "--local", "-n", "100", "--expect", "no_loss"]).status, Some(0));
    let met = "rdmascope_expectation_met{measurement=\"rdmascope\",expectation=\"messages_lost <= 0\",";
    assert!(metrics().contains(met) && metrics().contains("} 1\n"), "{}", metrics());
    let words = words_of_unit("systemd/rdmascope-textfile.service");
    let words: Vec<&str> =
        words.iter().map(|word| if word == "mlx5_0" { "softdev0" } else { word.as_str() }).collect();
    let of_unit = run(&words);
    assert!(matches!(of_unit.status, Some(0 | 3)), "{of_unit:?}");
    let not_met = run(&["lat", "send", "--local", "-n", "100", "--expect", NEVER_MET]);
    assert_eq!(not_met.status, Some(3), "{not_met:?}");
    let last = metrics();
    assert!(last.contains("expectation=\"counters.packets_sent <= 1\",points="), "{last}");
    let failed = run(&["lat", "send", "--local", "-d", "none"]);
    assert_eq!(failed.status, Some(2), "{failed:?}");
    assert!(failed.stderr.contains("no device named \"none\" here"), "{failed:?}");
    assert_eq!(metrics(), last, "nothing was measured");
    // A stand-in for a measurement of which some points failed: its record is whole.
    let some = "#!/bin/sh\n\"$REAL\" \"$@\" || exit\n[ \"$1\" = export ] || exit 4\n";
    let some = scratch.write_script("some", some);
    let mut command = scratch.command(contrib("systemd/rdmascope-textfile"));
    command.args(["lat", "send", "--local", "-n", "100", "-s", "4096"]);
    command.env("RDMASCOPE", some).env("REAL", *PROGRAM).env("TEXTFILE_DIRECTORY", scratch.at("textfile"));
    let ended = finish(command);
    assert_eq!(ended.status, Some(4), "{ended:?}");
    assert!(metrics().contains("size_bytes=\"4096\""), "what was measured is exported");
    let files: Vec<_> = fs::read_dir(scratch.at("textfile")).unwrap().map(Result::unwrap).collect();
    assert_eq!(files.len(), 1, "{files:?}");
    // A directory in the place of the file: the metrics cannot be written, which is no measurement.
    fs::create_dir(scratch.at("textfile/taken")).unwrap();
    let mut command = scratch.command(contrib("systemd/rdmascope-textfile"));
    command.args(["lat", "send", "--local", "-n", "100"]).env("RDMASCOPE", *PROGRAM);
    command.env("TEXTFILE_DIRECTORY", scratch.at("textfile")).env("TEXTFILE_NAME", "taken");
    let ended = finish(command);
    assert_eq!(ended.status, Some(70), "{ended:?}");
    assert_eq!(files[0].metadata().unwrap().permissions().mode() & 0o444, 0o444, "the exporter reads it");
}

/// Returns the words after the script that a unit starts.
fn words_of_unit(name: &str) -> Vec<String> {
    let unit = fs::read_to_string(contrib(name)).unwrap();
    let starts = |line| str::strip_prefix(line, "ExecStart=/usr/libexec/rdmascope-textfile ");
    split(unit.lines().find_map(starts).unwrap()).unwrap()
}

#[test]
fn the_nightly_fleet_leaves_its_record_and_metrics_without_a_verdict() {
    let scratch = Scratch::on_one_cpu();
    fs::create_dir(scratch.at("textfile")).unwrap();
    let words = words_of_unit("systemd/rdmascope-fleet.service");
    let [fleet, send, hosts_file, _, via, _, time, _] = &words[..] else { panic!("{words:?}") };
    assert_eq!([fleet, send, hosts_file, via, time], ["fleet", "send", "--hosts-file", "--via", "--time"]);
    let mut command = scratch.command(contrib("systemd/rdmascope-textfile"));
    // Two hosts are too few for a verdict.
    command.args([fleet, send, "--local", "2", "-n", "50", "-D", "10ms", "--visits-apart", "0"]);
    command.env("RDMASCOPE", *PROGRAM).env("RECORDS", scratch.at("fleets"));
    command.env("TEXTFILE_DIRECTORY", scratch.at("textfile")).env("TEXTFILE_NAME", "rdmascope_fleet.prom");
    let ended = finish(command);
    assert_eq!((ended.status, ended.stderr.as_str()), (Some(1), ""), "{ended:?}");
    let metrics = fs::read_to_string(scratch.at("textfile/rdmascope_fleet.prom")).unwrap();
    let of = "{measurement=\"rdmascope_fleet\"";
    assert!(metrics.contains(&format!("\nrdmascope_fleet_members_left_out{of}}} 0\n")), "{metrics}");
    assert!(
        metrics.contains(&format!("\nrdmascope_run_info{of},devices=\"softdev0\",version=")),
        "{metrics}"
    );
    let name = format!("rdmascope_fleet_undecided{of}}} ");
    let undecided = metrics.lines().find_map(|line| line.strip_prefix(&name));
    assert!(undecided.is_some_and(|count| count != "0"), "{metrics}");
    let records: Vec<_> = fs::read_dir(scratch.at("fleets")).unwrap().map(Result::unwrap).collect();
    assert!(records.len() == 1 && records[0].path().join("report.html").exists(), "{records:?}");
    scratch.assert_nothing_left();
    alerts_fire(&scratch, &metrics);
}

/// Asserts which alerts fire on the metrics of a fleet that is not decided, and on the same metrics
/// with one of them changed.
fn alerts_fire(scratch: &Scratch, metrics: &str) {
    if !is_installed("promtool") {
        return skip("promtool", "it is not installed (the package prometheus)");
    }
    const ALERTS: [&str; 6] = [
        "SlowHost",
        "FleetNotExamined",
        "FleetIsCongested",
        "FleetHasNoVerdict",
        "FleetIsOld",
        "FleetIsMissing",
    ];
    const UNDECIDED: &str = "rdmascope_fleet_undecided";
    const CULPRITS: &str = "rdmascope_fleet_culprits";
    const UNDER_LOAD: &str = "rdmascope_fleet_missed_under_load";
    const CONGESTED: &str = "rdmascope_fleet_congested";
    type Change = fn(&str, &str) -> Option<String>;
    let kept: Change = |_, value| Some(value.to_owned());
    let cases: [(&str, u32, &[&str], Change); 7] = [
        ("as measured", 35, &["FleetNotExamined"], kept),
        ("of the night before last", 37, &["FleetNotExamined", "FleetIsOld"], kept),
        ("decided", 35, &[], |name, value| Some(if name == UNDECIDED { "0" } else { value }.to_owned())),
        ("with a culprit", 35, &["SlowHost", "FleetNotExamined"], |name, value| {
            Some(if name == CULPRITS { "1" } else { value }.to_owned())
        }),
        ("with a full uplink", 35, &["FleetNotExamined", "FleetIsCongested"], |name, value| {
            Some(if name == CONGESTED { "1" } else { value }.to_owned())
        }),
        ("stopped early", 35, &["FleetHasNoVerdict"], |name, value| {
            (![UNDECIDED, CULPRITS, UNDER_LOAD, CONGESTED].contains(&name)).then(|| value.to_owned())
        }),
        ("missing", 35, &["FleetIsMissing"], |_, _| None),
    ];
    let rules = contrib("prometheus/rdmascope.rules.yml");
    let text = fs::read_to_string(&rules).unwrap();
    let summary = |alert: &str| {
        let rule = text.split(&format!("- alert: {alert}\n")).nth(1)?;
        rule.lines().find_map(|line| line.trim().strip_prefix("summary: "))
    };
    let tests = cases.map(|(name, hours, firing, change)| {
        let series = metrics.lines().filter(|line| !line.starts_with('#')).filter_map(|line| {
            let (series, value) = line.rsplit_once(' ')?;
            // The clock of promtool begins at zero, and so does the run.
            let value = if series.starts_with("rdmascope_run_started_") { "0" } else { value };
            let value = change(series.split('{').next()?, value)?;
            Some(json!({ "series": series, "values": format!("{value}x40") }))
        });
        let expected = ALERTS.map(|alert| {
            let fires = firing.contains(&alert).then(|| {
                let labels = json!({ "measurement": "rdmascope_fleet" });
                json!({ "exp_labels": labels, "exp_annotations": { "summary": summary(alert) } })
            });
            json!({ "eval_time": format!("{hours}h"), "alertname": alert, "exp_alerts": Vec::from_iter(fires) })
        });
        json!({ "name": name, "interval": "1h", "input_series": Vec::from_iter(series), "alert_rule_test": expected })
    });
    let file = scratch.write("alerts.json", json!({ "rule_files": [rules], "tests": tests }).to_string());
    let mut command = scratch.command("promtool");
    command.args(["test", "rules"]).arg(file);
    let ended = finish(command);
    assert_eq!(ended.status, Some(0), "{ended:?}");
}

#[test]
fn systemd_takes_the_units() {
    if !is_installed("systemd-analyze") {
        return skip("systemd", "there is no systemd-analyze");
    }
    let scratch = Scratch::new();
    let script = contrib("systemd/rdmascope-textfile").display().to_string();
    let ends = ["textfile.service", "textfile.timer", "fleet.service", "fleet.timer"];
    let units = ends.map(|end| format!("rdmascope-{end}"));
    for name in &units {
        let unit = fs::read_to_string(contrib(&format!("systemd/{name}"))).unwrap();
        scratch.write(name, unit.replace("/usr/libexec/rdmascope-textfile", &script));
    }
    let mut command = scratch.command("systemd-analyze");
    command.args(["verify", "--man=no"]).args(units.map(|name| format!("./{name}")));
    let ended = finish(command);
    assert_eq!((ended.status, ended.stderr.as_str()), (Some(0), ""), "{ended:?}");
}

/// A stand-in for kubectl, whose three pods are this host.
const KUBECTL: &str = r#"#!/bin/sh
case "$*" in
    "get pods -l app=rdmascope -o jsonpath={.items[*].metadata.name}") printf 'rdmascope-a rdmascope-b rdmascope-c' ;;
    "exec -i rdmascope-"[abc]" -- rdmascope agent"*) shift 4; exec "$@" ;;
    *) echo "error: unknown command: $*" >&2; exit 1 ;;
esac
"#;

#[test]
fn a_fleet_reaches_pods_through_a_stand_in_for_kubectl() {
    let scratch = Scratch::alone();
    let bin = scratch.at("bin");
    fs::create_dir(&bin).unwrap();
    std::os::unix::fs::symlink(*PROGRAM, bin.join("rdmascope")).unwrap();
    scratch.write_script("bin/kubectl", KUBECTL);
    let mut command = scratch.command("sh");
    command.arg(contrib("kubernetes/fleet.sh"));
    command.args(["tcp", "--passes", "1", "-n", "50", "-D", "20ms", "--visits-apart", "0", "--out", "fleet"]);
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
    command.env("PATH", &path);
    let ended = finish(command);
    let mut unnamed = scratch.command("sh");
    unnamed.arg(contrib("kubernetes/fleet.sh")).args(["--time", "10min"]);
    let refused = finish(unnamed);
    assert!(refused.status == Some(2) && refused.stderr.contains("name what pairs measure"), "{refused:?}");
    scratch.write_script("bin/kubectl", "#!/bin/sh\n");
    let mut empty = scratch.command("sh");
    empty.arg(contrib("kubernetes/fleet.sh")).arg("tcp").env("PATH", &path);
    let refused = finish(empty);
    assert!(refused.status == Some(2) && refused.stderr.contains("no pod has the label"), "{refused:?}");
    // Three members are too few for a verdict.
    assert_eq!(ended.status, Some(1), "{ended:?}");
    let (run, points) = scratch.record("fleet");
    assert!(points.len() == 3 * 3 && all_measured(&points), "{ended:?}");
    let names: Vec<String> = run.fleet.unwrap().members.into_iter().map(|member| member.name).collect();
    assert_eq!(names, ["rdmascope-a", "rdmascope-b", "rdmascope-c"]);
    scratch.assert_nothing_left();
}

/// No cluster takes them here: they are read, and the command of the Job runs on this host.
#[test]
fn the_manifests_are_whole_and_the_command_of_the_job_runs() {
    let Some(python) = python::with(&["yaml"]) else { return };
    let scratch = Scratch::on_one_cpu();
    let read = |name: &str| -> Value {
        let script = "import json, sys, yaml; print(json.dumps(yaml.safe_load(open(sys.argv[1]))))";
        let mut command = scratch.command(&python);
        command.args(["-c", script]).arg(contrib(name));
        let ended = finish(command);
        serde_json::from_str(&ended.stdout).unwrap_or_else(|_| panic!("{ended:?}"))
    };
    let job = read("kubernetes/job.yaml");
    assert_eq!((&job["apiVersion"], &job["kind"]), (&"batch/v1".into(), &"Job".into()));
    let container = &job["spec"]["template"]["spec"]["containers"][0];
    assert_eq!(container["command"], json!(["rdmascope"]));
    let words = container["args"].as_array().unwrap().iter().map(|word| word.as_str().unwrap());
    let words = words.map(|word| if word == "mlx5_0" { "softdev0" } else { word });
    let ended = scratch.run(&words.collect::<Vec<_>>());
    assert!(matches!(ended.status, Some(0 | 3)) && ended.stdout.contains(" messages_lost <= 0"), "{ended:?}");
    let set = read("kubernetes/daemonset.yaml");
    assert_eq!((&set["apiVersion"], &set["kind"]), (&"apps/v1".into(), &"DaemonSet".into()));
    let label = json!({ "app": "rdmascope" });
    assert_eq!(set["spec"]["selector"]["matchLabels"], label);
    assert_eq!(set["spec"]["template"]["metadata"]["labels"], label, "fleet.sh looks for it");
}
