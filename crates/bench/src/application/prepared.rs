//! An application in place of endpoints: rank 0 starts it, and its output has the numbers of the
//! point.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use measure::record::Oversubscribed;
use rustix::thread::{sched_getaffinity, sched_setaffinity};
use serde_json::Value;

use super::definition::{Application, STDERR, STDOUT, Starter};
use super::found::metrics;
use super::hash::sha256;
use super::kept::Said;
use super::running::{Finished, Running};
use super::scratch::Scratch;
use super::spec::{ApplicationSpec, Started};
use super::told::{Found, Hashed, Ran};
use crate::Error;
use crate::axis;
use crate::endpoint::kind::{ConnectedEndpoints, PreparedEndpoints, Site};
use crate::fault::{PointError, out_of_order, unreadable};
use crate::host_counters::{Counted, Ways};
use crate::pattern::check::Check;
use crate::point::{Carrier, Pattern, PointSpec};
use crate::process::launcher::Usage;
use crate::process::message::{Neighbour, Outcome, Prepared};
use crate::rank_clock::RankClock;

/// Refuses applications in patterns with messages.
pub(crate) fn check(check: &Check<'_>) -> Result<(), Error> {
    if check.0.pattern == Pattern::APPLICATION {
        return Ok(());
    }
    let what = format!("the pattern {:?} of {}", check.0.pattern.name(), Carrier::Program.name());
    let why = "rdmascope sends no messages for a program: use the pattern \"application\"";
    check.refuse("endpoint", &what, why)
}

/// Finds the application of a point, and makes its directory.
pub(crate) fn prepare(site: &mut Site<'_>) -> Result<Box<dyn PreparedEndpoints>, PointError> {
    let spec = site.spec.application.as_deref().ok_or_else(|| out_of_order("prepare a program"))?;
    let started = spec.started.as_ref().ok_or_else(|| out_of_order("prepare a program"))?;
    let cpus = refuse(spec, started, site.spec)?;
    let mut scratch = Scratch::new(started)?;
    let directory = scratch.path().to_string_lossy().into_owned();
    let filled = |text: &str| spec.filled(text, Some(&directory));
    let words = spec.application.command.iter().map(|word| filled(word));
    let mut words: Vec<String> = words.collect::<Result<_, _>>()?;
    let mut variables = started.variables.clone();
    for (name, text) in spec.variables() {
        variables.insert(name.to_owned(), filled(text)?);
    }
    scratch.fill(spec)?;
    let program = words.first_mut().ok_or_else(|| out_of_order("prepare a program"))?;
    let path = executable(program, scratch.path()).ok_or_else(|| {
        let how = spec.application.how_to_install();
        PointError::NotMeasured(format!("{program} is not installed here{how}"))
    })?;
    if program.contains('/') {
        // The application runs in another directory than this process.
        *program = path.to_string_lossy().into_owned();
    }
    let hash = sha256(&path).unwrap_or_else(|error| format!("not read: {error}"));
    let executable = Hashed { path: path.to_string_lossy().into_owned(), sha256: hash };
    let version = version(spec, started, &variables, site.spec.timeout_s, &directory);
    let command = started.launcher.iter().cloned().chain(words).collect();
    let ran = Ran {
        command,
        variables,
        launcher_version: started.version.clone(),
        version,
        executable,
        inputs: scratch.inputs.clone(),
        transport_asked: axis::MPI_TRANSPORT.at(&site.spec.axes).map(|asked| asked.word().to_owned()),
        ..Ran::default()
    };
    let limit_s = site.spec.timeout_s;
    Ok(Box::new(Waiting {
        running: None,
        scratch,
        spec: spec.clone(),
        started: started.clone(),
        ran,
        cpus,
        limit_s,
    }))
}

