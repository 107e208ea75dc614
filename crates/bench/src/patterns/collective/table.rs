//! Calls that all ranks make together: the columns of the OSU and the Intel MPI Benchmarks, and
//! what only stamps of all ranks tell.

use measure::presentation::Presentation;
use measure::quantity::number;
use measure::record::Point;
use measure::table::common::{ITERATIONS, PERCENT, SIZE, US3, WHOLE};
use measure::table::{Cell, Column, Note, Table};
use measure::units::Dimension;

use crate::pattern::joint;

pub(super) static SHOWN: Presentation = Presentation {
    row_axes: &["ranks", "ways", "size_bytes"],
    label: &["{ranks} ranks, {size_bytes} B"],
    table: |point| match of(point, "t_pure_ns") {
        Some(_) => Some(&OVERLAPPED),
        None => point.own.get(NAME).map(|_| &CALLS),
    },
    quantities: &[
        number(
            "collective.t_min_ns",
            Dimension::Time,
            |point, _| of(point, "t_min_ns"),
            "the least of the ranks' mean times in a call",
        )
        .offered(),
        number(
            "collective.t_max_ns",
            Dimension::Time,
            |point, _| of(point, "t_max_ns"),
            "the largest of the ranks' mean times in a call",
        ),
        number(
            "collective.t_avg_ns",
            Dimension::Time,
            |point, _| of(point, "t_avg_ns"),
            "the mean of the ranks' mean times in a call",
        )
        .offered(),
        number(
            "collective.t_pure_ns",
            Dimension::Time,
            |point, _| of(point, "t_pure_ns"),
            "the median time of a nonblocking call alone, of the rank with the largest collective.t_ovrl_ns",
        ),
        number(
            "collective.t_cpu_ns",
            Dimension::Time,
            |point, _| of(point, "t_cpu_ns"),
            "the median time of the calculation within a call, of the rank with the largest collective.t_ovrl_ns",
        ),
        number(
            "collective.t_ovrl_ns",
            Dimension::Time,
            |point, _| of(point, "t_ovrl_ns"),
            "the median time of a call and the calculation within it, of the slowest rank",
        )
        .offered(),
        number(
            "collective.overlap",
            Dimension::Number,
            |point, _| of(point, "overlap"),
            "the share of a call that a calculation hides, as the Intel MPI Benchmarks define it",
        )
        .offered(),
        number(
            "collective.overlap_osu",
            Dimension::Number,
            |point, _| of(point, "overlap_osu"),
            "the share of a call that a calculation hides, as the OSU Micro-Benchmarks define it",
        ),
        number(
            "collective.late",
            Dimension::Number,
            |point, _| of(point, "late"),
            "calls that a rank came to late",
        ),
        number(
            "collective.clock_bound_ns",
            Dimension::Time,
            |point, _| of(point, "clock_bound_ns"),
            "how far times between ranks may be off, where ranks have several clocks",
        ),
        number(
            "collective.reversed",
            Dimension::Number,
            |point, _| of(point, "reversed"),
            "calls of which the last rank seems to end before the last begins, where ranks have several clocks",
        ),
        number(
            "collective.writes",
            Dimension::Number,
            |point, _| of(point, "writes"),
            "RDMA Writes of all ranks in a call, over verbs",
        ),
    ],
    ..Presentation::PLAIN
};

static CALLS: Table = Table {
    title: "one call, on all ranks",
    says_direction: false,
    columns: &[
        Column::new("#ranks", Cell::Axis("ranks")).wide(6),
        Column::new("ways", Cell::Axis("ways")).wide(4),
        SIZE.wide(8),
        ITERATIONS.wide(11),
        Column::new("t_min[us]", Cell::Number("collective.t_min_ns", US3)).wide(10),
        Column::new("t_max[us]", Cell::Number("collective.t_max_ns", US3)).wide(10),
        Column::new("t_avg[us]", Cell::Number("collective.t_avg_ns", US3)).wide(10),
        Column::new("slowest[us]", Cell::Number("slowest.p50_ns", US3)).wide(11),
        Column::new("last-last[us]", Cell::Number("last_last.p50_ns", US3)).wide(13),
        Column::new("first-last[us]", Cell::Number("first_last.p50_ns", US3)).wide(14),
        Column::new("skew[us]", Cell::Number("start_skew.p50_ns", US3)).wide(9),
        Column::new("late", Cell::Number("collective.late", WHOLE)).wide(5),
        Column::new("#writes", Cell::Number("collective.writes", WHOLE)).wide(7),
    ],
    notes: &[Note::Always(NOTES), Note::Of(clocks)],
    ..Table::PLAIN
};

static OVERLAPPED: Table = Table {
    title: "one call with a calculation in it, on all ranks",
    says_direction: false,
    columns: &[
        Column::new("#ranks", Cell::Axis("ranks")).wide(6),
        SIZE.wide(8),
        ITERATIONS.wide(11),
        Column::new("t_pure[us]", Cell::Number("collective.t_pure_ns", US3)).wide(11),
        Column::new("t_cpu[us]", Cell::Number("collective.t_cpu_ns", US3)).wide(11),
        Column::new("t_ovrl[us]", Cell::Number("collective.t_ovrl_ns", US3)).wide(11),
        Column::new("overlap[%]", Cell::Number("collective.overlap", PERCENT)).wide(10),
        Column::new("OSU[%]", Cell::Number("collective.overlap_osu", PERCENT)).wide(7),
        Column::new("slowest[us]", Cell::Number("slowest.p50_ns", US3)).wide(11),
        Column::new("last-last[us]", Cell::Number("last_last.p50_ns", US3)).wide(13),
        Column::new("first-last[us]", Cell::Number("first_last.p50_ns", US3)).wide(14),
        Column::new("skew[us]", Cell::Number("start_skew.p50_ns", US3)).wide(9),
        Column::new("late", Cell::Number("collective.late", WHOLE)).wide(5),
    ],
    notes: &[Note::Always(OVERLAPPED_NOTES), Note::Of(clocks)],
    ..Table::PLAIN
};

const OVERLAPPED_NOTES: &str = "
 medians over the calls, of the rank with the largest t_ovrl. t_pure: the call and MPI_Wait alone; t_cpu: a calculation of the
   same length between the two, without the MPI_Test calls in it; t_ovrl: all of it
 overlap: (t_pure + t_cpu - t_ovrl) / min(t_pure, t_cpu), as the Intel MPI Benchmarks define it; OSU: as osu_iallreduce and its
   like define it, 1 - (t_ovrl - t_cpu) / t_pure of the means over the ranks
 slowest: the slowest rank's own time; last-last: from the last rank's begin to the last rank's end; first-last: from the first
   begin to the last end; skew: from the first begin to the last; late: calls that some rank reached after their instant
";

const NOTES: &str = "
 t_min, t_max, t_avg: over the ranks, of each rank's mean, as the OSU and the Intel MPI Benchmarks print them
 the others are medians over the calls. slowest: the slowest rank's own time; last-last: from the last rank's begin to the
   last rank's end; first-last: from the first begin to the last end; skew: from the first begin to the last
 late: calls that some rank reached after the instant at which all were to begin
 ways: n of a dissemination over verbs; #writes: RDMA Writes of all ranks in a call
";

const NAME: &str = "collective";

fn of(point: &Point, name: &str) -> Option<f64> {
    point.own.get(NAME)?.get(name)?.as_f64()
}

fn clocks(point: &Point) -> Option<String> {
    joint::clock_note(point, NAME)
}
