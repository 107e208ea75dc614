//! Devices access only registered memory, as its registration allows.

use verbs::abi::*;

use crate::rig::{Element, KEY_ZERO, Memory, op};
use crate::{Bench, Node, QKEY, REMOTE, SERVICES, Send, Shape, Side, Tuning};

const ONE_BEHIND: &str = "one byte behind";

/// The reason why a queue pair must not use an element.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Fault {
    /// The key is invalid for this access in this protection domain.
    Key,
    /// Some bytes are outside the region of the key.
    Range,
}

/// Elements that the queue pair of `side` must not use, each with its fault and a name.
pub(crate) fn forbidden(node: &mut Node, side: &Side, to_write: bool) -> Vec<(Fault, &'static str, Element)> {
    let length = 1 << 16;
    let other_domain = node.pd();
    let elsewhere = node.region(other_domain, 4096, IBV_ACCESS_LOCAL_WRITE);
    let gone = node.region(side.pd, 4096, IBV_ACCESS_LOCAL_WRITE);
    assert_eq!(node.errno(op::DEREG, &[gone as u64]), 0);
    let region = side.region as u64;
    let mut found = vec![
        (Fault::Key, "no key", [region, 0, 64, KEY_ZERO]),
        (Fault::Key, "an unknown key", [region, 0, 64, 0xdead_be00]),
        (Fault::Key, "another domain", [elsewhere as u64, 0, 64, 0]),
        (Fault::Key, "a region that is gone", [gone as u64, 0, 64, 0]),
        (Fault::Range, ONE_BEHIND, [region, length - 63, 64, 0]),
        (Fault::Range, "all behind", [region, length, 64, 0]),
        (Fault::Range, "one byte before", [region, u64::MAX, 64, 0]),
        (Fault::Range, "far before", [region, u64::MAX << 40, 64, 0]),
    ];
    if side.service != IBV_QPT_UD {
        // It begins before the region and ends behind it; a datagram this long is another error.
        found.push((Fault::Range, "before and behind", [region, u64::MAX - (1 << 20), 2 << 20, 0]));
    }
    if to_write {
        let read_only = node.region(side.pd, 4096, 0);
        found.push((Fault::Key, "a region that may not be written", [read_only as u64, 0, 64, 0]));
    }
    found
}

/// Tries each forbidden element, alone and after a valid one. `check` gets the status of the send's
/// completion.
fn sends_fail(bench: &mut Bench, service: ibv_qp_type, check: &mut dyn FnMut(Fault, &str, ibv_wc_status)) {
    let shape = Shape { bytes: 1 << 16, ..Shape::of(service) };
    let sample = bench.near.side(&shape);
    for (fault, what, element) in forbidden(&mut bench.near, &sample, false) {
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
            assert_eq!(wc.id, 3, "{what}");
            assert!(wc.has_failed(), "{what}: {wc:?}");
            check(fault, what, wc.status);
            if service == IBV_QPT_RC {
                bench.near.settles(a.qp, IBV_QPS_ERR, what);
                assert_eq!(bench.near.wait_one(a.receive_cq).status, IBV_WC_WR_FLUSH_ERR, "{what}");
            }
            assert_eq!(bench.far.poll(b.receive_cq, 1), [], "{what}");
            bench.far.check(b.region, 0, 4096, 7);
            for (node, side) in [(&mut bench.near, &a), (&mut bench.far, &b)] {
                assert_eq!(node.errno(op::DESTROY_QP, &[side.qp as u64]), 0);
            }
            // An unreliable service may have flushed its receive, or not.
            while !bench.near.poll(sample.receive_cq, 16).is_empty() {}
        }
    }
}

pub(crate) fn sends_from_forbidden_memory_fail_on_rc(bench: &mut Bench) {
    sends_fail(bench, IBV_QPT_RC, &mut |_, _, _| {});
}

pub(crate) fn sends_from_forbidden_memory_fail_on_uc(bench: &mut Bench) {
    sends_fail(bench, IBV_QPT_UC, &mut |_, _, _| {});
}

pub(crate) fn sends_from_forbidden_memory_fail_on_ud(bench: &mut Bench) {
    sends_fail(bench, IBV_QPT_UD, &mut |_, _, _| {});
}

