//! Access rights of a peer, and the errors that a forbidden access causes.

use std::time::Duration;

use verbs::abi::*;

use crate::access::forbidden;
use crate::errors::IMPATIENT;
use crate::rig::op;
use crate::{Bench, Node, QKEY, REMOTE, Remote, Send, Shape, Side, Tuning};

/// Bytes of the region that the peer accesses.
const LENGTH: usize = 1 << 16;

/// A one-sided operation: a read or write of 64 bytes, or an atomic on a word.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Kind {
    Write,
    Read,
    FetchAdd,
    CompareSwap,
}

impl Kind {
    const ALL: [Self; 4] = [Self::Write, Self::Read, Self::FetchAdd, Self::CompareSwap];

    fn needs(self) -> u32 {
        match self {
            Self::Write => IBV_ACCESS_REMOTE_WRITE,
            Self::Read => IBV_ACCESS_REMOTE_READ,
            Self::FetchAdd | Self::CompareSwap => IBV_ACCESS_REMOTE_ATOMIC,
        }
    }

    fn bytes(self) -> u64 {
        if matches!(self, Self::Write | Self::Read) { 64 } else { 8 }
    }

    fn request(self, id: u64, a: &Side, to: Remote) -> Send {
        match self {
            Self::Write => Send::write(id, &[a.at(0, 64)], to),
            Self::Read => Send::read(id, &[a.at(0, 64)], to),
            Self::FetchAdd => Send::fetch_add(id, a.at(0, 8), to, 1),
            Self::CompareSwap => Send::compare_swap(id, a.at(0, 8), to, 0, 1),
        }
    }
}

/// Returns places that the peer of `b` must not access by this operation, and what is wrong with
/// each.
fn unreachable_places(node: &mut Node, b: &Side, kind: Kind) -> Vec<(&'static str, Remote)> {
    let all = IBV_ACCESS_LOCAL_WRITE | REMOTE;
    let other_domain = node.pd();
    let elsewhere = node.region(other_domain, 4096, all);
    let gone = node.region(b.pd, 4096, all);
    let gone_start = node.start_of(gone);
    assert_eq!(node.errno(op::DEREG, &[gone as u64]), 0);
    let closed = node.region(b.pd, 4096, all & !kind.needs());
    let step = if kind.bytes() == 8 { 8 } else { 1 };
    vec![
        ("no key", b.spot(0).by(0)),
        ("an unknown key", b.spot(0).by(0xdead_be00)),
        ("another domain", node.start_of(elsewhere)),
        ("a region that is gone", gone_start),
        ("a region that does not allow it", node.start_of(closed)),
        ("a step behind", b.remote.at(LENGTH as u64 - kind.bytes() + step)),
        ("all behind", b.spot(LENGTH)),
        ("a step before", b.remote.at(step.wrapping_neg())),
        ("far before", Remote { addr: b.remote.addr >> 32 << 31, ..b.remote }),
        ("the end of the address space", Remote { addr: 0_u64.wrapping_sub(kind.bytes()), ..b.remote }),
    ]
}

/// Checks that the responder refuses a request: both queue pairs fail, and no byte changes.
#[track_caller]
fn refused(bench: &mut Bench, (a, b): (&Side, &Side), request: Send, status: ibv_wc_status, what: &str) {
    for id in 0..3 {
        bench.far.receive(b.qp, id, &[b.at(0, 64)]);
        bench.near.receive(a.qp, id, &[a.at(0, 64)]);
    }
    bench.near.fill(a.region, 0, 128, 9);
    let opcode = request.opcode;
    // The request is unsignalled, and another one follows it.
    let behind = Send::write(8, &[a.at(0, 8)], b.spot(0));
    assert_eq!(bench.near.try_send(a.qp, &[request.unsignaled(), behind]), (0, None));
    let sent = bench.near.wait(a.send_cq, 2);
    assert_eq!((sent[0].id, sent[0].status, sent[0].qp), (7, status, a.number), "opcode {opcode}: {what}");
    assert_eq!((sent[1].id, sent[1].status), (8, IBV_WC_WR_FLUSH_ERR), "opcode {opcode}: {what}");
    for (node, side) in [(&mut bench.near, a), (&mut bench.far, b)] {
        let flushed = node.wait(side.receive_cq, 3);
        let found: Vec<_> = flushed.iter().map(|wc| (wc.id, wc.status)).collect();
        let expected = [0, 1, 2].map(|id| (id, IBV_WC_WR_FLUSH_ERR));
        assert_eq!(found, expected, "opcode {opcode}: {what}");
        assert_eq!(node.state(side.qp), IBV_QPS_ERR, "opcode {opcode}: {what}");
    }
    bench.near.check(a.region, 0, 128, 9);
}

