//! Dissemination in n ways (Hensgen, Finkel and Manber 1988 with n = 1; Hoefler, Mehlan, Mietke and
//! Rehm, "Fast Barrier Synchronization for InfiniBand", 2006).
//!
//! In round i each rank p writes to the ranks p + j (n+1)^i modulo P, for j = 1 to n, and waits for
//! what the ranks p - j (n+1)^i write. Before the round it knows of the (n+1)^i ranks up to itself,
//! so that ceil(log_(n+1) P) rounds tell every rank of every other.
//!
//! Where j (n+1)^i reaches P or more, a rank would write to itself, or what another has told: those
//! writes are left out. All ranks together write
//!
//! ```text
//! P * sum over rounds i of min(n, floor((P-1) / (n+1)^i))
//! ```
//!
//! messages, which is n * rounds * P where P is a power of n + 1, and wherever else the last round
//! leaves out none.

use super::schedule::{Message, Schedule, Step};

/// Every rank gives a block of so many bytes and gets the blocks of all; with none it is a barrier.
pub(super) fn allgather(rank: u32, ranks: u32, ways: u32, block: usize) -> Schedule {
    let blocks = Blocks { ranks, bytes: block };
    let mut schedule = Schedule::of_vector(ranks as usize * block, rank as usize * block);
    for round in rounds(ranks, ways) {
        let first = schedule.arrivals.len();
        for (distance, count) in &round {
            let message = Message::made(schedule.place(*count as usize * block), *count as usize * block);
            for (at, from) in blocks.up_to(rank, *count) {
                schedule.steps.push(Step::Pack { message, at, from });
            }
            let arrival = schedule.arrivals.len() - 1;
            schedule.steps.push(Step::Write { message, to: (rank + distance) % ranks, arrival });
        }
        for (arrival, (distance, count)) in (first..).zip(&round) {
            schedule.steps.push(Step::Await { arrival });
            let message = Message::arrived(arrival, *count as usize * block);
            for (at, to) in blocks.up_to((rank + ranks - distance) % ranks, *count) {
                schedule.steps.push(Step::Unpack { message, at, to });
            }
        }
    }
    schedule
}

/// Every rank gives a vector and gets what reduces those of all, where it does no harm to reduce
/// one twice: the least or the largest.
pub(super) fn extreme(rank: u32, ranks: u32, bytes: usize) -> Schedule {
    let mut schedule = Schedule::of_vector(bytes, 0);
    for (distance, _) in rounds(ranks, 1).into_iter().flatten() {
        let place = schedule.place(bytes);
        schedule.send(place, (rank + distance) % ranks, 0..bytes);
        schedule.reduce(place, 0..bytes);
    }
    schedule
}

/// The rounds between so many ranks: how far each of a rank's writes goes, and of how many ranks it
/// tells, the writer among them.
fn rounds(ranks: u32, ways: u32) -> Vec<Vec<(u32, u32)>> {
    let mut rounds = Vec::new();
    // The ranks that each knows of.
    let mut known = 1;
    while known < ranks {
        let ways = ways.min((ranks - 1) / known);
        rounds.push((1..=ways).map(|way| (way * known, known.min(ranks - way * known))).collect());
        known = known.saturating_mul(ways + 1);
    }
    rounds
}

/// Where the blocks of ranks stand in the vector.
struct Blocks {
    ranks: u32,
    bytes: usize,
}

impl Blocks {
    /// The blocks of so many ranks up to one, which may lie on both sides of the last: where each
    /// part begins in a message, and where it stands in the vector.
    fn up_to(&self, rank: u32, count: u32) -> Vec<(usize, std::ops::Range<usize>)> {
        let first = (rank + self.ranks + 1 - count) % self.ranks;
        let before_end = count.min(self.ranks - first);
        let part =
            |first: u32, count: u32| first as usize * self.bytes..(first + count) as usize * self.bytes;
        let parts =
            [(0, part(first, before_end)), (before_end as usize * self.bytes, part(0, count - before_end))];
        parts.into_iter().filter(|(_, part)| !part.is_empty()).collect()
    }
}
