//! Queue pairs whose work requests are built by calls (man ibv_wr_post, man ibv_create_qp_ex).

use std::time::Duration;

use verbs::abi::*;

use crate::rig::{op, wr};
use crate::shape::ids;
use crate::{Bench, QKEY, Send, Shape, Side, Tuning};

const DATAGRAM: u32 = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM;
const UNRELIABLE: u32 = DATAGRAM | IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM;
const ATOMICS: u32 = IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP | IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD;
const RELIABLE: u32 = UNRELIABLE | IBV_QP_EX_WITH_RDMA_READ | ATOMICS;

/// The time in which nothing may happen.
const QUIET: Duration = Duration::from_millis(5);

/// A near side with work request builders, connected with a far side.
#[track_caller]
fn connected(bench: &mut Bench, shape: &Shape, operations: u32) -> (Side, Side) {
    let a = bench.near.building_side(shape, operations);
    let b = bench.far.side(shape);
    bench.connect(&a, &b, &Tuning::OPEN);
    (a, b)
}

/// Every operation of RC in one batch; later operations see the effects of earlier ones.
pub(crate) fn rc_builds_every_operation(bench: &mut Bench) {
    let (a, b) = connected(bench, &Shape::open(IBV_QPT_RC), RELIABLE);
    bench.near.fill(a.region, 0, 4096, 1);
    bench.far.fill(b.region, 12 << 10, 100, 2);
    bench.far.put(b.region, 8192, 5);
    bench.far.put(b.region, 8200, 40);
    for id in 0..3 {
        bench.far.receive(b.qp, id, &[b.at(id as usize * 1024, 512)]);
    }
    let node = &mut bench.near;
    node.step(&a, wr::START, &[]);
    node.build_send(&a, 10, a.at(0, 100));
    node.tag(&a, 11, IBV_SEND_SIGNALED);
    node.step(&a, wr::SEND_IMM, &[u64::from(0x1234_5678_u32.to_be())]);
    node.step(&a, wr::SGE, &a.at(100, 200));
    node.build_reach(&a, 12, wr::WRITE, b.spot(4096), &[], a.at(300, 300));
    let imm = u64::from(0xcafe_u32.to_be());
    node.build_reach(&a, 13, wr::WRITE_IMM, b.spot(5120), &[imm], a.at(600, 400));
    node.build_reach(&a, 14, wr::READ, b.spot(12 << 10), &[], a.at(8192, 100));
    node.build_reach(&a, 15, wr::CMP_SWP, b.spot(8192), &[5, 7], a.at(9000, 8));
    node.build_reach(&a, 16, wr::FETCH_ADD, b.spot(8200), &[2], a.at(9008, 8));
    node.step(&a, wr::COMPLETE, &[]);
    let found = node.wait(a.send_cq, 7);
    let seen: Vec<_> = found.iter().map(|wc| (wc.id, wc.status, wc.opcode)).collect();
    let opcodes = [
        IBV_WC_SEND,
        IBV_WC_SEND,
        IBV_WC_RDMA_WRITE,
        IBV_WC_RDMA_WRITE,
        IBV_WC_RDMA_READ,
        IBV_WC_COMP_SWAP,
        IBV_WC_FETCH_ADD,
    ];
    let expected: Vec<_> = (10..).zip(opcodes).map(|(id, opcode)| (id, IBV_WC_SUCCESS, opcode)).collect();
    assert_eq!(seen, expected);
    node.check(a.region, 8192, 100, 2);
    assert_eq!((node.word(a.region, 9000), node.word(a.region, 9008)), (5, 40));
    let far = &mut bench.far;
    assert_eq!((far.word(b.region, 8192), far.word(b.region, 8200)), (7, 42));
    let received = far.wait(b.receive_cq, 3);
    let seen: Vec<_> = received.iter().map(|wc| (wc.opcode, wc.byte_len, wc.imm)).collect();
    let receive = IBV_WC_RECV;
    let written = IBV_WC_RECV_RDMA_WITH_IMM;
    assert_eq!(seen, [(receive, 100, 0), (receive, 200, 0x1234_5678), (written, 400, 0xcafe)]);
    far.check_from(b.region, 0, 100, 1, 0);
    far.check_from(b.region, 1024, 200, 1, 100);
    far.check_from(b.region, 4096, 300, 1, 300);
    far.check_from(b.region, 5120, 400, 1, 600);
}

