//! Creation and destruction of objects: objects in use are busy, destroyed objects leave nothing
//! behind.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use verbs::abi::*;

use crate::rig::op;
use crate::{Bench, Node, Send, Shape, Tuning};

pub(crate) fn a_domain_in_use_is_busy(bench: &mut Bench) {
    let node = &mut bench.near;
    let pd = node.pd();
    let cq = node.cq(8);
    let gid = node.gid();
    let region = node.region(pd, 4096, IBV_ACCESS_LOCAL_WRITE);
    let busy = |node: &mut Node| node.errno(op::DEALLOC_PD, &[pd as u64]);
    assert_eq!(busy(node), libc::EBUSY, "it has a region");
    let side = node.side_with(&Shape::of(IBV_QPT_RC), pd, [cq, cq], region);
    assert_eq!(node.errno(op::DEREG, &[region as u64]), 0);
    assert_eq!(busy(node), libc::EBUSY, "it has a queue pair");
    let handle = node.handle(pd, gid);
    assert_eq!(node.errno(op::DESTROY_QP, &[side.qp as u64]), 0);
    assert_eq!(busy(node), libc::EBUSY, "it has an address handle");
    assert_eq!(node.errno(op::DESTROY_AH, &[handle as u64]), 0);
    assert_eq!(busy(node), 0);
}

pub(crate) fn a_completion_queue_in_use_is_busy(bench: &mut Bench) {
    let node = &mut bench.near;
    let pd = node.pd();
    let send_cq = node.cq(8);
    let receive_cq = node.cq(8);
    let side = node.side_on(&Shape::of(IBV_QPT_RC), pd, [send_cq, receive_cq]);
    assert_eq!(node.errno(op::DESTROY_CQ, &[receive_cq as u64]), libc::EBUSY, "receives complete in it");
    assert_eq!(node.errno(op::DESTROY_CQ, &[send_cq as u64]), libc::EBUSY, "sends complete in it");
    assert_eq!(node.errno(op::DESTROY_QP, &[side.qp as u64]), 0);
    assert_eq!(node.errno(op::DESTROY_CQ, &[receive_cq as u64]), 0);
    assert_eq!(node.errno(op::DESTROY_CQ, &[send_cq as u64]), 0);
}

pub(crate) fn a_channel_in_use_is_busy(bench: &mut Bench) {
    let channel = bench.near.channel();
    let cq = bench.near.cq_on(channel, 8);
    assert_eq!(bench.near.errno(op::DESTROY_CHANNEL, &[channel as u64]), libc::EBUSY);
    assert_eq!(bench.near.errno(op::DESTROY_CQ, &[cq as u64]), 0);
    assert_eq!(bench.near.errno(op::DESTROY_CHANNEL, &[channel as u64]), 0);
}

pub(crate) fn limits_of_creation_are_kept(bench: &mut Bench) {
    let node = &mut bench.near;
    let pd = node.pd() as u64;
    let cq = node.cq(8) as u64;
    let good = [pd, cq, cq, u64::from(IBV_QPT_RC), 4, 4, 1, 1, 0, 0];
    for (i, what) in [(4, "sends"), (5, "receives"), (6, "send elements"), (7, "receive elements")] {
        let mut words = good;
        words[i] = u64::from(u32::MAX >> 1);
        let errno = node.errno(op::QP, &words);
        assert!(errno == libc::EINVAL || errno == libc::ENOMEM, "{what}: errno {errno}");
    }
    let mut words = good;
    words[3] = 77;
    assert_ne!(node.errno(op::QP, &words), 0, "an unknown service");
    assert_eq!(node.errno(op::QP, &good), 0);
    assert_eq!(node.errno(op::CQ, &[0, 0]), libc::EINVAL, "a queue without entries");
    assert_ne!(node.errno(op::CQ, &[u64::from(u32::MAX >> 1), 0]), 0, "a queue with 2^31 entries");
}

pub(crate) fn numbers_are_unique(bench: &mut Bench) {
    let node = &mut bench.near;
    let pd = node.pd();
    let cq = node.cq(8);
    let region = node.region(pd, 4096, IBV_ACCESS_LOCAL_WRITE);
    let shape = Shape { receives: 1, ..Shape::of(IBV_QPT_UD) };
    let made: Vec<u32> = (0..500).map(|_| node.side_with(&shape, pd, [cq, cq], region).number).collect();
    assert_eq!(made.iter().collect::<HashSet<_>>().len(), made.len());
    assert!(made.iter().all(|n| *n > 1 && *n >> 24 == 0), "0 and 1 are reserved for management");
}

pub(crate) fn objects_come_and_go_without_a_trace(bench: &mut Bench) {
    let mut counts = Vec::new();
    for _ in 0..if bench.processes { 8 } else { 60 } {
        // A process for this round only.
        let mut far = if bench.processes { Node::remote(&bench.subject) } else { bench.another() };
        let near = &mut bench.near;
        let shape = Shape::of(IBV_QPT_RC);
        let channel = near.channel();
        let pd = near.pd();
        let cq = near.cq_on(channel, 64);
        let region = near.region(pd, shape.bytes, IBV_ACCESS_LOCAL_WRITE);
        let a = near.side_with(&shape, pd, [cq, cq], region);
        let b = far.side(&shape);
        far.connect_to(&b, a.number, a.gid, &Tuning::default());
        near.connect_to(&a, b.number, b.gid, &Tuning::default());
        // An event that the near node causes itself, and one that the far node causes.
        for own in [true, false] {
            near.arm(cq, false);
            if own {
                far.receive(b.qp, 1, &[b.at(0, 64)]);
                near.send(a.qp, Send::new(1, &[a.at(0, 8)]));
            } else {
                near.receive(a.qp, 1, &[a.at(0, 64)]);
                far.send(b.qp, Send::new(1, &[b.at(0, 8)]));
            }
            assert!(near.is_ready(channel, 5000));
            assert_eq!(near.call(op::EVENT, &[channel as u64]), [0, cq as u64]);
            near.errno(op::ACK, &[cq as u64, 1]);
            assert_eq!(near.wait_one(cq).status, IBV_WC_SUCCESS);
        }
        let gone = [
            (op::DESTROY_QP, a.qp),
            (op::DEREG, region),
            (op::DESTROY_CQ, cq),
            (op::DESTROY_CHANNEL, channel),
            (op::DEALLOC_PD, pd),
        ];
        for (command, object) in gone {
            assert_eq!(near.errno(command, &[object as u64]), 0);
        }
        far.close();
        counts.push(near.number(op::DESCRIPTORS));
    }
    // Descriptors that stay open have been opened in the first rounds.
    assert_eq!(
        counts[counts.len() / 2],
        counts[counts.len() - 1],
        "descriptors after each round: {counts:?}"
    );
}

