//! Agents that do not start, and other programs in their place, by `--via`: one sentence, exit
//! status 1, nothing left behind.

use crate::support::{Ended, PROGRAM, SMALL, Scratch, all_measured};

/// Runs with agents that a shell script starts. The arguments of the script are the agent's
/// command.
fn run(script: &str, more: &[&str]) -> (Scratch, Ended) {
    let scratch = Scratch::on_one_cpu();
    scratch.write("plan.toml", SMALL);
    let path = scratch.write("agent.sh", script);
    let via = format!("sh {} {{host}}", path.display());
    let all = [&["run", "plan.toml", "--out", "record", "--hosts", "red,blue", "--via", &via], more].concat();
    let ended = scratch.run(&all);
    scratch.assert_nothing_left();
    (scratch, ended)
}

/// Asserts that the last line is a sentence with these words, that no result is printed, and that
/// no directory is left.
#[track_caller]
fn fails(script: &str, more: &[&str], words: &[&str]) {
    let (scratch, ended) = run(script, more);
    assert_eq!((ended.status, ended.stdout.as_str()), (Some(1), ""), "{script}: {ended:?}");
    let message = ended.stderr.lines().last().unwrap();
    assert!(message.starts_with("rdmascope: ") && !message.contains("warning"), "{message}");
    for word in words {
        assert!(message.contains(word), "{script}: no {word:?} in {message}");
    }
    assert!(!scratch.at("record").exists());
}

#[test]
fn an_agent_may_be_started_by_any_command_and_its_words_are_shown() {
    let (scratch, ended) = run("host=$1; shift; echo \"hello from $host\" >&2; exec \"$@\"", &[]);
    assert_eq!(ended.status, Some(0), "{ended:?}");
    // On a busy machine, a calibration may fail, which is reported, too.
    let is_said = |line: &&str| !line.contains("the core-to-core latency was not measured");
    let mut said: Vec<_> = ended.stderr.lines().filter(is_said).collect();
    said.sort_unstable();
    assert_eq!(said, ["[rank 0 red] hello from red", "[rank 1 blue] hello from blue"]);
    assert!(all_measured(&scratch.record("record").1));
}

#[test]
fn a_wrapper_without_hosts_runs_here() {
    let scratch = Scratch::on_one_cpu();
    scratch.succeed(&["lat", "send", "-n", "20", "--via", "env"]);
    scratch.succeed(&["lat", "send", "-n", "20", "--via", "env", "--agent-path", *PROGRAM]);
    scratch.assert_nothing_left();
}

#[test]
fn a_command_that_is_not_there_is_named() {
    let scratch = Scratch::on_one_cpu();
    let via = ["lat", "send", "--via", "no-such-command {host}", "--hosts", "a,b"];
    scratch.refused(&via, 1, &["cannot start the agent of rank 0", "\"no-such-command\"", "os error"]);
    let path = ["lat", "send", "--via", "env", "--agent-path", "/no/such/rdmascope"];
    let ended = scratch.run(&path);
    assert_eq!(ended.status, Some(1), "{ended:?}");
    assert!(ended.stderr.contains("/no/such/rdmascope"), "{ended:?}");
    scratch.assert_nothing_left();
}

#[test]
fn what_is_not_rdmascope_is_quoted() {
    fails(
        "[ $1 = blue ] || echo 'Last login: yesterday'; exec sleep 60",
        &[],
        &["rank 0 on red", "\"Last login: yesterday\"", "print nothing itself"],
    );
    fails("exec cat /dev/zero", &[], &["the agent of rank", "cannot be used"]);
    fails("exec yes", &[], &["the agent of rank", "cannot be used", "\"y\""]);
}

#[test]
fn an_echo_is_no_agent() {
    fails("exec cat", &[], &["the agent of rank", "cannot be used"]);
}

#[test]
fn another_version_says_so() {
    let script = "echo 'rdmascope 9.9.9 protocol 999'; exec sleep 60";
    fails(script, &[], &["rdmascope 9.9.9 with protocol 999", "install the same version on both hosts"]);
    // Another version of the program with the same protocol is reported and used.
    let script = "shift; \"$@\" | { read -r line; echo \"rdmascope 0.0.1 ${line#rdmascope * }\"; exec cat; }";
    let (scratch, ended) = run(script, &[]);
    assert_eq!(ended.status, Some(0), "{ended:?}");
    assert!(ended.stderr.contains("an agent is version 0.0.1, this program is"), "{ended:?}");
    assert!(all_measured(&scratch.record("record").1));
}

#[test]
fn silence_ends_with_the_time_to_start() {
    fails("exec sleep 60", &["--start-timeout", "1"], &["gave no answer within 1 s while starting"]);
}

#[test]
fn an_agent_that_ends_is_quoted() {
    fails(
        "echo 'the license has expired' >&2; exit 7",
        &[],
        &["exit status 7 while starting", "\"the license has expired\""],
    );
    fails("kill -9 $$", &[], &["was killed by signal 9 while starting"]);
    fails("exit 0", &[], &["ended with exit status 0 while starting"]);
}

#[test]
fn control_characters_of_an_agent_do_not_reach_the_terminal() {
    let (_, ended) = run("printf '\\033[31mred\\a alert\\n' >&2; shift; exec \"$@\"", &[]);
    assert_eq!(ended.status, Some(0), "{ended:?}");
    assert!(!ended.stderr.contains(['\u{1b}', '\u{7}']), "{ended:?}");
}
