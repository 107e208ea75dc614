//! Every operation of `lat` and `bw` on the software device: its numbers are of the right kind, and
//! operations that the specification does not have are refused by name.

use measure::record::{LatencyKind, Point, Status};

use crate::support::Scratch;

/// Measures with flags on this host and returns the points.
fn measure(flags: &str) -> Vec<Point> {
    let scratch = Scratch::on_one_cpu();
    let mut words: Vec<&str> = flags.split(' ').collect();
    words.extend(["--local", "-d", "softdev0", "--out", "record"]);
    let ended = scratch.run(&words);
    assert_eq!(ended.status, Some(0), "{flags}: {ended:?}");
    let points = scratch.record("record").1;
    assert!(points.iter().all(|point| point.status == Status::Measured), "{flags}: {points:?}");
    points
}

#[test]
fn a_ping_pong_is_half_a_round_trip_and_a_fetch_a_whole_one() {
    for (flags, operation, kind, ends) in [
        ("lat send --imm", "send_imm", LatencyKind::RttHalf, 2),
        ("lat write", "write", LatencyKind::RttHalf, 2),
        ("lat write -c UC -I 64", "write", LatencyKind::RttHalf, 2),
        ("lat write --imm -e", "write_imm", LatencyKind::RttHalf, 2),
        ("lat read", "read", LatencyKind::Rtt, 1),
        ("lat read -e", "read", LatencyKind::Rtt, 1),
        ("lat atomic", "fetch_add", LatencyKind::Rtt, 1),
        ("lat atomic -A CMP_AND_SWAP", "compare_swap", LatencyKind::Rtt, 1),
    ] {
        let points = measure(&format!("{flags} -n 300"));
        assert_eq!(points.len(), 1);
        let point = &points[0];
        let latency = point.latency.as_ref().unwrap();
        assert_eq!((point.axes["operation"].as_str(), latency.kind), (Some(operation), kind), "{flags}");
        assert_eq!(latency.count, 300, "{flags}");
        let timed = point.ends.iter().filter(|end| end.latency.is_some()).count();
        assert_eq!(timed, ends, "{flags}: the target of a fetch has nothing to time");
        let size = if operation == "fetch_add" || operation == "compare_swap" { 8 } else { 2 };
        assert_eq!(point.axes["size_bytes"], size, "{flags}");
    }
}

#[test]
fn one_sided_streams_are_counted_where_they_are_posted() {
    for (flags, ends) in [
        ("bw write -s 100,65536", 1),
        ("bw write -c UC -s 1000", 1),
        ("bw write -c UC -s 1000 -q 3", 1),
        ("bw write -b", 2),
        ("bw write -c UC -b -q 2", 2),
        ("bw read -o 4", 1),
        ("bw atomic -b", 2),
        ("bw write --imm -s 1000", 2),
    ] {
        for point in measure(&format!("{flags} -n 400")) {
            let rates = point.ends.iter().filter(|end| end.throughput.is_some()).count();
            assert_eq!(rates, ends, "{flags}");
            assert!(point.throughput.unwrap().messages_per_s > 0.0, "{flags}");
            assert_eq!(point.throughput_total.is_some(), flags.contains("-b"), "{flags}");
        }
    }
}

#[test]
fn several_queue_pairs_elements_and_lists_carry_every_message() {
    for flags in [
        "lat send -q 5 --sge 3 -s 7,100,5000",
        "lat send -c UD -q 3 --sge 2 -s 63",
        "lat write -q 2 -s 9",
        "lat read -q 4 --sge 4 -s 1001",
    ] {
        for point in measure(&format!("{flags} -n 200")) {
            assert_eq!(point.latency.unwrap().count, 200, "{flags}");
        }
    }
    for flags in ["bw send -q 3 -l 7 -s 13,4097", "bw send -c UD -q 2 -l 5 -s 500 -b", "bw send -q 300 -s 64"]
    {
        for point in measure(&format!("{flags} -n 1001")) {
            let [lost, received] = ["messages_lost", "messages_received"].map(|name| point.counters[name]);
            // On a busy machine, a receiver of datagrams may post its receives late.
            let losses = if flags.contains("UD") { 100 } else { 0 };
            assert!(lost <= losses && lost + received >= 1001, "{flags}: {:?}", point.counters);
        }
    }
}

/// Completions are polled one at a time, so that a rank that goes to sleep has completions in its
/// queue that cause no more events.
#[test]
fn an_end_that_sleeps_is_not_left_asleep_with_completions_in_its_queue() {
    let seldom = "one-way send --poll event --burst all --pause 20us -Q 64";
    for flags in
        ["one-way send --poll event", "one-way send -c UC --poll event-repoll", "lat send -e", seldom]
    {
        assert_eq!(measure(&format!("{flags} -n 300"))[0].latency.as_ref().unwrap().count, 300, "{flags}");
    }
}

