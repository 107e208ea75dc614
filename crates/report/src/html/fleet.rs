//! The examination of a fleet: the answer, the culprits with their evidence, and a heat map of each
//! quantity whose cells lead to their distributions.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use maud::{Markup, html};
use measure::record::Point;
use measure::text::grouped;
use verdict::fleet::{Cell, Examined, Judged};

use super::prose::{prose, sentence};
use super::table;
use crate::fleet::{
    Found, Matrix, Outcome, Question, Row, SHARES, Tails, Words, asymmetry, missed, open, outcome, rows,
    stated, tenths,
};

/// The id of the section.
pub(super) const ID: &str = "fleet";
/// Its heading.
pub(super) const TITLE: &str = "Fleet";
/// The most rows of a heat map; more members share rows.
const ROWS_MAX: usize = 128;
/// The most points of which a page has all.
const POINTS_MAX: usize = 10_000;
/// The most culprits on the first screen.
const CULPRITS_FIRST: usize = 6;
/// The most suspects and congested paths that are listed.
const LISTED_MAX: usize = 200;

/// The answer, for the first screen.
pub(super) fn answer(found: &Result<Found<'_>, String>) -> Markup {
    let Found { fleet, question, examined } = match found {
        Ok(found) => found,
        Err(why) => return html! { p class="answer undecided" { (prose(&sentence(why))) "." } },
    };
    let words = Words::new(fleet, question, examined);
    let class = match outcome(fleet, examined) {
        Outcome::Healthy => "answer healthy",
        Outcome::Culprits => "answer culprits",
        Outcome::Undecided => "answer undecided",
    };
    html! {
        p class=(class) { strong { (sentence(&words.verdict())) } }
        @if !examined.culprits.is_empty() {
            ul class="culprits" {
                @for culprit in examined.culprits.iter().take(CULPRITS_FIRST) {
                    li {
                        strong { (words.culprit(culprit)) }
                        @for line in words.evidence(culprit) { br; span class="evidence" { (line) } }
                    }
                }
            }
            @if examined.culprits.len() > CULPRITS_FIRST {
                p { a href={ "#" (ID) } { (examined.culprits.len() - CULPRITS_FIRST) " more" } }
            }
        }
        @if missed(examined).next().is_some() {
            ul class="culprits" {
                @for one in missed(examined).take(CULPRITS_FIRST) { li { strong { (words.congestion(one)) } } }
            }
            @if missed(examined).count() > CULPRITS_FIRST {
                p { a href={ "#" (ID) } { (missed(examined).count() - CULPRITS_FIRST) " more under load" } }
            }
        }
    }
}

/// The points that the page lists: of a large fleet, those that the cells of its heat maps lead to.
pub(super) fn listed<'p>(found: Option<&Result<Found<'_>, String>>, points: &'p [Point]) -> Cow<'p, [Point]> {
    let Some(Ok(Found { question, examined, .. })) = found.filter(|_| points.len() > POINTS_MAX) else {
        return Cow::Borrowed(points);
    };
    let of_cells = examined.quantities.iter().filter_map(|judged| {
        let ids = ids(Row::named(&judged.name)?, judged, points);
        let matrix = Matrix::of(&question.hosts, judged, ROWS_MAX);
        Some(
            matrix
                .worst
                .into_values()
                .filter_map(|worst| ids.get(&worst.pair).copied())
                .collect::<Vec<u64>>(),
        )
    });
    let of_cells: BTreeSet<u64> = of_cells.flatten().collect();
    Cow::Owned(points.iter().filter(|point| of_cells.contains(&point.id)).cloned().collect())
}

/// The section; empty for other runs.
pub(super) fn render(found: Option<&Result<Found<'_>, String>>, points: &[Point]) -> Markup {
    match found {
        Some(Ok(found)) => html! { section id=(ID) { h2 { (TITLE) } (whole(found, points)) } },
        Some(Err(_)) | None => html! {},
    }
}

