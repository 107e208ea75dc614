//! `rdmascope import`: logs of VILLASnode as a record.

use std::fs;
use std::os::unix::fs::symlink;

use measure::record::{LatencyKind, Status};

use crate::support::Scratch;

/// A line for each sample, `(sequence, offset in ns)`.
fn csv(samples: impl IntoIterator<Item = (u64, Option<u64>)>) -> String {
    let line = |(sequence, offset_ns): (u64, Option<u64>)| {
        let offset = offset_ns.map_or("nan".to_owned(), |ns| format!("{:.9}", ns as f64 / 1e9));
        format!("1541750000,{:09},{offset},{sequence},0.500000,-1.000000\n", 10_000 * sequence)
    };
    let header = "# secs,nsecs,offset,sequence,signal0,signal1\n".to_owned();
    [header].into_iter().chain(samples.into_iter().map(line)).collect()
}

#[test]
fn old_logs_become_a_record_with_what_became_of_each_step() {
    let scratch = Scratch::new();
    fs::create_dir(scratch.at("logs")).unwrap();
    // Of 100 steps, 5 and 50 to 52 were missed; 0 to 2 came before the first sample that arrived;
    // 70 was lost.
    let sent: Vec<u64> = (0..100).filter(|step| *step != 5 && !(50..=52).contains(step)).collect();
    let taken = sent.iter().filter(|step| **step > 2 && **step != 70);
    scratch.write("logs/0_RC-2-100000-100_input.csv", csv(sent.iter().map(|step| (*step, None))));
    let offset = |step: u64| if step == 99 { 60_000 } else { 1000 + step };
    scratch.write("logs/0_RC-2-100000-100_output.csv", csv(taken.map(|step| (*step, Some(offset(*step))))));
    scratch.write(
        "logs/1_zeromq-1-1000-3_output.log",
        "# seconds.nanoseconds+offset(sequence)\tsignal0\n1.000000001+5.000000e-05(0)\t1.0\n1.1+4.0e-05(1)\t1.0\n",
    );
    scratch.write("logs/2_shmem-1-1000-3_input.csv", csv([(0, None)]));
    scratch.write("logs/readme.txt", "no log");
    let printed = scratch.succeed(&["import", "logs", "--out", "record"]);
    assert!(printed.contains("100000") && printed.contains("not measured"), "{printed}");
    let (run, points) = scratch.record("record");
    assert_eq!((points.len(), run.points_planned), (3, 3));
    assert!(run.warnings.iter().any(|warning| warning.contains("not measured by rdmascope")));
    let of = |point: usize, name: &str| points[point].counters.get(name).copied();
    let names = ["steps_missed", "messages_not_transmitted", "messages_lost", "messages_received"];
    assert_eq!(points[0].unstable, None);
    assert_eq!(names.map(|name| of(0, name)), [Some(4), Some(3), Some(1), Some(92)]);
    let latency = points[0].latency.as_ref().unwrap();
    assert_eq!((latency.kind, latency.count, latency.max_ns), (LatencyKind::OneWay, 92, 60_000));
    assert_eq!((latency.min_ns, latency.share_above["50000"]), (1003, 1.0 / 92.0));
    assert_eq!(
        (points[0].axes["service"].as_str(), points[0].axes["size_bytes"].as_u64()),
        (Some("RC"), Some(40))
    );
    // A counter that no log has is absent.
    assert_eq!(names.map(|name| of(1, name)), [None, None, None, Some(2)]);
    assert_eq!(points[1].latency.as_ref().map(|latency| latency.p50_ns), Some(40_000));
    assert!(
        matches!(&points[2].status, Status::NotMeasured { reason } if reason.contains("no log of the receiver"))
    );
    assert_eq!(names.map(|name| of(2, name)), [Some(2), None, None, None]);
    let samples = scratch.at("record").join(points[0].kinds[0].samples.as_ref().unwrap());
    assert_eq!(fs::metadata(samples).unwrap().len(), 8 * 92);
    assert!(fs::read_to_string(scratch.at("record/report.html")).unwrap().contains("Logs of VILLASnode"));
    scratch.succeed(&["report", "record", "--text"]);
    scratch.refused(&["import", "logs", "--out", "record"], 2, &["record"]);
}

/// A truncated log shows no loss, and a mistyped name no rate.
#[test]
fn logs_that_end_early_or_belie_their_names_are_doubted() {
    let scratch = Scratch::new();
    let logs = |from: u64, to: u64| csv((from..to).map(|step| (step, Some(1000))));
    let import = |name: &str, [sent, taken]: [String; 2]| {
        let _ = fs::remove_dir_all(scratch.at("logs"));
        let _ = fs::remove_dir_all(scratch.at("record"));
        fs::create_dir(scratch.at("logs")).unwrap();
        scratch.write(&format!("logs/{name}_input.csv"), sent);
        scratch.write(&format!("logs/{name}_output.csv"), taken);
        let printed = scratch.succeed(&["import", "logs", "--out", "record"]);
        let unstable = scratch.record("record").1.remove(0).unstable.unwrap_or_default();
        assert_eq!(printed.contains(" ! unstable"), !unstable.is_empty(), "{printed}");
        unstable
    };
    let whole = "0_RC-2-100000-1000";
    assert_eq!(import(whole, [logs(0, 1000), logs(3, 999)]), "");
    let torn = logs(0, 500) + "1541750000,0050";
    assert_eq!(
        import(whole, [logs(0, 1000), torn]),
        "the log of the receiver ends within a line; the log of the sender ends with sample 999, the log of the receiver with \
         sample 499: a sample that is in one of them only counts as lost or missed"
    );
    assert_eq!(
        import(whole, [logs(0, 100), logs(0, 100)]),
        "the logs end with sample 99 of 999: later samples count as missed"
    );
    // The error of the timer at low rates, which Potter 2018 did not notice.
    assert_eq!(
        import("0_RC-8-108800-1000", [logs(0, 1000), logs(0, 1000)]),
        "the log of the sender has samples of 2 values, but its name says 8; the log of the receiver has samples of 2 values, \
         but its name says 8; its stamps show 100000.0 steps per second, but its name says 108800"
    );
}

#[test]
fn what_is_no_log_is_said_with_its_place() {
    let scratch = Scratch::new();
    fs::create_dir(scratch.at("logs")).unwrap();
    scratch.refused(&["import", "logs"], 2, &["logs has no log", "_output.csv"]);
    scratch.refused(&["import", "nowhere"], 1, &["cannot list nowhere", "No such file"]);
    scratch.write("logs/0_RC-1-100-1_output.csv", "# header\n1,2,0.5,7,1.0\n1,2,three,8,1.0\n");
    let words = ["logs/0_RC-1-100-1_output.csv:3", "\"three\" is no offset in seconds"];
    scratch.refused(&["import", "logs", "--out", "record"], 2, &words);
    let log = scratch.at("logs/0_RC-1-100-1_output.csv");
    fs::remove_file(&log).unwrap();
    // A device such as /dev/zero has no end.
    symlink("/dev/null", &log).unwrap();
    let words = ["cannot read logs/0_RC-1-100-1_output.csv", "it is not a regular file"];
    scratch.refused(&["import", "logs", "--out", "record"], 1, &words);
    assert!(!scratch.at("record").exists());
}
