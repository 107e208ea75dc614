//! Applications: their output becomes the numbers of a point, and each deviation from what a plan
//! expects has a sentence.

use std::fs;
use std::time::{Duration, Instant};

use measure::record::{Point, Status};
use rustix::process::Signal;

use crate::support::processes::{signal, with_token};
use crate::support::{DEADLINE, Scratch, all_measured, collect, is_installed, skip};

/// Writes a plan with these programs and these axes of its experiment.
fn plan(scratch: &Scratch, programs: &str, axes: &str) {
    let text = format!(
        "name = \"x\"\ntitle = \"X\"\n{programs}\n[[experiment]]\nname = \"e\"\npattern = \"application\"\n\
         timeout = \"20s\"\n[experiment.axes]\n{axes}\n"
    );
    scratch.write("x.toml", text);
}

/// Returns an application that is a shell script, with one metric `t`, printed after "t=".
fn shell(name: &str, script: &str, more: &str) -> String {
    format!(
        "[[application]]\nname = {name:?}\ncommand = [\"sh\", \"-c\", {script:?}]\nlauncher = \"none\"\n{more}\n\
         [[application.metric]]\nname = \"t\"\nunit = \"s\"\npattern = '^t=(?<value>\\S+)$'\n"
    )
}

/// Runs the plan; returns its points, ordered by their programs.
fn run(scratch: &Scratch, more: &[&str]) -> (Option<i32>, Vec<Point>, String) {
    let _ = fs::remove_dir_all(scratch.at("r"));
    let ended = scratch.run(&[&["run", "x.toml", "--out", "r"], more].concat());
    let (_, points) = scratch.record("r");
    scratch.assert_nothing_left();
    (ended.status, points, ended.stdout + &ended.stderr)
}

/// Returns the reason or the error of a point that was not measured or failed.
fn words(point: &Point) -> &str {
    match &point.status {
        Status::Failed { error } => error,
        Status::NotMeasured { reason } => reason,
        Status::Measured => "",
    }
}

fn own<'a>(point: &'a Point, path: &str) -> &'a serde_json::Value {
    point.own["application"].pointer(path).unwrap_or(&serde_json::Value::Null)
}

#[test]
fn what_a_program_says_is_the_point() {
    let scratch = Scratch::alone();
    let more = "files = { input = \"in.txt\", own = { name = \"own.txt\", text = \"{ranks} {directory} {{}}\" } }\n\
                environment = { A = \"{ranks}\" }\nversion_command = [\"echo\", \"\\nversion 7\"]\n\
                verify = ['^all is well$', { pattern = '^out', in = \"out.txt\" }]";
    let script =
        "cat {input} {own}; echo; echo t=1.5; echo \"$A $B $PWD\" >&2; echo out > out.txt; echo all is well";
    scratch.write("in.txt", "in\n");
    let modes =
        "[[mode]]\nname = \"b\"\nenvironment = { B = \"{directory}\" }\n[variables]\ndirectory = \"\"\n";
    plan(
        &scratch,
        &(shell("a", script, more) + modes),
        "application = \"a\"\nranks = 2\nmode = [\"plain\", \"b\"]",
    );
    let (status, points, printed) = run(&scratch, &["--set", "directory=/data"]);
    assert_eq!(status, Some(0), "{printed}");
    assert!(points.len() == 2 && all_measured(&points), "{points:?}");
    let point = &points[1];
    assert_eq!(own(point, "/metrics/t/value"), 1.5);
    assert_eq!(own(point, "/metrics/t/unit"), "s");
    assert_eq!(own(point, "/said/stdout/text"), "in\n2 /data {}\nt=1.5\nall is well\n");
    assert_eq!(own(point, "/said/out.txt/text"), "out\n");
    assert_eq!(own(point, "/version"), "version 7");
    let errors = own(point, "/said/stderr/text").as_str().unwrap();
    assert!(errors.starts_with("2 /data /") && errors.contains("rdmascope-"), "{errors}");
    assert!(own(&points[0], "/said/stderr/text").as_str().unwrap().starts_with("2  /"));
    let hash = "2cb7c13a0bdf1ab2d6cbb9d2fc1aba0fb7ae6f1bb6ff5a4aa1c9a3cf2a5b9a3e";
    let inputs = own(point, "/inputs").as_array().unwrap();
    assert!(
        inputs.len() == 2 && inputs.iter().all(|input| input["sha256"].as_str().unwrap().len() == hash.len())
    );
    assert!(own(point, "/executable/path").as_str().unwrap().ends_with("/sh"));
    assert_eq!(own(point, "/usage/exit"), 0);
    assert!(
        own(point, "/usage/wall_ns").as_u64().unwrap() > 0
            && own(point, "/usage/max_rss_bytes").as_u64() > Some(0)
    );
    assert!(printed.contains("t 1.5 s"), "{printed}");
    let names: Vec<_> = point.axes.keys().map(String::as_str).collect();
    assert_eq!(names, ["application", "endpoint", "mode", "ranks"]);
    assert!(point.ends[0].host.contains_key("context_switches"), "{:?}", point.ends[0].host);
}

