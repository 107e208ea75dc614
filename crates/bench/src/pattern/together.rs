//! Several ranks together that do the same at the same time, pairs or a load: the latency of all
//! their messages, what they carry in the time that all were at it, and how evenly.

use measure::record::{Direction, Fairness, Latency, LatencyKind, Status, Throughput};
use measure::samples::Samples;

use super::flood::{FloodProgress, Window};
use super::outcome::{Merged, Outcome};
use super::{at, counts};

/// What several ranks did at the same time.
pub(crate) struct Floods<'a> {
    /// What these ranks are called.
    pub(crate) who: &'static str,
    /// Payload of a message of theirs.
    pub(crate) message_bytes: u64,
    /// What all of them together are.
    pub(crate) direction: Direction,
    /// By rank, how its flood went.
    pub(crate) passed: Vec<Option<&'a FloodProgress>>,
    /// When messages were timed beside them, if some were.
    pub(crate) timed: Option<&'a Window>,
    /// Whether the point is about them alone: they begin together by themselves, and without a
    /// number of theirs it has none.
    pub(crate) is_all: bool,
}

impl Floods<'_> {
    /// Puts them together. Each sender's own throughput becomes that of the common time.
    pub(crate) fn merge(&self, share_above_ns: &[u64], outcomes: &mut Vec<Outcome>) -> Merged {
        let latency = latency(share_above_ns, outcomes);
        let rates: Vec<f64> = outcomes
            .iter()
            .filter_map(|outcome| {
                Some(1e9 / outcome.latency.as_ref()?.mean_ns).filter(|rate| rate.is_finite())
            })
            .collect();
        let merged = Merged { latency, fairness: Fairness::of(&rates), ..Merged::default() };
        if self.passed.iter().all(Option::is_none) {
            return merged;
        }
        let unstable = match self.in_common(share_above_ns, outcomes) {
            Ok(unstable) => unstable.into_iter().collect(),
            Err(reason) => {
                outcomes.clear();
                return Merged::without_numbers(Status::NotMeasured { reason });
            }
        };
        let floods = self.passed.iter().zip(outcomes.iter()).filter(|(passed, _)| passed.is_some());
        let flows: Vec<f64> =
            floods.filter_map(|(_, outcome)| Some(outcome.throughput.as_ref()?.messages_per_s)).collect();
        if flows.is_empty() {
            return Merged { fairness: None, unstable, ..merged };
        }
        let throughput = Throughput::of(flows.iter().sum(), self.message_bytes, self.direction);
        Merged { throughput: Some(throughput), fairness: Fairness::of(&flows), unstable, ..merged }
    }

    /// Counts what each sender did from when the last began until the first was done, and where
    /// messages were timed beside them, no longer than these were; says what is wrong with that, or
    /// why it cannot be.
    fn in_common(&self, share_above_ns: &[u64], outcomes: &mut [Outcome]) -> Result<Option<String>, String> {
        let passed: Vec<&FloodProgress> = self.passed.iter().copied().flatten().collect();
        let Some((first, others)) = passed.split_first() else { return Ok(None) };
        if others.iter().any(|other| !other.clock.shares_with(&first.clock)) {
            let words =
                "the pairs are timed by several clocks: each counts in its own time, not in the common one";
            // All loaders begin and end when rank 0 says so.
            return Ok(self.is_all.then(|| words.to_owned()));
        }
        let begin = passed.iter().map(|one| one.span[0]).max().unwrap_or(0);
        let end = passed.iter().map(|one| one.span[1]).min().unwrap_or(0);
        let shortest = passed.iter().map(|one| one.span[1].saturating_sub(one.span[0])).min().unwrap_or(0);
        if end.saturating_sub(begin) * 2 < shortest {
            return Err(format!(
                "{} {} were hardly ever at it at the same time, as each was done so soon: give a duration, or more iterations",
                passed.len(),
                self.who
            ));
        }
        let timed = self.timed.filter(|timed| timed.clock.shares_with(&first.clock)).map(|timed| timed.span);
        let timed = timed.map(|span| [span[0].max(begin), span[1].min(end)]);
        // Where few were counted meanwhile, they are those of the whole load.
        let is_long = |span: &[u64; 2]| passed.iter().all(|one| counts(&one.seen, *span) >= COUNTS_MIN);
        let common = timed.filter(is_long).unwrap_or([begin, end]);
        if passed.iter().any(|one| counts(&one.seen, common) < COUNTS_FEWEST) {
            return self.hardly_counted(outcomes);
        }
        let skew = self.skew(share_above_ns, &passed, first.tick_hz);
        self.count(common, outcomes);
        let mut floods = self.passed.iter().zip(outcomes).filter(|(passed, _)| passed.is_some());
        if let (Some(skew), Some((_, first))) = (skew, floods.next()) {
            first.skew = Some(skew);
        }
        Ok(None)
    }

    /// So little was done that there is no rate.
    fn hardly_counted(&self, outcomes: &mut [Outcome]) -> Result<Option<String>, String> {
        let words = "so little was done in the common time that it cannot be counted: give a longer duration";
        if self.is_all {
            return Err(format!("{words}, or a smaller signal_interval"));
        }
        let floods = self.passed.iter().zip(outcomes).filter(|(passed, _)| passed.is_some());
        floods.for_each(|(_, outcome)| outcome.throughput = None);
        Ok(Some(format!("the load: {words}")))
    }

    /// Each sender's throughput in the common time.
    fn count(&self, [begin, end]: [u64; 2], outcomes: &mut [Outcome]) {
        let ticks = end.saturating_sub(begin).max(1) as f64;
        for (passed, outcome) in self.passed.iter().zip(outcomes) {
            let Some(passed) = passed else { continue };
            let messages = at(&passed.seen, end) - at(&passed.seen, begin);
            let messages_per_s = messages as f64 / ticks * passed.tick_hz;
            outcome.throughput = Some(Throughput::of(messages_per_s, self.message_bytes, Direction::Uni));
        }
    }

    /// How far apart floods began that were told to, each in its turn; those that meet at a barrier
    /// know themselves.
    fn skew(&self, share_above_ns: &[u64], passed: &[&FloodProgress], tick_hz: f64) -> Option<Latency> {
        let begun = || passed.iter().map(|one| one.span[0]);
        let ticks = begun().max()? - begun().min()?;
        let ns = (ticks as f64 * 1e9 / tick_hz) as u64;
        let is_told = !self.is_all && passed.len() > 1;
        is_told.then(|| Samples::from_ns(vec![ns]).latency(LatencyKind::StartSkew, share_above_ns))?
    }
}

/// The latency of the messages of all pairs: exact where samples were kept, else that of the first
/// pair.
fn latency(share_above_ns: &[u64], outcomes: &[Outcome]) -> Option<Latency> {
    let first = outcomes.iter().find_map(|outcome| outcome.latency.as_ref())?;
    let all: Vec<u64> = outcomes.iter().flat_map(|outcome| outcome.samples.iter().copied()).collect();
    Samples::from_ns(all).latency(first.kind, share_above_ns).or_else(|| Some(first.clone()))
}

/// Fewer counts than this of a load are too few for the rate of a part of it.
const COUNTS_MIN: usize = 16;
/// Fewer than this are none of a flood at all.
const COUNTS_FEWEST: usize = 2;
