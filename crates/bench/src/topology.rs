//! The description of a point for endpoints: its ranks, its parts, and how each part uses its
//! messages. Endpoints do not know patterns: a pattern describes all that they need as data.
//!
//! # Invariants
//!
//! * A point has parts, which run at the same time and have separate queue pairs: the timed
//!   messages, the load, and the control messages by which rank 0 starts and ends the load. A load
//!   lasts from before the first timed message until after the last, and is counted in between.

use serde::{Deserialize, Serialize};

use crate::endpoint::collectives::Joint;
use crate::point::{MessageSpec, Operation};

/// The ranks of a point, and its parts.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Topology {
    /// The number of ranks.
    pub ranks: u32,
    /// The parts. The first is the main part; most points have no other part.
    pub parts: Vec<PartSpec>,
    /// The ranks that begin every message together with the other ranks of their host, at a
    /// barrier.
    pub together: Vec<u32>,
}

impl Topology {
    /// A point with one part.
    pub(crate) fn of_one(part: PartSpec) -> Self {
        Self { ranks: part.links.ranks(), parts: vec![part], together: Vec::new() }
    }

    /// The ranks that a rank exchanges the measured messages with.
    pub(crate) fn partners(&self, rank: u32) -> &[u32] {
        self.parts.first().map_or(&[], |main| main.links.partners(rank))
    }

    /// Whether a rank begins the exchange in any part.
    pub(crate) fn begins(&self, rank: u32) -> bool {
        self.parts.iter().any(|part| part.links.begins(rank))
    }

    /// The parts in which a rank exchanges messages.
    pub(crate) fn parts_of(&self, rank: u32) -> impl Iterator<Item = &PartSpec> {
        self.parts.iter().filter(move |part| !part.links.partners(rank).is_empty())
    }
}

/// A part of a point, by its index in [`Topology::parts`].
#[derive(Clone, Copy, Debug, Deserialize, Eq, Ord, PartialEq, PartialOrd, Serialize)]
pub(crate) struct Part(pub u32);

impl Part {
    /// The main part, which is measured.
    pub(crate) const MAIN: Self = Self(0);
}

/// The description of a part. Each part has separate endpoints.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct PartSpec {
    /// The index of the part.
    pub part: Part,
    /// Its messages.
    pub message: MessageSpec,
    /// How the messages are used.
    pub usage: Usage,
    /// The ranks that exchange them.
    pub links: Links,
    /// The calls that all ranks make together, if any. The pattern then sees no messages.
    pub joint: Option<Joint>,
}

impl PartSpec {
    /// The main part.
    pub(crate) fn main(message: &MessageSpec, usage: Usage, links: Links) -> Self {
        Self { part: Part::MAIN, message: message.clone(), usage, links, joint: None }
    }

    /// The part with calls that all ranks make together.
    pub(crate) fn doing(self, joint: Joint) -> Self {
        Self { joint: Some(joint), ..self }
    }

    /// The largest payload of a work request, in bytes, that is inline.
    pub(crate) fn inline_bytes(&self) -> u64 {
        // Calls that ranks make together append a word of eight bytes to each message.
        let word = if self.joint.is_some() { 8 } else { 0 };
        if self.message.inline { self.message.size_bytes.saturating_add(word) } else { 0 }
    }
}

/// The pairs of ranks that exchange messages.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Links {
    /// By rank, its partners, in the order in which its messages go to them.
    partners: Vec<Vec<u32>>,
    /// By rank, whether it begins and its partners answer.
    begins: Vec<bool>,
    /// Whether every rank is connected with every other, although few exchange messages.
    is_full_mesh: bool,
}

impl Links {
    /// Links between ranks, from the partners of each rank and whether it begins.
    pub(crate) fn new(ranks: u32, partners: impl Fn(u32) -> Vec<u32>, begins: impl Fn(u32) -> bool) -> Self {
        Self {
            partners: (0..ranks).map(partners).collect(),
            begins: (0..ranks).map(begins).collect(),
            is_full_mesh: false,
        }
    }

    /// Links between rank 0, which begins, and rank 1.
    pub(crate) fn of_two() -> Self {
        Self::star(1)
    }

    /// Links between rank 0, which begins, and `others` other ranks.
    pub(crate) fn star(others: u32) -> Self {
        let partners = |rank| if rank == 0 { (1..=others).collect() } else { vec![0] };
        Self::new(others.saturating_add(1), partners, |rank| rank == 0)
    }

