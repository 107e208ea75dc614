//! Messages under way on a link that is modelled ([`crate::transport::local::link`]).
//!
//! What is posted waits in the send queue, as what cannot be carried out yet does ([`crate::retry`]): until it leaves, when its
//! payload is fetched as by an adapter ([`FIRST_BYTES`]), and then until it is there; a reliable connection's completion then
//! waits for the acknowledgement. What the receiver was not ready for is sent again as it was fetched. Whatever verb the process
//! calls carries on with what is due. A program that calls none meanwhile (it watches its memory, or sleeps elsewhere) is served
//! by a thread, the [`Keeper`], late by its period.
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
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use verbs::LinkModel;
use verbs::abi::*;

use crate::context::Ctx;
use crate::memory::layout::SharedPort;
use crate::queue_pair::Qp;
use crate::retry::{Payload, Stage, Waiting};
use crate::send::SendQueue;
use crate::sys::limits::{MAX_MESSAGE_BYTES, MTU_BYTES};
use crate::sys::settings::{LinkLayer, link_layer};
use crate::transport::local::address::device_of;
use crate::transport::local::link::{Link, Ticks};
use crate::work::{AnyTask, Destination, Pieces, Task, Work};

/// Messages under way, and acknowledgements.
#[derive(Default)]
pub(crate) struct Flights {
    /// The model, while there is one.
    pub(crate) link: Option<Link>,
    /// What has arrived and asked for a completion: when that is due.
    acknowledged: std::collections::VecDeque<(Ticks, Work)>,
    pub(crate) lead: Lead,
}

/// How long before a message is due its delivery begins, in nanoseconds: what finding that it is due and delivering it take is
/// part of the link's latency, not added to it.
///
/// It follows what is seen of single messages, so that nine of ten are not there before their time. (The others are by less than
/// a turn of the loop in which the program polls.)
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Lead(u64);

impl Lead {
    /// No delivery takes longer, unless the program has not polled: of that nothing is learnt.
    const MAX_NS: u64 = 400;
    /// Steps for a message that was late, and for one that was early.
    const MORE: u64 = 1;
    const LESS: u64 = 9;

    /// Whether the delivery of what is due then has to begin.
    pub(crate) fn is_up(self, due: Ticks, now: Ticks) -> bool {
        due <= now.after(Duration::from_nanos(self.0))
    }

    /// A message that was due then is there now.
    pub(crate) fn learn(&mut self, due: Ticks, now: Ticks) {
        if now.ns_since(due) > 0 && now.ns_since(due) <= Self::MAX_NS {
            self.0 = (self.0 + Self::MORE).min(Self::MAX_NS);
        } else if now <= due {
            self.0 = self.0.saturating_sub(Self::LESS);
        }
    }
}

impl Flights {
    pub(crate) fn on(link: Option<Link>) -> Self {
        Self { link, ..Self::default() }
    }

    /// Whether no acknowledgement is under way.
    pub(crate) fn is_empty(&self) -> bool {
        self.acknowledged.is_empty()
    }
}

/// Bytes of a reliable connection's message that are fetched when it begins to leave: its first packet. An adapter reads on
/// while it sends, and all of it stays the program's to leave alone until it is acknowledged. (To copy long messages at once
/// would cost more than fast links leave time for.) What an unreliable service has sent is complete before it arrives, so that
/// is copied whole.
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
        let (bytes, mtu_bytes) = (waiting.payload_bytes(), self.mtu_bytes());
        let view = &self.host.arena.view;
        let own = view.port(self.device);
        let target = match waiting.task.destination() {
            Destination::Connection => self.peer(queue),
            Destination::Datagram(qp_num) => {
                self.datagram_target(queue, qp_num).map(|i| queue.datagram_target(i))
            }
            Destination::Nowhere => None,
        };
        let peer = target.map_or(&NOWHERE, |target| target.peer.view(view).port(device_of(target.port)));
        let is_in_memory = bytes > 0 && matches!(waiting.payload, Payload::Element(_) | Payload::Elements(_));
        waiting.schedule = Some(if waiting.is_answered() {
            link.ask(own, peer, now, (bytes, waiting.extended()), mtu_bytes)
        } else {
            let ready = if is_in_memory { link.fetched(now) } else { now };
            link.send(own, peer, ready, (bytes, waiting.extended()), mtu_bytes)
        });
    }

    /// Gives requests that have none their time on the link, in their order, from an instant on: until as many reads and atomics
    /// are under way as may be (`max_rd_atomic`), which those behind them wait for, too.
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
        let mtu = if self.ibv.qp_type == IBV_QPT_UD { IBV_MTU_4096 } else { self.attr.lock().path_mtu };
        128 << mtu.clamp(IBV_MTU_256, IBV_MTU_4096)
    }

    /// Takes the payloads of what leaves by `now`: what the program writes there afterwards is not sent.
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

    /// Takes the payload of a request out of the program's memory, if that is where it is; how many bytes it has, or what the
    /// requester finds wrong with it.
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

    /// Lets what has left arrive, before the queue pair forgets it: what an unreliable service has reported as sent is not
    /// lost because its sender has finished.
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

