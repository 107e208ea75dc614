//! What coordinator and agents say to each other. Every request has exactly one reply.

use measure::conditions::{Condition, Wanted};
use measure::record::{Device, Environment, Overhead};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::frame::Frame;
use crate::Error;
pub use crate::pattern::outcome::Outcome;
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
    /// Arrange the conditions of the points to come, and take back those of the points before. The
    /// answer is [`Reply::Arranged`].
    Arrange {
        /// What is asked of the machine.
        conditions: Box<Wanted>,
        /// CPUs that the ranks of the same host are pinned to, each as often as a rank has it.
        ranks: Vec<u32>,
    },
    /// Look again at what was arranged, after a point. The answer is [`Reply::Arranged`] with those
    /// techniques of which something else is true than was said.
    Verify,
    /// Set a point up as far as it goes without the other ranks. The answer is [`Reply::Prepared`].
    Prepare(Box<PointSpec>),
    /// Connect to the other ranks. The answer is [`Reply::Connected`].
    Connect {
        /// What the workers of the point's ranks, in rank order and this one among them, said when
        /// they were prepared.
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
    /// What its port is on; absent where that is neither, or there is no link: a device in memory
    /// imitates one at most.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link_layer: Option<LinkLayer>,
    /// Whether there are atomic operations.
    pub has_atomics: Option<bool>,
    /// The system whose memory is all that it reaches; absent where it reaches a network.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub own_system: Option<u64>,
}

/// A step towards the one-way time of a cache line between the CPUs of rank 0 and rank 1. The ranks
/// must be on one host.
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
                samples.append(&mut outcome.columns);
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
            let words = outcome.column_words;
            let all = frame.samples.len();
            let first = all.checked_sub(words).ok_or_else(|| Error::BrokenFrame {
                reason: format!("{all} numbers follow the message, which speaks of {words}"),
            })?;
            outcome.columns = frame.samples.split_off(first);
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
