//! The table of link rates: computed ones, and the published ones beside them.

use maud::{Markup, html};
use measure::figure::{Figure, ReferenceTable};

use super::table;
use crate::link::{self, Generation, Printed, WIDTHS};

/// The generations of the table, whose data rate follows from the signal rate by the line code
/// alone.
const SHOWN: &[Generation] = Generation::ALL.first_chunk::<5>().unwrap();

/// The kind of a row.
#[derive(Clone, Copy, PartialEq)]
enum Rate {
    Signal,
    Data,
}

impl Rate {
    fn name(self) -> &'static str {
        match self {
            Self::Signal => "signal",
            Self::Data => "data",
        }
    }

    fn bits_per_s(self, generation: Generation, lanes: u64) -> u64 {
        match self {
            Self::Signal => generation.signal_bits_per_s(lanes),
            Self::Data => generation.data_bits_per_s(lanes),
        }
    }
}

/// The comparison of the published numbers with the computed ones.
#[derive(Default)]
struct Tally {
    exact: u32,
    cut: u32,
    rounded: Vec<String>,
    other: Vec<String>,
}

/// The table with its notes.
pub(super) fn render(figure: &Figure) -> Markup {
    let published = figure.reference.as_ref().and_then(|r| r.table.as_ref());
    let mut tally = Tally::default();
    let rows = html! {
        tbody {
            @for lanes in WIDTHS {
                @for rate in [Rate::Signal, Rate::Data] {
                    (row(lanes, rate, published, &mut tally)) "\n"
                }
            }
        }
    };
    html! {
        (table::frame(&figure.title, "numbers", &head(published.is_some()), &rows))
        (table::list(notes(published.is_some(), &tally)))
    }
}

fn head(published: bool) -> Markup {
    let names = |class: &str| html! { @for one in SHOWN { th scope="col" class=(class) { (one.name) } } };
    html! {
        thead {
            tr {
                th scope="col" rowspan="2" class="x" { "width" }
                th scope="col" rowspan="2" { "rate" }
                th scope="colgroup" colspan="5" class="group measured" { "computed [Gb/s]" }
                @if published {
                    th scope="colgroup" colspan="5" class="group published" { "published [Gb/s]" }
                }
            }
            tr {
                (names("measured"))
                @if published { (names("published")) }
            }
        }
    }
}

fn row(lanes: u64, rate: Rate, published: Option<&ReferenceTable>, tally: &mut Tally) -> Markup {
    html! {
        tr class=(rate.name()) {
            @if rate == Rate::Signal { th scope="rowgroup" rowspan="2" { (lanes) "X" } }
            th scope="row" class="rate" { (rate.name()) }
            @for one in SHOWN { td { (link::gbps(rate.bits_per_s(*one, lanes))) } }
            @if let Some(table) = published {
                @for one in SHOWN { (printed_cell(table, lanes, rate, *one, tally)) }
            }
        }
    }
}

fn printed_cell(
    table: &ReferenceTable,
    lanes: u64,
    rate: Rate,
    generation: Generation,
    tally: &mut Tally,
) -> Markup {
    let Some(text) = find(table, lanes, rate, generation) else {
        return html! { td class="published absent" { "–" } };
    };
    let exact = rate.bits_per_s(generation, lanes);
    let cell = || format!("{lanes}X {} {} ({text})", generation.name, rate.name());
    let printed = link::compare(text, exact);
    match printed {
        Printed::Exact => tally.exact += 1,
        Printed::Cut => tally.cut += 1,
        Printed::Rounded => tally.rounded.push(cell()),
        Printed::Other => tally.other.push(cell()),
    }
    let class = if printed == Printed::Other { "published differs" } else { "published" };
    html! { td class=(class) { (text) } }
}

/// The published cell: the row by `lanes` and `rate_kind`, the column by the name of the
/// generation.
fn find(table: &ReferenceTable, lanes: u64, rate: Rate, generation: Generation) -> Option<&str> {
    let column = |name: &str| table.columns.iter().position(|c| c == name);
    let at_lanes = column("lanes")?;
    let at_rate = column("rate_kind")?;
    let wanted = format!("{}_gbps", generation.name.to_lowercase());
    let at = column(&wanted)?;
    let is_row = |row: &&Vec<String>| {
        row.get(at_lanes).is_some_and(|c| *c == lanes.to_string())
            && row.get(at_rate).is_some_and(|c| c == rate.name())
    };
    table.rows.iter().find(is_row)?.get(at).map(String::as_str)
}

fn notes(published: bool, tally: &Tally) -> Vec<Markup> {
    let mut notes = vec![html! {
        "Signal rate: lane rate (SDR 2.5, DDR 5, QDR 10, FDR 14.0625, EDR 25.78125 Gb/s) times lanes. "
        "Data rate: times 8/10 for SDR, DDR and QDR (8b/10b coding), times 64/66 for FDR and EDR "
        "(64b/66b). Dots: more digits follow. 1 Gb/s = 10^9 bit/s."
    }];
    if published {
        notes.push(html! {
            "Published numbers: " (tally.exact) " equal the computed ones"
            @if tally.cut > 0 { "; " (tally.cut) " are cut after their last digit, not rounded" }
            @if !tally.rounded.is_empty() { "; rounded: " (tally.rounded.join(", ")) }
            @if tally.other.is_empty() { "; there are no other differences." }
            @else { "; " strong { "these differ: " (tally.other.join(", ")) } "." }
        });
    }
    notes
}
