//! The table of halo exchanges: the times of collective calls, by grid and values of a side.

use measure::presentation::Presentation;
use measure::quantity::number;
use measure::record::Point;
use measure::table::common::{ITERATIONS, SIZE, US3, WHOLE};
use measure::table::{Cell, Column, Note, Table};
use measure::units::Dimension;

use crate::pattern::joint;

pub(super) static SHOWN: Presentation = Presentation {
    row_axes: &["grid", "side_values"],
    column_axes: &["size_bytes"],
    label: &["{grid}, {side_values} values"],
    table: |point| point.own.get(NAME).map(|_| &EXCHANGES),
    quantities: &[
        number(
            "halo.t_min_ns",
            Dimension::Time,
            |point, _| of(point, "t_min_ns"),
            "the smallest of the ranks' mean times of an exchange",
        ),
        number(
            "halo.t_max_ns",
            Dimension::Time,
            |point, _| of(point, "t_max_ns"),
            "the largest of the ranks' mean times of an exchange",
        )
        .offered(),
        number(
            "halo.t_avg_ns",
            Dimension::Time,
            |point, _| of(point, "t_avg_ns"),
            "the mean of the ranks' mean times of an exchange",
        )
        .offered(),
        number(
            "halo.late",
            Dimension::Number,
            |point, _| of(point, "late"),
            "exchanges for which at least one rank was late",
        ),
        number(
            "halo.clock_bound_ns",
            Dimension::Time,
            |point, _| of(point, "clock_bound_ns"),
            "the largest error of times between ranks, where ranks have different clocks",
        ),
        number(
            "halo.reversed",
            Dimension::Number,
            |point, _| of(point, "reversed"),
            "exchanges in which the last rank seems to end before the last rank starts, where ranks have different clocks",
        ),
    ],
    ..Presentation::PLAIN
};

static EXCHANGES: Table = Table {
    title: "one exchange of all four sides, on all ranks",
    says_direction: false,
    columns: &[
        Column::new("grid", Cell::Axis("grid")).wide(6),
        Column::new("#values", Cell::Axis("side_values")).wide(7),
        SIZE.extra(),
        ITERATIONS,
        Column::new("t_min[us]", Cell::Number("halo.t_min_ns", US3)).wide(9).usual(),
        Column::new("t_max[us]", Cell::Number("halo.t_max_ns", US3)).wide(9).usual(),
        Column::new("t_avg[us]", Cell::Number("halo.t_avg_ns", US3)).wide(9),
        Column::new("slowest[us]", Cell::Number("slowest.p50_ns", US3)).wide(11),
        Column::new("last-last[us]", Cell::Number("last_last.p50_ns", US3)).wide(13).extra(),
        Column::new("skew[us]", Cell::Number("start_skew.p50_ns", US3)).wide(9).extra(),
        Column::new("late", Cell::Number("halo.late", WHOLE)).wide(5).extra(),
    ],
    notes: &[Note::Always(NOTES), Note::Of(clocks)],
    ..Table::PLAIN
};

const NOTES: &str = "
 #values, #bytes: of each side; t_min, t_max, t_avg: over the ranks, of each rank's mean
 other times are medians over the exchanges. slowest: the longest time of a rank; last-last: from the last rank's start to the \
   last rank's end; skew: from the first start to the last start; late: exchanges that a rank started after the common instant
";

const NAME: &str = "halo";

fn of(point: &Point, name: &str) -> Option<f64> {
    point.own.get(NAME)?.get(name)?.as_f64()
}

fn clocks(point: &Point) -> Option<String> {
    joint::clock_note(point, NAME)
}
