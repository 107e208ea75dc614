//! A queue pair of an endpoint, with its requests and their state.

use verbs::abi::ibv_sge;
use verbs::{QueuePair, ReadyToSend, ReceiveRequest, SendRequest};

use super::numbering::Numbered;
use crate::Error;
use crate::endpoint::Mark;

/// The bits of a work request's identifier that count requests; the bits above name the lane.
const COUNT_BITS: u32 = 48;

/// The requests to one rank.
pub(super) struct Requests {
    /// Requests that are posted together, `post_list` of the plan.
    pub(super) list: Vec<SendRequest>,
    pub(super) last: SendRequest,
    pub(super) greeting: SendRequest,
}

/// One queue pair.
pub(super) struct Lane {
    qp: QueuePair<ReadyToSend>,
    /// The requests to each rank that it reaches, which messages take in turn: several only if
    /// datagrams share a queue pair.
    requests: Vec<Requests>,
    /// The rank whose turn it is.
    turn: usize,
    /// The requests of the list that wait until it is full.
    gathered: usize,
    /// The number of the lane, in its bits of identifiers.
    id: u64,
    posted: u64,
    /// The requests that are known to be complete.
    pub(super) completed: u64,
    /// The requests since the last one that requested a completion.
    pub(super) unsignaled: u64,
}

impl Lane {
    pub(super) fn new(id: u64, qp: QueuePair<ReadyToSend>, requests: Vec<Requests>) -> Self {
        let id = id << COUNT_BITS;
        Self { qp, requests, turn: 0, gathered: 0, id, posted: 0, completed: 0, unsignaled: 0 }
    }

    /// Returns how many ranks it reaches.
    pub(super) fn reaches(&self) -> usize {
        self.requests.len()
    }

    /// Moves to the next rank, for the next message.
    #[inline]
    fn turn_on(&mut self) {
        self.turn += 1;
        if self.turn == self.requests.len() {
            self.turn = 0;
        }
    }

    /// Returns the lane of an identifier, and how many of its requests are complete when this one
    /// is.
    #[inline]
    pub(super) fn of(id: u64) -> (usize, u64) {
        ((id >> COUNT_BITS) as usize, (id & ((1 << COUNT_BITS) - 1)) + 1)
    }

    /// Returns how many requests were posted and are not known to be complete.
    #[inline]
    pub(super) fn outstanding(&self) -> u64 {
        self.posted - self.completed
    }

    /// Returns whether a completion will come even if nothing more is posted.
    #[inline]
    pub(super) fn is_announced(&self) -> bool {
        self.outstanding() > self.unsignaled
    }

    /// Notes how many requests are complete; returns how many of them are new.
    #[inline]
    pub(super) fn complete(&mut self, completed: u64) -> u64 {
        let before = std::mem::replace(&mut self.completed, completed);
        completed - before
    }

    /// Posts the next request, or adds it to the list; returns whether the next message takes
    /// another lane.
    #[inline]
    pub(super) fn post(&mut self, signal_interval: u64) -> Result<bool, Error> {
        let is_due = self.is_due(signal_interval, Mark::More);
        let list = &mut self.requests[self.turn].list;
        let request = &mut list[self.gathered];
        request.set_signaled(is_due);
        request.set_id(self.id | self.posted);
        self.posted += 1;
        self.gathered += 1;
        let is_full = self.gathered == list.len();
        if is_full {
            self.post_gathered()?;
            self.turn_on();
        }
        Ok(is_full)
    }

    /// Posts a request like all others, with a completion that is not counted.
    #[inline]
    pub(super) fn post_alike(&mut self) -> Result<(), Error> {
        let request = &mut self.requests[0].list[0];
        request.set_signaled(true);
        Ok(self.qp.post_send(request)?)
    }

    /// Posts a request that the lane does not own.
    #[inline]
    pub(super) fn post_request(
        &mut self,
        request: &mut SendRequest,
        signal_interval: u64,
    ) -> Result<(), Error> {
        let is_due = self.is_due(signal_interval, Mark::More);
        request.set_signaled(is_due);
        request.set_id(self.id | self.posted);
        self.posted += 1;
        Ok(self.qp.post_send(request)?)
    }

