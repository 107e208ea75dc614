//! Messages over MPI, with each MPI that is installed: what is measured, and what happens if
//! something is wrong.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use measure::record::{Point, Status};
use rustix::process::Signal;

use crate::support::processes::{Process, agents, signal};
use crate::support::{
    Ended, PROGRAM, Scratch, all_measured, collect, finish, is_installed, skip, until_measuring,
};

/// An MPI: its launcher, the name that its library reports, and the library of the other MPI.
pub(crate) struct Mpi {
    pub(crate) launcher: &'static str,
    pub(crate) template: &'static str,
    library: &'static str,
    other_library: &'static str,
    other_name: &'static str,
}

const ALL: [Mpi; 2] = [
    Mpi {
        launcher: "mpirun.openmpi",
        template: "mpirun.openmpi --oversubscribe -np {ranks}",
        library: "Open MPI v",
        other_library: "libmpich.so.12",
        other_name: "MPICH ",
    },
    Mpi {
        launcher: "mpirun.mpich",
        template: "mpirun.mpich -np {ranks}",
        library: "MPICH ",
        other_library: "libmpi.so.40",
        other_name: "Open MPI v",
    },
];

/// Runs a test once for each MPI.
pub(crate) fn each(test: impl Fn(&Mpi)) {
    for mpi in &ALL {
        match is_installed(mpi.launcher) {
            true => test(mpi),
            false => skip("mpi", &format!("there is no {}", mpi.launcher)),
        }
    }
}

pub(crate) fn run(scratch: &Scratch, arguments: &[&str]) -> Ended {
    finish(scratch.program(arguments))
}

/// Returns the agents that a launcher has started.
fn ranks(scratch: &Scratch) -> Vec<Process> {
    let is_rank =
        |process: &Process| process.command.starts_with(*PROGRAM) && process.command.contains(" agent ");
    agents(&scratch.token())
        .into_iter()
        .filter(is_rank)
        .filter(|p| !p.command.contains(" supervise "))
        .collect()
}

/// A point of each pattern and call that MPI carries.
const PATTERNS: &str = r#"
name = "patterns"
title = "All patterns"
[[experiment]]
name = "ping-pong"
pattern = "ping-pong"
iterations = 300
axes = { endpoint = "mpi", mpi_call = ["blocking", "nonblocking", "persistent"], size_bytes = [0, 8, 70000] }
[[experiment]]
name = "stream"
pattern = "stream"
iterations = 500
axes = { endpoint = "mpi", mpi_call = ["nonblocking", "persistent"], direction = ["uni", "bi"], size_bytes = [1, 4096] }
[[experiment]]
name = "one-way"
pattern = "one-way"
iterations = 300
axes = { endpoint = "mpi", size_bytes = [0, 64] }
[[experiment]]
name = "pairs"
pattern = "pairs"
iterations = 100
axes = { endpoint = "mpi", pairs = 1 }
[[experiment]]
name = "pairs-stream"
pattern = "pairs"
iterations = 500
axes = { endpoint = "mpi", pairs = 1, traffic = "stream" }
[[experiment]]
name = "fan-out"
pattern = "fan-out"
iterations = 100
axes = { endpoint = "mpi", peers = 1, size_bytes = 16 }
[[experiment]]
name = "open-loop"
pattern = "open-loop"
iterations = 100
axes = { endpoint = "mpi", rate_hz = 1000, loaders = 0 }
[[experiment]]
name = "prtt"
pattern = "prtt"
iterations = 50
axes = { endpoint = "mpi", burst = [1, 4] }
"#;

#[test]
fn every_pattern_is_measured_over_every_mpi() {
    each(|mpi| {
        let scratch = Scratch::alone();
        scratch.write("plan.toml", PATTERNS);
        let ended = run(&scratch, &["run", "plan.toml", "--out", "record", "--mpi", mpi.template]);
        assert_eq!(ended.status, Some(0), "{ended:?}");
        let (run, points) = scratch.record("record");
        assert_eq!(points.len(), 9 + 8 + 2 + 1 + 1 + 1 + 1 + 2);
        assert!(all_measured(&points), "{:?}", points.iter().map(|point| &point.status).collect::<Vec<_>>());
        for end in points.iter().flat_map(|point| &point.ends) {
            let library = end.library.clone().unwrap_or_default();
            assert!(library.starts_with(mpi.library), "{library}");
        }
        let facts = &run.environments[0].facts["mpi"];
        assert!(facts["library_path"].starts_with('/'), "{facts:?}");
        assert_eq!(facts["launcher"], mpi.template);
        scratch.assert_nothing_left();
    });
}

