//! `rdmascope fleet`: names the member that is slow and nothing else, goes on after any kill, and
//! goes on without members that fail.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Duration;

use measure::record::{Point, Run, Status};
use rustix::process::Signal;
use verdict::fleet::{Examined, Place};

use crate::support::failures::assert_words;
use crate::support::moments::Moments;
use crate::support::processes::{signal, with_token};
use crate::support::switch::Switch;
use crate::support::{Ended, Scratch, collect, skip};

/// Little to measure, and three passes as usual.
pub(crate) const SHORT: [&str; 8] = ["-n", "100", "-D", "10ms", "-s", "16KiB", "--visits-apart", "0"];
/// Kills of one fleet; `cargo xtask ci --full` sets more.
const KILLS: usize = 2;
const KILLS_VARIABLE: &str = "RDMASCOPE_KILLS";
const SEED_VARIABLE: &str = "RDMASCOPE_KILLS_SEED";
/// Agents of a large fleet; `cargo xtask ci --full` sets more.
const AGENTS: usize = 40;
const AGENTS_VARIABLE: &str = "RDMASCOPE_FLEET_AGENTS";
/// Hosts of a fleet of which one is slow; `cargo xtask ci --full` sets more.
const HOSTS: usize = 4;
const HOSTS_VARIABLE: &str = "RDMASCOPE_FLEET_HOSTS";
/// How often a fleet of namespaces is measured at most.
const FLEETS: usize = 3;
/// Moments are between the start and the end of a fleet without a kill.
const RUN: Duration = Duration::from_secs(6);

/// Runs a fleet of members on this host, of which each starts by this script: `$1` is the name, and
/// the rest is the command of the agent.
fn started(scratch: &Scratch, hosts: &str, script: &str, more: &[&str]) -> Vec<String> {
    let script = scratch.write("start.sh", script);
    let via = format!("sh {} {{host}}", script.display());
    let words = ["fleet", "send", "--hosts", hosts, "--via", &via, "--out", "fleet"];
    words.iter().chain(&SHORT).chain(more).map(|word| (*word).to_owned()).collect()
}

/// A script that gives one member a slower link than the others. Both are far slower than what a
/// busy machine copies: the links alone decide.
pub(crate) fn with_slow(member: &str) -> String {
    format!(
        "host=$1; shift\n[ $host = {member} ] && exec \"$@\" --link '1X SDR,latency=20us'\nexec \"$@\" --link '1X \
         DDR,latency=20us'\n"
    )
}

fn run(scratch: &Scratch, words: &[String]) -> Ended {
    scratch.run(&words.iter().map(String::as_str).collect::<Vec<_>>())
}

fn examined(run: &Run) -> Examined {
    let said = run.fleet.as_ref().unwrap().examined.clone();
    serde_json::from_value(said.expect("the examination has ended")).unwrap()
}

/// The names of the culprits.
fn named(run: &Run) -> Vec<String> {
    let name = |place: Place| match place {
        Place::Host(member) => run.fleet.as_ref().unwrap().members[member].name.clone(),
        other => format!("{other:?}"),
    };
    let mut names: Vec<String> = examined(run).culprits.iter().map(|culprit| name(culprit.place)).collect();
    names.dedup();
    names
}

/// A number that a variable sets.
fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok()?.parse().ok()
}

fn hosts() -> usize {
    number(HOSTS_VARIABLE).map_or(HOSTS, |hosts| hosts as usize)
}

#[test]
fn the_member_with_a_slow_port_is_named_and_nothing_else() {
    let scratch = Scratch::alone();
    let hosts = hosts();
    let ended = run(&scratch, &started(&scratch, &format!("h[1-{hosts}]"), &with_slow("h3"), &[]));
    assert_eq!(ended.status, Some(3), "{ended:?}");
    let behind =
        ended.stdout.split(" ! h3: throughput: sends ").nth(1).and_then(|rest| rest.split(' ').next());
    let behind = behind.unwrap_or_else(|| panic!("{}", ended.stdout));
    assert!((behind.parse::<f64>().unwrap() - 50.0).abs() < 10.0, "{}", ended.stdout);
    let others = format!(" % below the others to {} members; receives as they do", hosts - 1);
    assert!(ended.stdout.contains(&others), "{}", ended.stdout);
    assert!(ended.stdout.contains("named from "), "the deficit that could have been found: {}", ended.stdout);
    let (run, points) = scratch.record("fleet");
    assert_eq!(named(&run), ["h3"]);
    // Three passes over all pairs, with three points each, and the confirmation.
    let pairs = hosts * (hosts - 1) / 2;
    assert!(points.len() > 3 * pairs * 3, "{}", points.len());
    let report = std::fs::read_to_string(scratch.at("fleet/report.html")).unwrap();
    assert!(
        report.contains(&format!("h3: throughput: sends {behind} %")) && report.contains("class=\"heat\"")
    );
    scratch.assert_nothing_left();
}

