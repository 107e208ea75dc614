//! What endpoints are told of a point: the ranks that it has, what these do beside each other, and
//! how each of that uses its messages. Endpoints know no pattern: a pattern says all that they need
//! as data.
//!
//! # Invariants
//!
//! * What ranks do beside each other are parts of a point, with queue pairs of their own: what is
//!   timed, the load, and the control by which rank 0 begins and ends that. A load lasts from
//!   before the first message that is timed until after the last, and is counted in between.

use serde::{Deserialize, Serialize};

use crate::endpoint::collectives::Joint;
use crate::point::{MessageSpec, Operation};

/// The ranks of a point, and what they do beside each other.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Topology {
    /// How many ranks it has.
    pub ranks: u32,
    /// What they do beside each other: the main part first, which is the only one of most points.
    pub parts: Vec<PartSpec>,
    /// The ranks that begin every message together with those of their host, at a barrier.
    pub together: Vec<u32>,
}

impl Topology {
    /// A point of one part.
    pub(crate) fn of_one(part: PartSpec) -> Self {
        Self { ranks: part.links.ranks(), parts: vec![part], together: Vec::new() }
    }

    /// The ranks that a rank exchanges what is measured with.
    pub(crate) fn partners(&self, rank: u32) -> &[u32] {
        self.parts.first().map_or(&[], |main| main.links.partners(rank))
    }

    /// Whether a rank begins in any part.
    pub(crate) fn begins(&self, rank: u32) -> bool {
        self.parts.iter().any(|part| part.links.begins(rank))
    }

    /// The parts that a rank has to do with.
    pub(crate) fn parts_of(&self, rank: u32) -> impl Iterator<Item = &PartSpec> {
        self.parts.iter().filter(move |part| !part.links.partners(rank).is_empty())
    }
}

/// Which of the things that ranks do beside each other this is, by its place in
/// [`Topology::parts`].
#[derive(Clone, Copy, Debug, Deserialize, Eq, Ord, PartialEq, PartialOrd, Serialize)]
pub(crate) struct Part(pub u32);

impl Part {
    /// What the plan says.
    pub(crate) const MAIN: Self = Self(0);
}

/// One of the things that ranks do beside each other. Each has endpoints of its own.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct PartSpec {
    /// Which one it is.
    pub part: Part,
    /// Its messages.
    pub message: MessageSpec,
    /// How they are used.
    pub usage: Usage,
    /// Which ranks exchange them.
    pub links: Links,
    /// What all ranks do together by calls of their own, if so: then they exchange no messages
    /// that the pattern would see.
    pub joint: Option<Joint>,
}

impl PartSpec {
    /// The main part.
    pub(crate) fn main(message: &MessageSpec, usage: Usage, links: Links) -> Self {
        Self { part: Part::MAIN, message: message.clone(), usage, links, joint: None }
    }

    /// The same of ranks that do something together.
    pub(crate) fn doing(self, joint: Joint) -> Self {
        Self { joint: Some(joint), ..self }
    }

    /// Bytes that a work request carries itself, at most.
    pub(crate) fn inline_bytes(&self) -> u64 {
        // What ranks do together has a word of eight bytes behind each message.
        let word = if self.joint.is_some() { 8 } else { 0 };
        if self.message.inline { self.message.size_bytes.saturating_add(word) } else { 0 }
    }
}

/// Which ranks exchange messages.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Links {
    /// By rank, the ranks that it talks to, in the order in which its messages take them.
    partners: Vec<Vec<u32>>,
    /// By rank, whether it begins, and its partners answer.
    begins: Vec<bool>,
    /// Whether every rank is connected with every other, although few of them talk.
    is_full_mesh: bool,
}

impl Links {
    /// Links between so many ranks: those that each talks to, and whether it begins.
    pub(crate) fn new(ranks: u32, partners: impl Fn(u32) -> Vec<u32>, begins: impl Fn(u32) -> bool) -> Self {
        Self {
            partners: (0..ranks).map(partners).collect(),
            begins: (0..ranks).map(begins).collect(),
            is_full_mesh: false,
        }
    }

    /// Rank 0 and rank 1, of which rank 0 begins.
    pub(crate) fn of_two() -> Self {
        Self::star(1)
    }

    /// Rank 0 and so many others, to which it begins to talk.
    pub(crate) fn star(others: u32) -> Self {
        let partners = |rank| if rank == 0 { (1..=others).collect() } else { vec![0] };
        Self::new(others.saturating_add(1), partners, |rank| rank == 0)
    }

