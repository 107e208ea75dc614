//! Which pairs are measured at the same time: a registry with a row for each schedule.
//!
//! # Invariants
//!
//! - The pairs of a round are disjoint, except those of a fan, which share one host.
//! - Any prefix of the rounds of a pass covers every host: of an odd number, one host rests.
//! - An iterator over rounds holds one round, not the square of the number of hosts.

mod amounts;
mod circle;
mod fan;
mod matching;
#[cfg(test)]
mod tests;

use super::hosts::Hosts;

pub use amounts::{Amounts, Pairs, Rounds};

/// A schedule.
#[derive(Debug)]
pub struct Schedule {
    /// The word for it.
    pub name: &'static str,
    /// What it does, for help.
    pub help: &'static str,
    /// How often it is measured unless stated.
    pub passes: usize,
    /// Why no culprit can be named from it; `None` if it can.
    pub no_blame: Option<&'static str>,
    /// Whether the two halves of the list are compared where there are no groups.
    pub halves: bool,
    /// Whether the pairs of a round share one host, to or from which alone messages go.
    pub is_fan: bool,
    /// The most pairs that the schedule measures at the same time; `None`: a round of pairs.
    most: Option<usize>,
    rounds: for<'a> fn(&'a Hosts, &Amounts, u64) -> Rounds<'a>,
}

/// All schedules; the first one is the default.
pub static SCHEDULES: [Schedule; 7] = [
    Schedule {
        name: "all-pairs",
        help: "every pair, as rounds in which each host has one partner",
        passes: 3,
        no_blame: None,
        halves: false,
        is_fan: false,
        most: None,
        rounds: |hosts, _, _| Box::new(circle::rounds(hosts.count)),
    },
    Schedule {
        name: "isolated",
        help: "every pair, one at a time",
        passes: 3,
        no_blame: None,
        halves: false,
        is_fan: false,
        most: Some(1),
        rounds: |hosts, _, _| Box::new(circle::rounds(hosts.count)),
    },
    Schedule {
        name: "ring",
        help: "each host with the next, as two rounds (three for an odd number of hosts)",
        passes: 3,
        no_blame: Some("each host has only two partners, so a slow host and a slow partner look alike"),
        halves: false,
        is_fan: false,
        most: None,
        rounds: |hosts, _, _| Box::new(circle::ring(hosts.count)),
    },
    Schedule {
        name: "random",
        help: "random partners in each round, spread evenly over pairs of groups",
        passes: 1,
        no_blame: None,
        halves: false,
        is_fan: false,
        most: None,
        rounds: matching::random,
    },
    Schedule {
        name: "bisection",
        help: "rounds across groups, then rounds within groups; without groups, the two halves of the list",
        passes: 1,
        no_blame: Some("it compares paths across groups with paths within groups, not hosts"),
        halves: true,
        is_fan: false,
        most: None,
        rounds: matching::bisection,
    },
    Schedule {
        name: "one-to-all",
        help: "one host sends to all others at once",
        passes: 3,
        no_blame: Some("every pair has the same sender"),
        halves: false,
        is_fan: true,
        most: None,
        rounds: |hosts, amounts, _| fan::out(hosts.count, amounts.root),
    },
    Schedule {
        name: "all-to-one",
        help: "all others send to one host at once",
        passes: 3,
        no_blame: Some("every pair has the same receiver"),
        halves: false,
        is_fan: true,
        most: None,
        rounds: |hosts, amounts, _| fan::into(hosts.count, amounts.root),
    },
];

impl Schedule {
    /// The schedule of a name.
    pub fn named(name: &str) -> Option<&'static Self> {
        SCHEDULES.iter().find(|schedule| schedule.name == name)
    }

    /// The most pairs at the same time, at least one; `None`: as many as a round has.
    pub fn most(&self, amounts: &Amounts) -> Option<usize> {
        self.most.or(amounts.parallel).map(|most| most.max(1))
    }

    /// The rounds of one pass, of members of one network. A limit on pairs at the same time splits
    /// rounds.
    pub fn rounds<'a>(&self, hosts: &'a Hosts, amounts: &Amounts, seed: u64) -> Rounds<'a> {
        let rounds = (self.rounds)(hosts, amounts, seed);
        let Some(most) = self.most(amounts) else { return rounds };
        Box::new(rounds.flat_map(move |round| {
            let parts: Vec<Pairs> = round.chunks(most).map(<[_]>::to_vec).collect();
            parts
        }))
    }
}
