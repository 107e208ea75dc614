//! The slot protocol in states that only an accident reaches: marks that lag behind, peers that die
//! half-way.

mod hostile;

use std::sync::atomic::AtomicPtr;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::mpsc::channel;
use std::time::Duration;

use verbs::abi::*;
use verbs::{
    AddressHandle, Completion, CompletionQueue, Connection, GlobalRoute, Initialisation, MemoryRegion, Mtu,
    QueuePair, QueuePairOptions, ReadyToSend, ReceiveRequest, Route, SendRequest, Service, devices,
};

use crate::engine::arrive::PATIENCE;
use crate::memory::layout::SharedQp;
use crate::memory::slots::{FLAG_IN_SLOT, Ring, Slot, SlotState};
use crate::objects::queue_pair::Qp;
use crate::objects::srq::Srq;
use crate::sys::limits::QP_INDEX_BITS;
use crate::transport::local::host::host;
use crate::transport::local::order::Refusal;
use crate::transport::local::target::index;

const QKEY: u32 = 1;
const PAYLOAD: usize = 1000;

/// A datagram queue pair that sends to itself.
struct Echo {
    pair: QueuePair<ReadyToSend>,
    sends: CompletionQueue,
    receives: CompletionQueue,
    region: MemoryRegion,
    handle: AddressHandle,
    posted: u64,
}

impl Echo {
    fn new(max_recv_wr: u32) -> Self {
        let device = devices(&crate::PROVIDER).unwrap().remove(0);
        let context = device.open().unwrap();
        let pd = context.protection_domain().unwrap();
        let sends = context.completion_queue(16, None).unwrap();
        let receives = context.completion_queue(16, None).unwrap();
        let options = QueuePairOptions {
            service: Service::Ud,
            max_send_wr: 4,
            max_recv_wr,
            max_send_sge: 1,
            max_recv_sge: 1,
            max_inline_data: 0,
        };
        let gid = context.gid(1, 0).unwrap();
        let global = Some(GlobalRoute { gid_index: 0, gid, traffic_class: 0 });
        let route = Route { port: 1, lid: 0, service_level: 0, global };
        let to = Connection {
            qp_num: 0,
            peer_psn: 0,
            own_psn: 0,
            mtu: Mtu::from_bytes(4096).unwrap(),
            route,
            timeout: 0,
            retry_count: 0,
            rnr_retry: 0,
            min_rnr_timer: 0,
            responder_reads: 0,
            initiator_reads: 0,
        };
        let with = Initialisation { port: 1, pkey_index: 0, qkey: QKEY, access: 0 };
        let pair = pd.queue_pair(&options, &sends, &receives).unwrap().init(&with).unwrap();
        let pair = pair.ready_to_receive(&to).unwrap().ready_to_send(&to).unwrap();
        let region = pd.memory_region(1 << 16, IBV_ACCESS_LOCAL_WRITE).unwrap();
        let handle = pd.address_handle(&route).unwrap();
        Self { pair, sends, receives, region, handle, posted: 0 }
    }

    fn post(&mut self) {
        let request = vec![self.region.sge(4096, 4096).unwrap()];
        self.pair.post_receive(&mut ReceiveRequest::new(self.posted, request)).unwrap();
        self.posted += 1;
    }

    fn send(&mut self) {
        self.send_to(self.pair.number());
    }

    fn send_to(&mut self, number: u32) {
        let elements = vec![self.region.sge(0, PAYLOAD).unwrap()];
        let request = SendRequest::send(0, elements).signaled(true);
        self.pair.post_send(&mut request.to(&self.handle, number, QKEY)).unwrap();
        assert!(poll(&self.sends).unwrap().status().is_success());
    }

    fn shared(&self) -> &'static SharedQp {
        host().unwrap().arena.view.qp(index(self.pair.number()))
    }

    fn state_of(&self, n: u32) -> SlotState {
        SlotState::decode(self.slot(n).load(SeqCst))
    }

    /// Whether receive `n` can be taken.
    fn is_free(&self, n: u32) -> bool {
        self.state_of(n).is_free_for(n, self.shared().posted.ring_size.load(SeqCst))
    }

    /// The word of the slot of receive `n`.
    fn slot(&self, n: u32) -> &'static std::sync::atomic::AtomicU64 {
        let shared = self.shared();
        let ring = Ring {
            offset: shared.posted.ring_offset.load(SeqCst),
            size: shared.posted.ring_size.load(SeqCst),
            stride: shared.posted.ring_stride.load(SeqCst),
        };
        // SAFETY: this process's arena is never unmapped.
        unsafe { &ring.slots(&host().unwrap().arena.view).unwrap().slot(n).state }
    }

    /// Leaves the state of a peer that dies while it places the payload of receive `n`.
    fn claim_by_the_dead(&self, n: u32) {
        let host = host().unwrap();
        let dead = (1..1 << (24 - QP_INDEX_BITS)).rev().find(|block| !host.lives(*block)).unwrap();
        assert!(self.is_free(n));
        self.slot(n).store(SlotState::Claimed(n, dead).encode(), SeqCst);
    }

    /// Polls often enough to detect a dead peer.
    fn look(&self) {
        for _ in 0..=PATIENCE {
            assert!(poll(&self.receives).is_none());
        }
    }

    #[track_caller]
    fn arrives_as(&mut self, n: u64) {
        self.send();
        self.has_arrived_as(n);
    }

    #[track_caller]
    fn has_arrived_as(&self, n: u64) {
        let wc = poll(&self.receives).expect("the datagram has arrived");
        assert_eq!((wc.id(), wc.byte_len() as usize), (n, PAYLOAD + 40));
        assert!(wc.status().is_success());
    }
}

