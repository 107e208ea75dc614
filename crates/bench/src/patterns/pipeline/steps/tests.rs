use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Release};
use std::thread;

use measure::clock::Clock;

use super::*;
use crate::endpoint::wire::Wire;

/// The step before which the generator stops for a while, and for how long.
type Away = Option<(u64, Duration)>;

/// A timer that a test controls.
struct Told {
    clock: Clock,
    away: Away,
    /// Steps that pass together, by the first of them; every other step passes by itself.
    stalls: Vec<(u64, u64)>,
    begin: u64,
}

impl Timer for Told {
    fn start(&mut self) -> Result<(), Error> {
        self.begin = self.clock.now().0;
        Ok(())
    }

    fn wait(&mut self, step: u64, mut turn: impl FnMut(Ticks) -> Result<(), Error>) -> Result<Tick, Error> {
        turn(self.clock.now())?;
        if let Some((_, time)) = self.away.filter(|(before, _)| *before == step) {
            thread::sleep(time);
        }
        let passed = self.stalls.iter().find(|(first, _)| *first == step).map_or(1, |(_, passed)| *passed);
        let due = self.begin + 1000 * step;
        Ok(Tick { due, now: Ticks(due + 1000 * (passed - 1) + 5), passed, is_behind: false })
    }

    fn period_ns(&self) -> f64 {
        1000.0
    }
}

/// Values that contain the number of their step.
struct Steps([f64; 2]);

impl Values for Steps {
    fn at(&mut self, step: u64) -> &[f64] {
        self.0 = [step as f64, -(step as f64)];
        &self.0
    }
}

#[derive(Default)]
struct Seen {
    generated: Vec<(u64, Tick, bool)>,
    received: Vec<Received>,
    start_message: [u64; 3],
    /// Steps that the generator has had.
    passed: Arc<AtomicU64>,
    /// Steps that the receiver awaits before it takes the first sample.
    awaited: u64,
}

impl SourceLog for Seen {
    fn generated(&mut self, step: u64, tick: &Tick, values: &[f64], is_transmitted: bool) {
        assert_eq!(values, [step as f64, -(step as f64)]);
        self.generated.push((step, *tick, is_transmitted));
        self.passed.store(step + 1, Release);
    }
}

impl TargetLog for Seen {
    fn started(&mut self, words: [u64; 3]) {
        self.start_message = words;
        while self.passed.load(Acquire) < self.awaited {
            thread::yield_now();
        }
    }

    fn received<E: Endpoint>(&mut self, sample: &Received, endpoint: &E) -> Result<(), Error> {
        let values = [endpoint.get(3)?, endpoint.get(4)?].map(f64::from_bits);
        assert_eq!(values, [sample.step as f64, -(sample.step as f64)]);
        self.received.push(*sample);
        Ok(())
    }
}

/// Runs both ranks; returns what they have seen.
fn run(ends: [Wire; 2], stalls: &[(u64, u64)], is_reliable: bool) -> (Seen, Seen) {
    run_behind(ends, stalls, is_reliable, 0)
}

/// As [`run`], with a receiver that starts when `awaited` steps have passed.
fn run_behind(mut ends: [Wire; 2], stalls: &[(u64, u64)], is_reliable: bool, awaited: u64) -> (Seen, Seen) {
    let schedule = Schedule { is_reliable, ..SCHEDULE };
    run_at(&mut ends, stalls, None, &schedule, awaited)
}

const SCHEDULE: Schedule =
    Schedule { start_message: [7, 8, 9], steps: 100, period: Duration::from_micros(1), is_reliable: true };

/// As [`run_behind`], with a generator that stops for a while.
fn run_at(
    ends: &mut [Wire; 2],
    stalls: &[(u64, u64)],
    away: Away,
    schedule: &Schedule,
    awaited: u64,
) -> (Seen, Seen) {
    let passed = Arc::new(AtomicU64::new(0));
    let [source, target] = ends;
    thread::scope(|scope| {
        let source = scope.spawn(|| {
            let clock = source.clock();
            let mut timer = Told { clock, away, stalls: stalls.to_vec(), begin: 0 };
            let mut seen = Seen { passed: Arc::clone(&passed), ..Seen::default() };
            let mut watch = Watch::new(u64::MAX);
            generate(source, &mut timer, &mut Steps([0.0; 2]), &mut seen, &mut watch, schedule).unwrap();
            seen
        });
        let mut seen = Seen { passed: Arc::clone(&passed), awaited, ..Seen::default() };
        take(target, &mut seen, &mut Watch::new(u64::MAX), schedule).unwrap();
        (source.join().unwrap(), seen)
    })
}