pub(crate) fn memory_comes_back(bench: &mut Bench) {
    const SIZE: usize = 8 << 20;
    const MOST_KIB: u64 = 32 << 10;
    let start = bench.far.number(op::SHARED_KIB);
    for seed in 0..12 {
        // New memory is zeroed, and released memory is free again.
        let pd = bench.far.pd();
        let region = bench.far.region(pd, SIZE, IBV_ACCESS_LOCAL_WRITE);
        assert_eq!(bench.far.read(region, SIZE / 2, 64), [0; 64]);
        bench.far.fill(region, 0, SIZE, seed);
        bench.far.release(region);
        let now = bench.far.number(op::SHARED_KIB);
        assert!(now < start + MOST_KIB, "{now} KiB are in use after {seed} regions; before, {start} KiB");
    }
}

/// Ends a loop of another thread when the case ends, also by a panic.
struct Stop<'a>(&'a AtomicBool);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// The buffer of a message of [`taken_away_while_sends_arrive`], in bytes.
const MESSAGE: usize = 4096;

/// A queue pair is destroyed or reset while its peer sends to it and a thread polls its completion
/// queue, which other queue pairs share.
fn taken_away_while_sends_arrive(bench: &mut Bench, destroy: bool) {
    let bytes = 64 * MESSAGE;
    let shape = Shape { receives: 64, sends: 64, entries: 4096, bytes, ..Shape::of(IBV_QPT_RC) };
    let tuning = Tuning { timeout: 8, retries: 1, rnr_timer: 1, ..Tuning::default() };
    let pd = bench.near.pd();
    let cq = bench.near.cq(4096);
    let region = bench.near.region(pd, shape.bytes, IBV_ACCESS_LOCAL_WRITE);
    let b = bench.far.side(&shape);
    let stop = AtomicBool::new(false);
    let poller = bench.near.rig().poller(cq);
    let near = &mut bench.near;
    let far = &mut bench.far;
    let mut a = near.side_with(&shape, pd, [cq, cq], region);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                poller.poll();
            }
        });
        let _stopped = Stop(&stop);
        let start = Instant::now();
        for round in 0..150 {
            // Under emulation, fewer rounds have to suffice.
            if round > 30 && start.elapsed() > Duration::from_secs(3) {
                break;
            }
            near.connect_to(&a, b.number, b.gid, &tuning);
            far.connect_to(&b, a.number, a.gid, &tuning);
            for id in 0..64 {
                // Some receives are too small, which causes errors.
                let room = if round % 3 == 0 && id == 40 { 1 } else { MESSAGE };
                // Each receive has its own buffer, so that the peer and the polling thread do not
                // access the same memory.
                near.receive(a.qp, id, &[a.at(id as usize * MESSAGE, room)]);
            }
            let requests: Vec<Send> =
                (0..48).map(|id| Send::new(id, &[b.at(0, 8 + (id as usize % 2) * 2000)])).collect();
            std::thread::scope(|round_scope| {
                round_scope.spawn(|| {
                    far.try_send(b.qp, &requests);
                    far.wait(b.send_cq, 48);
                    far.change_state(b.qp, IBV_QPS_RESET);
                });
                std::thread::sleep(Duration::from_micros(round % 2 * round * 3));
                if destroy {
                    assert_eq!(near.errno(op::DESTROY_QP, &[a.qp as u64]), 0);
                } else {
                    near.change_state(a.qp, IBV_QPS_RESET);
                }
            });
            if destroy {
                a = near.side_with(&shape, pd, [cq, cq], region);
            } else {
                assert_eq!(near.state(a.qp), IBV_QPS_RESET, "the queue pair stays in RESET");
            }
        }
    });
    // The last queue pair works like the first one.
    near.connect_to(&a, b.number, b.gid, &Tuning::default());
    far.connect_to(&b, a.number, a.gid, &Tuning::default());
    near.receive(a.qp, 1, &[a.at(0, 4096)]);
    far.fill(b.region, 0, 4096, 5);
    far.send(b.qp, Send::new(1, &[b.at(0, 4096)]));
    assert_eq!(far.wait_one(b.send_cq).status, IBV_WC_SUCCESS);
    let got = near.wait_one(cq);
    assert_eq!((got.id, got.status), (1, IBV_WC_SUCCESS));
    near.check(region, 0, 4096, 5);
}

pub(crate) fn destroying_while_sends_arrive(bench: &mut Bench) {
    taken_away_while_sends_arrive(bench, true);
}

pub(crate) fn resetting_while_sends_arrive(bench: &mut Bench) {
    taken_away_while_sends_arrive(bench, false);
}
