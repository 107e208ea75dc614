//! What a new user reads: help with examples, completions, the manual page, lists.

use crate::support::{PROGRAM, Scratch, finish, is_installed, skip};

#[test]
fn help_teaches_by_example_and_fits_a_terminal() {
    let scratch = Scratch::new();
    for (arguments, example) in [
        (&["--help"][..], "rdmascope run quick"),
        (&["run", "--help"], "rdmascope run quick --out"),
        (&["lat", "--help"], "rdmascope lat send"),
        (&["lat", "send", "--help"], "rdmascope lat send --local -a"),
        (&["bw", "send", "--help"], "rdmascope bw send --local -b"),
        (&["one-way", "--help"], "rdmascope one-way send"),
        (&["one-way", "write", "--help"], "--stamp sent"),
        (&["fan-out", "--help"], "rdmascope fan-out send"),
        (&["fan-out", "read", "--help"], "--notify memory"),
        (&["pairs", "--help"], "rdmascope pairs write"),
        (&["pairs", "read", "--help"], "--stream"),
        (&["open-loop", "--help"], "rdmascope open-loop send"),
        (&["open-loop", "read", "--help"], "--load outcast"),
        (&["overhead", "--help"], "rdmascope overhead --local"),
        (&["advise", "--help"], "rdmascope advise --local"),
        (&["model", "--help"], "rdmascope model gamess-2016"),
        (&["report", "--help"], "rdmascope report"),
        (&["plans", "--help"], "rdmascope plans quick >"),
        (&["devices", "--help"], "rdmascope devices --json"),
        (&["doctor", "--help"], "rdmascope doctor -d"),
        (&["exec", "--help"], "rdmascope exec ibv_devinfo"),
    ] {
        let text = scratch.succeed(arguments);
        let examples =
            text.split("Examples:").nth(1).unwrap_or_else(|| panic!("{arguments:?} has no examples"));
        assert!(examples.contains(example), "{arguments:?}: {text}");
        let longest = text.lines().map(|line| line.chars().count()).max().unwrap();
        assert!(longest <= 100, "{arguments:?} is {longest} wide");
        let longest = examples.lines().map(|line| line.chars().count()).max().unwrap();
        assert!(longest <= 80, "an example of {arguments:?} is {longest} wide");
    }
}

#[test]
fn no_command_is_help_on_standard_error_and_wrong_usage() {
    let scratch = Scratch::new();
    let commands = ["lat", "bw", "one-way", "fan-out", "open-loop", "overhead", "pairs"];
    for arguments in commands.chunks(1) {
        let ended = scratch.run(arguments);
        assert_eq!((ended.status, ended.stdout.as_str()), (Some(2), ""));
        assert!(ended.stderr.contains("Usage: rdmascope"), "{ended:?}");
    }
    let start = scratch.run(&[]);
    assert_eq!((start.status, start.stdout.as_str()), (Some(2), ""));
    // Without a command, what to do first is said in a few lines, and not all commands.
    let start = scratch.run(&[]).stderr;
    assert!(start.lines().count() < 15 && start.contains("rdmascope run quick"), "{start}");
    assert!(start.lines().all(|line| line.chars().count() <= 80), "{start}");
}

#[test]
fn every_example_is_understood() {
    let scratch = Scratch::new();
    let benchmarks = [
        &["lat", "send", "--help"][..],
        &["bw", "send", "--help"],
        &["one-way", "send", "--help"],
        &["fan-out", "send", "--help"],
        &["open-loop", "send", "--help"],
        &["overhead", "--help"],
        &["pairs", "send", "--help"],
        &["advise", "--help"],
    ];
    for help in [&["--help"][..], &["run", "--help"]].into_iter().chain(benchmarks) {
        let text = scratch.succeed(help);
        let examples = text.split("Examples:").nth(1).unwrap();
        for line in examples.lines().filter_map(|line| line.trim().strip_prefix("rdmascope ")) {
            if line.starts_with("exec ") {
                continue; // The rest is the command of another program.
            }
            // The text after two spaces explains the command.
            let command = line.split("  ").next().unwrap();
            let mut shell = scratch.command("sh");
            shell.args(["-c", &format!("\"$0\" {command} --help"), *PROGRAM]);
            let ended = finish(shell);
            assert_eq!(ended.status, Some(0), "{command}: {ended:?}");
        }
    }
}