#[test]
fn a_fleet_without_a_slow_member_is_healthy() {
    let scratch = Scratch::alone();
    let ended = run(&scratch, &started(&scratch, "h[1-5]", &with_slow("none"), &[]));
    assert_eq!(ended.status, Some(0), "{ended:?}");
    assert!(ended.stdout.contains("no culprit among 5 members"), "{}", ended.stdout);
    assert_eq!(named(&scratch.record("fleet").0), [""; 0]);
}

/// Kills the coordinator, resumes it, kills it again, and so on; the last one ends.
#[test]
fn a_fleet_that_is_killed_at_any_moment_goes_on_and_ends_with_the_same_verdict() {
    let kills = number(KILLS_VARIABLE).unwrap_or(KILLS as u64);
    let mut moments = Moments(number(SEED_VARIABLE).unwrap_or(7));
    let scratch = Scratch::alone();
    let first = started(&scratch, "h[1-4]", &with_slow("h2"), &[]);
    let resume = ["fleet", "--resume", "fleet"].map(str::to_owned).to_vec();
    let mut measured = 0;
    for kill in 0..kills {
        // A fleet that has ended starts anew.
        let has_ended = scratch.at("fleet/run.json").exists() && scratch.record("fleet").0.ended.is_some();
        if has_ended {
            assert_eq!(named(&scratch.record("fleet").0), ["h2"], "kill {kill}");
            std::fs::remove_dir_all(scratch.at("fleet")).unwrap();
            measured = 0;
        }
        let is_new = !scratch.at("fleet/run.json").exists();
        // The agents of a fleet have started before its record begins.
        let words = if is_new { &first } else { &resume };
        let child = scratch.program(words).spawn().unwrap();
        std::thread::sleep(moments.next(RUN) + Duration::from_millis(100));
        // It may have ended by itself.
        signal(child.id().cast_signed(), Signal::KILL);
        let ended = collect(child);
        assert!(matches!(ended.status, None | Some(3)), "{ended:?}");
        if scratch.at("fleet/run.json").exists() {
            let points = scratch.record("fleet").1.len();
            assert!(points >= measured, "kill {kill}: {points} points were {measured}");
            measured = points;
        }
        scratch.assert_nothing_left();
    }
    let words = if scratch.at("fleet/run.json").exists() { &resume } else { &first };
    let ended = run(&scratch, words);
    assert_eq!(ended.status, Some(3), "{ended:?}");
    let (run, points) = scratch.record("fleet");
    assert_eq!(named(&run), ["h2"]);
    let mut places: Vec<_> = points.iter().map(|point| (&point.fleet, &point.experiment)).collect();
    places.sort_by_key(|(place, experiment)| (format!("{place:?}"), *experiment));
    places.dedup();
    assert_eq!(places.len(), points.len(), "no point is there twice");
}

#[test]
fn a_fleet_that_is_interrupted_says_how_to_go_on() {
    let scratch = Scratch::alone();
    let words = started(&scratch, "h[1-4]", &with_slow("none"), &[]);
    let child = scratch.program(&words).spawn().unwrap();
    await_points(&scratch, 3);
    signal(child.id().cast_signed(), Signal::INT);
    let ended = collect(child);
    assert_eq!(ended.status, Some(130), "{ended:?}");
    assert!(ended.stderr.contains("`rdmascope fleet --resume fleet` goes on"), "{}", ended.stderr);
    assert!(scratch.record("fleet").0.ended.is_none());
    scratch.assert_nothing_left();
    // A record may come from anywhere.
    let file = scratch.at("fleet/run.json");
    let record = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, record.replace("\"host\": \"h2\"", "\"host\": \"h9\"")).unwrap();
    let why = "cannot resume fleet: the record has other hosts than its command line names";
    scratch.refused(&["fleet", "--resume", "fleet"], 2, &[why]);
}