pub(crate) fn uc_builds_every_operation(bench: &mut Bench) {
    let (a, b) = connected(bench, &Shape::open(IBV_QPT_UC), UNRELIABLE);
    bench.near.fill(a.region, 0, 2048, 3);
    for id in 0..3 {
        bench.far.receive(b.qp, id, &[b.at(id as usize * 1024, 512)]);
    }
    let node = &mut bench.near;
    node.step(&a, wr::START, &[]);
    node.build_send(&a, 1, a.at(0, 100));
    node.build_reach(&a, 2, wr::WRITE, b.spot(4096), &[], a.at(100, 300));
    node.build_reach(&a, 3, wr::WRITE_IMM, b.spot(5120), &[u64::from(9_u32.to_be())], a.at(400, 400));
    node.tag(&a, 4, IBV_SEND_SIGNALED);
    node.step(&a, wr::SEND_IMM, &[u64::from(8_u32.to_be())]);
    node.step(&a, wr::SGE, &a.at(800, 200));
    node.step(&a, wr::COMPLETE, &[]);
    assert_eq!(ids(&node.wait(a.send_cq, 4)), [1, 2, 3, 4]);
    let received = bench.far.wait(b.receive_cq, 3);
    let seen: Vec<_> = received.iter().map(|wc| (wc.byte_len, wc.imm)).collect();
    assert_eq!(seen, [(100, 0), (400, 9), (200, 8)]);
    bench.far.check_from(b.region, 4096, 300, 3, 100);
    bench.far.check_from(b.region, 5120, 400, 3, 400);
    bench.far.check_from(b.region, 2048, 200, 3, 800);
}

/// Each datagram has its own address.
pub(crate) fn ud_builds_every_operation(bench: &mut Bench) {
    let shape = Shape::of(IBV_QPT_UD);
    let (a, b) = connected(bench, &shape, DATAGRAM);
    let c = bench.far.side(&shape);
    bench.far.connect_to(&c, 0, a.gid, &Tuning::default());
    bench.near.fill(a.region, 0, 1024, 4);
    bench.far.receive(b.qp, 0, &[b.at(0, 1024)]);
    bench.far.receive(c.qp, 0, &[c.at(0, 1024)]);
    let node = &mut bench.near;
    let handle = node.handle(a.pd, b.gid) as u64;
    node.step(&a, wr::START, &[]);
    node.build_send(&a, 1, a.at(0, 300));
    node.step(&a, wr::UD_ADDR, &[handle, u64::from(b.number), u64::from(QKEY)]);
    node.tag(&a, 2, IBV_SEND_SIGNALED);
    node.step(&a, wr::SEND_IMM, &[u64::from(77_u32.to_be())]);
    node.step(&a, wr::UD_ADDR, &[handle, u64::from(c.number), u64::from(QKEY)]);
    node.step(&a, wr::SGES, &[a.at(300, 20), a.at(320, 30)].concat());
    node.step(&a, wr::COMPLETE, &[]);
    assert_eq!(ids(&node.wait(a.send_cq, 2)), [1, 2]);
    for (side, bytes, imm, first) in [(b, 300, 0, 0), (c, 50, 77, 300)] {
        let wc = bench.far.wait_one(side.receive_cq);
        assert_eq!((wc.byte_len, wc.imm, wc.src_qp), (40 + bytes, imm, a.number));
        bench.far.check_from(side.region, 40, bytes as usize, 4, first);
    }
}

