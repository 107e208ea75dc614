//! Joint operations on a real device (softdev), with one thread for each rank.

use std::sync::{Arc, Barrier, Mutex};
use std::thread;
use std::time::Duration;

use measure::clock::{Clock, Ticks};

use super::super::VerbsEndpoint;
use crate::Error;
use crate::axis;
use crate::endpoint::Endpoint;
use crate::endpoint::collectives::{CALLS, Collectives, WRITES};
use crate::endpoint::connecting::{DrivenEndpoint, UnconnectedEndpoint};
use crate::placement::LocalPlacement;
use crate::plan::{Options, Plan, Settings, resolve};
use crate::point::{Algorithm, Collective, Pattern};
use crate::rank_clock::RankClock;
use crate::topology::{PartSpec, Topology};
use crate::verbs_endpoint::address::PeerInfo;
use crate::verbs_endpoint::{LocalPort, PortOptions, Unconnected};

/// Returns the point of a joint operation with these axes.
fn spec(pattern: Pattern, axes: impl IntoIterator<Item = axis::Axis>) -> PartSpec {
    let settings = axes.into_iter().fold(Settings::default(), Settings::axis);
    let plan = Plan::new("joint", "Joint").experiment("one", pattern, settings);
    resolve(&plan, &Options::default()).unwrap().points.remove(0).topology().parts.remove(0)
}

fn collective(operation: Collective, ranks: u32, ways: u32, size_bytes: u64) -> PartSpec {
    let axes = [
        axis::COLLECTIVE.value(operation),
        axis::RANKS.value(ranks),
        axis::WAYS.value(ways),
        axis::SIZE_BYTES.value(size_bytes),
    ];
    spec(Pattern::COLLECTIVE, axes)
}

