//! A test of endpoints with several peers, which each kind of endpoint runs.

use super::{Endpoint, Mark};
use crate::point::MessageSpec;
use crate::topology::{Links, PartSpec, Usage};

/// Returns three ranks, each of which exchanges messages with the other two.
pub(crate) fn three(message: &MessageSpec) -> PartSpec {
    let others = |rank: u32| (0..3).filter(|other| *other != rank).collect();
    PartSpec::main(message, Usage::PACED, Links::new(3, others, |_| true))
}

/// Returns how many messages one rank sends to another; the number differs for every pair.
fn messages(from: u32, to: u32) -> u32 {
    2 + 3 * from + to
}

/// Posts the messages of a rank: one to the second peer, all to the first, the rest to the second.
/// Taking turns would never produce this order.
pub(crate) fn post_addressed<E: Endpoint>(end: &mut E, spec: &PartSpec, rank: u32) {
    let peers = spec.links.partners(rank);
    let mut left = [0, 1].map(|lane| messages(rank, peers[lane]));
    let order = [(1, 1), (0, left[0]), (1, left[1] - 1)];
    for (lane, count) in order {
        for _ in 0..count {
            left[lane] -= 1;
            let mark = if left[lane] == 0 { Mark::Last } else { Mark::More };
            end.send_to(lane as u32, mark).unwrap();
        }
    }
    end.flush().unwrap();
}

/// Receives the messages of the other ranks. Checks that each arrives, names its lane, and says so
/// if it is the last of its rank.
pub(crate) fn take_addressed<E: Endpoint>(end: &mut E, spec: &PartSpec, rank: u32) {
    let peers = spec.links.partners(rank);
    let mut left = [0, 1].map(|lane| messages(peers[lane], rank));
    while left != [0, 0] {
        let Some(arrival) = end.try_receive().unwrap() else {
            end.idle().unwrap();
            continue;
        };
        let left = &mut left[arrival.lane as usize];
        *left = left.checked_sub(1).expect("no rank sends more than its messages");
        assert_eq!(arrival.mark == Mark::Last, *left == 0, "rank {rank}: {arrival:?}, {left} left");
        end.replenish().unwrap();
    }
}
