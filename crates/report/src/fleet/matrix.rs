//! The matrix of a quantity: how far each pair is from the median of all pairs, or of the pairs of
//! its separate rail.

use std::collections::BTreeMap;

use measure::stats::spread;
use verdict::fleet::{Cell, Hosts, Judged};

use super::value::Row;

/// A matrix of members, or of blocks of neighbouring members where there are many.
pub(crate) struct Matrix {
    /// The members of each row and column.
    pub(crate) blocks: Vec<Vec<usize>>,
    /// The worst cell of each pair of blocks.
    pub(crate) worst: BTreeMap<(usize, usize), Worst>,
}

/// The worst cell of a pair of blocks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Worst {
    /// Its members.
    pub(crate) pair: (u32, u32),
    /// Its value, as a logarithm.
    pub(crate) value: f64,
    /// The value relative to the median of all cells of its network.
    pub(crate) relative: f64,
}

/// The order of members: by their network, then by their first grouping, and in a group as they
/// were named.
pub(crate) fn order(hosts: &Hosts) -> Vec<usize> {
    let mut order: Vec<usize> = (0..hosts.count).collect();
    let group = |member: usize| hosts.groupings.first().and_then(|grouping| *grouping.of.get(member)?);
    order.sort_by_key(|member| (hosts.network(*member), group(*member).unwrap_or(usize::MAX)));
    order
}

impl Matrix {
    /// Returns the matrix of a quantity with at most `most` rows.
    pub(crate) fn of(hosts: &Hosts, judged: &Judged, most: usize) -> Self {
        let order = order(hosts);
        let size = order.len().div_ceil(most.max(1)).max(1);
        let blocks: Vec<Vec<usize>> = order.chunks(size).map(<[usize]>::to_vec).collect();
        let mut block_of = vec![0; hosts.count];
        for (index, block) in blocks.iter().enumerate() {
            block.iter().for_each(|member| block_of[*member] = index);
        }
        let middles = middles(hosts, judged);
        let mut worst: BTreeMap<(usize, usize), Worst> = BTreeMap::new();
        for cell in &judged.cells {
            let [from, to] = [cell.from, cell.to].map(|member| block_of.get(member as usize).copied());
            let (Some(from), Some(to)) = (from, to) else { continue };
            let middle = middles.get(&hosts.network(cell.from as usize)).copied().unwrap_or(0.0);
            let new = Worst { pair: (cell.from, cell.to), value: cell.value, relative: cell.value - middle };
            let mut see = |place| {
                let known = worst.entry(place).or_insert(new);
                if new.value < known.value {
                    *known = new;
                }
            };
            see((from, to));
            if !judged.directed {
                see((to, from));
            }
        }
        Self { blocks, worst }
    }
}

/// The median of the cells of each network.
fn middles(hosts: &Hosts, judged: &Judged) -> BTreeMap<Option<usize>, f64> {
    let mut values: BTreeMap<Option<usize>, Vec<f64>> = BTreeMap::new();
    for cell in &judged.cells {
        values.entry(hosts.network(cell.from as usize)).or_default().push(cell.value);
    }
    let middle = |values: Vec<f64>| spread(&values).map_or(0.0, |spread| spread.median);
    values.into_iter().map(|(network, values)| (network, middle(values))).collect()
}

/// How far a value is on the slow side of another one, in tenths of that: 0 to 9. `relative` is the
/// difference of their logarithms.
pub(crate) fn tenths(row: &Row, relative: f64) -> u32 {
    let change = if row.is_rate { -relative.exp_m1() } else { (-relative).exp_m1() };
    (change * 10.0).round().clamp(0.0, 9.0) as u32
}

/// How much slower each direction of a pair is than the other one. The faster one is 0.
pub(crate) fn asymmetry(judged: &Judged) -> Judged {
    let values: BTreeMap<(u32, u32), f64> =
        judged.cells.iter().map(|cell| ((cell.from, cell.to), cell.value)).collect();
    let cells = judged.cells.iter().filter_map(|cell| {
        let back = values.get(&(cell.to, cell.from))?;
        Some(Cell { value: (cell.value - back).min(0.0), ..*cell })
    });
    Judged { cells: cells.collect(), ..judged.clone() }
}
