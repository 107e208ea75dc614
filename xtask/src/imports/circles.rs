//! Strongly connected components: groups of files in which each file needs all other files.

use std::collections::{BTreeMap, BTreeSet};

use super::Graph;

/// Files that need each other in a circle, sorted by path.
pub(crate) type Circle = Vec<String>;

/// All circles of a graph, the largest first.
pub(crate) fn find(graph: &Graph) -> Vec<Circle> {
    find_in(graph.arrows.keys().map(|(from, to)| (from.as_str(), to.as_str())))
}

/// The arrows between the files of a circle.
pub(crate) fn arrows_within<'a>(
    graph: &'a Graph,
    circle: &Circle,
) -> Vec<(&'a str, &'a str, &'a BTreeSet<String>)> {
    let within = |file: &String| circle.binary_search(file).is_ok();
    let arrows = graph.arrows.iter().filter(|((from, to), _)| within(from) && within(to));
    arrows.map(|((from, to), names)| (from.as_str(), to.as_str(), names)).collect()
}

/// For each arrow, how many files the largest circle has without it. Returns this number and the
/// arrow, the best cut first.
pub(crate) fn cuts<'a>(arrows: &[(&'a str, &'a str, &BTreeSet<String>)]) -> Vec<(usize, &'a str, &'a str)> {
    let mut cuts = Vec::new();
    for (from, to, _) in arrows {
        let others = arrows.iter().map(|(from, to, _)| (*from, *to)).filter(|arrow| *arrow != (*from, *to));
        cuts.push((find_in(others).first().map_or(0, Vec::len), *from, *to));
    }
    cuts.sort_unstable();
    cuts
}

fn find_in<'a>(arrows: impl Iterator<Item = (&'a str, &'a str)>) -> Vec<Circle> {
    let mut targets: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (from, to) in arrows {
        targets.entry(from).or_default().push(to);
    }
    let mut search = Search { targets, ..Search::default() };
    let starts: Vec<_> = search.targets.keys().copied().collect();
    for start in starts {
        if !search.order.contains_key(start) {
            search.visit(start);
        }
    }
    search.circles.sort_by_key(|circle| (std::cmp::Reverse(circle.len()), circle.first().cloned()));
    search.circles
}

/// R. Tarjan, "Depth-first search and linear graph algorithms", SIAM J. Comput. 1 (1972).
#[derive(Default)]
struct Search<'a> {
    targets: BTreeMap<&'a str, Vec<&'a str>>,
    order: BTreeMap<&'a str, usize>,
    lowest: BTreeMap<&'a str, usize>,
    stack: Vec<&'a str>,
    circles: Vec<Circle>,
}

impl<'a> Search<'a> {
    fn visit(&mut self, file: &'a str) {
        let order = self.order.len();
        self.order.insert(file, order);
        self.stack.push(file);
        let mut lowest = order;
        for target in self.targets.get(file).cloned().unwrap_or_default() {
            if !self.order.contains_key(target) {
                self.visit(target);
                lowest = lowest.min(self.lowest[target]);
            } else if self.stack.contains(&target) {
                lowest = lowest.min(self.order[target]);
            }
        }
        self.lowest.insert(file, lowest);
        if lowest == order {
            let start = self.stack.iter().rposition(|other| *other == file).unwrap_or(0);
            let mut circle: Circle = self.stack.drain(start..).map(str::to_owned).collect();
            if circle.len() > 1 {
                circle.sort_unstable();
                self.circles.push(circle);
            }
        }
    }
}
