//! Where the results of a run go: the record on disk, tables on standard output, progress on
//! standard error.

pub(crate) mod json;
mod kept;
mod perftest;
pub(crate) mod progress;
pub(crate) mod warnings;

use std::io;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use bench::PATTERNS;
use bench::point::PointSpec;
use bench::process::coordinator::Summary;
use bench::process::message::Hello;
use bench::process::sink::{KeptSamples, Sink, SinkError};
use measure::figure::{Figure, FigureKind};
use measure::placement;
use measure::record::{Device, Environment, Launch, Point, Program, Run, SCHEMA_VERSION};
use measure::store::{EndedRun, RunWriter};
use report::Points;
use report::expectations;
use report::launched;
use report::repeated::{self, Repeated};
use report::terminal::{Stream, Summary as Medians};
use serde_json::Value;

use crate::banner::banner;
use crate::failure::harmless;
use crate::job::{Destination, Job, Shows};
use crate::placing::Placing;
use crate::{resumed, stdout};
use kept::keep_samples;
use perftest::PerftestFile;
use progress::Progress;

/// The outputs of a run while it measures.
pub(crate) struct Output {
    run: Run,
    writer: Option<RunWriter>,
    tables: Tables,
    progress: Progress,
    points: u64,
    /// The number of points with each status, including those that an earlier process measured.
    statuses: Summary,
    /// The points from which findings, repetitions and costs are computed at the end; empty for a
    /// plan without them.
    asked: Vec<Point>,
    /// Points that may be measured again until their mean is known.
    repeatable: Vec<PointSpec>,
    /// Whether devices carry messages: a server may have a device and not use it.
    needs_device: bool,
    placing: Placing,
    /// The record of an earlier process, until the ranks are known to be the same.
    resumed: Option<EndedRun>,
    /// perftest's file of all points.
    json_file: Option<PerftestFile>,
    /// Whether standard output is for points as JSON only, so that texts go to standard error.
    is_json: bool,
    /// Why nothing is printed any more, although the run goes on for its record.
    unprinted: Option<io::Error>,
}

/// The tables of a run.
enum Tables {
    /// The results are shown in another way.
    None,
    /// None, but each point as a line of JSON, when it ends.
    Json,
    /// A row for each point, when it ends.
    Points(Box<Stream>),
    /// Medians over repetitions, when the run ends.
    Medians(Medians),
}

/// The result of a run that has ended.
pub(crate) struct Ended {
    /// Directory of the record; none without a record, or without a point in it.
    pub(crate) directory: Option<PathBuf>,
    /// Why not everything was printed.
    pub(crate) unprinted: Option<io::Error>,
    /// Whether standard output is for points as JSON only.
    pub(crate) is_json: bool,
    /// Whether an expectation is not met.
    pub(crate) is_not_met: bool,
    /// The number of points with each status, including those that an earlier process measured.
    pub(crate) statuses: Summary,
}

impl Output {
    /// Starts the record, so that a directory that cannot be used is known before anything is
    /// measured.
    pub(crate) fn new(job: &mut Job) -> anyhow::Result<Self> {
        let (mut output, points) = match std::mem::replace(&mut job.out, Destination::None) {
            Destination::None => (Self::with(job, Self::begun(job), None)?, Vec::new()),
            Destination::New(out) => {
                let run = Self::begun(job);
                let writer = RunWriter::create(&out, &run)?;
                (Self::with(job, run, Some(writer))?, Vec::new())
            }
            Destination::Resumed(ended) => {
                let mut run = ended.run.clone();
                let points = ended.points.clone();
                run.points_planned = resumed::planned(job.resolved.points.len() as u64, &points);
                run.ended = None;
                let mut output = Self::with(job, run, None)?;
                output.resumed = Some(*ended);
                (output, points)
            }
        };
        if let Tables::Points(stream) = &mut output.tables {
            stream.measures(&output.run.devices);
        }
        if let Some(path) = job.json_file.take() {
            output.json_file = Some(PerftestFile::create(&path, job.bandwidth, &output.run)?);
        }
        let shown: String = points.into_iter().map(|point| output.add(point)).collect();
        output.print_points(&shown)?;
        Ok(output)
    }

