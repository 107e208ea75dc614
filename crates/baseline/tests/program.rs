//! The program, called as by `cargo xtask bench`.

use std::process::{Command, Output};

fn baseline(words: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_baseline")).args(words).output().expect("the program starts")
}

/// The first two CPUs that this process may use.
fn cpus() -> Option<[String; 2]> {
    let allowed = rustix::thread::sched_getaffinity(None).expect("a process knows its CPUs");
    let mut cpus = (0..rustix::thread::CpuSet::MAX_CPU).filter(|cpu| allowed.is_set(*cpu));
    Some([cpus.next()?.to_string(), cpus.next()?.to_string()])
}

/// The number behind a name in a line of JSON.
fn number(printed: &str, name: &str) -> f64 {
    let rest = printed.split(&format!("\"{name}\":")).nth(1).unwrap_or_else(|| panic!("{name}: {printed}"));
    let end = rest.find([',', '}']).expect("an object ends");
    rest[..end].parse().unwrap_or_else(|_| panic!("{name}: {printed}"))
}

#[test]
fn everything_is_measured() {
    let Some([first, second]) = cpus() else {
        eprintln!("SKIPPED: there is one CPU only");
        return;
    };
    let printed = |what: &str| {
        let ended = baseline(&[what, &first, &second]);
        assert!(ended.status.success(), "{what}: {}", String::from_utf8_lossy(&ended.stderr));
        String::from_utf8(ended.stdout).expect("JSON is text")
    };
    let line = printed("line");
    let least = number(&line, "plain_ns").min(number(&line, "paused_ns"));
    // No cache is faster, and a cache line never takes a tenth of a second.
    assert!(number(&line, "line_ns") == least && (1.0..1e8).contains(&least), "{line}");
    assert!(number(&line, "nearest_ns") <= least && least <= number(&line, "farthest_ns"), "{line}");
    for what in ["streaming", "cached", "write", "streaming-unread", "cached-unread", "write-unread"] {
        let printed = printed(what);
        for name in ["median_bytes_per_s", "mean_bytes_per_s"] {
            // At least 1 MB/s even if other processes use the CPUs; no memory reaches 10 TB/s.
            assert!((1e6..1e13).contains(&number(&printed, name)), "{what}: {printed}");
        }
    }
}

#[test]
fn bad_words_get_a_sentence() {
    for (words, told) in [
        (&["line", "0"][..], "expected WHAT and two CPUs"),
        (&["gather", "0", "1"], "there is no measurement `gather`"),
        (&["line-unread", "0", "1"], "there is no measurement `line-unread`"),
        (&["line", "0", "one"], "`one` is not a number"),
        (&["line", "0", "0"], "both CPUs are 0: name two different CPUs"),
        (&["line", "0", "99999"], "there is no CPU 99999"),
        (&["line", "0", "1", "--join", "3", "1"], "the first process has ended"),
    ] {
        let ended = baseline(words);
        let said = String::from_utf8_lossy(&ended.stderr);
        assert!(
            !ended.status.success() && said.starts_with(&format!("baseline: {told}")),
            "{words:?}: {said}"
        );
    }
}
