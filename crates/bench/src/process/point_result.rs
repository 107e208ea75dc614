//! Turns the ranks' outcomes into the line of a point in the record. It selects statistics, and
//! computes none.

use std::collections::BTreeMap;

use measure::conditions::Condition;
use measure::placement;
use measure::record::{CUT, Calibration, End, Oversubscribed, Point, Reported, Status};
use measure::step::placement_changed;
use measure::text::grouped;

use super::message::Outcome;
use super::sink::{KeptSamples, Source};
use crate::pattern::outcome::Merged;
use crate::point::PointSpec;

/// Why a point that was cut has no numbers.
const CUT_TOO_EARLY: &str = "a signal ended the point before it had measured anything, as during its warm-up";

/// The result of a point, as the coordinator knows it.
#[derive(Debug)]
pub(super) struct PointResult {
    pub(super) status: Status,
    /// In rank order; empty unless the point was measured.
    pub(super) outcomes: Vec<Outcome>,
    pub(super) calibration: Option<Calibration>,
    /// The outcomes of the environment's techniques, in rank order.
    pub(super) conditions: Vec<Condition>,
    /// Whether a signal ended it early.
    pub(super) is_cut: bool,
}

impl PointResult {
    /// Returns the result of a point without numbers: not measured or failed.
    pub(super) fn without_numbers(status: Status) -> Self {
        Self { status, outcomes: Vec::new(), calibration: None, conditions: Vec::new(), is_cut: false }
    }

    pub(super) fn failed(error: String) -> Self {
        Self::without_numbers(Status::Failed { error })
    }

    /// Returns the record of the point, and the raw samples of each rank that kept them.
    pub(super) fn into_point(mut self, spec: &PointSpec, wall_ns: u64) -> (Point, Vec<KeptSamples>) {
        if let Some(error) = spec.pattern.entry().failure(&self.outcomes) {
            let conditions = std::mem::take(&mut self.conditions);
            self = Self { conditions, is_cut: self.is_cut, ..Self::failed(error) };
        }
        // A point that failed for another reason keeps it.
        let is_cut_alone = self.is_cut && self.status == Status::Measured;
        let reported = self.reported();
        let mut merged = match reported {
            Some(_) => Merged::of(&self.outcomes),
            None => spec.pattern.entry().merge(spec, &mut self.outcomes),
        };
        if let Some(status) = merged.status.take() {
            self.status = status;
        }
        let mut counters = self.counters();
        counters.append(&mut merged.counters);
        let cut = self.is_cut.then(|| CUT.to_owned());
        let unstable =
            cut.into_iter().chain(self.unstable(spec, &counters, &merged)).reduce(|a, b| format!("{a}; {b}"));
        let oversubscribed = self.oversubscribed();
        let mut samples = merged.samples;
        let mut ends = Vec::new();
        for (rank, outcome) in (0u32..).zip(&mut self.outcomes) {
            if !outcome.samples.is_empty() {
                let samples_ns = std::mem::take(&mut outcome.samples);
                samples.push(KeptSamples { of: Source::End(rank), samples_ns });
            }
            ends.push(end(rank, outcome));
        }
        let headline = merged.kinds.first().map(|timed| timed.latency.clone());
        let mut point = Point {
            id: spec.id,
            experiment: spec.experiment.clone(),
            pattern: spec.pattern.name().to_owned(),
            axes: spec.axes.clone(),
            link_model: spec.link.filter(|_| self.status == Status::Measured).map(|link| link.to_string()),
            status: self.status,
            conditions: self.conditions,
            repetition: spec.repetition,
            launch: None,
            fleet: None,
            iterations: spec.length.iterations().filter(|_| !self.is_cut),
            latency: headline.or(merged.latency),
            kinds: merged.kinds,
            one_way: merged.one_way,
            pipeline: merged.pipeline,
            reported,
            cost: merged.cost,
            own: merged.own.map(|own| (spec.pattern.name().to_owned(), own)).into_iter().collect(),
            throughput: merged.throughput,
            fairness: merged.fairness,
            throughput_total: merged.throughput_total,
            ends,
            calibration: self.calibration,
            oversubscribed,
            cut: self.is_cut,
            unstable,
            counters,
            wall_ns,
        };
        let has_rates = point.throughput.is_some() || point.throughput_total.is_some();
        if is_cut_alone && point.latency.is_none() && !has_rates && point.own.is_empty() {
            point.status = Status::NotMeasured { reason: CUT_TOO_EARLY.to_owned() };
        }
        (point, samples)
    }

    /// Returns the numbers of another tool, if one measured the point. Rank 0's part of it also
    /// reports what rank 1 received.
    fn reported(&mut self) -> Option<Reported> {
        let [client, server] = &mut self.outcomes[..] else { return None };
        let reported = client.reported.take()?;
        server.throughput = client.throughput.take();
        Some(reported)
    }

