use bench::axis;
use bench::point::{Memory, QueuePoll, Setup};
use clap::Parser;
use measure::record::{LatencyKind, Status};
use measure::stats;
use report::advice::Way;

use super::*;
use crate::command::{Cli, Command, command as line};

fn ask(flags: &str) -> anyhow::Result<Ask> {
    let words = ["rdmascope", "advise", "--local"].into_iter().chain(flags.split_whitespace());
    let Command::Advise(arguments) = Cli::try_parse_from(words)?.command else { panic!("not advise") };
    Ok(Ask::new(&arguments)?)
}

/// Returns the pattern and the subject of a command, as this program parses it.
fn subject(command: &str) -> String {
    let words = command.split(' ').map(|word| word.trim_matches('\''));
    let matches = line().try_get_matches_from(words).unwrap();
    let (pattern, below) = matches.subcommand().unwrap();
    format!("{pattern} {}", below.subcommand_name().unwrap())
}

#[test]
fn coarse_ways_are_all_that_are_asked_for_and_exist() {
    assert_eq!(ask("").unwrap().coarse().len(), 20, "five pairs of service and operation, four ways to poll");
    assert_eq!(ask("-c rc,UD,RC --operation send").unwrap().coarse().len(), 8);
    let why = ask("-c UD --operation write").unwrap_err().to_string();
    assert!(why.contains("nothing to measure: datagrams have Send only"), "{why}");
    let why = ask("-c UD -m 1024 -s 2KiB").unwrap_err().to_string();
    assert!(why.contains("nothing to measure: a datagram is no longer than the path MTU, 1024 B"), "{why}");
    assert_eq!(ask("-s 8KiB").unwrap().coarse().len(), 16, "no datagrams");
    assert_eq!(ask("-R").unwrap().coarse().len(), 12, "no UC");
    let why = ask("-R -c UC,UD --operation write").unwrap_err().to_string();
    let [cm, datagrams] = ["librdmacm has port spaces for RC and UD only", "datagrams have Send only"];
    assert!(why.starts_with("-c UC,UD leaves") && why.contains(cm) && why.contains(datagrams), "{why}");
}

#[test]
fn steps_change_one_setting_each_and_say_why_where_there_is_none() {
    for (flags, refused) in [
        ("", vec![("signalled", "--rate")]),
        ("--rate asap", vec![]),
        (
            "-c RC",
            vec![("service", "left out by -c"), ("service", "left out by -c"), ("signalled", "--rate")],
        ),
        ("-s 100MiB --rate asap", vec![("service", "path MTU"), ("buffers", "64 MiB")]),
        ("--rate asap -R", vec![("service", "port spaces for RC and UD only")]),
        ("--rate asap -t 3", vec![("signalled", "a send queue of 3")]),
    ] {
        let ask = ask(flags).unwrap();
        let way = ask.coarse()[0].clone();
        let steps = ask.steps(&way);
        assert_eq!(steps.len(), 9, "two services, an operation, three ways to poll, and three more");
        for step in &steps {
            let Ok(to) = &step.to else { continue };
            let differing = to.complexity().iter().zip(way.complexity()).filter(|(a, b)| **a != *b).count();
            assert_eq!(differing, 1, "{}: {to}", step.setting);
            // Another step leads back.
            assert!(ask.steps(to).iter().any(|back| back.to.as_ref() == Ok(&way)), "{to}");
        }
        let reasons: Vec<_> =
            steps.iter().filter_map(|step| Some((step.setting, step.to.as_ref().err()?))).collect();
        assert_eq!(reasons.len(), refused.len(), "{flags}: {reasons:?}");
        for ((setting, reason), (expected, words)) in reasons.iter().zip(refused) {
            assert!(*setting == expected && reason.contains(words), "{flags}: {setting}: {reason}");
        }
    }
}

