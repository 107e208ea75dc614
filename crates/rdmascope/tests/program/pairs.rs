//! Several pairs at the same time: they start together, and are counted in the common time.

use measure::record::{Direction, LatencyKind, Status};

use crate::support::{Scratch, all_measured};

const HEAD: &str = "name = \"pairs\"\ntitle = \"Pairs\"\n";

const EXPERIMENTS: &str = r#"
[[experiment]]
name = "latency"
pattern = "pairs"
iterations = 40
axes = { operation = ["send", "write", "read"], pairs = [1, 3], size_bytes = 64 }
[[experiment]]
name = "unreliable"
pattern = "pairs"
iterations = 40
axes = { service = ["UC", "UD"], pairs = 2 }
[[experiment]]
name = "bandwidth"
pattern = "pairs"
duration = "500ms"
axes = { traffic = "stream", operation = ["send", "write", "read"], pairs = [1, 3], size_bytes = 4096 }
"#;

#[test]
fn pairs_are_begun_together_and_counted_in_the_time_that_all_are_at_it() {
    let scratch = Scratch::on_one_cpu();
    scratch.write("pairs.toml", HEAD.to_owned() + EXPERIMENTS);
    let stdout = scratch.succeed(&["run", "pairs.toml", "-d", "softdev0", "--out", "record"]);
    let (run, points) = scratch.record("record");
    assert!(all_measured(&points), "{points:?}");
    assert_eq!((points.len() as u64, run.environments.len()), (run.points_planned, 6));
    for point in &points {
        let pairs = point.axes["pairs"].as_u64().unwrap();
        assert_eq!(point.ends.len() as u64, 2 * pairs);
        assert_eq!(point.fairness.is_some(), pairs > 1);
        if let Some(fairness) = point.fairness {
            assert!(fairness.jain <= 1.0 + 1e-9 && fairness.jain >= 1.0 / pairs as f64, "{fairness:?}");
            assert!(fairness.least_share <= 1.0);
        }
        let mut senders = point.ends.iter().filter(|end| end.rank % 2 == 0);
        if point.experiment == "bandwidth" {
            let total = point.throughput.as_ref().unwrap();
            assert_eq!((total.direction, &point.latency), (Direction::Pairs, &None));
            let sum: f64 = senders.map(|end| end.throughput.as_ref().unwrap().bytes_per_s).sum();
            assert!((total.bytes_per_s / sum - 1.0).abs() < 1e-9);
            continue;
        }
        let kind = if point.axes["operation"] == "read" { LatencyKind::Rtt } else { LatencyKind::RttHalf };
        let latency = point.latency.as_ref().unwrap();
        assert_eq!((latency.kind, latency.count), (kind, 40 * pairs), "the messages of all pairs");
        assert!(senders.all(|end| end.latency.as_ref().unwrap().count == 40));
        let skews: Vec<_> = point.ends.iter().filter_map(|end| end.start_skew.as_ref()).collect();
        assert_eq!(skews.len(), usize::from(pairs > 1), "one rank of the host leads, if there are several");
        assert!(skews.iter().all(|skew| (skew.kind, skew.count) == (LatencyKind::StartSkew, 40)));
    }
    assert_eq!(stdout.matches("skew[us]").count(), 3, "one for each experiment, and one for reads: {stdout}");
    assert_eq!(stdout.matches(" pair[Gb/s]").count(), 1, "{stdout}");
    assert_eq!(stdout.matches("(Jain, Chiu and Hawe 1984)").count(), 1, "{stdout}");
    scratch.assert_nothing_left();
}

/// Twelve processes on one CPU, each of which ends before it yields the CPU for the first time.
#[test]
fn floods_that_are_over_too_soon_have_no_number() {
    let scratch = Scratch::on_one_cpu();
    let axes = "axes = { traffic = \"stream\", operation = \"write\", pairs = 6, size_bytes = 1 }";
    let short = format!("[[experiment]]\nname = \"short\"\npattern = \"pairs\"\niterations = 10\n{axes}\n");
    scratch.write("short.toml", HEAD.to_owned() + &short);
    scratch.run(&["run", "short.toml", "-d", "softdev0", "--out", "record"]);
    let (_, points) = scratch.record("record");
    let Status::NotMeasured { reason } = &points[0].status else { panic!("{:?}", points[0]) };
    assert!(reason.contains("give a duration"), "{reason}");
    assert_eq!(points[0].throughput, None);
}

#[test]
fn what_pairs_have_not_is_refused() {
    let scratch = Scratch::new();
    let refused = |settings: &str, words: &[&str]| {
        let plan = format!("{HEAD}[[experiment]]\nname = \"p\"\npattern = \"pairs\"\n{settings}\n");
        scratch.write("pairs.toml", plan);
        scratch.refused(&["run", "pairs.toml", "--dry-run"], 2, words);
    };
    refused("axes = { pairs = 0 }", &["pairs"]);
    refused("axes = { pairs = 600 }", &["more than 512 pairs", "two processes"]);
    refused("duration = \"1s\"", &["for a duration", "give iterations"]);
    refused("axes = { traffic = \"stream\", service = \"UC\" }", &["streams of pairs over UC", "only RC"]);
    refused("axes = { queue_pairs = 2 }", &["several queue pairs of each pair"]);
    refused("axes = { peers = 2 }", &["peers with the pattern \"pairs\"", "\"fan-out\""]);
}

#[test]
fn one_line_measures_several_pairs() {
    let scratch = Scratch::on_one_cpu();
    for (words, operation, column) in [
        ("send -c UD", "send", "skew[us]"),
        ("write --imm -s 1,64 -I 32", "write_imm", "skew[us]"),
        ("atomic -A FETCH_AND_ADD", "fetch_add", "skew[us]"),
        ("write --stream -D 0.15", "write", " pair[MiB/s]"),
        ("read --stream -D 0.15 --report_gbits", "read", " pair[Gb/s]"),
    ] {
        let messages = if words.contains("-D") { "" } else { " -n 20" };
        let line = format!("pairs {words} --pairs 1,2..3{messages} -d softdev0 --out record");
        let stdout = scratch.succeed(&line.split(' ').collect::<Vec<_>>());
        let (_, points) = scratch.record("record");
        assert!(all_measured(&points), "{words}: {points:?}");
        let pairs: Vec<_> = points.iter().map(|point| point.axes["pairs"].as_u64().unwrap()).collect();
        assert!(pairs.chunks(3).all(|chunk| chunk == [1, 2, 3]), "{words}: {pairs:?}");
        assert!(points.iter().all(|point| point.axes["operation"] == operation), "{words}");
        let tables = pairs.len() / 3;
        assert_eq!(stdout.matches(column).count(), tables, "1 to 3 pairs are one table: {stdout}");
        std::fs::remove_dir_all(scratch.at("record")).unwrap();
    }
    for (words, sentence) in [
        ("send --pairs 0", "give numbers from 1 to 512"),
        ("send -D 1", "give iterations"),
        ("send --stream -c UC", "streams of pairs over UC"),
        ("write node7", "unexpected argument 'node7'"),
    ] {
        let line = format!("pairs {words}");
        let ended = scratch.run(&line.split(' ').collect::<Vec<_>>());
        assert_eq!((ended.status, ended.stdout.as_str()), (Some(2), ""), "{words}");
        assert!(ended.stderr.contains(sentence), "{words}: {}", ended.stderr);
    }
}
