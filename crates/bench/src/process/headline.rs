//! From the ranks' outcomes to the line of a point in the record. No statistics are made here, only chosen.

use std::collections::BTreeMap;

use measure::conditions::Condition;
use measure::record::{
    self, Calibration, Direction, End, LatencyKind, Oversubscribed, Pipeline, Point, Reported, Status, Sunk,
    Throughput, Timed,
};
use measure::samples::Samples;
use measure::step::placement_changed;
use serde_json::Value;

use super::message::Outcome;
use super::pairs::{Together, together};
use super::sink::{Kept, Source};
use crate::patterns::one_way::{self, Merged};
use crate::patterns::pipeline::{self, Generated};
use crate::point::{Carrier, Flow, Length, Pattern, PointSpec};

/// How a point ended, as far as the coordinator knows.
#[derive(Debug)]
pub(super) struct Ending {
    pub(super) status: Status,
    /// In rank order; empty unless the point was measured.
    pub(super) outcomes: Vec<Outcome>,
    pub(super) calibration: Option<Calibration>,
    /// What became of what the environment asks, in rank order.
    pub(super) conditions: Vec<Condition>,
}

impl Ending {
    /// A point that has no numbers because it could not or did not go well.
    pub(super) fn without_numbers(status: Status) -> Self {
        Self { status, outcomes: Vec::new(), calibration: None, conditions: Vec::new() }
    }

    pub(super) fn failed(error: String) -> Self {
        Self::without_numbers(Status::Failed { error })
    }

    /// The record of the point, and the raw samples of each rank that kept them.
    pub(super) fn into_point(mut self, spec: &PointSpec, wall_ns: u64) -> (Point, Vec<Kept>) {
        self.broken_off();
        let reported = self.reported();
        let merged = self.merge(spec);
        let together = self.together(spec);
        let (throughput, throughput_total) = match &together {
            Some(together) => (together.throughput.clone(), None),
            None => throughput(spec.direction, &self.outcomes),
        };
        let mut counters = self.counters();
        counters.extend(merged.iter().flat_map(|merged| merged.counters.clone()));
        let throughput = self.carried(spec, &counters).or(throughput);
        let of_all = merged.as_ref().map(|merged| merged.unstable.clone());
        let of_all = of_all.or(together.as_ref().map(|together| together.unstable.clone())).flatten();
        let unstable = self.unstable(spec, &counters, of_all);
        let (kinds, one_way, mut samples) = match merged {
            Some(merged) => (merged.kinds, Some(merged.one_way), merged.samples),
            None => (Vec::new(), None, Vec::new()),
        };
        let kinds = if kinds.is_empty() { self.kinds(spec) } else { kinds };
        let (pipeline, oversubscribed) = (self.pipeline(spec), self.oversubscribed());
        let mut ends = Vec::new();
        for (rank, outcome) in (0u32..).zip(&mut self.outcomes) {
            if !outcome.samples.is_empty() {
                let samples_ns = std::mem::take(&mut outcome.samples);
                samples.push(Kept { of: Source::End(rank), samples_ns });
            }
            ends.push(end(rank, outcome));
        }
        let point = Point {
            id: spec.id,
            experiment: spec.experiment.clone(),
            pattern: serde_json::to_value(spec.pattern).ok().and_then(as_text).unwrap_or_default(),
            axes: spec.axes.clone(),
            link_model: spec.link.filter(|_| self.status == Status::Measured).map(|link| link.to_string()),
            status: self.status,
            conditions: self.conditions,
            repetition: spec.repetition,
            iterations: match spec.length {
                Length::Iterations(iterations) => Some(iterations),
                Length::Duration(_) => None,
            },
            latency: match (kinds.first(), &together) {
                (Some(Timed { latency, .. }), _) => Some(latency.clone()),
                (None, Some(together)) => together.latency.clone(),
                // Of rank 0, or of the only one that timed.
                (None, None) => ends.iter().find_map(|end: &End| end.latency.clone()),
            },
            kinds,
            one_way,
            pipeline,
            reported,
            cost: self.outcomes.iter().find_map(|outcome| outcome.cost.clone()),
            throughput,
            fairness: together.and_then(|together| together.fairness),
            throughput_total,
            ends,
            calibration: self.calibration,
            oversubscribed,
            unstable,
            counters,
            wall_ns,
        };
        (point, samples)
    }