#[test]
fn every_way_goes_through_the_plan_and_rounds_are_interleaved() {
    for flags in ["", "--rate asap -s 4KiB", "--rate 10kHz -m 1024"] {
        let ask = ask(flags).unwrap();
        let ways = ask.coarse();
        let resolved = ask.points("coarse", &ways, 3, 50, 7).unwrap();
        assert_eq!(resolved.points.len(), 60);
        for (at, spec) in resolved.points.iter().enumerate() {
            assert_eq!((spec.id, spec.repetition as usize), (7 + at as u64, at / 20));
            let way = Way::of(&spec.axes).unwrap();
            assert_eq!(way, ways[at % 20]);
            assert_eq!(spec.message.poll == QueuePoll::Busy, way.poll == "busy" || way.poll == "hybrid");
            let burst = axis::BURST.at(&spec.axes).flatten();
            let pause_ns = axis::PAUSE_NS.at(&spec.axes).unwrap_or(0);
            let paced = (flags.contains("rate"), if flags.contains("10kHz") { 100_000 } else { 0 });
            assert_eq!((burst.is_none(), pause_ns), paced);
        }
        assert_eq!(resolved.plan["experiments"].as_array().unwrap().len(), 20);
    }
}

#[test]
fn what_is_given_holds_for_every_way_and_for_the_command() {
    let flags = "-t 16 -r 64 --rx-fill 32 --memory process -R --environment event -m 2048 --link latency=1us";
    let ask = ask(&format!("--rate asap -c RC {flags}")).unwrap();
    let mut ways = ask.coarse();
    ways.extend(ask.steps(&ways[0]).into_iter().filter_map(|step| step.to.ok()));
    assert!(ways.iter().any(|way| way.signal_interval == 8), "half of the queue");
    for spec in &ask.points("coarse", &ways, 5, 50, 0).unwrap().points {
        assert_eq!((spec.message.tx_depth, spec.message.rx_depth, spec.message.rx_fill), (16, 64, 32));
        assert_eq!(
            (spec.message.memory, spec.message.setup, spec.message.mtu_bytes),
            (Memory::Process, Setup::RdmaCm, Some(2048))
        );
        assert!(spec.axes["environment"] == "event" && spec.link.is_some(), "{spec:?}");
    }
    let command = ask.command(&ways[0], 50, "--local");
    for words in flags.replace("--link ", "--link '").replace("1us", "1us'").split(" -") {
        assert!(command.contains(words), "{words}: {command}");
    }
    assert_eq!(subject(&command), "one-way send", "{command}");
}

#[test]
fn what_advise_finds_itself_is_refused_by_name() {
    for (flags, words) in [
        ("--poll busy", "--poll: advise chooses how to wait for completions"),
        ("--send-poll event", "--send-poll: advise chooses how to wait"),
        ("-e", "-e: advise chooses how to wait"),
        ("--events", "-e: advise chooses how to wait"),
        ("-I 64", "-I: advise chooses whether to send inline"),
        ("--inline-size 64", "-I: advise chooses whether to send inline"),
        ("-Q 4", "-Q: advise chooses how often to signal"),
        ("--buffers 16", "--buffers: advise chooses the number of buffers"),
        ("--burst all", "--burst: --rate sets how messages follow each other"),
        ("--pause 1ms", "--pause: --rate sets how messages follow each other"),
        ("-a", "-a: advise is for messages of one size"),
    ] {
        let why = ask(flags).unwrap_err().to_string();
        assert!(why.starts_with(words), "{flags}: {why}");
    }
}

#[test]
fn the_command_says_every_setting() {
    let ask = ask("--rate 10kHz -m 1024 --link latency=1us").unwrap();
    let way = Way {
        service: "UC".to_owned(),
        operation: "write_imm".to_owned(),
        inline: true,
        signal_interval: 64,
        poll: "event_repoll".to_owned(),
        buffers: 4096,
    };
    let command = ask.command(&way, 500, "--local -d softdev0");
    let expected = "rdmascope one-way write --local -d softdev0 -s 32 -c UC --poll event_repoll --buffers 4096 -n 500 -I 32 \
                    --burst all --pause 100us -Q 64 -m 1024 --link 'latency=1us'";
    assert_eq!(command, expected);
    // This program can parse the command.
    assert_eq!(subject(&command), "one-way write", "{command}");
}

