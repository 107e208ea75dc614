//! Ring algorithms: each rank writes only to the next one (Thakur, Rabenseifner and Gropp 2005;
//! Patarasuk and Yuan, "Bandwidth Optimal All-reduce Algorithms for Clusters of Workstations",
//! 2009).

use std::ops::Range;

use super::schedule::{Message, Schedule, Step};

/// Returns the schedule by which every rank gets the blocks of all ranks: each block goes around
/// the ring.
pub(super) fn allgather(rank: u32, ranks: u32, block: usize) -> Schedule {
    let mut schedule = Schedule::of_vector(ranks as usize * block, rank as usize * block);
    let at = |rank: u32| rank as usize * block..(rank as usize + 1) * block;
    around(&mut schedule, rank, ranks, block, |steps| at((rank + ranks - steps) % ranks));
    schedule
}

/// Returns the schedule by which every rank gets the reduction of all vectors of whole elements: a
/// part of the vector for each rank is reduced once around the ring, and then goes around it once
/// more.
pub(super) fn allreduce(rank: u32, ranks: u32, bytes: usize, element: usize) -> Schedule {
    let elements = bytes / element;
    let edge = |part: u32| part as usize * elements / ranks as usize * element;
    let part = |part: u32| edge(part % ranks)..edge(part % ranks + 1);
    let longest = (0..ranks).map(|of| part(of).len()).max().unwrap_or(0);
    let mut schedule = Schedule::of_vector(bytes, 0);
    for step in 0..ranks - 1 {
        let place = schedule.place(longest);
        schedule.send(place, (rank + 1) % ranks, part(rank + ranks - step));
        schedule.reduce(place, part(rank + ranks - step - 1));
    }
    // The part after its own number is the part that this rank has completed.
    around(&mut schedule, rank, ranks, longest, |steps| part(rank + 1 + ranks - steps));
    schedule
}

/// Sends a part of the vector around the ring, and forwards each arriving part except the last. The
/// part that arrives after n steps belongs to the rank n places before.
fn around(
    schedule: &mut Schedule,
    rank: u32,
    ranks: u32,
    longest: usize,
    part: impl Fn(u32) -> Range<usize>,
) {
    let next = (rank + 1) % ranks;
    let mut came: Option<usize> = None;
    for step in 0..ranks - 1 {
        let place = schedule.place(longest);
        match came {
            None => schedule.send(place, next, part(0)),
            // The part is forwarded from where it arrived, and unpacked meanwhile.
            Some(from) => {
                let message = Message::arrived(from, part(step).len());
                schedule.steps.push(Step::Write { message, to: next, arrival: place });
                schedule.unpack(from, part(step));
            }
        }
        schedule.steps.push(Step::Await { arrival: place });
        came = Some(place);
    }
    if let Some(last) = came {
        schedule.unpack(last, part(ranks - 1));
    }
}
