//! Messages at a set rate over wires between threads.

use std::time::{Duration, Instant};

use super::*;
use crate::endpoint::wire::Wire;
use crate::pattern::answer::answer as answer_all;
use crate::pattern::times::Times as Samples;

const PERIOD: Duration = Duration::from_millis(2);
/// A limit that is never reached.
const LIMIT: Duration = Duration::from_secs(30);
const STALL: Duration = Duration::from_millis(30);

/// The times of messages in ms: response, rtt and lateness of each; and how the rate was kept.
fn asked(window: usize, messages: u64, warmup: u64, stalls_at: u64) -> ([Vec<f64>; 3], RateKept) {
    let [mut us, mut them] = Wire::pair(&[], |_| ());
    let clock = us.clock();
    let period = clock.ticks(PERIOD) as f64;
    let schedule =
        Schedule { period, warmup, messages, window, fetches: false, limit: LIMIT, is_reliable: true };
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for message in 0.. {
                let mark = them.receive().unwrap();
                if message == stalls_at {
                    std::thread::sleep(STALL);
                }
                them.send(mark).unwrap();
                if mark == Mark::Last {
                    return;
                }
            }
        });
        let [mut response, mut rtt, mut lateness] = [(); 3].map(|()| Samples::default());
        // In the program, one recorder is of another type.
        let mut times = Times { response: &mut response, rtt: &mut rtt, lateness: &mut lateness };
        let kept = ask(&mut us, &mut times, &schedule).unwrap();
        let ms = |times: Samples| times.0.iter().map(|ticks| clock.ns_f64(*ticks) / 1e6).collect();
        ([ms(response), ms(rtt), ms(lateness)], kept)
    })
}

/// The shortest possible time of a message from when it was due, `after` messages after a stall, in
/// ms.
fn least(after: usize) -> f64 {
    (STALL.as_secs_f64() - after as f64 * PERIOD.as_secs_f64()) * 1e3
}

#[test]
fn who_stalls_is_not_forgiven() {
    let ([response, rtt, lateness], _) = asked(1000, 20, 3, 8);
    assert_eq!([response.len(), rtt.len(), lateness.len()], [20; 3]);
    // Message 8 is the sixth that counts. Messages that were due during the stall were posted, and
    // waited for it, too.
    for after in 0..10 {
        assert!(response[5 + after] > least(after) - 0.1, "{after}: {response:?}");
        assert!(rtt[5 + after] > least(after) - lateness[5 + after] - 0.1, "{after}: {rtt:?}");
    }
}

#[test]
fn a_message_for_which_there_is_no_room_is_late_and_timed_from_when_it_was_due() {
    let ([response, rtt, lateness], kept) = asked(1, 20, 3, 8);
    // The next message could not even be posted: its round trip is short, but it was due long ago.
    for after in 1..10 {
        assert!(response[5 + after] > least(after) - 0.1, "{after}: {response:?}");
        assert!(lateness[5 + after] > least(after) - 0.1, "{after}: {lateness:?}");
    }
    assert!(kept.late >= 12, "{kept:?}");
    for (message, response) in response.iter().enumerate() {
        let parts = rtt[message] + lateness[message];
        assert!((response - parts).abs() < 1e-3, "{message}: {response} {parts}");
    }
}

#[test]
fn the_rate_is_the_one_that_was_set() {
    let begin = Instant::now();
    let ([response, ..], kept) = asked(1000, 50, 5, u64::MAX);
    assert_eq!(response.len(), 50);
    assert!(begin.elapsed() >= 54 * PERIOD);
    assert!(kept.posts[1] > kept.posts[0] && kept.end > kept.posts[1], "{kept:?}");
    assert!(begin.elapsed() < LIMIT, "{:?}", begin.elapsed());
}

/// A point with a thousand times the rate that the peer can answer does not take a thousand times
/// as long.
#[test]
fn who_cannot_keep_up_is_asked_no_longer_than_the_limit() {
    const ANSWER: Duration = Duration::from_millis(2);
    let [mut us, mut them] = Wire::pair(&[], |_| ());
    let period = us.clock().ticks(ANSWER) as f64 / 1000.0;
    let limit = Duration::from_millis(500);
    let schedule = Schedule {
        period,
        warmup: 50_000,
        messages: 100_000,
        window: 2,
        fetches: false,
        limit,
        is_reliable: true,
    };
    let begin = Instant::now();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            while them.receive().unwrap() == Mark::More {
                std::thread::sleep(ANSWER);
                them.send(Mark::More).unwrap();
            }
            them.send(Mark::Last).unwrap();
        });
        let [mut response, mut rtt, mut lateness] = [(); 3].map(|()| Samples::default());
        let mut times = Times { response: &mut response, rtt: &mut rtt, lateness: &mut lateness };
        let kept = ask(&mut us, &mut times, &schedule).unwrap();
        assert!((2..500).contains(&kept.messages), "{kept:?}");
        let counts = [response, rtt, lateness].map(|times| times.0.len() as u64);
        assert_eq!(counts, [kept.messages; 3]);
        assert_eq!(kept.late, kept.messages, "{kept:?}");
        // Except messages that found two answers at once.
        assert!(kept.waited > kept.messages / 2, "{kept:?}");
    });
    // The warm-up would have taken 100 s.
    assert!((limit..60 * limit).contains(&begin.elapsed()), "{:?}", begin.elapsed());
}

