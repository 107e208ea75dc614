//! The agents of all ranks. Each request goes to all of them, with one deadline for all replies.

use std::time::Duration;

use measure::clock::Deadline;

use super::channel::{Agent, LAST_WORDS_TIMEOUT};
use super::interrupt::Interrupt;
use super::message::{Hello, Reply, Request};
use super::sink::Sink;
use super::wait::wait;
use crate::Error;

/// Running agents. Dropping the set kills them.
#[derive(Debug)]
pub(super) struct AgentSet<'i> {
    agents: Vec<Agent>,
    interrupt: Option<&'i Interrupt>,
    cut: Cut,
}

/// What a signal does to the running request.
#[derive(Debug)]
enum Cut {
    /// It ends the run at once.
    Impossible,
    /// It ends the point early, with the numbers until then.
    Possible,
    /// It did, and the agents have until then to answer.
    Done(Deadline, Error),
}

/// Whether the failure of a rank leaves other ranks waiting for it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Coupling {
    /// Each rank answers independently.
    Apart,
    /// The ranks wait for each other. When a rank has failed, the others have [`FAILURE_GRACE`] to
    /// answer, and are then killed. A server cannot be started again: it has the whole time limit,
    /// as long as it responds to probes.
    Together,
}

impl<'i> AgentSet<'i> {
    /// Sends [`Request::Hello`] to the agents, in rank order. Returns the set and their answers.
    pub(super) fn start(
        agents: Vec<Agent>,
        timeout: Duration,
        interrupt: Option<&'i Interrupt>,
        sink: &mut dyn Sink,
    ) -> Result<(Self, Vec<Hello>), Error> {
        let mut set = Self { agents, interrupt, cut: Cut::Impossible };
        let ranks = set.agents.len() as u32;
        let hello = |rank| Request::Hello { rank, ranks };
        let doing = "starting";
        let replies =
            set.ask((0..ranks).map(hello), doing, Deadline::after(timeout), Coupling::Apart, sink)?;
        let mut hellos = Vec::new();
        for (agent, reply) in set.agents.iter().zip(replies.into_iter().flatten()) {
            match reply {
                Reply::Hello(hello) => hellos.push(hello.of_rank(agent.rank)),
                Reply::NotMeasured { reason } | Reply::Failed { error: reason } => {
                    return Err(Error::NotDescribed { who: agent.name(), reason });
                }
                other => return Err(set.out_of_turn(agent.rank, &other, doing)),
            }
        }
        Ok((set, hellos))
    }

    /// Sends each rank its request and waits for all replies. A reply is missing only where the
    /// ranks are coupled and the failure of another rank prevented it. The set is then unusable.
    pub(super) fn ask(
        &mut self,
        requests: impl IntoIterator<Item = Request>,
        doing: &str,
        deadline: Deadline,
        coupling: Coupling,
        sink: &mut dyn Sink,
    ) -> Result<Vec<Option<Reply>>, Error> {
        let mut replies = Vec::new();
        for (agent, request) in self.agents.iter_mut().zip(requests) {
            agent.send(&request)?;
            replies.push(None);
        }
        let mut until = deadline;
        let mut failed = false;
        let mut is_told = false;
        loop {
            if let Cut::Done(grace, _) = self.cut {
                until = until.earlier(grace);
            }
            let mut broken = None;
            for (index, reply) in replies.iter_mut().enumerate().filter(|(_, reply)| reply.is_none()) {
                match self.agents[index].reply(doing) {
                    Ok(found) => *reply = found,
                    Err(err) => broken = broken.or(Some((index, err))),
                }
                if matches!(reply, Some(Reply::Failed { .. } | Reply::NotMeasured { .. }))
                    && coupling == Coupling::Together
                {
                    failed = true;
                    until = until.earlier(Deadline::after(FAILURE_GRACE));
                }
            }
            match broken {
                // A launcher ends all ranks when one has failed. The error of that rank says more.
                Some((index, _)) if failed && self.agents[index].ends_with_others() => return Ok(replies),
                Some((index, err)) => return Err(self.with_last_words(err, index, doing, sink)),
                None => {}
            }
            let missing = replies.iter().position(Option::is_none);
            match missing {
                Some(index) if deadline.is_over() && !failed => {
                    return Err(self.silent(index, doing, deadline));
                }
                Some(_) if !until.is_over() => self.transfer(until, sink)?,
                Some(index) if !deadline.is_over() && self.irreplaceable().is_some() && !self.is_cut() => {
                    let agent = &mut self.agents[index];
                    let who = agent.name();
                    let seconds = deadline.remaining().as_secs();
                    if agent.is_mute() {
                        sink.notice(&format!(
                            "{who} does not respond: its process is stopped, or its host cannot be reached"
                        ));
                        return Ok(replies);
                    }
                    if !is_told {
                        sink.notice(&format!(
                            "the other rank failed: waiting up to {seconds} s for {who} while {doing}"
                        ));
                    }
                    is_told = true;
                    // The point has failed, so the probe disturbs no measurement.
                    agent.probe();
                    until = deadline.earlier(Deadline::after(SIGN_OF_LIFE));
                }
                _ => return Ok(replies),
            }
        }
    }

