use measure::samples::RawSamples;

use super::*;
use crate::endpoint::wire::Wire;

const COUNT: Count = Count { calls: 8, warmup: 3, batches: 20 };

/// Times a step at one rank while the other answers; returns the number of samples and of
/// incomplete batches.
fn timed(step: Step) -> (usize, u64) {
    let [mut zero, mut one] = Wire::pair(&[], |_| {});
    let (ours, theirs) = if step.rank() == 0 { (&mut zero, &mut one) } else { (&mut one, &mut zero) };
    let (takes, gives) = if step.is_of_receiver() { (1, COUNT.calls) } else { (COUNT.calls, 1) };
    let mut samples = RawSamples::new(100).unwrap();
    let is_answered = step.has_messages();
    let incomplete = std::thread::scope(|scope| {
        if is_answered {
            scope.spawn(move || answer(theirs, takes, gives).unwrap());
        }
        overhead(ours, &mut samples, step, is_answered, COUNT).unwrap()
    });
    assert_eq!(zero.left() + one.left(), 0, "{step:?} leaves messages behind");
    (samples.len(), incomplete)
}

#[test]
fn every_batch_that_counts_is_recorded_and_nothing_is_left() {
    for step in Step::OF_VERBS.into_iter().filter(|step| step.is_hot()) {
        let (samples, incomplete) = timed(step);
        assert_eq!(samples, 20, "{step:?}");
        // Only a poll can find nothing.
        let polls = matches!(step, Step::PollReceive);
        assert!(polls || incomplete == 0, "{step:?}: {incomplete}");
    }
}

/// A step of which every other batch finds one completion less.
struct Short {
    calls: u32,
    turn: u32,
    left: Vec<u32>,
}

impl Batch for Short {
    fn prepare(&mut self) -> Result<(), Error> {
        self.turn += 1;
        Ok(())
    }

    fn run(&mut self) -> Result<u32, Error> {
        Ok(self.calls - self.turn % 2)
    }

    fn finish(&mut self, done: u32) -> Result<(), Error> {
        self.left.push(self.calls - done);
        Ok(())
    }
}

#[test]
fn an_incomplete_batch_is_counted_and_not_recorded() {
    let mut short = Short { calls: 8, turn: 0, left: Vec::new() };
    let mut samples = RawSamples::new(100).unwrap();
    let incomplete = time(&mut short, &mut samples, Clock::monotonic(), COUNT).unwrap();
    assert_eq!((samples.len(), incomplete, short.turn), (20, 23, 46));
    assert_eq!(&short.left[..4], [1, 0, 1, 0], "an incomplete batch is cleaned up as well");
}

#[test]
fn a_lost_message_ends_the_point_with_a_sentence() {
    let [mut zero, mut one] = Wire::pair(&[(false, 5)], |_| {});
    zero.give_up_after(Duration::from_millis(200));
    one.give_up_after(Duration::from_millis(200));
    let mut samples = RawSamples::new(100).unwrap();
    std::thread::scope(|scope| {
        let them = scope.spawn(move || answer(&mut one, COUNT.calls, 1));
        let error = overhead(&mut zero, &mut samples, Step::PostSend, true, COUNT).unwrap_err();
        assert!(matches!(error, Error::Deadline { .. }), "{error}");
        assert!(matches!(them.join().unwrap(), Err(Error::Deadline { .. })));
    });
}
