//! Every pair once: the circle method of round-robin tournaments.

use super::Pairs;

/// n - 1 rounds of n / 2 disjoint pairs; for an odd n, n rounds in each of which one host rests.
///
/// One host stays, and the others move around a circle by one place a round (Kirkman 1847).
pub(super) fn rounds(n: usize) -> impl Iterator<Item = Pairs> {
    (0..n.next_multiple_of(2).saturating_sub(1)).map(move |round| pairs(n, round))
}

/// The host of an odd number that rests in a round.
pub(super) fn resting(n: usize, round: usize) -> Option<usize> {
    (!n.is_multiple_of(2)).then_some(round)
}

/// The pairs of one round; place `n` of an odd number is nobody.
pub(super) fn pairs(n: usize, round: usize) -> Pairs {
    let even = n.next_multiple_of(2);
    let turning = even - 1;
    let place = |step: usize| (round + step) % turning;
    let first = [turning, place(0)];
    let others = (1..even / 2).map(|step| [place(step), place(turning - step)]);
    std::iter::once(first).chain(others).filter(|pair| pair.iter().all(|&host| host < n)).collect()
}

/// Each host with the next one: the even edges of the ring, then the odd ones, then the edge that
/// an odd number leaves over.
pub(super) fn ring(n: usize) -> impl Iterator<Item = Pairs> {
    let edges = if n == 2 { 1 } else { n };
    let kinds: [fn(usize, usize) -> bool; 3] = [
        |edge, n| edge.is_multiple_of(2) && edge + 1 < n,
        |edge, n| !edge.is_multiple_of(2) && (edge + 1 < n || n.is_multiple_of(2)),
        |edge, n| edge + 1 == n && !n.is_multiple_of(2),
    ];
    kinds.into_iter().filter_map(move |belongs| {
        let pairs: Pairs =
            (0..edges).filter(|&edge| n > 1 && belongs(edge, n)).map(|edge| [edge, (edge + 1) % n]).collect();
        (!pairs.is_empty()).then_some(pairs)
    })
}