#[test]
fn verbs_and_mpi_are_measured_by_the_same_ranks() {
    each(|mpi| {
        let scratch = Scratch::alone();
        let plan = format!(
            "name = \"both\"\ntitle = \"Both\"\nmpi = \"{}\"\n[[experiment]]\nname = \"latency\"\npattern = \"ping-pong\"\n\
             iterations = 200\n[experiment.axes]\nendpoint = [\"verbs\", \"mpi\", \"tcp\"]\nsize_bytes = 8\n",
            mpi.template
        );
        scratch.write("plan.toml", plan);
        scratch.write("count.sh", "echo launch >> launches; exec \"$@\"");
        let template = format!("sh count.sh {}", mpi.template);
        let arguments = ["run", "plan.toml", "--out", "record", "-d", "softdev0", "--mpi", &template];
        let ended = run(&scratch, &arguments);
        assert_eq!(ended.status, Some(0), "{ended:?}");
        let (_, points) = scratch.record("record");
        assert!(all_measured(&points) && points.len() == 3, "{points:?}");
        assert_eq!(fs::read_to_string(scratch.at("launches")).unwrap().lines().count(), 1);
        scratch.assert_nothing_left();
    });
}

#[test]
fn a_library_that_does_not_fit_the_launcher_is_a_sentence() {
    each(|mpi| {
        let scratch = Scratch::waiting();
        // Each rank of Open MPI is alone then. The rank that ends first removes the directory that
        // the other rank is about to use, unless there is another file in it.
        let host = rustix::system::uname();
        let user = rustix::process::getuid().as_raw();
        let session = format!("tmp/ompi.{}.{user}", host.nodename().to_string_lossy());
        fs::create_dir_all(scratch.at(&session).join("other")).unwrap();
        let arguments = [
            "lat",
            "mpi",
            "-s",
            "8",
            "--out",
            "record",
            "--mpi",
            mpi.template,
            "--mpi-library",
            mpi.other_library,
        ];
        let ended = run(&scratch, &arguments);
        assert_eq!(ended.status, Some(1), "{ended:?}");
        let (_, points) = scratch.record("record");
        let Status::Failed { error } = &points[0].status else { panic!("{:?}", points[0].status) };
        for word in ["MPI_COMM_WORLD has size ", mpi.other_name, mpi.launcher, "--mpi-library"] {
            assert!(error.contains(word), "no {word:?} in {error}");
        }
        fs::remove_dir_all(scratch.at(&session)).unwrap();
        scratch.assert_nothing_left();
    });
}

#[test]
fn a_transport_is_a_launch_of_its_own() {
    each(|mpi| {
        let scratch = Scratch::alone();
        let arguments =
            ["lat", "mpi", "-s", "8", "-n", "300", "--mpi-transport", "shm,tcp", "--out", "record"];
        let ended = run(&scratch, &[&arguments[..], &["--mpi", mpi.template]].concat());
        assert_eq!(ended.status, Some(0), "{ended:?}");
        let (_, points) = scratch.record("record");
        assert!(all_measured(&points), "{points:?}");
        let least = |point: &Point| point.latency.as_ref().unwrap().min_ns;
        assert!(least(&points[1]) > 4 * least(&points[0]), "TCP is no shared memory: {points:?}");
        scratch.assert_nothing_left();
    });
}

/// Returns the transport of each point; asserts that all ranks report the same.
fn carried(points: &[Point]) -> Vec<String> {
    let of = |point: &Point| {
        let told: Vec<String> = point.ends.iter().filter_map(|end| end.transport.clone()).collect();
        assert!(told.len() == point.ends.len() && told.windows(2).all(|two| two[0] == two[1]), "{told:?}");
        told[0].clone()
    };
    points.iter().map(of).collect()
}

#[test]
fn what_carried_the_messages_is_in_the_record() {
    each(|mpi| {
        let scratch = Scratch::alone();
        let arguments =
            ["lat", "mpi", "-s", "8", "-n", "300", "--mpi-transport", "shm,tcp,verbs", "--out", "record"];
        let ended = run(&scratch, &[&arguments[..], &["-d", "softdev0", "--mpi", mpi.template]].concat());
        assert_eq!(ended.status, Some(0), "{ended:?}");
        let (record, points) = scratch.record("record");
        assert!(all_measured(&points), "{points:?}");
        assert_eq!(carried(&points), ["shm", "tcp", "verbs softdev0:1"]);
        assert!(ended.stdout.contains(" over verbs softdev0:1"), "{}", ended.stdout);
        assert!(record.warnings.iter().any(|text| text.contains("a software device")), "{record:?}");
        scratch.assert_nothing_left();
    });
}

#[test]
fn a_transport_that_was_not_taken_is_no_result() {
    each(|mpi| {
        let scratch = Scratch::alone();
        let template = match mpi.launcher {
            "mpirun.openmpi" => "mpirun.openmpi --oversubscribe --mca btl self,vader -np {ranks}",
            _ => "mpirun.mpich -genv UCX_TLS sm,self -np {ranks}",
        };
        let arguments = ["lat", "mpi", "-s", "8", "-n", "300", "--mpi-transport", "tcp", "--out", "record"];
        let ended = run(&scratch, &[&arguments[..], &["--mpi", template]].concat());
        assert_eq!(ended.status, Some(1), "{ended:?}");
        let (_, points) = scratch.record("record");
        let Status::Failed { error } = &points[0].status else { panic!("{:?}", points[0].status) };
        assert!(error.contains("carries messages over shm, but the point asks for tcp"), "{error}");
        scratch.assert_nothing_left();
    });
}