    /// A flood that went on long after the receiver had heard its last message has failed: nothing else tells of that where
    /// nothing is acknowledged.
    fn broken_off(&mut self) {
        let lasted: Vec<_> = self.outcomes.iter().map(|outcome| outcome.lasted).collect();
        let [Some(first), Some(second)] = lasted[..] else { return };
        let error = [(0, first, second), (1, second, first)].into_iter().find_map(|(rank, sender, receiver)| {
            let (sent_s, heard_s) = sender.sent_s.zip(receiver.heard_s)?;
            let is_broken = sent_s - heard_s > BROKEN_OFF_S && heard_s < BROKEN_OFF_SHARE * sent_s;
            is_broken.then(|| {
                format!(
                    "rank {} heard nothing any more after {heard_s:.1} of the {sent_s:.1} s in which rank {rank} sent: the link \
                     went down or drops all, or a firewall does (`ip link`, `nft list ruleset` at both ends)",
                    1 - rank
                )
            })
        });
        if let Some(error) = error {
            *self = Self { conditions: std::mem::take(&mut self.conditions), ..Self::failed(error) };
        }
    }

    /// What another program said, if one measured: rank 0's end of it, which says what rank 1 received, too.
    fn reported(&mut self) -> Option<Reported> {
        let [client, server] = &mut self.outcomes[..] else { return None };
        let reported = client.reported.take()?;
        server.throughput = client.throughput.take();
        Some(reported)
    }

    /// What the generator of a pipeline found.
    fn pipeline(&self, spec: &PointSpec) -> Option<Pipeline> {
        let Generated { rate_hz, achieved_hz, missed_waiting, timer } =
            *self.outcomes.first()?.generated.clone()?;
        let inline = spec.message.endpoint.is_verbs().then_some(spec.message.inline);
        let sinks = self.outcomes.iter().filter_map(|outcome| outcome.sunk.clone()).collect();
        Some(Pipeline { rate_hz, achieved_hz, missed_waiting, inline, timer, sinks })
    }

    /// What both ranks stamped, put together; where that cannot be done the point has no numbers.
    fn merge(&mut self, spec: &PointSpec) -> Option<Merged> {
        let stamped: Vec<_> = self.outcomes.iter_mut().filter_map(|outcome| outcome.stamped.take()).collect();
        let [sender, receiver] = &stamped[..] else { return None };
        let merged = match spec.pattern {
            Pattern::Pipeline => pipeline::merge(spec, sender, receiver),
            _ => one_way::merge(spec, sender, receiver),
        };
        match merged {
            Ok(merged) => Some(merged),
            Err(error) => {
                let words = error.to_string();
                self.status = match error.is_limit() {
                    true => Status::NotMeasured { reason: words },
                    false => Status::Failed { error: words },
                };
                let generated = self.generated_only();
                self.outcomes.clear();
                if let Some(generated) = generated {
                    // That nothing arrives is no reason to forget what was sent.
                    let first = usize::try_from(spec.warmup).unwrap_or(usize::MAX);
                    let counters = pipeline::fates(first, sender, receiver);
                    self.outcomes.push(Outcome { counters, ..generated });
                }
                None
            }
        }
    }

    /// What a generator found by itself.
    fn generated_only(&mut self) -> Option<Outcome> {
        let Outcome { generated, sunk, .. } = std::mem::take(self.outcomes.first_mut()?);
        generated.is_some().then(|| Outcome { generated, sunk, ..Outcome::default() })
    }