fn poll(queue: &CompletionQueue) -> Option<Completion> {
    let mut room = [Completion::default()];
    queue.poll(&mut room).unwrap().first().copied()
}

#[test]
fn a_mark_that_lags_behind_does_not_hide_later_receives() {
    for receives in [1, 2, 4] {
        let mut echo = Echo::new(receives);
        for n in 0..10 {
            echo.post();
            echo.arrives_as(n);
            // The requester died after it completed the receive and before it advanced the mark.
            echo.shared().next.value.store(n as u32, SeqCst);
        }
    }
}

#[test]
fn a_mark_before_all_that_is_posted_makes_nobody_deaf() {
    for receives in [1, 2, 4] {
        let mut echo = Echo::new(receives);
        (0..receives).for_each(|_| echo.post());
        for n in 0..10 {
            // This requester knows nothing of the earlier receives.
            Echo::new(1).send_to(echo.pair.number());
            echo.has_arrived_as(n);
            echo.post();
            echo.shared().next.value.store(n as u32, SeqCst);
        }
    }
}

#[test]
fn a_receive_comes_back_from_a_dead_peer() {
    let mut echo = Echo::new(4);
    echo.post();
    echo.post();
    echo.claim_by_the_dead(0);
    echo.look();
    assert!(echo.is_free(0));
    echo.arrives_as(0);
    echo.arrives_as(1);
}

#[test]
fn a_receive_that_came_back_is_not_passed_by() {
    let mut echo = Echo::new(4);
    echo.post();
    echo.post();
    echo.claim_by_the_dead(0);
    echo.send();
    assert_eq!(echo.state_of(1), SlotState::Done(1), "the datagram has skipped the claimed receive");
    echo.look();
    // A slow requester advances the mark now.
    echo.shared().next.value.store(2, SeqCst);
    assert!(poll(&echo.receives).is_none());
    echo.send();
    assert_eq!([0, 1].map(|_| poll(&echo.receives).map(|wc| wc.id())), [Some(0), Some(1)]);
}

#[test]
fn a_receive_of_a_live_peer_is_left_alone() {
    let mut echo = Echo::new(4);
    echo.post();
    let placing = SlotState::Claimed(0, host().unwrap().block);
    echo.slot(0).store(placing.encode(), SeqCst);
    echo.look();
    assert_eq!(echo.state_of(0), placing);
    echo.slot(0).store(SlotState::Empty.encode(), SeqCst);
}

#[test]
fn what_the_dead_held_is_flushed_in_its_turn() {
    let mut echo = Echo::new(4);
    for _ in 0..3 {
        echo.post();
    }
    echo.claim_by_the_dead(1);
    // Memory that is not registered fails the queue pair.
    let bad = ibv_sge { addr: 0, length: 2000, lkey: 77 };
    echo.pair.post_receive(&mut ReceiveRequest::new(3, vec![bad])).unwrap();
    echo.arrives_as(0);
    echo.send();
    echo.send();
    let polled = (0..2 * PATIENCE).filter_map(|_| poll(&echo.receives));
    let found: Vec<_> = polled.map(|wc| (wc.id(), wc.status().0)).collect();
    let expected = [(1, IBV_WC_WR_FLUSH_ERR), (2, IBV_WC_SUCCESS), (3, IBV_WC_LOC_PROT_ERR)];
    assert_eq!(found, expected);
}

#[test]
fn a_queue_pair_with_a_dead_claim_can_be_destroyed() {
    let mut echo = Echo::new(4);
    echo.post();
    echo.claim_by_the_dead(0);
    drop(echo);
}

#[test]
fn a_mark_beyond_the_ring_is_no_place_to_write() {
    let mut echo = Echo::new(4);
    echo.post();
    for mark in [1, 4, 5, u32::MAX, 1 << 31] {
        echo.shared().next.value.store(mark, SeqCst);
        echo.send();
        assert!(poll(&echo.receives).is_none(), "mark {mark}");
        assert!(echo.is_free(0));
    }
    echo.shared().next.value.store(0, SeqCst);
    echo.arrives_as(0);
}