#[test]
fn what_the_user_asks_ucx_to_say_is_left_to_the_user() {
    let scratch = Scratch::alone();
    if !is_installed("mpirun.mpich") {
        return skip("mpi", "there is no mpirun.mpich");
    }
    let mut command = scratch.program(["lat", "mpi", "-s", "8", "-n", "100", "--out", "record"]);
    command.args(["--mpi", ALL[1].template]).env("UCX_LOG_LEVEL", "error");
    let ended = finish(command);
    assert_eq!(ended.status, Some(0), "{ended:?}");
    assert_eq!(carried(&scratch.record("record").1), ["transport not known"]);
}

/// MPI and verbs over one device with two links, by the same ranks if possible.
const LINKS: &str = r#"
name = "links"
title = "Links"
[[experiment]]
name = "mpi"
pattern = "ping-pong"
iterations = 500
axes = { endpoint = "mpi", mpi_transport = "verbs", link = ["none", "latency=5us"], size_bytes = 8 }
[[experiment]]
name = "verbs"
pattern = "ping-pong"
iterations = 500
axes = { endpoint = "verbs", link = ["none", "latency=5us"], service = ["RC", "UD"], size_bytes = 8 }
"#;

#[test]
fn mpi_and_verbs_go_over_the_same_link() {
    each(|mpi| {
        let scratch = Scratch::alone();
        scratch.write("plan.toml", LINKS);
        scratch.write("count.sh", "echo launch >> launches; exec \"$@\"");
        let template = format!("sh count.sh {}", mpi.template);
        let ended = run(&scratch, &["run", "plan.toml", "--out", "record", "--mpi", &template]);
        assert_eq!(ended.status, Some(0), "{ended:?}");
        let (_, points) = scratch.record("record");
        assert!(all_measured(&points) && points.len() == 2 + 4, "{points:?}");
        assert_eq!(carried(&points[..2]), ["verbs softdev0:1"; 2]);
        // The ranks that measure verbs have the device that MPI uses.
        assert_eq!(fs::read_to_string(scratch.at("launches")).unwrap().lines().count(), 2);
        for point in &points {
            let typical = point.latency.as_ref().unwrap().p50_ns;
            match &point.link_model {
                Some(link) => {
                    assert!(link == "latency=5us" && (5000..100_000).contains(&typical), "{point:?}");
                }
                None => assert!(typical < 5000, "{point:?}"),
            }
        }
        scratch.assert_nothing_left();
    });
}

/// Two points; the first takes long.
const LONG: &str = r#"
name = "long"
title = "Long"
[[experiment]]
name = "first"
pattern = "ping-pong"
iterations = 1000000000
warmup = 10
keep_samples = false
timeout = "4s"
axes = { endpoint = "mpi", size_bytes = 8 }
[[experiment]]
name = "second"
pattern = "ping-pong"
iterations = 100
axes = { endpoint = "mpi", size_bytes = 8 }
"#;

/// Sends a signal to rank 1 in the middle of the first of two points; returns the error of that
/// point. The second is measured.
#[track_caller]
fn disturbed(mpi: &Mpi, by: Signal) -> String {
    let scratch = Scratch::on_all_cpus();
    scratch.write("plan.toml", LONG);
    let mut program = scratch.program(["run", "plan.toml", "--out", "record", "--mpi", mpi.template]);
    let child = until_measuring(program.spawn().unwrap(), &scratch.at("record"));
    // MPI is initialised, and messages are sent.
    std::thread::sleep(Duration::from_millis(1500));
    let victim = ranks(&scratch).last().unwrap().pid;
    signal(victim, by);
    let ended = collect(child);
    assert_eq!(ended.status, Some(4), "{ended:?}");
    let (_, points) = scratch.record("record");
    let [Status::Failed { error }, Status::Measured] = [&points[0].status, &points[1].status] else {
        panic!("{:?}: {ended:?}", points.iter().map(|point| &point.status).collect::<Vec<_>>())
    };
    scratch.assert_nothing_left();
    error.clone()
}

#[test]
fn a_rank_that_is_killed_is_a_sentence_and_the_next_point_is_measured() {
    each(|mpi| {
        let error = disturbed(mpi, Signal::KILL);
        assert!(error.contains("while measuring point 0"), "{error}");
        assert!(error.contains("rank "), "{error}");
    });
}

#[test]
fn a_rank_that_stops_is_told_by_the_call_of_the_other() {
    each(|mpi| {
        let error = disturbed(mpi, Signal::STOP);
        assert!(error.contains("rank 0: it still waits in MPI_"), "{error}");
        assert!(error.contains("at the point's time limit"), "{error}");
    });
}

