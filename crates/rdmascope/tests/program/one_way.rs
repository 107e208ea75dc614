//! `rdmascope one-way`: stamps are taken where they should be. Links are modelled with times that
//! are far above what a busy machine adds to a median; `cargo xtask bench --only one-way` checks
//! the nanoseconds.

use measure::record::{Clocks, Latency, LatencyKind, OneWay, Point, Status};

use crate::support::Scratch;

/// Measures with flags on this host and returns the only point. The times that are checked are far
/// above a time slice of the CPU that both ranks share.
fn measure(flags: &str) -> Point {
    measure_in(&Scratch::on_one_cpu(), flags)
}

fn measure_in(scratch: &Scratch, flags: &str) -> Point {
    let mut words: Vec<&str> = flags.split(' ').collect();
    words.extend(["--local", "-d", "softdev0", "--out", "record"]);
    let ended = scratch.run(&words);
    assert_eq!(ended.status, Some(0), "{flags}: {ended:?}");
    let mut points = scratch.record("record").1;
    assert_eq!(points.len(), 1, "{flags}");
    let point = points.remove(0);
    assert_eq!(point.status, Status::Measured, "{flags}");
    point
}

fn kind(point: &Point, kind: LatencyKind) -> &Latency {
    let found = point.kinds.iter().find(|timed| timed.latency.kind == kind);
    &found.unwrap_or_else(|| panic!("no {kind:?}: {point:?}")).latency
}

fn one_way(point: &Point) -> &OneWay {
    point.one_way.as_ref().expect("it was measured one way")
}

/// Returns the smallest sample in whole ms. The modelled times are whole ms, and no sample can be
/// below them. A busy machine adds to most samples, but hardly half a millisecond to each.
fn ms(latency: &Latency) -> u64 {
    (latency.min_ns + 500_000) / 1_000_000
}

/// Measures again, a few times, until the smallest sample has these whole ms. A machine that stalls
/// may add a ms to every message of a run.
fn on_time(scratch: fn() -> Scratch, words: &str, expected_ms: u64) -> Point {
    let measured = || measure_in(&scratch(), words);
    let mut point = measured();
    for _ in 1..TRIES {
        if ms(point.latency.as_ref().unwrap()) == expected_ms {
            break;
        }
        point = measured();
    }
    assert_eq!(ms(point.latency.as_ref().unwrap()), expected_ms, "{words}");
    point
}

/// How often a machine may stall throughout a run.
const TRIES: usize = 4;

#[test]
fn every_message_has_its_stamps_over_every_service() {
    for flags in [
        "one-way send",
        "one-way send -c UC -I 64 --burst all -r 700 -Q 64",
        "one-way send -c UD --burst 50 --poll event",
        "one-way write --burst 200 --poll event-repoll --buffers 300",
        "one-way write -c UC --poll hybrid --pause 10us",
        "one-way send --poll busy --send-poll event --rx-fill 3 -s 5000",
        "one-way write --stamp sent --buffers 1",
        "one-way send -c UD --stamp sent -s 8",
    ] {
        let point = measure_in(&Scratch::alone(), &format!("{flags} -n 600 --warmup 60"));
        let latency = point.latency.as_ref().unwrap();
        assert_eq!((latency.kind, latency.count), (LatencyKind::OneWay, 600), "{flags}");
        let completions = kind(&point, LatencyKind::Completion).count;
        // Every 64th of 660, and the last.
        assert_eq!(completions, if flags.contains("-Q") { 11 } else { 600 }, "{flags}");
        let has_sent = point.kinds.iter().any(|timed| timed.latency.kind == LatencyKind::OneWaySend);
        assert_eq!(has_sent, flags.contains("sent"), "{flags}");
        let one_way = one_way(&point);
        assert_eq!((one_way.clocks, one_way.negative), (Clocks::One, 0), "{flags}");
        let counts = (one_way.first.as_ref().unwrap().count, one_way.with_first.as_ref().unwrap().count);
        assert_eq!(counts, (60, 660), "{flags}");
        let watchers = one_way.gaps.iter().map(|gaps| gaps.rank).collect::<Vec<_>>();
        let expected: &[u32] = match flags {
            _ if flags.contains("--poll event") => &[],
            _ if flags.contains("hybrid") || flags.contains("--send-poll event") => &[1],
            _ => &[0, 1],
        };
        assert_eq!(watchers, expected, "{flags}: a rank that sleeps sees no preemption");
        assert_eq!(
            (point.counters["messages_lost"], point.counters["messages_received"]),
            (0, 600),
            "{flags}"
        );
        assert!(point.ends.iter().all(|end| end.cpu.is_some_and(|cpu| cpu.wall_ns > 0)), "{flags}");
    }
}

#[test]
fn an_imitated_latency_is_in_one_way_and_the_acknowledgement_in_completions() {
    for (service, there_and_back) in [("RC", true), ("UC", false), ("UD", false)] {
        let words = format!("one-way send -c {service} -n 30 --warmup 3 --link latency=4ms,back=9ms");
        let point = on_time(Scratch::on_one_cpu, &words, 4);
        let completion = ms(kind(&point, LatencyKind::Completion));
        assert_eq!(completion, if there_and_back { 13 } else { 0 }, "{service}");
        let share = one_way(&point).completed_first_share.unwrap();
        assert!(if there_and_back { share < 0.2 } else { share > 0.8 }, "{service}: {share}");
    }
}

