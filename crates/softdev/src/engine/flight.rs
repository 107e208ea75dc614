//! Messages under way on a modelled link ([`crate::transport::local::link`]).
//!
//! A posted request waits in the send queue, like one that cannot be carried out yet (`retry`):
//! first until it leaves, when its payload is fetched as by an adapter ([`FIRST_BYTES`]), and then
//! until it arrives. On a reliable connection, its completion then waits for the acknowledgement.
//! If the receiver was not ready, the message is sent again as it was fetched. The next verb that
//! the process calls carries out what is due. For a program that calls none (it watches its memory,
//! or sleeps elsewhere), a thread does it, the [`Keeper`], late by its period.
//!
//! # Invariants
//!
//! * A link is modelled by waiting. The next verb that the process calls carries out a message when
//!   it would arrive; it begins earlier by the time that carrying it out takes.
//! * The payload is fetched when the message would leave; for a long message over RC, only the
//!   first packet.
//! * For a program that calls no verb, a thread does all this, late.
//! * A thread that makes progress holds what all other threads need for that. It therefore waits
//!   for no thread, which may be preempted.
//! * A number that a link model has shaped says so in the record.

use std::ffi::c_int;
use std::sync::PoisonError;
use std::sync::atomic::Ordering::Relaxed;

use verbs::LinkModel;
use verbs::abi::*;

use crate::engine::task::Task;
use crate::memory::layout::SharedPort;
use crate::memory::pieces::Pieces;
use crate::objects::context::Ctx;
use crate::objects::keeper::Keeper;
use crate::objects::queue_pair::Qp;
use crate::objects::send_queue::SendQueue;
use crate::objects::waiting::{Payload, Stage, Waiting};
use crate::objects::work::{AnyTask, Destination};
use crate::sys::limits::{MAX_MESSAGE_BYTES, MTU_BYTES};
use crate::sys::settings::{LinkLayer, link_layer};
use crate::transport::local::gids::active_mtu;
use crate::transport::local::link::{Link, Ticks};

/// How many bytes of a message over RC are fetched when it begins to leave: its first packet. An
/// adapter reads on while it sends, and the program must not change any of it until it is
/// acknowledged. (A copy of a whole long message would take more time than fast links leave.) A
/// message of an unreliable service is complete before it arrives, so it is copied whole.
const FIRST_BYTES: u64 = MTU_BYTES;

/// Returns the elements without their first `skipped` bytes.
fn behind(elements: &[ibv_sge], mut skipped: u32) -> Vec<ibv_sge> {
    let rest = |sge: &ibv_sge| {
        let n = sge.length.min(skipped);
        skipped -= n;
        ibv_sge { addr: sge.addr + u64::from(n), length: sge.length - n, lkey: sge.lkey }
    };
    elements.iter().map(rest).filter(|sge| sge.length > 0).collect()
}

/// The port for messages that reach no queue pair.
static NOWHERE: SharedPort = SharedPort::new();

impl Qp {
    /// Schedules a work request that was just queued, or that is to be tried again.
    pub(crate) fn schedule(&self, queue: &mut SendQueue, waiting: &mut Waiting, now: Ticks) {
        let Some(link) = queue.flights.link else { return };
        let bytes = waiting.payload_bytes();
        let mtu_bytes = self.mtu_bytes();
        let view = &self.host.arena.view;
        let own = view.port(self.device);
        let target = match waiting.task.destination() {
            Destination::Connection => self.peer(queue),
            Destination::Datagram(qp_num) => {
                self.datagram_target(queue, qp_num).map(|i| queue.datagram_target(i))
            }
            Destination::Nowhere => None,
        };
        let peer = target.map_or(&NOWHERE, |target| target.port(view));
        let is_in_memory = bytes > 0 && matches!(waiting.payload, Payload::Element(_) | Payload::Elements(_));
        waiting.schedule = Some(if waiting.is_answered() {
            link.ask(own, peer, now, bytes, waiting.extended(), mtu_bytes)
        } else {
            let ready = if is_in_memory { link.fetched(now) } else { now };
            link.send(own, peer, ready, bytes, waiting.extended(), mtu_bytes)
        });
    }