#[test]
fn what_mpi_cannot_is_refused() {
    let scratch = Scratch::waiting();
    for (arguments, words) in [
        (&["lat", "mpi", "--poll", "event"][..], "the MPI library decides how its calls wait"),
        (&["lat", "mpi", "-s", "3GiB"], "MPI counts bytes in an int"),
        (&["bw", "mpi", "--mpi-call", "blocking", "-n", "10"], "use nonblocking"),
        (&["open-loop", "mpi", "--loaders", "2"], "no rank would receive the load"),
        (&["lat", "mpi", "-d", "softdev0"], "add --mpi-transport verbs"),
        (&["collective", "alltoall", "--blocks", "rising"], "take a length for each block"),
        (&["collective", "allreduce", "--mpi-tests", "4"], "give --collective-call overlapped"),
        (
            &["collective", "alltoallv", "--collective-call", "nonblocking"],
            "only operations with equal blocks",
        ),
        (&["lat", "mpi", "-d", "softdev7", "--mpi-transport", "verbs"], "softdev7"),
        (
            &["lat", "mpi", "--mpi-transport", "tcp,verbs", "--link", "5Gb/s"],
            "give --mpi-transport verbs only",
        ),
        (&["lat", "mpi", "--mpi-transport", "verbs", "--link", "5Gb/s,back=1us"], "leave back out"),
        (&["lat", "mpi", "--via", "ssh {host}", "--hosts", "a,b"], "--via does not start ranks of MPI"),
    ] {
        scratch.refused(arguments, 2, &[words]);
    }
}

/// Each collective operation and each way to start a call, and a halo exchange by each method.
const JOINT: &str = r#"
name = "joint"
title = "All ranks together"
[[experiment]]
name = "collective"
pattern = "collective"
iterations = 50
[experiment.axes]
endpoint = "mpi"
collective = [
  "allgather", "allreduce", "alltoall", "bcast", "gather", "reduce", "reduce_scatter", "reduce_scatter_block", "scatter",
]
start = ["barrier", "own_barrier", "instant", "none"]
size_bytes = [16, 32768]
[[experiment]]
name = "barrier"
pattern = "collective"
iterations = 50
axes = { endpoint = "mpi", collective = "barrier", size_bytes = 0 }
[[experiment]]
name = "reductions"
pattern = "collective"
iterations = 20
[experiment.axes]
endpoint = "mpi"
collective = ["allreduce", "reduce"]
datatype = ["float", "double", "int32", "uint64"]
op = ["sum", "min", "max"]
size_bytes = 64
[[experiment]]
name = "halo"
pattern = "halo"
iterations = 50
[experiment.axes]
endpoint = "mpi"
grid = ["2x1", "1x2"]
halo_method = ["sendrecv", "nonblocking", "persistent", "neighbour", "put"]
side_values = [0, 1, 1024]
"#;

#[test]
fn what_all_ranks_do_together_is_measured_over_every_mpi() {
    each(|mpi| {
        let scratch = Scratch::alone();
        scratch.write("plan.toml", JOINT);
        let ended = run(&scratch, &["run", "plan.toml", "--out", "record", "--mpi", mpi.template]);
        assert_eq!(ended.status, Some(0), "{ended:?}");
        let (_, points) = scratch.record("record");
        assert_eq!(points.len(), 9 * 4 * 2 + 1 + 2 * 4 * 3 + 2 * 5 * 3);
        assert!(all_measured(&points), "{:?}", points.iter().map(|point| &point.status).collect::<Vec<_>>());
        for point in &points {
            let kinds: Vec<_> = point.kinds.iter().map(|timed| timed.latency.kind.name()).collect();
            assert_eq!(kinds, ["slowest", "last_last", "first_last", "start_skew"]);
            assert!(
                point.ends.iter().all(|end| end.latency.as_ref().unwrap().count == point.iterations.unwrap())
            );
        }
        scratch.assert_nothing_left();
    });
}

/// Measures a collective call with a delay at rank 1; returns its point.
fn delayed(template: &str, operation: &str, inject: &str) -> Point {
    let scratch = Scratch::alone();
    scratch.write("skew.sh", SKEW);
    let arguments = [
        "collective",
        operation,
        "-n",
        "200",
        "--start",
        "instant",
        "--inject",
        inject,
        "--out",
        "record",
        "--mpi",
        template,
    ];
    let ended = run(&scratch, &arguments);
    assert_eq!(ended.status, Some(0), "{ended:?}");
    scratch.record("record").1.remove(0)
}

/// Makes the clock of rank 1 wrong.
const SKEW: &str = r#"
[ "${OMPI_COMM_WORLD_RANK:-$PMI_RANK}" = 1 ] && exec "$@" --clock-skew offset=5ms,drift=20ppm
exec "$@"
"#;

/// Returns the medians of a point in us: of the ranks' own times, and by kind.
fn medians(point: &Point) -> impl Fn(&str) -> f64 + '_ {
    move |name: &str| {
        let of_kind =
            || point.kinds.iter().map(|timed| &timed.latency).find(|latency| latency.kind.name() == name);
        let latency = match name {
            "own 0" => point.ends[0].latency.as_ref(),
            "own 1" => point.ends[1].latency.as_ref(),
            _ => of_kind(),
        };
        latency.unwrap().p50_ns as f64 / 1e3
    }
}

