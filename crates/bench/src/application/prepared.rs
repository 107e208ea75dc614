//! A program of somebody else in the place of endpoints: rank 0 starts it, and what it says of
//! itself is the point.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::thread::available_parallelism;
use std::time::Duration;

use serde_json::Value;

use super::definition::{Application, STDERR, STDOUT};
use super::found::metrics;
use super::hash::sha256;
use super::kept::Kept;
use super::running::{Finished, Running};
use super::scratch::Scratch;
use super::spec::{ApplicationSpec, Started};
use super::told::{Found, Hashed, Ran};
use crate::Error;
use crate::endpoint::kind::{ConnectedEndpoints, PreparedEndpoints, Site};
use crate::fault::{PointError, out_of_order, unreadable};
use crate::host_counters::{Counted, Ways};
use crate::pattern::check::Check;
use crate::point::{Carrier, Pattern, PointSpec};
use crate::process::message::{Neighbour, Outcome, Prepared};
use crate::rank_clock::RankClock;

/// Refuses programs in patterns that have messages.
pub(crate) fn check(check: &Check<'_>) -> Result<(), Error> {
    if check.0.pattern == Pattern::APPLICATION {
        return Ok(());
    }
    let what = format!("the pattern {:?} of {}", check.0.pattern.name(), Carrier::Program.name());
    let why = "this program sends no messages of its own there: use the pattern \"application\"";
    check.refuse("endpoint", &what, why)
}

/// Finds the program of a point, and makes its directory.
pub(crate) fn prepare(site: &mut Site<'_>) -> Result<Box<dyn PreparedEndpoints>, PointError> {
    let spec = site.spec.application.as_deref().ok_or_else(|| out_of_order("prepare a program"))?;
    let started = spec.started.as_ref().ok_or_else(|| out_of_order("prepare a program"))?;
    refuse(spec, started, site.spec)?;
    let scratch = Scratch::new(spec)?;
    let directory = scratch.path().to_string_lossy().into_owned();
    let filled = |word: &String| spec.filled(word, Some(&directory));
    let words: Vec<String> = spec.application.command.iter().map(filled).collect::<Result<_, _>>()?;
    let program = words.first().cloned().unwrap_or_default();
    let path = executable(&program, scratch.path()).ok_or_else(|| {
        let how = spec.application.how_to_install();
        PointError::NotMeasured(format!("{program} is not installed here{how}"))
    })?;
    let hash = sha256(&path).unwrap_or_default();
    let executable = Hashed { path: path.to_string_lossy().into_owned(), sha256: hash };
    let version = version(spec, &scratch);
    let mut command = started.launcher.clone();
    command.extend(words);
    let ran = Ran {
        command,
        variables: started.variables.clone(),
        launcher_version: started.version.clone(),
        version,
        executable,
        inputs: scratch.inputs.clone(),
        ..Ran::default()
    };
    Ok(Box::new(Waiting { spec: spec.clone(), started: started.clone(), scratch, ran, running: None }))
}

/// Refuses what the program, or this host, does not have.
fn refuse(spec: &ApplicationSpec, started: &Started, point: &PointSpec) -> Result<(), PointError> {
    let Application { name, ranks_allowed, .. } = &spec.application;
    let ranks = spec.ranks;
    if !ranks_allowed.allows(ranks) {
        return Err(PointError::NotMeasured(format!("{name} runs on {ranks_allowed}, not on {ranks}")));
    }
    let cpus = available_cpus();
    let may_oversubscribe = point.message.mpi.may_oversubscribe || started.is_elsewhere;
    if !may_oversubscribe && u64::from(ranks) > cpus {
        return Err(PointError::NotMeasured(format!(
            "{ranks} ranks of {name} are more than the {cpus} CPUs of this host: give a launcher that names other hosts \
             (--mpi), or mpi_oversubscribe = true"
        )));
    }
    Ok(())
}

/// The CPUs that a program may run on: all that this process could have.
fn available_cpus() -> u64 {
    let online = std::fs::read_to_string("/sys/devices/system/cpu/online").unwrap_or_default();
    let listed =
        measure::units::parse_counts(&online.trim().replace('-', "..")).map(|cpus| cpus.len() as u64);
    listed.or_else(|| available_parallelism().ok().map(|cpus| cpus.get() as u64)).unwrap_or(1)
}

/// The file that a program's name stands for, as execvp(3) finds it from a directory.
fn executable(program: &str, directory: &Path) -> Option<PathBuf> {
    use std::os::unix::fs::PermissionsExt;
    let is_program = |path: &PathBuf| {
        std::fs::metadata(path).is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
    };
    if program.contains('/') {
        return Some(directory.join(program)).filter(is_program);
    }
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| directory.join(folder).join(program)).find(is_program)
}

