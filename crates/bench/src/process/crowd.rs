//! Many agents, of which each is asked by itself: the failure of one costs only those that wait for
//! it.

use std::time::Duration;

use measure::clock::Deadline;

use super::agent_set::FAILURE_GRACE;
use super::channel::{Agent, LAST_WORDS_TIMEOUT};
use super::interrupt::Interrupt;
use super::message::{Reply, Request};
use super::sink::Sink;
use super::wait::ready;
use crate::Error;

/// A request to one agent.
pub(super) struct Asked {
    /// The agent, by its place in the crowd.
    pub(super) of: usize,
    /// Agents of one group wait for each other: when one has failed, the others have
    /// [`FAILURE_GRACE`] to answer. An agent without a group waits for no other one.
    pub(super) group: Option<usize>,
    pub(super) request: Request,
    /// What the agent does, for errors.
    pub(super) doing: String,
}

/// The agents, by their places; none where none runs.
pub(super) struct Crowd<'i> {
    agents: Vec<Option<Agent>>,
    interrupt: Option<&'i Interrupt>,
}

/// The answers to the requests so far.
struct Asking<'a> {
    asked: &'a [Asked],
    answers: Vec<Option<Result<Reply, Error>>>,
    /// Until when each may answer; none before its request is sent.
    until: Vec<Option<Deadline>>,
}

impl<'i> Crowd<'i> {
    pub(super) fn new(places: usize, interrupt: Option<&'i Interrupt>) -> Self {
        Self { agents: (0..places).map(|_| None).collect(), interrupt }
    }

    /// Starts an agent by a command. An agent in the same place is killed.
    pub(super) fn start(&mut self, place: usize, host: &str, words: &[String]) -> Result<(), Error> {
        let number = u32::try_from(place).unwrap_or(u32::MAX);
        self.agents[place] = Some(Agent::start_unranked(number, host, words)?);
        Ok(())
    }

    /// Kills an agent.
    pub(super) fn drop(&mut self, place: usize) {
        self.agents[place] = None;
    }

    /// Returns the version of an agent's program.
    pub(super) fn version(&self, place: usize) -> Option<&str> {
        self.agents[place].as_ref()?.version()
    }

    /// Asks agents, and waits for the answer of each: at most `timeout` from its request on. Each
    /// is in `asked` once. Agents that break the protocol, end or stay silent are killed.
    ///
    /// `begin` is called before each request; at most `at_once` agents are asked at a time.
    ///
    /// # Errors
    ///
    /// If a signal arrives. The failures of agents are in the answers.
    pub(super) fn ask(
        &mut self,
        asked: &[Asked],
        timeout: Duration,
        at_once: usize,
        mut begin: impl FnMut(&mut Self, usize) -> Result<(), Error>,
        sink: &mut dyn Sink,
    ) -> Result<Vec<Result<Reply, Error>>, Error> {
        let mut asking = Asking {
            asked,
            answers: asked.iter().map(|_| None).collect(),
            until: asked.iter().map(|_| None).collect(),
        };
        let mut sent = 0;
        loop {
            while sent < asked.len() && asking.waits_for().count() < at_once {
                let Asked { of, request, .. } = &asked[sent];
                let result = begin(self, *of).and_then(|()| match &mut self.agents[*of] {
                    Some(agent) => agent.send(request),
                    None => Err(Error::Impossible { reason: "its agent has ended".to_owned() }),
                });
                asking.until[sent] = Some(Deadline::after(timeout));
                asking.answers[sent] = result.err().map(Err);
                sent += 1;
            }
            asking.hasten();
            let Some(until) = asking.until() else { break };
            self.transfer(&asking, until, sink)?;
            self.take_answers(&mut asking);
        }
        let all: Vec<_> =
            asking.answers.into_iter().map(|answer| answer.expect("all have answered")).collect();
        for (one, _) in asked.iter().zip(&all).filter(|(_, answer)| answer.is_err()) {
            self.drop(one.of);
        }
        Ok(all)
    }

    /// Waits until the deadline has passed.
    ///
    /// # Errors
    ///
    /// If a signal arrives.
    pub(super) fn pause(&self, until: Deadline, sink: &mut dyn Sink) -> Result<(), Error> {
        while !until.is_over() {
            let tick = sink.tick().map(Deadline::after);
            ready(Vec::new(), tick.map_or(until, |tick| until.earlier(tick)), self.interrupt)?;
        }
        Ok(())
    }