/// A delay of 100 us shows where it should, as at least 99 us. Elsewhere it shows as at most half
/// of that, whatever a busy machine does to a median.
#[test]
fn a_delay_shows_in_exactly_the_columns_that_it_should() {
    // By operation and delay: the names that show the delay, and the names that do not.
    let table: [(&str, &str, &[&str], &[&str]); 6] = [
        ("allreduce", "before", &["own 0", "start_skew", "slowest", "first_last"], &["own 1", "last_last"]),
        ("allreduce", "within", &["own 0", "own 1", "slowest", "last_last", "first_last"], &["start_skew"]),
        ("bcast", "before", &["start_skew", "first_last"], &["own 0", "own 1", "slowest", "last_last"]),
        ("bcast", "within", &["own 1", "slowest", "last_last", "first_last"], &["own 0", "start_skew"]),
        ("reduce", "before", &["own 0", "start_skew", "slowest", "first_last"], &["own 1", "last_last"]),
        ("reduce", "within", &["own 1", "slowest", "last_last", "first_last"], &["start_skew"]),
    ];
    each(|mpi| {
        for (operation, when, there, elsewhere) in table {
            shown(|| delayed(mpi.template, operation, &format!("rank=1,{when}=100us")), there, elsewhere);
        }
    });
}

/// The same for ranks with different clocks: the clocks are compared, and the bound is reported.
#[test]
fn ranks_of_several_clocks_begin_together_and_are_timed_within_a_bound() {
    each(|mpi| {
        let template = format!("{} sh skew.sh", mpi.template);
        for (when, there, elsewhere) in [
            ("before", &["own 0", "start_skew", "first_last"][..], &["own 1", "last_last"][..]),
            ("within", &["own 0", "own 1", "last_last", "first_last"], &["start_skew"]),
        ] {
            let point =
                shown(|| delayed(&template, "allreduce", &format!("rank=1,{when}=100us")), there, elsewhere);
            let bound_ns = point.own["collective"]["clock_bound_ns"].as_f64().unwrap();
            assert!(bound_ns > 0.0 && bound_ns < 50_000.0, "{bound_ns}");
        }
    });
}

/// Asserts that a delay of 100 us shows in the first medians and not in the second, and returns the
/// point. A busy machine delays ranks, too: then the point is measured again.
#[track_caller]
fn shown(measure: impl Fn() -> Point, there: &[&str], elsewhere: &[&str]) -> Point {
    let mut attempts = 0;
    loop {
        let point = measure();
        let medians = medians(&point);
        for name in there {
            assert!(medians(name) >= 99.0, "{:?}: {name} is {} us", point.axes, medians(name));
        }
        let late: Vec<_> =
            elsewhere.iter().map(|name| (name, medians(name))).filter(|(_, us)| *us > 50.0).collect();
        if late.is_empty() {
            drop(medians);
            return point;
        }
        attempts += 1;
        assert!(attempts < 5, "{:?}: {late:?} us, in each of {attempts} points", point.axes);
    }
}

/// Halo exchanges of more ranks than most machines for tests have CPUs, and of one rank with
/// itself.
const TORUS: &str = r#"
name = "torus"
title = "Halo exchanges on a torus"
[[experiment]]
name = "halo"
pattern = "halo"
iterations = 10
warmup = 1
[experiment.axes]
endpoint = "mpi"
mpi_oversubscribe = true
grid = ["1x1", "2x2"]
halo_method = ["sendrecv", "nonblocking", "persistent", "neighbour", "put"]
side_values = [0, 3]
"#;

#[test]
fn sides_come_from_the_right_neighbours_of_a_torus() {
    each(|mpi| {
        let scratch = Scratch::alone();
        scratch.write("plan.toml", TORUS);
        let ended = run(&scratch, &["run", "plan.toml", "--out", "record", "--mpi", mpi.template]);
        let (_, points) = scratch.record("record");
        assert_eq!(points.len(), 2 * 5 * 2, "{ended:?}");
        for point in &points {
            let is_alone = point.axes["grid"] == "1x1" && point.axes["halo_method"] == "neighbour";
            match &point.status {
                Status::Measured if !is_alone => {}
                Status::NotMeasured { reason } if is_alone => {
                    assert!(reason.contains("its own neighbour on all sides"), "{reason}");
                }
                status => panic!("{:?}: {status:?}", point.axes),
            }
        }
        scratch.assert_nothing_left();
    });
}

