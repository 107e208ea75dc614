//! Work requests that wait.

use verbs::abi::*;

use crate::objects::flights::Lead;
use crate::objects::work::{AnyTask, Work};
use crate::transport::local::link::{Extended, Schedule, Ticks};

/// A work request that waits.
pub(crate) struct Waiting {
    pub(crate) work: Work,
    pub(crate) task: AnyTask,
    pub(crate) payload: Payload,
    /// Set with the first attempt that nobody answered.
    pub(crate) unanswered_since: Option<Ticks>,
    pub(crate) rnr_retries: u8,
    pub(crate) not_before: Ticks,
    /// Its time on a link that is modelled; none yet where it waits for reads to be over, or for
    /// another attempt.
    pub(crate) schedule: Option<Schedule>,
    /// It may send what the reads and atomics before it bring: it begins when they are over.
    pub(crate) fenced: bool,
    pub(crate) stage: Stage,
}

/// How far a work request has come on a link that is modelled.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Stage {
    Posted,
    /// Its payload, if it has one, is no longer the program's.
    Fetched,
    /// It has left, and that is all that its service will know.
    Sent,
    /// It was found to be wrong when it should have been fetched.
    Faulty(ibv_wc_status),
}

impl Waiting {
    /// Bytes that it moves.
    pub(crate) fn payload_bytes(&self) -> u64 {
        let sum =
            |elements: &[ibv_sge]| elements.iter().map(|element| u64::from(element.length)).sum::<u64>();
        match &self.payload {
            Payload::Elements(elements) => sum(elements),
            Payload::Begun(bytes, elements) => bytes.len() as u64 + sum(elements),
            Payload::Element([element]) => u64::from(element.length),
            Payload::Copied(bytes) => bytes.len() as u64,
        }
    }

    /// Headers that it has on a link besides those of each packet.
    pub(crate) fn extended(&self) -> Extended {
        let immediate = if self.work.imm.is_some() { Extended::IMMEDIATE } else { 0 };
        match &self.task {
            AnyTask::Send(sending) if sending.is_datagram() => {
                Extended { each: Extended::DATAGRAM, once: immediate }
            }
            AnyTask::Send(_) => Extended { each: 0, once: immediate },
            AnyTask::Reach(remote) => Extended { each: 0, once: remote.header_bytes() + immediate },
        }
    }

    /// Whether its peer answers with bytes: a read or an atomic.
    pub(crate) fn is_answered(&self) -> bool {
        match &self.task {
            AnyTask::Send(_) => false,
            AnyTask::Reach(remote) => remote.local_access().writes(),
        }
    }

    /// Whether another attempt is due.
    pub(crate) fn is_due(&self, now: Ticks, lead: Lead) -> bool {
        // However short the way is, nothing arrives before it was fetched.
        let arrives = |schedule: Schedule| self.stage != Stage::Posted && lead.is_up(schedule.is_there, now);
        now >= self.not_before && self.schedule.is_none_or(arrives)
    }
}

/// Where a waiting payload is.
pub(crate) enum Payload {
    /// In the program's memory, to be checked when it is sent.
    Elements(Vec<ibv_sge>),
    /// As one of them.
    Element([ibv_sge; 1]),
    /// Copied when it was posted inline, or when a link that is modelled has fetched it.
    Copied(Vec<u8>),
    /// The beginning of a long one has been fetched, what is behind it has not.
    Begun(Vec<u8>, Vec<ibv_sge>),
}