fn destroy(bench: &mut Bench, a: &Side, b: &Side) {
    for (node, side) in [(&mut bench.near, a), (&mut bench.far, b)] {
        assert_eq!(node.errno(op::DESTROY_QP, &[side.qp as u64]), 0);
    }
}

/// Returns a new queue pair with the domain, queues and region of another.
fn like(node: &mut Node, shape: &Shape, side: &Side) -> Side {
    node.side_with(shape, side.pd, [side.send_cq, side.receive_cq], side.region)
}

fn rc_denies(bench: &mut Bench, own_memory: bool) {
    let shape = Shape { bytes: LENGTH, own_memory, ..Shape::open(IBV_QPT_RC) };
    let own = bench.near.side(&shape);
    let sample = bench.far.side(&shape);
    bench.far.fill(sample.region, 0, LENGTH, 7);
    for kind in Kind::ALL {
        for (what, place) in unreachable_places(&mut bench.far, &sample, kind) {
            let a = like(&mut bench.near, &shape, &own);
            let b = like(&mut bench.far, &shape, &sample);
            bench.connect(&a, &b, &Tuning::OPEN);
            let request = kind.request(7, &a, place);
            refused(bench, (&a, &b), request, IBV_WC_REM_ACCESS_ERR, what);
            bench.far.check(sample.region, 0, LENGTH, 7);
            destroy(bench, &a, &b);
        }
    }
}

pub(crate) fn rc_denies_what_no_registration_allows(bench: &mut Bench) {
    rc_denies(bench, false);
}

pub(crate) fn rc_denies_the_same_in_own_memory(bench: &mut Bench) {
    rc_denies(bench, true);
}

/// Checks that a request is dropped: its send completes, and both queue pairs stay in RTS.
#[track_caller]
fn dropped(bench: &mut Bench, (a, b): (&Side, &Side), request: Send, what: &str) {
    bench.near.fill(a.region, 0, 64, 9);
    bench.near.send(a.qp, request);
    assert_eq!(bench.near.wait_one(a.send_cq).status, IBV_WC_SUCCESS, "the sender gets no error: {what}");
    bench.settle(a, b);
    for (node, side) in [(&mut bench.near, a), (&mut bench.far, b)] {
        assert_eq!(node.state(side.qp), IBV_QPS_RTS, "{what}");
    }
}

pub(crate) fn uc_drops_what_no_registration_allows(bench: &mut Bench) {
    let shape = Shape { bytes: LENGTH, ..Shape::open(IBV_QPT_UC) };
    let (a, b) = bench.connected(&shape, &Tuning::OPEN);
    bench.far.fill(b.region, 0, LENGTH, 7);
    for (what, place) in unreachable_places(&mut bench.far, &b, Kind::Write) {
        dropped(bench, (&a, &b), Kind::Write.request(1, &a, place), what);
        bench.far.check(b.region, 0, LENGTH, 7);
    }
    dropped(bench, (&a, &b), Kind::Write.request(2, &a, b.spot(LENGTH - 64)), "nothing is wrong");
    bench.far.check(b.region, LENGTH - 64, 64, 9);
}

/// IBTA volume 1, section 9.7.4.1: an operation that the queue pair does not enable is an invalid
/// request.
pub(crate) fn rc_refuses_what_the_queue_pair_does_not_allow(bench: &mut Bench) {
    let shape = Shape { bytes: LENGTH, ..Shape::open(IBV_QPT_RC) };
    for kind in Kind::ALL {
        for access in [0, REMOTE & !kind.needs()] {
            let (a, b) = bench.connected(&shape, &Tuning { access, ..Tuning::OPEN });
            bench.far.fill(b.region, 0, LENGTH, 7);
            let request = kind.request(7, &a, b.spot(0));
            refused(bench, (&a, &b), request, IBV_WC_REM_INV_REQ_ERR, "it is not enabled");
            bench.far.check(b.region, 0, LENGTH, 7);
        }
        // This right alone is enough.
        let (a, b) = bench.connected(&shape, &Tuning { access: kind.needs(), ..Tuning::OPEN });
        bench.near.send(a.qp, kind.request(1, &a, b.spot(0)));
        assert_eq!(bench.near.wait_one(a.send_cq).status, IBV_WC_SUCCESS, "{kind:?}");
    }
}