/// An MPI library with two functions that bring wrong results.
const WRONG: &str = r"
typedef void *any;
extern int PMPI_Allreduce(any, any, int, any, any, any);
extern int PMPI_Sendrecv(any, int, any, int, int, any, int, any, int, int, any, any);
int MPI_Allreduce(any sent, any got, int count, any type, any op, any all) {
    int code = PMPI_Allreduce(sent, got, count, type, op, all);
    if (count == 5) ((char *)got)[2] ^= 1;
    return code;
}
int MPI_Sendrecv(any sent, int a, any b, int c, int d, any got, int count, any e, int f, int g, any all, any status) {
    int code = PMPI_Sendrecv(sent, a, b, c, d, got, count, e, f, g, all, status);
    if (count == 24) ((char *)got)[23] ^= 1;
    return code;
}
";

#[test]
fn a_wrong_result_of_a_library_fails_the_point() {
    each(|mpi| {
        let scratch = Scratch::alone();
        scratch.write("wrong.c", WRONG);
        let library = scratch.at("libwrong.so");
        let ended = run(&scratch, &["lat", "mpi", "-n", "10", "--out", "right", "--mpi", mpi.template]);
        assert_eq!(ended.status, Some(0), "{ended:?}");
        let right = scratch.record("right").0.environments[0].facts["mpi"]["library_path"].clone();
        let mut cc = Command::new("cc");
        cc.args(["-shared", "-fPIC", "-o"]).arg(&library).arg(scratch.at("wrong.c")).arg(&right);
        cc.arg(format!("-Wl,-rpath,{}", Path::new(&right).parent().unwrap().display()));
        assert!(cc.status().unwrap().success());
        let library = library.to_str().unwrap();
        for (out, arguments, call) in [
            ("allreduce", ["collective", "allreduce", "-s", "20"], "allreduce"),
            ("halo", ["halo", "sendrecv", "--values", "3"], "the halo exchange"),
        ] {
            let more = ["-n", "10", "--out", out, "--mpi", mpi.template, "--mpi-library", library];
            let ended = run(&scratch, &[&arguments[..], &more].concat());
            assert_eq!(ended.status, Some(1), "{ended:?}");
            let (_, points) = scratch.record(out);
            let Status::Failed { error } = &points[0].status else { panic!("{ended:?}") };
            assert!(error.contains(call) && error.contains("byte"), "{error}");
        }
        scratch.assert_nothing_left();
    });
}

#[test]
fn the_program_needs_no_library_of_mpi() {
    let listed = Command::new("ldd").arg(*PROGRAM).output().unwrap();
    let listed = String::from_utf8_lossy(&listed.stdout).into_owned();
    assert!(listed.contains("libc.so") && !listed.contains("mpi"), "{listed}");
}

/// Counts its starts, and fails at the start that its argument names.
const COUNTING: &str = "fails=$1; shift\n\
    echo start >> starts\n\
    [ $(wc -l < starts) = $fails ] && exit 3\n\
    exec \"$@\"\n";

/// Measures points in several launches by a launcher that fails at one start.
fn launches(mpi: &Mpi, fails: u32, arguments: &[&str]) -> (Scratch, Ended) {
    let scratch = Scratch::alone();
    scratch.write("launcher.sh", COUNTING);
    let options = ["--launches", "3", "-n", "200", "--out", "record"];
    let template = format!("sh launcher.sh {fails} {}", mpi.template);
    let ended = run(&scratch, &[arguments, &options, &["--mpi", &template]].concat());
    (scratch, ended)
}

#[test]
fn every_launch_has_ranks_of_its_own_and_measures_all_points() {
    each(|mpi| {
        let (scratch, ended) = launches(mpi, 0, &["lat", "mpi", "-s", "8,64"]);
        assert_eq!(ended.status, Some(0), "{ended:?}");
        let (run, points) = scratch.record("record");
        assert!(all_measured(&points) && points.len() == 6, "{points:?}");
        assert_eq!(fs::read_to_string(scratch.at("starts")).unwrap().lines().count(), 3);
        let said: Vec<_> =
            points.iter().map(|point| (point.repetition, point.launch, &point.axes["size_bytes"])).collect();
        let sizes = [8, 64].map(serde_json::Value::from);
        let all = (0..3).flat_map(|launch| sizes.iter().map(move |size| (launch, Some(launch), size)));
        assert_eq!(said, all.collect::<Vec<_>>());
        assert_eq!(run.launches.len(), 3);
        let mut pids: Vec<u32> =
            run.launches.iter().flat_map(|all| &all.ranks).map(|rank| rank.pid).collect();
        pids.sort_unstable();
        pids.dedup();
        assert_eq!(pids.len(), 6, "{:?}", run.launches);
        for (number, launch) in (0..).zip(&run.launches) {
            assert_eq!(launch.number, number);
            assert!(launch.facts["library"].starts_with(mpi.library), "{launch:?}");
            assert!(launch.facts["command"].starts_with("sh launcher.sh 0 mpirun."), "{launch:?}");
        }
        for (size, line) in [8, 64].iter().zip(launch_lines(&ended)) {
            assert!(
                line.contains(&format!("(size_bytes {size})")) && line.contains(" of 3 launches"),
                "{line}"
            );
        }
        assert_eq!(launch_lines(&ended).len(), 2, "{ended:?}");
        scratch.assert_nothing_left();
    });
}