fn whole(Found { fleet, question, examined }: &Found<'_>, points: &[Point]) -> Markup {
    let words = Words::new(fleet, question, examined);
    let cleared: Vec<String> = examined.cleared.iter().map(|one| words.cleared(one)).collect();
    let left = fleet.left.iter().map(|(member, reason)| (words.names.member(*member as usize), reason));
    let left: Vec<_> = left.collect();
    html! {
        p class="caption" {
            "Schedule " (question.options.schedule.name) ": " (question.options.schedule.help) (words.rails()) ". "
            (words.measured()) "."
        }
        @if points.len() > POINTS_MAX {
            p class="caption" {
                "Of " (grouped(points.len() as u64)) " points, the page has those that a cell leads to. "
                code { "rdmascope export" } " writes all."
            }
        }
        (list("Culprits", examined.culprits.iter().map(|culprit| words.culprit(culprit)).collect()))
        (list("Congestion", examined.congestion.iter().map(|one| words.congestion(one)).collect()))
        (list("Not decided", open(fleet, examined).map(|one| words.undecided(one)).collect()))
        @if !left.is_empty() {
            h3 { "Left out" }
            ul { @for (name, reason) in &left { li { strong { (name) } ": " (prose(reason)) } } }
        }
        (seen(&words, examined))
        @for line in stated(&words).iter().chain(&words.across()) { p { (sentence(line)) "." } }
        (over_pairs(question, examined, &Tails::of(points)))
        @for judged in &examined.quantities { (maps(&words, judged, points)) }
        @if !cleared.is_empty() {
            details {
                summary { "Suspects that are not named (" (cleared.len()) ")" }
                ul { @for line in cleared.iter().take(LISTED_MAX) { li { (line) } } }
                @if cleared.len() > LISTED_MAX { p { (cleared.len() - LISTED_MAX) " more are not listed." } }
            }
        }
    }
}

fn list(title: &str, lines: Vec<String>) -> Markup {
    html! {
        @if !lines.is_empty() {
            h3 { (title) }
            ul { @for line in lines.iter().take(LISTED_MAX) { li { (line) } } }
            @if lines.len() > LISTED_MAX { p { (lines.len() - LISTED_MAX) " more are not listed." } }
        }
    }
}

/// What would have been named.
fn seen(words: &Words<'_>, examined: &Examined) -> Markup {
    let lines: Vec<String> = examined
        .quantities
        .iter()
        .filter_map(|judged| Some(words.detectable(judged, judged.thresholds.as_ref()?)))
        .collect();
    html! {
        @if !lines.is_empty() {
            h3 { "What would have been named" }
            ul { @for line in &lines { li { (line) } } }
            p class="caption" {
                "These thresholds follow from the noise of this run. A smaller deficit may be hidden by it."
            }
        }
    }
}

/// The quantiles over pairs.
fn over_pairs(question: &Question, examined: &Examined, tails: &Tails) -> Markup {
    let head = html! {
        thead {
            tr {
                th scope="col" { "Quantity" }
                @for (name, _) in SHARES { th scope="col" { (name) } }
                th scope="col" { "count" }
            }
        }
    };
    let bodies = html! {
        tbody {
            @for judged in &examined.quantities {
                @for of in rows(question, judged, tails) {
                    tr {
                        th scope="row" { (of.name()) }
                        @for value in of.values { td { (of.row.shown(value)) } }
                        td { (grouped(of.count as u64)) }
                    }
                }
            }
        }
    };
    html! { h3 { "Over all pairs" } (table::frame("Over all pairs", "numbers", &head, &bodies)) }
}

/// The heat maps of a quantity: its values, and how much the two directions of a pair differ.
fn maps(words: &Words<'_>, judged: &Judged, points: &[Point]) -> Markup {
    let Some(row) = Row::named(&judged.name).filter(|_| !judged.cells.is_empty()) else {
        return html! {};
    };
    let ids = ids(row, judged, points);
    let direction = if judged.directed { " from the member of a row to that of a column" } else { "" };
    let far = if row.is_rate { "below" } else { "above" };
    let title = format!("{}, by pairs", sentence(&judged.name));
    html! {
        h3 { (title) }
        p class="caption" {
            (sentence(row.title)) (direction) ". White is the median of "
            (if words.question.hosts.networks.is_some() { "the pairs of a rail" } else { "all pairs" })
            " or better; the darkest is 90 % " (far)
            " it and more. A cross has no number. A cell leads to its "
            (if row.is_rate { "point." } else { "distribution." })
        }
        (map(words, row, judged, &ids, &title, |log| row.shown(row.of_log(log))))
        @let difference = asymmetry(judged);
        @if judged.directed && !difference.cells.is_empty() {
            @let title = format!("{}, slower direction against the faster one", sentence(&judged.name));
            h3 { (title) }
            p class="caption" { "White is equal; the darkest is 90 % slower than in the other direction." }
            (map(words, row, &difference, &ids, &title, |log| format!("{:.0} % slower", -100.0 * log.exp_m1())))
        }
    }
}