    /// So many ranks of which each is connected with its neighbours of a ring, and all begin.
    pub(crate) fn ring(ranks: u32) -> Self {
        let partners = |rank: u32| {
            let mut both = vec![(rank + 1) % ranks.max(1), (rank + ranks.max(1) - 1) % ranks.max(1)];
            both.dedup();
            both
        };
        Self::new(ranks, partners, |_| true)
    }

    /// So many ranks of which each talks to every other, and all begin. One alone talks to itself.
    pub(crate) fn mesh(ranks: u32) -> Self {
        let partners = |rank: u32| (0..ranks).filter(|other| *other != rank || ranks == 1).collect();
        Self::new(ranks, partners, |_| true)
    }

    /// The same, with every rank connected with every other.
    pub(crate) fn with_full_mesh(self, is_full_mesh: bool) -> Self {
        Self { is_full_mesh, ..self }
    }

    /// How many ranks the point has.
    pub(crate) fn ranks(&self) -> u32 {
        u32::try_from(self.partners.len()).unwrap_or(u32::MAX)
    }

    /// The ranks that a rank talks to, in the order in which its messages take them.
    pub(crate) fn partners(&self, rank: u32) -> &[u32] {
        self.partners.get(rank as usize).map_or(&[], Vec::as_slice)
    }

    /// The ranks that a rank is connected with: those that it talks to first.
    pub(crate) fn neighbours(&self, rank: u32) -> Vec<u32> {
        let partners = self.partners(rank);
        let is_idle = |other: &u32| self.is_full_mesh && *other != rank && !partners.contains(other);
        let idle = (0..self.ranks()).filter(is_idle);
        partners.iter().copied().chain(idle).collect()
    }

    /// Whether a rank begins, and the ranks that it talks to answer.
    pub(crate) fn begins(&self, rank: u32) -> bool {
        self.begins.get(rank as usize).copied().unwrap_or(false)
    }
}

impl PartSpec {
    /// Whether a rank polls the last byte of what a one-sided operation brings, and learns of it in
    /// no other way.
    pub(crate) fn polls_last_byte(&self) -> bool {
        match self.message.operation {
            Operation::Write => self.usage.flow == Flow::Alternating,
            operation => operation.is_fetch() && self.usage.polls_fetched,
        }
    }
}

/// How a part uses its messages: all that an endpoint may know of a pattern.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Usage {
    /// How messages follow each other.
    pub flow: Flow,
    /// What tells messages apart.
    pub form: Form,
    /// Whether rank 0 exchanges a message with each of its partners in every round.
    pub has_rounds: bool,
    /// Whether each partner of a rank has a place of its own in that rank's memory, for its
    /// one-sided operations.
    pub has_place_each: bool,
    /// Whether a rank polls the last byte of what it fetches, although a completion would tell it
    /// as well.
    pub polls_fetched: bool,
    /// Whether each message or round is timed by itself, so that completions are taken one by one
    /// as they come.
    pub is_timed: bool,
    /// Whether no rank of a flood both sends and receives.
    pub is_one_way: bool,
    /// Whether only one of two ranks sends, and that rank does nothing else.
    pub is_one_sided_flood: bool,
    /// Whether nothing may happen for a while although nobody has failed.
    pub pauses: bool,
    /// Whether the endpoint itself takes what comes where a rank does not begin: no pattern does.
    pub is_drained: bool,
    /// Whether who takes messages posts its receives, and takes none before all are posted.
    pub fills_late: bool,
}

impl Usage {
    /// Messages that are alike, timed one by one between two ranks, with pauses that somebody else
    /// sets.
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

    /// Each message is answered before the next is sent, as fast as can be.
    pub(crate) const ALTERNATING: Self = Self { flow: Flow::Alternating, pauses: false, ..Self::PACED };
}

/// How messages follow each other.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Flow {
    /// Each is answered before the next is sent (stop and wait).
    Alternating,
    /// One after the other, as fast as can be, within a bounded window.
    Flood,
    /// When something else says so.
    Paced,
}

/// What tells messages apart.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Form {
    /// Nothing: all are alike.
    Alike,
    /// Each says its number, and is timed at both ends.
    Numbered {
        /// Whether each carries a stamp of its sender, too.
        is_stamped: bool,
    },
    /// Each is written word by word where it is sent from.
    Written,
}