/// Returns the lines of medians over the launches.
fn launch_lines(ended: &Ended) -> Vec<String> {
    let lines = ended.stdout.lines().skip_while(|line| !line.contains("medians over the launches"));
    lines.skip(1).take_while(|line| line.starts_with("   ")).map(str::to_owned).collect()
}

#[test]
fn a_launch_that_fails_leaves_the_others_measured() {
    each(|mpi| {
        let (scratch, ended) = launches(mpi, 2, &["lat", "mpi", "-s", "8,64"]);
        assert_eq!(ended.status, Some(4), "{ended:?}");
        let (run, points) = scratch.record("record");
        let measured: Vec<bool> = points.iter().map(|point| point.status == Status::Measured).collect();
        assert_eq!(measured, [true, true, false, false, true, true], "{ended:?}");
        let launches: Vec<_> = points.iter().map(|point| point.launch).collect();
        assert_eq!(launches, [Some(0), Some(0), None, None, Some(1), Some(1)]);
        assert_eq!(run.launches.len(), 2);
        assert!(
            launch_lines(&ended)[0].ends_with("of 2 launches, 1 of 3 points without numbers"),
            "{ended:?}"
        );
        scratch.assert_nothing_left();
    });
}

#[test]
fn each_launch_of_a_record_says_what_it_was_started_with() {
    each(|mpi| {
        let (scratch, ended) = launches(mpi, 0, &["lat", "mpi", "-s", "8", "--mpi-transport", "shm,tcp"]);
        assert_eq!(ended.status, Some(0), "{ended:?}");
        let (run, points) = scratch.record("record");
        assert_eq!(run.launches.len(), 6, "{:?}", run.launches);
        for point in &points {
            let launch = &run.launches[point.launch.unwrap() as usize];
            let is_tcp = launch.facts["variables"].contains("tcp");
            assert_eq!(is_tcp, point.axes["mpi_transport"] == "tcp", "{launch:?}");
        }
        let page = fs::read_to_string(scratch.at("record/report.html")).unwrap();
        assert!(page.contains("Launches") && page.contains("launch 6"), "the report shows each");
        scratch.assert_nothing_left();
    });
}

/// Two kinds of ranks that would alternate in each repetition.
const TURNS: &str = r#"
name = "turns"
title = "Two transports in two launches"
[[experiment]]
name = "turns"
pattern = "ping-pong"
launches = 2
repetitions = 2
iterations = 50
axes = { endpoint = "mpi", mpi_transport = ["shm", "tcp"], size_bytes = 8 }
"#;

#[test]
fn each_launch_starts_ranks_of_a_kind_once_for_all_repetitions() {
    each(|mpi| {
        let scratch = Scratch::alone();
        scratch.write("plan.toml", TURNS);
        let ended = run(&scratch, &["run", "plan.toml", "--out", "record", "--mpi", mpi.template]);
        assert_eq!(ended.status, Some(0), "{ended:?}");
        let (run, points) = scratch.record("record");
        assert_eq!(run.launches.len(), 4, "{:?}", run.launches);
        let said: Vec<_> = points
            .iter()
            .map(|point| (point.launch, point.axes["mpi_transport"].as_str().unwrap(), point.repetition))
            .collect();
        let times = [(0, "shm", [0, 1]), (1, "tcp", [0, 1]), (2, "shm", [2, 3]), (3, "tcp", [2, 3])];
        let all = times
            .map(|(launch, transport, both)| both.map(|repetition| (Some(launch), transport, repetition)));
        assert_eq!(said, all.concat());
        assert!(launch_lines(&ended).iter().all(|line| line.ends_with(" of 2 launches")), "{ended:?}");
        assert_eq!(launch_lines(&ended).len(), 2, "{ended:?}");
        scratch.assert_nothing_left();
    });
}

#[test]
fn commands_start_agents_anew_for_each_launch_and_a_server_cannot() {
    let scratch = Scratch::alone();
    let arguments =
        ["lat", "send", "--local", "-d", "softdev0", "-n", "100", "--launches", "2", "--out", "record"];
    scratch.succeed(&arguments);
    let (run, points) = scratch.record("record");
    let launches: Vec<_> = points.iter().map(|point| point.launch).collect();
    assert_eq!(launches, [Some(0), Some(1)]);
    assert!(run.launches.iter().all(|launch| launch.facts.is_empty() && launch.ranks.len() == 2));
    assert_ne!(run.launches[0].ranks[0].pid, run.launches[1].ranks[0].pid);
    let key = "abcdefghijklmnopqrstuvwxyz";
    let arguments = ["lat", "send", "127.0.0.1", "--key", key, "-d", "softdev0", "--launches", "2"];
    scratch.refused(&arguments, 2, &["a server that was started by hand serves one launch"]);
}

