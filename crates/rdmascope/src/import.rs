//! `rdmascope import`: converts logs of VILLASnode's benchmarks to a record, so that old runs can
//! be compared with new ones.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use ::report::Points;
use anyhow::Context;
use bench::PATTERNS;
use bench::point::{Pattern, sample_bytes};
use clap::Args;
use measure::figure::Unit;
use measure::files;
use measure::record::{LatencyKind, Point, Run, SCHEMA_VERSION, Status, Timed};
use measure::stats;
use measure::store::RunWriter;
use measure::villas::{LogName, Logged, read};
use serde_json::{Value, json};

use crate::failure::Usage;
use crate::run::directory;
use crate::{report, sink, stdout};

/// Below the help of `rdmascope import`.
pub(crate) const EXAMPLES: &str = "\
Examples:
  rdmascope import logs                logs/0_RC-8-100000-250000_output.csv etc.
  rdmascope import logs --out thesis && rdmascope report thesis --text";

#[derive(Args, Debug)]
pub(crate) struct ImportArguments {
    /// Directory with logs of VILLASnode, in the formats csv or villas.human, named as its
    /// benchmarks do: ID_MODE-VALUES-RATE-SAMPLES_input.csv of the sender, and _output.csv of the
    /// receiver.
    pub(crate) logs: PathBuf,
    /// Directory for the record and a report; it must not contain a run [default:
    /// runs/import-TIME].
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
}

/// Thresholds of the shares of samples above them: the threshold of the histograms of Potter 2018.
const SHARE_ABOVE_NS: [u64; 1] = [50_000];

