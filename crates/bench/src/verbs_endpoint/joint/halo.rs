//! The halo exchange: RDMA Writes into the memory of the four neighbours, each of which polls the
//! word that ends a side.

use super::schedule::{Message, Schedule, Step};
use crate::endpoint::collectives::HaloSpec;
use crate::patterns::halo::choices::{SIDES, opposite};

/// Returns the schedule. Sides are written from their memory and used where they arrive: only the
/// device copies them.
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