#[test]
fn a_program_that_goes_wrong_is_a_point_with_a_sentence() {
    let scratch = Scratch::alone();
    let ranks = "ranks_allowed = \"powers_of_two\"";
    let wrong = [
        (
            "exits",
            "echo t=1; echo one >&2; echo no room for it >&2; exit 3",
            "",
            "exits ended with exit status 3: its last output: one | no room for it",
        ),
        ("killed", "echo t=1; kill -SEGV $$", "", "killed was killed by signal 11: its last output: t=1"),
        ("silent", "exit 1", "", "silent ended with exit status 1: it printed nothing"),
        (
            "other",
            "echo a; echo b",
            "",
            "other must print t once: \"^t=(?<value>\\\\S+)$\" does not match in its stdout, which ends with: a | b",
        ),
        ("twice", "echo t=1; echo t=2", "", "matches 2 times in its stdout, which ends with: t=1 | t=2"),
        ("words", "echo t=much", "", "words prints \"much\" as its t, which is not a number"),
        (
            "unverified",
            "echo t=1",
            "verify = ['SUCCESSFUL']",
            "unverified failed its verification: \"SUCCESSFUL\" is not in its stdout",
        ),
        (
            "alone",
            "echo t=1; echo on 1 procs",
            "verify = ['on (?<ranks>\\d+) procs']",
            "alone counts 1 ranks, but 3 were started",
        ),
        ("three", "echo t=1", ranks, "three runs on a power of two of ranks (1, 2, 4, 8), not on 3"),
        (
            "file",
            "echo t=1",
            "files = { data = \"/no/such/file\" }\ninstall = \"see example.org\"",
            "file needs the file \"/no/such/file\", which does not exist (see example.org)",
        ),
        (
            "open",
            "echo t=1 {where}",
            "",
            "open needs where, which this plan does not set: set it with --set where=TEXT",
        ),
    ];
    let absent = "[[application]]\nname = \"absent\"\ncommand = [\"no-such-program\"]\nlauncher = \"none\"\n\
                  install = \"apt-get install it\"\n[[application.metric]]\nname = \"t\"\npattern = '(?<value>1)'\n";
    let names: Vec<_> = wrong.iter().map(|(name, ..)| format!("{name:?}")).collect();
    let programs: String = wrong.iter().map(|(name, script, more, _)| shell(name, script, more)).collect();
    let axes =
        format!("application = [\"absent\", {}]\nranks = 3\nmpi_oversubscribe = true", names.join(", "));
    plan(&scratch, &format!("{programs}{absent}[variables]\nwhere = \"\"\n"), &axes);
    let (status, points, printed) = run(&scratch, &[]);
    assert_eq!((status, points.len()), (Some(1), wrong.len() + 1), "{printed}");
    assert_eq!(words(&points[0]), "no-such-program is not installed here (apt-get install it)");
    for (point, (name, _, _, sentence)) in points[1..].iter().zip(wrong) {
        assert!(words(point).contains(sentence), "{name}: {}", words(point));
        assert!(!words(point).contains('\n'), "{name}");
    }
    assert_eq!(own(&points[1], "/said/stdout/text"), "t=1\n", "what it said is kept");
}

