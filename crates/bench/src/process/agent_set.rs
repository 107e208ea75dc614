//! The agents of all ranks, asked together and waited for together, with a deadline on every wait.

use std::time::Duration;

use measure::clock::Deadline;

use super::channel::{Agent, LAST_WORDS_TIMEOUT};
use super::interrupt::Interrupt;
use super::message::{Hello, Reply, Request};
use super::sink::Sink;
use super::wait::wait;
use crate::Error;

/// Agents that run. Dropping the set kills them.
#[derive(Debug)]
pub(super) struct AgentSet<'i> {
    agents: Vec<Agent>,
    interrupt: Option<&'i Interrupt>,
}

/// Whether a rank's failure leaves the others waiting for it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Coupling {
    /// Each rank answers by itself.
    Apart,
    /// The ranks wait for each other, so that a failure is waited out for no longer than
    /// [`FAILURE_GRACE`]: the others are then killed. A server that cannot be started again is
    /// given all the time that there is, as long as it gives signs of life.
    Together,
}

impl<'i> AgentSet<'i> {
    /// Asks agents, in rank order, who they are.
    pub(super) fn start(
        agents: Vec<Agent>,
        timeout: Duration,
        interrupt: Option<&'i Interrupt>,
        sink: &mut dyn Sink,
    ) -> Result<(Self, Vec<Hello>), Error> {
        let mut set = Self { agents, interrupt };
        let ranks = set.agents.len() as u32;
        let hello = |rank| Request::Hello { rank, ranks };
        let doing = "starting";
        let replies =
            set.ask((0..ranks).map(hello), doing, Deadline::after(timeout), Coupling::Apart, sink)?;
        let mut hellos = Vec::new();
        for (agent, reply) in set.agents.iter().zip(replies.into_iter().flatten()) {
            match reply {
                Reply::Hello(hello) => hellos.push(*hello),
                Reply::NotMeasured { reason } | Reply::Failed { error: reason } => {
                    return Err(Error::NotDescribed { who: agent.name(), reason });
                }
                other => return Err(set.out_of_turn(agent.rank, &other, doing)),
            }
        }
        Ok((set, hellos))
    }

    /// Sends each rank its request and waits for all replies. A reply is only missing where the
    /// ranks are coupled and another's failure kept it from coming: the set is of no more use then.
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
                // A launcher ends all ranks when one has failed: that one says more.
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
                Some(index) if !deadline.is_over() && self.irreplaceable().is_some() => {
                    let agent = &mut self.agents[index];
                    let who = agent.name();
                    let seconds = deadline.remaining().as_secs();
                    if agent.is_mute() {
                        sink.notice(&format!(
                            "{who} gives no sign of life: its process is stopped, or its host is not reached"
                        ));
                        return Ok(replies);
                    }
                    if !is_told {
                        sink.notice(&format!(
                            "the other rank failed: waiting {seconds} s for {who} while {doing}"
                        ));
                    }
                    is_told = true;
                    // The point has failed: no measurement is disturbed any more.
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

    /// The versions of the agents' program, in rank order.
    pub(super) fn versions(&self) -> impl Iterator<Item = &str> {
        self.agents.iter().filter_map(Agent::version)
    }

    /// The error for a reply that is no answer to what was asked.
    pub(super) fn out_of_turn(&self, rank: u32, reply: &Reply, doing: &str) -> Error {
        let who = self.agents.get(rank as usize).map_or_else(String::new, Agent::name);
        Error::OutOfTurn { who, reply: reply.name().to_owned(), doing: doing.to_owned() }
    }

    /// Lets the agents end by themselves, and kills those that do not.
    pub(super) fn quit(mut self, sink: &mut dyn Sink) {
        for agent in &mut self.agents {
            // What cannot be sent to an agent that is about to be killed does not matter.
            let _ = agent.send(&Request::Quit);
        }
        let deadline = Deadline::after(QUIT_TIMEOUT);
        let _ = self.transfer(Deadline::after(Duration::ZERO), sink);
        self.agents.iter_mut().for_each(|agent| agent.finish(deadline));
        // Their last words.
        let _ = self.transfer(Deadline::after(Duration::ZERO), sink);
    }

    /// An agent whose place no other can take, if there is one.
    pub(super) fn irreplaceable(&self) -> Option<String> {
        self.agents.iter().find(|agent| !agent.is_replaceable()).map(Agent::name)
    }

    /// Waits until something can be moved, a signal arrives or the deadline passes, and moves it.
    fn transfer(&mut self, deadline: Deadline, sink: &mut dyn Sink) -> Result<(), Error> {
        let fds = self.agents.iter().flat_map(Agent::interest).collect();
        wait(fds, deadline, self.interrupt)?;
        self.agents.iter_mut().for_each(|agent| agent.transfer(sink));
        Ok(())
    }

    /// An agent that ended has often just said why: waits for that, and words the error again.
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

    /// The error for an agent that did not answer in time.
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

/// How long the other ranks of a point may take to notice that one has failed: an error on their
/// side says more than their death.
pub(super) const FAILURE_GRACE: Duration = Duration::from_secs(1);
/// How long a server that was asked for a sign of life may take: its thread that reads may have to
/// wait for the CPU on which the other one measures.
const SIGN_OF_LIFE: Duration = Duration::from_secs(5);
/// How long agents may take to end by themselves.
const QUIT_TIMEOUT: Duration = Duration::from_secs(2);