#[test]
fn completions_are_accepted_by_bash() {
    if !is_installed("bash") {
        return skip("bash", "it is not installed");
    }
    let scratch = Scratch::new();
    let script = "source <(\"$0\" completions bash) && COMP_WORDS=(rdmascope $1) && COMP_CWORD=$(( ${#COMP_WORDS[@]} - 1 )) && \
                  _rdmascope rdmascope \"${COMP_WORDS[-1]}\" && echo \"${COMPREPLY[@]}\"";
    for (words, completed) in [("de", "devices"), ("lat se", "send"), ("run --star", "--start-timeout")] {
        let mut bash = scratch.command("bash");
        bash.args(["--norc", "-c", script, *PROGRAM, words]);
        let ended = finish(bash);
        assert_eq!((ended.status, ended.stdout.trim(), ended.stderr.as_str()), (Some(0), completed, ""));
    }
    for shell in ["zsh", "fish", "elvish", "powershell"] {
        assert!(scratch.succeed(&["completions", shell]).contains("start-timeout"));
    }
}

#[test]
fn the_manual_pages_render_without_a_warning() {
    let scratch = Scratch::new();
    let directory = scratch.at("man1");
    std::fs::create_dir(&directory).unwrap();
    scratch.succeed(&["man", "--directory", &directory.to_string_lossy()]);
    let pages: Vec<_> = std::fs::read_dir(&directory).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert!(pages.len() > 50, "{pages:?}");
    let tools: [(&str, &[&str]); 2] =
        [("groff", &["-man", "-Tutf8", "-ww", "-z"]), ("mandoc", &["-Tlint", "-Wwarning"])];
    let mut tried = 0;
    for (tool, arguments) in tools.into_iter().filter(|(tool, _)| is_installed(tool)) {
        let mut command = scratch.command(tool);
        command.args(arguments).args(&pages);
        let ended = finish(command);
        assert_eq!((ended.status, ended.stdout.as_str(), ended.stderr.as_str()), (Some(0), "", ""), "{tool}");
        tried += 1;
    }
    if tried == 0 {
        skip("man", "neither groff nor mandoc is installed");
    }
    let page = |name: &str| std::fs::read_to_string(directory.join(name)).unwrap();
    for (name, words) in [
        ("rdmascope.1", &[".SH EXAMPLES", "rdmascope\\-completions(1)", ".SH EXIT STATUS"][..]),
        ("rdmascope-lat.1", &["rdmascope\\-lat\\-send(1)"]),
        ("rdmascope-lat-send.1", &[".SH EXAMPLES", "start\\-timeout", ".SH OPTIONS"]),
    ] {
        for word in words {
            assert!(page(name).contains(word), "{name} lacks {word}");
        }
    }
    assert_eq!(scratch.succeed(&["man", "lat", "send"]), page("rdmascope-lat-send.1"));
    assert_eq!(scratch.succeed(&["man"]), page("rdmascope.1"));
    let wrong = scratch.run(&["man", "lat", "agent"]);
    assert_eq!(wrong.status, Some(2));
    assert!(wrong.stderr.contains("has no command `lat agent`"), "{}", wrong.stderr);
}

#[test]
fn devices_and_plans_are_listed() {
    let scratch = Scratch::new();
    // Missing parts are reported on standard error, and are no failure.
    let ended = scratch.run(&["devices"]);
    assert!(ended.status == Some(0) && ended.stdout.contains("\nsoftdev0  software"), "{ended:?}");
    assert!(ended.stderr.lines().all(|line| line.starts_with("rdmascope: ")), "{ended:?}");
    let json = scratch.run(&["devices", "--json"]).stdout;
    let survey: serde_json::Value = serde_json::from_str(&json).unwrap();
    let devices = survey["devices"].as_array().unwrap();
    let softdev = devices.iter().find(|device| device["name"] == "softdev0").unwrap();
    assert_eq!(
        (&softdev["kind"], &softdev["ports"][0]["state"]),
        (&"user_space_software".into(), &"active".into())
    );
    // Every name that is printed is in the help.
    let help = scratch.succeed(&["devices", "--help"]);
    let ports = softdev["ports"].as_array().unwrap();
    let mpi = ["mpi_libraries", "mpi_launchers"].map(|list| survey[list].as_array().unwrap());
    let objects = [&survey, softdev, &ports[0], &ports[0]["gids"][0]].into_iter();
    for object in objects.chain(mpi.into_iter().flatten()) {
        for name in object.as_object().unwrap().keys() {
            assert!(help.contains(name.as_str()), "{name} is not in the help");
        }
    }
    let plans = scratch.succeed(&["plans"]);
    let quick = plans.lines().nth(1).unwrap();
    assert!(quick.starts_with("quick ") && quick.contains("  A first look: latency"), "{plans}");
    assert!(plans.lines().all(|line| line.chars().count() <= 80), "{plans}");
    let mut narrow = scratch.program(["plans"]);
    narrow.env("COLUMNS", "60");
    let narrow = finish(narrow).stdout;
    assert!(narrow.lines().all(|line| line.chars().count() <= 60), "{narrow}");
    let text = scratch.succeed(&["plans", "quick"]);
    scratch.write("mine.toml", text);
    scratch.succeed(&["run", "mine.toml", "--dry-run"]);
    assert!(scratch.succeed(&["--version"]).starts_with("rdmascope "));
}