/// The fourth message is lost: later answers would be taken for answers to other messages.
#[test]
fn a_message_that_is_lost_ends_it() {
    let lossy = |is_reliable: bool, patience: Duration| {
        let [mut us, mut them] = Wire::pair(&[(false, 3)], |_| ());
        us.give_up_after(patience);
        them.give_up_after(patience);
        let schedule = Schedule {
            period: 1e5,
            warmup: 0,
            messages: 10,
            window: 4,
            fetches: false,
            limit: LIMIT,
            is_reliable,
        };
        std::thread::scope(|scope| {
            scope.spawn(move || drop(answer_all(&mut them)));
            let [mut response, mut rtt, mut lateness] = [(); 3].map(|()| Samples::default());
            let mut times = Times { response: &mut response, rtt: &mut rtt, lateness: &mut lateness };
            ask(&mut us, &mut times, &schedule).unwrap_err()
        })
    };
    assert!(matches!(lossy(true, Duration::from_millis(300)), Error::Deadline { .. }));
    let error = lossy(false, Duration::from_secs(4));
    assert!(matches!(error, Error::NotAnswered { answered: 9, sent: 10 }), "{error}");
}

/// Where answers carry numbers, a lost message costs only its own times: one in the middle, which
/// must not hold its room for ever, and the very last.
#[test]
fn a_message_that_is_lost_is_counted_where_answers_say_to_what_they_are() {
    let [mut us, mut them] = Wire::pair(&[(false, 3), (false, 11), (false, 39)], |_| ());
    us.count_to(64);
    them.count_to(64);
    let clock = us.clock();
    let period = Duration::from_millis(1);
    let schedule = Schedule {
        period: clock.ticks(period) as f64,
        warmup: 5,
        messages: 35,
        window: 4,
        fetches: false,
        limit: LIMIT,
        is_reliable: false,
    };
    let [mut response, mut rtt, mut lateness] = [(); 3].map(|()| Samples::default());
    let kept = std::thread::scope(|scope| {
        scope.spawn(|| answer(&mut them, period).unwrap());
        let mut times = Times { response: &mut response, rtt: &mut rtt, lateness: &mut lateness };
        ask(&mut us, &mut times, &schedule).unwrap()
    });
    // The lost message of the warm-up does not count.
    assert_eq!((kept.messages, kept.lost), (35, 2));
    assert_eq!([response.0.len(), rtt.0.len(), lateness.0.len()], [33, 33, 35]);
    assert!(clock.ns(kept.end.saturating_sub(kept.posts[1])) < 1_000_000_000, "{kept:?}");
    assert!(response.0.iter().all(|ticks| clock.ns(*ticks) < 1_000_000_000), "{:?}", response.0);
}

#[test]
fn answers_are_told_apart_by_the_numbers_of_what_they_answer() {
    let mut under_way = UnderWay::new(4, 16);
    let post = |under_way: &mut UnderWay, at: u64| under_way.sent.push_back(Some([at, at]));
    (0..4).for_each(|at| post(&mut under_way, at));
    assert!(!under_way.has_room());
    assert_eq!(under_way.settle(Some(2)), Some((2, [2, 2])));
    assert_eq!(under_way.settle(Some(2)), None, "it came twice");
    assert_eq!(under_way.lose_overtaken(), Some(0));
    assert_eq!(under_way.settle(Some(0)), None, "it came too late");
    assert_eq!(under_way.settle(Some(1)), Some((1, [1, 1])));
    assert_eq!((under_way.settled, under_way.sent.len()), (3, 1));
    assert_eq!(under_way.lose_overtaken(), None, "nothing after it is answered");
    // The numbers start again.
    for at in 4..20 {
        post(&mut under_way, at);
        assert_eq!(under_way.settle(Some((at - 1) % 16)), Some((at - 1, [at - 1; 2])));
    }
    post(&mut under_way, 20);
    assert_eq!(under_way.settle(Some(4)), Some((20, [20, 20])));
    assert_eq!(under_way.lose_all(0), Some(1));
    assert!(under_way.sent.is_empty() && under_way.settled == 21);
    // With too few numbers to distinguish late answers from those to outstanding messages, answers
    // count in their order.
    let mut in_order = UnderWay::new(4, 15);
    post(&mut in_order, 7);
    assert_eq!((in_order.numbers, in_order.settle(Some(9))), (0, Some((0, [7, 7]))));
}

#[test]
fn a_load_lasts_from_when_all_are_at_it_until_it_is_told() {
    const MEASURED: Duration = Duration::from_millis(100);
    let [mut root, mut told] = Wire::pair(&[], |_| ());
    let [mut loads, loaded] = Wire::pair(&[], |_| ());
    let clock = root.clock();
    std::thread::scope(|scope| {
        let loader = scope.spawn(move || {
            let mut progress = Progress::new();
            let burst = load(&mut loads, &mut told, &mut progress).unwrap();
            (burst, progress.into_seen())
        });
        begin(&mut root).unwrap();
        let began = clock.now();
        assert!(loaded.left() > 0, "it answers when it sends");
        std::thread::sleep(MEASURED);
        let ended = clock.now();
        end(&mut root).unwrap();
        let (burst, seen) = loader.join().unwrap();
        assert!(burst.begin <= began && burst.end.0 + clock.ticks(MEASURED) > ended.0, "{burst:?}");
        assert!(burst.messages > 0 && burst.total > burst.messages, "{burst:?}");
        assert_eq!(seen[0], (burst.begin.0, 0));
        assert!(seen.len() > 1 && loaded.left() as u64 == burst.total);
    });
}