    /// Asks agents to end, and waits until they have.
    pub(super) fn quit(&mut self, places: impl Iterator<Item = usize> + Clone, sink: &mut dyn Sink) {
        for place in places.clone() {
            if let Some(agent) = &mut self.agents[place] {
                // A failure does not matter: the agent is killed anyway.
                _ = agent.send(&Request::Quit);
                agent.transfer(sink);
            }
        }
        let deadline = Deadline::after(QUIT_TIMEOUT);
        for place in places {
            if let Some(mut agent) = self.agents[place].take() {
                agent.finish(deadline);
            }
        }
    }

    /// Takes the replies that have arrived, and the failures of agents.
    fn take_answers(&mut self, asking: &mut Asking) {
        for index in asking.waits_for().collect::<Vec<_>>() {
            let Asked { of, doing, .. } = &asking.asked[index];
            let Some(agent) = &mut self.agents[*of] else { continue };
            let deadline = asking.until[index];
            let is_over = deadline.is_none_or(|deadline| deadline.is_over());
            asking.answers[index] = match agent.reply(doing) {
                Ok(Some(reply)) => Some(Ok(reply)),
                Ok(None) if is_over => {
                    let timeout_s = deadline.map_or(0.0, Deadline::timeout_s);
                    let who = agent.name();
                    let said = agent.said();
                    Some(Err(Error::AgentSilent { who, timeout_s, doing: doing.clone(), said }))
                }
                Ok(None) => None,
                // The last lines of an agent that has ended often say why.
                Err(Error::AgentEnded { .. }) if agent.has_last_words() && !is_over => {
                    let soon = Deadline::after(LAST_WORDS_TIMEOUT);
                    asking.until[index] = deadline.map(|deadline| deadline.earlier(soon));
                    None
                }
                Err(error) => Some(Err(error)),
            };
        }
    }

    /// Waits until an agent can be read or written, a signal arrives or the deadline passes. Then
    /// reads and writes without blocking.
    fn transfer(&mut self, asking: &Asking, until: Deadline, sink: &mut dyn Sink) -> Result<(), Error> {
        let tick = sink.tick().map(Deadline::after);
        let until = tick.map_or(until, |tick| until.earlier(tick));
        let places: Vec<usize> = asking.waits_for().map(|index| asking.asked[index].of).collect();
        let mut fds = Vec::new();
        let mut owners = Vec::new();
        for place in places {
            let of_agent = self.agents[place].iter().flat_map(Agent::interest);
            let before = fds.len();
            fds.extend(of_agent);
            owners.resize(owners.len() + fds.len() - before, place);
        }
        let are_ready = ready(fds, until, self.interrupt)?;
        let mut last = None;
        for (place, _) in owners.into_iter().zip(are_ready).filter(|(_, is_ready)| *is_ready) {
            if last.replace(place) != Some(place)
                && let Some(agent) = &mut self.agents[place]
            {
                agent.transfer(sink);
            }
        }
        Ok(())
    }
}

impl Asking<'_> {
    /// The requests that were sent and have no answer yet.
    fn waits_for(&self) -> impl Iterator<Item = usize> {
        (0..self.asked.len()).filter(|index| self.answers[*index].is_none() && self.until[*index].is_some())
    }

    /// The next moment at which an answer is late; none where all have answered.
    fn until(&self) -> Option<Deadline> {
        self.waits_for().filter_map(|index| self.until[index]).reduce(Deadline::earlier)
    }

    /// Shortens the time of agents whose group has failed.
    fn hasten(&mut self) {
        let has_failed = |answer: &Option<Result<Reply, Error>>| {
            matches!(answer, Some(Err(_) | Ok(Reply::Failed { .. } | Reply::NotMeasured { .. })))
        };
        let failed = self.asked.iter().zip(&self.answers).filter(|(_, answer)| has_failed(answer));
        let failed: Vec<usize> = failed.filter_map(|(one, _)| one.group).collect();
        if failed.is_empty() {
            return;
        }
        let soon = Deadline::after(FAILURE_GRACE);
        for index in self.waits_for().collect::<Vec<_>>() {
            if self.asked[index].group.is_some_and(|group| failed.contains(&group)) {
                self.until[index] = self.until[index].map(|until| until.earlier(soon));
            }
        }
    }
}

/// The time that agents have to end by themselves.
const QUIT_TIMEOUT: Duration = Duration::from_secs(2);
