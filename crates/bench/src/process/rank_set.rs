//! The steps of a point, which are the same on every rank, and what happens to the agents when a
//! step fails.
//!
//! # Invariants
//!
//! * A point has as many ranks as its pattern needs: the first of the running ones. Each rank
//!   receives the data that every other rank has for it alone. Where more ranks run than there are
//!   CPUs, a waiting rank yields its CPU at once, and the point is marked oversubscribed.

use std::time::Duration;

use measure::clock::Deadline;
use measure::conditions::{Condition, Outcome as Applied, Technique, Wanted};
use measure::record::{Calibration, Environment, Status};

use super::agent_set::{AgentSet, Coupling, FAILURE_GRACE};
use super::limits;
use super::message::{Calibrated, CalibrationStep, Description, Hello, Neighbour, Outcome, Reply, Request};
use super::point_result::PointResult;
use super::sink::Sink;
use crate::Error;
use crate::point::PointSpec;

/// Agents that have answered [`Request::Hello`].
pub(super) struct RankSet<'i> {
    agents: AgentSet<'i>,
    hellos: Vec<Hello>,
    calibration: Calibrating,
    /// The conditions that were arranged last, and their outcomes; absent where they no longer
    /// hold.
    arranged: Option<(Wanted, Vec<Condition>)>,
    /// Why the agents cannot measure another point, if so.
    unfit: Option<String>,
}

/// The state of the core-to-core calibration of these agents.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Calibrating {
    NotYet,
    Ready,
    Impossible,
}

/// Why the steps of a point stopped.
enum Stop {
    /// A rank cannot go on, and all ranks have answered.
    Refused(Status),
    /// A rank cannot go on, and another rank still waits for it.
    Stuck(Status),
    /// An agent is no longer usable.
    Broken(Box<Error>),
}

impl From<Error> for Stop {
    fn from(err: Error) -> Self {
        Self::Broken(Box::new(err))
    }
}

impl<'i> RankSet<'i> {
    pub(super) fn new(agents: AgentSet<'i>, hellos: Vec<Hello>) -> Self {
        let arranged = Some((Wanted::default(), Vec::new()));
        Self { agents, hellos, calibration: Calibrating::NotYet, arranged, unfit: None }
    }

    pub(super) fn hellos(&self) -> &[Hello] {
        &self.hellos
    }

    /// Whether the agents can measure another point.
    pub(super) fn is_fit(&self) -> bool {
        self.unfit.is_none()
    }

    /// Returns the error that ends the run, if no new agents can be started either: a server is
    /// started by hand.
    pub(super) fn lost(&self) -> Option<Error> {
        let (why, who) = self.unfit.clone().zip(self.agents.irreplaceable())?;
        Some(Error::CannotGoOn { why, who })
    }

    pub(super) fn quit(self, sink: &mut dyn Sink) {
        self.agents.quit(sink);
    }

    /// Measures a point. After an error the agents cannot measure another one.
    pub(super) fn measure(&mut self, spec: &PointSpec, sink: &mut dyn Sink) -> Result<PointResult, Error> {
        let descriptions: Vec<&Description> = self.hellos.iter().map(|hello| &hello.description).collect();
        if let Some(reason) = limits::refusal(spec, &descriptions) {
            return Ok(PointResult::without_numbers(Status::NotMeasured { reason }));
        }
        let result = self.measure_fit(spec, sink);
        if let Err(err) = &result {
            self.unfit = Some(err.to_string());
        }
        result
    }

    fn measure_fit(&mut self, spec: &PointSpec, sink: &mut dyn Sink) -> Result<PointResult, Error> {
        // Arranged first, so that both calibrations of a point run under its conditions.
        let conditions = self.arrange(spec, sink)?;
        if let Some(reason) = unmet(&conditions) {
            let result = PointResult::without_numbers(Status::NotMeasured { reason });
            return Ok(PointResult { conditions, ..result });
        }
        let before_ns = if spec.is_measurement() { self.calibrate(sink)? } else { None };
        if let Some(before_ns) = before_ns {
            sink.calibrated(spec, before_ns);
        }
        let mut result = match self.walk(spec, sink) {
            Ok(outcomes) => PointResult {
                outcomes,
                conditions,
                is_cut: self.agents.take_cut().is_some(),
                ..PointResult::without_numbers(Status::Measured)
            },
            Err(Stop::Refused(status)) => PointResult { conditions, ..PointResult::without_numbers(status) },
            Err(Stop::Stuck(status)) => {
                self.unfit = Some(reason(&status));
                return Ok(PointResult { conditions, ..PointResult::without_numbers(status) });
            }
            Err(Stop::Broken(err)) => return Err(*err),
        };
        if result.is_cut {
            return Ok(result);
        }
        // The point has its result: an error from here on costs only the agents.
        let cleared = self.reset(spec, sink).and_then(|()| self.verify(spec, &mut result.conditions, sink));
        // One latency alone tells nothing. If the first one failed, the second may take long, too.
        let mut after = || if before_ns.is_some() { self.calibrate(sink) } else { Ok(None) };
        match cleared.and_then(|()| after()) {
            Ok(after_ns) => {
                let best_ns = after_ns.and_then(|after_ns| sink.calibrated(spec, after_ns));
                let pair = before_ns.zip(after_ns).filter(|_| result.status == Status::Measured);
                result.calibration =
                    pair.map(|(before_ns, after_ns)| Calibration { before_ns, after_ns, best_ns });
            }
            // The point is whole; the coordinator notices the signal, too.
            Err(err @ Error::Interrupted { .. }) => self.unfit = Some(err.to_string()),
            Err(err) => {
                // If a server is lost, the error that ends the run reports it.
                if self.agents.irreplaceable().is_none() {
                    sink.warning(&err.to_string());
                }
                self.unfit = Some(err.to_string());
            }
        }
        Ok(result)
    }

