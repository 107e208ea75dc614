//! Puts and gets of MPI, with each MPI that is installed.

use measure::record::{LatencyKind, Status};

use super::mpi::{Mpi, each, run};
use crate::support::{Scratch, all_measured, finish, is_installed, skip};

/// Each operation, and each call that completes it.
const PLAN: &str = r#"
name = "one-sided"
title = "Puts and gets"
[[experiment]]
name = "latency"
pattern = "ping-pong"
iterations = 200
[experiment.axes]
endpoint = "mpi"
mpi_operation = ["put", "get"]
mpi_sync = ["fence", "flush", "flush_local", "lock", "lock_all"]
size_bytes = [0, 1, 100, 70000]
[[experiment]]
name = "throughput"
pattern = "stream"
iterations = 300
[experiment.axes]
endpoint = "mpi"
mpi_operation = ["put", "get"]
mpi_sync = ["fence", "flush", "flush_local", "lock", "lock_all"]
direction = ["uni", "bi"]
size_bytes = [3, 4096]
[[experiment]]
name = "for-a-time"
pattern = "ping-pong"
duration = "50ms"
axes = { endpoint = "mpi", mpi_operation = "put", mpi_sync = ["fence", "flush"], size_bytes = 8 }
[[experiment]]
name = "stream-for-a-time"
pattern = "stream"
duration = "50ms"
axes = { endpoint = "mpi", mpi_operation = "get", mpi_sync = ["fence", "flush"], size_bytes = 8 }
"#;

#[test]
fn puts_and_gets_are_measured_over_every_mpi() {
    each(|mpi| {
        let scratch = Scratch::alone();
        scratch.write("plan.toml", PLAN);
        let ended = run(&scratch, &["run", "plan.toml", "--out", "record", "--mpi", mpi.template]);
        assert_eq!(ended.status, Some(0), "{ended:?}");
        let (_, points) = scratch.record("record");
        assert_eq!(points.len(), 2 * 5 * 4 + 2 * 5 * 2 * 2 + 2 + 2);
        assert!(all_measured(&points), "{:?}", points.iter().map(|point| &point.status).collect::<Vec<_>>());
        for point in &points {
            match (&point.latency, &point.throughput) {
                (Some(latency), None) => {
                    assert_eq!(latency.kind, LatencyKind::OneSided);
                    assert!(point.iterations.is_none_or(|count| latency.count == count), "{point:?}");
                }
                (None, Some(throughput)) => assert!(throughput.messages_per_s > 0.0, "{point:?}"),
                other => panic!("{other:?}"),
            }
        }
        scratch.assert_nothing_left();
    });
}

/// Builds an MPI library that is the same as another except for one function.
fn altered(scratch: &Scratch, mpi: &Mpi, source: &str) -> String {
    scratch.write("altered.c", source);
    let library = if mpi.launcher == "mpirun.openmpi" { "-l:libmpi.so.40" } else { "-l:libmpich.so.12" };
    let mut cc = scratch.command("cc");
    cc.args(["-shared", "-fPIC", "-o", "libaltered.so", "altered.c", "-Wl,--no-as-needed", library]);
    let ended = finish(cc);
    assert_eq!(ended.status, Some(0), "{ended:?}");
    scratch.at("libaltered.so").to_string_lossy().into_owned()
}

/// Returns the error of a point with this library.
#[track_caller]
fn failed(mpi: &Mpi, source: &str, plan: &str) -> String {
    let scratch = Scratch::alone();
    let library = altered(&scratch, mpi, source);
    scratch.write("plan.toml", plan);
    let arguments = ["run", "plan.toml", "--out", "record", "--mpi", mpi.template, "--mpi-library", &library];
    let ended = run(&scratch, &arguments);
    assert_eq!(ended.status, Some(1), "{ended:?}");
    let (_, points) = scratch.record("record");
    let Status::Failed { error } = &points[0].status else { panic!("{:?}", points[0].status) };
    scratch.assert_nothing_left();
    error.clone()
}

fn plan(pattern: &str, operation: &str, sync: &str) -> String {
    format!(
        "name = \"one\"\ntitle = \"One\"\n[[experiment]]\nname = \"one\"\npattern = \"{pattern}\"\niterations = 100\n\
         timeout = \"4s\"\n[experiment.axes]\nendpoint = \"mpi\"\nmpi_operation = \"{operation}\"\nmpi_sync = \"{sync}\"\n\
         size_bytes = 64\n"
    )
}

/// Returns a function that transfers no messages of 64 B after the first `from`.
fn forgetful(function: &str, from: u32) -> String {
    format!(
        "int P{function}(void *, int, void *, int, long, int, void *, void *);\nstatic long calls;\n\
         int {function}(void *origin, int n, void *type, int rank, long at, int m, void *other, void *window) {{\n\
         if (n == 64 && calls++ >= {from}) n = m = 0;\nreturn P{function}(origin, n, type, rank, at, m, other, window);\n}}\n"
    )
}