    /// The samples of a pipeline that arrived, while it generated them.
    fn carried(&self, spec: &PointSpec, counters: &BTreeMap<String, u64>) -> Option<Throughput> {
        let generated = self.outcomes.first()?.generated.as_ref()?;
        let [steps, missed] = record::steps(counters)?;
        let received = *counters.get("messages_received")?;
        let share = received as f64 / steps.saturating_sub(missed).max(1) as f64;
        Some(Throughput::of(share * generated.achieved_hz, spec.message.size_bytes, Direction::Uni))
    }

    /// The kinds of latency that ranks timed: all of one that timed several, or where the others timed another than rank 0, that
    /// and theirs taken together.
    fn kinds(&self, spec: &PointSpec) -> Vec<Timed> {
        if let Some(timed) = self.outcomes.iter().find(|outcome| !outcome.kinds.is_empty()) {
            let first =
                timed.latency.clone().map(|latency| Timed { latency, samples: None, histogram: None });
            return first.into_iter().chain(timed.kinds.iter().cloned()).collect();
        }
        let kind = |outcome: &Outcome| outcome.latency.as_ref().map(|latency| latency.kind);
        let Some(first) = self.outcomes.first().and_then(|outcome| outcome.latency.clone()) else {
            return Vec::new();
        };
        let others = || self.outcomes.iter().filter(|outcome| kind(outcome).is_some_and(|k| k != first.kind));
        let of_others = |kind: LatencyKind| {
            let all = others().flat_map(|outcome| outcome.samples.iter().copied()).collect();
            Samples::from_ns(all).latency(kind, &spec.share_above_ns)
        };
        let theirs = others().next().and_then(kind).and_then(of_others);
        let both = theirs.map(|theirs| vec![first, theirs]).unwrap_or_default();
        both.into_iter().map(|latency| Timed { latency, samples: None, histogram: None }).collect()
    }

    /// The ranks and CPUs of the host that has the most of the ones for the other.
    fn oversubscribed(&self) -> Option<Oversubscribed> {
        let all = self.outcomes.iter().filter_map(|outcome| outcome.oversubscribed);
        all.max_by_key(|host| u64::from(host.ranks) * 1000 / u64::from(host.cpus.max(1)))
    }

    /// What several ranks did at the same time, put together; where that cannot be done the point has no numbers.
    fn together(&mut self, spec: &PointSpec) -> Option<Together> {
        let are_several = matches!(spec.pattern, Pattern::OpenLoop | Pattern::Pairs);
        let together = are_several.then(|| together(spec, &mut self.outcomes))?;
        if let Some(reason) = together.missing.clone() {
            self.status = Status::NotMeasured { reason };
            self.outcomes.clear();
        }
        Some(together)
    }

    /// The counters of all ranks together.
    fn counters(&self) -> BTreeMap<String, u64> {
        let mut counters = BTreeMap::new();
        for (name, count) in self.outcomes.iter().flat_map(|outcome| &outcome.counters) {
            *counters.entry(name.clone()).or_insert(0u64) += count;
        }
        // Only both ends together know, whatever the length of a flood.
        if let (Some(sent), Some(received)) =
            (counters.get("messages_sent"), counters.get("messages_received"))
        {
            let again = counters.get("messages_duplicate").copied().unwrap_or_default();
            let lost = (sent + again).saturating_sub(*received);
            counters.insert("messages_lost".to_owned(), lost);
        }
        counters
    }

    /// What is wrong where the two ends of a stream do not agree on its rate.
    fn disagreement(&self, spec: &PointSpec) -> Option<String> {
        let rate =
            |outcome: &Outcome| outcome.throughput.as_ref().map(|throughput| throughput.messages_per_s);
        let streams = self.outcomes.len() == 2;
        let [sender, receiver] =
            [self.outcomes.first().filter(|_| streams).and_then(rate)?, self.outcomes.get(1).and_then(rate)?];
        // What has gone into a socket, or a ring, waits there.
        let apart = match spec.message.endpoint.is_verbs() {
            false => receiver > ENDS_RATIO_MAX * sender,
            true => sender.max(receiver) > ENDS_RATIO_MAX * sender.min(receiver),
        };
        apart.then(|| format!("rank 0 counts {sender:.0} messages/s, rank 1 {receiver:.0}"))
    }