/// A stream with one posted receive: most messages are lost, also the last one, and nothing wakes
/// the receiver that sleeps for it.
#[test]
fn who_sleeps_for_messages_that_were_lost_wakes_long_before_the_limit() {
    let scratch = Scratch::on_one_cpu();
    let flags =
        "one-way send -c UD --poll event -n 1000 --burst all --rx-fill 1 --local -d softdev0 --out record";
    let ended = scratch.run(&flags.split(' ').collect::<Vec<_>>());
    let point = &scratch.record("record").1[0];
    match &point.status {
        Status::Measured => assert!(point.counters["messages_lost"] > 0, "{:?}", point.counters),
        // If the receiver does not wake before all messages were sent, it gets only the first one,
        // which belongs to the warm-up.
        Status::Failed { error } => assert!(error.starts_with("only 0 messages arrived"), "{error}"),
        Status::NotMeasured { .. } => panic!("{ended:?}"),
    }
    assert!(point.wall_ns < 30_000_000_000, "{} s", point.wall_ns / 1_000_000_000);
}

#[test]
fn a_duration_has_all_percentiles() {
    let points = measure("lat write -D 0.2");
    let latency = points[0].latency.as_ref().unwrap();
    assert!(latency.count > 1000 && latency.p10_ns <= latency.p50_ns && latency.p50_ns <= latency.p99_ns);
    assert!(latency.p99_ns <= latency.p999_ns && latency.p999_ns <= latency.max_ns);
}

#[test]
fn what_cannot_be_is_refused_before_anything_starts() {
    let scratch = Scratch::new();
    for (flags, words) in [
        ("lat read -c UC", &["RDMA Read over UC", "only RC has"][..]),
        ("lat atomic -c UD", &["fetch-and-add over UD", "only Send and Send with immediate"]),
        ("bw write -c UD", &["RDMA Write over UD"]),
        ("lat write -e", &["a receiver that sleeps", "add --imm"]),
        ("lat atomic -s 16", &["8 B"]),
        ("lat send -R -c UC", &["UC through RDMA CM", "RC and UD only"]),
        ("lat read -I 8", &["RDMA Read inline"]),
        ("lat send -x 200", &["softdev0 has no GID 200", "rdmascope devices"]),
        ("lat send -i 9", &["softdev0 has no port 9"]),
    ] {
        let arguments: Vec<&str> = flags.split(' ').chain(["--local", "-d", "softdev0"]).collect();
        let ended = scratch.run(&arguments);
        assert_eq!(ended.status, Some(2), "{flags}: {ended:?}");
        for word in words {
            assert!(ended.stderr.contains(word), "{flags}: no {word:?} in {ended:?}");
        }
        assert!(!ended.stdout.contains("#bytes"), "{flags}");
    }
}

#[test]
fn messages_without_payload_are_measured_where_a_completion_tells_of_them() {
    for flags in [
        "lat send",
        "lat send -c UD",
        "lat send -e",
        "lat send -I 64",
        "lat write --imm",
        "lat read",
        "one-way send",
        "overhead --step post_send,poll_send,post_receive",
    ] {
        let points = measure(&format!("{flags} -s 0 -n 300"));
        assert!(points.iter().all(|point| point.axes["size_bytes"] == 0), "{flags}");
    }
    for flags in ["bw send", "bw write", "bw read", "bw write -q 2 -b"] {
        for point in measure(&format!("{flags} -s 0,64 -n 400")) {
            let throughput = point.throughput.unwrap();
            assert!(throughput.messages_per_s > 0.0, "{flags}");
            assert_eq!(throughput.bytes_per_s > 0.0, point.axes["size_bytes"] != 0, "{flags}");
        }
    }
}

#[test]
fn messages_without_payload_are_not_measured_where_their_last_byte_is_polled() {
    let scratch = Scratch::new();
    for (number, words) in [
        &["lat", "write", "--local"][..],
        &["fan-out", "send", "--peers", "2"],
        &["fan-out", "write", "--peers", "2"],
        &["fan-out", "read", "--peers", "2", "--notify", "memory"],
        &["fan-out", "read", "--peers", "2"],
        &["pairs", "send", "--pairs", "2"],
    ]
    .into_iter()
    .enumerate()
    {
        let record = format!("record{number}");
        let words = [words, &["-d", "softdev0", "-s", "0,8", "-n", "200", "--out", &record]].concat();
        scratch.succeed(&words);
        let points = scratch.record(&record).1;
        assert_eq!(points.len(), 2, "{words:?}");
        let is_polled = words[1] == "write" || words.contains(&"memory");
        match &points[0].status {
            Status::NotMeasured { reason } if is_polled => {
                assert_eq!(
                    reason,
                    "a message of 0 bytes leaves nothing in memory that a rank could poll for"
                );
            }
            status => assert!(!is_polled && *status == Status::Measured, "{words:?}: {status:?}"),
        }
        assert_eq!(points[1].status, Status::Measured, "{words:?}");
    }
}