    /// Returns what is known of a run before it starts.
    fn begun(job: &Job) -> Run {
        let resolved = &job.resolved;
        Run {
            schema_version: SCHEMA_VERSION,
            program: program(),
            command: job.command.clone(),
            started: now(),
            ended: None,
            title: resolved.title.clone(),
            about: resolved.about.clone(),
            quick: job.quick,
            plan: resolved.plan.clone(),
            points_planned: resolved.points.len() as u64,
            figures: resolved.figures.clone(),
            findings: resolved.findings.clone(),
            expectations: resolved.expectations.clone(),
            devices: Vec::new(),
            environments: Vec::new(),
            overheads: Vec::new(),
            launches: Vec::new(),
            fleet: None,
            warnings: warnings::of_mpi(job).into_iter().collect(),
        }
    }

    fn with(job: &Job, run: Run, writer: Option<RunWriter>) -> anyhow::Result<Self> {
        let resolved = &job.resolved;
        let tables = match job.shows {
            Shows::Json => Tables::Json,
            Shows::Points => Tables::Points(Box::new(Stream::new(PATTERNS, job.bandwidth, stdout::line())?)),
            Shows::Medians => Tables::Medians(Medians::new(PATTERNS, job.bandwidth, stdout::line())?),
        };
        let progress = Progress::new(run.points_planned);
        let is_repeated = |spec: &&PointSpec| repeated::asked(&run.plan, &spec.experiment).is_some();
        let repeatable = resolved.points.iter().filter(is_repeated).cloned().collect();
        let points = 0;
        let asked = Vec::new();
        let unprinted = None;
        let needs_device = resolved.needs_device();
        let placing = Placing::new();
        Ok(Self {
            progress,
            run,
            writer,
            tables,
            points,
            statuses: Summary::default(),
            asked,
            repeatable,
            needs_device,
            placing,
            unprinted,
            resumed: None,
            json_file: None,
            is_json: job.shows == Shows::Json,
        })
    }

    /// Prints no tables: the results are shown in another way.
    pub(crate) fn without_tables(mut self) -> Self {
        self.tables = Tables::None;
        self
    }

    /// Adds points that were planned while others were measured.
    pub(crate) fn plan_more(&mut self, points: u64, experiments: &[Value]) {
        self.run.points_planned += points;
        self.progress.plan(self.run.points_planned);
        if let Some(known) = self.run.plan.get_mut("experiments").and_then(Value::as_array_mut) {
            known.extend_from_slice(experiments);
        }
    }

    /// Sets the figures of the report, once they are known.
    pub(crate) fn show(&mut self, figures: Vec<Figure>) {
        self.run.figures = figures;
    }

    /// Adds a point of the record to what is shown of the run.
    fn add(&mut self, point: Point) -> String {
        self.statuses.count(&point);
        let lines = match &mut self.tables {
            Tables::None => String::new(),
            Tables::Json => json::line(&point),
            Tables::Points(stream) => stream.line(&point),
            Tables::Medians(summary) => {
                summary.see(&point);
                String::new()
            }
        };
        if let Some(file) = &mut self.json_file {
            file.add(json::without_distributions(point.clone()));
        }
        if self.is_asked() {
            self.asked.push(json::without_distributions(point));
        }
        self.progress.ended();
        lines
    }

    /// Whether a text at the end is made of the points.
    fn is_asked(&self) -> bool {
        let compares = self.run.figures.iter().any(|figure| figure.kind == FigureKind::Costs);
        compares
            || !self.run.findings.is_empty()
            || !self.run.expectations.is_empty()
            || !self.repeatable.is_empty()
            || launched::asked(&self.run.plan)
    }