/// Makes a record of the logs in a directory.
pub(crate) fn import(arguments: &ImportArguments, command: Vec<String>) -> anyhow::Result<ExitCode> {
    let tests = tests(&arguments.logs)?;
    let points: Vec<(Point, Vec<u64>)> =
        (0..).zip(&tests).map(|(id, (name, logs))| point(id, name, logs)).collect::<anyhow::Result<_>>()?;
    let now = sink::now();
    let mut run = Run {
        schema_version: SCHEMA_VERSION,
        program: sink::program(),
        command,
        started: now.clone(),
        ended: None,
        title: "Logs of VILLASnode".to_owned(),
        about: Some(format!(
            "Read from {}. Latencies are the differences of the logged times of reception and origin, by the clocks of \
             those hosts.",
            arguments.logs.display()
        )),
        quick: false,
        plan: json!({ "name": "import", "experiments": [] }),
        points_planned: points.len() as u64,
        figures: Vec::new(),
        findings: Vec::new(),
        expectations: Vec::new(),
        devices: Vec::new(),
        environments: Vec::new(),
        overheads: Vec::new(),
        launches: Vec::new(),
        fleet: None,
        warnings: vec![NOT_OURS.to_owned()],
    };
    let out = arguments.out.clone().unwrap_or_else(|| directory("import"));
    let mut writer = RunWriter::create(&out, &run)?;
    let mut all = Vec::new();
    for (mut point, samples_ns) in points {
        if let Some(timed) = point.kinds.first_mut() {
            timed.samples = Some(writer.samples(point.id, timed.latency.kind.name(), &samples_ns)?);
        }
        writer.append(&point)?;
        all.push(point);
    }
    run.ended = Some(sink::now());
    writer.finish(&run)?;
    report::write_html(&out, None)?;
    let is_empty = all.iter().all(|point| point.status != Status::Measured);
    let shown = Points { points: &all, devices: &[], patterns: PATTERNS };
    let tables = ::report::terminal::tables(shown, Unit::MiBPerS, stdout::line())?;
    stdout::print_folded(&tables)?;
    stdout::print(&format!("{}\n", out.join("report.html").display()))?;
    // The status of a command that measured no point.
    Ok(if is_empty { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// The warning about numbers that rdmascope has not measured.
const NOT_OURS: &str = "these numbers were not measured by rdmascope, but read from logs of VILLASnode; in 2018, its node \
                        shmem copied the stamp of reception from the sender";

/// The logs of a test: of the sender and of the receiver.
type Logs = [Option<PathBuf>; 2];

/// Returns the tests that have logs in a directory.
fn tests(directory: &Path) -> anyhow::Result<BTreeMap<LogName, Logs>> {
    let listed = || format!("cannot list {}", directory.display());
    let mut tests: BTreeMap<LogName, Logs> = BTreeMap::new();
    for entry in fs::read_dir(directory).with_context(listed)? {
        let path = entry.with_context(listed)?.path();
        let name = path.file_name().and_then(|name| LogName::of(&name.to_string_lossy()));
        let Some(name) = name else { continue };
        let way = usize::from(name.is_output);
        tests.entry(LogName { is_output: true, ..name }).or_default()[way] = Some(path);
    }
    if tests.is_empty() {
        let directory = directory.display();
        return Err(Usage(format!(
            "{directory} has no log with a name of VILLASnode's benchmarks, such as ID_MODE-VALUES-RATE-SAMPLES_output.csv"
        ))
        .into());
    }
    Ok(tests)
}

/// Makes a point of the logs of a test; returns it with its latencies in ns.
fn point(id: u64, name: &LogName, [input, output]: &Logs) -> anyhow::Result<(Point, Vec<u64>)> {
    let sent = input.as_deref().map(log).transpose()?;
    let taken = output.as_deref().map(log).transpose()?;
    let doubts = doubts(name, [sent.as_ref(), taken.as_ref()]);
    let [sent, taken] = [sent, taken].map(|log| log.map(|log| log.samples));
    let mut json = json!({
        "id": id,
        "experiment": name.id,
        "pattern": Pattern::PIPELINE,
        "axes": axes(name),
        "status": "measured",
        "repetition": 0,
        "iterations": name.samples,
        "counters": counters(name, sent.as_deref(), taken.as_deref()),
        "wall_ns": 0,
    });
    let offsets = taken.iter().flatten().filter_map(|sample| sample.offset_ns);
    // A sample that seems to arrive before it was generated counts as 0 ns: the clocks do not
    // agree.
    let samples_ns: Vec<u64> = offsets.map(|ns| u64::try_from(ns).unwrap_or(0)).collect();
    let latency = stats::latency(LatencyKind::OneWay, &samples_ns, &SHARE_ABOVE_NS);
    match latency {
        Some(latency) => {
            if !doubts.is_empty() {
                json["unstable"] = doubts.join("; ").into();
            }
            json["latency"] = serde_json::to_value(&latency)?;
            json["kinds"] = serde_json::to_value([Timed { latency, samples: None, histogram: None }])?;
        }
        None => {
            let reason = match output {
                None => "there is no log of the receiver",
                Some(_) => "the log of the receiver has no times of reception",
            };
            json["status"] = "not_measured".into();
            json["reason"] = reason.into();
        }
    }
    Ok((Point::of_json(&json)?, samples_ns))
}

/// A log that was read.
struct Log {
    samples: Vec<Logged>,
    /// Whether its last line is incomplete.
    is_broken_off: bool,
}

impl Log {
    /// Returns the number of the last sample.
    fn last(&self) -> Option<u64> {
        self.samples.iter().map(|sample| sample.sequence).max()
    }

    /// Returns the steps per second, by the stamps of the samples.
    fn rate_hz(&self) -> Option<f64> {
        let stamped = |sample: &Logged| Some((sample.sequence, sample.origin_ns?));
        let mut all = self.samples.iter().filter_map(stamped);
        let (first, began) = all.next()?;
        let (last, ended) = all.next_back()?;
        let steps = last.checked_sub(first).filter(|steps| *steps >= STEPS_MIN)?;
        let ns = ended.checked_sub(began).filter(|ns| *ns > 0)?;
        Some(steps as f64 * 1e9 / ns as f64)
    }
}

/// Fewest steps for which a rate is computed.
const STEPS_MIN: u64 = 50;
/// Largest difference between the logs of a test, or from its name, that is not reported.
const SHARE_MAX: f64 = 0.02;

fn log(path: &Path) -> anyhow::Result<Log> {
    let text = files::read_text(path).with_context(|| format!("cannot read {}", path.display()))?;
    let samples = read(&text).map_err(|(line, why)| {
        let path = path.display();
        Usage(format!("{path}:{line} is not a sample in a log of VILLASnode: {why}: fix or remove the line"))
    })?;
    Ok(Log { samples, is_broken_off: !text.is_empty() && !text.ends_with('\n') })
}

/// Returns why the point of a test is unstable: logs that end before the test did, or that
/// contradict its name.
fn doubts(name: &LogName, logs: [Option<&Log>; 2]) -> Vec<String> {
    let mut doubts: Vec<String> = Vec::new();
    for (log, whose) in logs.iter().zip([WHO_GENERATED, WHO_TOOK]) {
        let Some(log) = log else { continue };
        if log.is_broken_off {
            doubts.push(format!("the log of {whose} ends within a line"));
        }
        let mut values = log.samples.iter().map(|sample| sample.values);
        if let Some(other) = values.find(|values| *values != name.values as usize) {
            doubts.push(format!(
                "the log of {whose} has samples of {other} values, but its name says {}",
                name.values
            ));
        }
    }
    let lasts = logs.map(|log| log.and_then(Log::last));
    let is_short = |last: u64, of: u64| (of.saturating_sub(last)) as f64 > SHARE_MAX * of as f64;
    let end = name.samples.saturating_sub(1);
    match lasts {
        [Some(sent), Some(taken)] if is_short(taken, sent) || is_short(sent, taken) => doubts.push(format!(
            "the log of {WHO_GENERATED} ends with sample {sent}, the log of {WHO_TOOK} with sample {taken}: a sample that is \
             in one of them only counts as lost or missed"
        )),
        _ => {}
    }
    if let Some(last) = lasts.into_iter().flatten().max()
        && is_short(last, end)
    {
        doubts.push(format!("the logs end with sample {last} of {end}: later samples count as missed"));
    }
    let set = name.rate_hz as f64;
    let rate = logs.into_iter().flatten().find_map(Log::rate_hz);
    if let Some(rate) = rate.filter(|rate| (rate - set).abs() > SHARE_MAX * set) {
        doubts.push(format!("its stamps show {rate:.1} steps per second, but its name says {set}"));
    }
    doubts
}

const WHO_GENERATED: &str = "the sender";
const WHO_TOOK: &str = "the receiver";

/// Returns the axes of a test, with the names of plans.
fn axes(name: &LogName) -> Value {
    let mut axes = json!({
        "rate_hz": name.rate_hz,
        "values": name.values,
        "size_bytes": sample_bytes(name.values.into()),
    });
    match name.mode.as_str() {
        "RC" | "UC" | "UD" => {
            axes["endpoint"] = "verbs".into();
            axes["service"] = name.mode.as_str().into();
        }
        mode => axes["endpoint"] = mode.into(),
    }
    axes
}

/// Returns the counters of a test, as far as its logs have them.
fn counters(name: &LogName, sent: Option<&[Logged]>, taken: Option<&[Logged]>) -> BTreeMap<String, u64> {
    let mut counters = BTreeMap::new();
    if let Some(sent) = sent {
        let missed = name.samples.saturating_sub(sent.len() as u64);
        counters.insert("steps_missed".to_owned(), missed);
    }
    let Some(taken) = taken else { return counters };
    let arrived: BTreeSet<u64> = taken.iter().map(|sample| sample.sequence).collect();
    counters.insert("messages_received".to_owned(), arrived.len() as u64);
    let Some(sent) = sent else { return counters };
    let first = arrived.first().copied().unwrap_or(u64::MAX);
    let missing = || sent.iter().filter(|sample| !arrived.contains(&sample.sequence));
    let lost = missing().filter(|sample| sample.sequence > first).count() as u64;
    counters.extend([
        ("messages_not_transmitted".to_owned(), missing().count() as u64 - lost),
        ("messages_lost".to_owned(), lost),
    ]);
    counters
}
