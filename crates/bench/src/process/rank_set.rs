//! The way of a point: the same steps on every rank, and what becomes of the agents when one goes
//! wrong.
//!
//! # Invariants
//!
//! * A point has as many ranks as its pattern needs, the first of those that run; each is told what
//!   every other has for it alone. Where more ranks run than there are CPUs, whoever waits lets
//!   another go on at once, and the point says that it was so.

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

/// Agents that have said who they are.
pub(super) struct RankSet<'i> {
    agents: AgentSet<'i>,
    hellos: Vec<Hello>,
    calibration: Calibrating,
    /// What was arranged last, and what became of it; absent where it does not hold any more.
    arranged: Option<(Wanted, Vec<Condition>)>,
    /// Why not every agent waits for a request, if so.
    unfit: Option<String>,
}

/// How far the cross-core calibration of these agents is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Calibrating {
    NotYet,
    Ready,
    Impossible,
}

/// Why the steps of a point stopped.
enum Stop {
    /// A rank said that it cannot go on, and the others are free.
    Refused(Status),
    /// A rank said that it cannot go on, and another one waits for it.
    Stuck(Status),
    /// An agent is of no more use.
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

    /// Why no other agents can measure another point either, if so: a server is started by hand.
    pub(super) fn lost(&self) -> Option<Error> {
        let (why, who) = self.unfit.clone().zip(self.agents.irreplaceable())?;
        Some(Error::CannotGoOn { why, who })
    }

    pub(super) fn quit(self, sink: &mut dyn Sink) {
        self.agents.quit(sink);
    }

    /// Measures a point. After an error the agents are not fit for another.
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
        // Before the calibration, so that both of a point are made under its conditions.
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
            Ok(outcomes) => PointResult { status: Status::Measured, outcomes, calibration: None, conditions },
            Err(Stop::Refused(status)) => PointResult { conditions, ..PointResult::without_numbers(status) },
            Err(Stop::Stuck(status)) => {
                self.unfit = Some(reason(&status));
                return Ok(PointResult { conditions, ..PointResult::without_numbers(status) });
            }
            Err(Stop::Broken(err)) => return Err(*err),
        };
        // The point has its result: what goes wrong from here on costs only the agents.
        let cleared = self.reset(spec, sink).and_then(|()| self.verify(spec, &mut result.conditions, sink));
        // One of two times says nothing: what kept the ranks from the first may take long again.
        let mut after = || if before_ns.is_some() { self.calibrate(sink) } else { Ok(None) };
        match cleared.and_then(|()| after()) {
            Ok(after_ns) => {
                let best_ns = after_ns.and_then(|after_ns| sink.calibrated(spec, after_ns));
                let pair = before_ns.zip(after_ns).filter(|_| result.status == Status::Measured);
                result.calibration =
                    pair.map(|(before_ns, after_ns)| Calibration { before_ns, after_ns, best_ns });
            }
            Err(err @ Error::Interrupted { .. }) => return Err(err),
            Err(err) => {
                // Of a server that is lost, the error that ends the run speaks.
                if self.agents.irreplaceable().is_none() {
                    sink.warning(&err.to_string());
                }
                self.unfit = Some(err.to_string());
            }
        }
        Ok(result)
    }

    /// Arranges the conditions of a point, unless they are those of the point before; gives what
    /// became of them.
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

    /// Looks whether the conditions of a point held until its end, and puts it right in its record
    /// where they did not.
    fn verify(
        &mut self,
        spec: &PointSpec,
        known: &mut [Condition],
        sink: &mut dyn Sink,
    ) -> Result<(), Error> {
        if spec.conditions.host_wide().is_as_is() {
            return Ok(());
        }
        let doing = format!("looking again at the environment of point {}", spec.id);
        let requests = vec![Request::Verify; self.hellos.len()];
        for changed in self.conditions(requests, &doing, VERIFY_TIMEOUT, sink)? {
            let is_it =
                |known: &&mut Condition| (known.rank, known.technique) == (changed.rank, changed.technique);
            if let Some(known) = known.iter_mut().find(is_it) {
                *known = changed;
                // The next point has it arranged anew.
                self.arranged = None;
            }
        }
        Ok(())
    }

    /// The conditions that all ranks answer.
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

    /// Prepare, connect, run: on as many ranks as the point has, the first ones.
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
        // A rank that waits in vain notices the same limit, and can say what it waited for.
        let grace = if self.agents.irreplaceable().is_some() { SERVER_GRACE } else { RUN_GRACE };
        let deadline = deadline.and(grace);
        self.step(
            vec![Request::Run; ranks],
            &doing,
            deadline,
            Coupling::Together,
            sink,
            |reply| match reply {
                Reply::Done(outcome) => Ok(*outcome),
                other => Err(other),
            },
        )
    }

    /// One step on every rank: what `read` takes out of their replies, or why the point ends here.
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
        let doing = format!("clearing up after point {}", spec.id);
        let requests = vec![Request::Reset; self.hellos.len()];
        let replies =
            self.agents.ask(requests, &doing, Deadline::after(RESET_TIMEOUT), Coupling::Apart, sink)?;
        match (0u32..).zip(replies.into_iter().flatten()).find(|(_, reply)| *reply != Reply::Idle) {
            Some((rank, other)) => Err(self.agents.out_of_turn(rank, &other, &doing)),
            None => Ok(()),
        }
    }

    /// The one-way time of a cache line between the CPUs of the first two ranks, in ns; none where
    /// it cannot be measured.
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
                // What worked before works again once the machine is less busy: with memory shared
                // afresh.
                self.calibration = Calibrating::NotYet;
                sink.warning(&format!("the cross-core latency was not measured once: {reason}"));
                Ok(None)
            }
            Some(other) => Err(self.agents.out_of_turn(0, &other, CALIBRATING)),
            None => Ok(None),
        }
    }

    /// Lets the first two ranks share memory, which they can on one host only. The time is one
    /// between two CPUs: it is asked for where each has one of its own.
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
                    // A server may well be of another user or in another container, although its
                    // host has this name.
                    if self.agents.irreplaceable().is_none() {
                        sink.warning(&format!("the cross-core latency is not measured: {reason}"));
                    }
                    return Ok(false);
                }
                other => return Err(self.agents.out_of_turn(rank as u32, &other, CALIBRATING)),
            };
        }
        Ok(false)
    }
}