/// Returns a point with a status and a latency in ns.
fn ended(spec: &PointSpec, status: Status, value: Option<u64>) -> Point {
    let blank = serde_json::json!({
        "id": spec.id, "experiment": spec.experiment, "pattern": "one-way", "axes": spec.axes, "status": "measured",
        "repetition": spec.repetition, "wall_ns": 1,
    });
    let latency = value.and_then(|value| stats::latency(LatencyKind::OneWay, &[value; 10], &[]));
    Point { status, latency, ..serde_json::from_value(blank).unwrap() }
}

#[test]
fn the_search_climbs_from_way_to_way_until_no_step_is_better() {
    // Busy polling saves most, then inline, then few signalled sends; rounds differ a little.
    let value = |way: &Way, round: u32| {
        let base = if way.poll == "busy" { 500 } else { 9000 };
        let inline = if way.inline { 200 } else { 0 };
        let seldom = if way.signal_interval > 1 { 100 } else { 0 };
        base - inline - seldom + u64::from(round)
    };
    let mut search = Search::new(ask("-n 10 --rate asap").unwrap());
    let mut stages = Vec::new();
    while let Some((_, resolved)) = search.next().unwrap() {
        stages.push((resolved.points[0].experiment.clone(), resolved.points.len()));
        for spec in &resolved.points {
            let way = Way::of(&spec.axes).unwrap();
            search.take(ended(spec, Status::Measured, Some(value(&way, spec.repetition))));
        }
    }
    // A configuration with Send on RC is compared with its nine steps.
    let expected = [("coarse", 100), ("steps-1", 50), ("steps-2", 50), ("steps-3", 50)];
    assert_eq!(stages, expected.map(|(name, points)| (name.to_owned(), points)));
    let advice = search.advice().unwrap();
    assert_eq!(
        advice.recommended.way.to_string(),
        "RC send_imm, busy, inline, every 64th signalled, 16 buffers"
    );
    assert_eq!(advice.steps.len(), 9);
    assert_eq!(search.stages().len(), 4);
    let ids: Vec<u64> = search.points().iter().map(|point| point.id).collect();
    assert_eq!(ids, (0..250).collect::<Vec<_>>(), "numbered through");
}

/// Runs a search; `value` returns the latency of a configuration in a round of a stage, in ns.
fn searched(flags: &str, value: impl Fn(&str, &Way, u32) -> u64) -> Search {
    searched_with_loss(flags, |stage, way, round| (value(stage, way, round), 0))
}

/// Runs a search; `value` returns the latency of a configuration in a round of a stage, in ns, and
/// its lost messages.
fn searched_with_loss(flags: &str, value: impl Fn(&str, &Way, u32) -> (u64, u64)) -> Search {
    let mut search = Search::new(ask(flags).unwrap());
    while let Some((_, resolved)) = search.next().unwrap() {
        for spec in &resolved.points {
            let way = Way::of(&spec.axes).unwrap();
            let (value, lost) = value(&spec.experiment, &way, spec.repetition);
            let mut point = ended(spec, Status::Measured, Some(value));
            point.counters.insert("messages_lost".to_owned(), lost);
            search.take(point);
        }
    }
    search
}

#[test]
fn what_lost_messages_later_is_not_recommended() {
    let value = |way: &Way, round| u64::from(round) + if way.service == "UD" { 500 } else { 900 };
    // The configurations of the second comparison lose messages there, the others do not.
    let search = searched_with_loss("-n 10 -c RC,UD --operation send", |stage, way, round| {
        (value(way, round), u64::from(stage == "steps-1"))
    });
    let advice = search.advice().unwrap();
    assert_eq!(advice.recommended.way.to_string(), "RC send_imm, event_repoll, 16 buffers");
    assert_eq!(search.stages(), ["coarse", "steps-1", "steps-2"]);
    // Nothing is left if every configuration has lost a message.
    let search = searched_with_loss("-n 10 -c UD", |stage, way, round| {
        (value(way, round), u64::from(stage == "steps-1" || way.poll != "busy"))
    });
    assert!(search.advice().is_none() && nothing(&search).contains("(--allow-loss)"));
}

