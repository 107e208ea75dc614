//! A queue pair of an endpoint, with the requests that are posted to it and what is known of them.

use verbs::{MemoryRegion, QueuePair, ReadyToSend, ReceiveRequest, SendRequest};

use super::numbering::Numbered;
use crate::Error;
use crate::endpoint::Mark;

/// Bits of a work request's identifier that count requests; those above name the lane.
const COUNT_BITS: u32 = 48;

/// One queue pair.
pub(super) struct Lane {
    qp: QueuePair<ReadyToSend>,
    /// Requests that are posted together: as many as the plan's `post_list` says.
    list: Vec<SendRequest>,
    /// Requests of the list that wait for it to be full.
    gathered: usize,
    last: SendRequest,
    greeting: SendRequest,
    /// The lane's number, in the bits where identifiers have it.
    id: u64,
    posted: u64,
    completed: u64,
    /// Sends since the last that asked for a completion.
    unsignaled: u64,
}

impl Lane {
    pub(super) fn new(
        id: u64,
        qp: QueuePair<ReadyToSend>,
        list: Vec<SendRequest>,
        last: SendRequest,
        greeting: SendRequest,
    ) -> Self {
        let id = id << COUNT_BITS;
        Self { qp, list, gathered: 0, last, greeting, id, posted: 0, completed: 0, unsignaled: 0 }
    }

    /// The lane that an identifier names, and how many of its requests are complete with it.
    #[inline]
    pub(super) fn of(id: u64) -> (usize, u64) {
        ((id >> COUNT_BITS) as usize, (id & ((1 << COUNT_BITS) - 1)) + 1)
    }

    /// Requests that were posted and are not known to be complete.
    #[inline]
    pub(super) fn outstanding(&self) -> u64 {
        self.posted - self.completed
    }

    /// Whether a completion is yet to come although nothing more is posted.
    #[inline]
    pub(super) fn is_announced(&self) -> bool {
        self.outstanding() > self.unsignaled
    }

    /// Takes note that so many requests are complete; gives how many that are new.
    #[inline]
    pub(super) fn complete(&mut self, completed: u64) -> u64 {
        let before = std::mem::replace(&mut self.completed, completed);
        completed - before
    }

    /// Posts the next request, or gathers it for a list; gives whether the next message is another lane's.
    #[inline]
    pub(super) fn post(&mut self, signal_interval: u64) -> Result<bool, Error> {
        let is_due = self.is_due(signal_interval, Mark::More);
        let request = &mut self.list[self.gathered];
        request.set_signaled(is_due);
        request.set_id(self.id | self.posted);
        self.posted += 1;
        self.gathered += 1;
        let is_full = self.gathered == self.list.len();
        if is_full {
            self.post_gathered()?;
        }
        Ok(is_full)
    }

    /// Whether the next request asks for a completion.
    #[inline]
    fn is_due(&mut self, signal_interval: u64, mark: Mark) -> bool {
        self.unsignaled += 1;
        let is_due = self.unsignaled >= signal_interval || mark == Mark::Last;
        self.unsignaled = if is_due { 0 } else { self.unsignaled };
        is_due
    }

    /// Posts a message that says its number.
    #[inline]
    pub(super) fn post_numbered(
        &mut self,
        message: Numbered,
        mark: Mark,
        signal_interval: u64,
    ) -> Result<(), Error> {
        let is_due = self.is_due(signal_interval, mark);
        let request = &mut self.list[0];
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

    /// Requests that are known to be complete.
    #[inline]
    pub(super) fn completed(&self) -> u64 {
        self.completed
    }

    /// Posts the last request, after those that were gathered.
    pub(super) fn post_last(&mut self) -> Result<(), Error> {
        self.post_gathered()?;
        self.unsignaled = 0;
        self.last.set_id(self.id | self.posted);
        self.posted += 1;
        Ok(self.qp.post_send(&mut self.last)?)
    }

    /// Gives greetings another immediate.
    pub(super) fn greet_with(&mut self, immediate: u32) {
        self.greeting.set_immediate(immediate);
    }

    /// Posts a message that is not measured and always arrives.
    pub(super) fn post_greeting(&mut self) -> Result<(), Error> {
        self.greeting.set_id(self.id | self.posted);
        self.posted += 1;
        Ok(self.qp.post_send(&mut self.greeting)?)
    }

    #[inline]
    fn post_gathered(&mut self) -> Result<(), Error> {
        let gathered = std::mem::take(&mut self.gathered);
        Ok(self.qp.post_sends(&mut self.list[..gathered])?)
    }

    #[inline]
    pub(super) fn post_receive(&mut self, request: &mut ReceiveRequest) -> Result<(), Error> {
        Ok(self.qp.post_receive(request)?)
    }

    /// Makes the next message end with a byte. `send` is where messages are gathered from.
    #[inline]
    pub(super) fn stamp(&mut self, byte: u8, is_last: bool, send: &mut MemoryRegion) -> Result<(), Error> {
        let request = if is_last { &mut self.last } else { &mut self.list[0] };
        match request.payload_mut().last_mut() {
            Some(end) => *end = byte,
            None => send.write(send.len() - 1, &[byte])?,
        }
        Ok(())
    }
}