/// A member whose agent is killed in the middle, and cannot start again.
#[test]
fn a_member_that_dies_in_the_middle_costs_its_pairs_alone() {
    let scratch = Scratch::alone();
    let script = "host=$1; shift\n[ $host = h4 ] && [ -e dead ] && { echo the host is gone >&2; exit 9; }\nexec \"$@\" \
                  --link '1X DDR,latency=20us'\n";
    let words = started(&scratch, "h[1-6]", script, &[]);
    let child = scratch.program(&words).spawn().unwrap();
    await_points(&scratch, 12);
    scratch.write("dead", "");
    let agents = with_token(&scratch.token());
    let own = child.id().cast_signed();
    let mut own: Vec<i32> = agents.iter().map(|process| process.pid).filter(|pid| *pid != own).collect();
    own.sort_unstable();
    // Agents start in the order of the hosts.
    signal(own[3], Signal::KILL);
    let ended = collect(child);
    assert_eq!(ended.status, Some(1), "{ended:?}");
    assert!(ended.stdout.contains(" left out: h4: "), "{}", ended.stdout);
    assert!(ended.stdout.contains("no culprit among 5 members"), "{}", ended.stdout);
    let (run, points) = scratch.record("fleet");
    let is_of_fourth = |point: &&Point| point.fleet.as_ref().is_some_and(|place| place.members.contains(&3));
    let of_others = points.iter().filter(|point| !is_of_fourth(point));
    assert!(of_others.clone().count() >= 3 * 10 * 3, "{}", points.len());
    for point in of_others {
        assert_eq!(point.status, Status::Measured, "{point:?}");
    }
    assert_eq!(named(&run), [""; 0]);
}

#[test]
fn members_that_do_not_start_are_named_with_their_reasons() {
    let scratch = Scratch::on_one_cpu();
    let script = "host=$1; shift\ncase $host in\nh2) echo no route to host >&2; exit 255 ;;\nh3) echo Welcome; exec \"$@\" \
                  ;;\nh4) sleep 60 ;;\nesac\nexec \"$@\"\n";
    let words = started(&scratch, "h[1-8]", script, &["--passes", "1", "--start-timeout", "5s"]);
    let ended = run(&scratch, &words);
    assert_eq!(ended.status, Some(1), "{ended:?}");
    assert_words(
        &ended.stdout,
        &[
            " left out: h2: the agent of h2 (pid ",
            "it last said \"no route to host\"",
            " left out: h3: the agent of h3 (pid ",
            "expected the greeting of rdmascope but read \"Welcome\"",
            " left out: h4: the agent of h4 (pid ",
            "gave no answer within 5 s while starting",
        ],
    );
    let (run, points) = scratch.record("fleet");
    assert_eq!(run.fleet.as_ref().unwrap().left.len(), 3);
    // Ten pairs of the five others, and nothing of those that are left out.
    assert_eq!(points.len(), 10 * 3);
    assert!(points.iter().all(|point| point.status == Status::Measured), "{points:?}");
    scratch.assert_nothing_left();
}

/// A protocol that this program does not speak, another version of the program, and a host without
/// the device that its line names.
#[test]
fn members_of_another_version_or_without_their_device_are_left_out() {
    let scratch = Scratch::on_one_cpu();
    scratch.write("hosts", "h1\nh2\nh3\nh4\nh5\nh6 devices=none0\n");
    let script = "host=$1; shift\ncase $host in\nh4) echo rdmascope 9.9.9 protocol 999; exec sleep 60 ;;\nh5) \"$@\" | { read -r \
                  line; echo \"rdmascope 0.0.1 ${line#rdmascope * }\"; exec cat; }; exit ;;\nesac\nexec \"$@\"\n";
    let mut words = started(&scratch, "hosts", script, &["--passes", "1"]);
    words[2] = "--hosts-file".to_owned();
    let ended = run(&scratch, &words);
    assert_eq!(ended.status, Some(1), "{ended:?}");
    assert_words(
        &ended.stdout,
        &[
            "rdmascope 9.9.9 with protocol 999 cannot work with",
            " left out: h5: its rdmascope is version 0.0.1, and this is ",
            " left out: h6:none0: ",
        ],
    );
    let (run, points) = scratch.record("fleet");
    assert_eq!(run.fleet.as_ref().unwrap().left.len(), 3);
    assert_eq!(points.len(), 3 * 3, "three pairs of three members");
    assert!(points.iter().all(|point| point.status == Status::Measured), "{points:?}");
    scratch.assert_nothing_left();
}

