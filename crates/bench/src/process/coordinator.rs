//! The coordinator: starts an agent for each rank, takes the agents through the points and passes
//! each result on.
//!
//! An agent that dies, goes silent or sends invalid data fails only its point. The agents are then
//! killed, and new ones measure the next point. Two failed starts in a row end the run.

use measure::clock::Clock;
use measure::record::{Point, Status};

use super::interrupt::Interrupt;
pub use super::launch::{Launch, Launcher, MpiDevice, NOT_BY_COMMANDS, Points};
use super::launcher::await_program;
use super::limits;
use super::message::{Description, Hello};
use super::point_result::PointResult;
use super::rank_sets::{RankSets, Started};
use super::sink::Sink;
use crate::Error;
use crate::point::PointSpec;

/// How the points of a run ended.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Summary {
    /// Points with numbers.
    pub measured: u64,
    /// Points that cannot be measured here.
    pub not_measured: u64,
    /// Points that failed.
    pub failed: u64,
}

/// Measures the points in order, and then the points of [`Sink::more`]. The calling thread must
/// live as long as the process: the kernel kills an agent when the thread that started it ends.
///
/// # Errors
///
/// If agents cannot be started, a signal arrives, `sink` fails, or a server that was started by
/// hand is lost. Points that fail are results, not errors.
pub fn run(
    points: &[PointSpec],
    launch: &Launch,
    interrupt: Option<&Interrupt>,
    sink: &mut dyn Sink,
) -> Result<Summary, Error> {
    let clock = Clock::monotonic();
    let mut rank_sets = RankSets::new(launch, points, interrupt)?;
    let mut known: Vec<Hello> = Vec::new();
    let mut summary = Summary::default();
    let mut points = points.to_vec();
    let mut i = 0;
    while i < points.len() {
        let id = points[i].id;
        let mut ready = rank_sets.ready(&points[i], sink)?;
        let kept = |cause| Error::Sink { point: id, cause };
        if let Ok(started) = &ready {
            let all = started.rank_set.hellos();
            if known.is_empty() {
                known = all.to_vec();
                settle(&mut points, &known);
                if let Some(reason) = limits::refusal_of_all(&points, &descriptions(&known)) {
                    return Err(Error::NothingPossible { reason });
                }
                sink.started(&known).map_err(kept)?;
            } else if started.is_new {
                sink.joined(all).map_err(kept)?;
            }
            if let Some(launch) = started.launch.as_ref().filter(|_| started.is_new) {
                sink.launched(launch).map_err(kept)?;
            }
        }
        let spec = &points[i];
        sink.point_started(spec);
        let began = clock.now();
        let result = match &mut ready {
            Ok(started) => match measured(started, launch, spec, sink) {
                Ok(result) => result,
                Err(err @ Error::Interrupted { .. }) => return Err(err),
                Err(err) => PointResult::failed(err.to_string()),
            },
            // No point was measured, and none can be: the reason is the error of the run.
            Err(refused) if summary == Summary::default() && rank_sets.are_refused(&points) => {
                return Err(refused.take());
            }
            Err(refused) => PointResult::without_numbers(refused.status()),
        };
        // The agents are killed here if one of them is dead, silent or out of step.
        let lost = ready.as_ref().ok().and_then(|started| started.rank_set.lost());
        let launch = ready.as_ref().ok().and_then(|started| Some(started.launch.as_ref()?.number));
        rank_sets.keep(ready.ok());
        let (mut point, samples) = result.into_point(spec, clock.ns(clock.now().since(began)));
        point.launch = launch;
        summary.count(&point);
        let signal = interrupt.and_then(Interrupt::received);
        sink.point(point, &samples).map_err(kept)?;
        signal.map_or(Ok(()), |signal| Err(Error::Interrupted { signal: signal.to_owned() }))?;
        i += 1;
        if i == points.len() {
            points = sink.more().map_err(kept)?;
            settle(&mut points, &known);
            i = 0;
        }
        if let Some(lost) = lost.filter(|_| !points.is_empty()) {
            return Err(lost);
        }
    }
    rank_sets.quit(sink);
    Ok(summary)
}

/// Measures a point with the running ranks. For an application, first adds the words that start its
/// program.
fn measured(
    started: &mut Started<'_>,
    launch: &Launch,
    spec: &PointSpec,
    sink: &mut dyn Sink,
) -> Result<PointResult, Error> {
    match launch.with_program(spec) {
        Ok(spec) => {
            let result = started.rank_set.measure(&spec, sink);
            if result.is_err() {
                // Otherwise the program of a lost agent would still run during the next point.
                await_program(&spec);
            }
            result
        }
        Err(error) if error.is_limit() => {
            Ok(PointResult::without_numbers(Status::NotMeasured { reason: error.to_string() }))
        }
        Err(error) => Err(error),
    }
}

fn descriptions(agents: &[Hello]) -> Vec<&Description> {
    agents.iter().map(|hello| &hello.description).collect()
}

/// Fills in the settings that depend on the devices.
fn settle(points: &mut [PointSpec], agents: &[Hello]) {
    let descriptions = descriptions(agents);
    points.iter_mut().for_each(|spec| limits::settle(spec, &descriptions));
}

impl Summary {
    /// Adds a point, by how it ended.
    pub fn count(&mut self, point: &Point) {
        match point.status {
            Status::Measured => self.measured += 1,
            Status::NotMeasured { .. } => self.not_measured += 1,
            Status::Failed { .. } => self.failed += 1,
        }
    }
}