#[test]
fn a_program_that_does_not_end_is_ended_with_all_that_it_has_started() {
    let scratch = Scratch::waiting();
    let script = "trap '' TERM; sleep 1000 & (setsid sleep 1000 &) ; echo begun; touch file; sleep 1000";
    plan(&scratch, &shell("endless", script, ""), "application = \"endless\"\nranks = 1");
    let start = Instant::now();
    let (status, points, printed) = run(&scratch, &["--set", "timeout=2s"]);
    assert_eq!(status, Some(1), "{printed}");
    assert!(start.elapsed() < Duration::from_secs(40), "{:?}", start.elapsed());
    let sentence = words(&points[0]);
    let limit = "endless was stopped at the point's time limit of 2 s: give it a longer timeout";
    assert_eq!(sentence, limit);
    assert_eq!(own(&points[0], "/said/stdout/text"), "begun\n");
}

/// A process that has left its group, its session and its environment still belongs to the program.
#[test]
fn what_a_program_leaves_running_ends_with_it() {
    let scratch = Scratch::waiting();
    let begin = "env -i sleep 1234 & setsid -f env -i sleep 1235; perl -e '$0 = \"other\"; sleep 1236' 2>&1 & echo t=1";
    plan(&scratch, &shell("leaves", begin, ""), "application = \"leaves\"\nranks = 1");
    let (status, points, printed) = run(&scratch, &[]);
    assert_eq!((status, own(&points[0], "/metrics/t/value").as_f64()), (Some(0), Some(1.0)), "{printed}");
    let left = std::process::Command::new("pgrep").args(["-f", "^sleep 123[456]"]).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&left.stdout), "");
}

/// The program ends at its time limit, and its output is kept as far as there is room.
#[test]
fn a_program_that_prints_without_end_costs_its_point_only() {
    // The program uses all the CPU time that it gets: ranks of MPI would have to wait for the CPU.
    let scratch = Scratch::alone();
    let babbler = shell("babbler", "echo first; yes", "");
    let other = shell("other", "yes | head -c 3000000; echo t=2; head -c 600000 /dev/zero >&2", "");
    plan(&scratch, &(babbler + &other), "application = [\"babbler\", \"other\"]\nranks = 1");
    let is_cut = |point: &Point| {
        let text = own(point, "/said/stdout/text").as_str().unwrap();
        assert!(text.len() < 2 << 20 && text.contains("[some of it is left out here]"), "{}", text.len());
    };
    let (status, points, printed) = run(&scratch, &["--set", "application=babbler", "--set", "timeout=3s"]);
    assert_eq!(status, Some(1), "{printed}");
    assert!(words(&points[0]).contains("time limit of 3 s"), "{}", words(&points[0]));
    is_cut(&points[0]);
    // How long reading much output takes depends on what else the machine does.
    let (status, points, printed) = run(&scratch, &["--set", "application=other"]);
    assert_eq!(status, Some(0), "{printed}");
    assert_eq!(own(&points[0], "/metrics/t/value").as_f64(), Some(2.0), "{}", words(&points[0]));
    assert_eq!(own(&points[0], "/said/stdout/bytes").as_u64(), Some(3_000_004));
    is_cut(&points[0]);
}