/// Nothing is measured, and there is no record.
#[test]
fn a_fleet_of_which_no_pair_can_be_measured_says_why() {
    let scratch = Scratch::on_one_cpu();
    let words = started(&scratch, "h[1-3]", "echo no route to host >&2; exit 255\n", &[]);
    let ended = run(&scratch, &words);
    assert_eq!(ended.status, Some(1), "{ended:?}");
    assert_words(
        &ended.stderr,
        &["0 of 3 members can be used: h1: the agent of h1 (pid ", "no route to host", "; h3: "],
    );
    assert!(!scratch.at("fleet").exists());
    scratch.assert_nothing_left();
}

/// One round of as many agents as a variable says, all pairs at the same time.
#[test]
fn a_fleet_of_many_agents_measures_a_round() {
    let scratch = Scratch::on_one_cpu();
    let agents = number(AGENTS_VARIABLE).map_or(AGENTS, |agents| agents as usize);
    let text = agents.to_string();
    let words =
        "fleet tcp --schedule random --rounds 1 --passes 1 -n 20 -D 20ms --start-timeout 2min --out fleet";
    let words: Vec<&str> = words.split(' ').chain(["--local", &text, "--parallel", &text]).collect();
    let ended = scratch.run(&words);
    assert_eq!(ended.status, Some(1), "one round names nobody: {ended:?}");
    let (run, points) = scratch.record("fleet");
    assert!(run.fleet.unwrap().left.is_empty());
    assert_eq!(points.len(), agents / 2 * 3);
    assert!(points.iter().all(|point| point.status == Status::Measured));
    scratch.assert_nothing_left();
}

#[test]
fn the_verdict_is_also_an_object() {
    let scratch = Scratch::on_one_cpu();
    let words = ["fleet", "tcp", "--local", "4", "--json", "--passes", "2", "--out", "fleet"];
    let ended = scratch.run(&[&words[..], &SHORT].concat());
    let verdict: serde_json::Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!(verdict["members"], 4, "{verdict}");
    assert_eq!(verdict["quantities"]["throughput"]["count"], 12, "{verdict}");
    assert!(verdict["quantities"]["latency"]["quantiles"]["latency, 99 %"]["max"].is_f64(), "{verdict}");
    for culprit in verdict["culprits"].as_array().unwrap() {
        assert!(culprit["kind"].is_string() && culprit["against"] == "others", "{verdict}");
    }
    let known = [("healthy", 0), ("culprits", 3), ("undecided", 1)];
    assert!(known.contains(&(verdict["verdict"].as_str().unwrap(), ended.status.unwrap())), "{ended:?}");
    assert!(ended.stderr.contains("latency, 99 %["), "{}", ended.stderr);
    let text = scratch.run(&["report", "fleet", "--text"]);
    assert_eq!(text.status, Some(0), "{text:?}");
    assert!(text.stdout.contains("latency, 99 %["), "{}", text.stdout);
}

#[test]
fn all_pairs_of_a_fan_are_measured_at_the_same_time_in_its_direction() {
    let scratch = Scratch::on_one_cpu();
    for schedule in ["one-to-all", "all-to-one"] {
        let ended = scratch.run(&[
            "fleet",
            "tcp",
            "--local",
            "5",
            "--schedule",
            schedule,
            "--passes",
            "1",
            "-n",
            "50",
            "-D",
            "50ms",
            "--out",
            schedule,
        ]);
        assert_eq!(ended.status, Some(1), "such a schedule names nobody: {ended:?}");
        assert!(ended.stdout.contains("names no culprit: every pair has the same"), "{}", ended.stdout);
        let (_, points) = scratch.record(schedule);
        assert_eq!(
            points.iter().filter(|point| point.status == Status::Measured).count(),
            4 * 2,
            "{points:?}"
        );
        let centre = usize::from(schedule == "all-to-one");
        let is_of_centre = |point: &Point| point.fleet.as_ref().unwrap().members[centre] == 0;
        assert!(points.iter().all(is_of_centre), "{points:?}");
    }
}