/// One element, several elements, and inline data, which is copied at once: its buffer may be
/// reused before the batch is complete.
pub(crate) fn setters_say_what_is_sent(bench: &mut Bench) {
    let (a, b) = connected(bench, &Shape::open(IBV_QPT_RC), RELIABLE);
    bench.near.fill(a.region, 0, 1024, 5);
    for id in 0..4 {
        bench.far.receive(b.qp, id, &[b.at(id as usize * 1024, 512)]);
    }
    let region = a.region as u64;
    let node = &mut bench.near;
    node.step(&a, wr::START, &[]);
    node.tag(&a, 1, IBV_SEND_SIGNALED);
    node.step(&a, wr::SEND, &[]);
    node.step(&a, wr::SGES, &[a.at(512, 100), a.at(612, 1), a.at(613, 27)].concat());
    node.step(&a, wr::SEND, &[]);
    node.step(&a, wr::INLINE, &[region, 0, 40]);
    node.step(&a, wr::SEND, &[]);
    node.step(&a, wr::INLINES, &[[region, 40, 3], [region, 43, 20], [region, 63, 1]].concat());
    node.step(&a, wr::WRITE, &[u64::from(b.remote.key), b.spot(8192).addr]);
    node.step(&a, wr::INLINE, &[region, 64, 64]);
    node.step(&a, wr::SEND, &[]);
    node.fill(a.region, 0, 128, 6);
    node.step(&a, wr::COMPLETE, &[]);
    assert_eq!(ids(&node.wait(a.send_cq, 5)), [1; 5]);
    let received = bench.far.wait(b.receive_cq, 4);
    assert_eq!(received.iter().map(|wc| wc.byte_len).collect::<Vec<_>>(), [128, 40, 24, 0]);
    for (offset, bytes, first) in [(0, 128, 512), (1024, 40, 0), (2048, 24, 40), (8192, 64, 64)] {
        bench.far.check_from(b.region, offset, bytes, 5, first);
    }
}

pub(crate) fn each_request_has_its_own_flags(bench: &mut Bench) {
    let (a, b) = connected(bench, &Shape::open(IBV_QPT_RC), RELIABLE);
    let channel = bench.far.channel();
    let node = &mut bench.far;
    let pd = node.pd();
    let send_cq = node.cq(16);
    let cq = node.cq_on(channel, 16);
    let c = node.side_on(&Shape::of(IBV_QPT_RC), pd, [send_cq, cq]);
    let d = bench.near.building_side(&Shape::of(IBV_QPT_RC), DATAGRAM);
    bench.connect(&d, &c, &Tuning::default());
    bench.near.step(&a, wr::START, &[]);
    for id in 0..4 {
        bench.far.receive(b.qp, id, &[b.at(0, 64)]);
        bench.near.tag(&a, id, if id % 2 == 1 { IBV_SEND_SIGNALED } else { 0 });
        bench.near.step(&a, wr::SEND, &[]);
        bench.near.step(&a, wr::SGE, &a.at(0, 8));
    }
    bench.near.step(&a, wr::COMPLETE, &[]);
    assert_eq!(ids(&bench.near.wait(a.send_cq, 2)), [1, 3]);
    assert_eq!(bench.far.wait(b.receive_cq, 4).len(), 4);
    // Only a solicited message wakes the receiver.
    for (flags, wakes) in [(0, false), (IBV_SEND_SOLICITED, true)] {
        bench.far.receive(c.qp, 0, &[c.at(0, 64)]);
        bench.far.arm(cq, true);
        bench.near.step(&d, wr::START, &[]);
        bench.near.tag(&d, 0, IBV_SEND_SIGNALED | flags);
        bench.near.step(&d, wr::SEND, &[]);
        bench.near.step(&d, wr::COMPLETE, &[]);
        bench.near.wait_one(d.send_cq);
        bench.far.wait_one(cq);
        assert_eq!(bench.far.is_ready(channel, if wakes { 5000 } else { 5 }), wakes);
    }
    assert_eq!(bench.far.errno(op::EVENT, &[channel as u64]), 0);
    bench.far.call(op::ACK, &[cq as u64, 1]);
}

