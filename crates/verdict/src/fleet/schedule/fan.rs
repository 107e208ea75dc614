//! One host with all others, at once.

use super::amounts::Rounds;

/// One round in which the root is the first host of each pair.
pub(super) fn out(n: usize, root: usize) -> Rounds<'static> {
    let pairs = (0..n).filter(|&host| host != root).map(|host| [root, host]).collect();
    Box::new(std::iter::once(pairs))
}

/// One round in which the root is the second host of each pair.
pub(super) fn into(n: usize, root: usize) -> Rounds<'static> {
    let pairs = (0..n).filter(|&host| host != root).map(|host| [host, root]).collect();
    Box::new(std::iter::once(pairs))
}
