//! The text on models.

use measure::stats::fit::Unfit;
use measure::stats::shape::Estimate;

use super::column::{Column, Table, sizes};
use super::line::Line;
use super::packets::{LANES, PARAMETERS, Packets};
use crate::series_table::median;
use crate::unit;
use measure::text::plain;

/// The text on a table.
pub(super) fn table(table: &Table, fitted: &[String]) -> String {
    let mut out = format!("{}\n{}\n\n", plain(&table.title), plain(&table.source));
    out += &lines(table);
    out.push('\n');
    out += &packets(table, fitted);
    out
}

/// Hockney's line for each column.
fn lines(table: &Table) -> String {
    let mut out = " One line for each column, t = t0 + n/r (Hockney; L + 2o and 1/G of LogGP)\n".to_owned();
    out += &format!(
        " {:<7} {:>7} {:<14} {:>8} {:<14} {:>8}  {}\n",
        "column", "t0 [us]", "", "r [Gb/s]", "", "n1/2 [B]", "worst cell"
    );
    for column in &table.columns {
        let label = cut(&column.label);
        match Line::of(column) {
            Ok(line) => {
                let start = line.start_ns.map(|ns| ns / 1e3);
                let per_byte = line.ns_per_byte;
                // A rate falls if the time of a byte rises.
                let rate = Estimate {
                    value: 8.0 / per_byte.value,
                    low: 8.0 / per_byte.high,
                    high: if per_byte.low > 0.0 { 8.0 / per_byte.low } else { f64::INFINITY },
                };
                let worst = worst(column, |size| line.at(size));
                out += &format!(
                    " {label:<7} {:>7.2} {:<14} {:>8.1} {:<14} {:>8.0}  {worst}\n",
                    start.value,
                    interval(start, 2),
                    rate.value,
                    interval(rate, 1),
                    line.half_size(),
                );
            }
            Err(error) => out += &format!(" {label:<7} no line: {error}\n"),
        }
    }
    out
}

/// The model of all rates, fitted to some columns and compared with all.
fn packets(table: &Table, fitted: &[String]) -> String {
    let heading = " Packets through a pipeline, one model for all rates";
    let none = |why: &str| format!("{heading}: none,\n {why}\n");
    let rated: Vec<&Column> = table.columns.iter().filter(|column| column.generation.is_some()).collect();
    let Some(packing) = table.packing else { return none("as the path MTU is not known") };
    let chosen: Vec<&Column> = match fitted {
        [] => ends(&rated),
        named => {
            let is_named =
                |column: &Column| named.iter().any(|name| name.eq_ignore_ascii_case(&column.label));
            rated.iter().copied().filter(|column| is_named(column)).collect()
        }
    };
    if chosen.len() < 2 {
        return none("as it takes columns of two rates to separate the link from the rest");
    }
    let model = match Packets::of(&chosen, packing) {
        Ok(model) => model,
        Err(unfit) => return none(&format!("as {}", reason(unfit))),
    };
    let names: Vec<&str> = chosen.iter().map(|column| column.label.as_str()).collect();
    let cells: usize = chosen.iter().map(|column| column.cells.len()).sum();
    let mut out = format!(
        "{heading}, fitted to {}\n ({cells} cells, {LANES}X; about the model they scatter by {:.1} %)\n",
        names.join(" and "),
        100.0 * model.fit.deviation(),
    );
    for ((name, unit), parameter) in PARAMETERS.iter().zip(&model.fit.parameters) {
        let decimals = if matches!(*unit, "ns" | "B") { 0 } else { 3 };
        out += &format!(
            "   {name:<8} {:>6.decimals$} {unit:<5} {:<15} {}\n",
            parameter.value,
            interval(*parameter, decimals),
            meaning(name, &model),
        );
    }
    out.push('\n');
    out += &errors(&rated, &chosen, &model);
    out
}

/// The meaning of a parameter.
fn meaning(name: &str, model: &Packets) -> String {
    let inline = model.inline;
    let fetched = model.fetched;
    let mtu = model.packing.mtu;
    match name {
        "base" => "for every size and rate".to_owned(),
        "carried" => "on the link, added to the payload".to_owned(),
        "line" => "link time relative to the data rate".to_owned(),
        "host" => format!("up to {inline} B, added to the link"),
        "step" => format!("between {inline} and {fetched} B"),
        "fetch" => format!("from {fetched} to {mtu} B, added to the link"),
        _ => "at least, in all packets but the first".to_owned(),
    }
}