/// Whatever a peer writes into a lane, only posted receives complete, and no completion is longer
/// than its receive.
#[test]
fn what_a_peer_writes_is_not_believed() {
    let mut echo = Echo::new(4);
    for n in 0..4 {
        echo.slot(n).store(SlotState::Done(n).encode(), SeqCst);
    }
    assert!(poll(&echo.receives).is_none(), "nothing is posted");
    echo.post();
    assert_eq!(poll(&echo.receives).map(|wc| wc.byte_len()), Some(0));
    echo.post();
    // SAFETY: the word is the first member of a slot in this process's arena, which is never
    // unmapped.
    let slot = unsafe { &*std::ptr::from_ref(echo.slot(1)).cast::<Slot>() };
    slot.byte_len.store(u32::MAX, SeqCst);
    slot.flags.store(FLAG_IN_SLOT, SeqCst);
    assert_eq!(poll(&echo.receives).map(|wc| wc.byte_len()), Some(4096));
}

/// A receive that a dead process took from a shared queue and did not deliver is found again: when
/// the queue runs dry, and when its place in the order is used again.
#[test]
fn a_shared_receive_comes_back_from_a_dead_peer() {
    let device = devices(&crate::PROVIDER).unwrap().remove(0);
    let pd = device.open().unwrap().protection_domain().unwrap();
    let host = host().unwrap();
    let dead = (1..1 << (24 - QP_INDEX_BITS)).rev().find(|block| !host.lives(*block)).unwrap();
    for (receives, runs_dry) in [(2, true), (4, false)] {
        let shared = pd.shared_receive_queue(4, 1).unwrap();
        let mut post = |id| shared.post_receive(&mut ReceiveRequest::new(id, Vec::new())).unwrap();
        (0..receives).for_each(&mut post);
        // SAFETY: the queue is alive and belongs to this device.
        let srq = unsafe { Srq::from(shared.raw()) };
        let take = |block| srq.pool.take(block, 0).map(|ticket| ticket.index);
        assert_eq!([take(dead), take(host.block)], [Ok(0), Ok(1)]);
        if runs_dry {
            assert_eq!(take(host.block), Err(Refusal::Empty));
            (0..4096).for_each(|_| srq.doubt());
            // Only the receive of the dead process.
            assert_eq!([take(host.block), take(host.block)], [Ok(0), Err(Refusal::Empty)]);
        } else {
            srq.give_back(1);
            assert_eq!([take(host.block), take(host.block)], [Ok(2), Ok(3)]);
            post(9);
            assert_eq!([take(host.block), take(host.block)], [Ok(0), Ok(1)]);
            assert!(srq.has(1));
            assert_eq!(srq.wqes.load(1).wr_id, 9);
        }
    }
}

/// If a peer finds an error and dies before it announces the error, the queue pair has failed all
/// the same.
#[test]
fn a_failure_that_nobody_announces_flushes_everything() {
    let mut echo = Echo::new(4);
    for _ in 0..3 {
        echo.post();
    }
    echo.claim_by_the_dead(0);
    echo.shared().fail();
    let polled = (0..2 * PATIENCE).filter_map(|_| poll(&echo.receives));
    let found: Vec<_> = polled.map(|wc| (wc.id(), wc.status().0)).collect();
    assert_eq!(found, [0, 1, 2].map(|id| (id, IBV_WC_WR_FLUSH_ERR)));
}

/// A thread that makes progress holds the list of queue pairs, which all threads need for that, so
/// it waits for no queue. (If the two threads share a CPU, the one that uses the queue polls in
/// vain for its whole time slice.)
#[test]
fn a_queue_that_a_thread_is_at_holds_up_nobody_else() {
    let echo = Echo::new(4);
    // SAFETY: the queue pair is alive and belongs to this device.
    let qp = unsafe { Qp::from(echo.pair.raw()) };
    qp.ctx().waiting.fetch_add(1, SeqCst);
    let queue = qp.send.lock();
    let other = AtomicPtr::new(echo.pair.raw());
    std::thread::scope(|scope| {
        let (sender, looked) = channel();
        scope.spawn(move || {
            // SAFETY: as above, until this thread has ended.
            let ctx = unsafe { Qp::from(other.into_inner()) }.ctx();
            ctx.progress();
            let _ = sender.send(ctx.next_due());
        });
        let looked = looked.recv_timeout(Duration::from_secs(10));
        drop(queue);
        assert!(
            looked.expect("progress waits for no queue").is_some(),
            "the work of a queue in use is due now"
        );
    });
    qp.ctx().waiting.fetch_sub(1, SeqCst);
}