#[test]
fn separate_rails_are_measured_at_the_same_time_and_each_by_itself() {
    let scratch = Scratch::on_all_cpus();
    let script = scratch.write("start.sh", "shift\nRDMASCOPE_SOFTDEV_DEVICES=2 exec \"$@\"\n");
    scratch.write("hosts", "h[1-3] devices=softdev0,softdev1\n");
    let via = format!("sh {} {{host}}", script.display());
    let words =
        ["fleet", "send", "--hosts-file", "hosts", "--via", &via, "--separate-rails", "--parallel", "2"];
    let ended = scratch.run(&[&words[..], &SHORT, &["--passes", "1", "--out", "fleet"]].concat());
    assert_eq!(ended.status, Some(1), "{ended:?}");
    assert_words(
        &ended.stdout,
        &[
            "schedule all-pairs, each rail by itself: 6 measurements of pairs in 3 rounds",
            "not decided: softdev0: latency: fewer than four members answered",
            "not decided: softdev1: throughput: fewer than four members answered",
        ],
    );
    let (run, points) = scratch.record("fleet");
    let rail = |member: u32| run.fleet.as_ref().unwrap().members[member as usize].device.clone().unwrap();
    let mut rounds: BTreeMap<u64, BTreeSet<String>> = BTreeMap::new();
    for point in &points {
        let place = point.fleet.as_ref().unwrap();
        assert_eq!(point.status, Status::Measured, "{point:?}");
        assert_eq!(rail(place.members[0]), rail(place.members[1]), "{place:?}");
        rounds.entry(place.round).or_default().insert(rail(place.members[0]));
    }
    assert_eq!(points.len(), 6 * 3);
    assert!(rounds.values().all(|rails| rails.len() == 2), "both rails in each round: {rounds:?}");
}

#[test]
fn limits_and_an_earlier_fleet_are_compared_with() {
    let scratch = Scratch::alone();
    let words = started(&scratch, "h[1-4]", &with_slow("none"), &[]);
    let ended = run(&scratch, &words);
    assert_eq!(ended.status, Some(0), "{ended:?}");
    std::fs::rename(scratch.at("fleet"), scratch.at("before")).unwrap();
    // All of them are slower than that, which no member explains.
    let more = ["--schedule", "ring", "--passes", "1", "--at-least", "80Gb/s"];
    let words = started(&scratch, "h[1-4]", &with_slow("none"), &more);
    let ended = run(&scratch, &words);
    assert_eq!(ended.status, Some(3), "{ended:?}");
    assert_words(&ended.stdout, &["below the expectation", "limit: throughput at least 9537 MiB/s: missed"]);
    scratch.refused(&["compare", "before", "fleet"], 1, &["schedule: all-pairs -> ring", "--anyway"]);
    std::fs::remove_dir_all(scratch.at("fleet")).unwrap();
    // Nothing is started for it.
    for (more, why) in [
        ("-n 77", "iterations of latency is 100 in the earlier fleet, and 77 now"),
        ("-n 100 --net loopback", "--net is not given in the earlier fleet, and loopback now"),
        ("-n 100 --gid-index 1", "the port is the usual one in the earlier fleet, and --gid-index 1 now"),
    ] {
        let words = ["fleet", "send", "--hosts", "h[1-4]", "--via", "false {host}", "--baseline", "before"];
        let words: Vec<&str> = words.into_iter().chain(more.split(' ')).collect();
        scratch.refused(&words, 2, &[&format!("--baseline: {why}")]);
    }
    let words = started(&scratch, "h[1-4]", &with_slow("h4"), &["--baseline", "before"]);
    let ended = run(&scratch, &words);
    assert_eq!(ended.status, Some(3), "{ended:?}");
    assert_eq!(named(&scratch.record("fleet").0), ["h4"], "{}", ended.stdout);
    assert_words(&ended.stdout, &["baseline: before"]);
    // Of a fleet, all pairs together are a point of each quantity.
    let ended = scratch.run(&["compare", "before", "fleet", "--anyway"]);
    assert_words(&ended.stdout, &["throughput of one direction", "verdict: same (2 same)"]);
    assert!(!ended.stdout.contains("->") && !ended.stdout.contains("only in"), "{}", ended.stdout);
}

