//! What coordinator and agents say to each other. Every request has exactly one reply.

use std::collections::BTreeMap;

use measure::clock::Domain;
use measure::conditions::{Condition, Wanted};
use measure::record::{
    Cost, Cpu, Device, Environment, Histogram, Latency, Overhead, Oversubscribed, Reported, Sunk, Throughput,
    Timed,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::frame::Frame;
use crate::Error;
use crate::patterns::one_way::Stamped;
use crate::patterns::pipeline::Generated;
use crate::point::{LinkLayer, PointSpec};

/// What the coordinator asks of an agent.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields, rename_all = "snake_case")]
pub enum Request {
    /// Who are you? The answer is [`Reply::Hello`].
    Hello {
        /// The rank that the agent is to have.
        rank: u32,
        /// How many ranks there are.
        ranks: u32,
    },
    /// Arrange the conditions of the points to come, and take back those of the points before. The answer is
    /// [`Reply::Arranged`].
    Arrange {
        /// What is asked of the machine.
        conditions: Box<Wanted>,
        /// CPUs that the ranks of the same host are pinned to, each as often as a rank has it.
        ranks: Vec<u32>,
    },
    /// Look again at what was arranged, after a point. The answer is [`Reply::Arranged`] with those techniques of which
    /// something else is true than was said.
    Verify,
    /// Set a point up as far as it goes without the other ranks. The answer is [`Reply::Prepared`].
    Prepare(Box<PointSpec>),
    /// Connect to the other ranks. The answer is [`Reply::Connected`].
    Connect {
        /// What the workers of the point's ranks, in rank order and this one among them, said when they were prepared.
        ranks: Vec<Neighbour>,
    },
    /// Measure. The answer is [`Reply::Done`].
    Run,
    /// A step towards the cross-core latency. The answer is [`Reply::Calibrated`].
    Calibrate(CalibrationStep),
    /// Take the point down, whatever became of it. The answer is [`Reply::Idle`].
    Reset,
    /// End. There is no answer.
    Quit,
}

/// What an agent answers.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields, rename_all = "snake_case")]
pub enum Reply {
    /// To [`Request::Hello`].
    Hello(Box<Hello>),
    /// To [`Request::Arrange`] and [`Request::Verify`].
    Arranged {
        /// What became of each technique.
        conditions: Vec<Condition>,
    },
    /// To [`Request::Prepare`].
    Prepared(Prepared),
    /// To [`Request::Connect`].
    Connected,
    /// To [`Request::Run`].
    Done(Box<Outcome>),
    /// To [`Request::Calibrate`].
    Calibrated(Calibrated),
    /// To [`Request::Reset`].
    Idle,
    /// To any request: it cannot be done here.
    NotMeasured {
        /// Why, in words for the reader.
        reason: String,
    },
    /// To any request: it went wrong.
    Failed {
        /// What was tried, on which object, why it failed, what to do.
        error: String,
    },
}

/// What a worker that is prepared tells the others, which alone read it.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Prepared {
    /// What every rank of the point may know.
    pub address: Value,
    /// What only the rank needs that connects to it, by rank; null for those that do not.
    pub ways: Vec<Value>,
}

/// What a worker is told of a rank of its point.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Neighbour {
    /// [`Prepared::address`] of that rank.
    pub address: Value,
    /// What that rank has for this one: of its [`Prepared::ways`]; null where they do not connect.
    pub way: Value,
}

impl Neighbour {
    /// What each rank is told of all.
    pub(super) fn told(ranks: &[Prepared]) -> Vec<Vec<Self>> {
        let of = |one: usize, other: &Prepared| Self {
            address: other.address.clone(),
            way: other.ways.get(one).cloned().unwrap_or_default(),
        };
        (0..ranks.len()).map(|one| ranks.iter().map(|other| of(one, other)).collect()).collect()
    }
}

/// Who an agent is and what it has.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Hello {
    /// Its process, on its host.
    pub pid: u32,
    /// What its worker found.
    pub description: Description,
}

/// What a worker found on its host.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Description {
    /// The device; absent where there is none to open, which leaves every point not measured.
    pub device: Option<Device>,
    /// What the device cannot exceed.
    pub limits: Limits,
    /// The host.
    pub environment: Environment,
    /// What the measurement itself costs.
    pub overhead: Overhead,
}

/// What a device cannot exceed. A limit that is not known is absent and not checked.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct Limits {
    /// Largest payload that can be copied into a work request, in bytes.
    pub inline_bytes_max: Option<u64>,
    /// Longest message, in bytes.
    pub message_bytes_max: Option<u64>,
    /// Largest path MTU of the port, in bytes.
    pub mtu_bytes_max: Option<u32>,
    /// Deepest queue, in requests.
    pub depth_max: Option<u32>,
    /// Elements of a request.
    pub sge_max: Option<u32>,
    /// Queue pairs.
    pub queue_pairs_max: Option<u32>,
    /// RDMA Reads and atomics of a queue pair under way at the same time.
    pub reads_max: Option<u8>,
    /// What its port is on; absent where that is neither, or there is no link: a device in memory imitates one at most.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link_layer: Option<LinkLayer>,
    /// Whether there are atomic operations.
    pub has_atomics: Option<bool>,
}

/// A step towards the one-way time of a cache line between the CPUs of rank 0 and rank 1. The ranks must be on one host.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields, rename_all = "snake_case")]
pub enum CalibrationStep {
    /// To rank 0: make memory to share and say how it is opened.
    Offer,
    /// To rank 1: open it.
    Open {
        /// What rank 0's worker said; nobody else reads it.
        handle: Value,
    },
    /// To both, once opened, any number of times: bounce the line.
    Run,
}