pub(crate) fn uc_drops_what_the_queue_pair_does_not_allow(bench: &mut Bench) {
    let shape = Shape { bytes: LENGTH, ..Shape::open(IBV_QPT_UC) };
    let (a, b) = bench.connected(&shape, &Tuning { access: IBV_ACCESS_REMOTE_READ, ..Tuning::OPEN });
    bench.far.fill(b.region, 0, 64, 7);
    dropped(bench, (&a, &b), Kind::Write.request(1, &a, b.spot(0)), "writes are not enabled");
    bench.far.check(b.region, 0, 64, 7);
    let attr = ibv_qp_attr {
        qp_state: IBV_QPS_RTS,
        qp_access_flags: IBV_ACCESS_REMOTE_WRITE,
        ..ibv_qp_attr::default()
    };
    assert_eq!(bench.far.modify(b.qp, &attr, IBV_QP_STATE | IBV_QP_ACCESS_FLAGS), 0);
    dropped(bench, (&a, &b), Kind::Write.request(1, &a, b.spot(0)), "they are now");
    bench.far.check(b.region, 0, 64, 9);
}

/// An operation needs only the right for it in the region's registration.
pub(crate) fn a_region_allows_what_it_was_registered_for(bench: &mut Bench) {
    for kind in Kind::ALL {
        let writes = if kind == Kind::Read { 0 } else { IBV_ACCESS_LOCAL_WRITE };
        let shape = Shape { access: writes | kind.needs(), ..Shape::of(IBV_QPT_RC) };
        let a = bench.near.side(&Shape::open(IBV_QPT_RC));
        let b = bench.far.side(&shape);
        bench.connect(&a, &b, &Tuning::OPEN);
        bench.near.send(a.qp, kind.request(1, &a, b.spot(8)));
        assert_eq!(bench.near.wait_one(a.send_cq).status, IBV_WC_SUCCESS, "{kind:?}");
    }
}

/// The requester's memory is checked as for a send. A read needs the right to write to it.
pub(crate) fn the_requesters_memory_is_checked(bench: &mut Bench) {
    let shape = Shape { bytes: LENGTH, ..Shape::open(IBV_QPT_RC) };
    let own = bench.near.side(&shape);
    let sample = bench.far.side(&shape);
    bench.far.fill(sample.region, 0, LENGTH, 7);
    bench.near.fill(own.region, 0, LENGTH, 9);
    for kind in [Kind::Write, Kind::Read, Kind::FetchAdd] {
        for (_, what, mut element) in forbidden(&mut bench.near, &own, kind != Kind::Write) {
            if kind == Kind::FetchAdd {
                element[2] = 8;
                if what == "one byte behind" {
                    continue; // A word of 8 bytes fits there.
                }
            }
            let a = like(&mut bench.near, &shape, &own);
            let b = like(&mut bench.far, &shape, &sample);
            bench.connect(&a, &b, &Tuning::OPEN);
            let mut request = kind.request(3, &a, b.spot(0));
            request.elements = vec![element];
            bench.near.send(a.qp, request.unsignaled());
            let wc = bench.near.wait_one(a.send_cq);
            assert_eq!((wc.id, wc.status), (3, IBV_WC_LOC_PROT_ERR), "{kind:?}: {what}");
            assert_eq!(bench.near.state(a.qp), IBV_QPS_ERR, "{kind:?}: {what}");
            if kind == Kind::Write {
                bench.far.check(sample.region, 0, LENGTH, 7);
            }
            bench.near.check(own.region, 0, LENGTH, 9);
            destroy(bench, &a, &b);
        }
    }
}

