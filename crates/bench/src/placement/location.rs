//! The location of a rank: its host and its CPUs.

use measure::record::Oversubscribed;
use rustix::thread::{CpuSet, sched_getaffinity};
use serde::{Deserialize, Serialize};

/// The host of a rank, and the CPUs that it may use.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct HostLocation {
    /// The boot id of the kernel, which identifies the host. Containers share it, as they share
    /// CPUs. Absent if it is not known.
    boot_id: Option<String>,
    /// A bit for each CPU. The first CPU is the lowest bit of the first word.
    cpus: Vec<u64>,
}

impl HostLocation {
    /// The location of this process.
    pub(super) fn own(boot_id: Option<String>) -> Self {
        let allowed = sched_getaffinity(None).unwrap_or_else(|_| CpuSet::new());
        let word =
            |first: usize| (0..64).fold(0, |word, bit| word | u64::from(allowed.is_set(first + bit)) << bit);
        let mut cpus: Vec<u64> = (0..CpuSet::MAX_CPU).step_by(64).map(word).collect();
        cpus.truncate(cpus.iter().rposition(|word| *word != 0).map_or(0, |last| last + 1));
        Self { boot_id, cpus }
    }

    /// The number of CPUs.
    pub(super) fn cpus(&self) -> u32 {
        self.cpus.iter().map(|word| word.count_ones()).sum()
    }

    /// Whether it is on the same host; `false` if that is not known.
    pub(super) fn is_beside(&self, other: &Self) -> bool {
        self.boot_id.is_some() && self.boot_id == other.boot_id
    }

    /// The number of locations, and the number of CPUs that they have together.
    pub(super) fn together<'a>(places: impl Iterator<Item = &'a Self>) -> Oversubscribed {
        let mut ranks = 0;
        let mut all = Self::default();
        for place in places {
            ranks += 1;
            all.cpus.resize(all.cpus.len().max(place.cpus.len()), 0);
            all.cpus.iter_mut().zip(&place.cpus).for_each(|(all, word)| *all |= word);
        }
        Oversubscribed { ranks, cpus: all.cpus() }
    }

    /// Whether the other location has all of its CPUs; `false` if they are not known.
    pub(super) fn is_within(&self, other: &Self) -> bool {
        let of_other = |word: usize| other.cpus.get(word).copied().unwrap_or(0);
        self.is_beside(other)
            && self.cpus() > 0
            && self.cpus.iter().enumerate().all(|(at, word)| word & !of_other(at) == 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_within_itself_and_what_surrounds_it() {
        let place = |boot: Option<&str>, cpus: &[u64]| HostLocation {
            boot_id: boot.map(str::to_owned),
            cpus: cpus.to_vec(),
        };
        let one = place(Some("a"), &[1]);
        let both = place(Some("a"), &[3]);
        let far = place(Some("a"), &[0, 1]);
        assert!(one.is_within(&one) && one.is_within(&both) && !both.is_within(&one));
        assert!(!far.is_within(&both) && !one.is_within(&far));
        assert_eq!([one.cpus(), both.cpus(), far.cpus()], [1, 2, 1]);
        assert!(!one.is_within(&place(Some("b"), &[1])));
        let unknown = place(None, &[1]);
        assert!(!unknown.is_within(&unknown) && !place(Some("a"), &[]).is_within(&one));
    }

    #[test]
    fn this_process_is_somewhere() {
        let own = HostLocation::own(Some("boot".to_owned()));
        assert!(own.cpus() > 0 && own.is_within(&own));
    }
}
