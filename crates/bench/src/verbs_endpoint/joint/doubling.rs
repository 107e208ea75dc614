//! Recursive doubling (Thakur, Rabenseifner and Gropp, "Optimization of Collective Communication
//! Operations in MPICH", 2005): in round k a rank exchanges all its data with the rank whose number
//! differs in bit k.

use super::schedule::Schedule;

/// Returns the schedule by which every rank gets the reduction of all vectors.
///
/// If the number of ranks is no power of two, the first ranks are folded: of each two, the even
/// rank sends its vector to the odd rank, which takes part for both, and gets the result.
pub(super) fn allreduce(rank: u32, ranks: u32, bytes: usize) -> Schedule {
    let all = 0..bytes;
    let power = 1 << ranks.ilog2();
    let folded = ranks - power;
    let mut schedule = Schedule::of_vector(bytes, 0);
    let [given, result] = if folded > 0 { [(); 2].map(|()| schedule.place(bytes)) } else { [0; 2] };
    let rounds: Vec<(u32, usize)> = (0..ranks.ilog2()).map(|bit| (1 << bit, schedule.place(bytes))).collect();
    let is_folded = rank < 2 * folded;
    if is_folded && rank.is_multiple_of(2) {
        schedule.send(given, rank + 1, all.clone());
        schedule.receive(result, all);
        return schedule;
    }
    if is_folded {
        schedule.reduce(given, all.clone());
    }
    let own = if is_folded { rank / 2 } else { rank - folded };
    for (bit, place) in rounds {
        let other = own ^ bit;
        let to = if other < folded { 2 * other + 1 } else { other + folded };
        schedule.send(place, to, all.clone());
        schedule.reduce(place, all.clone());
    }
    if is_folded {
        schedule.send(result, rank - 1, all);
    }
    schedule
}

/// Returns the schedule by which every rank gets the blocks of all ranks, if their number is a
/// power of two.
pub(super) fn allgather(rank: u32, ranks: u32, block: usize) -> Schedule {
    let mut schedule = Schedule::of_vector(ranks as usize * block, rank as usize * block);
    for bit in (0..ranks.ilog2()).map(|bit| 1 << bit) {
        // A rank has the blocks of the ranks that differ from it only in lower bits.
        let blocks = |rank: u32| {
            let first = (rank & !(bit - 1)) as usize;
            first * block..(first + bit as usize) * block
        };
        let place = schedule.place(bit as usize * block);
        schedule.send(place, rank ^ bit, blocks(rank));
        schedule.receive(place, blocks(rank ^ bit));
    }
    schedule
}
