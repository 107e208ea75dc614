//! The table of collective calls: the columns of the OSU and the Intel MPI Benchmarks, and times
//! that follow from the stamps of all ranks.

use measure::presentation::Presentation;
use measure::quantity::number;
use measure::record::Point;
use measure::table::common::{ITERATIONS, PERCENT, SIZE, US3, WHOLE};
use measure::table::{Cell, Column, Note, Table, View};
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
            "the smallest of the ranks' mean times of a call",
        )
        .offered(),
        number(
            "collective.t_max_ns",
            Dimension::Time,
            |point, _| of(point, "t_max_ns"),
            "the largest of the ranks' mean times of a call",
        ),
        number(
            "collective.t_avg_ns",
            Dimension::Time,
            |point, _| of(point, "t_avg_ns"),
            "the mean of the ranks' mean times of a call",
        )
        .offered(),
        number(
            "collective.t_pure_ns",
            Dimension::Time,
            |point, _| of(point, "t_pure_ns"),
            "the median time of a nonblocking call alone, on the rank with the largest collective.t_ovrl_ns",
        ),
        number(
            "collective.t_cpu_ns",
            Dimension::Time,
            |point, _| of(point, "t_cpu_ns"),
            "the median time of the computation within a call, on the rank with the largest collective.t_ovrl_ns",
        ),
        number(
            "collective.t_ovrl_ns",
            Dimension::Time,
            |point, _| of(point, "t_ovrl_ns"),
            "the median time of a call with a computation within it, on the slowest rank",
        )
        .offered(),
        number(
            "collective.overlap",
            Dimension::Number,
            |point, _| of(point, "overlap"),
            "the share of a call that a computation hides, as the Intel MPI Benchmarks define it",
        )
        .offered(),
        number(
            "collective.overlap_osu",
            Dimension::Number,
            |point, _| of(point, "overlap_osu"),
            "the share of a call that a computation hides, as the OSU Micro-Benchmarks define it",
        ),
        number(
            "collective.late",
            Dimension::Number,
            |point, _| of(point, "late"),
            "calls for which at least one rank was late",
        ),
        number(
            "collective.clock_bound_ns",
            Dimension::Time,
            |point, _| of(point, "clock_bound_ns"),
            "the largest error of times between ranks, where ranks have different clocks",
        ),
        number(
            "collective.reversed",
            Dimension::Number,
            |point, _| of(point, "reversed"),
            "calls in which the last rank seems to end before the last rank starts, where ranks have different clocks",
        ),
        number(
            "collective.writes",
            Dimension::Number,
            |point, _| of(point, "writes"),
            "RDMA Writes of all ranks per call, over verbs",
        ),
    ],
    ..Presentation::PLAIN
};

static CALLS: Table = Table {
    title: "one call, on all ranks",
    says_direction: false,
    columns: &[
        Column::new("#ranks", Cell::Axis("ranks")).wide(6),
        Column::new("ways", Cell::Axis("ways")).wide(4).shown_where(has_ways),
        SIZE,
        ITERATIONS,
        Column::new("t_min[us]", Cell::Number("collective.t_min_ns", US3)).wide(9).usual(),
        Column::new("t_max[us]", Cell::Number("collective.t_max_ns", US3)).wide(9).usual(),
        Column::new("t_avg[us]", Cell::Number("collective.t_avg_ns", US3)).wide(9),
        Column::new("slowest[us]", Cell::Number("slowest.p50_ns", US3)).wide(11),
        Column::new("last-last[us]", Cell::Number("last_last.p50_ns", US3)).wide(13).extra(),
        Column::new("first-last[us]", Cell::Number("first_last.p50_ns", US3)).wide(14).extra(),
        Column::new("skew[us]", Cell::Number("start_skew.p50_ns", US3)).wide(9).extra(),
        Column::new("late", Cell::Number("collective.late", WHOLE)).wide(5).extra(),
        Column::new("#writes", Cell::Number("collective.writes", WHOLE))
            .wide(7)
            .extra()
            .shown_where(has_writes),
    ],
    notes: &[Note::Always(NOTES), Note::Of(clocks)],
    ..Table::PLAIN
};

static OVERLAPPED: Table = Table {
    title: "one call with a computation in it, on all ranks",
    says_direction: false,
    columns: &[
        Column::new("#ranks", Cell::Axis("ranks")).wide(6),
        SIZE,
        ITERATIONS,
        Column::new("t_pure[us]", Cell::Number("collective.t_pure_ns", US3)).wide(11),
        Column::new("t_cpu[us]", Cell::Number("collective.t_cpu_ns", US3)).wide(11),
        Column::new("t_ovrl[us]", Cell::Number("collective.t_ovrl_ns", US3)).wide(11),
        Column::new("overlap[%]", Cell::Number("collective.overlap", PERCENT)).wide(10),
        Column::new("OSU[%]", Cell::Number("collective.overlap_osu", PERCENT)).wide(7).extra(),
        Column::new("slowest[us]", Cell::Number("slowest.p50_ns", US3)).wide(11).extra(),
        Column::new("last-last[us]", Cell::Number("last_last.p50_ns", US3)).wide(13).extra(),
        Column::new("first-last[us]", Cell::Number("first_last.p50_ns", US3)).wide(14).extra(),
        Column::new("skew[us]", Cell::Number("start_skew.p50_ns", US3)).wide(9).extra(),
        Column::new("late", Cell::Number("collective.late", WHOLE)).wide(5).extra(),
    ],
    notes: &[Note::Always(OVERLAPPED_NOTES), Note::Of(clocks)],
    ..Table::PLAIN
};

const OVERLAPPED_NOTES: &str = "
 times are medians over the calls, on the rank with the largest t_ovrl. t_pure: the call and MPI_Wait alone; t_cpu: a \
   computation of the same length between the two, without its MPI_Test calls; t_ovrl: all of it
 overlap: (t_pure + t_cpu - t_ovrl) / min(t_pure, t_cpu), as the Intel MPI Benchmarks define it; OSU: 1 - (t_ovrl - t_cpu) / \
   t_pure of the means over the ranks, as osu_iallreduce and similar programs define it
 slowest: the longest time of a rank; last-last: from the last rank's start to the last rank's end; first-last: from the first \
   start to the last end; skew: from the first start to the last start; late: calls that a rank started after the common instant
";

const NOTES: &str = "
 t_min, t_max, t_avg: over the ranks, of each rank's mean, as the OSU and the Intel MPI Benchmarks print them
 other times are medians over the calls. slowest: the longest time of a rank; last-last: from the last rank's start to the last \
   rank's end; first-last: from the first start to the last end; skew: from the first start to the last start
 late: calls that at least one rank started after the common instant
 ways: n of a dissemination over verbs; #writes: RDMA Writes of all ranks per call
";

const NAME: &str = "collective";

fn has_ways(view: &View<'_>) -> bool {
    view.point.axes.contains_key("ways")
}

fn has_writes(view: &View<'_>) -> bool {
    of(view.point, "writes").is_some()
}

fn of(point: &Point, name: &str) -> Option<f64> {
    point.own.get(NAME)?.get(name)?.as_f64()
}

fn clocks(point: &Point) -> Option<String> {
    joint::clock_note(point, NAME)
}