pub(crate) fn nothing_is_executed_before_completion(bench: &mut Bench) {
    let (a, b) = connected(bench, &Shape::open(IBV_QPT_RC), RELIABLE);
    bench.far.receive(b.qp, 7, &[b.at(0, 64)]);
    bench.near.put(a.region, 0, 99);
    bench.near.step(&a, wr::START, &[]);
    bench.near.build_reach(&a, 1, wr::WRITE, b.spot(1024), &[], a.at(0, 8));
    bench.near.build_send(&a, 2, a.at(0, 8));
    bench.near.quiet(a.send_cq, QUIET);
    bench.far.quiet(b.receive_cq, QUIET);
    assert_eq!(bench.far.word(b.region, 1024), 0);
    bench.near.step(&a, wr::COMPLETE, &[]);
    assert_eq!(ids(&bench.near.wait(a.send_cq, 2)), [1, 2]);
    assert_eq!(bench.far.wait_one(b.receive_cq).id, 7);
    assert_eq!(bench.far.word(b.region, 1024), 99);
}

pub(crate) fn an_aborted_batch_leaves_nothing(bench: &mut Bench) {
    let (a, b) = connected(bench, &Shape::open(IBV_QPT_RC), RELIABLE);
    bench.far.receive(b.qp, 7, &[b.at(0, 64)]);
    bench.near.put(a.region, 0, 99);
    for _ in 0..2 * a.sends {
        bench.near.step(&a, wr::START, &[]);
        bench.near.build_reach(&a, 1, wr::WRITE, b.spot(1024), &[], a.at(0, 8));
        bench.near.build_send(&a, 2, a.at(0, 8));
        bench.near.step(&a, wr::ABORT, &[]);
    }
    bench.near.quiet(a.send_cq, QUIET);
    bench.near.step(&a, wr::START, &[]);
    bench.near.build_send(&a, 3, a.at(0, 16));
    bench.near.step(&a, wr::COMPLETE, &[]);
    assert_eq!(bench.near.wait_one(a.send_cq).id, 3);
    let wc = bench.far.wait_one(b.receive_cq);
    assert_eq!((wc.id, wc.byte_len), (7, 16));
    assert_eq!(bench.far.word(b.region, 1024), 0);
}

/// "If a failure is detected during operation, ... `ibv_wr_complete()` will return failure and the
/// entire posting will be aborted."
pub(crate) fn an_error_refuses_the_whole_batch(bench: &mut Bench) {
    let (a, b) = connected(bench, &Shape::open(IBV_QPT_RC), RELIABLE);
    /// More elements than any device allows if four are requested.
    const MANY: usize = 40;
    let too_long = vec![a.region as u64, 0, u64::from(a.inline) + 1];
    let too_many = vec![a.at(0, 1); MANY].concat();
    for (setter, words) in [(wr::INLINE, too_long), (wr::SGES, too_many)] {
        bench.far.receive(b.qp, 7, &[b.at(0, 64)]);
        let node = &mut bench.near;
        node.step(&a, wr::START, &[]);
        node.build_send(&a, 1, a.at(0, 8));
        node.step(&a, wr::SEND, &[]);
        node.step(&a, setter, &words);
        node.build_send(&a, 3, a.at(0, 8));
        assert_ne!(node.try_step(&a, wr::COMPLETE, &[]), 0, "setter {setter}");
        node.quiet(a.send_cq, QUIET);
        // The error does not affect the next batch.
        node.step(&a, wr::START, &[]);
        node.build_send(&a, 4, a.at(0, 16));
        node.step(&a, wr::COMPLETE, &[]);
        assert_eq!(node.wait_one(a.send_cq).id, 4);
        assert_eq!(bench.far.wait_one(b.receive_cq).byte_len, 16);
    }
}

pub(crate) fn a_batch_has_room_or_is_refused(bench: &mut Bench) {
    let shape = Shape { sends: 4, receives: 64, ..Shape::open(IBV_QPT_RC) };
    let (a, b) = connected(bench, &shape, RELIABLE);
    let depth = u64::from(a.sends);
    for id in 0..64 {
        bench.far.receive(b.qp, id, &[b.at(0, 64)]);
    }
    let node = &mut bench.near;
    for round in 0..3 {
        for (count, fits) in [(depth + 1, false), (depth, true)] {
            node.step(&a, wr::START, &[]);
            for id in 0..count {
                node.build_send(&a, round * 100 + id, a.at(0, 8));
            }
            assert_eq!(node.try_step(&a, wr::COMPLETE, &[]) == 0, fits, "{count} in {depth}");
        }
        let expected: Vec<u64> = (0..depth).map(|id| round * 100 + id).collect();
        assert_eq!(ids(&node.wait(a.send_cq, depth as usize)), expected);
    }
    bench.far.wait(b.receive_cq, 3 * depth as usize);
    bench.far.quiet(b.receive_cq, QUIET);
}