    /// What is wrong where a generator missed steps.
    fn missed(&self, counters: &BTreeMap<String, u64>) -> Option<String> {
        let generated = self.outcomes.first()?.generated.as_ref()?;
        let [steps, missed] = record::steps(counters)?;
        let waiting = generated.missed_waiting;
        (missed as f64 > MISSED_SHARE_MAX * steps as f64).then(|| {
            format!(
                "the generator was not there for {missed} of {steps} steps, for {waiting} of which it waited for its timer"
            )
        })
    }

    /// What is wrong with single ranks. Of many, which saw the same events, the first one's reason stands for all.
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
        of_both: Option<String>,
    ) -> Option<String> {
        let mut reasons: Vec<String> = Vec::new();
        if let Some(Calibration { before_ns, after_ns }) = self.calibration
            && placement_changed(before_ns, after_ns)
        {
            reasons.push(format!(
                    "the time of a cache line between the two CPUs changed from {before_ns:.0} to {after_ns:.0} ns \
                     around the point"
                ));
        }
        reasons.extend(self.own_reasons());
        reasons.extend(self.oversubscribed().map(|Oversubscribed { ranks, cpus }| {
            format!(
                "oversubscribed: {ranks} ranks share {}, so waiting for a turn is part of it",
                counted(cpus)
            )
        }));
        reasons.extend(self.missed(counters));
        let sunk = self.outcomes.iter().filter_map(|outcome| outcome.sunk.as_ref());
        reasons.extend(sunk.filter_map(|sunk| {
            let Sunk { rank, missing, error, .. } = sunk;
            Some(format!("{missing} samples of rank {rank} are in no file: {}", error.as_ref()?))
        }));
        reasons.extend(of_both);
        // Nothing keeps a flood of UDP from being faster than it is received: both ends' throughputs and what was lost are shown.
        if spec.message.endpoint == Carrier::Udp && spec.pattern == Pattern::Stream {
            return (!reasons.is_empty()).then(|| reasons.join("; "));
        }
        reasons.extend(self.disagreement(spec));
        let count = |name: &str| counters.get(name).copied().unwrap_or_default();
        let (lost, received) = (count("messages_lost"), count("messages_received"));
        let (sent, unsent) = (lost + received, count("messages_not_transmitted"));
        for (gone, of, what) in
            [(unsent, unsent + sent, "samples were not transmitted"), (lost, sent, "messages were lost")]
        {
            // Where nothing was received there are no others.
            if received > 0 && gone as f64 > LOST_SHARE_MAX * of as f64 {
                reasons.push(format!("{gone} of {of} {what}, and the numbers are those of the others"));
            }
        }
        (!reasons.is_empty()).then(|| reasons.join("; "))
    }
}

/// What one end saw, without its samples.
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
    }
}

/// A flood that is not heard for this long before its end, and for this share of it, was broken off. (A receiver stops to listen
/// after 0.3 s.)
const BROKEN_OFF_S: f64 = 0.5;
const BROKEN_OFF_SHARE: f64 = 0.95;

fn counted(cpus: u32) -> String {
    if cpus == 1 { "1 CPU".to_owned() } else { format!("{cpus} CPUs") }
}

/// Ranks with a reason of their own that a point names one by one: both of two.
const REASONS_MAX: usize = 2;

/// Above this ratio the two ends of a stream did not measure the same: one was kept off its CPU and caught up.
const ENDS_RATIO_MAX: f64 = 1.2;

