//! How many messages of a stream were complete at which time.

use measure::clock::Ticks;

/// Times with counts of messages. When the list is full, every second entry is removed.
#[derive(Debug)]
pub(crate) struct Progress {
    seen: Vec<(u64, u64)>,
    /// The smallest difference of counts between two entries.
    stride: u64,
    next: u64,
}

/// The largest number of entries.
const ROOM: usize = 2048;

impl Progress {
    /// An empty list.
    pub(crate) fn new() -> Self {
        // Writing the memory now avoids page faults in the measurement.
        let mut seen = vec![(u64::MAX, u64::MAX); ROOM];
        seen.clear();
        Self { seen, stride: 1, next: 0 }
    }

    /// Records that `count` messages in total were complete at the time `now`.
    #[inline]
    pub(crate) fn see(&mut self, now: Ticks, count: u64) {
        if count >= self.next {
            self.keep(now.0, count);
        }
    }

    #[cold]
    fn keep(&mut self, now: u64, count: u64) {
        if self.seen.len() == ROOM {
            let mut at = 0;
            self.seen.retain(|_| {
                at += 1;
                at % 2 == 1
            });
            self.stride *= 2;
        }
        self.seen.push((now, count));
        self.next = count + self.stride;
    }

    /// The entries in rising order: times in ticks, and counts.
    pub(crate) fn into_seen(self) -> Vec<(u64, u64)> {
        self.seen
    }
}

impl Default for Progress {
    fn default() -> Self {
        Self::new()
    }
}

/// The number of messages that were complete at a time, as last counted. It is not interpolated:
/// several streams that share a link would each get a part of what only one of them sent.
pub(crate) fn at(seen: &[(u64, u64)], time: u64) -> u64 {
    let after = seen.partition_point(|(ticks, _)| *ticks <= time);
    after.checked_sub(1).and_then(|before| seen.get(before)).map_or(0, |(_, count)| *count)
}

/// The number of entries within a range of time.
pub(crate) fn counts(seen: &[(u64, u64)], [begin, end]: [u64; 2]) -> usize {
    let until = |time| seen.partition_point(|(ticks, _)| *ticks <= time);
    until(end).saturating_sub(until(begin))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_flood_keeps_its_shape_in_little_room() {
        let mut progress = Progress::new();
        // One message per 10 ticks, later one per 20.
        let time = |count: u64| if count < 50_000 { 10 * count } else { 20 * count - 500_000 };
        for count in 0..100_000 {
            progress.see(Ticks(time(count)), count);
        }
        let seen = progress.into_seen();
        assert!(seen.len() <= ROOM && seen.len() > ROOM / 4, "{}", seen.len());
        assert!(seen.windows(2).all(|pair| pair[0].0 < pair[1].0 && pair[0].1 < pair[1].1));
        for count in [0, 1, 777, 49_000, 50_000, 60_001, 99_000] {
            assert!(at(&seen, time(count)).abs_diff(count) <= 64, "{count}");
        }
    }

    #[test]
    fn what_is_not_counted_yet_is_not_done() {
        let seen = [(100, 0), (200, 10), (300, 40)];
        assert_eq!([50, 100, 199, 200, 250, 300, 400].map(|time| at(&seen, time)), [0, 0, 0, 10, 10, 40, 40]);
        assert_eq!(at(&[], 5), 0);
        assert_eq!([[0, 99], [0, 100], [100, 300], [200, 250]].map(|time| counts(&seen, time)), [0, 1, 2, 0]);
    }
}
