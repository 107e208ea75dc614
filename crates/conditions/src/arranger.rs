//! What an agent has to arrange the conditions of its points, and what becomes of each technique.

use std::io;
use std::time::Duration;

use measure::clock::Deadline;
use measure::conditions::{Condition, Outcome, Technique, Wanted};
use measure::record::Environment;

use crate::guardian::Guardian;
use crate::host::Host;
use crate::own::{Own, pin};
use crate::place::{Place, Ranks};
use crate::refusal::condition;
use crate::request::{Reply, Request};
use crate::restore::{FACTS, LEFT_BEHIND, left_behind, settle};

/// How much whoever asks for the measurement may change.
#[derive(Clone, Debug)]
pub enum Leave {
    /// What is the process's own and, through a guard that these words start and that calls
    /// [`crate::guard()`], the host.
    Host(Vec<String>),
    /// What is the process's own.
    Own,
    /// Nothing, and why.
    Nothing(String),
}

/// Arranges conditions for the thread that owns it. Dropping it takes back what is in force.
#[derive(Debug)]
pub struct Arranger {
    host: Host,
    own: Own,
    leave: Leave,
    guardian: Option<Guardian>,
    /// Guards that were killed, or do not answer any more.
    lost: Vec<u32>,
    said: fn(&str),
    /// What concerns the host and is in force, and what became of it; absent until something was
    /// arranged, and where it has turned out to be in force no more.
    in_force: Option<(Wanted, Vec<Condition>)>,
    patience: Duration,
}

/// How long [`Arranger::arrange`] may take in all: loading a profile of tuned takes seconds, and so
/// does waiting for another run's guard.
pub const ARRANGE_TIMEOUT: Duration = Duration::from_secs(75);
/// What is left of it for the waits that have limits of their own: for other guards, and for one
/// that is given up to end.
const RESERVE: Duration = Duration::from_secs(15);
/// Reading a few hundred values takes milliseconds.
const VERIFY_TIMEOUT: Duration = Duration::from_secs(5);
/// Who has gone should be gone soon; the guard goes on without us.
const FAREWELL_TIMEOUT: Duration = Duration::from_secs(2);

impl Arranger {
    /// Nothing is arranged yet. `said` hears what the user has to know and no condition says: what
    /// could not be taken back, and why.
    pub fn new(host: Host, leave: Leave, said: fn(&str)) -> Self {
        let patience = ARRANGE_TIMEOUT - RESERVE;
        let own = Own::default();
        let lost = Vec::new();
        Self { host, own, leave, guardian: None, lost, said, in_force: None, patience }
    }

    /// The same with less patience for guards.
    #[cfg(test)]
    pub(crate) fn within(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }

    /// Says in a description of the host what runs have left changed there, if they have. Guards of
    /// agents that have just gone are waited for: what they take back is no part of the host.
    pub fn describe(&self, environment: &mut Environment) {
        self.settle();
        let found = left_behind(&self.host);
        if !found.is_empty() {
            let facts = environment.facts.entry(FACTS.to_owned()).or_default();
            facts.insert(LEFT_BEHIND.to_owned(), found.join("; "));
        }
    }

    /// Takes back what is no longer wanted and applies what is, within [`ARRANGE_TIMEOUT`]; says of
    /// each technique what became of it, in the order of [`Wanted::techniques`].
    pub fn arrange(&mut self, wanted: &Wanted, place: &Place) -> Vec<Condition> {
        if let Leave::Nothing(why) = &self.leave {
            let refused = |(technique, asked)| {
                condition(place.rank, technique, asked, Err((Outcome::NotPermitted, why.clone())))
            };
            return wanted.techniques().into_iter().map(refused).collect();
        }
        // First, so that a guard inherits none of it.
        self.take_back_own();
        let host_wide = wanted.host_wide();
        if self.in_force.as_ref().is_none_or(|(in_force, _)| *in_force != host_wide) {
            let deadline = Deadline::after(self.patience);
            self.release(deadline);
            let conditions = self.apply(&host_wide, place, deadline);
            self.in_force = Some((host_wide, conditions));
        }
        let moved = place.pinned.as_deref().and_then(|pinned| pin(pinned).err());
        let known = self.in_force.as_ref().map_or(&[][..], |(_, conditions)| conditions);
        let mut conditions = Vec::new();
        for (technique, asked) in wanted.techniques() {
            let known = known.iter().find(|condition| condition.technique == technique);
            conditions.push(match (known, &moved) {
                (Some(known), Some(error)) if technique == Technique::Cpuset => {
                    let why = format!("the rank could not go back to its {error}");
                    condition(place.rank, technique, known.asked.clone(), Err((Outcome::NotApplied, why)))
                }
                (Some(known), _) => Condition { rank: place.rank, ..known.clone() },
                (None, _) => {
                    let result = self.own.apply(&self.host, technique, wanted, place);
                    condition(place.rank, technique, asked, result)
                }
            });
        }
        conditions
    }

