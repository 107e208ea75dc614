//! n-way dissemination (Hensgen, Finkel and Manber 1988 with n = 1; Hoefler, Mehlan, Mietke and
//! Rehm, "Fast Barrier Synchronization for InfiniBand", 2006).
//!
//! In round i each rank p writes to the ranks p + j (n+1)^i modulo P, for j = 1 to n, and waits for
//! the writes of the ranks p - j (n+1)^i. Before the round it has data of the (n+1)^i ranks up to
//! itself, so that ceil(log_(n+1) P) rounds bring the data of every rank to every other.
//!
//! Where j (n+1)^i is P or more, a rank would write to itself, or repeat data of another rank:
//! these writes are left out. All ranks together write
//!
//! ```text
//! P * sum over rounds i of min(n, floor((P-1) / (n+1)^i))
//! ```
//!
//! messages. This is n * rounds * P if P is a power of n + 1, or if the last round leaves out none.

use super::schedule::{Message, Schedule, Step};

/// Returns the schedule by which every rank gets the blocks of all ranks, `block` bytes each; with
/// 0 bytes, it is a barrier.
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

/// Returns the schedule by which every rank gets the reduction of all vectors, if reducing a vector
/// twice does no harm: the minimum or the maximum.
pub(super) fn extreme(rank: u32, ranks: u32, bytes: usize) -> Schedule {
    let mut schedule = Schedule::of_vector(bytes, 0);
    for (distance, _) in rounds(ranks, 1).into_iter().flatten() {
        let place = schedule.place(bytes);
        schedule.send(place, (rank + distance) % ranks, 0..bytes);
        schedule.reduce(place, 0..bytes);
    }
    schedule
}

/// Returns the rounds between `ranks` ranks: the distance of each write of a rank, and how many
/// ranks' data it carries, including the writer's.
fn rounds(ranks: u32, ways: u32) -> Vec<Vec<(u32, u32)>> {
    let mut rounds = Vec::new();
    // The number of ranks whose data each rank has.
    let mut known = 1;
    while known < ranks {
        let ways = ways.min((ranks - 1) / known);
        rounds.push((1..=ways).map(|way| (way * known, known.min(ranks - way * known))).collect());
        known = known.saturating_mul(ways + 1);
    }
    rounds
}

/// The positions of the ranks' blocks in the vector.
struct Blocks {
    ranks: u32,
    bytes: usize,
}

impl Blocks {
    /// Returns the blocks of the `count` ranks up to `rank`, which may wrap around: for each part,
    /// its offset in a message and its range in the vector.
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
