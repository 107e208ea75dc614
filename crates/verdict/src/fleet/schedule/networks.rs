//! Members of several networks: each network has a schedule of its own.

use super::amounts::{Pairs, Rounds};
use crate::fleet::hosts::Hosts;

/// The first rounds of all networks at the same time, then the second ones, and so on. A network of
/// fewer members ends before the others.
pub(super) fn rounds(hosts: &Hosts, of: impl Fn(&Hosts) -> Rounds) -> Rounds {
    let own = |members: Vec<usize>| {
        let rounds = of(&hosts.only(&members));
        (members, rounds)
    };
    let mut networks: Vec<(Vec<usize>, Rounds)> = hosts.of_networks().into_iter().map(own).collect();
    Box::new(std::iter::from_fn(move || {
        let mut pairs = Pairs::new();
        for (members, rounds) in &mut networks {
            let round = rounds.next().unwrap_or_default();
            pairs.extend(round.into_iter().map(|pair| pair.map(|member| members[member])));
        }
        (!pairs.is_empty()).then_some(pairs)
    }))
}
