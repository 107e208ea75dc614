//! The exchange of sides: RDMA Writes into the memory of the four neighbours, each of which polls
//! the word that ends a side.

use super::schedule::{Message, Schedule, Step};
use crate::endpoint::collectives::HaloSpec;
use crate::patterns::halo::choices::{SIDES, opposite};

/// The sides stand where they are written from, and are used where they arrive: nothing is copied
/// but what the device copies.
pub(super) fn exchange(spec: HaloSpec, rank: u32) -> Schedule {
    let bytes = spec.side_bytes;
    let mut schedule = Schedule::default();
    (0..SIDES).for_each(|_| {
        schedule.place(bytes);
    });
    for (side, to) in spec.grid.neighbours(rank).into_iter().enumerate() {
        let message = Message::made(side, bytes);
        schedule.steps.push(Step::Write { message, to, arrival: opposite(side) });
    }
    schedule.steps.extend((0..SIDES).map(|arrival| Step::Await { arrival }));
    schedule
}