/// After memory is deregistered, no byte of it changes, although writes were under way.
fn deregistered(bench: &mut Bench, own_memory: bool) {
    let shape = Shape::open(IBV_QPT_RC);
    for round in 0..if bench.processes { 25 } else { 60 } {
        let (a, b) = bench.connected(&shape, &Tuning::OPEN);
        let access = IBV_ACCESS_LOCAL_WRITE | REMOTE;
        let region = if own_memory {
            bench.far.own_region(b.pd, LENGTH, access)
        } else {
            bench.far.region(b.pd, LENGTH, access)
        };
        let spot = bench.far.start_of(region);
        let status = while_written(bench, &a, spot, round, |far| {
            assert_eq!(far.errno(op::DEREG, &[region as u64]), 0);
            (region, LENGTH)
        });
        assert_eq!(status, IBV_WC_REM_ACCESS_ERR);
        destroy(bench, &a, &b);
    }
}

/// The near node writes until it is refused. Meanwhile the far node revokes the right by
/// `take_away`, which returns the memory that must not change from then on. Returns the status of
/// the refused write.
fn while_written(
    bench: &mut Bench,
    a: &Side,
    spot: Remote,
    round: u64,
    take_away: impl FnOnce(&mut Node) -> (usize, usize),
) -> ibv_wc_status {
    let size = if round.is_multiple_of(2) { 60_000 } else { 8 };
    let near = &mut bench.near;
    let far = &mut bench.far;
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            loop {
                near.send(a.qp, Send::write(1, &[a.at(0, size)], spot));
                match near.wait_one(a.send_cq).status {
                    IBV_WC_SUCCESS => {}
                    status => return status,
                }
            }
        });
        std::thread::sleep(Duration::from_micros(round * 37 % 500));
        let (region, length) = take_away(far);
        far.fill(region, 0, length, 7);
        let status = writer.join().expect("the writer");
        far.check(region, 0, length, 7);
        status
    })
}

pub(crate) fn nothing_arrives_after_deregistration(bench: &mut Bench) {
    deregistered(bench, false);
}

pub(crate) fn nothing_arrives_in_own_memory_after_deregistration(bench: &mut Bench) {
    deregistered(bench, true);
}

pub(crate) fn nothing_arrives_after_the_connection(bench: &mut Bench) {
    let tuning = Tuning { timeout: 8, retries: 1, ..Tuning::OPEN };
    for round in 0..if bench.processes { 25 } else { 60 } {
        let (a, b) = bench.connected(&Shape::open(IBV_QPT_RC), &tuning);
        let status = while_written(bench, &a, b.spot(0), round, |far| {
            match round % 3 {
                0 => far.change_state(b.qp, IBV_QPS_ERR),
                1 => far.change_state(b.qp, IBV_QPS_RESET),
                _ => assert_eq!(far.errno(op::DESTROY_QP, &[b.qp as u64]), 0),
            }
            (b.region, LENGTH)
        });
        assert_eq!(status, IBV_WC_RETRY_EXC_ERR, "round {round}");
    }
}

pub(crate) fn nobody_there_exhausts_the_retries(bench: &mut Bench) {
    let tuning = Tuning { access: REMOTE, ..IMPATIENT };
    for kind in Kind::ALL {
        // The peer exists, but it is not ready to receive.
        let shape = Shape::open(IBV_QPT_RC);
        let a = bench.near.side(&shape);
        let b = bench.far.side(&shape);
        bench.near.connect_to(&a, b.number, b.gid, &tuning);
        bench.near.send(a.qp, kind.request(1, &a, b.spot(0)));
        assert_eq!(bench.near.wait_one(a.send_cq).status, IBV_WC_RETRY_EXC_ERR, "{kind:?}");
        assert_eq!(bench.near.state(a.qp), IBV_QPS_ERR, "{kind:?}");
        // The peer was connected, and then failed, was reset or was destroyed.
        for way in 0..3 {
            let (a, b) = bench.connected(&shape, &tuning);
            bench.near.send(a.qp, kind.request(1, &a, b.spot(0)));
            assert_eq!(bench.near.wait_one(a.send_cq).status, IBV_WC_SUCCESS, "{kind:?}");
            match way {
                0 => bench.far.change_state(b.qp, IBV_QPS_ERR),
                1 => bench.far.change_state(b.qp, IBV_QPS_RESET),
                _ => assert_eq!(bench.far.errno(op::DESTROY_QP, &[b.qp as u64]), 0),
            }
            bench.near.send(a.qp, kind.request(2, &a, b.spot(0)).unsignaled());
            let wc = bench.near.wait_one(a.send_cq);
            assert_eq!((wc.id, wc.status), (2, IBV_WC_RETRY_EXC_ERR), "{kind:?} way {way}");
        }
    }
}