    /// Returns the ranks and CPUs of the host with the most ranks for each CPU.
    fn oversubscribed(&self) -> Option<Oversubscribed> {
        let all = self.outcomes.iter().filter_map(|outcome| outcome.oversubscribed);
        all.max_by_key(|host| u64::from(host.ranks) * 1000 / u64::from(host.cpus.max(1)))
    }

    /// Returns the counters, summed over all ranks.
    fn counters(&self) -> BTreeMap<String, u64> {
        let mut counters = BTreeMap::new();
        for (name, count) in self.outcomes.iter().flat_map(|outcome| &outcome.counters) {
            *counters.entry(name.clone()).or_insert(0u64) += count;
        }
        // Neither rank alone knows how many messages were lost.
        if let (Some(sent), Some(received)) =
            (counters.get("messages_sent"), counters.get("messages_received"))
        {
            let again = counters.get("messages_duplicate").copied().unwrap_or_default();
            let lost = (sent + again).saturating_sub(*received);
            counters.insert("messages_lost".to_owned(), lost);
        }
        counters
    }

    /// Returns why a point is unstable if the two ranks of a stream do not agree on its rate.
    fn disagreement(&self, spec: &PointSpec) -> Option<String> {
        let rate =
            |outcome: &Outcome| outcome.throughput.as_ref().map(|throughput| throughput.messages_per_s);
        let streams = self.outcomes.len() == 2;
        let [sender, receiver] =
            [self.outcomes.first().filter(|_| streams).and_then(rate)?, self.outcomes.get(1).and_then(rate)?];
        // A sender is faster while a socket or a ring buffers its messages.
        let apart = match spec.message.endpoint.is_verbs() {
            false => receiver > ENDS_RATIO_MAX * sender,
            true => sender.max(receiver) > ENDS_RATIO_MAX * sender.min(receiver),
        };
        let of = |rate: f64| grouped(rate as u64);
        apart.then(|| {
            format!(
                "sender and receiver disagree on the rate: {} messages/s on rank 0 and {} on rank 1",
                of(sender),
                of(receiver)
            )
        })
    }

    /// Returns why single ranks are unstable. Many ranks usually saw the same events: the reason of
    /// the first then stands for all.
    fn own_reasons(&self) -> Vec<String> {
        let all = self.outcomes.iter().enumerate();
        let mut own: Vec<String> = all
            .filter_map(|(rank, outcome)| Some(format!("rank {rank}: {}", outcome.unstable.as_ref()?)))
            .collect();
        if own.len() > REASONS_MAX {
            let others = own.len() - 1;
            own.truncate(1);
            own.push(format!("{others} more ranks are unstable, too"));
        }
        own
    }

    fn unstable(
        &self,
        spec: &PointSpec,
        counters: &BTreeMap<String, u64>,
        merged: &Merged,
    ) -> Option<String> {
        let mut reasons: Vec<String> = Vec::new();
        if let Some(Calibration { before_ns, after_ns, .. }) = self.calibration
            && placement_changed(before_ns, after_ns)
        {
            reasons.push(format!(
                    "the core-to-core latency changed from {before_ns:.0} ns before the point to {after_ns:.0} ns after it"
                ));
        }
        let far = self.calibration.as_ref().and_then(placement::far);
        reasons.extend(far.map(|far| far.to_string()));
        reasons.extend(self.own_reasons());
        reasons.extend(self.oversubscribed().map(|Oversubscribed { ranks, cpus }| {
            format!(
                "oversubscribed: {ranks} ranks share {}, so scheduling delays are included",
                counted(cpus)
            )
        }));
        reasons.extend(merged.unstable.iter().cloned());
        if merged.floods_freely {
            return (!reasons.is_empty()).then(|| reasons.join("; "));
        }
        reasons.extend(self.disagreement(spec));
        let count = |name: &str| counters.get(name).copied().unwrap_or_default();
        let lost = count("messages_lost");
        let received = count("messages_received");
        let sent = lost + received;
        let unsent = count("messages_not_transmitted");
        for (gone, of, what) in
            [(unsent, unsent + sent, "samples were unsent"), (lost, sent, "messages were lost")]
        {
            // Without a received message, there is no number to qualify.
            if received > 0 && gone as f64 > LOST_SHARE_MAX * of as f64 {
                reasons.push(format!(
                    "{} of {} {what}: only messages that arrived count",
                    grouped(gone),
                    grouped(of)
                ));
            }
        }
        (!reasons.is_empty()).then(|| reasons.join("; "))
    }
}

/// Returns the record of one rank, without its samples.
fn end(rank: u32, outcome: &mut Outcome) -> End {
    End {
        rank,
        latency: outcome.latency.clone(),
        throughput: outcome.throughput.clone(),
        samples: None,
        histogram: outcome.histogram.take(),
        cpu: outcome.cpu,
        host: std::mem::take(&mut outcome.host),
        start_skew: outcome.skew.take(),
        library: outcome.library.take(),
        transport: outcome.transport.take(),
    }
}

