//! Ranks as threads of one process, each with separate mappings.

use std::sync::Arc;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::{Acquire, Release};
use std::thread;
use std::time::{Duration, Instant};

use measure::clock::Clock;
use rustix::time::Timespec;

use super::Unopened;
use super::bell::{self, Bell, MESSAGE, ROOM};
use super::endpoint::ShmemEndpoint;
use super::ring::{Emptier, Filler, Shape};
use crate::Error;
use crate::axis;
use crate::endpoint::conformance::{post_addressed, take_addressed, three};
use crate::endpoint::connecting::{DrivenEndpoint, PeerInfo, UnconnectedEndpoint};
use crate::endpoint::{Endpoint, Mark};
use crate::pattern::times::Times;
use crate::patterns::ping_pong::ping_pong;
use crate::patterns::stream::{Flow, stream};
use crate::placement::{LocalPlacement, RankInfo};
use crate::plan::{Options, Plan, Settings, resolve};
use crate::point::{Carrier, Length, Pattern, Poll};
use crate::rank_clock::RankClock;
use crate::shared::Shared;
use crate::topology::{PartSpec, Topology};

/// Returns memory of `lines` lines, mapped twice.
fn mapped_twice(lines: usize) -> [Arc<Shared>; 2] {
    let own = Shared::offer("rdmascope-test", lines).unwrap();
    let other = Shared::open(&own.handle().unwrap(), lines).unwrap();
    [Arc::new(own), Arc::new(other)]
}

/// Returns a point with messages of a size.
fn sized(pattern: Pattern, size: usize) -> PartSpec {
    let mut spec = spec(pattern, []);
    spec.message.size_bytes = size as u64;
    spec
}

/// Returns the byte at an offset of a cell.
fn byte(cell: u64, at: usize) -> u8 {
    (cell.wrapping_mul(31) as usize + at * 7) as u8
}

#[test]
fn what_is_filled_is_emptied_byte_by_byte_and_in_order() {
    for size in [1, 2, 56, 57, 1000, 8184, 100_000] {
        let shape = Shape::of(&sized(Pattern::PING_PONG, size));
        let [ours, theirs] = mapped_twice(shape.lines());
        let mut filler = Filler::new(&ours, 0, shape);
        let mut emptier = Emptier::new(&theirs, 0, shape);
        let length = size.min(shape.payload);
        let cells = 3 * shape.cells as u64 + 5;
        thread::scope(|scope| {
            scope.spawn(move || {
                for cell in 0..cells {
                    let part: Vec<u8> = (0..length).map(|at| byte(cell, at)).collect();
                    while !filler.fill(cell as u32, &part) {
                        thread::yield_now();
                    }
                }
            });
            let mut part = vec![0; length];
            for cell in 0..cells {
                while emptier.word().is_none() {
                    thread::yield_now();
                }
                assert_eq!(emptier.word(), Some(cell as u32), "{size}");
                emptier.empty(&mut part);
                let expected = (0..length).map(|at| byte(cell, at));
                assert!(part.iter().copied().eq(expected), "{size}: cell {cell}");
            }
            assert_eq!(emptier.word(), None);
        });
    }
}

#[test]
fn a_full_ring_takes_nothing_until_a_cell_is_emptied() {
    let shape = Shape::of(&sized(Pattern::PING_PONG, 100));
    let [ours, theirs] = mapped_twice(shape.lines());
    let mut filler = Filler::new(&ours, 0, shape);
    let mut emptier = Emptier::new(&theirs, 0, shape);
    for _ in 0..2 {
        let mut filled = 0;
        while filler.fill(7, &[1; 100]) {
            filled += 1;
        }
        assert_eq!(filled, shape.cells);
        emptier.empty(&mut [0; 100]);
        assert!(filler.has_room() && filler.fill(7, &[1; 100]) && !filler.has_room());
        (0..shape.cells).for_each(|_| emptier.empty(&mut [0; 100]));
        assert_eq!((emptier.word(), filler.emptied()), (None, filler.filled));
    }
}

