//! Which members fail with all of their partners: each of their points would cost its time limit.

use std::collections::{BTreeMap, BTreeSet};

use measure::record::Status;

/// A member is given up after its points failed with this many partners, none of which measured
/// between.
const PARTNERS_MAX: usize = 3;

/// The failures of the members of a fleet. Experiments are counted apart: where large messages are
/// lost, small ones may pass.
#[derive(Default)]
pub(super) struct Failures {
    /// By member and experiment: the partners with which it has failed since it last measured, and
    /// the last error.
    failed: BTreeMap<(usize, String), (BTreeSet<usize>, String)>,
    /// The members that have measured an experiment.
    measured: BTreeSet<(usize, String)>,
}

impl Failures {
    /// Notes what became of a point of members.
    pub(super) fn note(&mut self, members: &[usize], experiment: &str, status: &Status) {
        for member in members {
            let key = (*member, experiment.to_owned());
            match status {
                Status::Measured => {
                    self.failed.remove(&key);
                    self.measured.insert(key);
                }
                Status::Failed { error } => {
                    let (partners, last) = self.failed.entry(key).or_default();
                    partners.extend(members.iter().filter(|other| *other != member));
                    last.clone_from(error);
                }
                // That costs no time.
                Status::NotMeasured { .. } => {}
            }
        }
    }

    /// Returns the members to give up, with the reasons, and forgets them. Partners that have
    /// measured with nobody may be the cause themselves, and do not count.
    pub(super) fn hopeless(&mut self) -> Vec<(usize, String)> {
        let mut given_up = Vec::new();
        for ((member, experiment), (partners, error)) in &self.failed {
            let works = |partner: &&usize| self.measured.contains(&(**partner, experiment.clone()));
            let count = partners.iter().filter(works).count();
            if count >= PARTNERS_MAX {
                let reason =
                    format!("its {experiment} failed with {count} members in a row, at last: {error}");
                given_up.push((*member, reason));
            }
        }
        self.failed.retain(|(member, _), _| given_up.iter().all(|(gone, _)| gone != member));
        given_up
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(works: bool) -> Status {
        if works { Status::Measured } else { Status::Failed { error: "the link is down".to_owned() } }
    }

    /// Measures all pairs of members, of which those in `broken` fail. Returns the members that the
    /// fleet gave up.
    fn given_up(members: usize, broken: &[usize]) -> Vec<usize> {
        let mut failures = Failures::default();
        let mut gone = Vec::new();
        for distance in 1..members {
            for member in 0..members {
                let pair = [member, (member + distance) % members];
                if pair.iter().any(|one| gone.contains(one)) {
                    continue;
                }
                failures.note(&pair, "latency", &status(!pair.iter().any(|one| broken.contains(one))));
            }
            gone.extend(failures.hopeless().into_iter().map(|(member, _)| member));
        }
        gone.sort_unstable();
        gone
    }

    #[test]
    fn who_fails_with_working_partners_is_given_up_and_nobody_else() {
        assert_eq!(given_up(8, &[]), [0; 0]);
        assert_eq!(given_up(8, &[3]), [3]);
        assert_eq!(given_up(12, &[2, 3, 4, 5]), [2, 3, 4, 5]);
        // Only two of the partners measure with anyone: too few to give a member up.
        assert_eq!(given_up(4, &[0, 1]), [0; 0]);
    }

    #[test]
    fn a_point_that_is_measured_ends_a_row_of_failures() {
        let mut failures = Failures::default();
        for partner in 1..6 {
            failures.note(&[0, partner], "latency", &status(partner == 3));
            failures.note(&[partner, 7], "latency", &status(true));
        }
        assert_eq!(failures.hopeless(), []);
    }

    #[test]
    fn experiments_are_counted_apart() {
        let mut failures = Failures::default();
        for partner in 1..4 {
            failures.note(&[0, partner], "latency", &status(true));
            failures.note(&[0, partner], "throughput", &status(false));
            failures.note(&[partner, 7], "throughput", &status(true));
        }
        let reason = "its throughput failed with 3 members in a row, at last: the link is down";
        assert_eq!(failures.hopeless(), [(0, reason.to_owned())]);
        assert_eq!(failures.hopeless(), []);
    }
}
