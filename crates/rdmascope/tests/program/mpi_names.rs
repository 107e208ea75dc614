//! Names of the OSU benchmarks and the Intel MPI Benchmarks as commands.

use measure::record::Point;

use super::mpi::{each, run};
use crate::support::{Scratch, all_measured};

/// Flags of the OSU benchmarks and of the Intel MPI Benchmarks.
const OSU: &str = "-m 8:32 -i 20 -x 5";
const IMB: &str = "-msglog 3:5 -iter 20";

/// A name with flags, and what it must measure: the pattern, the value of an axis, and the messages
/// of a point.
type Name = (&'static str, &'static str, &'static str, (&'static str, &'static str), u64);

/// Every name.
const NAMES: [Name; 60] = [
    ("osu_latency", OSU, "ping-pong", ("mpi_call", "blocking"), 20),
    ("osu_multi_lat", OSU, "pairs", ("traffic", "ping_pong"), 20),
    ("osu_bw", "-m 8:32 -i 20 -x 5 -W 32", "stream", ("direction", "uni"), 640),
    ("osu_bibw", OSU, "stream", ("direction", "bi"), 20 * 64),
    ("osu_mbw_mr", "-m 8:32 -i 20 -x 5 -p 1", "pairs", ("traffic", "stream"), 20 * 64),
    ("osu_put_latency", OSU, "ping-pong", ("mpi_sync", "flush"), 20),
    ("osu_get_latency", "-m 8:32 -i 20 -x 5 -s fence", "ping-pong", ("mpi_sync", "fence"), 20),
    ("osu_put_bw", "-m 8:32 -i 20 -x 5 -s lock_all -w allocate", "stream", ("mpi_sync", "lock_all"), 20 * 64),
    ("osu_get_bw", OSU, "stream", ("mpi_operation", "get"), 20 * 64),
    ("osu_allgather", OSU, "collective", ("collective", "allgather"), 20),
    ("osu_allreduce", "-m 8:32 -i 20 -x 5 -T int32", "collective", ("datatype", "int32"), 20),
    ("osu_alltoall", OSU, "collective", ("collective", "alltoall"), 20),
    ("osu_barrier", "-i 20 -x 5", "collective", ("collective", "barrier"), 20),
    ("osu_bcast", OSU, "collective", ("collective", "bcast"), 20),
    ("osu_gather", OSU, "collective", ("collective", "gather"), 20),
    ("osu_reduce", OSU, "collective", ("collective", "reduce"), 20),
    ("osu_reduce_scatter", OSU, "collective", ("collective", "reduce_scatter"), 20),
    ("osu_reduce_scatter_block", OSU, "collective", ("collective", "reduce_scatter_block"), 20),
    ("osu_scatter", OSU, "collective", ("collective", "scatter"), 20),
    ("PingPong", IMB, "ping-pong", ("mpi_call", "blocking"), 20),
    ("Uniband", IMB, "pairs", ("traffic", "stream"), 20 * 256),
    ("Unidir_put", IMB, "ping-pong", ("mpi_operation", "put"), 20),
    ("Unidir_get", IMB, "ping-pong", ("mpi_operation", "get"), 20),
    ("Allgather", IMB, "collective", ("collective", "allgather"), 20),
    ("Allreduce", IMB, "collective", ("collective", "allreduce"), 20),
    ("Alltoall", IMB, "collective", ("collective", "alltoall"), 20),
    ("Barrier", "-iter 20", "collective", ("collective", "barrier"), 20),
    ("Bcast", IMB, "collective", ("collective", "bcast"), 20),
    ("Gather", IMB, "collective", ("collective", "gather"), 20),
    ("Reduce", IMB, "collective", ("collective", "reduce"), 20),
    ("Reduce_scatter", IMB, "collective", ("collective", "reduce_scatter"), 20),
    ("Reduce_scatter_block", IMB, "collective", ("collective", "reduce_scatter_block"), 20),
    ("Scatter", IMB, "collective", ("collective", "scatter"), 20),
    ("osu_allgatherv", OSU, "collective", ("collective", "allgatherv"), 20),
    ("osu_alltoallv", OSU, "collective", ("collective", "alltoallv"), 20),
    ("osu_gatherv", OSU, "collective", ("collective", "gatherv"), 20),
    ("osu_scatterv", OSU, "collective", ("collective", "scatterv"), 20),
    ("osu_iallgather", OSU, "collective", ("collective_call", "overlapped"), 20),
    ("osu_iallreduce", OSU, "collective", ("collective_call", "overlapped"), 20),
    ("osu_ialltoall", OSU, "collective", ("collective_call", "overlapped"), 20),
    ("osu_ibarrier", "-i 20 -x 5", "collective", ("collective_call", "overlapped"), 20),
    ("osu_ibcast", OSU, "collective", ("collective_call", "overlapped"), 20),
    ("osu_igather", OSU, "collective", ("collective_call", "overlapped"), 20),
    ("osu_ireduce", OSU, "collective", ("collective_call", "overlapped"), 20),
    ("osu_ireduce_scatter", OSU, "collective", ("collective_call", "overlapped"), 20),
    ("osu_ireduce_scatter_block", OSU, "collective", ("collective", "reduce_scatter_block"), 20),
    ("osu_iscatter", OSU, "collective", ("collective_call", "overlapped"), 20),
    ("Allgatherv", IMB, "collective", ("collective", "allgatherv"), 20),
    ("Alltoallv", IMB, "collective", ("collective", "alltoallv"), 20),
    ("Gatherv", IMB, "collective", ("collective", "gatherv"), 20),
    ("Scatterv", IMB, "collective", ("collective", "scatterv"), 20),
    ("Iallgather", IMB, "collective", ("collective", "allgather"), 20),
    ("Iallreduce", IMB, "collective", ("collective", "allreduce"), 20),
    ("Ialltoall", IMB, "collective", ("collective", "alltoall"), 20),
    ("Ibarrier", "-iter 20", "collective", ("collective", "barrier"), 20),
    ("Ibcast", IMB, "collective", ("collective", "bcast"), 20),
    ("Igather", IMB, "collective", ("collective", "gather"), 20),
    ("Ireduce", IMB, "collective", ("collective", "reduce"), 20),
    ("Ireduce_scatter", IMB, "collective", ("collective", "reduce_scatter"), 20),
    ("Iscatter", IMB, "collective", ("collective", "scatter"), 20),
];

/// Asserts that a name has measured what it stands for.
fn check(name: &str, points: &[Point], pattern: &str, (axis, value): (&str, &str), messages: u64) {
    assert!(all_measured(points), "{name}: {points:?}");
    let sizes: Vec<u64> = points.iter().map(|point| point.axes["size_bytes"].as_u64().unwrap()).collect();
    let expected = match name {
        _ if name.to_lowercase().contains("barrier") => &[0][..],
        _ if name.starts_with("osu_") => &[8, 16, 32],
        // Size 0 comes before all others.
        _ => &[0, 8, 16, 32],
    };
    assert_eq!(sizes, expected, "{name}");
    for point in points {
        assert_eq!(point.pattern, pattern, "{name}");
        assert_eq!(point.axes[axis], value, "{name}: {:?}", point.axes);
        assert_eq!(point.iterations, Some(messages), "{name}");
        assert!(point.axes.get("pairs").is_none_or(|pairs| *pairs == 1), "{name}");
    }
}

/// Each name with one MPI, in turn: what a name stands for does not depend on the library.
#[test]
fn every_name_starts_what_it_says() {
    each(|mpi| {
        let of_this = NAMES.into_iter().skip(usize::from(mpi.launcher.ends_with("mpich"))).step_by(2);
        for (name, flags, pattern, axis, messages) in of_this {
            let scratch = Scratch::alone();
            let mut arguments = vec![name];
            arguments.extend(flags.split(' '));
            arguments.extend(["--out", "record", "--mpi", mpi.template]);
            let ended = run(&scratch, &arguments);
            assert_eq!(ended.status, Some(0), "{name}: {ended:?}");
            let (record, points) = scratch.record("record");
            check(name, &points, pattern, axis, messages);
            assert!(name != "osu_bw" || record.plan["experiments"][0]["tx_depth"] == 32, "{name}");
            scratch.assert_nothing_left();
        }
    });
}

#[test]
fn what_other_suites_have_and_we_do_not_is_a_sentence() {
    let scratch = Scratch::waiting();
    for (arguments, words) in [
        ("osu_latency -c", "always verified"),
        ("osu_latency -z", "t_99 and t_99.9 are always columns"),
        ("osu_bw -V yes", "--tx-depth 1,16,64"),
        ("osu_bw -m 9:3", "give the smallest and the largest size in bytes, such as 8:4096"),
        ("osu_put_latency -s pscw", "give fence or flush"),
        ("osu_put_latency -w create", "MPI_Win_allocate"),
        ("osu_put_bibw -s fence", "the closest is rdmascope osu_put_bw --bidirectional --mpi-sync fence"),
        (
            "osu_bw -i 10 --tx-depth 16,64",
            "-i and -x count windows, and --tx-depth gives windows of several lengths",
        ),
        ("PingPong -npmin 2", "it has two ranks"),
        ("PingPong -multi 0", "rdmascope osu_multi_lat --pairs N"),
        ("PingPong -window_size 64", "it has no windows"),
        ("Uniband -npmin 2", "--pairs 1,2"),
        ("Allreduce -npmin 2", "--ranks 2,4"),
        ("Allreduce -red_data_type double", "--datatype float, double or int32"),
        ("Allreduce -imb_barrier on", "--start own_barrier"),
        ("Bcast -root_shift on", "the root is rank 0"),
        ("Bcast -data_type int", "messages are bytes"),
        ("Bcast -contig_type resize", "contiguous bytes"),
        ("Bcast -msg_pause on", "leave it out"),
        ("Bcast -msgsize 8,16", "--size takes a list"),
        ("PingPong -msglog 3:40", "give the smallest and the largest size in exponents of two, such as 3:12"),
        ("PingPong -msglen lengths", "--size takes a list"),
        ("Sendrecv -iter 10", "the closest is rdmascope halo sendrecv"),
        ("Exchange", "the closest is rdmascope halo mpi"),
        ("ib_send_lat -a node7", "rdmascope lat send measures the same and takes its options"),
        ("ib_atomic_bw", "rdmascope bw atomic measures the same"),
    ] {
        scratch.refused(&arguments.split(' ').collect::<Vec<_>>(), 2, &[words]);
    }
    for twice in ["osu_latency -m 8: --size 8", "osu_latency -i 10 --iters 10", "osu_bw -W 8 --tx-depth 8"] {
        let ended = scratch.run(&twice.split(' ').collect::<Vec<_>>());
        assert_eq!(ended.status, Some(2), "{ended:?}");
        assert!(ended.stderr.contains("cannot be used with"), "{ended:?}");
    }
}

/// Sizes and windows if the flags of the suites set only some of them, or all.
#[test]
fn defaults_are_those_of_the_suite() {
    each(|mpi| {
        for (arguments, sizes, messages) in [
            ("PingPong -msglog 3:4 -zero_size off -iter 2", &[8, 16][..], 2),
            ("Allreduce -msglog 0:3 -iter 2", &[0, 4, 8], 2),
            ("Uniband -msglog 3:3 -window_size 32 -iter 2", &[0, 8], 64),
            ("osu_latency -m :2 -i 2", &[0, 1, 2], 2),
            ("osu_bw -m :2 -i 2", &[1, 2], 128),
            ("osu_bcast -m 524288: -i 2", &[1 << 19, 1 << 20], 2),
            ("osu_latency -m 2097152: -i 2", &[1 << 21, 1 << 22], 2),
        ] {
            let scratch = Scratch::alone();
            let mut words: Vec<_> = arguments.split(' ').collect();
            words.extend(["--out", "record", "--mpi", mpi.template]);
            let ended = run(&scratch, &words);
            assert_eq!(ended.status, Some(0), "{arguments}: {ended:?}");
            let (_, points) = scratch.record("record");
            let found: Vec<u64> =
                points.iter().map(|point| point.axes["size_bytes"].as_u64().unwrap()).collect();
            assert_eq!(found, sizes, "{arguments}");
            assert!(points.iter().all(|point| point.iterations == Some(messages)), "{arguments}: {points:?}");
        }
    });
}

#[test]
fn a_name_teaches_the_flags_of_both() {
    let scratch = Scratch::new();
    for (name, ..) in NAMES {
        let text = scratch.succeed(&[name, "--help"]);
        assert!(text.lines().all(|line| line.chars().count() <= 100), "{name}");
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        for words in ["another name of", "(in rdmascope: --warmup)", "--mpi-transport"] {
            let is_of_osu = name.starts_with("osu_") || !words.contains("--warmup");
            assert_eq!(text.contains(words), is_of_osu, "{name}: {words}");
        }
    }
}