/// Connects the ranks of a part and runs `body` on each; returns the results by rank. No memory is
/// freed before all ranks have finished.
fn each<T: Send>(spec: &PartSpec, body: impl Fn(u32, &mut VerbsEndpoint) -> T + Sync) -> Vec<T> {
    let ranks = spec.links.ranks();
    let told = Mutex::new(vec![None; ranks as usize]);
    let barrier = Barrier::new(ranks as usize);
    let one = |rank: u32| {
        let context = verbs::devices(&softdev::PROVIDER).unwrap()[0].open().unwrap();
        let port = Arc::new(LocalPort::find(&context, PortOptions::default()).unwrap());
        let rank_clock = RankClock::new(Clock::monotonic(), None);
        let own = Unconnected::new(&context, &port, spec, rank, rank_clock.clock).unwrap();
        let placement = LocalPlacement::new(&Topology::of_one(spec.clone()), rank, &rank_clock).unwrap();
        let params: Vec<_> = (0..ranks).map(|other| own.offer().params(other).cloned()).collect();
        told.lock().unwrap()[rank as usize] =
            Some((placement.info().clone(), own.offer().address.clone(), params));
        barrier.wait();
        let others: Vec<PeerInfo> = told
            .lock()
            .unwrap()
            .iter()
            .flatten()
            .map(|(info, address, params)| PeerInfo {
                info: info.clone(),
                address: Some(address.clone()),
                params: params[rank as usize].clone(),
            })
            .collect();
        let mut endpoint = own.connect(&others, true).unwrap();
        endpoint.start(60.0).unwrap();
        let done = body(rank, &mut endpoint);
        endpoint.stop();
        barrier.wait();
        done
    };
    thread::scope(|scope| {
        let threads: Vec<_> = (0..ranks).map(|rank| scope.spawn(move || one(rank))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}

/// Makes some calls, and verifies the last one.
fn call(endpoint: &mut VerbsEndpoint, calls: u32) -> Result<(), Error> {
    for _ in 0..calls {
        endpoint.call()?;
    }
    endpoint.meet()?;
    endpoint.clear()?;
    endpoint.meet()?;
    endpoint.call()?;
    endpoint.verify()
}

fn prepared(endpoint: &mut VerbsEndpoint) -> Result<(), Error> {
    let joint = endpoint.origin.spec.joint.unwrap();
    endpoint.prepare(&joint)
}

#[test]
fn nobody_leaves_a_barrier_before_the_last_has_come_and_writes_are_counted() {
    const CALLS_MADE: usize = 10;
    for ranks in 2..=8 {
        for ways in 1..=4 {
            let stamps = each(&collective(Collective::Barrier, ranks, ways, 0), |rank, endpoint| {
                prepared(endpoint).unwrap();
                let clock = endpoint.clock();
                let stamps: Vec<[u64; 2]> = (0..CALLS_MADE)
                    .map(|made| {
                        // In each call another rank is late.
                        let late = made as u32 % ranks == rank;
                        let until = Ticks(clock.now().0 + clock.ticks(Duration::from_micros(300)));
                        while late && clock.now() < until {
                            thread::yield_now();
                        }
                        let begin = clock.now().0;
                        endpoint.call().unwrap();
                        [begin, clock.now().0]
                    })
                    .collect();
                (stamps, endpoint.counters())
            });
            for made in 0..CALLS_MADE {
                let last = stamps.iter().map(|(of, _)| of[made][0]).max();
                let first = stamps.iter().map(|(of, _)| of[made][1]).min();
                assert!(first >= last, "{ranks} ranks, {ways} ways: a rank left before the last had come");
            }
            let sum = |name: &str| stamps.iter().map(|(_, counters)| counters[name]).sum::<u64>();
            let known = |round: u32| u64::from(ways + 1).pow(round);
            let others = u64::from(ranks - 1);
            let rounds = (0..).take_while(|round| known(*round) <= others);
            let of_call: u64 = rounds.map(|round| u64::from(ways).min(others / known(round))).sum();
            assert_eq!(sum(WRITES), of_call * sum(CALLS), "{ranks} ranks, {ways} ways");
        }
    }
}

#[test]
fn every_operation_brings_what_it_should() {
    for ranks in [1, 2, 3, 4] {
        for operation in [Collective::Allgather, Collective::Allreduce] {
            for algorithm in [None, Some(Algorithm::Ring)] {
                for size in [0, 8, 4096] {
                    let mut spec = collective(operation, ranks, 1, size);
                    if let Some(crate::endpoint::collectives::Joint::Collective(collective)) = &mut spec.joint
                    {
                        collective.algorithm = algorithm;
                    }
                    for done in
                        each(&spec, |_, endpoint| prepared(endpoint).and_then(|()| call(endpoint, 300)))
                    {
                        done.unwrap();
                    }
                }
            }
        }
    }
}

#[test]
fn sides_come_to_the_neighbours_inline_or_not() {
    for grid in ["1x1", "1x2", "2x1", "2x2"] {
        for (values, inline) in [(0, true), (1, true), (7, false), (1024, false)] {
            let axes = [
                axis::GRID.value(grid.parse().unwrap()),
                axis::SIDE_VALUES.value(values),
                axis::INLINE.value(inline),
            ];
            for done in each(&spec(Pattern::HALO, axes), |_, endpoint| {
                prepared(endpoint).and_then(|()| call(endpoint, 300))
            }) {
                done.unwrap();
            }
        }
    }
}

#[test]
fn a_rank_that_gives_something_else_makes_a_wrong_result() {
    for operation in [Collective::Allgather, Collective::Allreduce] {
        let spoilt = |spoils: bool| {
            each(&collective(operation, 3, 1, 16), |rank, endpoint| {
                prepared(endpoint).unwrap();
                if let (true, 1, Some(joined)) = (spoils, rank, &mut endpoint.joined) {
                    joined.measured.given[3] ^= 0x40;
                }
                call(endpoint, 3).map_err(|error| error.to_string())
            })
        };
        assert!(spoilt(false).iter().all(Result::is_ok));
        for error in spoilt(true).into_iter().map(Result::unwrap_err) {
            assert!(error.contains("brought a wrong result to rank"), "{error}");
        }
    }
}

#[test]
fn ranks_agree_on_numbers() {
    for ranks in [1, 2, 5] {
        let heard = each(&collective(Collective::Barrier, ranks, 1, 0), |rank, endpoint| {
            endpoint.meet().unwrap();
            let largest = endpoint.largest(100 + u64::from(rank)).unwrap();
            [largest, endpoint.hear(7 + 1000 * u64::from(rank)).unwrap()]
        });
        assert!(heard.iter().all(|heard| *heard == [99 + u64::from(ranks), 7]), "{heard:?}");
    }
}

#[test]
fn numbers_between_two_ranks_come_in_order_whatever_others_do() {
    const ROUNDS: u64 = 5;
    const GIVEN: u64 = 33;
    for ranks in [2, 3] {
        each(&collective(Collective::Barrier, ranks, 1, 0), |rank, endpoint| {
            for round in 0..ROUNDS {
                if rank == 0 {
                    for other in 1..ranks {
                        (0..GIVEN).for_each(|number| endpoint.give(other, round * GIVEN + number).unwrap());
                        assert_eq!(endpoint.take(other).unwrap(), round + u64::from(other));
                    }
                } else {
                    let taken: Vec<u64> = (0..GIVEN).map(|_| endpoint.take(0).unwrap()).collect();
                    assert_eq!(taken, (round * GIVEN..(round + 1) * GIVEN).collect::<Vec<_>>());
                    endpoint.give(0, round + u64::from(rank)).unwrap();
                }
                endpoint.swap((rank + 1) % ranks, (rank + ranks - 1) % ranks).unwrap();
            }
        });
    }
}
