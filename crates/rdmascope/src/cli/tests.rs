use std::collections::BTreeSet;

use bench::axis::{self, AxisRow, ROWS};
use bench::command::Subject;
use bench::plan::Settings;
use bench::plan::offer::Offer;
use bench::point::Pattern;
use clap::Command;

use super::axes;
use super::known::{self, KNOWN};
use super::refused::PERFTEST_REFUSED;
use crate::failure::Usage;

/// Returns every command of a pattern, with its subject if it has one.
fn commands() -> Vec<(Pattern, Option<&'static Subject>)> {
    let subjects = |pattern: Pattern| {
        let all: Vec<_> = pattern.command().subjects().map(Some).collect();
        let all = if all.is_empty() { vec![None] } else { all };
        all.into_iter().map(move |subject| (pattern, subject))
    };
    Pattern::offered().flat_map(subjects).collect()
}

/// Returns the values to which flags set an axis, as a record shows them.
fn read(row: &'static AxisRow, words: &str) -> Result<String, String> {
    let command = Command::new("test").args(axes::flags(row, ""));
    let words = std::iter::once("test").chain(words.split(' '));
    let matches = command.try_get_matches_from(words).map_err(|error| error.to_string())?;
    let axes = axes::given(&matches, &[row]).map_err(|Usage(text)| text)?;
    Ok(axes.iter().map(|axis| serde_json::to_string(axis.values()).unwrap()).collect())
}

#[test]
fn every_command_of_every_pattern_is_one_that_clap_takes() {
    let mut line = crate::command::command();
    line.build();
    line.clone().debug_assert();
    for (pattern, subject) in commands() {
        let command = line.find_subcommand(pattern.command().name).unwrap();
        let command = subject.map_or(command, |subject| command.find_subcommand(subject.name).unwrap());
        let has = |long: &str| command.get_arguments().any(|arg| arg.get_long() == Some(long));
        for offered in Offer::of(pattern, subject).axes {
            let name = offered.row.name;
            assert!(offered.row.flags.iter().all(|flag| has(flag.long)), "{command}: {name}");
        }
    }
}

#[test]
fn every_name_of_other_suites_is_a_command_of_ours() {
    let mut line = crate::command::command();
    line.build();
    for known in &KNOWN {
        let (pattern, subject) = known.of_ours();
        let command = line.find_subcommand(known.name).unwrap();
        let has = |long: &str| command.get_arguments().any(|arg| arg.get_long() == Some(long));
        for offered in Offer::of(pattern, Some(subject)).axes {
            assert!(
                offered.row.flags.iter().all(|flag| has(flag.long)),
                "{}: {}",
                known.name,
                offered.row.name
            );
        }
        assert!(known.start(Settings::default()).is_ok(), "{}", known.name);
        assert!(has("mpi") && has("out"), "{}", known.name);
    }
    let names: BTreeSet<_> = KNOWN.iter().map(|known| known.name).collect();
    assert_eq!(names.len(), KNOWN.len());
}

#[test]
fn usual_options_of_perftest_are_known_and_a_missing_one_says_what_to_do() {
    let said = |words: &str| {
        let line = ["rdmascope"].into_iter().chain(words.split(' '));
        let matches = crate::command::command().try_get_matches_from(line).unwrap();
        let benchmark = crate::benchmark::Benchmark::asked_for(&matches).unwrap();
        benchmark.plan().map(drop).map_err(|error| error.to_string())
    };
    for command in ["lat send", "lat write", "lat read", "bw send", "bw write", "bw atomic"] {
        assert_eq!(said(&format!("{command} -F -N --ib-dev mlx5_0 --inline_size 0 -n 10")), Ok(()));
        for (letter, long, has_value, instead) in PERFTEST_REFUSED {
            let value = if has_value { " 5" } else { "" };
            let words = format!("{command} --{long}{value} node7");
            assert!(said(&words).unwrap_err().ends_with(instead), "{words}");
            let Some(letter) = letter else { continue };
            assert!(said(&format!("{command} -{letter}{value}")).unwrap_err().ends_with(instead), "{letter}");
        }
    }
    assert_eq!(
        said("bw send -W counters/port_xmit_data node7").unwrap_err(),
        "perftest's -W (--report-counters) is not supported: --out DIR records how the counters of the ports changed"
    );
}