    /// Links between neighbours in a ring of ranks, which all begin.
    pub(crate) fn ring(ranks: u32) -> Self {
        let partners = |rank: u32| {
            let mut both = vec![(rank + 1) % ranks.max(1), (rank + ranks.max(1) - 1) % ranks.max(1)];
            both.dedup();
            both
        };
        Self::new(ranks, partners, |_| true)
    }

    /// Links between all ranks, which all begin. A single rank has a link to itself.
    pub(crate) fn mesh(ranks: u32) -> Self {
        let partners = |rank: u32| (0..ranks).filter(|other| *other != rank || ranks == 1).collect();
        Self::new(ranks, partners, |_| true)
    }

    /// The same links, with every rank connected with every other if `is_full_mesh` is true.
    pub(crate) fn with_full_mesh(self, is_full_mesh: bool) -> Self {
        Self { is_full_mesh, ..self }
    }

    /// The number of ranks.
    pub(crate) fn ranks(&self) -> u32 {
        u32::try_from(self.partners.len()).unwrap_or(u32::MAX)
    }

    /// The partners of a rank, in the order in which its messages go to them.
    pub(crate) fn partners(&self, rank: u32) -> &[u32] {
        self.partners.get(rank as usize).map_or(&[], Vec::as_slice)
    }

    /// The ranks that a rank is connected with: first its partners, then the others.
    pub(crate) fn neighbours(&self, rank: u32) -> Vec<u32> {
        let partners = self.partners(rank);
        let is_idle = |other: &u32| self.is_full_mesh && *other != rank && !partners.contains(other);
        let idle = (0..self.ranks()).filter(is_idle);
        partners.iter().copied().chain(idle).collect()
    }

    /// Whether a rank begins and its partners answer.
    pub(crate) fn begins(&self, rank: u32) -> bool {
        self.begins.get(rank as usize).copied().unwrap_or(false)
    }
}

impl PartSpec {
    /// Whether a rank learns only by polling the last byte that a one-sided operation is complete.
    pub(crate) fn polls_last_byte(&self) -> bool {
        match self.message.operation {
            Operation::Write => self.usage.flow == Flow::Alternating,
            operation => operation.is_fetch() && self.usage.polls_fetched,
        }
    }
}

/// How a part uses its messages: all that an endpoint knows of a pattern.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Usage {
    /// How messages follow each other.
    pub flow: Flow,
    /// How messages are distinguished.
    pub form: Form,
    /// Whether rank 0 exchanges a message with each of its partners in every round.
    pub has_rounds: bool,
    /// Whether each partner of a rank has a separate place in that rank's memory, for its one-sided
    /// operations.
    pub has_place_each: bool,
    /// Whether a rank polls the last byte that it fetches, instead of waiting for a completion.
    pub polls_fetched: bool,
    /// Whether each message or round is timed separately, so that completions are taken one by one
    /// as they come.
    pub is_timed: bool,
    /// Whether no rank of a stream both sends and receives.
    pub is_one_way: bool,
    /// Whether only one of two ranks sends, and that rank does nothing else.
    pub is_one_sided_flood: bool,
    /// Whether there may be pauses without messages although no rank has failed.
    pub pauses: bool,
    /// Whether the endpoint of a rank that does not begin takes the messages itself, because the
    /// pattern does not.
    pub is_drained: bool,
    /// Whether the receiver posts its receives itself, and takes no message before all are posted.
    pub fills_late: bool,
}

impl Usage {
    /// Equal messages, timed one by one between two ranks, with pauses.
    pub(crate) const PACED: Self = Self {
        flow: Flow::Paced,
        form: Form::Alike,
        has_rounds: false,
        has_place_each: false,
        polls_fetched: false,
        is_timed: true,
        is_one_way: false,
        is_one_sided_flood: false,
        pauses: true,
        is_drained: false,
        fills_late: false,
    };

    /// Each message is answered before the next is sent, as fast as possible.
    pub(crate) const ALTERNATING: Self = Self { flow: Flow::Alternating, pauses: false, ..Self::PACED };
}

/// How messages follow each other.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Flow {
    /// Each is answered before the next is sent (stop and wait).
    Alternating,
    /// One after the other, as fast as possible, within a bounded window.
    Flood,
    /// At times that the pattern sets.
    Paced,
}

/// How messages are distinguished.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Form {
    /// Not at all: all are equal.
    Alike,
    /// Each carries its number, and both ranks time it.
    Numbered {
        /// Whether each also carries a time stamp of its sender.
        is_stamped: bool,
    },
    /// Each is written word by word into its send buffer.
    Written,
}
