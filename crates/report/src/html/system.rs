//! The system that was measured: devices, the cost of measuring, placement, environments.

use std::collections::{BTreeMap, BTreeSet};

use maud::{Markup, html};
use measure::record::{Overhead, Point, Run};

use super::environments as asked;
use crate::{unit, value};

/// A table of facts: a row for each name, a column for each rank or launch.
struct Facts {
    title: String,
    /// The name of the columns: `rank` or `launch`.
    across: &'static str,
    ranks: Vec<u32>,
    rows: Vec<Row>,
}

/// A fact: its name, and its value on each rank.
type Row = (String, Vec<Option<String>>);

/// The section on the system.
pub(super) fn render(run: &Run, points: &[Point]) -> Markup {
    let mut cards = vec![devices(run), overheads(run), calibration(points), launches(run)];
    cards.retain(|facts| !facts.rows.is_empty());
    let environments = environments(run);
    let all = |facts: &[Facts]| html! { div class="cards" { @for facts in facts { (facts.render()) } } };
    html! {
        section id="system" {
            h2 { "System" }
            p class="hint" { "A value that is the same on every rank, or in every launch, is shown once." }
            (all(&cards))
            (asked::render(points))
            (libraries(points))
            @if environments.is_empty() {
                p class="hint" { "The record holds no description of the hosts." }
            } @else {
                h3 { "Hosts" }
                (all(&environments))
            }
        }
    }
}

impl Facts {
    fn new(title: &str, ranks: impl Iterator<Item = u32>) -> Self {
        Self { title: title.to_owned(), across: "rank", ranks: ranks.collect(), rows: Vec::new() }
    }

    /// Adds a fact of one rank.
    fn add(&mut self, rank: u32, name: &str, value: String) {
        let Some(column) = self.ranks.iter().position(|known| *known == rank) else { return };
        let row = self.rows.iter().position(|(known, _)| known == name).unwrap_or_else(|| {
            self.rows.push((name.to_owned(), vec![None; self.ranks.len()]));
            self.rows.len() - 1
        });
        self.rows[row].1[column] = Some(value);
    }

    fn render(&self) -> Markup {
        let (split, same): (Vec<&Row>, Vec<&Row>) = self.rows.iter().partition(|row| differs(row));
        let all: Vec<&Row> = self.rows.iter().collect();
        let is_tall = !split.is_empty() && self.ranks.len() > COLUMNS_MAX;
        html! {
            div class="card" {
                div class="scroll" tabindex="0" role="region" aria-label=(self.title) {
                    @if is_tall { (self.by_fact(&same)) (self.by_rank(&split)) } @else { (self.by_fact(&all)) }
                }
            }
        }
    }

    /// A row for each fact, and a column for each rank where they differ.
    fn by_fact(&self, rows: &[&Row]) -> Markup {
        let is_split = rows.iter().any(|row| differs(row));
        let columns = if is_split { self.ranks.len() } else { 1 };
        html! {
            table class="facts-table" {
                caption { (self.title) }
                @if is_split {
                    thead {
                        tr { td {} @for rank in &self.ranks { th scope="col" { (self.across) " " (rank) } } }
                    }
                }
                tbody {
                    @for row in rows {
                        tr {
                            th scope="row" { (row.0) }
                            @if differs(row) {
                                @for value in &row.1 { (cell(value.as_deref(), 1)) }
                            } @else {
                                (cell(row.1.first().and_then(|value| value.as_deref()), columns))
                            }
                        }
                        "\n"
                    }
                }
            }
        }
    }

    /// A row for each rank, and a column for each fact.
    fn by_rank(&self, rows: &[&Row]) -> Markup {
        html! {
            table class="facts-table tall" {
                thead { tr { td {} @for (name, _) in rows { th scope="col" { (name) } } } }
                tbody {
                    @for (index, rank) in self.ranks.iter().enumerate() {
                        tr {
                            th scope="row" { (self.across) " " (rank) }
                            @for (_, values) in rows { (cell(values[index].as_deref(), 1)) }
                        }
                        "\n"
                    }
                }
            }
        }
    }
}

/// More ranks than this are rows.
const COLUMNS_MAX: usize = 4;

fn differs((_, values): &Row) -> bool {
    values.windows(2).any(|pair| pair[0] != pair[1])
}

fn cell(value: Option<&str>, columns: usize) -> Markup {
    html! { td colspan=[(columns > 1).then_some(columns)] { (value.unwrap_or("–")) } }
}

/// The libraries that carried messages, and their transports; empty where there are none.
fn libraries(points: &[Point]) -> Markup {
    let mut found: BTreeMap<[&str; 3], BTreeSet<u64>> = BTreeMap::new();
    for point in points {
        for end in &point.ends {
            let Some(library) = &end.library else { continue };
            let transport = end.transport.as_deref().unwrap_or("–");
            found.entry([&point.experiment, library, transport]).or_default().insert(point.id);
        }
    }
    if found.is_empty() {
        return html! {};
    }
    let names = ["experiment", "library", "over", "points"];
    let head = html! { thead { tr { @for name in names { th scope="col" { (name) } } } } };
    let rows = html! {
        tbody {
            @for ([experiment, library, transport], ids) in &found {
                tr {
                    td { (experiment) }
                    th scope="row" { (library) }
                    td { (transport) }
                    td { (ids.len()) }
                }
                "\n"
            }
        }
    };
    html! {
        h3 { "Libraries" }
        p class="hint" { "The libraries that carried messages, and the transports that they used." }
        (super::table::frame("Libraries", "facts-table", &head, &rows))
    }
}

