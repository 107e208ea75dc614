//! The best core-to-core latencies of pairs of CPUs, and when they are forgotten.
//!
//! A reboot, or another host below a virtual machine, may change the best without notice. The rule:
//! a best is forgotten [`FORGOTTEN_S`] after a latency last came as near to it as two latencies of
//! one placement are ([`measure::step::RATIO`]). Until then, latencies are compared with it, since
//! a machine that starts in a bad placement looks the same as one that has become slower.

use measure::conditions::Wanted;
use measure::placement::Pair;
use measure::step::RATIO;
use serde::{Deserialize, Serialize};

/// What makes latencies comparable: the CPUs and the environment.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub(super) struct Key {
    pub(super) pair: Pair,
    #[serde(default)]
    pub(super) conditions: Wanted,
}

/// The best latency of a pair of CPUs.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub(super) struct Best {
    #[serde(flatten)]
    pub(super) key: Key,
    /// In ns.
    pub(super) best_ns: f64,
    /// When a latency last came near to it, in seconds since 1970.
    pub(super) near_s: u64,
}

impl Best {
    /// Whether latencies may be compared with it.
    fn is_good(&self, now_s: u64) -> bool {
        let is_fresh =
            self.near_s <= now_s.saturating_add(AHEAD_S) && now_s.saturating_sub(self.near_s) < FORGOTTEN_S;
        is_fresh && self.best_ns >= LEAST_NS && self.best_ns.is_finite()
    }
}

/// The latencies of earlier runs, and of this one.
#[derive(Debug)]
pub(super) struct Known {
    earlier: Vec<Best>,
    /// The smallest latency of each pair that this run has seen.
    seen: Vec<(Key, f64)>,
}

impl Known {
    pub(super) fn new(kept: Vec<Best>, now_s: u64) -> Self {
        let earlier = kept.into_iter().filter(|best| best.is_good(now_s)).collect();
        Self { earlier, seen: Vec::new() }
    }

    /// Adds a latency, and returns the best one known.
    pub(super) fn see(&mut self, key: Key, ns: f64) -> f64 {
        let earlier = self.earlier.iter().filter(|best| best.key == key).map(|best| best.best_ns);
        let earlier = earlier.fold(f64::INFINITY, f64::min);
        let least = match self.seen.iter_mut().find(|(seen, _)| *seen == key) {
            Some((_, least)) => {
                *least = least.min(ns);
                *least
            }
            None => {
                self.seen.push((key, ns));
                ns
            }
        };
        least.min(earlier)
    }

    pub(super) fn has_seen(&self) -> bool {
        !self.seen.is_empty()
    }

    /// Returns the entries to write: the entries of the file, with what this run has seen.
    pub(super) fn merged(&self, mut kept: Vec<Best>, now_s: u64) -> Vec<Best> {
        kept.retain(|best| best.is_good(now_s));
        for (key, least) in self.seen.iter().filter(|(_, least)| *least >= LEAST_NS) {
            match kept.iter_mut().find(|best| best.key == *key) {
                Some(best) if *least <= best.best_ns * RATIO => {
                    (best.best_ns, best.near_s) = (best.best_ns.min(*least), now_s);
                }
                Some(_) => {}
                None => kept.push(Best { key: key.clone(), best_ns: *least, near_s: now_s }),
            }
        }
        kept.sort_by_key(|best| std::cmp::Reverse(best.near_s));
        kept.truncate(KEPT_MAX);
        kept
    }
}

/// 30 days.
const FORGOTTEN_S: u64 = 30 * 24 * 60 * 60;
/// How far an entry may be in the future. After a clock was set back, later ones would stay
/// forever.
const AHEAD_S: u64 = 24 * 60 * 60;
/// Smallest possible core-to-core latency: some cycles of the fastest clock.
const LEAST_NS: f64 = 1.0;
/// Most pairs that are kept, the latest ones: the hosts of a cluster with a shared home directory
/// have a few hundred.
const KEPT_MAX: usize = 500;

#[cfg(test)]
mod tests {
    use super::*;

    const DAY_S: u64 = 24 * 60 * 60;
    const NOW_S: u64 = 20_000 * DAY_S;

    fn key(host: &str) -> Key {
        let pair =
            Pair { host: host.to_owned(), model: "m".to_owned(), within: "node".to_owned(), cpus: None };
        Key { pair, conditions: Wanted::default() }
    }

    fn best(host: &str, best_ns: f64, near_s: u64) -> Best {
        Best { key: key(host), best_ns, near_s }
    }

    #[test]
    fn the_best_is_that_of_earlier_runs_and_of_this_one() {
        let mut known = Known::new(vec![best("a", 28.3, NOW_S)], NOW_S);
        assert_eq!(known.see(key("a"), 188.4), 28.3);
        assert_eq!(known.see(key("a"), 27.0), 27.0);
        assert_eq!(known.see(key("a"), 30.0), 27.0);
        assert_eq!(known.see(key("b"), 188.4), 188.4, "another host");
        let tuned = Key { conditions: Wanted::built_in("optimised").unwrap(), ..key("a") };
        assert_eq!(known.see(tuned, 20.0), 20.0, "other conditions");
        assert_eq!(known.see(key("a"), 30.0), 27.0);
    }

    #[test]
    fn a_best_is_forgotten_a_month_after_it_was_last_near() {
        let of = |near_s: u64| Known::new(vec![best("a", 28.3, near_s)], NOW_S).see(key("a"), 188.4);
        assert_eq!(of(NOW_S), 28.3);
        assert_eq!(of(NOW_S - 29 * DAY_S), 28.3);
        assert_eq!(of(NOW_S - 30 * DAY_S), 188.4);
        assert_eq!(of(NOW_S + 60), 28.3, "a clock that was set");
        assert_eq!(of(NOW_S + 2 * DAY_S), 188.4);
    }

    #[test]
    fn times_that_no_line_takes_are_not_compared_with() {
        for ns in [0.0, -5.0, 0.3, f64::NAN, f64::INFINITY] {
            let mut known = Known::new(vec![best("a", ns, NOW_S)], NOW_S);
            assert_eq!(known.see(key("a"), 30.0), 30.0, "{ns}");
        }
    }

    #[test]
    fn what_came_near_keeps_a_best_and_what_did_not_lets_it_age() {
        let then = NOW_S - 10 * DAY_S;
        let merged = |ns: f64| {
            let mut known = Known::new(Vec::new(), NOW_S);
            known.see(key("a"), ns);
            known.merged(vec![best("a", 28.3, then), best("old", 1.0, 0), best("b", 50.0, then)], NOW_S)
        };
        let b = best("b", 50.0, then);
        assert_eq!(merged(27.0), [best("a", 27.0, NOW_S), b.clone()]);
        assert_eq!(merged(33.0), [best("a", 28.3, NOW_S), b.clone()]);
        assert_eq!(merged(188.4), [best("a", 28.3, then), b.clone()]);
    }

    #[test]
    fn what_is_kept_has_a_bound() {
        let many = (0..600).map(|host| best(&host.to_string(), 28.0, NOW_S - host)).collect();
        let merged = Known::new(Vec::new(), NOW_S).merged(many, NOW_S);
        assert_eq!(merged.len(), KEPT_MAX);
        assert_eq!(merged[0].key, key("0"));
    }
}