#[test]
fn samples_say_when_they_were_due_and_what_they_are() {
    let (sent, taken) = run(Wire::pair(&[], |_| {}), &[], true);
    assert_eq!((sent.generated.len(), taken.received.len(), taken.start_message), (100, 100, [7, 8, 9]));
    for (step, ((number, tick, is_transmitted), sample)) in
        (0..).zip(sent.generated.iter().zip(&taken.received))
    {
        assert_eq!((*number, sample.step, *is_transmitted), (step, step, true));
        assert_eq!((sample.due, sample.submitted), (tick.due, tick.now.0));
        assert_eq!((tick.now.0 - tick.due, tick.passed), (5, 1));
    }
}

/// A receiver may have to post all its receives first: it takes no sample before, and loses none.
#[test]
fn nothing_is_taken_before_the_queue_is_full() {
    let mut ends = Wire::pair(&[], |_| {});
    ends[1].fill_first(1000);
    let (_, taken) = run_at(&mut ends, &[], None, &SCHEDULE, 0);
    assert_eq!((ends[1].unfilled(), taken.received.len()), (0, 100));
}

/// A generator that is late by seven steps generates the first of them late, and misses exactly the
/// others.
#[test]
fn a_stall_is_seen_in_the_samples_that_it_hits_and_in_no_other() {
    let (sent, taken) = run(Wire::pair(&[], |_| {}), &[(40, 7), (98, 50)], true);
    let steps: Vec<u64> = (0..=40).chain(47..=98).collect();
    assert_eq!(taken.received.iter().map(|sample| sample.step).collect::<Vec<_>>(), steps);
    assert_eq!(sent.generated.iter().map(|(step, ..)| *step).collect::<Vec<_>>(), steps);
    for sample in &taken.received {
        let late = match sample.step {
            40 => 6000,
            98 => 49_000,
            _ => 0,
        };
        assert_eq!(sample.submitted - sample.due, late + 5, "step {}", sample.step);
    }
}

/// Neither lost greetings, as of a rank that has not subscribed yet, nor lost samples keep the
/// ranks from meeting and parting.
#[test]
fn what_is_lost_keeps_nobody_waiting() {
    // Each word that is sent the first time, and the second.
    let words = Word::ALL.into_iter().filter(|word| *word != Word::Closed);
    let words = words.flat_map(|word| [1, 2].map(|time| (true, word.number(time).into())));
    // The first message is the start_message.
    let losses: Vec<_> = words.chain([(false, 1 + 3), (false, 1 + 99)]).collect();
    let (sent, taken) = run(Wire::pair(&losses, |_| {}), &[], false);
    assert_eq!((sent.generated.len(), taken.received.len()), (100, 98));
    assert!(taken.received.iter().all(|sample| ![3, 99].contains(&sample.step)));
    // The point ends even though every word of the end is lost.
    let closings: Vec<_> = (0..CLOSINGS).map(|time| (true, Word::Closing.number(time).into())).collect();
    let (_, taken) = run(Wire::pair(&closings, |_| {}), &[], false);
    assert_eq!(taken.received.len(), 100);
}

/// Where the word of the end may be lost, too, the receiver waits for a generator that stops for
/// long, as long as steps are due.
#[test]
fn a_source_that_comes_back_is_still_heard() {
    let schedule = Schedule { period: Duration::from_millis(20), is_reliable: false, ..SCHEDULE };
    let away = Some((50, QUIET + Duration::from_millis(300)));
    let (_, taken) = run_at(&mut Wire::pair(&[], |_| {}), &[], away, &schedule, 0);
    assert_eq!(taken.received.len(), 100);
}

#[test]
fn a_sample_without_room_is_not_transmitted_and_not_waited_for() {
    let [mut source, target] = Wire::pair(&[], |_| {});
    source.hold_at_most(3);
    let (sent, taken) = run_behind([source, target], &[], true, 50);
    let transmitted: Vec<u64> =
        sent.generated.iter().filter(|(.., is)| *is).map(|(step, ..)| *step).collect();
    assert_eq!(sent.generated.len(), 100);
    assert!(transmitted.iter().filter(|step| **step < 50).count() <= 3, "{transmitted:?}");
    assert!(taken.received.iter().map(|sample| sample.step).eq(transmitted));
}