fn devices(run: &Run) -> Facts {
    let mut facts = Facts::new("Device", run.devices.iter().map(|d| d.rank));
    for device in &run.devices {
        facts.add(device.rank, "name", device.name.clone());
        facts.add(device.rank, "provider", device.provider.clone());
        for (name, attribute) in &device.attributes {
            facts.add(device.rank, name, value::text(attribute));
        }
    }
    facts
}

fn overheads(run: &Run) -> Facts {
    let mut facts = Facts::new("Cost of measuring", run.overheads.iter().map(|o| o.rank));
    for overhead in &run.overheads {
        for (name, value) in overhead_rows(overhead) {
            facts.add(overhead.rank, name, value);
        }
    }
    facts
}

fn overhead_rows(overhead: &Overhead) -> [(&'static str, String); 6] {
    [
        ("clock", overhead.clock.clone()),
        ("ticks", format!("{:.6} MHz ± {:.3} ppm", overhead.tick_hz / 1e6, overhead.tick_error_ppm)),
        ("one time stamp", format!("{:.1} ns", overhead.stamp_ns)),
        ("empty measuring loop", format!("{:.1} ns per turn", overhead.empty_loop_ns)),
        (
            "stamps of a one-way message",
            overhead.one_way_ns.map_or("not known".into(), |ns| format!("{ns:.1} ns at its sender")),
        ),
        (
            "sample arrays",
            overhead
                .not_locked
                .as_ref()
                .map_or("locked in memory".into(), |why| format!("not locked: {why}")),
        ),
    ]
}

/// The core-to-core latency around the points, in one table for the whole run.
fn calibration(points: &[Point]) -> Facts {
    let mut facts = Facts::new("Core-to-core latency around the points", [0].into_iter());
    let pairs: Vec<(f64, f64)> =
        points.iter().filter_map(|p| p.calibration.as_ref()).map(|c| (c.before_ns, c.after_ns)).collect();
    let all: Vec<f64> = pairs.iter().flat_map(|(before, after)| [*before, *after]).collect();
    let Some(median) = crate::series_table::median(all.clone()) else { return facts };
    let least = all.iter().copied().fold(f64::INFINITY, f64::min);
    let most = all.iter().copied().fold(0.0, f64::max);
    let ratio = pairs
        .iter()
        .filter(|(b, a)| *b > 0.0 && *a > 0.0)
        .map(|(b, a)| (a / b).max(b / a))
        .fold(1.0, f64::max);
    facts.add(0, "measured around", format!("{} points", pairs.len()));
    facts.add(0, "median, one way", unit::time(median));
    facts.add(0, "smallest to largest", format!("{} to {}", unit::time(least), unit::time(most)));
    let known = points.iter().filter_map(|p| p.calibration.as_ref()?.best_ns).reduce(f64::min);
    if let Some(best) = known {
        facts.add(0, "best known of these CPUs", unit::time(best));
    }
    facts.add(0, "largest change within a point", format!("factor {ratio:.2}"));
    facts
}

fn environments(run: &Run) -> Vec<Facts> {
    let ranks = || run.environments.iter().map(|e| e.rank);
    let mut host = Facts::new("host", ranks());
    let mut groups: BTreeMap<&str, Facts> = BTreeMap::new();
    for environment in &run.environments {
        let rank = environment.rank;
        host.add(rank, "hostname", environment.hostname.clone());
        host.add(rank, "pinned to CPUs", pinned(environment.pinned_cpus.as_deref()));
        for (group, values) in &environment.facts {
            let facts = groups.entry(group).or_insert_with(|| Facts::new(group, ranks()));
            for (name, value) in values {
                facts.add(rank, name, value.clone());
            }
        }
    }
    let mut all = vec![host];
    all.extend(groups.into_values());
    all.retain(|facts| !facts.rows.is_empty());
    all
}

/// How each launch was started, if there are several; the facts of the hosts describe a single one.
fn launches(run: &Run) -> Facts {
    let numbers = run.launches.iter().map(|launch| launch.number.saturating_add(1));
    let mut facts = Facts { across: "launch", ..Facts::new("Launches", numbers) };
    for launch in run.launches.iter().filter(|_| run.launches.len() > 1) {
        let number = launch.number.saturating_add(1);
        let mut hosts: Vec<&str> = Vec::new();
        for rank in &launch.ranks {
            // Ranks that are placed on hosts in turn come back to each host.
            if !hosts.contains(&rank.hostname.as_str()) {
                hosts.push(&rank.hostname);
            }
        }
        facts.add(number, "ranks", format!("{} on {}", launch.ranks.len(), hosts.join(", ")));
        for (name, value) in &launch.facts {
            facts.add(number, name, value.clone());
        }
    }
    facts
}

fn pinned(cpus: Option<&[u32]>) -> String {
    match cpus {
        Some(cpus) => cpus.iter().map(u32::to_string).collect::<Vec<_>>().join(", "),
        None => "not pinned".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_ranks_are_rows_and_what_they_share_is_there_once() {
        let mut facts = Facts::new("Cost", 0..6);
        for rank in 0..6 {
            facts.add(rank, "clock", "tsc".to_owned());
            facts.add(rank, "stamp", format!("{rank} ns"));
        }
        let text = facts.render().into_string();
        assert_eq!(text.matches("tsc").count(), 1, "{text}");
        for rank in 0..6 {
            let row = format!("<th scope=\"row\">rank {rank}</th><td>{rank} ns</td>");
            assert!(text.contains(&row), "{text}");
        }
        facts.ranks.truncate(4);
        facts.rows.iter_mut().for_each(|(_, values)| values.truncate(4));
        assert!(facts.render().into_string().contains("<th scope=\"col\">rank 3</th>"), "columns for a few");
    }
}
