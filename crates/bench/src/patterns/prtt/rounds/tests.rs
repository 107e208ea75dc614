use measure::clock::Clock;
use measure::samples::{RawSamples, Scale};

use super::*;
use crate::endpoint::wire::Wire;

/// Measures over a wire between threads; returns the samples, in ns.
fn measured(burst: Burst, warmup: u64, length: Length) -> Vec<u64> {
    let [mut zero, mut one] = Wire::pair(&[], |_| {});
    let mut samples = RawSamples::new(100_000).unwrap();
    std::thread::scope(|scope| {
        let zero = &mut zero;
        let one = &mut one;
        scope.spawn(move || answer(one, burst.messages).unwrap());
        prtt(zero, &mut samples, burst, warmup, length).unwrap();
    });
    assert_eq!(zero.left() + one.left(), 0, "messages are left behind");
    samples.finish(&Clock::monotonic(), Scale::Whole).raw().unwrap().to_vec()
}

#[test]
fn every_round_after_the_warm_up_is_a_sample() {
    for messages in [1, 2, 16] {
        let burst = Burst { messages, pause: Duration::ZERO };
        assert_eq!(measured(burst, 3, Length::Iterations(20)).len(), 20);
        assert_eq!(measured(burst, 0, Length::Iterations(1)).len(), 1);
    }
}

#[test]
fn rank_0_ends_a_time_that_is_over() {
    let burst = Burst { messages: 4, pause: Duration::ZERO };
    assert!(!measured(burst, 1, Length::Duration(0.02)).is_empty());
}

#[test]
fn a_round_has_a_pause_between_its_messages_and_none_around_them() {
    let pause = Duration::from_millis(3);
    let samples = measured(Burst { messages: 5, pause }, 0, Length::Iterations(4));
    assert!(samples.iter().all(|ns| *ns >= 4 * 3_000_000), "{samples:?}");
    // A single message has no pause: one would take longer than this test.
    let alone = Burst { messages: 1, pause: Duration::from_secs(3600) };
    assert_eq!(measured(alone, 1, Length::Iterations(4)).len(), 4);
}

#[test]
fn a_lost_message_or_answer_ends_both_ends_with_a_sentence() {
    // Lost is a message of the burst of 4, the last message of the point among them, or an answer.
    for (lost, is_heard) in [(5, false), (7, false), (0, true)] {
        let [mut zero, mut one] = Wire::pair(&[(false, lost)], |_| {});
        let patience = Duration::from_millis(200);
        zero.give_up_after(patience);
        one.give_up_after(patience);
        let burst = Burst { messages: if is_heard { 1 } else { 4 }, pause: Duration::ZERO };
        let mut samples = RawSamples::new(10).unwrap();
        std::thread::scope(|scope| {
            let them = scope.spawn(move || answer(&mut one, burst.messages));
            let error = prtt(&mut zero, &mut samples, burst, 0, Length::Iterations(2)).unwrap_err();
            assert!(matches!(error, Error::Deadline { .. }), "{error}");
            assert!(matches!(them.join().unwrap(), Err(Error::Deadline { .. })), "{lost}");
        });
    }
}