    /// Arranges the conditions of a point, unless they are those of the previous point. Returns
    /// their outcomes.
    fn arrange(&mut self, spec: &PointSpec, sink: &mut dyn Sink) -> Result<Vec<Condition>, Error> {
        if let Some((_, conditions)) = self.arranged.as_ref().filter(|(wanted, _)| *wanted == spec.conditions)
        {
            return Ok(conditions.clone());
        }
        let environments: Vec<_> = self.hellos.iter().map(|hello| &hello.description.environment).collect();
        let request = |here: &&Environment| {
            let neighbours = environments.iter().filter(|other| other.hostname == here.hostname);
            let ranks = neighbours.filter_map(|other| other.pinned_cpus.clone()).flatten().collect();
            Request::Arrange { conditions: Box::new(spec.conditions.clone()), ranks }
        };
        let requests: Vec<_> = environments.iter().map(request).collect();
        let doing = format!("arranging the environment of point {}", spec.id);
        let all = self.conditions(requests, &doing, ARRANGE_TIMEOUT, sink)?;
        self.arranged = Some((spec.conditions.clone(), all.clone()));
        Ok(all)
    }

    /// Checks whether the conditions of a point held until its end, and corrects its record where
    /// they did not.
    fn verify(
        &mut self,
        spec: &PointSpec,
        known: &mut [Condition],
        sink: &mut dyn Sink,
    ) -> Result<(), Error> {
        if spec.conditions.host_wide().is_as_is() {
            return Ok(());
        }
        let doing = format!("checking the environment of point {} again", spec.id);
        let requests = vec![Request::Verify; self.hellos.len()];
        for changed in self.conditions(requests, &doing, VERIFY_TIMEOUT, sink)? {
            let is_it =
                |known: &&mut Condition| (known.rank, known.technique) == (changed.rank, changed.technique);
            if let Some(known) = known.iter_mut().find(is_it) {
                *known = changed;
                // The next point arranges it again.
                self.arranged = None;
            }
        }
        Ok(())
    }

    /// Sends the requests and returns the conditions that all ranks answer.
    fn conditions(
        &mut self,
        requests: Vec<Request>,
        doing: &str,
        timeout: Duration,
        sink: &mut dyn Sink,
    ) -> Result<Vec<Condition>, Error> {
        let replies = self.agents.ask(requests, doing, Deadline::after(timeout), Coupling::Apart, sink)?;
        let mut all = Vec::new();
        for (rank, reply) in (0u32..).zip(replies.into_iter().flatten()) {
            match reply {
                Reply::Arranged { conditions } => all.extend(conditions),
                other => return Err(self.agents.out_of_turn(rank, &other, doing)),
            }
        }
        Ok(all)
    }

