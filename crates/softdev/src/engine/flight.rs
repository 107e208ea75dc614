//! Messages under way on a link that is modelled ([`crate::transport::local::link`]).
//!
//! What is posted waits in the send queue, as what cannot be carried out yet does (`retry`): until
//! it leaves, when its payload is fetched as by an adapter ([`FIRST_BYTES`]), and then until it is
//! there; a reliable connection's completion then waits for the acknowledgement. What the receiver
//! was not ready for is sent again as it was fetched. Whatever verb the process calls carries on
//! with what is due. A program that calls none meanwhile (it watches its memory, or sleeps
//! elsewhere) is served by a thread, the [`Keeper`], late by its period.
//!
//! # Invariants
//!
//! * A link is imitated by waiting: what is posted is carried out when it would be there, by
//!   whatever verb the process calls next, and begun as much before as carrying it out takes. The
//!   payload is taken when it would leave (of a long message over RC, its first packet). A thread
//!   does it late for a program that calls none. Whoever carries on with what waits has what all
//!   others need for that, so it waits for no thread, which may be off its CPU. A number that it
//!   shaped says so in the record.

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

/// Bytes of a reliable connection's message that are fetched when it begins to leave: its first
/// packet. An adapter reads on while it sends, and all of it stays the program's to leave alone
/// until it is acknowledged. (To copy long messages at once would cost more than fast links leave
/// time for.) What an unreliable service has sent is complete before it arrives, so that is copied
/// whole.
const FIRST_BYTES: u64 = MTU_BYTES;

/// What elements have behind so many bytes.
fn behind(elements: &[ibv_sge], mut skipped: u32) -> Vec<ibv_sge> {
    let rest = |sge: &ibv_sge| {
        let n = sge.length.min(skipped);
        skipped -= n;
        ibv_sge { addr: sge.addr + u64::from(n), length: sge.length - n, lkey: sge.lkey }
    };
    elements.iter().map(rest).filter(|sge| sge.length > 0).collect()
}

/// Where messages go that reach nobody.
static NOWHERE: SharedPort = SharedPort::new();

impl Qp {
    /// Gives a work request that was just queued, or whose attempt is to be repeated, its time.
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

    /// Gives requests that have none their time on the link, in their order, from an instant on:
    /// until as many reads and atomics are under way as may be (`max_rd_atomic`), which those
    /// behind them wait for, too.
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

    /// Bytes of a packet's payload.
    fn mtu_bytes(&self) -> u64 {
        let is_datagram = self.ibv.qp_type == IBV_QPT_UD;
        let mtu = if is_datagram { active_mtu(self.device) } else { self.attr.lock().path_mtu };
        128 << mtu.clamp(IBV_MTU_256, IBV_MTU_4096)
    }

    /// Takes the payloads of what leaves by `now`: what the program writes there afterwards is not
    /// sent.
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
                    // What cannot be sent fails when it should leave.
                    schedule.is_there = now;
                    Stage::Faulty(status)
                }
            };
        }
    }

    /// Takes the payload of a request out of the program's memory, if that is where it is; how many
    /// bytes it has, or what the requester finds wrong with it.
    fn take_payload(&self, task: &AnyTask, payload: &mut Payload) -> Result<u64, ibv_wc_status> {
        if task.local_access().writes() {
            return Ok(0); // Nothing leaves but what the request says.
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

    /// Completes what an unreliable service has sent: it never learns more.
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

    /// Completes a work request that has done what it says, now or when its acknowledgement comes.
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

    /// Completes what is acknowledged by `now`.
    pub(crate) fn complete_acknowledged(&self, queue: &mut SendQueue, now: Ticks) {
        while let Some((due, work)) = queue.flights.acknowledged.front() {
            if *due > now {
                return;
            }
            self.complete(work, IBV_WC_SUCCESS);
            queue.flights.acknowledged.pop_front();
        }
    }

    /// When the next thing is due, if anything is under way; now where another thread is at it.
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

    /// Lets what has left arrive, before the queue pair forgets it: what an unreliable service has
    /// reported as sent is not lost because its sender has finished.
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
    /// When the next message is due, if one is under way.
    pub(crate) fn next_due(&self) -> Option<Ticks> {
        let queue_pairs = self.queue_pairs.lock().unwrap_or_else(PoisonError::into_inner);
        // SAFETY: a queue pair takes itself off the list, under the same lock, before it goes.
        queue_pairs.iter().filter_map(|qp| unsafe { &**qp }.next_due()).min()
    }

    /// The model for a new queue pair.
    pub(crate) fn link(&self) -> Option<Link> {
        self.keeper.lock().unwrap_or_else(PoisonError::into_inner).as_ref().map(|keeper| keeper.link)
    }
}

impl Ctx {
    /// Makes the links of the context's device like a model, or as they are.
    pub(crate) fn set_link(&self, model: Option<&LinkModel>) -> c_int {
        let link = model.map(|model| Link::new(model, link_layer() == LinkLayer::Ethernet));
        let queue_pairs = self.queue_pairs.lock().unwrap_or_else(PoisonError::into_inner);
        // SAFETY: a queue pair takes itself off the list, under the same lock, before it goes.
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