/// Two threads take turns, each asleep until the other wakes it: one lost wake-up would take a
/// minute.
#[test]
fn who_sleeps_is_woken() {
    const TURNS: u32 = 5000;
    let minute = Timespec { tv_sec: 60, tv_nsec: 0 };
    let one = mapped_twice(bell::LINES);
    let other = mapped_twice(bell::LINES);
    let turn = AtomicU32::new(0);
    let began = Instant::now();
    let take_turns = |own: &Arc<Shared>, theirs: &Arc<Shared>, first: u32, what: u32| {
        let own = Bell::new(Arc::clone(own));
        let theirs = Bell::new(Arc::clone(theirs));
        let mut mine = first;
        while mine < TURNS {
            while turn.load(Acquire) < mine {
                own.sleep(what, &minute, || turn.load(Acquire) >= mine);
            }
            turn.store(mine + 1, Release);
            // A thread that sleeps for another event stays asleep.
            theirs.ring(4);
            theirs.ring(MESSAGE | ROOM);
            mine += 2;
        }
    };
    thread::scope(|scope| {
        scope.spawn(|| take_turns(&one[0], &other[1], 0, MESSAGE));
        scope.spawn(|| take_turns(&other[0], &one[1], 1, ROOM));
    });
    assert!(began.elapsed() < Duration::from_secs(50), "a thread was not woken: {:?}", began.elapsed());
}

fn spec(pattern: Pattern, axes: impl IntoIterator<Item = axis::Axis>) -> PartSpec {
    let settings = axes.into_iter().fold(Settings::default(), Settings::axis);
    let settings = settings.axis(axis::ENDPOINT.value(Carrier::Shmem));
    let plan = Plan::new("shmem", "Shared memory").experiment("one", pattern, settings);
    resolve(&plan, &Options::default()).unwrap().points.remove(0).topology().parts.remove(0)
}

fn info(spec: &PartSpec) -> RankInfo {
    let rank_clock = RankClock::new(Clock::monotonic(), None);
    LocalPlacement::new(&Topology::of_one(spec.clone()), 0, &rank_clock).unwrap().info().clone()
}