/// Batches and `ibv_post_send` may alternate.
pub(crate) fn batches_and_lists_keep_their_order(bench: &mut Bench) {
    let (a, b) = connected(bench, &Shape::open(IBV_QPT_RC), RELIABLE);
    for id in 0..6 {
        bench.far.receive(b.qp, id, &[b.at(0, 64)]);
    }
    for round in 0..2 {
        let id = 10 * round;
        bench.near.step(&a, wr::START, &[]);
        bench.near.build_send(&a, id, a.at(0, 1 + round as usize));
        bench.near.build_send(&a, id + 1, a.at(0, 11 + round as usize));
        bench.near.step(&a, wr::COMPLETE, &[]);
        bench.near.send(a.qp, Send::new(id + 2, &[a.at(0, 21 + round as usize)]));
    }
    assert_eq!(ids(&bench.near.wait(a.send_cq, 6)), [0, 1, 2, 10, 11, 12]);
    let lengths: Vec<u32> = bench.far.wait(b.receive_cq, 6).iter().map(|wc| wc.byte_len).collect();
    assert_eq!(lengths, [1, 11, 21, 2, 12, 22]);
}

/// A batch that a thread has started excludes other threads until it is complete.
pub(crate) fn another_thread_waits_for_its_turn(bench: &mut Bench) {
    let (a, b) = connected(bench, &Shape::open(IBV_QPT_RC), RELIABLE);
    for id in 0..2 {
        bench.far.receive(b.qp, id, &[b.at(0, 64)]);
    }
    let rig = bench.near.rig();
    let other = rig.poster(a.qp);
    let sge = rig.element(&a.at(0, 30));
    bench.near.step(&a, wr::START, &[]);
    bench.near.build_send(&a, 1, a.at(0, 20));
    std::thread::scope(|scope| {
        let waiter = scope.spawn(|| other.build(sge));
        std::thread::sleep(Duration::from_millis(50));
        assert!(!waiter.is_finished(), "two threads build at once");
        bench.near.step(&a, wr::COMPLETE, &[]);
        assert_eq!(waiter.join().expect("the other thread"), 0);
    });
    assert_eq!(ids(&bench.near.wait(a.send_cq, 2)), [1, 2]);
    let lengths: Vec<u32> = bench.far.wait(b.receive_cq, 2).iter().map(|wc| wc.byte_len).collect();
    assert_eq!(lengths, [20, 30]);
}

/// "If the QP does not support all the requested work request types then QP creation will fail."
pub(crate) fn what_a_service_has_not_cannot_be_asked_for(bench: &mut Bench) {
    let node = &mut bench.near;
    let pd = node.pd();
    let cq = node.cq(16);
    let not_datagram = RELIABLE & !DATAGRAM;
    let all = [(IBV_QPT_UD, DATAGRAM, not_datagram), (IBV_QPT_UC, UNRELIABLE, RELIABLE & !UNRELIABLE)];
    for (service, has, has_not) in all {
        let mut ask = |operations: u64, flags: u32| {
            let mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS | flags;
            let words = Shape::of(service).words(pd, [cq, cq]);
            node.errno(op::QP_EX, &[&[u64::from(mask), 0, operations][..], &words].concat())
        };
        assert_eq!(ask(u64::from(has), 0), 0);
        for bit in (0..u64::BITS).filter(|bit| u64::from(has_not) >> bit & 1 != 0 || *bit == 63) {
            assert_eq!(ask(1 << bit, 0), libc::EOPNOTSUPP, "bit {bit} of service {service}");
        }
        assert_ne!(ask(u64::from(has), 1 << 31), 0, "an unknown attribute");
    }
}