#[test]
fn a_delay_before_the_fetch_is_in_one_way_and_not_in_one_way_send() {
    for service in ["RC", "UC", "UD"] {
        let link = "latency=4ms,fetch=6ms";
        // The sender writes the time into the message until it is fetched, and has to run for that:
        // on a CPU that it shares, the time may be that of the post, in every message.
        let words = format!("one-way send -c {service} -n 30 --warmup 3 --stamp sent --link {link}");
        let point = on_time(Scratch::alone, &words, 10);
        let sent = kind(&point, LatencyKind::OneWaySend);
        assert!(sent.min_ns < 8_000_000 && sent.p90_ns > 2_000_000, "{service}: {sent:?}");
    }
    // The device fetches no inline message.
    on_time(Scratch::on_one_cpu, "one-way send -c UC -n 30 --warmup 3 -I 64 --link latency=4ms,fetch=6ms", 4);
}

#[test]
fn half_a_round_trip_is_one_way_only_where_both_ways_are_alike() {
    for (link, half_ms, one_way_ms) in [("latency=5ms", 5, 5), ("latency=5ms,back=15ms", 10, 5)] {
        on_time(Scratch::on_one_cpu, &format!("lat send -n 30 --link {link}"), half_ms);
        on_time(Scratch::on_one_cpu, &format!("one-way send -n 30 --warmup 3 --link {link}"), one_way_ms);
    }
}

#[test]
fn a_pause_is_kept_between_posts() {
    let point = measure("one-way send -n 20 --warmup 0 --pause 5ms --burst all");
    let wall_ns = point.ends[0].cpu.unwrap().wall_ns;
    assert!(wall_ns >= 19 * 5_000_000, "{wall_ns}");
    assert!(one_way(&point).with_first.is_none(), "there was no warm-up");
}

#[test]
fn an_end_that_sleeps_is_left_asleep_over_every_service() {
    let sleeps = |service: &str, burst: &str| {
        let words =
            format!("one-way send -c {service} --poll event -n 3 --warmup 0 --burst {burst} --pause 1s");
        for end in &measure_in(&Scratch::new(), &words).ends {
            let slept = end.cpu.unwrap().voluntary_switches;
            // Two seconds: some sleeps for each message and for the start, and not one more in each
            // 50 ms.
            assert!(slept <= 20, "{words}: {slept} times at rank {}", end.rank);
        }
    };
    // A rank that sleeps does not delay other ranks.
    std::thread::scope(|scope| {
        for service in ["RC", "UC", "UD"] {
            for burst in ["1", "all"] {
                scope.spawn(move || sleeps(service, burst));
            }
        }
    });
}

#[test]
fn messages_that_find_no_receive_are_lost_and_counted() {
    let point = measure("one-way send -c UC -n 500 --warmup 0 --burst all -r 4 --poll event");
    let lost = point.counters["messages_lost"];
    let received = point.counters["messages_received"];
    assert_eq!(lost + received, 500);
    assert_eq!(point.latency.as_ref().unwrap().count, received);
    if lost > 50 {
        assert!(point.unstable.as_ref().unwrap().contains("of 500 messages were lost"), "{point:?}");
    }
}

#[test]
fn clocks_that_are_apart_are_compared_with_a_bound() {
    let scratch = Scratch::on_one_cpu();
    let skewed = scratch.skewed("offset=-3ms,drift=60ppm");
    for link in ["latency=2ms", "latency=2ms,back=8ms"] {
        let out = link.replace(',', "-");
        let words = ["one-way", "send", "-n", "100", "--link", link, "-d", "softdev0", "--out", &out];
        let ended =
            scratch.run(&words.into_iter().chain(skewed.iter().map(String::as_str)).collect::<Vec<_>>());
        assert_eq!(ended.status, Some(0), "{ended:?}");
        let points = scratch.record(&out).1;
        let Clocks::Two { bound_ns, drift_ppm, exchanges, .. } = one_way(&points[0]).clocks else {
            panic!("{:?}", points[0])
        };
        assert!(exchanges >= 2 * 64, "{exchanges}");
        assert!(drift_ppm[0] <= 60.0 && 60.0 <= drift_ppm[1], "{drift_ppm:?}");
        // The bound is half of a round trip.
        let there_and_back_ms: f64 = if link.contains("back") { 10.0 } else { 4.0 };
        assert!((0.45..0.8).contains(&(bound_ns / 1e6 / there_and_back_ms)), "{bound_ns}");
        let median_ns = points[0].latency.as_ref().unwrap().p10_ns as f64;
        assert!((median_ns - 2e6).abs() <= bound_ns + 1e6, "{median_ns} +- {bound_ns}");
    }
}

#[test]
fn what_one_way_cannot_be_is_refused_before_anything_starts() {
    let scratch = Scratch::on_one_cpu();
    for (flags, words) in [
        ("one-way send --local -D 5", "the stamps of all messages are kept in memory"),
        ("one-way send --local --stamp sent -I 64", "inline data is copied when it is posted"),
        ("one-way write --local -c UD", "RDMA Write with immediate over UD, which is not possible"),
        ("one-way send --local -Q 4", "a burst ends with a completion: lengthen the burst"),
        ("one-way send --local -q 2", "several queue pairs one way"),
        ("one-way send --local -R -c UC", "librdmacm has port spaces for RC and UD only"),
    ] {
        scratch.refused(&flags.split(' ').collect::<Vec<_>>(), 2, &[words]);
    }
    for (flags, words) in
        [("--burst some", "give a whole number or all"), ("--pause never", "write 5s or 200ms")]
    {
        let ended = scratch
            .run(&[&["one-way", "send", "--local"], &flags.split(' ').collect::<Vec<_>>()[..]].concat());
        assert!(ended.status == Some(2) && ended.stderr.contains(words), "{ended:?}");
    }
}