/// The completion of a send reports the fault.
fn sends_are_named(bench: &mut Bench, named: Fault) {
    for service in SERVICES {
        sends_fail(bench, service, &mut |fault, what, status| {
            assert!(fault != named || status == IBV_WC_LOC_PROT_ERR, "{what}: status {status}");
        });
    }
}

pub(crate) fn sends_from_beyond_a_region_are_protection_errors(bench: &mut Bench) {
    sends_are_named(bench, Fault::Range);
}

pub(crate) fn sends_by_a_wrong_key_are_protection_errors(bench: &mut Bench) {
    sends_are_named(bench, Fault::Key);
}

/// Tries each forbidden element. `check` gets the status of the receive's completion.
fn receives_fail(bench: &mut Bench, service: ibv_qp_type, check: &mut dyn FnMut(&str, ibv_wc_status)) {
    let shape = Shape { bytes: 1 << 16, ..Shape::of(service) };
    let sample = bench.far.side(&shape);
    bench.far.fill(sample.region, 0, shape.bytes, 7);
    let header = if service == IBV_QPT_UD { 40 } else { 0 };
    for (_, what, element) in forbidden(&mut bench.far, &sample, true) {
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
        assert_eq!([got[0].id, got[1].id], [1, 2], "{what}");
        assert!(got[0].has_failed(), "{what}: {got:?}");
        check(what, got[0].status);
        assert_eq!(got[1].status, IBV_WC_WR_FLUSH_ERR, "{what}");
        bench.far.settles(b.qp, IBV_QPS_ERR, what);
        if service == IBV_QPT_RC {
            assert_eq!(sent.status, IBV_WC_REM_OP_ERR, "{what}");
            bench.near.settles(a.qp, IBV_QPS_ERR, what);
        } else {
            assert_eq!(sent.status, IBV_WC_SUCCESS, "{what}");
            assert_eq!(bench.near.state(a.qp), IBV_QPS_RTS, "{what}");
        }
        // The part of a receive's element inside the region may contain a part of the message.
        let untouched = if what == ONE_BEHIND { shape.bytes - 63 } else { shape.bytes };
        bench.far.check(sample.region, 0, untouched, 7);
        bench.far.fill(sample.region, 0, shape.bytes, 7);
        for (node, side) in [(&mut bench.near, &a), (&mut bench.far, &b)] {
            assert_eq!(node.errno(op::DESTROY_QP, &[side.qp as u64]), 0);
        }
    }
}

pub(crate) fn receives_into_forbidden_memory_fail_on_rc(bench: &mut Bench) {
    receives_fail(bench, IBV_QPT_RC, &mut |_, _| {});
}

pub(crate) fn receives_into_forbidden_memory_fail_on_uc(bench: &mut Bench) {
    receives_fail(bench, IBV_QPT_UC, &mut |_, _| {});
}

pub(crate) fn receives_into_forbidden_memory_fail_on_ud(bench: &mut Bench) {
    receives_fail(bench, IBV_QPT_UD, &mut |_, _| {});
}

