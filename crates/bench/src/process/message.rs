//! The messages between coordinator and agents. Every request has exactly one reply.

use measure::conditions::{Condition, Wanted};
use measure::record::{Device, Environment, Overhead};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::frame::Frame;
use crate::Error;
pub use crate::pattern::outcome::Outcome;
use crate::point::{LinkLayer, PointSpec};

/// A request of the coordinator to an agent.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields, rename_all = "snake_case")]
pub enum Request {
    /// Describe yourself. The answer is [`Reply::Hello`].
    Hello {
        /// The rank of the agent.
        rank: u32,
        /// The number of ranks.
        ranks: u32,
    },
    /// Measure the points to come as this rank. The answer is [`Reply::Idle`].
    Become {
        /// The rank.
        rank: u32,
        /// The CPU to pin it to; absent where it stays where it is.
        cpu: Option<u32>,
    },
    /// Arrange the conditions of the points to come, and revert those of earlier points. The answer
    /// is [`Reply::Arranged`].
    Arrange {
        /// The conditions.
        conditions: Box<Wanted>,
        /// The CPUs that ranks of the same host are pinned to, one entry for each rank.
        ranks: Vec<u32>,
    },
    /// Check the arranged conditions again, after a point. The answer is [`Reply::Arranged`] with
    /// the techniques whose outcome has changed.
    Verify,
    /// Set a point up as far as possible without the other ranks. The answer is
    /// [`Reply::Prepared`].
    Prepare(Box<PointSpec>),
    /// Connect to the other ranks. The answer is [`Reply::Connected`].
    Connect {
        /// What the point's ranks returned when they were prepared, in rank order, this rank
        /// included.
        ranks: Vec<Neighbour>,
    },
    /// Measure. The answer is [`Reply::Done`].
    Run,
    /// End the running point early, if its pattern can. The answer to [`Request::Run`] comes
    /// earlier; there is no other answer.
    Cut,
    /// Do a step of the measurement of the core-to-core latency. The answer is
    /// [`Reply::Calibrated`].
    Calibrate(CalibrationStep),
    /// Take the point down, whether or not it succeeded. The answer is [`Reply::Idle`].
    Reset,
    /// End. There is no answer.
    Quit,
}

/// The answer of an agent.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields, rename_all = "snake_case")]
pub enum Reply {
    /// To [`Request::Hello`].
    Hello(Box<Hello>),
    /// To [`Request::Arrange`] and [`Request::Verify`].
    Arranged {
        /// The outcome of each technique.
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
    /// To [`Request::Become`] and [`Request::Reset`].
    Idle,
    /// To any request: it cannot be done on this host.
    NotMeasured {
        /// The reason, for the reader of the report.
        reason: String,
    },
    /// To any request: it failed.
    Failed {
        /// What was tried, on which object, why it failed, what to do.
        error: String,
    },
}

/// What a prepared worker sends to the workers of the other ranks. The coordinator does not read
/// it.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Prepared {
    /// The part for every rank of the point.
    pub address: Value,
    /// The part for one rank each, by rank; null for ranks that do not connect to this one.
    pub ways: Vec<Value>,
}

/// What a worker receives about a rank of its point.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Neighbour {
    /// [`Prepared::address`] of that rank.
    pub address: Value,
    /// The entry of [`Prepared::ways`] of that rank for this one; null where they do not connect.
    pub way: Value,
}

impl Neighbour {
    /// Returns, for each rank, what it receives about all ranks.
    pub(super) fn told(ranks: &[Prepared]) -> Vec<Vec<Self>> {
        let of = |one: usize, other: &Prepared| Self {
            address: other.address.clone(),
            way: other.ways.get(one).cloned().unwrap_or_default(),
        };
        (0..ranks.len()).map(|one| ranks.iter().map(|other| of(one, other)).collect()).collect()
    }
}

/// The identity of an agent, and the description of its host.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Hello {
    /// The process ID on its host.
    pub pid: u32,
    /// The description by its worker.
    pub description: Description,
}

impl Hello {
    /// Gives all parts the rank that this process gave the worker: the worker might name another.
    pub(super) fn of_rank(mut self, rank: u32) -> Self {
        let Description { device, environment, overhead, .. } = &mut self.description;
        environment.rank = rank;
        overhead.rank = rank;
        device.iter_mut().for_each(|device| device.rank = rank);
        self
    }
}