/// Refuses a number of ranks that the application or this host does not allow. Returns the number
/// of CPUs of this host.
fn refuse(spec: &ApplicationSpec, started: &Started, point: &PointSpec) -> Result<u32, PointError> {
    let Application { name, ranks_allowed, launcher, .. } = &spec.application;
    let ranks = spec.ranks;
    if !ranks_allowed.allows(ranks) {
        return Err(PointError::NotMeasured(format!("{name} runs on {ranks_allowed}, not on {ranks}")));
    }
    let cpus = available_cpus();
    let may_oversubscribe = point.message.mpi.may_oversubscribe || started.is_elsewhere;
    if !may_oversubscribe && ranks > cpus {
        let hosts = match launcher {
            Starter::None => "",
            Starter::Mpi | Starter::Template(_) => "name other hosts in the launcher (--mpi), or ",
        };
        return Err(PointError::NotMeasured(format!(
            "{ranks} ranks of {name} do not fit on the {cpus} CPUs of this host: {hosts}let them share CPUs with \
             mpi_oversubscribe = true"
        )));
    }
    Ok(cpus)
}

/// The number of CPUs that an application may run on: the CPUs that this process would have if it
/// were not pinned.
fn available_cpus() -> u32 {
    let Ok(pinned) = sched_getaffinity(None) else { return 1 };
    let widened = sched_setaffinity(None, &conditions::every_cpu()).and_then(|()| sched_getaffinity(None));
    // The kernel never refuses the previous set.
    let _ = sched_setaffinity(None, &pinned);
    widened.unwrap_or(pinned).count()
}

/// Finds the file of a program by its name: as execvp(3) does, and a path relative to `directory`,
/// or else to the working directory.
fn executable(program: &str, directory: &Path) -> Option<PathBuf> {
    use std::os::unix::fs::PermissionsExt;
    let is_program = |path: &PathBuf| {
        std::fs::metadata(path).is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
    };
    if program.contains('/') {
        let places = [directory.join(program), std::path::absolute(program).ok()?];
        return places.into_iter().find(is_program);
    }
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| directory.join(folder).join(program)).find(is_program)
}

/// The first line that the version command of an application prints, if it prints one in time.
fn version(
    spec: &ApplicationSpec,
    started: &Started,
    variables: &BTreeMap<String, String>,
    limit_s: f64,
    directory: &str,
) -> Option<String> {
    let words = spec.application.version_command.iter();
    let words: Vec<String> =
        words.map(|word| spec.filled(word, Some(directory)).ok()).collect::<Option<_>>()?;
    if words.is_empty() {
        return None;
    }
    // Not in the directory of the run: files of this command must not pass for files of the run.
    let mut running = Running::start(started, &words, variables, Path::new("/")).ok()?;
    let patience = VERSION_TIMEOUT.min(Duration::try_from_secs_f64(limit_s / 4.0).unwrap_or_default());
    running.has_ended_within(patience).ok()?;
    let said = running.finished(false).said;
    let mut lines = said.iter().flat_map(|said| said.text.lines()).map(str::trim);
    lines.find(|line| !line.is_empty()).map(str::to_owned)
}

/// An application that is ready to start, or that runs.
struct Waiting {
    /// An application that did not end in time, until the point is reset. It ends before its
    /// directory is removed.
    running: Option<Running>,
    scratch: Scratch,
    spec: ApplicationSpec,
    started: Started,
    ran: Ran,
    /// The CPUs of this host.
    cpus: u32,
    /// The point's time limit, in seconds.
    limit_s: f64,
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
        let ran = &self.ran;
        let mut running = Running::start(&self.started, &ran.command, &ran.variables, self.scratch.path())?;
        let has_ended = running.has_ended_within(left)?;
        let host = Counted::now(&ways).since(&before);
        let mut finished = running.finished(has_ended);
        // An application that still runs is ended when the point is reset, which is not timed.
        self.running = Some(running);
        let said = self.said(&mut finished, has_ended);
        let usage =
            finished.usage.map(|usage| if self.started.is_counted { usage } else { usage.without_ranks() });
        let mut ran = Ran { usage, usage_of: usage_of(&self.started), ..self.ran.clone() };
        let room = KEPT_JSON_BYTES / said.len().max(1);
        ran.said = said.iter().map(|(place, said)| (place.clone(), said.kept(room))).collect();
        let limit_s = (!has_ended).then_some(self.limit_s);
        match conclude(&self.spec, usage, &said, &finished.supervisor, limit_s) {
            Ok(metrics) => ran.metrics = metrics,
            Err(failure) => ran.failure = Some(failure),
        }
        let told = Some(serde_json::to_value(ran).map_err(unreadable)?);
        let ranks = self.spec.ranks;
        let is_crowded = !self.started.is_elsewhere && ranks > self.cpus;
        let oversubscribed = is_crowded.then_some(Oversubscribed { ranks, cpus: self.cpus });
        Ok(Outcome { told, host, oversubscribed, ..Outcome::default() })
    }
}