/// Connects all ranks of a point and runs the part of each within `limit_s` seconds; returns the
/// result of each.
fn run<T: Send>(
    spec: &PartSpec,
    limit_s: f64,
    part: impl Fn(u32, &mut ShmemEndpoint) -> Result<T, Error> + Sync,
) -> Vec<Result<T, Error>> {
    let halves: Vec<_> =
        (0..spec.links.ranks()).map(|rank| Unopened::new(spec, rank, Clock::monotonic()).unwrap()).collect();
    let info = info(spec);
    let told = |to: u32| {
        let one = |half: &Unopened| PeerInfo {
            info: info.clone(),
            address: Some(()),
            params: half.offer().params(to).cloned(),
        };
        halves.iter().map(one).collect::<Vec<_>>()
    };
    let all: Vec<_> = (0..spec.links.ranks()).map(told).collect();
    // All ranks are connected before one starts: a rank that finished first would unmap its memory.
    let ends: Vec<_> = halves.into_iter().zip(&all).map(|(half, told)| half.connect(told, false)).collect();
    let part = &part;
    thread::scope(|scope| {
        let threads = (0..).zip(ends).map(|(rank, end)| {
            scope.spawn(move || {
                let mut end = end?;
                end.start(limit_s)?;
                let done = part(rank, &mut end);
                end.stop();
                done
            })
        });
        let threads: Vec<_> = threads.collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}

/// Sizes of one line and one cell, of several cells, and of more than a ring.
const SIZES: [u64; 6] = [1, 57, 8184, 8185, 70_000, 1 << 20];

#[test]
fn messages_of_every_size_go_forth_and_back() {
    for poll in [Poll::Busy, Poll::Event] {
        for size in SIZES {
            let spec = spec(Pattern::PING_PONG, [axis::POLL.value(poll), axis::SIZE_BYTES.value(size)]);
            let ends = run(&spec, 30.0, |rank, end| {
                let mut samples = Times::default();
                ping_pong(end, &mut samples, rank == 0, 1, Length::Iterations(40))?;
                Ok(samples.0.len())
            });
            let counts: Vec<_> = ends.into_iter().map(Result::unwrap).collect();
            assert_eq!(counts, [40, 40], "{poll:?} {size}");
        }
    }
}

#[test]
fn floods_arrive_whole_one_way_and_both_ways() {
    for poll in [Poll::Busy, Poll::Event] {
        for size in SIZES {
            for both in [false, true] {
                let spec = spec(Pattern::STREAM, [axis::POLL.value(poll), axis::SIZE_BYTES.value(size)]);
                let messages = if size > 10_000 { 60 } else { 3000 };
                let ends = run(&spec, 60.0, |rank, end| {
                    let flow = match (both, rank) {
                        (true, _) => Flow::Both,
                        (false, 0) => Flow::Out,
                        (false, _) => Flow::In,
                    };
                    stream(end, flow, 5, Length::Iterations(messages), true)
                });
                let ends: Vec<_> = ends.into_iter().map(Result::unwrap).collect();
                assert_eq!(ends[0].0.unwrap().total, messages, "{poll:?} {size}");
                assert_eq!(ends[1].1.unwrap().total, messages, "{poll:?} {size}");
            }
        }
    }
}

#[test]
fn messages_are_numbered_and_greetings_told_from_them() {
    let spec = spec(Pattern::ONE_WAY, [axis::SIZE_BYTES.value(1), axis::POLL.value(Poll::Busy)]);
    let ends = run(&spec, 30.0, |rank, end| {
        if rank == 0 {
            for number in 0..600 {
                end.send(if number == 599 { Mark::Last } else { Mark::More })?;
            }
            end.send_sync_as(77)?;
            end.await_sync()?;
            return Ok((end.try_sent()?, 0));
        }
        for number in 0..600 {
            let arrival = loop {
                match end.try_receive()? {
                    Some(arrival) => break arrival,
                    None => end.idle()?,
                }
            };
            assert_eq!((arrival.number, arrival.is_greeting), (number, false));
            assert_eq!(arrival.mark == Mark::Last, number == 599);
        }
        end.await_sync_of(77)?;
        end.send_sync()?;
        Ok((0, 1))
    });
    let ends: Vec<_> = ends.into_iter().map(Result::unwrap).collect();
    assert_eq!(ends, [(600, 0), (0, 1)]);
}

#[test]
fn messages_go_to_the_rank_that_they_name_and_say_from_whom_they_are() {
    for poll in [Poll::Busy, Poll::Event] {
        let spec = three(&spec(Pattern::PING_PONG, [axis::POLL.value(poll)]).message);
        let ends = run(&spec, 30.0, |rank, end| {
            post_addressed(end, &spec, rank);
            take_addressed(end, &spec, rank);
            Ok(())
        });
        assert!(ends.iter().all(Result::is_ok), "{ends:?}");
    }
}

/// If only taken messages count, a message counts when the other rank has taken it.
#[test]
fn messages_are_sent_when_they_are_taken_where_that_counts() {
    let spec = spec(Pattern::STREAM, [axis::SIZE_BYTES.value(20_000), axis::POLL.value(Poll::Busy)]);
    let steps = std::sync::Barrier::new(2);
    let ends = run(&spec, 30.0, |rank, end| {
        if rank == 0 {
            (0..3).try_for_each(|_| end.send(Mark::More))?;
            let before = end.try_sent()?;
            steps.wait();
            steps.wait();
            return Ok([before, end.try_sent()?]);
        }
        steps.wait();
        end.receive()?;
        end.receive()?;
        steps.wait();
        Ok([0, 0])
    });
    assert_eq!(*ends[0].as_ref().unwrap(), [0, 2]);
}

#[test]
fn a_rank_that_says_nothing_ends_the_point_in_bounded_time() {
    for poll in [Poll::Busy, Poll::Event] {
        let spec = spec(Pattern::PING_PONG, [axis::POLL.value(poll)]);
        let ends = run(&spec, 0.3, |rank, end| if rank == 0 { end.receive().map(drop) } else { Ok(()) });
        let error = ends[0].as_ref().unwrap_err().to_string();
        assert!(error.contains("shared memory from rank 0 to rank 1"), "{error}");
    }
}

#[test]
fn ranks_of_other_hosts_and_memory_that_has_gone_are_no_way() {
    let spec = spec(Pattern::PING_PONG, []);
    let half = |rank| Unopened::new(&spec, rank, Clock::monotonic()).unwrap();
    let here = info(&spec);
    let params = half(1).offer().params(0).cloned();
    let elsewhere = serde_json::to_value(&here).unwrap().to_string();
    let boot = Clock::monotonic();
    let boot = measure::clock::Domain::of(&boot).boot_id.expect("Linux has one");
    let elsewhere: RankInfo = serde_json::from_str(&elsewhere.replace(&boot, "another")).unwrap();
    for (info, words) in [(elsewhere, "ranks of the same host only"), (here.clone(), "cannot be opened here")]
    {
        // The half that offered the memory is gone.
        let told = [
            PeerInfo { info: here.clone(), address: Some(()), params: None },
            PeerInfo { info, address: Some(()), params: params.clone() },
        ];
        let error = half(0).connect(&told, false).map(drop).unwrap_err();
        assert!(matches!(error, Error::Impossible { .. }) && error.to_string().contains(words), "{error}");
    }
}
