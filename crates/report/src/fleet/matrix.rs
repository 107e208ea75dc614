//! The matrix of a quantity: how far each pair is from the median of all.

use std::collections::BTreeMap;

use verdict::fleet::{Hosts, Judged};

/// A matrix of members, or of blocks of neighbouring members where there are many.
pub(super) struct Matrix {
    /// The members of each row and column.
    pub(super) blocks: Vec<Vec<usize>>,
    /// The worst cell of each pair of blocks, as a logarithm relative to the median.
    pub(super) worst: BTreeMap<(usize, usize), f64>,
}

/// The order of members: by their first grouping, and in a group as they were named.
pub(super) fn order(hosts: &Hosts) -> Vec<usize> {
    let mut order: Vec<usize> = (0..hosts.count).collect();
    if let Some(grouping) = hosts.groupings.first() {
        order.sort_by_key(|member| grouping.of.get(*member).copied().flatten().unwrap_or(usize::MAX));
    }
    order
}

impl Matrix {
    /// Returns the matrix of a quantity with at most `most` rows.
    pub(super) fn of(hosts: &Hosts, judged: &Judged, most: usize) -> Self {
        let order = order(hosts);
        let size = order.len().div_ceil(most.max(1)).max(1);
        let blocks: Vec<Vec<usize>> = order.chunks(size).map(<[usize]>::to_vec).collect();
        let mut block_of = vec![0; hosts.count];
        for (index, block) in blocks.iter().enumerate() {
            block.iter().for_each(|member| block_of[*member] = index);
        }
        let mut values: Vec<f64> = judged.cells.iter().map(|cell| cell.value).collect();
        values.sort_by(f64::total_cmp);
        let middle = values.get(values.len() / 2).copied().unwrap_or_default();
        let mut worst: BTreeMap<(usize, usize), f64> = BTreeMap::new();
        for cell in &judged.cells {
            let [from, to] = [cell.from, cell.to].map(|member| block_of.get(member as usize).copied());
            let (Some(from), Some(to)) = (from, to) else { continue };
            let value = cell.value - middle;
            let mut see = |place| {
                let known = worst.entry(place).or_insert(value);
                *known = known.min(value);
            };
            see((from, to));
            if !judged.directed {
                see((to, from));
            }
        }
        Self { blocks, worst }
    }
}