/// A request that the service does not support is refused when it is posted, or completes with an
/// error (IBTA volume 1, section 11.4.1.1, leaves that to the device). It never takes effect.
pub(crate) fn operations_of_other_services_are_refused(bench: &mut Bench) {
    let reliable = [IBV_WR_RDMA_READ, IBV_WR_ATOMIC_CMP_AND_SWP, IBV_WR_ATOMIC_FETCH_AND_ADD];
    let connected = [IBV_WR_RDMA_WRITE, IBV_WR_RDMA_WRITE_WITH_IMM];
    let cases = reliable
        .map(|opcode| (IBV_QPT_UC, opcode))
        .into_iter()
        .chain(reliable.into_iter().chain(connected).map(|opcode| (IBV_QPT_UD, opcode)));
    for (service, opcode) in cases {
        let (a, b) = bench.connected(&Shape::open(service), &Tuning::OPEN);
        let handle = bench.near.handle(a.pd, b.gid);
        bench.far.fill(b.region, 0, 64, 7);
        bench.near.fill(a.region, 0, 64, 9);
        bench.far.receive(b.qp, 1, &[b.at(64, 4096)]);
        let mut request = Send { opcode, ..Send::write(1, &[a.at(0, 8)], b.spot(0)) };
        if service == IBV_QPT_UD {
            request = request.to(handle, b.number, QKEY);
        }
        match bench.near.try_send(a.qp, &[request]) {
            (0, None) => {
                let wc = bench.near.wait_one(a.send_cq);
                assert_eq!(wc.status, IBV_WC_LOC_QP_OP_ERR, "service {service} opcode {opcode}");
            }
            refused => assert_eq!(refused, (libc::EINVAL, Some(0)), "service {service} opcode {opcode}"),
        }
        bench.far.check(b.region, 0, 64, 7);
        bench.near.check(a.region, 0, 64, 9);
        bench.far.quiet(b.receive_cq, Duration::from_millis(1));
    }
}

/// man ibv_post_send: the inline flag is valid for sends and writes only.
pub(crate) fn what_has_no_payload_is_not_inline(bench: &mut Bench) {
    let (a, b) = bench.connected(&Shape::open(IBV_QPT_RC), &Tuning::OPEN);
    for kind in [Kind::Read, Kind::FetchAdd, Kind::CompareSwap] {
        let mut request = kind.request(1, &a, b.spot(0)).flag(IBV_SEND_INLINE);
        request.elements = vec![a.at(0, 8)];
        let behind = Send::write(2, &[a.at(0, 8)], b.spot(0));
        assert_eq!(bench.near.try_send(a.qp, &[request, behind]), (libc::EINVAL, Some(0)), "{kind:?}");
    }
    bench.near.quiet(a.send_cq, Duration::from_millis(1));
}

pub(crate) fn what_is_posted_to_a_failed_pair_is_flushed(bench: &mut Bench) {
    let (a, b) = bench.connected(&Shape::open(IBV_QPT_RC), &Tuning::OPEN);
    bench.far.fill(b.region, 0, 64, 7);
    bench.near.change_state(a.qp, IBV_QPS_ERR);
    for (id, kind) in (0..).zip(Kind::ALL) {
        bench.near.send(a.qp, kind.request(id, &a, b.spot(0)).unsignaled());
        let wc = bench.near.wait_one(a.send_cq);
        assert_eq!((wc.id, wc.status), (id, IBV_WC_WR_FLUSH_ERR), "{kind:?}");
    }
    bench.far.check(b.region, 0, 64, 7);
}