#[test]
fn whoever_is_killed_nothing_of_a_program_is_left() {
    for victim in ["coordinator", "agent", "agent that asks for a version", "supervisor", "program"] {
        let scratch = Scratch::waiting();
        let script = "echo begun > begun; sleep 1000 & sleep 1001";
        let more = if victim.ends_with("version") { "version_command = [\"sleep\", \"1001\"]" } else { "" };
        plan(&scratch, &shell("endless", script, more), "application = \"endless\"\nranks = 1");
        let mut child = scratch.program(["run", "x.toml", "--out", "r"]).spawn().unwrap();
        let find = |is: &dyn Fn(&str) -> bool| {
            with_token(&scratch.token())
                .into_iter()
                .find(|process| is(&process.command))
                .map(|process| process.pid)
        };
        let start = Instant::now();
        while find(&|command| command.starts_with("sleep 1001")).is_none() {
            assert!(start.elapsed() < DEADLINE, "the program did not start");
            std::thread::sleep(Duration::from_millis(10));
        }
        let pid = match victim {
            "coordinator" => Some(child.id().cast_signed()),
            "agent" | "agent that asks for a version" => find(&|command| command.contains(" agent ")),
            "supervisor" => find(&|command| command.contains(" supervise ")),
            _ => find(&|command| command.starts_with("sleep 1001")),
        };
        signal(pid.unwrap(), Signal::KILL);
        if victim == "coordinator" {
            child.wait().unwrap();
        } else {
            let ended = collect(child);
            assert_eq!(ended.status, Some(1), "{victim}: {ended:?}");
        }
        eprintln!("{victim} was killed");
        scratch.assert_nothing_left();
    }
}

#[test]
fn what_a_plan_must_not_say_of_a_program_is_refused() {
    let scratch = Scratch::new();
    let good = shell("a", "echo t=1", "");
    let metric = |pattern: &str| good.replace(r"^t=(?<value>\S+)$", pattern);
    let axes = "application = \"a\"";
    for (programs, axes, words) in [
        (good.clone(), "ranks = 1", "names no application: add application = \"NAME\" to its axes"),
        (good.clone(), "application = \"b\"", "unknown application \"b\" in experiment \"e\": use one of a"),
        (
            good.clone(),
            "application = \"a\"\nmode = \"b\"",
            "unknown mode \"b\" in experiment \"e\": there is none",
        ),
        (good.clone(), "application = \"a\"\nendpoint = \"tcp\"", "x.toml:"),
        (
            good.clone(),
            "application = \"a\"\nsize_bytes = 8",
            "asks for size_bytes of a program, which is not possible",
        ),
        (good.replace("[\"sh\"", "[\"{shell}\""), axes, "unknown placeholder {shell}"),
        (
            good.replace("t=1", "t={"),
            axes,
            "\"echo t={\" has an unpaired brace: write {{ or }} for a literal brace",
        ),
        (metric("t=1"), axes, "has no group value: write (?<value>...) around the number"),
        (metric("(?<value>1)(?<rank>1)"), axes, "has an unknown group \"rank\": did you mean \"ranks\"?"),
        (metric("(?<value>1"), axes, "cannot be read: found open group without closing"),
        (
            good.replace("launcher", "launchers"),
            axes,
            "unknown key \"launchers\" in [[application]]: did you mean \"launcher\"?",
        ),
        (good.clone() + &good, axes, "another application has this name"),
        (good.replace("[[application.metric]]\n", ""), axes, "x.toml:"),
        (
            shell("a", "echo", "files = { a = { name = \"../b\", text = \"\" } }"),
            axes,
            "is not the name of a file in its directory",
        ),
        (good.clone() + "[variables]\nranks = \"1\"\n", axes, "a variable cannot be named \"ranks\""),
        (good.clone() + "[variables]\ntimeout = \"1\"\n", axes, "a variable cannot be named \"timeout\""),
        (good.replace("\"none\"", "\"mpirun -np 2\""), axes, "always starts the same number of ranks"),
        (
            good.replace("\"none\"", "\"{where}/mpirun -np {ranks}\""),
            axes,
            "has another placeholder than {ranks}",
        ),
        (
            good.clone(),
            "application = \"a\"\nmpi_transport = \"tcp\"",
            "asks for mpi_transport of an application without a launcher",
        ),
        (
            good.replace("\"none\"", "\"mpi\""),
            "application = \"a\"\nlink = \"4X FDR\"",
            "a link needs a verbs device: give mpi_transport verbs",
        ),
        (
            good.clone(),
            "application = \"a\"\nenvironment = \"optimised\"",
            "works only for ranks of rdmascope",
        ),
        (
            shell("a", "echo", "files = { a = \"x/in\", b = \"y/in\" }"),
            axes,
            "two of its files are named \"in\"",
        ),
        (shell("a", "echo", "files = { dir = \"x/in\" }"), axes, "a file cannot be named \"dir\""),
        (
            good.clone()
                + "[[figure]]\nkind = \"table\"\ntitle = \"F\"\nexperiments = [\"e\"]\nx = \"ranks\"\n\
                   y = \"application.metrics.tt\"\n",
            axes,
            "shows an unknown quantity \"application.metrics.tt\"",
        ),
    ] {
        plan(&scratch, &programs, axes);
        let refused = scratch.refused(&["run", "x.toml"], 2, &[words]);
        assert!(refused.contains("x.toml:"), "{refused}");
    }
    plan(
        &scratch,
        &good,
        "application = \"a\"\n[[experiment]]\nname = \"f\"\npattern = \"ping-pong\"\naxes = { endpoint = \"program\" }",
    );
    scratch.refused(&["run", "x.toml"], 2, &["use the pattern \"application\""]);
    plan(&scratch, &good, axes);
    for key in ["iterations=5", "duration=1s"] {
        scratch.refused(
            &["run", "x.toml", "--set", key],
            2,
            &["a program runs once, until it ends: give repetitions"],
        );
    }
}

