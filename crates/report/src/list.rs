//! Lists in the order of first appearance.

use std::collections::HashMap;
use std::hash::Hash;

/// Returns each item once.
pub(crate) fn distinct<T: Eq + Hash>(items: impl IntoIterator<Item = T>) -> Vec<T> {
    grouped(items.into_iter().map(|item| (item, ()))).into_iter().map(|(item, _)| item).collect()
}

/// Returns the items of each key.
pub(crate) fn grouped<K: Eq + Hash, T>(items: impl IntoIterator<Item = (K, T)>) -> Vec<(K, Vec<T>)> {
    let mut places: HashMap<K, usize> = HashMap::new();
    let mut groups: Vec<Vec<T>> = Vec::new();
    for (key, item) in items {
        let at = *places.entry(key).or_insert(groups.len());
        if at == groups.len() {
            groups.push(Vec::new());
        }
        groups[at].push(item);
    }
    let mut keys: Vec<(usize, K)> = places.into_iter().map(|(key, at)| (at, key)).collect();
    keys.sort_unstable_by_key(|(at, _)| *at);
    keys.into_iter().map(|(_, key)| key).zip(groups).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_and_items_keep_their_order() {
        let items = [("b", 1), ("a", 2), ("b", 3), ("c", 4), ("a", 5)];
        assert_eq!(grouped(items), [("b", vec![1, 3]), ("a", vec![2, 5]), ("c", vec![4])]);
        assert_eq!(distinct([3, 1, 3, 2, 1]), [3, 1, 2]);
    }
}