impl Waiting {
    /// The output of the application and, if it has ended, its files that are searched.
    fn said(&self, finished: &mut Finished, has_ended: bool) -> BTreeMap<String, Said> {
        let [output, errors] = std::mem::take(&mut finished.said);
        let mut said = BTreeMap::from([(STDOUT.to_owned(), output), (STDERR.to_owned(), errors)]);
        let application = &self.spec.application;
        let places = application.metric.iter().map(|metric| &metric.place);
        for place in places.chain(application.verify.iter().map(|verify| &verify.place)) {
            if has_ended
                && !said.contains_key(place)
                && let Some(kept) = self.scratch.read(place)
            {
                said.insert(place.clone(), kept);
            }
        }
        said
    }
}

/// Returns the metrics of an application that has run, or why the point has failed.
fn conclude(
    spec: &ApplicationSpec,
    usage: Option<Usage>,
    said: &BTreeMap<String, Said>,
    supervisor: &str,
    limit_s: Option<f64>,
) -> Result<BTreeMap<String, Found>, String> {
    let Application { name, metric, .. } = &spec.application;
    if let Some(limit_s) = limit_s {
        return Err(format!(
            "{name} was stopped at the point's time limit of {limit_s} s: give it a longer timeout"
        ));
    }
    // Programs print errors to standard error. Standard output is shown only if that is empty.
    let last = || {
        let said = [STDERR, STDOUT].iter().filter_map(|place| said.get(*place));
        let last = said.map(Said::last_lines).find(|last| !last.is_empty());
        last.map_or_else(|| "it printed nothing".to_owned(), |last| format!("its last output: {last}"))
    };
    let Some(usage) = usage else {
        let last = last();
        return Err(format!(
            "{name} was not started, or ended with its supervisor, which {supervisor}: {last}"
        ));
    };
    if let Some(how) = usage.fault() {
        return Err(format!("{name} {how}: {}", last()));
    }
    let numbers = metrics(&spec.application, spec.ranks, said).map_err(|what| format!("{name} {what}"))?;
    let found = metric.iter().filter_map(|metric| {
        let value = *numbers.get(&metric.name)?;
        Some((metric.name.clone(), Found { value, unit: metric.unit.clone(), better: metric.better }))
    });
    Ok(found.collect())
}

/// The processes that count for time and memory, or the reason why none do.
fn usage_of(started: &Started) -> String {
    let what = match (started.launcher.is_empty(), started.is_counted) {
        (true, _) => "the program and all processes that it started",
        (false, true) => "the launcher, its ranks and all processes that they started",
        (false, false) => {
            return "not counted: the ranks are on other hosts, or not children of the launcher".to_owned();
        }
    };
    format!("{what}, by getrusage(2)")
}

/// How long the version command may take.
const VERSION_TIMEOUT: Duration = Duration::from_secs(5);
/// The bytes for the output of an application in a message of the control connection, which has
/// 8 MiB at most.
const KEPT_JSON_BYTES: usize = 6 << 20;

#[cfg(test)]
mod tests;