#[test]
fn words_of_imb_are_read_as_long_flags() {
    let spelled = |text: &str| {
        let words = known::spelled(text.split(' ').map(Into::into));
        words.join(" ".as_ref()).into_string().unwrap()
    };
    assert_eq!(spelled("r PingPong -iter 10 -msglog 3:4 -h"), "r PingPong --iter 10 --msglog 3:4 -h");
    assert_eq!(spelled("r PingPong --iter -5"), "r PingPong --iter -5");
    assert_eq!(spelled("r osu_latency -iter 10"), "r osu_latency -iter 10");
    assert_eq!(spelled("r"), "r");
}

#[test]
fn flags_take_what_plans_take() {
    for (row, words, values) in [
        (axis::SERVICE.row, "-c rc,UD", r#"["RC","UD"]"#),
        (axis::POLL.row, "--poll event-repoll", r#"["event_repoll"]"#),
        (axis::POLL.row, "--poll event_repoll,busy", r#"["event_repoll","busy"]"#),
        (axis::POLL.row, "-e", r#"["event"]"#),
        (axis::PROTOCOL.row, "--protocol pub-sub", r#"["pub_sub"]"#),
        (axis::PEERS.row, "--peers 1..3,9", "[1,2,3,9]"),
        (axis::BURST.row, "--burst all", r#"["all"]"#),
        (axis::PAUSE_NS.row, "--pause 5.5us", "[5500]"),
        (axis::PAUSE_NS.row, "--pause 0,1", "[0,1000000000]"),
        (axis::BUSY_POLL_US.row, "--busy-poll 50us,1ms,off", r#"[50,1000,"off"]"#),
        (axis::PAIRS.row, "--pairs 0.1k", "[100]"),
        (axis::TX_DEPTH.row, "-t 16,1k", "[16,1000]"),
        (axis::NO_DELAY.row, "--no-delay", "[true]"),
        (axis::NO_DELAY.row, "--no-delay=false", "[false]"),
        (axis::SOCKET_BUFFER_BYTES.row, "--socket-buffer 64KiB,auto", r#"[65536,"auto"]"#),
        (axis::SIZE_BYTES.row, "-s 4..16,1KiB", "[4,8,16,1024]"),
        (axis::LINK.row, "--link 40Gb/s,latency=700ns", r#"["40Gb/s,latency=700ns"]"#),
    ] {
        assert_eq!(read(row, words).as_deref(), Ok(values), "{words}");
    }
}

#[test]
fn what_an_axis_does_not_have_is_refused_with_what_it_has() {
    for (row, words, why) in [
        (axis::SERVICE.row, "-c RD", "[possible values: RC, UC, UD]"),
        (axis::PEERS.row, "--peers 1024", "give numbers from 1 to 1023, such as 15"),
        (axis::BURST.row, "--burst some", "give a whole number or all"),
        (axis::SIZE_BYTES.row, "-s 4..9", "4..9"),
        (axis::SOCKET_BUFFER_BYTES.row, "--socket-buffer 8GiB", "not below 4GiB"),
        (axis::POLL.row, "-e --busy", "cannot be used with"),
    ] {
        let said = read(row, words).unwrap_err();
        assert!(said.contains(why), "{words}: {said}");
    }
}

#[test]
fn the_help_of_an_axis_is_its_documentation() {
    for row in ROWS.iter().filter(|row| !row.flags.is_empty()) {
        for arg in axes::flags(row, "17") {
            let help = arg.get_help().unwrap().to_string();
            assert!(!help.is_empty() && !help.contains('"') && !help.ends_with('.'), "{}: {help}", row.name);
        }
    }
}