    /// Ends the tables and the record.
    pub(crate) fn end(mut self) -> anyhow::Result<Ended> {
        self.progress.clear();
        let with_cases = !matches!(self.tables, Tables::Medians(_));
        let has_early_rows = matches!(self.tables, Tables::Points(_));
        let rest = match std::mem::replace(&mut self.tables, Tables::None) {
            Tables::None | Tables::Json => String::new(),
            Tables::Points(stream) => stream.finish(),
            Tables::Medians(summary) => summary.finish(&self.run.devices),
        };
        placement::mark(&mut self.asked);
        let repeated = repeated::repeated(&self.run.plan, &self.asked);
        let asked = Points { points: &self.asked, devices: &self.run.devices, patterns: PATTERNS };
        let costs = report::terminal::costs(&self.run.figures, asked);
        let findings = report::terminal::findings(&self.run, asked, with_cases);
        let launched = launched::text(&self.run.plan, &self.asked);
        let judged = expectations::judge(&self.run.expectations, &self.run.plan, asked);
        let is_not_met = expectations::is_any_not_met(&judged);
        let rest = rest
            + &self.placing.rest(has_early_rows)
            + &repeated::text(&repeated)
            + &launched
            + &costs
            + &findings
            + &expectations::text(&judged, with_cases);
        let printed = self.print(&rest);
        self.placing.keep();
        for sentence in repeated::unknown(&repeated) {
            self.warning(&sentence);
        }
        let directory = self.writer.take().map(|writer| self.close(writer)).transpose()?.flatten();
        self.run.ended.get_or_insert_with(now);
        self.json_file.as_ref().map_or(Ok(()), |file| file.write(&self.run))?;
        let unprinted = self.unprinted.or(printed.err());
        Ok(Ended { directory, unprinted, is_json: self.is_json, is_not_met, statuses: self.statuses })
    }

    fn close(&mut self, writer: RunWriter) -> anyhow::Result<Option<PathBuf>> {
        if self.points == 0 {
            writer.discard();
            return Ok(None);
        }
        self.run.ended = Some(now());
        let directory = writer.dir().to_owned();
        writer.finish(&self.run)?;
        resumed::missing(&self.run, self.points, &directory).iter().for_each(|sentence| self.say(sentence));
        Ok(Some(directory))
    }

    /// Prints results for people. If that fails, a run with a record or expectations goes on, and
    /// any other run ends.
    pub(crate) fn print(&mut self, text: &str) -> io::Result<()> {
        if self.is_json {
            self.progress.suspend(|| eprint!("{text}"));
            return Ok(());
        }
        self.print_by(|| stdout::print_folded(text))
    }

    /// Prints the rows or lines of points, as [`print`](Self::print).
    fn print_points(&mut self, text: &str) -> io::Result<()> {
        if self.is_json { self.print_by(|| stdout::print(text)) } else { self.print(text) }
    }

    fn print_by(&mut self, print: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
        if self.unprinted.is_some() {
            return Ok(());
        }
        match self.progress.suspend(print) {
            Err(error) if self.writer.is_some() || !self.run.expectations.is_empty() => {
                self.unprinted = Some(error);
            }
            other => other?,
        }
        Ok(())
    }

    /// Prints a line on standard error without breaking the progress display.
    fn say(&self, text: &str) {
        self.progress.suspend(|| eprintln!("{text}"));
    }

    /// Writes a point to the record. If there is no room for all of its samples, it has none: its
    /// numbers are worth more.
    fn keep(&mut self, point: &mut Point, samples: &[KeptSamples]) -> measure::Result<()> {
        let Some(writer) = &mut self.writer else {
            self.points += 1;
            return Ok(());
        };
        let kept = keep_samples(writer, point, samples);
        let appended = writer.append(point);
        self.points += u64::from(appended.is_ok());
        // The first error is the cause.
        kept.and(appended)
    }
}

impl Sink for Output {
    fn started(&mut self, agents: &[Hello]) -> Result<(), SinkError> {
        let descriptions = || agents.iter().map(|agent| &agent.description);
        let devices = descriptions().filter_map(|of| of.device.clone()).filter(|_| self.needs_device);
        let devices: Vec<Device> = devices.collect();
        let environments: Vec<Environment> = descriptions().map(|of| of.environment.clone()).collect();
        if let Some(resumed) = self.resumed.take() {
            let before = (&self.run.devices[..], &self.run.environments[..]);
            let changes = resumed::changes(before, (&devices, &environments));
            if !changes.is_empty() {
                return Err(resumed::Changed(changes).into());
            }
            self.points += resumed.points.len() as u64;
            resumed.points.iter().for_each(|point| self.placing.ended(point));
            self.writer = Some(resumed.go_on()?);
        }
        if self.run.environments.is_empty() {
            self.run.devices = devices;
            self.run.environments = environments;
            self.run.overheads = descriptions().map(|of| of.overhead.clone()).collect();
        }
        if let Tables::Points(stream) = &mut self.tables {
            stream.measures(&self.run.devices);
        }
        self.placing.started(&self.run.environments);
        for warning in warnings::of(&self.run) {
            if !self.run.warnings.contains(&warning) {
                self.run.warnings.push(warning);
            }
        }
        if let Some(writer) = &self.writer {
            writer.update(&self.run)?;
        }
        Ok(self.print(&banner(&self.run))?)
    }