#[test]
fn wrong_contents_fail_the_point() {
    if !is_installed("cc") {
        return skip("cc", "it is not installed");
    }
    each(|mpi| {
        for (pattern, sync) in [("ping-pong", "flush"), ("ping-pong", "fence"), ("stream", "flush")] {
            // No measured message is transferred, or only the last round of the check is not, which
            // follows 10 puts of the warm-up and 100 that are measured.
            for from in [0, 110] {
                let error = failed(mpi, &forgetful("MPI_Put", from), &plan(pattern, "put", sync));
                assert!(
                    error.contains("rank 1: MPI_Put brought a wrong result to rank 1: byte 0"),
                    "{error}"
                );
            }
            let error = failed(mpi, &forgetful("MPI_Get", 0), &plan(pattern, "get", sync));
            assert!(error.contains("rank 0: MPI_Get brought a wrong result to rank 0: byte 0"), "{error}");
        }
    });
}

/// Rank 1 leaves each fence late, when the next put of rank 0 is in its window already.
const LATE: &str = "#include <stdlib.h>\n#include <unistd.h>\nint PMPI_Win_fence(int, void *);\n\
    int MPI_Win_fence(int flags, void *window) {\nint code = PMPI_Win_fence(flags, window);\n\
    const char *rank = getenv(\"OMPI_COMM_WORLD_RANK\");\nif (!rank) rank = getenv(\"PMI_RANK\");\n\
    if (atoi(rank) == 1) usleep(2000);\nreturn code;\n}\n";

#[test]
fn a_target_that_fences_sees_its_flag_after_the_fence_that_completes_it() {
    if !is_installed("cc") {
        return skip("cc", "it is not installed");
    }
    each(|mpi| {
        // An even and an odd number of fences before the flag.
        for iterations in [100, 101] {
            let scratch = Scratch::alone();
            let library = altered(&scratch, mpi, LATE);
            let plan = plan("ping-pong", "put", "fence");
            scratch.write("plan.toml", plan.replace("= 100\n", &format!("= {iterations}\n")));
            let ended = run(
                &scratch,
                &["run", "plan.toml", "--out", "record", "--mpi", mpi.template, "--mpi-library", &library],
            );
            assert_eq!(ended.status, Some(0), "{ended:?}");
            assert!(all_measured(&scratch.record("record").1), "{ended:?}");
        }
    });
}

#[test]
fn a_put_that_never_completes_is_told_by_its_call() {
    if !is_installed("cc") {
        return skip("cc", "it is not installed");
    }
    each(|mpi| {
        let source = "#include <unistd.h>\nint MPI_Win_flush(int rank, void *window) { for (;;) pause(); }\n";
        let error = failed(mpi, source, &plan("ping-pong", "put", "flush"));
        assert!(error.contains("it still waits in MPI_Win_flush for rank 1"), "{error}");
    });
}

/// Each start of a rank adds a dot to a file.
const COUNTED: &str = "#include <stdio.h>\nint PMPI_Init_thread(int *, char ***, int, int *);\n\
    int MPI_Init_thread(int *n, char ***words, int needed, int *level) {\n\
    FILE *file = fopen(\"starts\", \"a\");\nfputc('.', file);\nfclose(file);\n\
    return PMPI_Init_thread(n, words, needed, level);\n}\n";

#[test]
fn ranks_that_both_find_wrong_contents_end_together() {
    if !is_installed("cc") {
        return skip("cc", "it is not installed");
    }
    each(|mpi| {
        for (function, operation) in [("MPI_Put", "put"), ("MPI_Get", "get")] {
            let scratch = Scratch::alone();
            let library = altered(&scratch, mpi, &format!("{}{COUNTED}", forgetful(function, 0)));
            let plan = plan("stream", operation, "flush");
            let both_ways = plan.replace("size_bytes = 64", "direction = \"bi\"\nsize_bytes = [64, 100]");
            scratch.write("plan.toml", &both_ways);
            let ended = run(
                &scratch,
                &["run", "plan.toml", "--out", "record", "--mpi", mpi.template, "--mpi-library", &library],
            );
            assert_eq!(ended.status, Some(4), "{ended:?}");
            let (_, points) = scratch.record("record");
            assert!(matches!(points[0].status, Status::Failed { .. }), "{:?}", points[0].status);
            assert_eq!(points[1].status, Status::Measured, "{ended:?}");
            // Neither rank waited for a rank that had ended, so that no rank had to be started
            // again.
            assert_eq!(std::fs::read_to_string(scratch.at("starts")).unwrap(), "..", "{ended:?}");
        }
    });
}

#[test]
fn what_puts_and_gets_do_not_have_is_refused() {
    let scratch = Scratch::waiting();
    for (arguments, words) in [
        (&["lat", "mpi", "--mpi-sync", "fence"][..], "a send needs no synchronisation"),
        (&["lat", "mpi", "--mpi-operation", "send,put"], "use a separate command for each"),
        (&["lat", "mpi-put", "--mpi-call", "blocking"], "it selects the calls of sends"),
        (&["bw", "mpi-put", "-b", "-D", "1", "--mpi-sync", "fence"], "give iterations"),
        (&["bw", "tcp", "--local", "--mpi-operation", "put"], "asks for --mpi-operation over TCP"),
    ] {
        scratch.refused(arguments, 2, &[words]);
    }
}