/// A drained send queue holds one-sided requests back, and later executes them in order.
pub(crate) fn a_drained_queue_reaches_nothing(bench: &mut Bench) {
    let (a, b) = bench.connected(&Shape::open(IBV_QPT_RC), &Tuning::OPEN);
    bench.near.fill(a.region, 0, 64, 9);
    bench.far.fill(b.region, 0, 64, 7);
    bench.near.change_state(a.qp, IBV_QPS_SQD);
    bench.near.send(a.qp, Send::write(1, &[a.at(0, 64)], b.spot(0)));
    bench.near.send(a.qp, Send::read(2, &[a.at(64, 64)], b.spot(0)));
    bench.near.quiet(a.send_cq, Duration::from_millis(10));
    bench.far.check(b.region, 0, 64, 7);
    bench.near.change_state(a.qp, IBV_QPS_RTS);
    let found = bench.near.wait(a.send_cq, 2);
    let opcodes: Vec<_> = found.iter().map(|wc| (wc.id, wc.status, wc.opcode)).collect();
    assert_eq!(opcodes, [(1, IBV_WC_SUCCESS, IBV_WC_RDMA_WRITE), (2, IBV_WC_SUCCESS, IBV_WC_RDMA_READ)]);
    bench.near.check(a.region, 64, 64, 9);
}

/// With an initiator depth of 0, no read or atomic is executed; writes need no depth.
pub(crate) fn without_depth_nothing_is_read(bench: &mut Bench) {
    for kind in [Kind::Read, Kind::FetchAdd, Kind::CompareSwap] {
        let (a, b) = bench.connected(&Shape::open(IBV_QPT_RC), &Tuning { depth: 0, ..Tuning::OPEN });
        bench.near.send(a.qp, Send::write(1, &[a.at(0, 64)], b.spot(0)));
        assert_eq!(bench.near.wait_one(a.send_cq).status, IBV_WC_SUCCESS);
        bench.near.fill(a.region, 0, 64, 9);
        bench.far.fill(b.region, 0, 64, 7);
        if bench.near.try_send(a.qp, &[kind.request(2, &a, b.spot(0))]).0 == 0 {
            let wc = bench.near.wait_one(a.send_cq);
            assert_eq!((wc.id, wc.status), (2, IBV_WC_LOC_QP_OP_ERR), "{kind:?}");
        }
        bench.near.check(a.region, 0, 64, 9);
        bench.far.check(b.region, 0, 64, 7);
    }
}

/// A responder without responder resources refuses reads and atomics (IBTA volume 1, section
/// 9.7.4.1).
pub(crate) fn without_resources_nothing_is_served(bench: &mut Bench) {
    let shape = Shape { bytes: LENGTH, ..Shape::open(IBV_QPT_RC) };
    for kind in [Kind::Read, Kind::FetchAdd, Kind::CompareSwap] {
        let (a, b) = bench.connected(&shape, &Tuning { resources: 0, ..Tuning::OPEN });
        bench.near.send(a.qp, Send::write(1, &[a.at(0, 64)], b.spot(0)));
        assert_eq!(bench.near.wait_one(a.send_cq).status, IBV_WC_SUCCESS);
        bench.far.fill(b.region, 0, LENGTH, 7);
        let request = kind.request(7, &a, b.spot(0));
        refused(bench, (&a, &b), request, IBV_WC_REM_INV_REQ_ERR, "there are no resources");
        bench.far.check(b.region, 0, LENGTH, 7);
    }
}

/// The device executes as many reads at a time as it reports. Further reads can be posted, and
/// wait.
pub(crate) fn as_many_reads_as_the_device_says(bench: &mut Bench) {
    let device = bench.near.call(op::DEVICE, &[]);
    let [0, _, served, under_way, all] = device[..] else { panic!("query_device failed: {device:?}") };
    assert!(served >= 1 && under_way >= 1 && all >= served, "{device:?}");
    let most = |n: u64| u8::try_from(n).unwrap_or(u8::MAX);
    let shape = Shape { sends: 64, ..Shape::open(IBV_QPT_RC) };
    for (depth, resources) in [(1, 1), (most(under_way.min(served)), most(served))] {
        let (a, b) = bench.connected(&shape, &Tuning { depth, resources, ..Tuning::OPEN });
        bench.far.fill(b.region, 0, 64 * 512, 3);
        let requests: Vec<Send> = (0..64)
            .map(|id| Send::read(id, &[a.at(id as usize * 512, 512)], b.spot(id as usize * 512)))
            .collect();
        assert_eq!(bench.near.try_send(a.qp, &requests), (0, None));
        for (id, wc) in (0..).zip(bench.near.wait(a.send_cq, 64)) {
            assert_eq!((wc.id, wc.status, wc.byte_len), (id, IBV_WC_SUCCESS, 512), "depth {depth}");
        }
        bench.near.check(a.region, 0, 64 * 512, 3);
    }
}