    fn joined(&mut self, agents: &[Hello]) -> Result<(), SinkError> {
        for (rank, agent) in agents.iter().enumerate() {
            let description = &agent.description;
            match self.run.environments.get_mut(rank) {
                // The host is known; how its rank was started may be new.
                Some(known) => {
                    for (group, facts) in &description.environment.facts {
                        known.facts.entry(group.clone()).or_insert_with(|| facts.clone());
                    }
                }
                None => {
                    self.run.environments.push(description.environment.clone());
                    self.run.overheads.push(description.overhead.clone());
                }
            }
        }
        if let Some(writer) = &self.writer {
            writer.update(&self.run)?;
        }
        Ok(())
    }

    fn launched(&mut self, launch: &Launch) -> Result<(), SinkError> {
        self.run.launches.push(launch.clone());
        if let Some(writer) = &self.writer {
            writer.update(&self.run)?;
        }
        Ok(())
    }

    fn point_started(&mut self, spec: &PointSpec) {
        let pattern = serde_json::to_value(spec.pattern).ok();
        let pattern = pattern.as_ref().and_then(|p| p.as_str()).unwrap_or_default().to_owned();
        let what = format!("{}: {pattern}, {} B", spec.experiment, spec.message.size_bytes);
        self.progress.started(what, spec.length.duration_s());
    }

    fn tick(&mut self) -> Option<Duration> {
        self.progress.tick()
    }

    fn calibrated(&mut self, spec: &PointSpec, one_way_ns: f64) -> Option<f64> {
        let (best_ns, warning) = self.placing.calibrated(spec, one_way_ns);
        if let Some(warning) = warning {
            // A closed pipe is noticed when the point's line is printed.
            _ = self.print(&format!("# warning: {warning}\n"));
        }
        best_ns
    }

    fn point(&mut self, mut point: Point, samples: &[KeptSamples]) -> Result<(), SinkError> {
        let kept = self.keep(&mut point, samples);
        self.placing.ended(&point);
        let lines = self.add(point);
        // If the disk has no room for the point, it is printed at least.
        let printed = self.print_points(&lines);
        kept?;
        Ok(printed?)
    }

    fn more(&mut self) -> Result<Vec<PointSpec>, SinkError> {
        let wanted = wanted(&self.run.plan, &self.asked, &self.repeatable);
        let more = wanted.into_iter().zip(self.run.points_planned..);
        let more: Vec<PointSpec> = more.map(|(spec, id)| PointSpec { id, ..spec }).collect();
        self.plan_more(more.len() as u64, &[]);
        Ok(more)
    }

    fn agent_line(&mut self, who: &str, line: &str) {
        self.say(&format!("[{who}] {line}"));
    }

    fn notice(&mut self, text: &str) {
        self.say(&format!("rdmascope: {}", harmless(text)));
    }

    fn warning(&mut self, text: &str) {
        self.say(&format!("rdmascope: warning: {}", harmless(text)));
        self.run.warnings.push(text.to_owned());
    }
}

/// Returns the repetitions that a plan with `within` still wants, for measured points of those that
/// are `planned`. They have no identifiers of their own yet.
pub(crate) fn wanted(plan: &Value, measured: &[Point], planned: &[PointSpec]) -> Vec<PointSpec> {
    let again = |repeated: Repeated| {
        let spec = planned.iter().find(|spec| Some(&spec.id) == repeated.ids.first())?;
        Some(PointSpec { repetition: repeated.ids.len() as u32, ..spec.clone() })
    };
    repeated::repeated(plan, measured).into_iter().filter(Repeated::wants_more).filter_map(again).collect()
}

/// Returns this program, as records name it.
pub(crate) fn program() -> Program {
    Program { name: "rdmascope".to_owned(), version: env!("CARGO_PKG_VERSION").to_owned() }
}

/// Returns the time as records have it (RFC 3339): with fractions, so that short runs have an
/// order.
pub(crate) fn now() -> String {
    humantime::format_rfc3339_millis(SystemTime::now()).to_string()
}