fn map(
    words: &Words<'_>,
    row: &Row,
    judged: &Judged,
    ids: &BTreeMap<(u32, u32), u64>,
    title: &str,
    value: impl Fn(f64) -> String,
) -> Markup {
    let matrix = Matrix::of(words.names.hosts, judged, ROWS_MAX);
    let names: Vec<String> = matrix
        .blocks
        .iter()
        .map(|block| match &block[..] {
            [one] => words.names.member(*one),
            several => format!(
                "{} to {}",
                words.names.member(several[0]),
                words.names.member(several[several.len() - 1])
            ),
        })
        .collect();
    let head = html! {
        thead { tr { td {} @for name in &names { th scope="col" { span { (name) } } } } }
    };
    let cell = |from: usize, to: usize| {
        let Some(found) = matrix.worst.get(&(from, to)) else {
            let is_itself = from == to && matrix.blocks[from].len() == 1;
            return html! { td class=(if is_itself { "itself" } else { "none" }) { @if !is_itself { "×" } } };
        };
        let tenths = tenths(row, found.relative);
        let label = format!("{} to {}: {}", names[from], names[to], value(found.value));
        let id = ids.get(&found.pair);
        html! {
            td class={ "t" (tenths) } {
                @if let Some(id) = id { a href={ "#histogram=" (id) } title=(label) aria-label=(label) {} }
            }
        }
    };
    let bodies = html! {
        tbody {
            @for (from, name) in names.iter().enumerate() {
                tr { th scope="row" { (name) } @for to in 0..names.len() { (cell(from, to)) } }
                "\n"
            }
        }
    };
    table::frame(title, "heat", &head, &bodies)
}

/// The point of each cell: the one whose value the cell has.
fn ids(row: &Row, judged: &Judged, points: &[Point]) -> BTreeMap<(u32, u32), u64> {
    let mut nearest: BTreeMap<(u32, u32), (f64, u64)> = BTreeMap::new();
    let cells: BTreeMap<(u32, u32), f64> =
        judged.cells.iter().map(|Cell { from, to, value }| ((*from, *to), *value)).collect();
    for point in points {
        let Some([from, to]) = point.fleet.as_ref().map(|place| &place.members[..]) else { continue };
        let Some(value) = row.value(point) else { continue };
        let pair = if judged.directed || from < to { (*from, *to) } else { (*to, *from) };
        let Some(cell) = cells.get(&pair) else { continue };
        let distance = (row.log(value) - cell).abs();
        let known = nearest.entry(pair).or_insert((distance, point.id));
        if distance < known.0 {
            *known = (distance, point.id);
        }
    }
    nearest.into_iter().map(|(pair, (_, id))| (pair, id)).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::fleet::tests::{examined, fleet};

    #[test]
    fn cells_lead_to_their_points_and_who_was_left_out_has_its_reason() {
        let mut fleet = fleet(6, "all-pairs", None);
        for (index, member) in fleet.members.iter_mut().enumerate() {
            let leaf = if [2, 5].contains(&index) { "a <b>" } else { "c" };
            member.groups.insert("group".to_owned(), leaf.to_owned());
        }
        fleet.left.insert(4, "no <route>".to_owned());
        let (question, examined) = examined(&fleet, |from, _, _| if from == 3 { 0.5 } else { 1.0 });
        let point = |id: u64, [from, to]: [u32; 2], bytes_per_s: f64| {
            let throughput = json!({ "bytes_per_s": bytes_per_s, "messages_per_s": 1.0, "direction": "uni" });
            let shape = json!({
                "id": id, "experiment": "throughput", "pattern": "stream", "axes": {}, "status": "measured",
                "repetition": 0, "wall_ns": 0, "fleet": { "round": id, "members": [from, to] },
                "throughput": throughput,
            });
            Point::of_json(&shape).unwrap()
        };
        // The second one is nearer to the value of the cell.
        let points = [point(7, [3, 0], 0.1e9), point(8, [3, 0], 0.5e9), point(9, [0, 3], 1e9)];
        let found = Ok(Found { fleet: &fleet, question, examined });
        let page = render(Some(&found), &points).into_string();
        for part in [
            "<h3>Left out</h3><ul><li><strong>n4</strong>: ",
            "no &lt;route&gt;",
            "<h3>Throughput, by pairs</h3>",
            "<h3>Throughput, slower direction against the faster one</h3>",
            "<td class=\"t5\"><a href=\"#histogram=8\" title=\"n3 to n0: 477 MiB/s\"",
            "<a href=\"#histogram=8\" title=\"n3 to n0: 50 % slower\"",
            "<td class=\"t0\"><a href=\"#histogram=9\"",
            "<td class=\"itself\">",
        ] {
            assert!(page.contains(part), "{part}: {page}");
        }
        assert!(!page.contains("#histogram=7"), "{page}");
        // Members of a group are neighbours.
        let columns: Vec<usize> = (0..6).filter_map(|n| page.find(&format!("<span>n{n}</span>"))).collect();
        assert!(columns[4] < columns[2] && columns[2] < columns[5], "{columns:?}");
    }
}