/// The device, host and overhead that a worker found.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Description {
    /// The device; absent where there is none to open, so that no point is measured.
    pub device: Option<Device>,
    /// The limits of the device.
    pub limits: Limits,
    /// The host.
    pub environment: Environment,
    /// The cost of the measurement itself.
    pub overhead: Overhead,
}

/// The limits of a device. An unknown limit is absent and not checked.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct Limits {
    /// The largest inline payload, in bytes.
    pub inline_bytes_max: Option<u64>,
    /// The longest message, in bytes.
    pub message_bytes_max: Option<u64>,
    /// The largest path MTU of the port, in bytes.
    pub mtu_bytes_max: Option<u32>,
    /// The deepest queue, in work requests.
    pub depth_max: Option<u32>,
    /// The most scatter/gather elements of a work request.
    pub sge_max: Option<u32>,
    /// The most queue pairs.
    pub queue_pairs_max: Option<u32>,
    /// The most outstanding RDMA Reads and atomics of a queue pair.
    pub reads_max: Option<u8>,
    /// The link layer of the port; absent where it is neither InfiniBand nor Ethernet, or where
    /// there is no link: a device in memory has a link model at most.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link_layer: Option<LinkLayer>,
    /// Whether the device has atomic operations.
    pub has_atomics: Option<bool>,
    /// The system of a device that reaches only the memory of that system; absent where the device
    /// reaches a network.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub own_system: Option<u64>,
}

/// A step of the measurement of the core-to-core latency between rank 0 and rank 1. The ranks must
/// be on one host.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields, rename_all = "snake_case")]
pub enum CalibrationStep {
    /// To rank 0: create memory to share, and return how to open it.
    Offer,
    /// To rank 1: open the memory.
    Open {
        /// The handle from rank 0's worker. The coordinator does not read it.
        handle: Value,
    },
    /// To both, once the memory is open, any number of times: bounce the cache line.
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
        /// The median one-way time, in ns.
        one_way_ns: f64,
    },
}

impl Request {
    /// Encodes the request as a frame.
    pub fn to_frame(&self) -> Frame {
        Frame { message: json(self), samples: Vec::new() }
    }

    /// Decodes the request of a frame.
    ///
    /// # Errors
    ///
    /// [`Error::BrokenFrame`] if the frame is not a request.
    pub fn from_frame(frame: &Frame) -> Result<Self, Error> {
        serde_json::from_slice(&frame.message).map_err(|err| unreadable(frame, &err))
    }
}

impl Reply {
    /// Encodes the reply as a frame.
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

    /// Decodes the reply of a frame.
    ///
    /// # Errors
    ///
    /// [`Error::BrokenFrame`] if the frame is not a reply.
    pub fn from_frame(mut frame: Frame) -> Result<Self, Error> {
        let mut reply = serde_json::from_slice(&frame.message).map_err(|err| unreadable(&frame, &err))?;
        if let Self::Done(outcome) = &mut reply {
            let words = outcome.column_words;
            let all = frame.samples.len();
            let first = all.checked_sub(words).ok_or_else(|| Error::BrokenFrame {
                reason: format!("{all} numbers follow a message that announces at least {words}"),
            })?;
            outcome.columns = frame.samples.split_off(first);
            outcome.samples = frame.samples;
        }
        Ok(reply)
    }

    /// Returns the name of the reply, for an error about a reply out of turn.
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

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn a_worker_has_the_rank_that_it_was_given() {
        let liar = Hello {
            pid: 1,
            description: Description {
                device: Some(Device {
                    rank: 4_000_000_000,
                    name: "d".to_owned(),
                    provider: "p".to_owned(),
                    attributes: BTreeMap::new(),
                }),
                limits: Limits::default(),
                environment: Environment { rank: 7, ..Environment::default() },
                overhead: Overhead { rank: 8, ..Overhead::default() },
            },
        };
        let Description { device, environment, overhead, .. } = liar.of_rank(2).description;
        assert_eq!((device.unwrap().rank, environment.rank, overhead.rank), (2, 2, 2));
    }
}