#[test]
fn what_is_left_of_the_time_decides_how_many_suspects_are_measured() {
    let scratch = Scratch::alone();
    let script = with_slow("h2");
    let words = |time| started(&scratch, "h[1-4]", &script, &["--time", time]);
    // Too little for two passes, so nobody is named.
    let ended = run(&scratch, &words("100ms"));
    assert_eq!(ended.status, Some(1), "{ended:?}");
    let (record, _) = scratch.record("fleet");
    let fleet = record.fleet.unwrap();
    assert!(fleet.rounds_in_time.is_some_and(|rounds| rounds < 9), "{fleet:?}");
    assert!(fleet.time_left.is_some(), "{fleet:?}");
    let points = scratch.record("fleet").1.len();
    let again = scratch.run(&["fleet", "--resume", "fleet"]);
    assert_eq!(again.status, Some(1), "the record has what time allowed: {again:?}");
    assert_eq!(scratch.record("fleet").1.len(), points);
    std::fs::remove_dir_all(scratch.at("fleet")).unwrap();
    let ended = run(&scratch, &words("20min"));
    assert_eq!(ended.status, Some(3), "{ended:?}");
    assert!(!ended.stderr.contains("--time"), "{}", ended.stderr);
    let (record, _) = scratch.record("fleet");
    assert_eq!(named(&record), ["h2"]);
    assert!(record.fleet.unwrap().time_left.is_some_and(|left| left.rounds > 100));
}

#[test]
fn what_cannot_be_examined_is_refused() {
    let scratch = Scratch::new();
    let via = ["--via", "ssh {host}"];
    let refused = |words: &[&str], expected: &[&str]| {
        scratch.refused(&[&["fleet"], words].concat(), 2, expected);
    };
    refused(&[], &["name the hosts with --hosts or --hosts-file, or try --local 4"]);
    refused(&["--hosts", "a,b"], &["--via has to say how to reach a host", "--via 'ssh {host}'"]);
    refused(&["--hosts", "a[1", via[0], via[1]], &["--hosts: \"a[1\" has a [ without its ]"]);
    refused(&["--hosts", "a", via[0], via[1]], &["a fleet has at least two hosts"]);
    refused(&["--hosts", "a b", via[0], via[1]], &["--hosts: \"a b\" has a space: put commas between names"]);
    refused(&["mpi", "--local", "2"], &["a fleet cannot measure \"mpi\": use send, "]);
    refused(
        &["tcp", "--local", "4", "--at-least", "90%"],
        &["--at-least 90%: what the link carries is not known"],
    );
    refused(
        &["tcp", "--local", "4", "--at-most", "9Gb/s"],
        &["--at-most 9Gb/s: give a time such as \"5 us\""],
    );
    scratch.write("hosts", "a devices=mlx5_0,mlx5_1\nb devices=mlx5_0,mlx5_1\n");
    let words = ["tcp uses no device", "leave out --device and devices="];
    refused(&["tcp", "--hosts-file", "hosts", via[0], via[1]], &words);
    let rails = ["--separate-rails", "--hosts-file", "hosts", via[0], via[1]];
    refused(
        &[&rails[..], &["--schedule", "one-to-all"]].concat(),
        &["--separate-rails: one-to-all has one centre", "use another --schedule"],
    );
    scratch.write("hosts", "a devices=mlx5_0,mlx5_1\nb devices=mlx5_0\n");
    refused(&rails, &["--separate-rails: mlx5_1 is the device of one host alone, and a rail has several"]);
    scratch.write("hosts", "a devices=mlx5_0,mlx5_1\nb\n");
    refused(&rails, &["--separate-rails: name the devices of b by devices= in --hosts-file"]);
    scratch.write("hosts", "# none\n");
    refused(&["--hosts-file", "hosts", via[0], via[1]], &["hosts names no host: write a host on each line"]);
    scratch.write("hosts", "a\nb leaf\n");
    refused(&["--hosts-file", "hosts", via[0], via[1]], &["hosts, line 2: \"leaf\" is not group=NAME"]);
    scratch.run(&["lat", "shmem", "--local", "-n", "10", "--out", "other"]);
    refused(&["--resume", "other"], &["cannot resume other: it is no run of `rdmascope fleet`"]);
    refused(
        &["tcp", "--local", "4", "--baseline", "other"],
        &["--baseline other: it is no run of `rdmascope fleet`"],
    );
}

