//! `rdmascope advise`: measures configurations of sending and recommends one, with the evidence and
//! the cost of each step away from it.
//!
//! The points are normal points of a normal record. `report::advice` makes the recommendation, from
//! the points alone.

mod arguments;
mod ask;
mod refused_flags;
mod search;
#[cfg(test)]
mod tests;

use std::process::ExitCode;
use std::time::Duration;

use bench::point::PointSpec;
use bench::process::coordinator;
use bench::process::interrupt::Interrupt;
use bench::process::message::Hello;
use bench::process::server::PORT;
use bench::process::sink::{KeptSamples, Sink, SinkError};
use measure::figure::{Figure, FigureKind, Unit};
use measure::record::{Launch, Point};
use measure::text::shell_word;

pub(crate) use self::arguments::AdviseArguments;
use self::arguments::Rate;
use self::ask::Ask;
use self::search::Search;
use crate::cli::Site;
use crate::execute::close;
use crate::failure::{DID_NOT_FINISH, Interrupted};
use crate::job::{Job, Shows};
use crate::launch::launch;
use crate::sink::Output;

/// Measures and recommends.
pub(crate) fn advise(arguments: &AdviseArguments, command: Vec<String>) -> anyhow::Result<ExitCode> {
    let mut search = Search::new(Ask::new(arguments)?);
    search.check_budget()?;
    let Some((about, resolved)) = search.next()? else { return Ok(ExitCode::from(DID_NOT_FINISH)) };
    let Site { out, ends, placement } = &arguments.site;
    let launch = launch(placement, ends.peer()?, &resolved)?;
    let is_kept = out.is_some();
    let out = out.clone();
    let bandwidth = Unit::MiBPerS;
    let mut job = Job {
        resolved,
        quick: false,
        command,
        launch,
        out: out.into(),
        bandwidth,
        shows: Shows::Points,
        json_file: None,
    };
    let interrupt = Interrupt::install()?;
    let mut advisor = Advisor { output: Output::new(&mut job)?.without_tables(), search, about };
    let ended = coordinator::run(&job.resolved.points, &job.launch, Some(&interrupt), &mut advisor);
    let Advisor { mut output, search, .. } = advisor;
    output.show(figures(&search));
    let finished = ended.is_ok();
    let mut is_found = false;
    if finished {
        let text = verdict(&search, arguments);
        is_found = text.is_ok();
        output.print(&text.unwrap_or_else(|why| why))?;
    }
    let closed = output.end().and_then(close);
    match ended {
        // The points of a search are not printed, either.
        Err(bench::Error::Interrupted { signal }) if !is_kept => {
            let why = "nothing is recommended yet, and without --out no point is kept".to_owned();
            return Err(Interrupted { signal, why }.into());
        }
        ended => ended?,
    };
    closed?;
    Ok(if is_found { ExitCode::SUCCESS } else { ExitCode::from(DID_NOT_FINISH) })
}

/// Returns the text to print: the advice, or why there is none.
fn verdict(search: &Search, arguments: &AdviseArguments) -> Result<String, String> {
    let ask = search.ask();
    let Some(advice) = search.advice() else {
        return Err(nothing(search));
    };
    let command = ask.command(&advice.recommended.way, search.iterations(), &ends(arguments));
    let rate = match ask.rate {
        Some(Rate::PerSecond(rate)) => Some(rate),
        Some(Rate::Asap) => Some(f64::INFINITY),
        None => None,
    };
    Ok(report::advice::text(&advice, &ask.subject(), &command, rate))
}

/// Returns why nothing is recommended, for each configuration.
fn nothing(search: &Search) -> String {
    let mut out = "\nNothing can be recommended:\n".to_owned();
    let of_trial = report::advice::candidates(search.points(), search.ask().goal, |_| true);
    let conditions = search.ask().conditions().that_can_be_met(&of_trial);
    for candidate in of_trial {
        let why = match &candidate.not_measured {
            Some(reason) => format!("not measured: {reason}"),
            None => candidate.why_refused(conditions).unwrap_or_else(|| "too few rounds".to_owned()),
        };
        out += &format!("  {}: {why}\n", candidate.way);
    }
    out
}