    /// Prepares, connects and runs a point on its ranks, which are the first ones.
    fn walk(&mut self, spec: &PointSpec, sink: &mut dyn Sink) -> Result<Vec<Outcome>, Stop> {
        let deadline = Deadline::after(Duration::try_from_secs_f64(spec.timeout_s).unwrap_or(Duration::MAX));
        let ranks = spec.ranks() as usize;
        let prepare = vec![Request::Prepare(Box::new(spec.clone())); ranks];
        let doing = format!("preparing point {}", spec.id);
        let prepared = self.step(prepare, &doing, deadline, Coupling::Apart, sink, |reply| match reply {
            Reply::Prepared(prepared) => Ok(prepared),
            other => Err(other),
        })?;
        let told = Neighbour::told(&prepared).into_iter();
        let connect = told.map(|ranks| Request::Connect { ranks }).collect();
        let doing = format!("connecting point {}", spec.id);
        self.step(connect, &doing, deadline, Coupling::Together, sink, |reply| match reply {
            Reply::Connected => Ok(()),
            other => Err(other),
        })?;
        let doing = format!("measuring point {}", spec.id);
        let can_be_cut = spec.tool.is_none() && (spec.pattern.entry().row().can_be_cut)(spec);
        self.agents.can_be_cut(can_be_cut);
        // A rank that waits in vain notices the same limit, and its error says what it waited for.
        let grace = if self.agents.irreplaceable().is_some() { SERVER_GRACE } else { RUN_GRACE };
        let deadline = deadline.and(grace);
        let requests = vec![Request::Run; ranks];
        let ended = self.step(requests, &doing, deadline, Coupling::Together, sink, |reply| match reply {
            Reply::Done(outcome) => Ok(*outcome),
            other => Err(other),
        });
        if ended.as_ref().is_ok_and(|outcomes| outcomes.len() == ranks) {
            return ended;
        }
        // If the point could not be ended early, the signal is the reason.
        self.agents.take_cut().map_or(ended, |signal| Err(signal.into()))
    }

    /// Does one step on every rank. Returns the values that `read` extracts from the replies, or
    /// why the point ends here.
    fn step<T>(
        &mut self,
        requests: Vec<Request>,
        doing: &str,
        deadline: Deadline,
        coupling: Coupling,
        sink: &mut dyn Sink,
        read: impl Fn(Reply) -> Result<T, Reply>,
    ) -> Result<Vec<T>, Stop> {
        let runs = matches!(requests.first(), Some(Request::Run));
        let replies = self.agents.ask(requests, doing, deadline, coupling, sink)?;
        let stuck = replies.iter().any(Option::is_none);
        let mut read_replies = Vec::new();
        let mut refused = None;
        for (rank, reply) in (0u32..).zip(replies) {
            match reply.map(&read) {
                Some(Ok(value)) => read_replies.push(value),
                Some(Err(Reply::Failed { error })) => {
                    let status = Status::Failed { error: format!("rank {rank}: {error}") };
                    refused = Some(cause(refused, status, runs));
                }
                Some(Err(Reply::NotMeasured { reason })) => {
                    refused = Some(cause(refused, Status::NotMeasured { reason }, runs));
                }
                Some(Err(other)) => return Err(self.agents.out_of_turn(rank, &other, doing).into()),
                None => {}
            }
        }
        match refused {
            None => Ok(read_replies),
            Some(status) if stuck => Err(Stop::Stuck(status)),
            Some(status) => Err(Stop::Refused(status)),
        }
    }

    fn reset(&mut self, spec: &PointSpec, sink: &mut dyn Sink) -> Result<(), Error> {
        let doing = format!("cleaning up after point {}", spec.id);
        let requests = vec![Request::Reset; self.hellos.len()];
        let replies =
            self.agents.ask(requests, &doing, Deadline::after(RESET_TIMEOUT), Coupling::Apart, sink)?;
        match (0u32..).zip(replies.into_iter().flatten()).find(|(_, reply)| *reply != Reply::Idle) {
            Some((rank, other)) => Err(self.agents.out_of_turn(rank, &other, &doing)),
            None => Ok(()),
        }
    }

    /// Measures the core-to-core latency of the first two ranks, in ns. Returns none where it
    /// cannot be measured.
    fn calibrate(&mut self, sink: &mut dyn Sink) -> Result<Option<f64>, Error> {
        if self.calibration == Calibrating::NotYet {
            let ready = self.share_memory(sink)?;
            self.calibration = if ready { Calibrating::Ready } else { Calibrating::Impossible };
        }
        if self.calibration == Calibrating::Impossible {
            return Ok(None);
        }
        let requests = vec![Request::Calibrate(CalibrationStep::Run); CALIBRATED];
        let deadline = Deadline::after(CALIBRATION_TIMEOUT);
        let replies = self.agents.ask(requests, CALIBRATING, deadline, Coupling::Together, sink)?;
        if let Some(stuck) = replies.iter().position(Option::is_none) {
            return Err(self.agents.silent(stuck, CALIBRATING, Deadline::after(FAILURE_GRACE)));
        }
        match replies.into_iter().next().flatten() {
            Some(Reply::Calibrated(Calibrated::Measured { one_way_ns })) => Ok(Some(one_way_ns)),
            Some(Reply::NotMeasured { reason } | Reply::Failed { error: reason }) => {
                // It worked before, and will work again with newly shared memory once the machine
                // is less busy.
                self.calibration = Calibrating::NotYet;
                sink.warning(&format!("the core-to-core latency was not measured this time: {reason}"));
                Ok(None)
            }
            Some(other) => Err(self.agents.out_of_turn(0, &other, CALIBRATING)),
            None => Ok(None),
        }
    }