    /// Returns whether the next request must request a completion.
    #[inline]
    fn is_due(&mut self, signal_interval: u64, mark: Mark) -> bool {
        self.unsignaled += 1;
        let is_due = self.unsignaled >= signal_interval || mark == Mark::Last;
        self.unsignaled = if is_due { 0 } else { self.unsignaled };
        is_due
    }

    /// Posts a message that carries its number.
    #[inline]
    pub(super) fn post_numbered(
        &mut self,
        message: Numbered,
        mark: Mark,
        signal_interval: u64,
    ) -> Result<(), Error> {
        let is_due = self.is_due(signal_interval, mark);
        let request = &mut self.requests[0].list[0];
        request.set_immediate(message.immediate);
        request.set_element(message.element);
        if let Some(to) = message.to {
            request.set_remote(to);
        }
        request.set_signaled(is_due);
        request.set_id(self.id | self.posted);
        self.posted += 1;
        Ok(self.qp.post_send(request)?)
    }

    /// Returns the bytes of the next message that is posted [inline](Self::post_inline).
    #[inline]
    pub(super) fn payload(&mut self) -> &mut [u8] {
        self.requests[0].list.last_mut().map(SendRequest::payload_mut).unwrap_or_default()
    }

    /// Posts an inline message of a pipeline, without a completion.
    #[inline]
    pub(super) fn post_inline(&mut self) -> Result<(), Error> {
        let Some(request) = self.requests[0].list.last_mut() else { return Ok(()) };
        request.set_id(self.id | self.posted);
        self.posted += 1;
        self.unsignaled += 1;
        Ok(self.qp.post_send(request)?)
    }

    /// Posts a message of a pipeline that is gathered from memory, with a completion. Returns how
    /// many requests are complete when it is.
    #[inline]
    pub(super) fn post_gathered_from(&mut self, element: ibv_sge) -> Result<u64, Error> {
        let request = &mut self.requests[0].list[0];
        request.set_element(element);
        request.set_signaled(true);
        request.set_id(self.id | self.posted);
        self.posted += 1;
        self.unsignaled = 0;
        self.qp.post_send(request)?;
        Ok(self.posted)
    }

    /// Posts the last request, after those of the list.
    pub(super) fn post_last(&mut self) -> Result<(), Error> {
        self.post_gathered()?;
        self.unsignaled = 0;
        let last = &mut self.requests[self.turn].last;
        last.set_id(self.id | self.posted);
        self.posted += 1;
        self.qp.post_send(last)?;
        self.turn_on();
        Ok(())
    }

    /// Sets the immediate data of greetings.
    pub(super) fn greet_with(&mut self, immediate: u32) {
        self.requests[self.turn].greeting.set_immediate(immediate);
    }

    /// Posts a message that is not measured and always arrives.
    pub(super) fn post_greeting(&mut self) -> Result<(), Error> {
        let greeting = &mut self.requests[self.turn].greeting;
        greeting.set_id(self.id | self.posted);
        self.posted += 1;
        self.qp.post_send(greeting)?;
        self.turn_on();
        Ok(())
    }

    #[inline]
    fn post_gathered(&mut self) -> Result<(), Error> {
        let gathered = std::mem::take(&mut self.gathered);
        Ok(self.qp.post_sends(&mut self.requests[self.turn].list[..gathered])?)
    }

    #[inline]
    pub(super) fn post_receive(&mut self, request: &mut ReceiveRequest) -> Result<(), Error> {
        Ok(self.qp.post_receive(request)?)
    }

    /// Sets the last byte of the next message if the request carries its payload inline; returns
    /// whether it does.
    #[inline]
    pub(super) fn stamp(&mut self, byte: u8, is_last: bool) -> bool {
        let requests = &mut self.requests[self.turn];
        let request = if is_last { &mut requests.last } else { &mut requests.list[0] };
        let end = request.payload_mut().last_mut();
        end.map(|end| *end = byte).is_some()
    }
}
