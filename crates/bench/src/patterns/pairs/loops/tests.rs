//! Pairs over wires between threads.

use std::time::Duration;

use super::*;
use crate::barrier::Barrier;
use crate::endpoint::wire::Wire;
use crate::pattern::answer::answer;
use crate::pattern::times::Times;
use crate::shared::Shared;

/// Runs the senders of `count` pairs and their peers, each on a thread; returns the results of the
/// senders.
fn with_pairs<T: Send>(
    count: usize,
    sender: impl Fn(usize, &mut Wire, &mut Barrier) -> T + Sync,
    peer: impl Fn(&mut Wire) + Sync,
) -> Vec<T> {
    let own = Shared::offer("rdmascope-test", Barrier::lines(count)).unwrap();
    let handle = own.handle().unwrap();
    let others: Vec<_> = (1..count).map(|_| Shared::open(&handle, Barrier::lines(count)).unwrap()).collect();
    let sender = &sender;
    let peer = &peer;
    std::thread::scope(|scope| {
        let senders = std::iter::once(own).chain(others).enumerate().map(|(index, memory)| {
            let [mut us, mut them] = Wire::pair(&[], |_| ());
            scope.spawn(move || peer(&mut them));
            scope.spawn(move || sender(index, &mut us, &mut Barrier::new(memory, count, index)))
        });
        let senders: Vec<_> = senders.collect();
        senders.into_iter().map(|sender| sender.join().unwrap()).collect()
    })
}

#[test]
fn pairs_begin_each_message_together() {
    const LATE: Duration = Duration::from_millis(20);
    let done = with_pairs(
        3,
        |index, wire, barrier| {
            let mut times = Times::default();
            let mut skews = Times::default();
            if index == 2 {
                // The others wait for a sender that is late to the first timed round; the wait
                // counts for no latency.
                std::thread::sleep(LATE);
            }
            bounce(wire, barrier, &mut times, &mut skews, false, 1, 5).unwrap();
            (times.0.len(), skews.0.len())
        },
        |wire| answer(wire).unwrap(),
    );
    assert_eq!(done, [(5, 5), (5, 0), (5, 0)], "the first leads, and records the skews");
}

#[test]
fn a_flood_goes_on_until_all_are_done() {
    let done = with_pairs(
        2,
        |index, wire, barrier| {
            let mut progress = Progress::new();
            let messages = if index == 0 { 100 } else { 3000 };
            let burst = flood(wire, barrier, &mut progress, 7, Length::Iterations(messages)).unwrap();
            assert!(burst.messages >= messages && burst.total > burst.messages && burst.end > burst.begin);
            let seen = progress.into_seen();
            assert_eq!(seen[0], (burst.begin.0, 0));
            assert!(seen.last().unwrap().1 >= burst.messages - 64);
            barrier.have_all_finished()
        },
        |wire| assert!(drain(wire, 7).unwrap() > 100),
    );
    assert_eq!(done, [true, true]);
}

#[test]
fn a_flood_for_a_time_takes_that_time() {
    const TIME: Duration = Duration::from_millis(30);
    let done = with_pairs(
        2,
        |_, wire, barrier| {
            let clock = wire.clock();
            let burst =
                flood(wire, barrier, &mut Progress::new(), 0, Length::Duration(TIME.as_secs_f64())).unwrap();
            burst.end.since(burst.begin) >= clock.ticks(TIME)
        },
        |wire| assert!(drain(wire, 0).unwrap() > 0),
    );
    assert_eq!(done, [true, true]);
}
