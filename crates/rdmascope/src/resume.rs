//! `rdmascope run --resume`: goes on with a run that was stopped or killed.

use std::path::Path;
use std::process::ExitCode;

use bench::PATTERNS;
use bench::plan::{Options, Plan, resolve};
use bench::process::coordinator::Summary;
use clap::{Arg, Args, Command, FromArgMatches};
use measure::figure::Unit;
use measure::record::Run;
use measure::store::EndedRun;
use report::{Points, expectations};
use serde_json::{Map, Value};

use crate::execute::{close, execute, status};
use crate::failure::{Usage, harmless, reported};
use crate::job::{Destination, Job, Shows};
use crate::launch::launch;
use crate::resumed;
use crate::run::RunArguments;
use crate::sink::{self, Ended};
use crate::stdout;

/// Measures the points of a run that its record does not have, and writes the report again.
pub(crate) fn resume(directory: &Path, now: &RunArguments) -> anyhow::Result<ExitCode> {
    let ended = EndedRun::open(directory)?;
    let run = &ended.run;
    let shown = directory.display();
    let Some(arguments) = arguments_of::<RunArguments>(run, "run") else {
        let first = run.command.get(1).map_or("another command", String::as_str);
        let first = harmless(first);
        let text = format!(
            "cannot resume {shown}: `rdmascope {first}` recorded it, and only a run of `rdmascope run` can be resumed"
        );
        return Err(Usage(text).into());
    };
    let Some(plan) = &arguments.plan else {
        return Err(Usage(format!("the record in {shown} does not name its plan")).into());
    };
    of_this_version(run, directory)?;
    let loaded = Plan::load(plan).map_err(|error| {
        if Path::new(plan).exists() {
            return anyhow::Error::from(error);
        }
        let text = "resume it in the directory where the run was started";
        Usage(format!("cannot resume {shown}: {error}; {text}")).into()
    })?;
    let loaded = arguments.results.expected(loaded)?;
    let resolved = resolve(&loaded, &Options { quick: arguments.quick, set: arguments.set.clone() })?;
    let expectations = (resolved.expectations != run.expectations).then(|| "expect".to_owned());
    if let Some(key) = difference(&resolved.plan, &run.plan).or(expectations) {
        let plan = harmless(plan);
        let text = format!(
            "cannot resume {shown}: the plan {plan} has changed since ({key} differs); start a new run"
        );
        return Err(Usage(text).into());
    }
    // A record may come from anywhere, and its command line may name programs.
    eprintln!("rdmascope: resuming `{}`", harmless(&run.command.join(" ")));
    let mut launch = launch(&arguments.placement, None, &resolved)?;
    launch.launches_before = run.launches.len().try_into().unwrap_or(u32::MAX);
    let job = Job {
        resolved,
        quick: arguments.quick,
        command: run.command.clone(),
        launch,
        out: Destination::Resumed(Box::new(ended)),
        bandwidth: Unit::GbPerS,
        shows: if now.shows() == Shows::Medians { arguments.shows() } else { now.shows() },
        json_file: None,
    };
    if job.left().is_empty() && !wants_more(&job) {
        return whole(job, directory);
    }
    execute(job)
}

/// Refuses a run that another version has measured.
pub(crate) fn of_this_version(run: &Run, directory: &Path) -> Result<(), Usage> {
    let own = sink::program().version;
    if run.program.version == own {
        return Ok(());
    }
    let version = harmless(&run.program.version);
    let shown = directory.display();
    Err(Usage(format!("{shown} was measured by version {version}, and this is {own}: start a new run")))
}

/// Whether an experiment with `within` wants repetitions that the record does not have.
fn wants_more(job: &Job) -> bool {
    let Destination::Resumed(ended) = &job.out else { return false };
    !sink::wanted(&ended.run.plan, &ended.points, &job.resolved.points).is_empty()
}

/// Ends a run to which no point of its plan is missing.
fn whole(job: Job, directory: &Path) -> anyhow::Result<ExitCode> {
    let Destination::Resumed(ended) = job.out else { return Ok(ExitCode::SUCCESS) };
    let mut run = ended.run.clone();
    run.ended.get_or_insert_with(sink::now);
    // Repetitions that were planned while others were measured may be missing.
    run.points_planned = resumed::planned(job.resolved.points.len() as u64, &ended.points);
    let points = ended.points.clone();
    ended.go_on()?.finish(&run)?;
    eprintln!("rdmascope: the record in {} has all points of its plan", directory.display());
    let points = Points { points: &points, devices: &run.devices, patterns: PATTERNS };
    let judged = expectations::judge(&run.expectations, &run.plan, points);
    let is_not_met = expectations::is_any_not_met(&judged);
    let is_json = job.shows == Shows::Json;
    let text = expectations::text(&judged, false);
    let printed = match is_json {
        true => {
            eprint!("{text}");
            stdout::print(&points.points.iter().map(sink::json::line).collect::<String>())
        }
        false => stdout::print_folded(&text),
    };
    let directory = Some(directory.to_owned());
    let unprinted = printed.err();
    let mut statuses = Summary::default();
    points.points.iter().for_each(|point| statuses.count(point));
    let closed = close(Ended { directory, unprinted, is_json, is_not_met, statuses });
    Ok(reported(status(statuses, is_not_met, "the record says why"), closed))
}

/// Returns the arguments of the command line in a record, if it is one of this command.
pub(crate) fn arguments_of<A: Args + FromArgMatches>(run: &Run, command: &'static str) -> Option<A> {
    let at = run.command.iter().position(|word| word == command)?;
    let is_colour = |word: &String| word.starts_with("--color") || COLOURS.contains(&word.as_str());
    let is_first = run.command.get(1..at)?.iter().all(is_colour);
    let colour = Arg::new("color").long("color").num_args(1);
    let command = A::augment_args(Command::new(command)).arg(colour);
    let matches = command.try_get_matches_from(&run.command[at..]).ok().filter(|_| is_first)?;
    A::from_arg_matches(&matches).ok()
}

/// The values of `--color`, which may come before the command.
const COLOURS: [&str; 3] = ["always", "auto", "never"];

/// Returns the path of the first key in which two resolved plans differ.
fn difference(one: &Value, other: &Value) -> Option<String> {
    let below = |key: String, one: &Value, other: &Value| {
        difference(one, other).map(|rest| if rest.is_empty() { key.clone() } else { format!("{key}.{rest}") })
    };
    match (one, other) {
        (one, other) if one == other => None,
        (Value::Object(one), Value::Object(other)) => {
            let keys = one.keys().chain(other.keys().filter(|key| !one.contains_key(*key)));
            let of = |map: &Map<String, Value>, key: &String| map.get(key).cloned().unwrap_or_default();
            keys.filter_map(|key| below(key.clone(), &of(one, key), &of(other, key))).next()
        }
        (Value::Array(one), Value::Array(other)) if one.len() == other.len() => {
            let pairs = one.iter().zip(other).enumerate();
            pairs.filter_map(|(index, (one, other))| below(index.to_string(), one, other)).next()
        }
        _ => Some(String::new()),
    }
}