/// The error in each cell, and a summary.
fn errors(columns: &[&Column], chosen: &[&Column], model: &Packets) -> String {
    let is_chosen = |column: &Column| chosen.iter().any(|chosen| std::ptr::eq(*chosen, column));
    let sizes = sizes(columns);
    let error = |column: &Column, size: u64| {
        Some(100.0 * (model.at(column.generation?, size) / column.at(size)? - 1.0))
    };
    let mut out =
        " Error of each cell, the model against the table, in %; * not used in the fit\n".to_owned();
    out += &format!(" {:>9}", "bytes");
    for column in columns {
        out += &format!(
            " {:>8}",
            format!("{}{}", cut(&column.label), if is_chosen(column) { " " } else { "*" })
        );
    }
    out.push('\n');
    for size in &sizes {
        out += &format!(" {size:>9}");
        for column in columns {
            let cell = error(column, *size).map_or_else(|| "-".to_owned(), |error| format!("{error:+.1}"));
            out += &format!(" {:>8}", format!("{cell} "));
        }
        out = out.trim_end().to_owned() + "\n";
    }
    let all: Vec<(f64, u64, &Column)> = columns
        .iter()
        .flat_map(|column| sizes.iter().filter_map(|size| Some((error(column, *size)?, *size, *column))))
        .collect();
    for (what, of_fit) in [("unseen", false), ("fitted", true)] {
        let cells: Vec<_> = all.iter().filter(|(_, _, column)| is_chosen(column) == of_fit).collect();
        let largest = cells.iter().max_by(|a, b| a.0.abs().total_cmp(&b.0.abs()));
        let middle = median(cells.iter().map(|(error, _, _)| error.abs()).collect());
        if let (Some(middle), Some((error, size, column))) = (middle, largest) {
            out += &format!(
                " {what}: {} cells, half of them within {middle:.1} %, the largest {error:+.1} % ({}, {})\n",
                cells.len(),
                unit::size(*size),
                plain(&column.label),
            );
        }
    }
    let misses: Vec<String> = all
        .iter()
        .filter(|(error, _, _)| error.abs() > MISS)
        .map(|(error, size, column)| {
            format!("   {} {}: {error:+.1} %\n", plain(&column.label), unit::size(*size))
        })
        .collect();
    out + &missed("cell", &misses.concat())
}

/// The list of points that a model misses, a line for each, or that there is none.
pub(super) fn missed(what: &str, misses: &str) -> String {
    match misses {
        "" => format!(" No {what} is missed by more than {MISS} %.\n"),
        misses => format!(" Missed by more than {MISS} %:\n{misses}"),
    }
}

/// The slowest and the fastest of the columns.
fn ends<'a>(rated: &[&'a Column]) -> Vec<&'a Column> {
    let speed = |column: &&&Column| column.generation.map(|rate| rate.data_bits_per_s(LANES));
    let ends = [rated.iter().min_by_key(speed), rated.iter().max_by_key(speed)];
    let mut ends: Vec<&Column> = ends.into_iter().flatten().copied().collect();
    ends.dedup_by(|a, b| a.generation == b.generation);
    ends
}

/// The largest error of a model: `+38 % at 4 B`.
fn worst(column: &Column, model: impl Fn(u64) -> f64) -> String {
    let errors = column.cells.iter().map(|cell| (100.0 * (model(cell.size) / cell.ns - 1.0), cell.size));
    let worst = errors.max_by(|a, b| a.0.abs().total_cmp(&b.0.abs()));
    worst.map(|(error, size)| format!("{error:+.0} % at {}", unit::size(size))).unwrap_or_default()
}

/// Prints a 95 % interval.
pub(super) fn interval(of: Estimate, decimals: usize) -> String {
    format!("[{:.decimals$}, {:.decimals$}]", of.low, of.high)
}

/// Why there is no model, with the name of the parameter.
fn reason(unfit: Unfit) -> String {
    match unfit {
        Unfit::Undetermined(index) => {
            let (name, _) = PARAMETERS[index];
            format!("the columns that it is fitted to do not determine `{name}`")
        }
        other => other.to_string(),
    }
}

fn cut(label: &str) -> String {
    plain(label).chars().take(LABEL).collect()
}

/// Characters of a column's heading.
const LABEL: usize = 7;
/// Errors beyond this are listed, in percent.
pub(super) const MISS: f64 = 10.0;
