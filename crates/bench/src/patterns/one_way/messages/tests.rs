//! Both ranks over a wire that loses chosen messages.

use super::*;
use crate::endpoint::wire::Wire;

/// Numbers of messages and of bursts, in the order in which they were stamped.
#[derive(Default)]
struct Seen {
    received: Vec<u64>,
    answered: Vec<u64>,
}

impl Stamper for Seen {
    fn submitted(&mut self, _: u64, _: Ticks) {}
    fn completed(&mut self, _: u64, _: Ticks) {}
    fn received(&mut self, message: u64, _: Ticks, _: Option<Ticks>) {
        self.received.push(message);
    }
    fn answered(&mut self, burst: u64, _: Ticks) {
        self.answered.push(burst);
    }
}

/// The result of a run.
#[derive(Debug)]
struct Ran {
    /// Bursts that were answered, by the stamps of rank 0 and rank 1.
    answered: [Vec<u64>; 2],
    received: Vec<u64>,
    took: Duration,
    /// How often each rank slept.
    sleeps: [usize; 2],
}

/// Runs nine messages in bursts, and the exchanges after them.
fn run(burst: u64, pause: Duration, losses: &[(bool, u64)]) -> Ran {
    run_held(burst, pause, losses, None)
}

/// As [`run`], with a message that the end of its burst overtakes.
fn run_held(burst: u64, pause: Duration, losses: &[(bool, u64)], held: Option<u64>) -> Ran {
    let is_reliable = losses.is_empty() && pause.is_zero() && held.is_none();
    let pace = Pace { messages: 9, burst, pause, until_sent: false, is_reliable };
    let [mut one, mut other] = Wire::pair(losses, |_| {});
    held.into_iter().for_each(|number| one.hold(number));
    let clock = one.clock();
    let begin = clock.now();
    let (sender, receiver, sleeps) = std::thread::scope(|scope| {
        let receiver = scope.spawn(|| {
            let mut seen = Seen::default();
            let heard = take(&mut other, &mut seen, &mut Watch::new(u64::MAX), &pace).unwrap();
            let sleeps = other.sleeps();
            exchange(&mut other, false, AFTER..AFTER + 3, heard, &mut Vec::new()).unwrap();
            (seen, sleeps)
        });
        let mut seen = Seen::default();
        submit(&mut one, &mut seen, &mut Watch::new(u64::MAX), &pace).unwrap();
        let sleeps = one.sleeps();
        exchange(&mut one, true, AFTER..AFTER + 3, None, &mut Vec::new()).unwrap();
        let (receiver, theirs) = receiver.join().unwrap();
        (seen, receiver, [sleeps, theirs])
    });
    let answered = [sender.answered, receiver.answered];
    Ran { answered, received: receiver.received, took: clock_time(clock, begin), sleeps }
}

fn clock_time(clock: Clock, begin: Ticks) -> Duration {
    Duration::from_nanos(clock.ns(clock.now().since(begin)))
}

#[test]
fn every_burst_is_answered() {
    for (burst, bursts) in [(1, 9), (2, 5), (4, 3), (9, 1)] {
        let ran = run(burst, Duration::ZERO, &[]);
        let all: Vec<u64> = (0..bursts).collect();
        assert_eq!(ran.answered, [all.clone(), all], "bursts of {burst}");
        assert_eq!(ran.received, (0..9).collect::<Vec<_>>());
    }
}

/// A loss costs the stamps of the lost message and some hundred milliseconds, and nothing else.
#[test]
fn a_loss_costs_nothing_but_itself() {
    for (burst, losses, sender, receiver) in [
        // A message in the middle of a burst, the last of a burst, the last of the last burst.
        (3, &[(false, 1)][..], &[0, 1, 2][..], &[0, 1, 2][..]),
        (3, &[(false, 2)], &[0, 1, 2], &[1, 2]),
        (3, &[(false, 8)], &[0, 1, 2], &[0, 1]),
        // Whole bursts in the middle, and the last bursts.
        (1, &[(false, 3), (false, 4), (false, 5)], &[0, 1, 2, 6, 7, 8], &[0, 1, 2, 6, 7, 8]),
        (1, &[(false, 7), (false, 8)], &[0, 1, 2, 3, 4, 5, 6], &[0, 1, 2, 3, 4, 5, 6]),
        // Answers.
        (3, &[(true, 0)], &[1, 2], &[0, 1, 2]),
        (3, &[(true, 2)], &[0, 1], &[0, 1, 2]),
        // The last message of the last burst, and the closing after it.
        (1, &[(false, 8), (true, CLOSING as u64)], &[0, 1, 2, 3, 4, 5, 6, 7], &[0, 1, 2, 3, 4, 5, 6, 7]),
    ] {
        let ran = run(burst, Duration::ZERO, losses);
        assert_eq!(ran.answered, [sender, receiver], "{losses:?}");
        let lost = |number| losses.contains(&(false, number));
        assert_eq!(ran.received, (0..9).filter(|number| !lost(*number)).collect::<Vec<_>>(), "{losses:?}");
        assert!(ran.took < Duration::from_secs(8), "{losses:?}: {ran:?}");
        // A burst with a loss in the middle ends by itself.
        assert!(losses == [(false, 1)] || ran.took >= QUIET, "{losses:?}: {ran:?}");
        // One sleep for each message, and a few for each that was lost.
        assert!(ran.sleeps.iter().all(|sleeps| *sleeps <= 9 + 8 * losses.len()), "{losses:?}: {ran:?}");
    }
}

/// A message that arrives after the end of its burst is not lost.
#[test]
fn a_message_that_is_overtaken_is_not_lost() {
    for (burst, held) in [(3, 1), (3, 7), (9, 0), (9, 7)] {
        let ran = run_held(burst, Duration::ZERO, &[], Some(held));
        let mut received = ran.received.clone();
        received.sort_unstable();
        assert_eq!(received, (0..9).collect::<Vec<_>>(), "{burst} {held}");
        let bursts: Vec<u64> = (0..9 / burst).collect();
        assert_eq!(ran.answered, [bursts.clone(), bursts], "{burst} {held}");
    }
}

/// Where messages can be lost, a receiver sleeps as long as elsewhere: until the next message.
#[test]
fn nobody_wakes_in_a_pause_to_look_for_losses() {
    let pause = Duration::from_millis(150);
    for burst in [1, 9] {
        let ran = run(burst, pause, &[]);
        assert_eq!(ran.received.len(), 9);
        assert!(ran.took >= 8 * pause, "{ran:?}");
        assert!(ran.sleeps.iter().all(|sleeps| *sleeps <= 4 * 9), "bursts of {burst}: {ran:?}");
    }
}