    /// Sends one rank a request and waits for its reply.
    pub(super) fn ask_one(
        &mut self,
        rank: usize,
        request: Request,
        doing: &str,
        deadline: Deadline,
        sink: &mut dyn Sink,
    ) -> Result<Reply, Error> {
        self.agents[rank].send(&request)?;
        loop {
            match self.agents[rank].reply(doing) {
                Ok(Some(reply)) => return Ok(reply),
                Ok(None) if deadline.is_over() => return Err(self.silent(rank, doing, deadline)),
                Ok(None) => self.transfer(deadline, sink)?,
                Err(err) => return Err(self.with_last_words(err, rank, doing, sink)),
            }
        }
    }

    /// Sets whether a signal ends the next request early instead of the run.
    pub(super) fn can_be_cut(&mut self, can_be_cut: bool) {
        self.cut = if can_be_cut { Cut::Possible } else { Cut::Impossible };
    }

    /// Whether a signal has ended the request early.
    pub(super) fn is_cut(&self) -> bool {
        matches!(self.cut, Cut::Done(..))
    }

    /// Forgets how the last request ended. Returns the error of the signal that has ended it early,
    /// if one has.
    pub(super) fn take_cut(&mut self) -> Option<Error> {
        match std::mem::replace(&mut self.cut, Cut::Impossible) {
            Cut::Done(_, signal) => Some(signal),
            _ => None,
        }
    }

    /// Returns the program versions of the agents, in rank order.
    pub(super) fn versions(&self) -> impl Iterator<Item = &str> {
        self.agents.iter().filter_map(Agent::version)
    }

    /// Returns the error for a reply that does not match its request.
    pub(super) fn out_of_turn(&self, rank: u32, reply: &Reply, doing: &str) -> Error {
        let who = self.agents.get(rank as usize).map_or_else(String::new, Agent::name);
        Error::OutOfTurn { who, reply: reply.name().to_owned(), doing: doing.to_owned() }
    }

    /// Asks the agents to end, and kills those that do not.
    pub(super) fn quit(mut self, sink: &mut dyn Sink) {
        for agent in &mut self.agents {
            // A failure does not matter: the agent is killed anyway.
            let _ = agent.send(&Request::Quit);
        }
        let deadline = Deadline::after(QUIT_TIMEOUT);
        let _ = self.transfer(Deadline::after(Duration::ZERO), sink);
        self.agents.iter_mut().for_each(|agent| agent.finish(deadline));
        // Their last lines.
        let _ = self.transfer(Deadline::after(Duration::ZERO), sink);
    }

    /// Returns the name of an agent that cannot be started again, if there is one.
    pub(super) fn irreplaceable(&self) -> Option<String> {
        self.agents.iter().find(|agent| !agent.is_replaceable()).map(Agent::name)
    }

    /// Waits until data can be read or written, a signal arrives or the deadline passes. Then reads
    /// and writes without blocking.
    fn transfer(&mut self, deadline: Deadline, sink: &mut dyn Sink) -> Result<(), Error> {
        let tick = sink.tick().map(Deadline::after);
        let fds = self.agents.iter().flat_map(Agent::interest).collect();
        let deadline = tick.map_or(deadline, |tick| deadline.earlier(tick));
        let interrupt = self.interrupt.filter(|_| !self.is_cut());
        match wait(fds, deadline, interrupt) {
            Err(signal @ Error::Interrupted { .. }) if matches!(self.cut, Cut::Possible) => {
                self.cut = Cut::Done(Deadline::after(CUT_GRACE), signal);
                for agent in &mut self.agents {
                    agent.send(&Request::Cut)?;
                }
            }
            other => drop(other?),
        }
        self.agents.iter_mut().for_each(|agent| agent.transfer(sink));
        Ok(())
    }

    /// Waits for the last lines of an agent that has ended, which often say why, and returns the
    /// error with them.
    fn with_last_words(&mut self, err: Error, index: usize, doing: &str, sink: &mut dyn Sink) -> Error {
        if !matches!(err, Error::AgentEnded { .. }) {
            return err;
        }
        let deadline = Deadline::after(LAST_WORDS_TIMEOUT);
        while self.agents[index].has_last_words() && !deadline.is_over() {
            if let Err(interrupted) = self.transfer(deadline, sink) {
                return interrupted;
            }
        }
        self.agents[index].reply(doing).err().unwrap_or(err)
    }

    /// Returns the error for an agent that did not answer in time.
    pub(super) fn silent(&self, index: usize, doing: &str, deadline: Deadline) -> Error {
        let (who, said) =
            self.agents.get(index).map_or_else(Default::default, |agent| (agent.name(), agent.said()));
        Error::AgentSilent { who, timeout_s: deadline.timeout_s(), doing: doing.to_owned(), said }
    }
}

impl Drop for AgentSet<'_> {
    fn drop(&mut self) {
        self.agents.iter_mut().for_each(Agent::kill);
    }
}

/// The time that the other ranks of a point have to notice that a rank has failed: the errors that
/// they report say more than killing them would.
pub(super) const FAILURE_GRACE: Duration = Duration::from_secs(1);
/// The time that a server has to answer a probe: its reading thread may have to wait for the CPU on
/// which the other thread measures.
const SIGN_OF_LIFE: Duration = Duration::from_secs(5);
/// The time that ranks have to end a point early and to send its numbers.
const CUT_GRACE: Duration = Duration::from_secs(3);
/// The time that agents have to end by themselves.
const QUIT_TIMEOUT: Duration = Duration::from_secs(2);