/// Returns the flags for hosts, device and CPUs, for the command that measures the recommended
/// configuration.
fn ends(arguments: &AdviseArguments) -> String {
    let Site { ends, placement, .. } = &arguments.site;
    let mut words = match (&ends.host, &placement.location.via) {
        (Some(host), _) if ends.port == PORT => vec![host.clone(), "--key KEY".to_owned()],
        (Some(host), _) => vec![host.clone(), format!("-p {} --key KEY", ends.port)],
        (None, Some(via)) => {
            let hosts = Some(placement.location.hosts.join(",")).filter(|hosts| !hosts.is_empty());
            let hosts = hosts.map(|hosts| format!("--hosts {}", shell_word(&hosts)));
            hosts.into_iter().chain([format!("--via {}", shell_word(via))]).collect()
        }
        (None, None) => vec!["--local".to_owned()],
    };
    words.extend(
        placement.location.agent_path.as_ref().map(|path| format!("--agent-path {}", shell_word(path))),
    );
    words.extend(placement.device.as_ref().map(|device| format!("-d {}", shell_word(device))));
    words.extend(placement.location.cpus.as_ref().map(|cpus| format!("--cpus {cpus}")));
    words.extend(placement.port.arguments());
    words.join(" ")
}

/// Returns a chart and tables that compare all configurations.
fn figures(search: &Search) -> Vec<Figure> {
    let goal = search.ask().goal;
    let figure = |kind, title: &str, experiments: Vec<String>, series: &[&str]| Figure {
        caption: Some(format!("{}, in ns; {}.", goal.name(), search.ask().subject())),
        experiments,
        x: Some("poll".to_owned()),
        y: Some(goal.path().to_owned()),
        unit: Some(Unit::Ns),
        series: series.iter().map(|name| (*name).to_owned()).collect(),
        ..Figure::new(kind, title)
    };
    let stages = search.stages();
    let ways = ["service", "operation", "inline", "signal_interval", "buffers"];
    let coarse = vec![stages[0].clone()];
    let mut figures = vec![figure(FigureKind::Bars, "Services, operations and polling", coarse, &ways[..2])];
    for stage in &stages {
        figures.push(figure(
            FigureKind::Table,
            &format!("Configurations: {stage}"),
            vec![stage.clone()],
            &ways,
        ));
    }
    figures
}

/// Passes the points on to the outputs and the search, and prints what is measured next.
struct Advisor {
    output: Output,
    search: Search,
    /// Text about the first points, printed when they start.
    about: String,
}

impl Sink for Advisor {
    fn started(&mut self, agents: &[Hello]) -> Result<(), SinkError> {
        self.output.started(agents)?;
        Ok(self.output.print(&std::mem::take(&mut self.about))?)
    }

    fn point_started(&mut self, spec: &PointSpec) {
        self.output.point_started(spec);
    }

    fn tick(&mut self) -> Option<Duration> {
        self.output.tick()
    }

    fn calibrated(&mut self, spec: &PointSpec, one_way_ns: f64) -> Option<f64> {
        self.output.calibrated(spec, one_way_ns)
    }

    fn point(&mut self, point: Point, samples: &[KeptSamples]) -> Result<(), SinkError> {
        self.search.take(point.clone());
        self.output.point(point, samples)
    }

    fn more(&mut self) -> Result<Vec<PointSpec>, SinkError> {
        let Some((about, resolved)) = self.search.next()? else { return Ok(Vec::new()) };
        self.output.print(&about)?;
        let experiments = resolved.plan["experiments"].as_array().cloned().unwrap_or_default();
        self.output.plan_more(resolved.points.len() as u64, &experiments);
        Ok(resolved.points)
    }

    fn joined(&mut self, agents: &[Hello]) -> Result<(), SinkError> {
        self.output.joined(agents)
    }

    fn launched(&mut self, launch: &Launch) -> Result<(), SinkError> {
        self.output.launched(launch)
    }

    fn agent_line(&mut self, who: &str, line: &str) {
        self.output.agent_line(who, line);
    }

    fn notice(&mut self, text: &str) {
        self.output.notice(text);
    }

    fn warning(&mut self, text: &str) {
        self.output.warning(text);
    }
}
