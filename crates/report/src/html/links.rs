//! The table of link rates, computed, with the published one beside it.

use measure::figure::{Figure, ReferenceTable};

use super::escape::escape;
use super::table;
use crate::link::{self, Generation, Printed, WIDTHS};

/// The generations of the table: those whose line code alone leads from one rate to the other.
const SHOWN: [Generation; 5] =
    [Generation::Sdr, Generation::Ddr, Generation::Qdr, Generation::Fdr, Generation::Edr];

/// What a row of the table is.
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

/// How the published numbers compare with the computed ones.
#[derive(Default)]
struct Tally {
    exact: u32,
    cut: u32,
    rounded: Vec<String>,
    other: Vec<String>,
}

/// The table with its notes.
pub(super) fn render(figure: &Figure) -> String {
    let published = figure.reference.as_ref().and_then(|r| r.table.as_ref());
    let mut tally = Tally::default();
    let rows: String = WIDTHS
        .into_iter()
        .flat_map(|lanes| [(lanes, Rate::Signal), (lanes, Rate::Data)])
        .map(|(lanes, rate)| row(lanes, rate, published, &mut tally))
        .collect();
    let (head, notes) = (head(published.is_some()), table::list(&notes(published.is_some(), &tally)));
    table::frame(&figure.title, "numbers", &head, &format!("<tbody>\n{rows}</tbody>\n")) + &notes
}

fn head(published: bool) -> String {
    let names = |class: &str| -> String {
        SHOWN.iter().map(|g| format!("<th scope=\"col\" class=\"{class}\">{}</th>", g.name())).collect()
    };
    let (group, columns) = if published {
        let group = "<th scope=\"colgroup\" colspan=\"5\" class=\"group published\">published [Gb/s]</th>";
        (group, names("published"))
    } else {
        ("", String::new())
    };
    format!(
        "<thead>\n<tr><th scope=\"col\" rowspan=\"2\" class=\"x\">width</th><th scope=\"col\" rowspan=\"2\">rate</th>\
         <th scope=\"colgroup\" colspan=\"5\" class=\"group measured\">computed [Gb/s]</th>{group}</tr>\n\
         <tr>{}{columns}</tr>\n</thead>\n",
        names("measured")
    )
}

fn row(lanes: u64, rate: Rate, published: Option<&ReferenceTable>, tally: &mut Tally) -> String {
    let computed: String =
        SHOWN.into_iter().map(|g| format!("<td>{}</td>", link::gbps(rate.bits_per_s(g, lanes)))).collect();
    let printed: String = match published {
        Some(table) => SHOWN.into_iter().map(|g| printed_cell(table, lanes, rate, g, tally)).collect(),
        None => String::new(),
    };
    let name = rate.name();
    let width = match rate {
        Rate::Signal => format!("<th scope=\"rowgroup\" rowspan=\"2\">{lanes}X</th>"),
        Rate::Data => String::new(),
    };
    format!(
        "<tr class=\"{name}\">{width}<th scope=\"row\" class=\"rate\">{name}</th>{computed}{printed}</tr>\n"
    )
}

fn printed_cell(
    table: &ReferenceTable,
    lanes: u64,
    rate: Rate,
    generation: Generation,
    tally: &mut Tally,
) -> String {
    let Some(text) = find(table, lanes, rate, generation) else {
        return "<td class=\"published absent\">–</td>".to_owned();
    };
    let exact = rate.bits_per_s(generation, lanes);
    let cell = || format!("{lanes}X {} {} ({text})", generation.name(), rate.name());
    let class = match link::compare(text, exact) {
        Printed::Exact => {
            tally.exact += 1;
            ""
        }
        Printed::Cut => {
            tally.cut += 1;
            ""
        }
        Printed::Rounded => {
            tally.rounded.push(cell());
            ""
        }
        Printed::Other => {
            tally.other.push(cell());
            " differs"
        }
    };
    format!("<td class=\"published{class}\">{}</td>", escape(text))
}

/// The published cell: the row by `lanes` and `rate_kind`, the column by the name of the generation.
fn find(table: &ReferenceTable, lanes: u64, rate: Rate, generation: Generation) -> Option<&str> {
    let column = |name: &str| table.columns.iter().position(|c| c == name);
    let (at_lanes, at_rate) = (column("lanes")?, column("rate_kind")?);
    let wanted = format!("{}_gbps", generation.name().to_lowercase());
    let at = column(&wanted)?;
    let is_row = |row: &&Vec<String>| {
        row.get(at_lanes).is_some_and(|c| *c == lanes.to_string())
            && row.get(at_rate).is_some_and(|c| c == rate.name())
    };
    table.rows.iter().find(is_row)?.get(at).map(String::as_str)
}

fn notes(published: bool, tally: &Tally) -> Vec<String> {
    let mut notes = vec![
        "Signal rate: lane rate (SDR 2.5, DDR 5, QDR 10, FDR 14.0625, EDR 25.78125 Gb/s) times lanes. Data rate: \
         times 8/10 for SDR, DDR and QDR (8b/10b coding), times 64/66 for FDR and EDR (64b/66b). Dots: cut, \
         the digits go on. 1 Gb/s = 10^9 bit/s."
            .to_owned(),
    ];
    if !published {
        return notes;
    }
    let mut text = format!("Published numbers: {} equal the computed ones", tally.exact);
    if tally.cut > 0 {
        text += &format!("; {} are cut after their last digit, not rounded", tally.cut);
    }
    if !tally.rounded.is_empty() {
        text += &format!("; rounded: {}", escape(&tally.rounded.join(", ")));
    }
    if tally.other.is_empty() {
        text += "; none differs otherwise.";
    } else {
        text += &format!("; <strong>these differ: {}</strong>.", escape(&tally.other.join(", ")));
    }
    notes.push(text);
    notes
}