/// Network namespaces behind a switch, one of which sends slowly (tc-tbf(8)). The others are
/// limited, too, and to a fraction of what a busy machine sends: the limits alone decide.
#[test]
fn the_host_with_a_slow_link_is_named_and_none_without_it() {
    let scratch = Scratch::alone();
    let Some(switch) = Switch::new(hosts()) else { return };
    let limit = |rate: &str| format!("tbf rate {rate} burst 16k latency 100ms");
    if let Err(why) = (0..switch.names.len()).try_for_each(|host| switch.shape(host, &limit("200mbit"))) {
        return skip("tbf", &why);
    }
    is_named(&scratch, &switch, "100", &limit("50mbit"), "throughput: sends ");
    switch.shape(SLOW, &limit("200mbit")).unwrap();
    is_healthy(&scratch, &switch, "100");
}

/// The host that is made slow.
const SLOW: usize = 3;

/// Runs a fleet of namespaces of which one sends by a queue, in the syntax of tc(8), and expects
/// its name and no other. A kernel without the queue is reported.
pub(crate) fn is_named(scratch: &Scratch, switch: &Switch, messages: &str, queue: &str, expected: &str) {
    if let Err(why) = switch.shape(SLOW, queue) {
        return skip(queue.split(' ').next().unwrap(), &why);
    }
    let ended = of_namespaces(scratch, switch, messages, "slow");
    assert_eq!(ended.status, Some(3), "{ended:?}");
    let name = &switch.names[SLOW];
    assert!(ended.stdout.contains(&format!(" ! {name}: {expected}")), "{}", ended.stdout);
    assert_eq!(named(&scratch.record("slow").0), std::slice::from_ref(name));
}

/// Runs a fleet of namespaces that are alike, and expects no name.
pub(crate) fn is_healthy(scratch: &Scratch, switch: &Switch, messages: &str) {
    let ended = of_namespaces(scratch, switch, messages, "alike");
    assert_eq!(ended.status, Some(0), "{ended:?}");
    let healthy = format!("no culprit among {} members", switch.names.len());
    assert!(ended.stdout.contains(&healthy), "{}", ended.stdout);
}

/// Runs a fleet of namespaces, with so many messages for a latency. A machine that is disturbed may
/// leave it undecided, which accuses and clears nobody: then it is measured again.
fn of_namespaces(scratch: &Scratch, switch: &Switch, messages: &str, out: &str) -> Ended {
    let hosts = switch.names.join(",");
    let words = ["fleet", "--hosts", &hosts, "--via", "ip netns exec {host}", "--out", out];
    let short = ["-n", messages, "-D", "40ms", "-s", "4KiB", "--visits-apart", "0"];
    let words = [&words[..], &short].concat();
    for _ in 1..FLEETS {
        let ended = scratch.run(&words);
        if ended.status != Some(1) || !ended.stdout.contains(" not decided: ") {
            return ended;
        }
        eprintln!("{}", ended.stdout);
        std::fs::remove_dir_all(scratch.at(out)).unwrap();
    }
    scratch.run(&words)
}

/// Waits until a record in the making has so many points.
#[track_caller]
fn await_points(scratch: &Scratch, count: usize) {
    let began = std::time::Instant::now();
    let path = scratch.at("fleet/points.jsonl");
    while lines(&path) < count {
        assert!(began.elapsed() < crate::support::DEADLINE, "nothing is measured");
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn lines(path: &Path) -> usize {
    std::fs::read(path).map_or(0, |text| text.iter().filter(|byte| **byte == b'\n').count())
}