/// The answer to a [`CalibrationStep`].
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields, rename_all = "snake_case")]
pub enum Calibrated {
    /// To [`CalibrationStep::Offer`].
    Offered {
        /// How rank 1 opens the memory.
        handle: Value,
    },
    /// To [`CalibrationStep::Open`].
    Opened,
    /// To [`CalibrationStep::Run`].
    Measured {
        /// Median one-way time, in ns.
        one_way_ns: f64,
    },
}

/// What one rank measured: statistics ready for the record.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct Outcome {
    /// Latency of the messages that it timed.
    pub latency: Option<Latency>,
    /// Further kinds of latency of the same messages.
    pub kinds: Vec<Timed>,
    /// Throughput, always of one direction: of what it received, or where it only sent, of what was acknowledged; of messages at
    /// a set rate, what was posted.
    pub throughput: Option<Throughput>,
    /// The distribution, where raw samples are not kept.
    pub histogram: Option<Histogram>,
    /// What it cost the thread that measured.
    pub cpu: Option<Cpu>,
    /// What its host counted meanwhile.
    pub host: BTreeMap<String, u64>,
    /// What one call costs, where calls were timed in batches.
    pub cost: Option<Cost>,
    /// Counters of the pattern and the device.
    pub counters: BTreeMap<String, u64>,
    /// How far apart the ranks of its host began each message, where it led them.
    pub skew: Option<Latency>,
    /// What another program said, where one measured.
    pub reported: Option<Reported>,
    /// How long a flood lasted that nothing acknowledges, at this end.
    pub lasted: Option<Lasted>,
    /// How its flood went beside others.
    pub passed: Option<Box<Passed>>,
    /// When its messages were timed, to count what others did meanwhile.
    pub timed: Option<Box<Window>>,
    /// The library that carried its messages, if one did.
    pub library: Option<String>,
    /// Where more ranks run on its CPUs than those are.
    pub oversubscribed: Option<Oversubscribed>,
    /// Why its numbers should not be trusted, e.g. a step in the series of samples.
    pub unstable: Option<String>,
    /// What the generator of a pipeline found.
    pub generated: Option<Box<Generated>>,
    /// The file of its samples, where they are kept.
    pub sunk: Option<Sunk>,
    /// What was stamped, where messages are timed one way.
    pub stamped: Option<Box<Stamped>>,
    /// Raw samples in ns, where they are kept. They travel behind the message.
    #[serde(skip)]
    pub samples: Vec<u64>,
}

/// For how long one end sent and heard, in s; absent in a direction that it has not.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Lasted {
    /// From the first message that it posted to the last.
    pub sent_s: Option<f64>,
    /// From the first message that it received to the last.
    pub heard_s: Option<f64>,
}

/// From when to when.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Window {
    /// The clock of the ticks.
    pub clock: Domain,
    /// In ticks.
    pub span: [u64; 2],
}

/// How far a flood was at which time, to be counted in the time that others were at it too.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Passed {
    /// The clock of the ticks, and how many it has in a second.
    pub clock: Domain,
    /// In Hz.
    pub tick_hz: f64,
    /// When it began, and when its own messages were done, in ticks.
    pub span: [u64; 2],
    /// Times in ticks, and messages that were done by then.
    pub seen: Vec<(u64, u64)>,
}

impl Request {
    /// The request as a frame.
    pub fn to_frame(&self) -> Frame {
        Frame { message: json(self), samples: Vec::new() }
    }

    /// The request of a frame.
    ///
    /// # Errors
    ///
    /// [`Error::BrokenFrame`] if it is none.
    pub fn from_frame(frame: &Frame) -> Result<Self, Error> {
        serde_json::from_slice(&frame.message).map_err(|err| unreadable(frame, &err))
    }
}

impl Reply {
    /// The reply as a frame.
    pub fn to_frame(mut self) -> Frame {
        let samples = match &mut self {
            Self::Done(outcome) => {
                let mut samples = std::mem::take(&mut outcome.samples);
                samples.extend(outcome.stamped.iter_mut().flat_map(|stamped| stamped.take_columns()));
                samples
            }
            _ => Vec::new(),
        };
        Frame { message: json(&self), samples }
    }

    /// The reply of a frame.
    ///
    /// # Errors
    ///
    /// [`Error::BrokenFrame`] if it is none.
    pub fn from_frame(mut frame: Frame) -> Result<Self, Error> {
        let mut reply = serde_json::from_slice(&frame.message).map_err(|err| unreadable(&frame, &err))?;
        if let Self::Done(outcome) = &mut reply {
            if let Some(stamped) = &mut outcome.stamped {
                stamped.put_columns(&mut frame.samples)?;
            }
            outcome.samples = frame.samples;
        }
        Ok(reply)
    }

    /// Its name, for an error about a reply out of turn.
    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::Hello(_) => "hello",
            Self::Arranged { .. } => "arranged",
            Self::Prepared(_) => "prepared",
            Self::Connected => "connected",
            Self::Done(_) => "done",
            Self::Calibrated(_) => "calibrated",
            Self::Idle => "idle",
            Self::NotMeasured { .. } => "not measured",
            Self::Failed { .. } => "failed",
        }
    }
}

fn json<T: Serialize>(message: &T) -> Vec<u8> {
    serde_json::to_vec(message).expect("messages have text keys only, so they are JSON")
}

fn unreadable(frame: &Frame, err: &serde_json::Error) -> Error {
    let reason = format!("the message {} cannot be read: {err}", super::frame::quotable(&frame.message));
    Error::BrokenFrame { reason }
}