    /// Looks again at what is in force on the host; gives the conditions of which something else is
    /// true now than was said.
    pub fn verify(&mut self, rank: u32) -> Vec<Condition> {
        let applied = |condition: &&Condition| condition.outcome == Outcome::Applied;
        let known = self.in_force.iter().flat_map(|(_, conditions)| conditions).filter(applied);
        let known: Vec<Condition> = known.cloned().collect();
        if known.is_empty() {
            return known;
        }
        let verified = self.ask(&Request::Verify, Deadline::after(VERIFY_TIMEOUT));
        let changed = verified.map(|reply| reply.conditions).unwrap_or_else(|error| {
            let why = format!("it was applied, and not looked at again after the point: {error}");
            known.into_iter().map(|known| Condition { reason: Some(why.clone()), ..known }).collect()
        });
        if !changed.is_empty() {
            self.in_force = None;
        }
        changed.into_iter().map(|condition| Condition { rank, ..condition }).collect()
    }

    /// Applies what concerns the host, where nothing of ours is in force.
    fn apply(&mut self, wanted: &Wanted, place: &Place, deadline: Deadline) -> Vec<Condition> {
        if wanted.is_as_is() {
            self.settle();
            return Vec::new();
        }
        let process = std::process::id();
        let own = place.pinned.as_ref().map_or(1, Vec::len).max(1);
        let ranks = Ranks {
            count: place.ranks.len() / own,
            cpus: place.ranks.clone(),
            interfaces: place.ipoib.clone(),
        };
        let request = Request::Apply { wanted: wanted.clone(), ranks, process };
        self.ask(&request, deadline).map(|reply| reply.conditions).unwrap_or_else(|error| {
            let why = format!("the host is not changed without a guard: {error}");
            let refused =
                |(technique, asked)| condition(0, technique, asked, Err((Outcome::NotApplied, why.clone())));
            wanted.techniques().into_iter().map(refused).collect()
        })
    }

    /// Waits until guards of others hold nothing, or says what they do.
    fn settle(&self) {
        if let Some(line) = settle(&self.host, "", |_| false) {
            (self.said)(&line);
        }
    }

    fn take_back_own(&mut self) {
        if let Some(line) = self.own.take_back() {
            (self.said)(&line);
        }
    }

    /// Takes back what is in force on the host, and what guards had in force that are dead.
    fn release(&mut self, deadline: Deadline) {
        self.in_force = None;
        if self.guardian.is_some()
            && let Err(error) = self.ask(&Request::Release, deadline)
        {
            (self.said)(&format!("the guard that takes the environment back: {error}"));
        }
        if self.lost.is_empty() {
            return;
        }
        let dead = std::mem::take(&mut self.lost);
        if let Err(error) = self.ask(&Request::Restore { dead }, deadline) {
            (self.said)(&format!(
                "what a guard had changed is not taken back: {error}; see `rdmascope doctor`"
            ));
        }
    }

    /// The answer of the guard, which is started where there is none. What it says is said.
    fn ask(&mut self, request: &Request, deadline: Deadline) -> io::Result<Reply> {
        let mut guardian = match (self.guardian.take(), &self.leave) {
            (Some(guardian), _) => guardian,
            (None, Leave::Host(words)) => Guardian::start(words)?,
            (None, _) => return Err(io::Error::other("this rank has none")),
        };
        match guardian.ask(request, deadline) {
            Ok(reply) => {
                reply.said.iter().for_each(|line| (self.said)(line));
                self.guardian = Some(guardian);
                Ok(reply)
            }
            Err(error) => {
                // One that is out of step is of no more use. If it lives it takes back what it did.
                self.lost.push(guardian.process());
                Err(error)
            }
        }
    }
}

impl Drop for Arranger {
    fn drop(&mut self) {
        self.take_back_own();
        self.release(Deadline::after(FAREWELL_TIMEOUT));
    }
}