    /// Schedules requests that have no time on the link yet, in their order, from an instant on. It
    /// stops when as many Reads and atomics are under way as are allowed (`max_rd_atomic`): the
    /// requests behind them wait, too.
    pub(crate) fn admit(&self, queue: &mut SendQueue, from: Ticks) {
        if queue.flights.link.is_none() {
            return;
        }
        let most = usize::from(self.initiator_depth.load(Relaxed)).max(1);
        for index in queue.stalled()..queue.waiting.len() {
            let Some(mut waiting) = queue.waiting.remove(index) else { return };
            let is_stalled = waiting.is_answered() && queue.asking() >= most;
            if !is_stalled {
                let from = from.max(waiting.not_before);
                let begins = if waiting.fenced { queue.answered().max(from) } else { from };
                self.schedule(queue, &mut waiting, begins);
            }
            queue.waiting.insert(index, waiting);
            if is_stalled {
                return;
            }
        }
    }

    /// Returns the payload bytes of a packet.
    fn mtu_bytes(&self) -> u64 {
        let is_datagram = self.ibv.qp_type == IBV_QPT_UD;
        let mtu = if is_datagram { active_mtu(self.device) } else { self.attr.lock().path_mtu };
        128 << mtu.clamp(IBV_MTU_256, IBV_MTU_4096)
    }

    /// Fetches the payloads of messages that leave by `now`: what the program writes there
    /// afterwards is not sent.
    pub(crate) fn fetch(&self, queue: &mut SendQueue, now: Ticks) {
        let next = queue.next(|stage| stage == Stage::Posted);
        for index in next..queue.waiting.len() {
            if queue.waiting[index].fenced && queue.waiting.range(..index).any(Waiting::is_answered) {
                return;
            }
            let waiting = &mut queue.waiting[index];
            let Some(schedule) = waiting.schedule.as_mut().filter(|schedule| schedule.leaves <= now) else {
                return;
            };
            waiting.stage = match self.take_payload(&waiting.task, &mut waiting.payload) {
                Ok(bytes) => {
                    waiting.work.bytes = bytes as u32;
                    Stage::Fetched
                }
                Err(status) => {
                    // A request that cannot be sent fails when it should leave.
                    schedule.is_there = now;
                    Stage::Faulty(status)
                }
            };
        }
    }

    /// Fetches the payload of a request from the program's memory, if it is still there. Returns
    /// its length in bytes, or the error that the requester finds.
    fn take_payload(&self, task: &AnyTask, payload: &mut Payload) -> Result<u64, ibv_wc_status> {
        if task.local_access().writes() {
            return Ok(0); // Only the request leaves.
        }
        let mut pieces = Pieces::new();
        if !self.gather_waiting(task, payload, &mut pieces) {
            return Err(IBV_WC_LOC_PROT_ERR);
        }
        if let Some(status) = task.local_fault(self, pieces.bytes()) {
            return Err(status);
        }
        let elements: &[ibv_sge] = match payload {
            Payload::Copied(_) | Payload::Begun(..) => return Ok(pieces.bytes()),
            Payload::Elements(elements) => elements,
            Payload::Element(element) => element,
        };
        let most = if self.ibv.qp_type == IBV_QPT_RC { FIRST_BYTES } else { MAX_MESSAGE_BYTES };
        // SAFETY: the pieces were just located.
        let bytes = unsafe { pieces.to_vec(most) };
        *payload = if bytes.len() as u64 == pieces.bytes() {
            Payload::Copied(bytes)
        } else {
            let rest = behind(elements, bytes.len() as u32);
            Payload::Begun(bytes, rest)
        };
        Ok(pieces.bytes())
    }

    /// Completes messages of an unreliable service that have left: it never learns more.
    pub(crate) fn complete_departed(&self, queue: &mut SendQueue, now: Ticks) {
        if self.ibv.qp_type == IBV_QPT_RC {
            return;
        }
        let next = queue.next(|stage| stage != Stage::Sent);
        for waiting in queue.waiting.range_mut(next..) {
            let has_left = waiting.schedule.is_some_and(|schedule| schedule.has_left <= now);
            if waiting.stage != Stage::Fetched || !has_left {
                return;
            }
            waiting.stage = Stage::Sent;
            if waiting.work.signaled {
                self.complete(&waiting.work, IBV_WC_SUCCESS);
            }
        }
    }