/// The first line of what a program says of its version, if it says anything soon.
fn version(spec: &ApplicationSpec, scratch: &Scratch) -> Option<String> {
    let directory = scratch.path().to_string_lossy().into_owned();
    let filled = |word: &String| spec.filled(word, Some(&directory)).ok();
    let words: Vec<String> = spec.application.version_command.iter().map(filled).collect::<Option<_>>()?;
    if words.is_empty() {
        return None;
    }
    let alone = Started { launcher: Vec::new(), ..spec.started.clone()? };
    let mut running = Running::start_in(&alone, &words, scratch.path()).ok()?;
    running.has_ended_within(VERSION_TIMEOUT).ok()?;
    let said = running.finished().said;
    let mut lines = said.iter().flat_map(|kept| kept.text.lines()).map(str::trim);
    lines.find(|line| !line.is_empty()).map(str::to_owned)
}

/// A program that is ready to be started, or runs.
struct Waiting {
    spec: ApplicationSpec,
    started: Started,
    scratch: Scratch,
    ran: Ran,
    /// A program that did not end in its time, until the point is taken down.
    running: Option<Running>,
}

impl PreparedEndpoints for Waiting {
    fn prepared(&self, ranks: u32) -> Result<Prepared, PointError> {
        Ok(Prepared { address: Value::Null, ways: vec![Value::Null; ranks as usize] })
    }

    fn connect(self: Box<Self>, _ranks: &[Neighbour]) -> Result<Box<dyn ConnectedEndpoints>, PointError> {
        Ok(self)
    }
}

impl ConnectedEndpoints for Waiting {
    fn measure(
        &mut self,
        _spec: &PointSpec,
        _rank: u32,
        left: Duration,
        _rank_clock: &RankClock,
    ) -> Result<Outcome, PointError> {
        let ways = Ways::of_host();
        let before = Counted::now(&ways);
        let mut running = Running::start(&self.started, &self.ran.command, self.scratch.path())?;
        let has_ended = running.has_ended_within(left)?;
        let host = Counted::now(&ways).since(&before);
        let finished = running.finished();
        // What goes on is ended when the point is taken down: nobody waits for that.
        self.running = Some(running);
        let limit = (!has_ended).then_some(left);
        let mut ran = Ran { usage: finished.usage, usage_of: usage_of(&self.started), ..self.ran.clone() };
        ran.said = self.said(finished);
        match conclude(&self.spec, &ran, limit) {
            Ok(metrics) => ran.metrics = metrics,
            Err(failure) => ran.failure = Some(failure),
        }
        let told = Some(serde_json::to_value(ran).map_err(unreadable)?);
        Ok(Outcome { told, host, ..Outcome::default() })
    }
}

impl Waiting {
    /// What the program has printed, and what it has written where metrics are looked for.
    fn said(&self, finished: Finished) -> BTreeMap<String, Kept> {
        let [output, errors] = finished.said;
        let mut said = BTreeMap::from([(STDOUT.to_owned(), output), (STDERR.to_owned(), errors)]);
        let application = &self.spec.application;
        let places = application.metric.iter().map(|metric| &metric.place);
        for place in places.chain(application.verify.iter().map(|verify| &verify.place)) {
            if !said.contains_key(place)
                && let Some(kept) = self.scratch.read(place)
            {
                said.insert(place.clone(), kept);
            }
        }
        said
    }
}

/// The metrics of a program that has run, or why the point has failed.
fn conclude(
    spec: &ApplicationSpec,
    ran: &Ran,
    limit: Option<Duration>,
) -> Result<BTreeMap<String, Found>, String> {
    let Application { name, metric, .. } = &spec.application;
    if let Some(limit) = limit {
        return Err(format!(
            "{name} was ended after {:.1} s, which is the point's time limit: give it a longer timeout",
            limit.as_secs_f64()
        ));
    }
    let Some(usage) = ran.usage else {
        return Err(format!("{name} ended with its supervisor, which somebody has killed"));
    };
    if let Some(how) = usage.fault() {
        // What it complains of last says more than what it has printed.
        let said = [STDERR, STDOUT].iter().filter_map(|place| ran.said.get(*place));
        let last = said.map(Kept::last_lines).find(|last| !last.is_empty());
        let last = last.map_or_else(|| "it said nothing".to_owned(), |last| format!("it said last: {last}"));
        return Err(format!("{name} {how}: {last}"));
    }
    let numbers =
        metrics(&spec.application, spec.ranks, &ran.said).map_err(|what| format!("{name} {what}"))?;
    let found = metric.iter().filter_map(|metric| {
        let value = *numbers.get(&metric.name)?;
        Some((metric.name.clone(), Found { value, unit: metric.unit.clone(), better: metric.better }))
    });
    Ok(found.collect())
}

/// What is counted as the time and memory that a program takes.
fn usage_of(started: &Started) -> String {
    let what = match (started.launcher.is_empty(), started.is_elsewhere) {
        (true, _) => "the program and all that it has waited for",
        (false, false) => "the launcher, its ranks and all that they have waited for",
        (false, true) => "the launcher and those of its ranks that it has started on this host itself",
    };
    format!("{what}, by getrusage(2)")
}

/// How long a program may take to say its version.
const VERSION_TIMEOUT: Duration = Duration::from_secs(10);

#[cfg(test)]
mod tests;