/// Each nonblocking collective operation of MPI, by each way to call it, and operations with a
/// length for each rank.
const CALLS: &str = r#"
name = "calls"
title = "Ways to call"
[[experiment]]
name = "calls"
pattern = "collective"
iterations = 50
[experiment.axes]
endpoint = "mpi"
collective = [
  "allgather", "allreduce", "alltoall", "bcast", "gather", "reduce", "reduce_scatter", "reduce_scatter_block", "scatter",
]
collective_call = ["nonblocking", "overlapped"]
start = ["barrier", "own_barrier", "instant", "none"]
size_bytes = 4096
[[experiment]]
name = "barrier"
pattern = "collective"
iterations = 50
axes = { endpoint = "mpi", collective = "barrier", collective_call = ["nonblocking", "overlapped"], size_bytes = 0 }
[[experiment]]
name = "tested"
pattern = "collective"
iterations = 50
axes = { endpoint = "mpi", collective_call = "overlapped", mpi_tests = [0, 1, 10], size_bytes = 32768 }
[[experiment]]
name = "blocks"
pattern = "collective"
iterations = 10
[experiment.axes]
endpoint = "mpi"
collective = ["allgatherv", "alltoallv", "gatherv", "scatterv"]
blocks = ["equal", "rising"]
ranks = [2, 3]
mpi_oversubscribe = true
size_bytes = [1, 4096]
"#;

#[test]
fn collective_operations_are_called_in_every_way_over_every_mpi() {
    each(|mpi| {
        let scratch = Scratch::alone();
        scratch.write("plan.toml", CALLS);
        let ended = run(&scratch, &["run", "plan.toml", "--out", "record", "--mpi", mpi.template]);
        assert_eq!(ended.status, Some(0), "{ended:?}");
        let (_, points) = scratch.record("record");
        assert_eq!(points.len(), 9 * 2 * 4 + 2 + 3 + 4 * 2 * 2 * 2);
        assert!(all_measured(&points), "{:?}", points.iter().map(|point| &point.status).collect::<Vec<_>>());
        for point in &points {
            let own = |name: &str| point.own["collective"].get(name).and_then(serde_json::Value::as_f64);
            let times = ["t_pure_ns", "t_cpu_ns", "t_ovrl_ns"].map(own);
            if point.axes["collective_call"] != "overlapped" {
                assert_eq!(times, [None; 3]);
                continue;
            }
            let [Some(pure), Some(cpu), Some(all)] = times else { panic!("{point:?}") };
            // The computation is within the call, whatever a busy machine does to either.
            assert!(pure > 0.0 && cpu > 0.0 && all > cpu, "{point:?}");
            let overlap = own("overlap").unwrap();
            let defined = ((pure + cpu - all) / pure.min(cpu)).clamp(0.0, 1.0);
            assert!((overlap - defined).abs() < 1e-9 && own("overlap_osu").unwrap() >= 0.0, "{point:?}");
        }
        scratch.assert_nothing_left();
    });
}

#[test]
fn collective_operations_have_the_names_of_other_benchmarks() {
    each(|mpi| {
        let scratch = Scratch::alone();
        for (name, collective, call) in [
            ("osu_iallreduce", "allreduce", "overlapped"),
            ("Ireduce_scatter_block", "reduce_scatter_block", "overlapped"),
            ("osu_ibarrier", "barrier", "overlapped"),
            ("osu_allgatherv", "allgatherv", "blocking"),
            ("Alltoallv", "alltoallv", "blocking"),
        ] {
            let ended =
                run(&scratch, &["collective", name, "-n", "20", "--out", name, "--mpi", mpi.template]);
            assert_eq!(ended.status, Some(0), "{ended:?}");
            let (_, points) = scratch.record(name);
            assert_eq!(
                (&points[0].axes["collective"], &points[0].axes["collective_call"]),
                (&collective.into(), &call.into())
            );
            assert_eq!(ended.stdout.contains("overlap[%]"), call == "overlapped", "{ended:?}");
        }
        scratch.assert_nothing_left();
    });
}

/// Returns the share of a call that a computation hides, with a delay at rank 1.
fn overlap(mpi: &Mpi, inject: &str) -> f64 {
    let scratch = Scratch::alone();
    let arguments = ["collective", "iallreduce", "-n", "200", "--inject", inject, "--out", "record"];
    let ended = run(&scratch, &[&arguments[..], &["--mpi", mpi.template]].concat());
    assert_eq!(ended.status, Some(0), "{ended:?}");
    let (_, points) = scratch.record("record");
    scratch.assert_nothing_left();
    points[0].own["collective"]["overlap"].as_f64().unwrap()
}

/// A rank that waits for a late rank can compute meanwhile: all of its call is hidden. A rank that
/// is slow within its own call cannot: nothing is hidden.
#[test]
fn a_calculation_hides_the_wait_for_a_late_rank_and_not_the_time_of_a_slow_one() {
    each(|mpi| {
        let late = overlap(mpi, "rank=1,before=300us");
        assert!(late > 0.8, "{late}");
        let slow = overlap(mpi, "rank=1,within=300us");
        assert!(slow < 0.2, "{slow}");
    });
}