/// The headline throughput and the sum of both directions. What flows one way is the slower of what rank 0 sent and
/// rank 1 received: a receiver that was not scheduled for a while takes what has piled up at one go, and a short stream
/// then seems to have arrived faster than any memory is. What flows both ways is the mean of both ends, and their sum.
fn throughput(direction: Flow, outcomes: &[Outcome]) -> (Option<Throughput>, Option<Throughput>) {
    let end = |rank: usize| outcomes.get(rank).and_then(|outcome| outcome.throughput.clone());
    match (direction, end(0), end(1)) {
        (Flow::Uni, sender, receiver) => {
            let ends = receiver.into_iter().chain(sender);
            (ends.min_by(|a, b| a.bytes_per_s.total_cmp(&b.bytes_per_s)), None)
        }
        (Flow::Bi, Some(one), Some(other)) => {
            let sum = |share: f64, direction| Throughput {
                bytes_per_s: share * (one.bytes_per_s + other.bytes_per_s),
                messages_per_s: share * (one.messages_per_s + other.messages_per_s),
                direction,
            };
            (Some(sum(0.5, Direction::BiOne)), Some(sum(1.0, Direction::BiTotal)))
        }
        (Flow::Bi, ..) => (None, None),
    }
}

fn as_text(value: Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text),
        _ => None,
    }
}

/// Above this share of missed steps the rate was not what it is said to be.
const MISSED_SHARE_MAX: f64 = 0.01;
/// Above this share of lost messages a receiver has fallen behind, and what it then takes from its queues at one go can
/// look faster than any device.
const LOST_SHARE_MAX: f64 = 0.01;

#[cfg(test)]
mod tests {
    use measure::clock::{ClockKind, Domain, Nominal};
    use measure::record::TimerAlone;
    use measure::samples::Stamps;

    use super::*;
    use crate::patterns::one_way::{Column, Stamped};
    use crate::plan::{Options, Plan, Settings, resolve};
    use crate::process::message::Lasted;

    fn spec() -> PointSpec {
        let plan = Plan::new("stream", "Stream").experiment("e", Pattern::Stream, Settings::default());
        resolve(&plan, &Options::default()).unwrap().points.remove(0)
    }