/// Why a point has no numbers, where one rank has said why and then another one does. While ranks
/// are set up, others fail for want of what one that cannot measure would have given. In a run a
/// failure may be one of its own, such as a wrong result, and stays one.
fn cause(known: Option<Status>, new: Status, runs: bool) -> Status {
    match (known, new) {
        (Some(Status::Failed { .. }), new @ Status::NotMeasured { .. }) if !runs => new,
        (Some(known), _) => known,
        (None, new) => new,
    }
}

/// Why a point would not be what its axes say, if so: other techniques make it steadier, this one
/// makes it another.
fn unmet(conditions: &[Condition]) -> Option<String> {
    let is_unmet = |condition: &&Condition| {
        condition.technique == Technique::IpoibMode && condition.outcome != Applied::Applied
    };
    let unmet = conditions.iter().find(is_unmet)?;
    Some(format!("{}, at rank {}", unmet.reason.as_deref().unwrap_or("no mode of IPoIB"), unmet.rank))
}

/// The status of a point that has no numbers, in words.
fn reason(status: &Status) -> String {
    match status {
        Status::Failed { error } => error.clone(),
        Status::NotMeasured { reason } => reason.clone(),
        Status::Measured => String::new(),
    }
}

/// How much longer than the point's time limit a server may take that nobody here can start again:
/// its own clock for the point starts later.
const SERVER_GRACE: Duration = Duration::from_secs(10);
/// Time for a rank to tell that the point's time is over, and for the others to follow.
const RUN_GRACE: Duration = FAILURE_GRACE.saturating_mul(2);
/// Ranks between which the cross-core latency is measured.
const CALIBRATED: usize = 2;
const CALIBRATING: &str = "measuring the cross-core latency";
/// The agent gives up before.
pub(super) const ARRANGE_TIMEOUT: Duration =
    conditions::ARRANGE_TIMEOUT.saturating_add(Duration::from_secs(15));
/// The same, for what only reads.
const VERIFY_TIMEOUT: Duration = Duration::from_secs(15);
/// A calibration takes milliseconds; where the two ranks share a CPU it takes a few hundred.
const CALIBRATION_TIMEOUT: Duration = Duration::from_secs(10);
/// Time to free what a point held, gigabytes of registered memory included.
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