#[test]
fn what_the_last_comparison_rejects_is_not_recommended() {
    // Inline is better at first, and worse in most rounds of the second comparison.
    let search = searched("-n 10 -c RC --operation send", |stage, way, round| {
        let poll = if way.poll == "busy" { 500 } else { 9000 };
        let inline = match (stage, way.inline) {
            (_, false) => 100,
            ("steps-1", true) => 0,
            _ => 300,
        };
        let buffers = if way.buffers == 16 { 0 } else { 1000 };
        poll + inline + buffers + u64::from(round)
    });
    assert_eq!(search.stages(), ["coarse", "steps-1", "steps-2"]);
    let advice = search.advice().unwrap();
    assert_eq!(advice.recommended.way.to_string(), "RC send_imm, busy, 16 buffers");
    // It is compared with all configurations that are one step away.
    let is_measured = |(_, outcome): &&(_, _)| matches!(outcome, report::advice::Outcome::Compared { .. });
    assert_eq!(advice.steps.iter().filter(is_measured).count(), 5, "inline, three ways to poll, and buffers");
}

#[test]
fn where_nothing_could_be_measured_each_way_says_why() {
    let mut search = Search::new(ask("-c RC --operation send").unwrap());
    let mut points = 0;
    while let Some((_, resolved)) = search.next().unwrap() {
        points += resolved.points.len();
        for spec in &resolved.points {
            let error = format!("point {} went wrong", spec.id);
            search.take(ended(spec, Status::Failed { error }, None));
        }
    }
    // The trial, and the rounds, because the trial may have failed by accident.
    assert_eq!(points, 4 + 20);
    assert!(search.advice().is_none());
    let text = nothing(&search);
    assert!(text.starts_with("\nNothing can be recommended:\n"), "{text}");
    assert!(
        text.contains("RC send_imm, busy, 16 buffers: not measured: failed: point 3 went wrong\n"),
        "{text}"
    );
}

#[test]
fn a_rate_that_takes_hours_is_refused_unless_the_messages_are_said() {
    let checked =
        |flags: &str| Search::new(ask(flags).unwrap()).check_budget().map_err(|why| why.to_string());
    // 5 rounds of 20 configurations and twice 9 steps, 100 messages a second apart: 19000 s.
    let why = checked("--rate 1Hz --budget 90s").unwrap_err();
    assert!(why.contains("100 messages of each configuration in 5 rounds take about 19000s"), "{why}");
    for flags in ["--rate 1Hz -n 10", "--rate 1Hz --budget 9500s", "--rate 10kHz", "--rate asap", ""] {
        assert_eq!(checked(flags), Ok(()), "{flags}");
    }
    assert!(checked("--rate 1Hz --budget 9499s").is_err());
}

/// Runs a search among four configurations, whose points take `wall_ns`. `is_unstable` says whether
/// a point is unstable, by its experiment, repetition and polling. Returns the search and the
/// planned repetitions of each comparison.
fn searched_unstable(
    flags: &str,
    wall_ns: u64,
    is_unstable: fn(&str, u32, &str) -> bool,
) -> (Search, Vec<(String, Vec<u32>)>) {
    let mut search = Search::new(ask(&format!("-c RC --operation send {flags}")).unwrap());
    let mut planned = Vec::new();
    while let Some((_, resolved)) = search.next().unwrap() {
        let mut repetitions: Vec<u32> = resolved.points.iter().map(|spec| spec.repetition).collect();
        repetitions.dedup();
        planned.push((resolved.points[0].experiment.clone(), repetitions));
        for spec in &resolved.points {
            let way = Way::of(&spec.axes).unwrap();
            let worse =
                [way.inline, way.poll != "busy", way.buffers > 16].into_iter().filter(|is| *is).count()
                    as u64;
            let mut point =
                ended(spec, Status::Measured, Some(500 + 100 * worse + u64::from(spec.repetition)));
            point.wall_ns = wall_ns;
            let is_unstable = is_unstable(&spec.experiment, spec.repetition, &way.poll);
            point.unstable = is_unstable.then(|| "a neighbour".to_owned());
            search.take(point);
        }
    }
    (search, planned)
}