    #[test]
    fn more_than_a_lost_message_in_a_hundred_is_said() {
        let unstable = |lost: u64| {
            let counters = [("messages_lost".to_owned(), lost), ("messages_received".to_owned(), 990 - lost)];
            let outcome = Outcome { counters: counters.into(), ..Outcome::default() };
            let outcomes = vec![outcome];
            let ending = Ending { outcomes, ..Ending::without_numbers(Status::Measured) };
            ending.unstable(&spec(), &ending.counters(), None)
        };
        assert_eq!(unstable(0), None);
        assert_eq!(unstable(9), None);
        let reason = "10 of 990 messages were lost, and the numbers are those of the others";
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
            let ending = Ending { outcomes, ..Ending::without_numbers(Status::Measured) };
            ending.unstable(&spec(), &ending.counters(), None)
        };
        assert_eq!(unstable(9), None);
        let reason = "10 of 990 samples were not transmitted, and the numbers are those of the others";
        assert_eq!(unstable(10).as_deref(), Some(reason));
    }

    #[test]
    fn a_flood_that_is_not_heard_to_its_end_has_failed() {
        let ending = |[first, second]: [Lasted; 2]| {
            let outcomes =
                [first, second].map(|lasted| Outcome { lasted: Some(lasted), ..Outcome::default() });
            let ending = Ending { outcomes: outcomes.into(), ..Ending::without_numbers(Status::Measured) };
            ending.into_point(&spec(), 0).0.status
        };
        let one_way = |heard_s| {
            let receiver = Lasted { sent_s: None, heard_s: Some(heard_s) };
            ending([Lasted { sent_s: Some(8.0), heard_s: None }, receiver])
        };
        assert_eq!(one_way(8.0), Status::Measured);
        assert_eq!(one_way(7.8), Status::Measured);
        let Status::Failed { error } = one_way(2.0) else { panic!("it was broken off") };
        assert!(error.starts_with("rank 1 heard nothing any more after 2.0 of the 8.0 s"), "{error}");
        let both_ways = |heard_s| {
            let first = Lasted { sent_s: Some(8.0), heard_s: Some(heard_s) };
            ending([first, Lasted { sent_s: Some(8.0), heard_s: Some(8.0) }])
        };
        assert_eq!(both_ways(8.0), Status::Measured);
        let Status::Failed { error } = both_ways(3.0) else { panic!("it was broken off one way") };
        assert!(
            error.contains("rank 0 heard nothing any more after 3.0 of the 8.0 s in which rank 1"),
            "{error}"
        );
    }

    #[test]
    fn of_many_unstable_ranks_the_first_says_why() {
        let unstable = |ranks: usize| {
            let outcome =
                |rank| Outcome { unstable: Some(format!("it shifted at {rank}")), ..Outcome::default() };
            let outcomes = [Outcome::default()].into_iter().chain((1..=ranks).map(outcome)).collect();
            let ending = Ending { outcomes, ..Ending::without_numbers(Status::Measured) };
            ending.unstable(&spec(), &ending.counters(), None).unwrap()
        };
        assert_eq!(unstable(2), "rank 1: it shifted at 1; rank 2: it shifted at 2");
        assert_eq!(unstable(8), "rank 1: it shifted at 1; 7 more ranks are unstable, too");
    }

    /// An end of a pipeline of four steps, the first of the warm-up, with such stamps; that of the generator has missed one.
    fn pipeline_end(columns: &[(Column, [u64; 4])], is_generator: bool) -> Outcome {
        let boot_id = Some("one".to_owned());
        let domain = Domain { kind: ClockKind::Tsc, boot_id, time_namespace: None };
        let clock = Nominal { tick_hz: 1e9, drift_ppm: 200.0, wander_ppm: 0.0 };
        let columns = columns.iter().map(|(column, stamps)| (*column, stamps.to_vec())).collect();
        let lateness = measure::stats::latency(LatencyKind::Lateness, &[5], &[]).unwrap();
        let timer = TimerAlone { steps: 10, missed: 1, rate_hz: 1.0, away_share: None, lateness };
        let generated = Generated { rate_hz: 1000.0, achieved_hz: 600.0, missed_waiting: 1, timer };
        Outcome {
            stamped: Some(Box::new(Stamped::new(domain, clock, None, columns))),
            generated: is_generator.then(|| Box::new(generated)),
            ..Outcome::default()
        }
    }

    #[test]
    fn what_a_pipeline_carries_is_what_arrives_and_what_was_sent_is_known_if_nothing_does() {
        const NO: u64 = Stamps::NONE;
        let settings = Settings { iterations: Some(3), warmup: Some(1), ..Settings::default() };
        let plan = Plan::new("pipeline", "Pipeline").experiment("e", Pattern::Pipeline, settings);
        let spec = resolve(&plan, &Options::default()).unwrap().points.remove(0);
        let of = |received: [u64; 4]| {
            let due = [10, 20, NO, 40];
            let source = pipeline_end(&[(Column::Due, due), (Column::Submitted, due)], true);
            let target = pipeline_end(&[(Column::Received, received)], false);
            let ending =
                Ending { outcomes: vec![source, target], ..Ending::without_numbers(Status::Measured) };
            ending.into_point(&spec, 0).0
        };
        let half = of([11, 21, NO, NO]);
        assert_eq!(half.status, Status::Measured);
        // One of two that were sent.
        assert_eq!(half.throughput.map(|throughput| throughput.messages_per_s), Some(300.0));
        let none = of([NO; 4]);
        assert!(matches!(none.status, Status::Failed { .. }), "{:?}", none.status);
        assert_eq!(none.pipeline.map(|pipeline| pipeline.achieved_hz), Some(600.0));
        assert_eq!((none.counters["steps_missed"], none.counters["messages_not_transmitted"]), (1, 2));
    }
}