/// LAMMPS, HPCC and NetPIPE, each over all endpoints that carry its messages.
#[test]
fn real_programs_are_measured() {
    let missing = ["lmp", "hpcc", "NPmpich2"].into_iter().find(|program| !is_installed(program));
    if let Some(missing) = missing {
        return skip("applications", &format!("{missing} is not installed"));
    }
    let scratch = Scratch::alone();
    let ended = scratch.run(&["run", "applications", "--quick", "--out", "r"]);
    let (run, points) = scratch.record("r");
    let cpus = std::thread::available_parallelism().unwrap().get() as u64;
    let is_run = |point: &&Point| point.axes["ranks"].as_u64().unwrap() <= cpus;
    for point in points.iter().filter(is_run) {
        assert_eq!(point.status, Status::Measured, "{point:?}");
        assert!(own(point, "/usage/wall_ns").as_u64().unwrap() > 0);
        assert!(!own(point, "/launcher_version").as_str().unwrap().is_empty());
    }
    for (program, metric) in
        [("lammps-lj", "loop_time"), ("hpcc", "fft"), ("netpipe-mpich", "latency_1_byte")]
    {
        let is_one = |point: &&Point| point.axes["application"] == program && is_run(point);
        assert!(
            points
                .iter()
                .filter(is_one)
                .all(|point| own(point, &format!("/metrics/{metric}/value")).as_f64() > Some(0.0))
        );
    }
    assert!(!run.environments.is_empty() && ended.status == Some(0), "{ended:?}");
    scratch.assert_nothing_left();
}

/// A launcher of another MPI starts ranks that do not know each other, without an error.
#[test]
fn a_program_of_another_mpi_than_its_launchers_is_told() {
    if !is_installed("lmp") || !is_installed("mpirun.mpich") {
        return skip("applications", "LAMMPS or MPICH is not installed");
    }
    let scratch = Scratch::alone();
    let bundled = scratch.succeed(&["plans", "applications"]);
    let lammps = &bundled[..bundled.find("[[application]]\nname = \"hpcc\"").unwrap()];
    let lammps = lammps.replace("mpirun.openmpi -np", "mpirun.mpich -np");
    let experiment = "[[experiment]]\nname = \"e\"\npattern = \"application\"\n\
                      axes = { application = \"lammps-lj\", ranks = 2, mpi_oversubscribe = true }\n";
    scratch.write("x.toml", lammps + experiment);
    let (status, points, printed) = run(&scratch, &[]);
    assert_eq!(status, Some(1), "{printed}");
    let sentence =
        "lammps-lj counts 1 ranks, but 2 were started: it does not belong to the MPI of this launcher";
    assert_eq!(words(&points[0]), sentence);
}