pub(crate) fn receives_into_forbidden_memory_are_protection_errors(bench: &mut Bench) {
    for service in SERVICES {
        receives_fail(bench, service, &mut |what, status| {
            assert_eq!(status, IBV_WC_LOC_PROT_ERR, "{what}");
        });
    }
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

/// The key of a deregistered region is invalid, also for the region that is registered next.
pub(crate) fn an_old_key_stays_dead(bench: &mut Bench) {
    let shape = Shape::of(IBV_QPT_UC);
    for _ in 0..50 {
        let (a, b) = bench.connected(&shape, &Tuning::default());
        bench.far.receive(b.qp, 1, &[b.at(0, 64)]);
        let made = bench.near.call(op::MR, &[a.pd as u64, 4096, 1, 1]);
        let old = made[1];
        let old_key = made[2];
        assert_eq!(bench.near.errno(op::DEREG, &[old]), 0);
        let new = bench.near.own_region(a.pd, 4096, IBV_ACCESS_LOCAL_WRITE);
        bench.near.send(a.qp, Send::new(1, &[[new as u64, 0, 64, old_key]]));
        let wc = bench.near.wait_one(a.send_cq);
        assert!(wc.has_failed(), "{wc:?}");
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

/// An element without bytes needs no memory: mlx5 omits it from the request (set_data_ptr_seg() in
/// providers/mlx5/qp.c), and rxe does not look up its key (copy_data() in rxe_mr.c).
pub(crate) fn an_empty_element_needs_no_key(bench: &mut Bench) {
    let (a, b) = bench.connected(&Shape::open(IBV_QPT_RC), &Tuning::OPEN);
    let empty = |side: &Side| {
        let region = side.region as u64;
        [[region, 0, 0, KEY_ZERO], [region, 1 << 40, 0, 0xdead_be00]]
    };
    let [none, wrong] = empty(&a);
    let [far_none, far_wrong] = empty(&b);
    bench.near.fill(a.region, 0, 4096, 5);
    for (id, size) in (0..).zip([8, 64, 4096]) {
        let lists =
            [vec![none, a.at(0, size)], vec![a.at(0, size / 2), wrong, a.at(size / 2, size / 2), none]];
        for elements in lists {
            bench.far.fill(b.region, 0, 8192, 7);
            bench.far.receive(b.qp, id, &[far_wrong, b.at(0, 3), far_none, b.at(3, 4093)]);
            bench.near.send(a.qp, Send::new(id, &elements));
            bench.near.send(a.qp, Send::write(id, &elements, b.spot(4096)));
            for wc in bench.near.wait(a.send_cq, 2) {
                assert_eq!((wc.id, wc.status), (id, IBV_WC_SUCCESS), "{size} B");
            }
            let got = bench.far.wait_one(b.receive_cq);
            assert_eq!((got.status, got.byte_len), (IBV_WC_SUCCESS, size as u32));
            bench.far.check(b.region, 0, size, 5);
            bench.far.check(b.region, 4096, size, 5);
            let place = [none, a.at(8192, size), wrong];
            bench.near.send(a.qp, Send::read(id, &place, b.spot(4096)));
            assert_eq!(bench.near.wait_one(a.send_cq).status, IBV_WC_SUCCESS, "{size} B are read");
            bench.near.check(a.region, 8192, size, 5);
        }
    }
    // An empty message into an empty receive.
    for element in [none, wrong] {
        bench.far.receive(b.qp, 9, &[far_none]);
        bench.near.send(a.qp, Send::new(9, &[element]));
        assert_eq!(bench.near.wait_one(a.send_cq).status, IBV_WC_SUCCESS);
        let got = bench.far.wait_one(b.receive_cq);
        assert_eq!((got.status, got.byte_len), (IBV_WC_SUCCESS, 0));
    }
}

/// man ibv_reg_mr: the registration pins the memory, so all of it must be mapped, and writable if
/// the registration allows writing (ib_umem_get() in core/umem.c).
pub(crate) fn memory_that_cannot_be_pinned_is_refused(bench: &mut Bench) {
    let pd = bench.near.pd() as u64;
    let all = u64::from(IBV_ACCESS_LOCAL_WRITE | REMOTE);
    let local = u64::from(IBV_ACCESS_LOCAL_WRITE);
    let mut errno =
        |bytes, access, memory: Memory| bench.near.errno(op::MR, &[pd, bytes, access, memory.word()]);
    for bytes in [8192, 1 << 21] {
        for access in [local, all] {
            for memory in [Memory::ReadOnly, Memory::Inaccessible, Memory::Incomplete] {
                let found = errno(bytes, access, memory);
                assert_eq!(found, libc::EFAULT, "{memory:?}, {bytes} B, access {access}");
            }
            for memory in [Memory::Device, Memory::Own] {
                assert_eq!(errno(bytes, access, memory), 0, "{memory:?}, {bytes} B, access {access}");
            }
        }
        assert_eq!(errno(bytes, 0, Memory::Incomplete), libc::EFAULT, "{bytes} B");
        for memory in [Memory::Device, Memory::Own, Memory::ReadOnly] {
            assert_eq!(errno(bytes, 0, memory), 0, "{memory:?}, {bytes} B");
        }
    }
}
