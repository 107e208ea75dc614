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
    /// When the peer first did not answer.
    pub(crate) unanswered_since: Option<Ticks>,
    pub(crate) rnr_retries: u8,
    pub(crate) not_before: Ticks,
    /// Its time on a modelled link; none yet if it waits for Reads to be over, or for another
    /// attempt.
    pub(crate) schedule: Option<Schedule>,
    /// Whether it starts only when the Reads and atomics before it are over, because it may send
    /// what they bring.
    pub(crate) fenced: bool,
    pub(crate) stage: Stage,
}

/// The progress of a work request on a modelled link.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Stage {
    Posted,
    /// Its payload, if it has one, is fetched.
    Fetched,
    /// It has left; its service learns no more.
    Sent,
    /// It was found to be faulty when it should have been fetched.
    Faulty(ibv_wc_status),
}

impl Waiting {
    /// Returns the bytes that it moves.
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

    /// Returns the headers that it has on a link in addition to those of each packet.
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

    /// Whether its peer answers with bytes: a Read or an atomic.
    pub(crate) fn is_answered(&self) -> bool {
        match &self.task {
            AnyTask::Send(_) => false,
            AnyTask::Reach(remote) => remote.local_access().writes(),
        }
    }

    /// Whether another attempt is due.
    pub(crate) fn is_due(&self, now: Ticks, lead: Lead) -> bool {
        // However short the latency is, nothing arrives before it was fetched.
        let arrives = |schedule: Schedule| self.stage != Stage::Posted && lead.is_up(schedule.is_there, now);
        now >= self.not_before && self.schedule.is_none_or(arrives)
    }
}

/// The place of a waiting payload.
pub(crate) enum Payload {
    /// In the program's memory, to be checked when it is sent.
    Elements(Vec<ibv_sge>),
    /// One of them.
    Element([ibv_sge; 1]),
    /// Copied when it was posted inline, or when a modelled link has fetched it.
    Copied(Vec<u8>),
    /// The start of a long payload was fetched, the rest was not.
    Begun(Vec<u8>, Vec<ibv_sge>),
}
