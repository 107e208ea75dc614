//! What softdev promises of the extended verbs beyond the man pages: the error number, and what
//! happens to a program that breaks the rules.

use softdev::PROVIDER;
use verbs::abi::*;

use conformance::node::{peer, serve};
use conformance::rig::{op, wr};
use conformance::subject::Origin;
use conformance::{Bench, Case, Send, Shape, Side, Subject, Tuning, ids, run_cases, two_ends};

fn main() {
    if peer().is_some() {
        return serve(&subject());
    }
    const CASES: &[Case] = two_ends! {
        what_is_not_built_is_refused_by_name
        builders_that_are_not_there_refuse_the_batch
        setters_out_of_place_refuse_the_batch
        steps_without_a_start_do_nothing
        a_batch_is_refused_before_rts_and_flushed_after
        a_poll_may_go_on_after_it_found_nothing
        polls_without_a_start_do_nothing
        an_overrun_that_is_ignored_keeps_the_latest
        a_queue_is_not_resized_below_what_it_holds
    };
    run_cases(&subject(), CASES)
}

fn subject() -> Subject {
    Subject { provider: &PROVIDER, device: "softdev0".to_owned(), origin: Origin::default() }
}

const SENDS: u32 = IBV_QP_EX_WITH_SEND;

#[track_caller]
fn connected(bench: &mut Bench) -> (Side, Side) {
    let shape = Shape::open(IBV_QPT_RC);
    let a = bench.near.building_side(&shape, SENDS);
    let b = bench.far.side(&shape);
    bench.connect(&a, &b, &Tuning::OPEN);
    (a, b)
}

/// Programs take EOPNOTSUPP as a missing feature, and continue without it.
fn what_is_not_built_is_refused_by_name(bench: &mut Bench) {
    let node = &mut bench.near;
    let pd = node.pd();
    let cq = node.cq(16);
    let mut ask = |service: u32, mask: u32, flags: u32, operations: u32| {
        let words = Shape::of(service).words(pd, [cq, cq]);
        node.errno(op::QP_EX, &[&[mask, flags, operations].map(u64::from)[..], &words].concat())
    };
    let rc = IBV_QPT_RC;
    let pd_too = IBV_QP_INIT_ATTR_PD;
    assert_eq!(ask(rc, pd_too, 0, 0), 0);
    assert_eq!(ask(rc, pd_too | IBV_QP_INIT_ATTR_CREATE_FLAGS, 0, 0), 0);
    assert_eq!(ask(rc, 0, 0, 0), libc::EINVAL, "without a domain");
    let missing = [
        IBV_QP_INIT_ATTR_XRCD,
        IBV_QP_INIT_ATTR_MAX_TSO_HEADER,
        IBV_QP_INIT_ATTR_IND_TABLE,
        IBV_QP_INIT_ATTR_RX_HASH,
    ];
    for bit in missing {
        assert_eq!(ask(rc, pd_too | bit, 0, 0), libc::EOPNOTSUPP, "attribute {bit:#x}");
    }
    // IBV_QP_CREATE_BLOCK_SELF_MCAST_LB, _SCATTER_FCS, _CVLAN_STRIPPING, _SOURCE_QPN,
    // _PCI_WRITE_END_PADDING.
    for flag in [1, 8, 9, 10, 11] {
        let mask = pd_too | IBV_QP_INIT_ATTR_CREATE_FLAGS;
        assert_eq!(ask(rc, mask, 1 << flag, 0), libc::EOPNOTSUPP, "creation flag {flag}");
    }
    let mask = pd_too | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
    for operation in [IBV_QP_EX_WITH_BIND_MW, IBV_QP_EX_WITH_TSO, IBV_QP_EX_WITH_ATOMIC_WRITE] {
        assert_eq!(ask(rc, mask, 0, operation), libc::EOPNOTSUPP, "operation {operation:#x}");
    }
    assert_eq!(ask(IBV_QPT_RAW_PACKET, mask, 0, SENDS), libc::EOPNOTSUPP);
    let fields = [IBV_WC_EX_WITH_CVLAN, IBV_WC_EX_WITH_FLOW_TAG, IBV_WC_EX_WITH_TM_INFO];
    for field in fields {
        let errno = node.errno(op::CQ_EX, &[16, 0, u64::from(field), 0, 0, 0]);
        assert_eq!(errno, libc::EOPNOTSUPP, "field {field:#x}");
    }
    let mask = IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_TYPE;
    let attributes = [IBV_SRQ_INIT_ATTR_XRCD, IBV_SRQ_INIT_ATTR_CQ, IBV_SRQ_INIT_ATTR_TM].map(|bit| (bit, 0));
    for (more, kind) in attributes.into_iter().chain([(0, IBV_SRQT_XRC), (0, IBV_SRQT_TM)]) {
        let words = [pd as u64, 8, 1, u64::from(mask | more), u64::from(kind)];
        assert_eq!(node.errno(op::SRQ_EX, &words), libc::EOPNOTSUPP, "attributes {more:#x}, type {kind}");
    }
    assert_eq!(node.errno(op::CQ_EX, &[16, 0, 0, 1 << 2, 0, 0]), libc::EOPNOTSUPP, "an attribute");
}