    /// Completes a work request that was carried out, now or when its acknowledgement arrives.
    pub(crate) fn arrived(&self, queue: &mut SendQueue, waiting: &Waiting) {
        if !waiting.work.signaled || waiting.stage == Stage::Sent {
            return;
        }
        match waiting.schedule {
            Some(schedule) if self.ibv.qp_type == IBV_QPT_RC => {
                queue.flights.acknowledged.push_back((schedule.is_acknowledged, waiting.work));
            }
            _ => self.complete(&waiting.work, IBV_WC_SUCCESS),
        }
    }

    /// Completes the requests that are acknowledged by `now`.
    pub(crate) fn complete_acknowledged(&self, queue: &mut SendQueue, now: Ticks) {
        while let Some((due, work)) = queue.flights.acknowledged.front() {
            if *due > now {
                return;
            }
            self.complete(work, IBV_WC_SUCCESS);
            queue.flights.acknowledged.pop_front();
        }
    }

    /// Returns when the next step is due, if anything is under way; now if another thread uses the
    /// queue.
    fn next_due(&self) -> Option<Ticks> {
        let Some(queue) = self.send.lock_if_free() else { return Some(Ticks::now()) };
        let schedule = |index: usize| queue.waiting.get(index).and_then(|waiting| waiting.schedule);
        let arrives = schedule(0).map(|schedule| schedule.is_there);
        let leaves = schedule(queue.next(|stage| stage == Stage::Posted)).map(|schedule| schedule.leaves);
        let is_reliable = self.ibv.qp_type == IBV_QPT_RC;
        let sent = schedule(queue.next(|stage| stage != Stage::Sent)).filter(|_| !is_reliable);
        let sent = sent.map(|schedule| schedule.has_left);
        let acknowledged = queue.flights.acknowledged.front().map(|(due, _)| *due);
        [arrives, leaves, sent, acknowledged].into_iter().flatten().min()
    }

    /// Waits until messages that have left arrive, before the queue pair forgets them: a message
    /// that an unreliable service has reported as sent is not lost because its sender has finished.
    pub(crate) fn land(&self) {
        let has_departed = || {
            let queue = self.send.lock();
            queue.flights.link.is_some()
                && queue.waiting.front().is_some_and(|waiting| waiting.stage == Stage::Sent)
        };
        while self.state() != IBV_QPS_ERR && has_departed() {
            self.retry();
            std::thread::yield_now();
        }
    }
}

impl Ctx {
    /// Returns when the next message is due, if one is under way.
    pub(crate) fn next_due(&self) -> Option<Ticks> {
        let queue_pairs = self.queue_pairs.lock().unwrap_or_else(PoisonError::into_inner);
        // SAFETY: a queue pair removes itself from the list, under the same lock, before it is
        // destroyed.
        queue_pairs.iter().filter_map(|qp| unsafe { &**qp }.next_due()).min()
    }

    /// Returns the model for a new queue pair.
    pub(crate) fn link(&self) -> Option<Link> {
        self.keeper.lock().unwrap_or_else(PoisonError::into_inner).as_ref().map(|keeper| keeper.link)
    }
}

impl Ctx {
    /// Sets the link model of the context; `None` removes it. Returns EBUSY if a send waits or is
    /// under way.
    pub(crate) fn set_link(&self, model: Option<&LinkModel>) -> c_int {
        let link = model.map(|model| Link::new(model, link_layer() == LinkLayer::Ethernet));
        let queue_pairs = self.queue_pairs.lock().unwrap_or_else(PoisonError::into_inner);
        // SAFETY: a queue pair removes itself from the list, under the same lock, before it is
        // destroyed.
        let mut queues: Vec<_> = queue_pairs.iter().map(|qp| unsafe { &**qp }.send.lock()).collect();
        if queues.iter().any(|queue| !queue.is_idle()) {
            return libc::EBUSY;
        }
        for queue in &mut queues {
            queue.flights.link = link;
        }
        drop(queues);
        drop(queue_pairs);
        let keeper = link.map(|link| Keeper::start(self, link));
        *self.keeper.lock().unwrap_or_else(PoisonError::into_inner) = keeper;
        0
    }
}
