//! What is shown of each pattern: its table, what a row says that failed, whom its messages go to.
//!
//! A pattern has one file here and one line in [`ALL`]; nothing else in this crate knows a pattern by its name. The
//! files use nothing but `measure`.

mod fan_out;
mod one_way;
mod open_loop;
mod overhead;
mod pairs;
mod ping_pong;
mod pipeline;
mod prtt;
mod stream;

use measure::record::Point;
use measure::table::{Presentation, Table, common};

/// All patterns.
static ALL: &[&Presentation] = &[
    &fan_out::SHOWN,
    &one_way::SHOWN,
    &open_loop::SHOWN,
    &overhead::SHOWN,
    &pairs::SHOWN,
    &ping_pong::SHOWN,
    &pipeline::SHOWN,
    &prtt::SHOWN,
    &stream::SHOWN,
];

/// What is shown of points of a pattern, of one that this program does not know, too.
pub(crate) fn of(pattern: &str) -> &'static Presentation {
    static PLAIN: Presentation = Presentation::PLAIN;
    ALL.iter().find(|shown| shown.pattern == pattern).copied().unwrap_or(&PLAIN)
}

/// The table of a point; `None` where it holds no numbers.
pub(crate) fn table(point: &Point) -> Option<&'static Table> {
    (of(&point.pattern).table)(point).or_else(|| common::table(point))
}

#[cfg(test)]
mod tests;