    /// Lets the first two ranks share memory. Returns false where they are on two hosts, or where
    /// they are not each pinned to one CPU of their own: the latency is that between two CPUs.
    fn share_memory(&mut self, sink: &mut dyn Sink) -> Result<bool, Error> {
        let environments = self.hellos.iter().take(CALIBRATED).map(|hello| &hello.description.environment);
        let places =
            environments.map(|environment| (&environment.hostname, environment.pinned_cpus.as_deref()));
        match places.collect::<Vec<_>>()[..] {
            [(host, Some(&[one])), (other_host, Some(&[other]))] if host == other_host && one != other => {}
            _ => return Ok(false),
        }
        let mut step = CalibrationStep::Offer;
        for rank in 0..CALIBRATED {
            let deadline = Deadline::after(CALIBRATION_TIMEOUT);
            let request = Request::Calibrate(step);
            step = match self.agents.ask_one(rank, request, CALIBRATING, deadline, sink)? {
                Reply::Calibrated(Calibrated::Offered { handle }) => CalibrationStep::Open { handle },
                Reply::Calibrated(Calibrated::Opened) => return Ok(true),
                Reply::NotMeasured { reason } | Reply::Failed { error: reason } => {
                    // A server may run as another user or in another container of this host, and
                    // then cannot share memory.
                    if self.agents.irreplaceable().is_none() {
                        sink.warning(&format!("the core-to-core latency is not measured: {reason}"));
                    }
                    return Ok(false);
                }
                other => return Err(self.agents.out_of_turn(rank as u32, &other, CALIBRATING)),
            };
        }
        Ok(false)
    }
}

/// Returns why a point has no numbers, where several ranks have given a reason. During set-up, a
/// rank that cannot measure makes other ranks fail, so its reason wins. In a run a failure may have
/// another cause, such as a wrong result, so it is kept.
pub(super) fn cause(known: Option<Status>, new: Status, runs: bool) -> Status {
    match (known, new) {
        (Some(Status::Failed { .. }), new @ Status::NotMeasured { .. }) if !runs => new,
        (Some(known), _) => known,
        (None, new) => new,
    }
}

/// Returns why a point would not measure what its axes say, if so. Other techniques only make a
/// point steadier. The mode of IPoIB makes it a different one.
fn unmet(conditions: &[Condition]) -> Option<String> {
    let is_unmet = |condition: &&Condition| {
        condition.technique == Technique::IpoibMode && condition.outcome != Applied::Applied
    };
    let unmet = conditions.iter().find(is_unmet)?;
    Some(format!("{}, at rank {}", unmet.reason.as_deref().unwrap_or("no mode of IPoIB"), unmet.rank))
}

/// Returns the reason of a point without numbers.
fn reason(status: &Status) -> String {
    match status {
        Status::Failed { error } => error.clone(),
        Status::NotMeasured { reason } => reason.clone(),
        Status::Measured => String::new(),
    }
}

/// The time after a point's time limit that a server has, because it cannot be started again: its
/// own clock for the point starts later.
const SERVER_GRACE: Duration = Duration::from_secs(10);
/// The time for a rank to report that the point's time is over, and for the others to follow.
const RUN_GRACE: Duration = FAILURE_GRACE.saturating_mul(2);
/// The number of ranks between which the core-to-core latency is measured.
const CALIBRATED: usize = 2;
const CALIBRATING: &str = "measuring the core-to-core latency";
/// The time to arrange conditions. The agent gives up earlier.
pub(super) const ARRANGE_TIMEOUT: Duration =
    conditions::ARRANGE_TIMEOUT.saturating_add(Duration::from_secs(15));
/// The time to check conditions, which only reads.
const VERIFY_TIMEOUT: Duration = Duration::from_secs(15);
/// The time for a calibration. It takes milliseconds, or a few hundred where the two ranks share a
/// CPU.
const CALIBRATION_TIMEOUT: Duration = Duration::from_secs(10);
/// The time to free the resources of a point, including gigabytes of registered memory.
const RESET_TIMEOUT: Duration = Duration::from_secs(10);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rank_that_cannot_measure_is_believed_before_a_run_and_a_failure_in_it() {
        let failed = || Status::Failed { error: "rank 0: it has wrong bytes".to_owned() };
        let unable = || Status::NotMeasured { reason: "no clock".to_owned() };
        assert_eq!(cause(Some(failed()), unable(), false), unable());
        assert_eq!(cause(Some(failed()), unable(), true), failed());
        for runs in [false, true] {
            assert_eq!(cause(Some(unable()), failed(), runs), unable());
            assert_eq!(cause(None, failed(), runs), failed());
        }
    }
}
