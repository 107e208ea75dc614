//! No byte is touched that no registration allows.

use verbs::abi::*;

use crate::rig::{Element, KEY_ZERO, op};
use crate::{Bench, Node, QKEY, Send, Shape, Side, Tuning};

/// Elements of 64 bytes that the queue pair of `side` must not use, and what is wrong with each.
pub(crate) fn forbidden(node: &mut Node, side: &Side, to_write: bool) -> Vec<(&'static str, Element)> {
    let length = 1 << 16;
    let other_domain = node.pd();
    let elsewhere = node.region(other_domain, 4096, IBV_ACCESS_LOCAL_WRITE);
    let gone = node.region(side.pd, 4096, IBV_ACCESS_LOCAL_WRITE);
    assert_eq!(node.errno(op::DEREG, &[gone as u64]), 0);
    let mut found = vec![
        ("no key", [side.region as u64, 0, 64, KEY_ZERO]),
        ("an unknown key", [side.region as u64, 0, 64, 0xdead_be00]),
        ("another domain", [elsewhere as u64, 0, 64, 0]),
        ("a region that is gone", [gone as u64, 0, 64, 0]),
        ("one byte behind", [side.region as u64, length - 63, 64, 0]),
        ("all behind", [side.region as u64, length, 64, 0]),
        ("one byte before", [side.region as u64, u64::MAX, 64, 0]),
        ("far before", [side.region as u64, u64::MAX << 40, 64, 0]),
        ("the end of the address space", [side.region as u64, u64::MAX - (1 << 20), u64::from(u32::MAX), 0]),
    ];
    if to_write {
        let read_only = node.region(side.pd, 4096, 0);
        found.push(("a region that may not be written", [read_only as u64, 0, 64, 0]));
    }
    found
}

fn sends_fail(bench: &mut Bench, service: ibv_qp_type) {
    let shape = Shape { bytes: 1 << 16, ..Shape::of(service) };
    let sample = bench.near.side(&shape);
    for (what, element) in forbidden(&mut bench.near, &sample, false) {
        for second in [false, true] {
            let b = bench.far.side(&shape);
            let cqs = [sample.send_cq, sample.receive_cq];
            let a = bench.near.side_with(&shape, sample.pd, cqs, sample.region);
            bench.connect(&a, &b, &Tuning::default());
            let handle = bench.near.handle(a.pd, b.gid);
            bench.far.fill(b.region, 0, 4096, 7);
            bench.far.receive(b.qp, 1, &[b.at(0, 4096)]);
            bench.near.receive(a.qp, 2, &[a.at(0, 64)]);
            let elements = if second { vec![a.at(0, 64), element] } else { vec![element] };
            bench.near.send(a.qp, Send::new(3, &elements).to(handle, b.number, QKEY));
            let wc = bench.near.wait_one(a.send_cq);
            assert_eq!((wc.id, wc.status), (3, IBV_WC_LOC_PROT_ERR), "{what}");
            if service == IBV_QPT_RC {
                assert_eq!(bench.near.state(a.qp), IBV_QPS_ERR, "{what}");
                assert_eq!(bench.near.wait_one(a.receive_cq).status, IBV_WC_WR_FLUSH_ERR, "{what}");
            } else {
                assert_eq!(bench.near.state(a.qp), IBV_QPS_SQE, "{what}");
                assert_eq!(bench.near.poll(a.receive_cq, 1), [], "the receive queue goes on: {what}");
            }
            assert_eq!(bench.far.poll(b.receive_cq, 1), [], "{what}");
            bench.far.check(b.region, 0, 4096, 7);
            for (node, side) in [(&mut bench.near, &a), (&mut bench.far, &b)] {
                assert_eq!(node.errno(op::DESTROY_QP, &[side.qp as u64]), 0);
            }
        }
    }
}

pub(crate) fn sends_from_forbidden_memory_fail_on_rc(bench: &mut Bench) {
    sends_fail(bench, IBV_QPT_RC);
}

pub(crate) fn sends_from_forbidden_memory_fail_on_uc(bench: &mut Bench) {
    sends_fail(bench, IBV_QPT_UC);
}

pub(crate) fn sends_from_forbidden_memory_fail_on_ud(bench: &mut Bench) {
    sends_fail(bench, IBV_QPT_UD);
}

