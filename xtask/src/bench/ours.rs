//! softdev, measured by rdmascope with a plan, and by `baseline`, whose receiver reads the data.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use serde_json::Value as Json;

use super::place::BASELINE;
use super::process;
use super::value::{Unit, Value};

/// The number of short runs, of which the median counts. Each has its own queue pairs.
const REPETITIONS: u32 = 3;

/// A benchmark of rdmascope with 8 B over RC.
#[derive(Clone, Copy, Debug)]
pub(super) struct Experiment {
    pub(super) pattern: &'static str,
    pub(super) operation: &'static str,
    /// The number of messages: they take about 10 ms.
    pub(super) messages: u64,
    /// Whether the payload is in the work request.
    pub(super) inline: bool,
}

/// Measures with rdmascope. The record stays in `scratch` until the next run of this experiment.
pub(super) fn measure(of: &Experiment, unit: Unit, cpus: &[String; 2], scratch: &Path) -> Result<Value> {
    let name = format!("{}-{}{}", of.pattern, of.operation, if of.inline { "-inline" } else { "" });
    let plan = scratch.join(format!("{name}.toml"));
    let out = scratch.join(&name);
    let Experiment { pattern, operation, messages, inline } = of;
    let text = format!(
        "name = \"bench-{name}\"\ntitle = \"RC {operation} of 8 B\"\n\n[[experiment]]\nname = \"{name}\"\n\
         pattern = \"{pattern}\"\niterations = {messages}\nrepetitions = {REPETITIONS}\n[experiment.axes]\n\
         service = \"RC\"\noperation = \"{operation}\"\nsize_bytes = 8\ninline = {inline}\n"
    );
    fs::write(&plan, text)?;
    let words = ["run", &plan.to_string_lossy(), "--device", "softdev0", "--cpus", &cpus.join(",")];
    process::rdmascope(&words, &out)?;
    read(&fs::read_to_string(out.join("points.jsonl"))?, unit)
}

/// Reads the numbers of a record's points. Points during which the placement changed do not count;
/// all of them may be missing.
fn read(points: &str, unit: Unit) -> Result<Value> {
    let points: Vec<Json> = points.lines().map(serde_json::from_str).collect::<Result<_, _>>()?;
    let mut runs = Vec::new();
    for point in &points {
        ensure!(point["status"] == "measured", "rdmascope: {} {}", point["status"], point["reason"]);
        if point.get("unstable").is_some() {
            continue;
        }
        let number = |path: &str| {
            let number = point.pointer(path).and_then(Json::as_f64).filter(|number| *number > 0.0);
            number.with_context(|| format!("rdmascope's point has no {path}"))
        };
        runs.push(match unit {
            Unit::Latency => {
                Value { median: Some(number("/latency/p50_ns")?), mean: Some(number("/latency/mean_ns")?) }
            }
            Unit::Bandwidth => Value::mean(number("/throughput/bytes_per_s")?),
            Unit::Rate => Value::mean(number("/throughput/messages_per_s")?),
        });
    }
    ensure!(!points.is_empty(), "rdmascope's record has no points");
    Ok(Value::of_runs(&runs))
}

/// Measures something with `baseline`.
pub(super) fn raw(what: &str, unit: Unit, cpus: &[String; 2]) -> Result<Value> {
    read_raw(&process::alone(&[&process::built(BASELINE), what, &cpus[0], &cpus[1]])?, unit)
}

fn read_raw(printed: &str, unit: Unit) -> Result<Value> {
    let object: Json = serde_json::from_str(printed)?;
    let name = match unit {
        Unit::Latency => "ns",
        Unit::Bandwidth => "bytes_per_s",
        Unit::Rate => "messages_per_s",
    };
    let number = |what: &str| {
        let name = format!("{what}_{name}");
        object[&name].as_f64().with_context(|| format!("baseline printed no {name}"))
    };
    Ok(Value { median: Some(number("median")?), mean: Some(number("mean")?) })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A point of `rdmascope run`, without its ranks and axes.
    const STEADY: &str = concat!(
        r#"{"id":0,"experiment":"send","pattern":"ping-pong","status":"measured","repetition":0,"#,
        r#""latency":{"kind":"rtt_half","count":50000,"min_ns":113,"p10_ns":208,"p50_ns":245,"#,
        r#""p90_ns":299,"mean_ns":3458.85352},"calibration":{"before_ns":58.269566969935106,"#,
        r#""after_ns":52.769566804514426},"wall_ns":373282012}"#,
    );
    const MOVED: &str = concat!(
        r#"{"id":0,"experiment":"send","pattern":"ping-pong","status":"measured","repetition":1,"#,
        r#""latency":{"kind":"rtt_half","count":50000,"min_ns":113,"p50_ns":221,"#,
        r#""mean_ns":2463.66968},"calibration":{"before_ns":58.3,"after_ns":92.1},"#,
        r#""unstable":"the core-to-core latency changed from 58 ns before the point to 92 ns after it"}"#,
    );
    const STREAM: &str = concat!(
        r#"{"status":"measured","repetition":0,"throughput":{"bytes_per_s":7727313.4216440655,"#,
        r#""messages_per_s":965914.1777055082,"direction":"uni"}}"#,
    );

    #[test]
    fn only_what_is_steady_counts() {
        let value = Value { median: Some(245.0), mean: Some(3458.85352) };
        assert_eq!(read(&format!("{STEADY}\n{MOVED}\n"), Unit::Latency).unwrap(), value);
        assert_eq!(read(MOVED, Unit::Latency).unwrap(), Value::default());
        assert_eq!(read("", Unit::Latency).unwrap_err().to_string(), "rdmascope's record has no points");
    }

    #[test]
    fn rates_are_read() {
        assert_eq!(read(STREAM, Unit::Rate).unwrap(), Value::mean(965_914.177_705_508_2));
        assert_eq!(read(STREAM, Unit::Bandwidth).unwrap(), Value::mean(7_727_313.421_644_065_5));
        assert!(read(STREAM, Unit::Latency).is_err());
        let failed = r#"{"status":"failed","reason":"rank 1 died"}"#;
        assert!(read(failed, Unit::Rate).unwrap_err().to_string().contains("rank 1 died"));
    }

    #[test]
    fn streams_are_read() {
        let printed = "{\"median_bytes_per_s\":15376057394,\"mean_bytes_per_s\":1476477600}\n";
        let value = Value { median: Some(15_376_057_394.0), mean: Some(1_476_477_600.0) };
        assert_eq!(read_raw(printed, Unit::Bandwidth).unwrap(), value);
        assert!(read_raw("{\"line_ns\":50.84}", Unit::Bandwidth).is_err());
        let value = Value { median: Some(155.2), mean: Some(160.1) };
        let latency = |printed: &str| read_raw(printed, Unit::Latency);
        assert_eq!(latency("{\"median_ns\":155.20,\"mean_ns\":160.10}\n").unwrap(), value);
        assert!(latency(printed).is_err());
    }
}