/// A thread that carries on with what is long due, for a program that calls no verb.
pub(crate) struct Keeper {
    link: Link,
    ends: Arc<Ending>,
    thread: Option<JoinHandle<()>>,
}

struct Ending {
    has_come: Mutex<bool>,
    changed: Condvar,
}

/// A context that a thread of its own looks after.
struct Kept(*const Ctx);

// SAFETY: a context is shared between threads, and its keeper ends before it goes.
unsafe impl Send for Kept {}

impl Keeper {
    /// How often it looks, and how often while it finds something: a look costs the program that it interrupts some
    /// microseconds.
    const SELDOM: Duration = Duration::from_millis(1);
    const OFTEN: Duration = Duration::from_micros(50);
    /// What is overdue by less will be done by the program.
    const PATIENCE_NS: u64 = 20_000;
    /// Looks at the higher rate after one that found something.
    const LOOKS: u32 = 200;

    fn start(ctx: &Ctx, link: Link) -> Self {
        let ends = Arc::new(Ending { has_come: Mutex::new(false), changed: Condvar::new() });
        let seen = Arc::clone(&ends);
        let kept = Kept(ctx);
        let thread = std::thread::Builder::new().name("softdev-link".to_owned());
        let thread = thread.spawn(move || Self::run(&kept, &seen)).ok();
        Self { link, ends, thread }
    }

    fn run(kept: &Kept, ends: &Ending) {
        // SAFETY: the keeper is ended, and waited for, before its context goes.
        let ctx = unsafe { &*kept.0 };
        let mut looks = 0_u32;
        let mut ended = ends.has_come.lock().unwrap_or_else(PoisonError::into_inner);
        while !*ended {
            let period = if looks > 0 { Self::OFTEN } else { Self::SELDOM };
            looks = looks.saturating_sub(1);
            let to_look = Ticks::now().after(period);
            let waited = ends.changed.wait_timeout(ended, period);
            ended = waited.unwrap_or_else(PoisonError::into_inner).0;
            if *ended || ctx.waiting.load(Relaxed) == 0 {
                continue;
            }
            // Not what has become due since: it may be the program's CPU that this thread has woken on.
            let overdue = ctx.next_due().is_some_and(|due| to_look.ns_since(due) > Self::PATIENCE_NS);
            if overdue {
                looks = Self::LOOKS;
                ctx.progress();
            }
        }
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        *self.ends.has_come.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.ends.changed.notify_all();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: Ticks = Ticks::from_ns(1_000_000);

    fn ns(ns: u64) -> Duration {
        Duration::from_nanos(ns)
    }

    #[test]
    fn a_delivery_begins_so_early_that_nine_of_ten_are_not_before_their_time() {
        let mut lead = Lead::default();
        let (mut early, mut late) = (0, 0);
        // A delivery takes 100 to 163 ns, found out by a polling loop.
        for i in 0..20_000_u64 {
            let (due, takes) = (START, 100 + i * 37 % 64);
            let there = Ticks::from_ns(1_000_000 + takes - lead.0.min(takes));
            lead.learn(due, there);
            if i > 1000 {
                *if there <= due { &mut early } else { &mut late } += 1;
            }
        }
        assert!((90..=120).contains(&lead.0), "{} ns", lead.0);
        assert!(early * 8 < late, "{early} early, {late} late");
        assert!(lead.is_up(START, START) && !lead.is_up(START.after(ns(200)), START));
    }

    #[test]
    fn nothing_is_learnt_of_a_program_that_does_not_poll() {
        let mut lead = Lead::default();
        lead.learn(START, START.after(ns(Lead::MAX_NS + 1)));
        assert_eq!(lead.0, 0);
    }
}
