//! What an agent has to arrange the conditions of its points, and what becomes of each technique.

use std::io;

use measure::conditions::{Condition, Outcome, Technique, Wanted};
use measure::record::Environment;

use crate::guardian::Guardian;
use crate::host::Host;
use crate::own::{Found, Own, pin_again};
use crate::restore::left_behind;
use crate::{FACTS, LEFT_BEHIND, Refusal};

/// Where a rank is.
#[derive(Clone, Debug, Default)]
pub struct Place {
    /// Its number.
    pub rank: u32,
    /// CPUs that it is pinned to, if so.
    pub pinned: Option<Vec<u32>>,
    /// CPUs that all ranks of the host are pinned to, each as often as a rank has it.
    pub ranks: Vec<u32>,
    /// Name of its RDMA device.
    pub device: Option<String>,
}

/// Arranges conditions for the thread that owns it. Dropping it takes back what is in force.
#[derive(Debug)]
pub struct Arranger {
    host: Host,
    own: Own,
    /// The command of a guard; none where the host must not be changed.
    guard: Vec<String>,
    guardian: Option<Guardian>,
    said: fn(&str),
    /// What concerns the host and is in force, and what became of it.
    in_force: (Wanted, Vec<Condition>),
}

impl Arranger {
    /// Nothing is arranged yet. What concerns the host is changed by a guard, a process that `guard` starts and that calls
    /// [`crate::guard()`]; without words for one it is never changed. `said` hears what could not be taken back, and why.
    pub fn new(host: Host, guard: Vec<String>, said: fn(&str)) -> Self {
        let in_force = (Wanted::default(), Vec::new());
        Self { host, own: Own::default(), guard, guardian: None, said, in_force }
    }

    /// Says in a description of the host what runs have left changed there, if they have.
    pub fn describe(&self, environment: &mut Environment) {
        let found = left_behind(&self.host);
        if !found.is_empty() {
            let facts = environment.facts.entry(FACTS.to_owned()).or_default();
            facts.insert(LEFT_BEHIND.to_owned(), found.join("; "));
        }
    }

    /// Takes back what is no longer wanted and applies what is; says of each technique what became of it, in the order of
    /// [`Wanted::techniques`].
    pub fn arrange(&mut self, wanted: &Wanted, place: &Place) -> Vec<Condition> {
        // First, so that a guard inherits none of it.
        self.take_back_own();
        let host_wide = wanted.host_wide();
        if self.in_force.0 != host_wide {
            self.release();
            let conditions = self.apply(&host_wide, &place.ranks);
            self.in_force = (host_wide, conditions);
        }
        let moved = place.pinned.as_deref().and_then(|pinned| pin_again(pinned).err());
        let mut conditions = Vec::new();
        for (technique, asked) in wanted.techniques() {
            let known = self.in_force.1.iter().find(|condition| condition.technique == technique);
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

    fn apply(&mut self, wanted: &Wanted, ranks: &[u32]) -> Vec<Condition> {
        if wanted.is_as_is() {
            return Vec::new();
        }
        let applied = self.guardian().and_then(|guardian| guardian.apply(wanted, ranks));
        applied.unwrap_or_else(|error| {
            // One that is out of step is of no more use; it takes back what it did.
            self.guardian = None;
            let why = format!("the host is not changed without a guard: {error}");
            let refused =
                |(technique, asked)| condition(0, technique, asked, Err((Outcome::NotApplied, why.clone())));
            wanted.techniques().into_iter().map(refused).collect()
        })
    }

    fn take_back_own(&mut self) {
        if let Some(line) = self.own.take_back() {
            (self.said)(&line);
        }
    }

    fn release(&mut self) {
        if self.in_force.0.is_as_is() {
            return;
        }
        if let Some(guardian) = &mut self.guardian {
            match guardian.release() {
                Ok(lines) => lines.iter().for_each(|line| (self.said)(line)),
                Err(error) => {
                    (self.said)(&format!(
                        "the guard that takes the environment back: {error}; see `rdmascope doctor`"
                    ));
                    self.guardian = None;
                }
            }
        }
        self.in_force = (Wanted::default(), Vec::new());
    }

    /// The guard, started when it is first needed.
    fn guardian(&mut self) -> io::Result<&mut Guardian> {
        if self.guardian.is_none() {
            self.guardian = Some(Guardian::start(&self.guard)?);
        }
        self.guardian.as_mut().ok_or_else(|| io::Error::other("there is none"))
    }
}

impl Drop for Arranger {
    fn drop(&mut self) {
        self.take_back_own();
        self.release();
    }
}

/// What became of a technique, for the record.
pub(crate) fn condition(
    rank: u32,
    technique: Technique,
    asked: String,
    result: Result<Found, Refusal>,
) -> Condition {
    let (outcome, found) = match result {
        Ok(found) => (Outcome::Applied, found),
        Err((outcome, reason)) => (outcome, Found { before: None, reason: Some(reason) }),
    };
    Condition { rank, technique, asked, outcome, before: found.before, reason: found.reason }
}