#[test]
fn rounds_in_which_the_machine_was_unstable_are_measured_again() {
    // Two rounds of the first comparison are unstable, and one of their repetitions.
    let (search, planned) = searched_unstable("-n 10", 1, |stage, round, poll| {
        stage == "coarse" && ((poll == "event" && round == 1) || (poll == "busy" && [3, 6].contains(&round)))
    });
    let coarse = |rounds: &[u32]| ("coarse".to_owned(), rounds.to_vec());
    let steps = ("steps-1".to_owned(), vec![0, 1, 2, 3, 4]);
    assert_eq!(planned, [coarse(&[0, 1, 2, 3, 4]), coarse(&[5, 6]), coarse(&[7]), steps.clone()]);
    let advice = search.advice().unwrap();
    assert_eq!((advice.repeated, advice.recommended.way.poll.as_str()), (3, "busy"));
    let ids: Vec<u64> = search.points().iter().map(|point| point.id).collect();
    assert_eq!(ids, (0..ids.len() as u64).collect::<Vec<_>>(), "numbered through");
    let text = report::advice::text(&advice, "32 B", "x", None);
    assert!(text.contains("3 rounds were measured again") && !text.contains('!'), "{text}");
    // At most as many rounds as there were are repeated, and points stay marked as unstable.
    let (search, planned) =
        searched_unstable("-n 10", 1, |stage, _, poll| stage == "coarse" && poll == "event");
    assert_eq!(planned[..2], [coarse(&[0, 1, 2, 3, 4]), coarse(&[5, 6, 7, 8, 9])]);
    assert_eq!((planned[2].clone(), planned.len()), (steps, 3));
    assert_eq!(search.advice().unwrap().repeated, 5);
    let (search, _) = searched_unstable("-n 10", 1, |_, _, poll| poll == "event");
    let text = report::advice::text(&search.advice().unwrap(), "32 B", "x", None);
    assert!(text.contains("worse, not decided  !"), "{text}");
}

#[test]
fn rounds_are_measured_again_only_as_far_as_the_budget_reaches() {
    let rounds = |budget: &str, is_unstable| {
        let search = searched_unstable(&format!("-n 10 --budget {budget}"), 1_000_000_000, is_unstable).0;
        search.advice().unwrap().repeated
    };
    // Points of a second: 20 in this comparison, 90 in later ones, 4 in a round.
    let coarse = |budget| rounds(budget, |stage, round, _| stage == "coarse" && round < 3);
    assert_eq!((coarse("110s"), coarse("115s"), coarse("119s"), coarse("10min")), (0, 1, 2, 3));
    // Then 30 in the next and last comparison, and 6 in a round.
    let steps = |budget| rounds(budget, |stage, round, _| stage == "steps-1" && round < 1);
    assert_eq!((steps("55s"), steps("57s")), (0, 1));
}

#[test]
fn the_command_says_where_as_a_shell_understands_it() {
    let where_from = |words: &[&str]| {
        let words = ["rdmascope", "advise"].iter().chain(words);
        let Command::Advise(arguments) = Cli::try_parse_from(words).unwrap().command else {
            panic!("not advise")
        };
        ends(&arguments)
    };
    assert_eq!(
        where_from(&["--local", "-d", "mlx5_0", "--cpus", "2,3", "-x", "1"]),
        "--local -d mlx5_0 --cpus 2,3 --gid-index 1"
    );
    assert_eq!(where_from(&["node7", "--key", "abc"]), "node7 --key KEY");
    assert_eq!(where_from(&["node7", "-p", "7000", "--key", "abc"]), "node7 -p 7000 --key KEY");
    let words =
        where_from(&["--hosts", "a,b", "--via", "sh -c 'exec \"$@\"' {host}", "--agent-path", "/opt/r d"]);
    assert_eq!(words, r#"--hosts a,b --via 'sh -c '\''exec "$@"'\'' {host}' --agent-path '/opt/r d'"#);
    assert_eq!(where_from(&["--via", "sudo"]), "--via sudo");
}
