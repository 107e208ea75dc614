//! Points as JSON: `--json` on standard output, and perftest's `--out_json`.

use measure::record::Point;
use serde_json::Value;

use crate::support::{Scratch, schema};

/// Asserts that a value keeps to a published schema.
#[track_caller]
fn keeps_to(name: &str, value: &Value) {
    let path = format!("{}/../../docs/schema/{name}.schema.json", env!("CARGO_MANIFEST_DIR"));
    let schema = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    assert_eq!(schema::errors(&schema, value), Vec::<String>::new());
}

/// The points of a text with a JSON object per line, each checked against the schema.
fn points(text: &str) -> Vec<Point> {
    let of_line = |line: &str| {
        let value: Value = serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
        keeps_to("point", &value);
        serde_json::from_value(value).unwrap()
    };
    text.lines().map(of_line).collect()
}

#[test]
fn every_measuring_command_prints_points_and_nothing_else() {
    let scratch = Scratch::on_one_cpu();
    for (words, count) in [
        ("lat send -s 64,128 -n 100 --local", 2),
        ("lat tcp -n 100 --local", 1),
        ("bw write -n 100 --local -b", 1),
        ("bw send -n 100 --local -c UD -a --report_gbits", 12),
        ("one-way send -n 100 --local", 1),
        ("fan-out send -n 100", 1),
        ("pairs send -n 100", 1),
        ("overhead --local -n 100", 1),
        ("collective barrier -n 100", 1),
        ("halo sendrecv -n 100", 1),
        ("open-loop send -n 100", 1),
        ("pipeline send --local -n 20", 1),
        ("prtt send --local -n 20", 1),
        ("lat write -n 100 --local --expect no_loss", 1),
        // 8 bytes do not fit an MTU of 4 KiB only if they are more: this point is not measured.
        ("lat send -c UD -s 8 -m 4096 -n 100 --local", 1),
    ] {
        let words: Vec<&str> = words.split(' ').chain(["--json"]).collect();
        let ended = scratch.run(&words);
        assert_eq!(ended.status, Some(0), "{words:?}: {ended:?}");
        let points = points(&ended.stdout);
        assert!(points.len() >= count, "{words:?}: {}", points.len());
        assert!(ended.stderr.contains("# device") || ended.stderr.contains("# rank"), "{words:?}: {ended:?}");
    }
}

#[test]
fn a_plan_prints_points_as_json_too() {
    let scratch = Scratch::on_one_cpu();
    let plan = "name = \"p\"\ntitle = \"P\"\n[[experiment]]\nname = \"lat\"\npattern = \"ping-pong\"\n\
                iterations = 200\nrepetitions = 2\naxes = { size_bytes = [4, 8] }\n";
    let path = scratch.write("plan.toml", plan).display().to_string();
    let ended =
        scratch.run(&["run", &path, "--out", "run", "--json", "--expect", "counters.packets_sent <= 1"]);
    assert_eq!((ended.status, points(&ended.stdout).len()), (Some(3), 4), "{ended:?}");
    assert!(ended.stderr.contains("run/report.html\n"), "{}", ended.stderr);
    // The lines are those of the record, which also has distributions.
    let (_, recorded) = scratch.record("run");
    let of =
        |points: &[Point]| points.iter().map(|point| (point.id, point.latency.clone())).collect::<Vec<_>>();
    assert_eq!(of(&points(&ended.stdout)), of(&recorded));
}

#[test]
fn the_file_of_perftest_is_one_valid_object() {
    let scratch = Scratch::on_one_cpu();
    for words in ["lat send -s 64,128", "bw write -b", "bw send -a", "lat send --json", "lat read -D 200ms"] {
        let mut words: Vec<&str> = words.split(' ').chain(["--local", "--out_json"]).collect();
        if !words.contains(&"-D") {
            words.extend(["-n", "100"]);
        }
        let ended = scratch.run(&words);
        assert_eq!(ended.status, Some(0), "{words:?}: {ended:?}");
        let file = std::fs::read_to_string(scratch.at("perftest_out.json")).unwrap();
        let file: Value = serde_json::from_str(&file).unwrap_or_else(|error| panic!("{words:?}: {error}"));
        let test = file["test_info"]["test"].as_str().unwrap();
        assert!(test.ends_with("_Test"), "{words:?}: {file}");
        let results = file["results"].as_array().cloned().unwrap_or_else(|| vec![file["results"].clone()]);
        let number = if test.contains("_Latency_") { "t_typical" } else { "BW_average" };
        let has_number = |result: &Value| {
            result["MsgSize"].is_u64()
                && result["n_iterations"].is_u64()
                && result[number].as_f64() > Some(0.0)
        };
        assert!(!results.is_empty() && results.iter().all(has_number), "{words:?}: {file}");
    }
    let words = ["bw", "read", "--local", "-n", "100", "--out_json_file", "own.json"];
    scratch.succeed(&words);
    assert!(scratch.at("own.json").is_file());
    // A stream gets one object, and is not replaced by a file.
    let ended =
        scratch.run(&["lat", "send", "--local", "-n", "100", "--json", "--out_json_file", "/dev/stdout"]);
    let objects: Vec<Value> =
        serde_json::Deserializer::from_str(&ended.stdout).into_iter().map(Result::unwrap).collect();
    assert_eq!((objects.len(), objects[1]["results"]["n_iterations"].as_u64()), (2, Some(100)), "{ended:?}");
    scratch.refused(
        &["lat", "send", "--local", "--out_json_file", "no/such.json"],
        1,
        &["cannot write no/such.json"],
    );
}
