//! What ranks tell of a point, and what becomes of it. No statistics are made here: they come with
//! the samples.

use std::collections::BTreeMap;

use measure::record::{
    self, Cost, Cpu, Direction, Fairness, Histogram, Latency, LatencyKind, OneWay, Oversubscribed, Reported,
    Status, Throughput, Timed,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What one rank measured: statistics ready for the record.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct Outcome {
    /// Latency of the messages that it timed.
    pub latency: Option<Latency>,
    /// Further kinds of latency of the same messages.
    pub kinds: Vec<Timed>,
    /// Throughput, always of one direction: of what it received, or where it only sent, of what was
    /// acknowledged; of messages at a set rate, what was posted.
    pub throughput: Option<Throughput>,
    /// The distribution, where raw samples are not kept.
    pub histogram: Option<Histogram>,
    /// What it cost the thread that measured.
    pub cpu: Option<Cpu>,
    /// What its host counted meanwhile.
    pub host: BTreeMap<String, u64>,
    /// Counters of the pattern and the device.
    pub counters: BTreeMap<String, u64>,
    /// How far apart the ranks of its host began each message, where it led them.
    pub skew: Option<Latency>,
    /// What another program said, where one measured.
    pub reported: Option<Reported>,
    /// The library that carried its messages, if one did.
    pub library: Option<String>,
    /// What that carried them over, where the library chose.
    pub transport: Option<String>,
    /// Where more ranks run on its CPUs than those are.
    pub oversubscribed: Option<Oversubscribed>,
    /// Why its numbers should not be trusted, e.g. a step in the series of samples.
    pub unstable: Option<String>,
    /// What the pattern's ranks tell beside that, which the pattern alone reads.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub told: Option<Value>,
    /// Words of [`columns`](Self::columns), which travel behind the samples.
    pub column_words: usize,
    /// Raw samples in ns, where they are kept. They travel behind the message.
    #[serde(skip)]
    pub samples: Vec<u64>,
    /// Long lists of what is told. They travel behind the samples.
    #[serde(skip)]
    pub columns: Vec<u64>,
}

/// What the ranks of a pattern tell the coordinator beside an [`Outcome`]. Long lists travel apart
/// from it.
pub(crate) trait Told: Serialize + for<'de> Deserialize<'de> {
    /// Takes its long lists out.
    fn take_columns(&mut self) -> Vec<u64> {
        Vec::new()
    }

    /// Puts them back, from the end of what is left of them.
    ///
    /// # Errors
    /// When there is not so much.
    fn put_columns(&mut self, _columns: &mut Vec<u64>) -> Result<(), crate::Error> {
        Ok(())
    }
}

impl Told for () {}

/// What the outcomes of all ranks come to, as far as a pattern decides that.
#[derive(Debug, Default)]
pub(crate) struct Merged {
    /// What the point is instead of measured, if so.
    pub(crate) status: Option<Status>,
    /// The headline.
    pub(crate) latency: Option<Latency>,
    /// Every kind of latency, the headline first, where there are several.
    pub(crate) kinds: Vec<Timed>,
    /// The headline.
    pub(crate) throughput: Option<Throughput>,
    /// The sum of both directions.
    pub(crate) throughput_total: Option<Throughput>,
    /// How evenly several ranks had it.
    pub(crate) fairness: Option<Fairness>,
    /// What messages are that were timed one way.
    pub(crate) one_way: Option<OneWay>,
    /// What the generator of samples found.
    pub(crate) pipeline: Option<record::Pipeline>,
    /// What one call costs.
    pub(crate) cost: Option<Cost>,
    /// What no other pattern has: the point's `own` in the record.
    pub(crate) own: Option<Value>,
    /// Raw samples by kind, where the plan keeps them.
    pub(crate) samples: Vec<KeptSamples>,
    /// Counters that only all ranks together know.
    pub(crate) counters: BTreeMap<String, u64>,
    /// Why the numbers should not be trusted.
    pub(crate) unstable: Vec<String>,
    /// Whether losses are no reason not to trust them: nothing keeps the senders from being too
    /// fast for the receivers.
    pub(crate) floods_freely: bool,
}

impl Merged {
    /// What is usual: the latency of the first rank that timed, and of the ends' throughputs the
    /// slower one.
    pub(crate) fn of(outcomes: &[Outcome]) -> Self {
        Self {
            // Of rank 0, or of the only one that timed.
            latency: outcomes.iter().find_map(|outcome| outcome.latency.clone()),
            throughput: slower_end(outcomes),
            ..Self::default()
        }
    }

    /// A point without numbers.
    pub(crate) fn without_numbers(status: Status) -> Self {
        Self { status: Some(status), ..Self::default() }
    }
}

/// What flows one way is the slower of what rank 0 sent and rank 1 received: a receiver that was
/// not scheduled for a while takes what has piled up at one go, and a short stream then seems to
/// have arrived faster than any memory is.
fn slower_end(outcomes: &[Outcome]) -> Option<Throughput> {
    let ends = [1, 0].into_iter().filter_map(|rank| outcomes.get(rank)?.throughput.clone());
    ends.min_by(|a, b| a.bytes_per_s.total_cmp(&b.bytes_per_s))
}

/// What flows both ways is the mean of both ends, and their sum.
pub(crate) fn both_ways(outcomes: &[Outcome]) -> (Option<Throughput>, Option<Throughput>) {
    let end = |rank: usize| outcomes.get(rank).and_then(|outcome| outcome.throughput.as_ref());
    let Some((one, other)) = end(0).zip(end(1)) else { return (None, None) };
    let sum = |share: f64, direction| Throughput {
        bytes_per_s: share * (one.bytes_per_s + other.bytes_per_s),
        messages_per_s: share * (one.messages_per_s + other.messages_per_s),
        direction,
    };
    (Some(sum(0.5, Direction::BiOne)), Some(sum(1.0, Direction::BiTotal)))
}

/// A kind of latency without its samples.
pub(crate) fn timed_alone(latency: Latency) -> Timed {
    Timed { latency, samples: None, histogram: None }
}

/// Raw samples of a point, in ns.
#[derive(Clone, Debug, PartialEq)]
pub struct KeptSamples {
    /// Whose they are.
    pub of: Source,
    /// In the order in which the messages were sent.
    pub samples_ns: Vec<u64>,
}

/// What samples are of.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Source {
    /// What the end of a rank timed.
    End(u32),
    /// A kind of latency, made of the stamps of both ends.
    Kind(LatencyKind),
}
