//! Pairs within groups, and pairs across groups.

use verdict::fleet::{Cell, Grouping, Judged};

use super::quantiles::{SHARES, quantiles};
use super::question::Question;
use super::value::Row;

/// The groups by which pairs are told apart.
pub(crate) struct Split(Grouping);

impl Split {
    /// Returns the split of a fleet; none if it has no groups.
    pub(crate) fn of(question: &Question) -> Option<Self> {
        let hosts = &question.hosts;
        match question.options.schedule.halves {
            true => Some(Self(hosts.bisected())),
            false => hosts.several_groups().cloned().map(Self),
        }
    }

    /// What the groups are: `groups`, `rails`, `halves`.
    pub(crate) fn kind(&self) -> String {
        match self.0.name.strip_suffix("lf") {
            Some(stem) => format!("{stem}lves"),
            None => format!("{}s", self.0.name),
        }
    }

    /// Returns the pairs within groups and those across groups; none unless both were measured.
    pub(crate) fn parts(&self, judged: &Judged) -> Option<[(String, Vec<Cell>); 2]> {
        let of = |member: u32| self.0.of.get(member as usize).copied().flatten();
        let is_across = |cell: &Cell| Some(of(cell.from)? != of(cell.to)?);
        let part = |across| {
            let of_kind = judged.cells.iter().filter(|cell| is_across(cell) == Some(across));
            let cells: Vec<Cell> = of_kind.copied().collect();
            (!cells.is_empty()).then_some(cells)
        };
        let kind = self.kind();
        Some([(format!("within {kind}"), part(false)?), (format!("across {kind}"), part(true)?)])
    }

    /// How far pairs across groups are from those within groups, in words.
    pub(crate) fn words(&self, judged: &Judged) -> Option<String> {
        let row = Row::named(&judged.name)?;
        let medians = self
            .parts(judged)?
            .map(|(_, cells)| quantiles(row, &cells).map(|values| values[SHARES.len() / 2]));
        let [within, across] = [medians[0]?, medians[1]?];
        let percent = 100.0 * (across / within - 1.0);
        let than = if percent < 0.0 { "below" } else { "above" };
        let share = percent.abs();
        let [within, across] = [within, across].map(|value| row.shown(value));
        let kind = self.kind();
        let name = &judged.name;
        Some(format!(
            "across {kind}: {name}: median {across}, {share:.1} % {than} that within {kind}, {within}"
        ))
    }
}