/// A program may call any function without checking that it exists.
fn builders_that_are_not_there_refuse_the_batch(bench: &mut Bench) {
    let (a, b) = connected(bench);
    bench.far.receive(b.qp, 1, &[b.at(0, 64)]);
    let absent = [wr::BIND_MW, wr::LOCAL_INV, wr::TSO, wr::ATOMIC_WRITE, wr::XRC_SRQN];
    for step in absent {
        let node = &mut bench.near;
        node.step(&a, wr::START, &[]);
        node.build_send(&a, 1, a.at(0, 8));
        node.step(&a, step, &[0; 3]);
        node.build_send(&a, 2, a.at(0, 8));
        assert_eq!(node.try_step(&a, wr::COMPLETE, &[]), libc::EOPNOTSUPP, "step {step}");
        assert_eq!(node.poll(a.send_cq, 1), []);
    }
    bench.near.step(&a, wr::START, &[]);
    bench.near.build_send(&a, 3, a.at(0, 8));
    bench.near.step(&a, wr::COMPLETE, &[]);
    assert_eq!(bench.near.wait_one(a.send_cq).id, 3);
    // A queue pair that was made without builders has none.
    let plain = bench.near.side(&Shape::of(IBV_QPT_RC));
    assert_eq!(bench.near.try_step(&plain, wr::START, &[]), libc::EOPNOTSUPP);
}

fn setters_out_of_place_refuse_the_batch(bench: &mut Bench) {
    let (a, _) = connected(bench);
    let ud = bench.near.building_side(&Shape::of(IBV_QPT_UD), SENDS);
    bench.near.connect_to(&ud, 0, ud.gid, &Tuning::default());
    let handle = bench.near.handle(a.pd, a.gid) as u64;
    let sge = a.at(0, 8).to_vec();
    let send = Vec::new();
    let reach = vec![0, 0, 0, 0];
    let inline = vec![a.region as u64, 0, 8];
    type Steps = Vec<(u64, Vec<u64>)>;
    let batches: [(Side, i32, Steps); 7] = [
        // An element without a request.
        (a, libc::EINVAL, vec![(wr::SGE, sge.clone()), (wr::SEND, send.clone())]),
        // A request without a payload cannot be inline.
        (a, libc::EINVAL, vec![(wr::READ, reach.clone()), (wr::INLINE, inline)]),
        // A connection has its address already.
        (a, libc::EINVAL, vec![(wr::SEND, send.clone()), (wr::UD_ADDR, vec![handle, 1, 1])]),
        // A datagram without an address: the last one, and one that others follow.
        (ud, libc::EINVAL, vec![(wr::SEND, send.clone())]),
        (
            ud,
            libc::EINVAL,
            vec![
                (wr::SEND, send.clone()),
                (wr::SEND, send.clone()),
                (wr::UD_ADDR, vec![handle, u64::from(ud.number), 1]),
            ],
        ),
        // Services that lack the operation.
        (ud, libc::EOPNOTSUPP, vec![(wr::WRITE, reach.clone())]),
        (a, libc::EOPNOTSUPP, vec![(wr::SEND_INV, reach)]),
    ];
    for (i, (side, errno, steps)) in batches.into_iter().enumerate() {
        let node = &mut bench.near;
        node.step(&side, wr::START, &[]);
        for (step, words) in steps {
            node.step(&side, step, &words);
        }
        assert_eq!(node.try_step(&side, wr::COMPLETE, &[]), errno, "batch {i}");
        assert_eq!(node.poll(side.send_cq, 1), [], "batch {i}");
    }
}

fn steps_without_a_start_do_nothing(bench: &mut Bench) {
    let (a, b) = connected(bench);
    bench.far.receive(b.qp, 1, &[b.at(0, 64)]);
    let node = &mut bench.near;
    node.build_send(&a, 1, a.at(0, 8));
    assert_eq!(node.try_step(&a, wr::COMPLETE, &[]), libc::EINVAL);
    node.step(&a, wr::ABORT, &[]);
    node.step(&a, wr::START, &[]);
    assert_eq!(node.try_step(&a, wr::COMPLETE, &[]), 0, "nothing is no error");
    node.step(&a, wr::START, &[]);
    node.build_send(&a, 2, a.at(0, 16));
    node.step(&a, wr::COMPLETE, &[]);
    assert_eq!(node.wait_one(a.send_cq).id, 2);
    assert_eq!(bench.far.wait_one(b.receive_cq).byte_len, 16);
}