fn receives_fail(bench: &mut Bench, service: ibv_qp_type) {
    let shape = Shape { bytes: 1 << 16, ..Shape::of(service) };
    let sample = bench.far.side(&shape);
    bench.far.fill(sample.region, 0, shape.bytes, 7);
    let header = if service == IBV_QPT_UD { 40 } else { 0 };
    for (what, element) in forbidden(&mut bench.far, &sample, true) {
        let cqs = [sample.send_cq, sample.receive_cq];
        let b = bench.far.side_with(&shape, sample.pd, cqs, sample.region);
        let a = bench.near.side(&shape);
        bench.connect(&a, &b, &Tuning::default());
        let handle = bench.near.handle(a.pd, b.gid);
        bench.far.receive(b.qp, 1, &[element]);
        bench.far.receive(b.qp, 2, &[b.at(0, 64)]);
        bench.near.send(a.qp, Send::new(3, &[a.at(0, 64 - header)]).to(handle, b.number, QKEY));
        let sent = bench.near.wait_one(a.send_cq);
        let got = bench.far.wait(b.receive_cq, 2);
        assert_eq!((got[0].id, got[0].status), (1, IBV_WC_LOC_PROT_ERR), "{what}");
        assert_eq!((got[1].id, got[1].status), (2, IBV_WC_WR_FLUSH_ERR), "{what}");
        assert_eq!(bench.far.state(b.qp), IBV_QPS_ERR, "{what}");
        if service == IBV_QPT_RC {
            assert_eq!(sent.status, IBV_WC_REM_OP_ERR, "{what}");
            assert_eq!(bench.near.state(a.qp), IBV_QPS_ERR, "{what}");
        } else {
            assert_eq!(sent.status, IBV_WC_SUCCESS, "{what}");
            assert_eq!(bench.near.state(a.qp), IBV_QPS_RTS, "{what}");
        }
        bench.far.check(sample.region, 0, shape.bytes, 7);
        for (node, side) in [(&mut bench.near, &a), (&mut bench.far, &b)] {
            assert_eq!(node.errno(op::DESTROY_QP, &[side.qp as u64]), 0);
        }
    }
}

pub(crate) fn receives_into_forbidden_memory_fail_on_rc(bench: &mut Bench) {
    receives_fail(bench, IBV_QPT_RC);
}

pub(crate) fn receives_into_forbidden_memory_fail_on_uc(bench: &mut Bench) {
    receives_fail(bench, IBV_QPT_UC);
}

pub(crate) fn receives_into_forbidden_memory_fail_on_ud(bench: &mut Bench) {
    receives_fail(bench, IBV_QPT_UD);
}

pub(crate) fn sending_needs_no_write_access(bench: &mut Bench) {
    let (a, b) = bench.connected(&Shape::of(IBV_QPT_RC), &Tuning::default());
    let read_only = bench.near.region(a.pd, 4096, 0);
    bench.near.fill(read_only, 0, 4096, 3);
    bench.far.receive(b.qp, 1, &[b.at(0, 4096)]);
    bench.near.send(a.qp, Send::new(1, &[[read_only as u64, 0, 4096, 0]]));
    assert_eq!(bench.near.wait_one(a.send_cq).status, IBV_WC_SUCCESS);
    bench.far.wait_one(b.receive_cq);
    bench.far.check(b.region, 0, 4096, 3);
}

pub(crate) fn nothing_is_written_beyond_the_message(bench: &mut Bench) {
    let (a, b) = bench.connected(&Shape::of(IBV_QPT_RC), &Tuning::default());
    for size in [1, 32, 33, 4096, 20_000] {
        bench.far.fill(b.region, 0, 30_000, 7);
        bench.far.receive(b.qp, 1, &[b.at(1, 29_000)]);
        bench.near.send(a.qp, Send::new(1, &[a.at(0, size)]));
        assert_eq!(bench.near.wait_one(a.send_cq).status, IBV_WC_SUCCESS);
        assert_eq!(bench.far.wait_one(b.receive_cq).byte_len, size as u32);
        bench.far.check(b.region, 0, 1, 7);
        bench.far.check_from(b.region, 1 + size, 30_000 - 1 - size, 7, 1 + size);
    }
}

/// A key that was given back names nothing, also not the region that is registered next.
pub(crate) fn an_old_key_stays_dead(bench: &mut Bench) {
    let shape = Shape::of(IBV_QPT_UC);
    for _ in 0..50 {
        let (a, b) = bench.connected(&shape, &Tuning::default());
        bench.far.receive(b.qp, 1, &[b.at(0, 64)]);
        let made = bench.near.call(op::MR, &[a.pd as u64, 4096, 1, 1]);
        let (old, old_key) = (made[1], made[2]);
        assert_eq!(bench.near.errno(op::DEREG, &[old]), 0);
        let new = bench.near.own_region(a.pd, 4096, IBV_ACCESS_LOCAL_WRITE);
        bench.near.send(a.qp, Send::new(1, &[[new as u64, 0, 64, old_key]]));
        assert_eq!(bench.near.wait_one(a.send_cq).status, IBV_WC_LOC_PROT_ERR);
    }
}

pub(crate) fn contradictory_registrations_are_refused(bench: &mut Bench) {
    let pd = bench.near.pd() as u64;
    for access in [IBV_ACCESS_REMOTE_WRITE, IBV_ACCESS_REMOTE_ATOMIC] {
        let access = u64::from(access);
        assert_eq!(bench.near.errno(op::MR, &[pd, 4096, access, 1]), libc::EINVAL, "access {access}");
        assert_eq!(bench.near.errno(op::MR, &[pd, 4096, access | 1, 1]), 0, "access {access}");
    }
}
