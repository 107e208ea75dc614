//! The cost of measuring: of a stamp, and of the empty measuring loop.

use std::hint::black_box;

use super::Clock;
use crate::samples::{RawSamples, Recorder, Stamps};

/// The cost of the measurement itself, in ns: medians over many batches, so that interrupts do not
/// count.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StampCost {
    /// One time stamp.
    pub stamp_ns: f64,
    /// One turn of the measuring loop without a message: stamp, difference, store.
    pub empty_loop_ns: f64,
    /// The two stamps that the sender of a one-way message takes and stores by its number.
    pub one_way_ns: f64,
}

impl StampCost {
    /// Measures the costs on this machine.
    pub fn measure(clock: &Clock) -> Self {
        let stamp = batches(clock, || {
            for _ in 0..TURNS {
                black_box(clock.now());
            }
        });
        let empty_loop = batches(clock, {
            let mut samples = RawSamples::new(TURNS).expect("a batch is a few pages");
            move || empty_loop(clock, &mut samples)
        });
        let one_way = batches(clock, {
            let room = || Stamps::new(TURNS).expect("a batch is a few pages");
            let mut submitted = room();
            let mut completed = room();
            move || one_way(clock, &mut submitted, &mut completed)
        });
        Self { stamp_ns: stamp, empty_loop_ns: empty_loop, one_way_ns: one_way }
    }
}

/// The loop of a pattern without its messages.
fn empty_loop(clock: &Clock, samples: &mut RawSamples) {
    samples.clear();
    let mut last = clock.now();
    while !samples.is_full() {
        let now = clock.now();
        samples.record(now.since(last));
        last = now;
    }
    black_box(samples);
}

/// The work of a sender for a one-way latency, without the message.
fn one_way(clock: &Clock, submitted: &mut Stamps, completed: &mut Stamps) {
    for message in 0..TURNS as u64 {
        submitted.set(black_box(message), clock.now());
        completed.set(black_box(message), clock.now());
    }
    black_box((submitted, completed));
}

/// Median time of a turn over batches of [`TURNS`], in ns.
fn batches(clock: &Clock, mut batch: impl FnMut()) -> f64 {
    let mut per_turn_ns: Vec<f64> = (0..BATCHES)
        .map(|_| {
            let start = clock.now();
            batch();
            clock.ns_f64(clock.now().since(start)) / TURNS as f64
        })
        .collect();
    let (_, median, _) = per_turn_ns.select_nth_unstable_by(BATCHES / 2, f64::total_cmp);
    *median
}

/// Long enough that the two stamps around a batch do not count, short enough that most escape
/// interrupts.
const TURNS: usize = 1000;
const BATCHES: usize = 101;