fn counted(cpus: u32) -> String {
    if cpus == 1 { "1 CPU".to_owned() } else { format!("{cpus} CPUs") }
}

/// The most unstable ranks whose reasons a point lists one by one: two.
const REASONS_MAX: usize = 2;

/// The largest ratio between the rates of the two ranks of a stream. Above it, one rank was
/// preempted and caught up later.
const ENDS_RATIO_MAX: f64 = 1.2;

/// The largest share of lost messages. Above it, the receiver has fallen behind: it then takes many
/// messages from its queues at once, which can look faster than any device.
const LOST_SHARE_MAX: f64 = 0.01;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{Options, Plan, Settings, resolve};
    use crate::point::Pattern;

    fn spec() -> PointSpec {
        let plan = Plan::new("stream", "Stream").experiment("e", Pattern::STREAM, Settings::default());
        resolve(&plan, &Options::default()).unwrap().points.remove(0)
    }

    /// The latencies are the medians of two runs of the same plan in a row. In the second run, the
    /// latency did not change around any point.
    #[test]
    fn a_point_that_was_far_all_the_time_is_said() {
        let unstable = |ns: f64, best_ns: Option<f64>| {
            let calibration = Some(Calibration { before_ns: ns, after_ns: ns, best_ns });
            let result = PointResult { calibration, ..PointResult::without_numbers(Status::Measured) };
            result.unstable(&spec(), &result.counters(), &Merged::default())
        };
        assert_eq!(unstable(28.3, Some(28.3)), None);
        assert_eq!(unstable(188.4, None), None);
        let reason = "core-to-core latency was 188 ns, 6.7 times the best seen on this host (28 ns): a CPU was placed far \
                      away or ran slowly";
        assert_eq!(unstable(188.4, Some(28.3)).as_deref(), Some(reason));
    }

    #[test]
    fn more_than_a_lost_message_in_a_hundred_is_said() {
        let unstable = |lost: u64| {
            let counters = [("messages_lost".to_owned(), lost), ("messages_received".to_owned(), 990 - lost)];
            let outcome = Outcome { counters: counters.into(), ..Outcome::default() };
            let outcomes = vec![outcome];
            let result = PointResult { outcomes, ..PointResult::without_numbers(Status::Measured) };
            result.unstable(&spec(), &result.counters(), &Merged::default())
        };
        assert_eq!(unstable(0), None);
        assert_eq!(unstable(9), None);
        let reason = "10 of 990 messages were lost: only messages that arrived count";
        assert_eq!(unstable(10).as_deref(), Some(reason));
    }

    #[test]
    fn more_than_a_sample_in_a_hundred_that_found_no_room_is_said() {
        let unstable = |unsent: u64| {
            let counters = [
                ("messages_not_transmitted", unsent),
                ("messages_received", 985 - unsent),
                ("messages_lost", 5),
            ];
            let counters = counters.map(|(name, count)| (name.to_owned(), count)).into();
            let outcomes = vec![Outcome { counters, ..Outcome::default() }];
            let result = PointResult { outcomes, ..PointResult::without_numbers(Status::Measured) };
            result.unstable(&spec(), &result.counters(), &Merged::default())
        };
        assert_eq!(unstable(9), None);
        let reason = "10 of 990 samples were unsent: only messages that arrived count";
        assert_eq!(unstable(10).as_deref(), Some(reason));
    }

    #[test]
    fn of_many_unstable_ranks_the_first_says_why() {
        let unstable = |ranks: usize| {
            let outcome =
                |rank| Outcome { unstable: Some(format!("it shifted at {rank}")), ..Outcome::default() };
            let outcomes = [Outcome::default()].into_iter().chain((1..=ranks).map(outcome)).collect();
            let result = PointResult { outcomes, ..PointResult::without_numbers(Status::Measured) };
            result.unstable(&spec(), &result.counters(), &Merged::default()).unwrap()
        };
        assert_eq!(unstable(2), "rank 1: it shifted at 1; rank 2: it shifted at 2");
        assert_eq!(unstable(8), "rank 1: it shifted at 1; 7 more ranks are unstable, too");
    }

    #[test]
    fn a_cut_point_without_numbers_says_so_unless_it_failed() {
        let status = |heard_s: f64| {
            let told = |sent: Option<f64>, heard: Option<f64>| Outcome {
                told: Some(serde_json::json!({ "sent_s": sent, "heard_s": heard })),
                ..Outcome::default()
            };
            let outcomes = vec![told(Some(10.0), None), told(None, Some(heard_s))];
            let measured = PointResult::without_numbers(Status::Measured);
            PointResult { outcomes, is_cut: true, ..measured }.into_point(&spec(), 1).0.status
        };
        assert_eq!(status(10.0), Status::NotMeasured { reason: CUT_TOO_EARLY.to_owned() });
        let failed = status(0.1);
        assert!(
            matches!(&failed, Status::Failed { error } if error.contains("received nothing")),
            "{failed:?}"
        );
    }
}