fn a_batch_is_refused_before_rts_and_flushed_after(bench: &mut Bench) {
    let node = &mut bench.near;
    let a = node.building_side(&Shape::of(IBV_QPT_RC), SENDS);
    let build = |node: &mut conformance::Node| {
        node.step(&a, wr::START, &[]);
        node.build_send(&a, 1, a.at(0, 8));
        node.build_send(&a, 2, a.at(0, 8));
        node.try_step(&a, wr::COMPLETE, &[])
    };
    assert_eq!(build(node), libc::EINVAL);
    node.init(&a, &Tuning::default());
    assert_eq!(build(node), libc::EINVAL);
    node.change_state(a.qp, IBV_QPS_ERR);
    assert_eq!(build(node), 0);
    let found = node.wait(a.send_cq, 2);
    assert_eq!(ids(&found), [1, 2]);
    assert!(found.iter().all(|wc| wc.status == IBV_WC_WR_FLUSH_ERR), "{found:?}");
}

/// pyverbs polls again after a poll that has found nothing more.
fn a_poll_may_go_on_after_it_found_nothing(bench: &mut Bench) {
    let shape = Shape::of(IBV_QPT_RC);
    let a = bench.near.reading_side(&shape, 0);
    let b = bench.far.side(&shape);
    bench.connect(&a, &b, &Tuning::default());
    for id in 0..3 {
        bench.far.receive(b.qp, id, &[b.at(0, 64)]);
    }
    let node = &mut bench.near;
    node.send(a.qp, Send::new(0, &[a.at(0, 8)]));
    assert_eq!(node.try_read(op::START_POLL, a.send_cq).expect("a completion").wc.id, 0);
    for id in 1..3 {
        assert_eq!(node.try_read(op::NEXT_POLL, a.send_cq), Err(libc::ENOENT));
        // The thread that polls may send, too.
        node.send(a.qp, Send::new(id, &[a.at(0, 8)]));
        assert_eq!(node.try_read(op::NEXT_POLL, a.send_cq).expect("a completion").wc.id, id);
    }
    node.end_read(a.send_cq);
}

fn polls_without_a_start_do_nothing(bench: &mut Bench) {
    let shape = Shape::of(IBV_QPT_RC);
    let a = bench.near.reading_side(&shape, 0);
    let b = bench.far.side(&shape);
    bench.connect(&a, &b, &Tuning::default());
    let node = &mut bench.near;
    assert_eq!(node.try_read(op::NEXT_POLL, a.send_cq), Err(libc::EINVAL));
    node.end_read(a.send_cq);
    assert_eq!(node.try_read(op::START_POLL, a.send_cq), Err(libc::ENOENT));
    node.end_read(a.send_cq);
    bench.far.receive(b.qp, 1, &[b.at(0, 64)]);
    node.send(a.qp, Send::new(1, &[a.at(0, 8)]));
    assert_eq!(node.read_all(a.send_cq, 1)[0].wc.id, 1);
    assert_eq!(node.try_read(op::NEXT_POLL, a.send_cq), Err(libc::EINVAL));
}

fn an_overrun_that_is_ignored_keeps_the_latest(bench: &mut Bench) {
    let shape = Shape::of(IBV_QPT_RC);
    for threads in [0, IBV_CREATE_CQ_ATTR_SINGLE_THREADED] {
        let node = &mut bench.near;
        let pd = node.pd();
        let cq = node.cq_ex(4, 0, IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN | threads);
        let receive_cq = node.cq(16);
        let a = node.side_on(&shape, pd, [cq, receive_cq]);
        let b = bench.far.side(&shape);
        bench.connect(&a, &b, &Tuning::default());
        for id in 0..7 {
            bench.far.receive(b.qp, id, &[b.at(0, 64)]);
            bench.near.send(a.qp, Send::new(id, &[a.at(0, 8)]));
        }
        bench.far.wait(b.receive_cq, 7);
        let found: Vec<u64> = bench.near.read_all(cq, 4).iter().map(|read| read.wc.id).collect();
        assert_eq!(found, [3, 4, 5, 6]);
        assert_eq!(bench.near.try_read(op::START_POLL, cq), Err(libc::ENOENT));
    }
}

fn a_queue_is_not_resized_below_what_it_holds(bench: &mut Bench) {
    let (a, b) = bench.connected(&Shape::of(IBV_QPT_RC), &Tuning::default());
    for id in 0..3 {
        bench.far.receive(b.qp, id, &[b.at(0, 64)]);
        bench.near.send(a.qp, Send::new(id, &[a.at(0, 8)]));
    }
    let node = &mut bench.near;
    let cq = a.send_cq as u64;
    for (entries, errno) in [(2, libc::EINVAL), (0, libc::EINVAL), (3, 0), (1 << 30, libc::EINVAL)] {
        assert_eq!(node.errno(op::RESIZE, &[cq, entries]), errno, "{entries} entries");
    }
    assert_eq!(ids(&node.wait(a.send_cq, 3)), [0, 1, 2]);
    assert_eq!(node.errno(op::RESIZE, &[cq, 1]), 0);
}
