//! Applies the environments of an agent's points, and reports the outcome of each technique.

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

/// What a measurement may change.
#[derive(Clone, Debug)]
pub enum Leave {
    /// The process and, through a guard, the host. The words start a program that calls
    /// [`crate::guard()`].
    Host(Vec<String>),
    /// The process only.
    Own,
    /// Nothing; the reason.
    Nothing(String),
}

/// Applies environments for the thread that owns it. Dropping this reverts what is in force.
#[derive(Debug)]
pub struct Arranger {
    host: Host,
    own: Own,
    leave: Leave,
    guardian: Option<Guardian>,
    /// Guards that were killed or do not answer any more.
    lost: Vec<u32>,
    said: fn(&str),
    /// The host-wide techniques in force, with their outcomes; absent before the first environment,
    /// and after a check has found a change.
    in_force: Option<(Wanted, Vec<Condition>)>,
    patience: Duration,
}

/// The time limit of [`Arranger::arrange`]: tuned takes seconds to load a profile, and another
/// run's guard may have to be waited for.
pub const ARRANGE_TIMEOUT: Duration = Duration::from_secs(75);
/// The part of it for waits with limits of their own: for other guards, and for the end of a guard
/// that does not answer.
const RESERVE: Duration = Duration::from_secs(15);
/// A guard reads a few hundred values in milliseconds.
const VERIFY_TIMEOUT: Duration = Duration::from_secs(5);
/// A process that ends should end soon; the guard goes on without it.
const FAREWELL_TIMEOUT: Duration = Duration::from_secs(2);

impl Arranger {
    /// Returns an arranger with nothing in force. `said` receives messages for the user that no
    /// condition contains: changes that could not be reverted, and why.
    pub fn new(host: Host, leave: Leave, said: fn(&str)) -> Self {
        let patience = ARRANGE_TIMEOUT - RESERVE;
        let own = Own::default();
        let lost = Vec::new();
        Self { host, own, leave, guardian: None, lost, said, in_force: None, patience }
    }

    /// Returns the same with a shorter time limit.
    #[cfg(test)]
    pub(crate) fn within(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }

    /// Adds to a description of the host the changes that killed runs have left. Waits for guards
    /// of agents that have just ended, because changes that they still revert are not part of the
    /// host.
    pub fn describe(&self, environment: &mut Environment) {
        self.settle();
        let found = left_behind(&self.host);
        if !found.is_empty() {
            let facts = environment.facts.entry(FACTS.to_owned()).or_default();
            facts.insert(LEFT_BEHIND.to_owned(), found.join("; "));
        }
    }

    /// Reverts what is no longer wanted and applies what is, within [`ARRANGE_TIMEOUT`]. Returns
    /// the outcome of each technique, in the order of [`Wanted::techniques`].
    pub fn arrange(&mut self, wanted: &Wanted, place: &Place) -> Vec<Condition> {
        if let Leave::Nothing(why) = &self.leave {
            let refused = |(technique, asked)| {
                condition(place.rank, technique, asked, Err((Outcome::NotPermitted, why.clone())))
            };
            return wanted.techniques().into_iter().map(refused).collect();
        }
        // First, so that a guard inherits none of these settings.
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
                    let why = format!("the rank could not be moved back to its {error}");
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

    /// Checks what is in force on the host. Returns the conditions that have changed.
    pub fn verify(&mut self, rank: u32) -> Vec<Condition> {
        let applied = |condition: &&Condition| condition.outcome == Outcome::Applied;
        let known = self.in_force.iter().flat_map(|(_, conditions)| conditions).filter(applied);
        let known: Vec<Condition> = known.cloned().collect();
        if known.is_empty() {
            return known;
        }
        let verified = self.ask(&Request::Verify, Deadline::after(VERIFY_TIMEOUT));
        let changed = verified.map(|reply| reply.conditions).unwrap_or_else(|error| {
            let why = format!("it was applied, but could not be checked after the point: {error}");
            known.into_iter().map(|known| Condition { reason: Some(why.clone()), ..known }).collect()
        });
        if !changed.is_empty() {
            self.in_force = None;
        }
        changed.into_iter().map(|condition| Condition { rank, ..condition }).collect()
    }

    /// Applies the host-wide techniques, when none is in force.
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
            let why = format!("rdmascope changes a host only through a guard: {error}");
            let refused =
                |(technique, asked)| condition(0, technique, asked, Err((Outcome::NotApplied, why.clone())));
            wanted.techniques().into_iter().map(refused).collect()
        })
    }

    /// Waits until guards of other runs hold nothing; reports what they still hold.
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

    /// Reverts what is in force on the host, and what dead guards had in force.
    fn release(&mut self, deadline: Deadline) {
        self.in_force = None;
        if self.guardian.is_some()
            && let Err(error) = self.ask(&Request::Release, deadline)
        {
            (self.said)(&format!("the guard could not revert the environment: {error}"));
        }
        if self.lost.is_empty() {
            return;
        }
        let dead = std::mem::take(&mut self.lost);
        if let Err(error) = self.ask(&Request::Restore { dead }, deadline) {
            (self.said)(&format!(
                "the changes of an earlier guard are not reverted: {error}; see `rdmascope doctor`"
            ));
        }
    }

    /// Sends a request to the guard, which is started if there is none. Passes its messages on to
    /// the user.
    fn ask(&mut self, request: &Request, deadline: Deadline) -> io::Result<Reply> {
        let mut guardian = match (self.guardian.take(), &self.leave) {
            (Some(guardian), _) => guardian,
            (None, Leave::Host(words)) => Guardian::start(words)?,
            (None, _) => return Err(io::Error::other("this rank has no guard")),
        };
        match guardian.ask(request, deadline) {
            Ok(reply) => {
                reply.said.iter().for_each(|line| (self.said)(line));
                self.guardian = Some(guardian);
                Ok(reply)
            }
            Err(error) => {
                // A guard that is out of step is useless. If it lives, it reverts its changes.
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
