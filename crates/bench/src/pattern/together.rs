//! Ranks that do the same at the same time, pairs or a load: the latency of all their messages,
//! their throughput in the time in which all of them run, and how evenly it is divided.

use measure::record::{Direction, Fairness, Latency, LatencyKind, Status, Throughput};
use measure::samples::Samples;

use super::flood::{FloodProgress, Window};
use super::outcome::{Merged, Outcome};
use super::{at, counts};

/// What several ranks did at the same time.
pub(crate) struct Floods<'a> {
    /// What these ranks are called.
    pub(crate) who: &'static str,
    /// Payload of a message.
    pub(crate) message_bytes: u64,
    /// The direction of all of them together.
    pub(crate) direction: Direction,
    /// By rank, the progress of its stream.
    pub(crate) passed: Vec<Option<&'a FloodProgress>>,
    /// When other messages were timed at the same time, if any.
    pub(crate) timed: Option<&'a Window>,
    /// Whether the point measures only these ranks: then they start at a barrier, and the point has
    /// no number without theirs.
    pub(crate) is_all: bool,
}

impl Floods<'_> {
    /// Merges the outcomes. Replaces each sender's throughput by that of the common time.
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

    /// Computes each sender's throughput from when the last sender started until the first was
    /// done, but where other messages were timed, only while these were. Returns why the result is
    /// unstable, or the error why there is none.
    fn in_common(&self, share_above_ns: &[u64], outcomes: &mut [Outcome]) -> Result<Option<String>, String> {
        let passed: Vec<&FloodProgress> = self.passed.iter().copied().flatten().collect();
        let Some((first, others)) = passed.split_first() else { return Ok(None) };
        if others.iter().any(|other| !other.clock.shares_with(&first.clock)) {
            let words = "the pairs are timed by different clocks: each pair's throughput covers its own time, not a common one";
            // All loaders start and end when rank 0 tells them to.
            return Ok(self.is_all.then(|| words.to_owned()));
        }
        let begin = passed.iter().map(|one| one.span[0]).max().unwrap_or(0);
        let end = passed.iter().map(|one| one.span[1]).min().unwrap_or(0);
        let shortest = passed.iter().map(|one| one.span[1].saturating_sub(one.span[0])).min().unwrap_or(0);
        if end.saturating_sub(begin) * 2 < shortest {
            return Err(format!(
                "{} {} hardly overlapped in time, because each finished so soon: give a duration, or more iterations",
                passed.len(),
                self.who
            ));
        }
        let timed = self.timed.filter(|timed| timed.clock.shares_with(&first.clock)).map(|timed| timed.span);
        let timed = timed.map(|span| [span[0].max(begin), span[1].min(end)]);
        // With few counts in that time, the throughput is that of the whole load.
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

    /// Removes the throughput, because too few messages were counted for a rate.
    fn hardly_counted(&self, outcomes: &mut [Outcome]) -> Result<Option<String>, String> {
        let words =
            format!("too few messages were complete while all {} ran: give a longer duration", self.who);
        if self.is_all {
            return Err(format!("{words}, or a smaller signal_interval"));
        }
        let floods = self.passed.iter().zip(outcomes).filter(|(passed, _)| passed.is_some());
        floods.for_each(|(_, outcome)| outcome.throughput = None);
        Ok(Some(format!("the load: {words}")))
    }

    /// Replaces each sender's throughput by that between `begin` and `end`.
    fn count(&self, [begin, end]: [u64; 2], outcomes: &mut [Outcome]) {
        let ticks = end.saturating_sub(begin).max(1) as f64;
        for (passed, outcome) in self.passed.iter().zip(outcomes) {
            let Some(passed) = passed else { continue };
            let messages = at(&passed.seen, end) - at(&passed.seen, begin);
            let messages_per_s = messages as f64 / ticks * passed.tick_hz;
            outcome.throughput = Some(Throughput::of(messages_per_s, self.message_bytes, Direction::Uni));
        }
    }

    /// The skew with which rank 0's messages started the streams. Ranks that start at a barrier
    /// measure their skew themselves.
    fn skew(&self, share_above_ns: &[u64], passed: &[&FloodProgress], tick_hz: f64) -> Option<Latency> {
        let begun = || passed.iter().map(|one| one.span[0]);
        let ticks = begun().max()? - begun().min()?;
        let ns = (ticks as f64 * 1e9 / tick_hz) as u64;
        let is_told = !self.is_all && passed.len() > 1;
        is_told.then(|| Samples::from_ns(vec![ns]).latency(LatencyKind::StartSkew, share_above_ns))?
    }
}

/// The latency of the messages of all pairs: from all samples where they were kept, or else that of
/// the first pair.
fn latency(share_above_ns: &[u64], outcomes: &[Outcome]) -> Option<Latency> {
    let first = outcomes.iter().find_map(|outcome| outcome.latency.as_ref())?;
    let all: Vec<u64> = outcomes.iter().flat_map(|outcome| outcome.samples.iter().copied()).collect();
    Samples::from_ns(all).latency(first.kind, share_above_ns).or_else(|| Some(first.clone()))
}

/// The fewest counts of a load from which the rate of a part of it is computed.
const COUNTS_MIN: usize = 16;
/// The fewest counts from which any rate is computed.
const COUNTS_FEWEST: usize = 2;
