//! What softdev promises beyond the specification, so that programs that rely on too much are found
//! here and not on an adapter. The conformance cases check what every device promises.

use softdev::PROVIDER;
use verbs::abi::*;

use conformance::node::{peer, serve};
use conformance::rig::{Memory, op};
use conformance::subject::Origin;
use conformance::{
    Bench, Case, Node, QKEY, REMOTE, SERVICES, Send, Shape, Side, Subject, Tuning, run_cases, two_ends,
};

fn main() {
    if peer().is_some() {
        return serve(&subject());
    }
    const CASES: &[Case] = two_ends! {
        a_header_is_with_datagrams_only
        an_error_shows_in_the_state_with_its_completion
        places_are_held_until_a_completion_is_polled
        places_of_flushed_requests_are_held_as_well
        a_datagram_that_is_too_long_is_an_error
        an_overrun_queue_fails_its_polls
        only_the_peer_is_answered
        a_message_that_does_not_fit_leaves_no_byte
        a_wrong_value_is_an_invalid_argument
        an_overrun_queue_takes_its_pair_along
        a_member_hears_itself
        events_come_in_their_order
        an_event_waits_for_room
        what_would_invalidate_is_refused
        memory_that_has_gone_is_an_access_error
        a_receive_in_memory_that_has_gone_is_an_error
        what_the_receiver_has_to_place_needs_no_system_call
    };
    run_cases(&subject(), CASES)
}

fn subject() -> Subject {
    Subject { provider: &PROVIDER, device: "softdev0".to_owned(), origin: Origin::default() }
}

fn a_header_is_with_datagrams_only(bench: &mut Bench) {
    for (service, header) in [(IBV_QPT_RC, 0), (IBV_QPT_UC, 0), (IBV_QPT_UD, IBV_WC_GRH)] {
        let (a, b) = bench.connected(&Shape::of(service), &Tuning::default());
        let handle = bench.near.handle(a.pd, b.gid);
        bench.far.receive(b.qp, 1, &[b.at(0, 4096)]);
        bench.near.send(a.qp, Send::new(1, &[a.at(0, 8)]).to(handle, b.number, QKEY));
        assert_eq!(bench.far.wait_one(b.receive_cq).flags, header, "service {service}");
    }
}

/// Failed sends of both kinds, and both sides of a message that does not fit.
fn an_error_shows_in_the_state_with_its_completion(bench: &mut Bench) {
    for (service, state) in [(IBV_QPT_RC, IBV_QPS_ERR), (IBV_QPT_UC, IBV_QPS_SQE)] {
        let (a, _) = bench.connected(&Shape::of(service), &Tuning::default());
        let mut element = a.at(0, 64);
        element[3] = 0xdead_be00;
        bench.near.send(a.qp, Send::new(1, &[element]));
        bench.near.wait_one(a.send_cq);
        assert_eq!(bench.near.state(a.qp), state, "service {service}");
    }
    let (a, b) = bench.connected(&Shape::of(IBV_QPT_RC), &Tuning::default());
    bench.far.receive(b.qp, 1, &[b.at(0, 8)]);
    bench.near.send(a.qp, Send::new(1, &[a.at(0, 9)]));
    bench.near.wait_one(a.send_cq);
    assert_eq!(bench.near.state(a.qp), IBV_QPS_ERR);
    bench.far.wait_one(b.receive_cq);
    assert_eq!(bench.far.state(b.qp), IBV_QPS_ERR);
}

/// A program that never asks for completions is detected: an adapter may stop it much later.
fn places_are_held_until_a_completion_is_polled(bench: &mut Bench) {
    let shape = Shape { sends: 4, receives: 16, ..Shape::of(IBV_QPT_RC) };
    let (a, b) = bench.connected(&shape, &Tuning::default());
    assert_eq!((a.sends, b.receives), (4, 16), "as many as were asked for");
    for id in 0..16 {
        bench.far.receive(b.qp, id, &[b.at(0, 64)]);
    }
    for round in 0..3 {
        for id in 0..4 {
            let request = Send::new(round * 100 + id, &[a.at(0, 8)]);
            bench.near.send(a.qp, if id < 3 { request.unsignaled() } else { request });
        }
        bench.far.wait(b.receive_cq, 4);
        let full = bench.near.try_send(a.qp, &[Send::new(99, &[a.at(0, 8)])]);
        assert_eq!(full, (libc::ENOMEM, Some(0)), "round {round}");
        assert_eq!(bench.near.wait_one(a.send_cq).id, round * 100 + 3);
    }
    // Twelve of sixteen receives have been used and polled.
    for id in 0..12 {
        bench.far.receive(b.qp, id, &[b.at(0, 64)]);
    }
    bench.near.send(a.qp, Send::new(1, &[a.at(0, 8)]));
    bench.near.wait_one(a.send_cq);
    let full = bench.far.try_receive(b.qp, &[(99, vec![b.at(0, 64)])]);
    assert_eq!(full, (libc::ENOMEM, Some(0)), "the completion has not been polled");
    bench.far.wait_one(b.receive_cq);
    bench.far.receive(b.qp, 99, &[b.at(0, 64)]);
}

fn places_of_flushed_requests_are_held_as_well(bench: &mut Bench) {
    let shape = Shape { sends: 4, receives: 4, ..Shape::of(IBV_QPT_RC) };
    let (a, _) = bench.connected(&shape, &Tuning::default());
    bench.near.change_state(a.qp, IBV_QPS_ERR);
    for round in 0..5 {
        for id in 0..4 {
            bench.near.send(a.qp, Send::new(round * 10 + id, &[a.at(0, 64)]));
            bench.near.receive(a.qp, round * 10 + id, &[a.at(0, 64)]);
        }
        assert_eq!(bench.near.try_send(a.qp, &[Send::new(99, &[a.at(0, 64)])]).0, libc::ENOMEM);
        assert_eq!(bench.near.try_receive(a.qp, &[(99, vec![a.at(0, 64)])]).0, libc::ENOMEM);
        bench.near.wait(a.send_cq, 4);
        bench.near.wait(a.receive_cq, 4);
    }
}

/// As on adapters; the specification demands that it is dropped silently.
fn a_datagram_that_is_too_long_is_an_error(bench: &mut Bench) {
    let (a, b) = bench.connected(&Shape::of(IBV_QPT_UD), &Tuning::default());
    let handle = bench.near.handle(a.pd, b.gid);
    let long = Send::new(1, &[a.at(0, 4000), a.at(0, 97)]).to(handle, b.number, QKEY);
    bench.near.send(a.qp, long);
    let wc = bench.near.wait_one(a.send_cq);
    assert_eq!((wc.id, wc.status), (1, IBV_WC_LOC_LEN_ERR));
    assert_eq!(bench.near.state(a.qp), IBV_QPS_SQE);
}

fn an_overrun_queue_fails_its_polls(bench: &mut Bench) {
    let pd = bench.near.pd();
    let cq = bench.near.cq(4);
    let other = bench.near.cq(16);
    let shape = Shape::of(IBV_QPT_RC);
    let a = bench.near.side_on(&shape, pd, [cq, other]);
    let b = bench.far.side(&shape);
    bench.connect(&a, &b, &Tuning::default());
    for id in 0..=4 {
        bench.far.receive(b.qp, id, &[b.at(0, 64)]);
        bench.near.send(a.qp, Send::new(id, &[a.at(0, 8)]));
    }
    bench.far.wait(b.receive_cq, 5);
    assert_eq!(bench.near.poll(cq, 16).len(), 4);
    assert_eq!(bench.near.try_poll(cq, 1), Err(libc::EOVERFLOW));
}

/// A packet does not say which queue pair of RC it is from: an adapter takes any packet with the
/// right sequence number from the peer's address for the peer's.
fn only_the_peer_is_answered(bench: &mut Bench) {
    let tuning = Tuning { timeout: 10, retries: 2, ..Tuning::default() };
    let (a, b) = bench.connected(&Shape::open(IBV_QPT_RC), &Tuning { access: Tuning::OPEN.access, ..tuning });
    bench.far.receive(b.qp, 1, &[b.at(0, 64)]);
    bench.far.fill(b.region, 64, 64, 7);
    for is_write in [false, true] {
        let c = bench.near.side(&Shape::of(IBV_QPT_RC));
        bench.near.connect_to(&c, b.number, b.gid, &tuning);
        let elements = [c.at(0, 64)];
        let request = if is_write { Send::write(1, &elements, b.spot(64)) } else { Send::new(1, &elements) };
        bench.near.send(c.qp, request);
        assert_eq!(bench.near.wait_one(c.send_cq).status, IBV_WC_RETRY_EXC_ERR);
    }
    bench.far.check(b.region, 64, 64, 7);
    assert_eq!(bench.far.poll(b.receive_cq, 1), []);
    bench.near.send(a.qp, Send::new(1, &[a.at(0, 64)]));
    assert_eq!(bench.near.wait_one(a.send_cq).status, IBV_WC_SUCCESS);
}

/// No byte is written, neither to the part of the receive that lies in the region, nor of the part
/// of the message that would fit.
fn a_message_that_does_not_fit_leaves_no_byte(bench: &mut Bench) {
    for service in SERVICES {
        let shape = Shape::of(service);
        let (a, b) = bench.connected(&shape, &Tuning::default());
        let handle = bench.near.handle(a.pd, b.gid);
        bench.far.fill(b.region, 0, shape.bytes, 7);
        // Its first bytes lie in the region.
        bench.far.receive(b.qp, 1, &[b.at(shape.bytes - 63, 64)]);
        let header = if service == IBV_QPT_UD { 40 } else { 0 };
        let request = Send::new(1, &[a.at(0, 64 - header)]).to(handle, b.number, QKEY);
        bench.near.send(a.qp, request);
        assert_eq!(bench.far.wait_one(b.receive_cq).status, IBV_WC_LOC_PROT_ERR, "service {service}");
        bench.far.check(b.region, 0, shape.bytes, 7);
    }
    let (a, b) = bench.connected(&Shape::of(IBV_QPT_RC), &Tuning::default());
    bench.far.fill(b.region, 0, 8192, 8);
    bench.far.receive(b.qp, 1, &[b.at(0, 4999)]);
    bench.near.send(a.qp, Send::new(1, &[a.at(0, 5000)]));
    assert_eq!(bench.far.wait_one(b.receive_cq).status, IBV_WC_LOC_LEN_ERR);
    bench.far.check(b.region, 0, 8192, 8);
}

fn a_wrong_value_is_an_invalid_argument(bench: &mut Bench) {
    let side = bench.near.side(&Shape::of(IBV_QPT_RC));
    bench.near.init(&side, &Tuning::default());
    let mut ah_attr = side.origin.route(side.gid);
    ah_attr.grh.sgid_index = 255;
    let attr = ibv_qp_attr {
        qp_state: IBV_QPS_RTR,
        path_mtu: IBV_MTU_1024,
        dest_qp_num: side.number,
        max_dest_rd_atomic: 1,
        ah_attr,
        ..ibv_qp_attr::default()
    };
    let mask = IBV_QP_STATE
        | IBV_QP_AV
        | IBV_QP_PATH_MTU
        | IBV_QP_DEST_QPN
        | IBV_QP_RQ_PSN
        | IBV_QP_MAX_DEST_RD_ATOMIC
        | IBV_QP_MIN_RNR_TIMER;
    assert_eq!(bench.near.modify(side.qp, &attr, mask), libc::EINVAL, "a GID index that does not exist");
    assert_eq!(bench.near.try_handle(side.pd, &ah_attr), Err(libc::EINVAL), "the same for an address handle");
}

/// IBTA volume 1, section 11.6.3.2: a queue pair that can no longer report completions has failed.
fn an_overrun_queue_takes_its_pair_along(bench: &mut Bench) {
    let pd = bench.near.pd();
    let cq = bench.near.cq(4);
    let other = bench.near.cq(16);
    let shape = Shape::of(IBV_QPT_RC);
    let a = bench.near.side_on(&shape, pd, [cq, other]);
    let b = bench.far.side(&shape);
    bench.connect(&a, &b, &Tuning::default());
    bench.near.receive(a.qp, 7, &[a.at(0, 64)]);
    for id in 0..=4 {
        bench.far.receive(b.qp, id, &[b.at(0, 64)]);
        bench.near.send(a.qp, Send::new(id, &[a.at(0, 8)]));
    }
    for (event_type, object) in [(IBV_EVENT_CQ_ERR, cq), (IBV_EVENT_QP_FATAL, a.qp)] {
        let event = bench.near.call(op::ASYNC, &[]);
        assert_eq!(event[2..], [u64::from(event_type), object as u64]);
        bench.near.errno(op::ASYNC_ACK, &[event[1]]);
    }
    assert_eq!(bench.near.state(a.qp), IBV_QPS_ERR);
    let flushed = bench.near.wait_one(other);
    assert_eq!((flushed.id, flushed.status), (7, IBV_WC_WR_FLUSH_ERR));
    assert!(!bench.near.is_alarmed(0), "once each");
}

/// As on adapters by default (`IBV_QP_CREATE_BLOCK_SELF_MCAST_LB`).
fn a_member_hears_itself(bench: &mut Bench) {
    let group = [0xff12_0000_0000_0000, u64::from(std::process::id())];
    let side = bench.near.side(&Shape::of(IBV_QPT_UD));
    bench.near.connect_to(&side, 0, side.gid, &Tuning::default());
    let handle = bench.near.handle(side.pd, group);
    for (id, joins) in [(1, false), (2, true)] {
        let words = [side.qp as u64, group[0], group[1]];
        assert!(!joins || bench.near.errno(op::ATTACH, &words) == 0);
        bench.near.receive(side.qp, id, &[side.at(0, 4096)]);
        bench
            .near
            .send(side.qp, Send::new(1, &[side.at(0, 8)]).immediate(id as u32).to(handle, 0xff_ffff, QKEY));
        assert_eq!(bench.near.wait_one(side.send_cq).status, IBV_WC_SUCCESS);
    }
    assert_eq!(bench.near.wait_one(side.receive_cq).imm, 2, "not before it has joined");
    assert_eq!(bench.near.errno(op::DETACH, &[side.qp as u64, group[0], group[1]]), 0);
}

/// Events of a peer and of this process, too.
fn events_come_in_their_order(bench: &mut Bench) {
    let (a, b) = bench.connected(&Shape::open(IBV_QPT_RC), &Tuning::OPEN);
    let own = bench.far.side(&Shape::of(IBV_QPT_RC));
    bench.far.connect_to(&own, own.number, own.gid, &Tuning::default());
    let drain = ibv_qp_attr { qp_state: IBV_QPS_SQD, en_sqd_async_notify: 1, ..ibv_qp_attr::default() };
    let mask = IBV_QP_STATE | IBV_QP_EN_SQD_ASYNC_NOTIFY;
    assert_eq!(bench.far.modify(own.qp, &drain, mask), 0);
    bench.near.send(a.qp, Send::write(1, &[a.at(0, 8)], b.spot(0).by(1 << 8 | 0xfe)));
    assert_eq!(bench.near.wait_one(a.send_cq).status, IBV_WC_REM_ACCESS_ERR);
    bench.far.change_state(own.qp, IBV_QPS_RTS);
    assert_eq!(bench.far.modify(own.qp, &drain, mask), 0);
    let expected =
        [(IBV_EVENT_SQ_DRAINED, own.qp), (IBV_EVENT_QP_ACCESS_ERR, b.qp), (IBV_EVENT_SQ_DRAINED, own.qp)];
    for (event_type, object) in expected {
        let event = bench.far.call(op::ASYNC, &[]);
        assert_eq!(event[2..], [u64::from(event_type), object as u64]);
        bench.far.errno(op::ASYNC_ACK, &[event[1]]);
    }
}

/// There are no memory windows, and a region of `ibv_reg_mr` cannot be invalidated (IBTA vol. 1,
/// section 10.6.7; `rxe_invalidate_mr()` in the kernel's rxe_mr.c takes only `IB_MR_TYPE_MEM_REG`,
/// which programs cannot make). The device therefore does not claim these operations
/// (`IBV_DEVICE_MEM_MGT_EXTENSIONS`).
fn what_would_invalidate_is_refused(bench: &mut Bench) {
    let (a, b) = bench.connected(&Shape::open(IBV_QPT_RC), &Tuning::OPEN);
    bench.far.receive(b.qp, 1, &[b.at(0, 64)]);
    for opcode in [IBV_WR_LOCAL_INV, IBV_WR_BIND_MW, IBV_WR_SEND_WITH_INV, IBV_WR_TSO] {
        let request = Send { opcode, imm: a.remote.key, ..Send::new(1, &[a.at(0, 8)]) };
        assert_eq!(bench.near.try_send(a.qp, &[request]), (libc::EINVAL, Some(0)), "opcode {opcode}");
    }
    bench.near.send(a.qp, Send::write(2, &[a.at(0, 8)], b.spot(128)));
    assert_eq!(bench.near.wait_one(a.send_cq).id, 2, "the queue pair still works");
    bench.near.send(a.qp, Send::new(3, &[a.at(0, 8)]));
    assert_eq!(bench.far.wait_one(b.receive_cq).status, IBV_WC_SUCCESS);
}

/// A program arms one queue again and again and takes no event, until there is no room for another
/// queue's event.
fn an_event_waits_for_room(bench: &mut Bench) {
    /// More events than fit in a pipe.
    const EVENTS: usize = 10_000;
    let near = &mut bench.near;
    let channel = near.channel();
    let pd = near.pd();
    let cqs = [near.cq_on(channel, 64), near.cq_on(channel, 64)];
    let a = near.side_on(&Shape::of(IBV_QPT_RC), pd, cqs);
    let b = bench.far.side(&Shape::of(IBV_QPT_RC));
    bench.connect(&a, &b, &Tuning::default());
    assert_eq!(bench.near.errno(op::NONBLOCK, &[channel as u64, 1]), 0);
    for id in 0..EVENTS as u64 {
        bench.far.receive(b.qp, id, &[b.at(0, 8)]);
        bench.near.arm(a.send_cq, false);
        bench.near.send(a.qp, Send::new(id, &[a.at(0, 8)]));
        bench.near.wait_one(a.send_cq);
        bench.far.wait_one(b.receive_cq);
    }
    for id in 0..2 {
        bench.near.receive(a.qp, id, &[a.at(0, 8)]);
        bench.near.arm(a.receive_cq, false);
        bench.far.send(b.qp, Send::new(id, &[b.at(0, 8)]));
        assert_eq!(bench.far.wait_one(b.send_cq).status, IBV_WC_SUCCESS);
        let mut taken = [0, 0];
        while bench.near.is_ready(channel, 0) {
            let answer = bench.near.call(op::EVENT, &[channel as u64]);
            assert_eq!(answer[0], 0);
            bench.near.errno(op::ACK, &[answer[1], 1]);
            taken[usize::from(answer[1] as usize == a.receive_cq)] += 1;
        }
        if id == 0 {
            assert!((1000..EVENTS).contains(&taken[0]), "{taken:?}: the pipe was not full");
        }
        assert_eq!(taken[1], 1, "the event of the receive");
        assert_eq!(bench.near.wait_one(a.receive_cq).status, IBV_WC_SUCCESS);
    }
}

/// Makes a region of whole pages whose memory is gone: unmapped, or a file that was truncated.
fn region_without_memory(node: &mut Node, side: &Side, memory: Memory) -> usize {
    let words = [side.pd as u64, 1 << 20, u64::from(IBV_ACCESS_LOCAL_WRITE | REMOTE), memory.word()];
    let region = node.call(op::MR, &words)[1] as usize;
    node.fill(region, 0, 1 << 20, 3);
    let end = if memory == Memory::File { op::TRUNCATE } else { op::UNMAP };
    assert_eq!(node.errno(end, &[region as u64]), 0);
    region
}

/// An adapter accesses the pages that it has pinned. The device pins nothing, and finds no pages.
fn memory_that_has_gone_is_an_access_error(bench: &mut Bench) {
    for memory in [Memory::Own, Memory::File] {
        for operation in 0..6 {
            let (a, b) = bench.connected(&Shape::open(IBV_QPT_RC), &Tuning::OPEN);
            let region = region_without_memory(&mut bench.far, &b, memory);
            let place = bench.far.start_of(region).at(4096);
            let word = a.at(0, 8);
            let request = match operation {
                0 => Send::write(1, &[word], place),
                1 => Send::write(1, &[a.at(0, 20_000)], place),
                2 => Send::read(1, &[word], place),
                3 => Send::read(1, &[a.at(0, 20_000)], place),
                4 => Send::fetch_add(1, word, place, 1),
                _ => Send::compare_swap(1, word, place, 1, 2),
            };
            bench.near.send(a.qp, request);
            let wc = bench.near.wait_one(a.send_cq);
            assert_eq!((wc.id, wc.status), (1, IBV_WC_REM_ACCESS_ERR), "{memory:?}, operation {operation}");
            bench.far.settles(b.qp, IBV_QPS_ERR, "the target");
        }
    }
}

/// This concerns payloads that the requester places: one that goes through the lane is placed by
/// the poller, in its own memory.
fn a_receive_in_memory_that_has_gone_is_an_error(bench: &mut Bench) {
    for memory in [Memory::Own, Memory::File] {
        let (a, b) = bench.connected(&Shape::open(IBV_QPT_RC), &Tuning::OPEN);
        let region = region_without_memory(&mut bench.far, &b, memory);
        bench.far.receive(b.qp, 1, &[[region as u64, 0, 1 << 16, 0]]);
        bench.near.send(a.qp, Send::new(2, &[a.at(0, 1 << 16)]));
        assert_eq!(bench.near.wait_one(a.send_cq).status, IBV_WC_REM_OP_ERR, "{memory:?}");
        assert_eq!(bench.far.wait_one(b.receive_cq).status, IBV_WC_LOC_PROT_ERR, "{memory:?}");
    }
}

/// Messages of up to some kilobytes for memory that only the receiver has mapped wait in the lane
/// until they are polled, as many as it has room for. Longer messages, and those beyond that room,
/// are in place before.
fn what_the_receiver_has_to_place_needs_no_system_call(bench: &mut Bench) {
    const LONGEST: usize = 8320;
    const ROOM: usize = 32;
    for shares in [false, true] {
        let bytes = 2 * LONGEST;
        let shape = Shape { receives: 64, bytes, own_memory: true, ..Shape::open(IBV_QPT_RC) };
        let pd = bench.far.pd();
        let srq = shares.then(|| bench.far.srq(pd, 64, 2));
        let cqs = [bench.far.cq(64), bench.far.cq(64)];
        let region = bench.far.own_region(pd, bytes, shape.access);
        let a = bench.near.side(&shape);
        let b = bench.far.side_with(&Shape { srq, ..shape }, pd, cqs, region);
        bench.connect(&a, &b, &Tuning::OPEN);
        let send = |bench: &mut Bench, size: usize, seed: u64| {
            let place = [b.at(0, size)];
            match srq {
                Some(srq) => bench.far.receive_shared(srq, seed, &place),
                None => bench.far.receive(b.qp, seed, &place),
            }
            bench.near.fill(a.region, 0, size, seed);
            bench.near.send(a.qp, Send::new(seed, &[a.at(0, size)]));
            assert_eq!(bench.near.wait_one(a.send_cq).status, IBV_WC_SUCCESS);
        };
        for (seed, size, waits) in [(1, 33, true), (2, LONGEST, true), (3, LONGEST + 1, false)] {
            bench.far.fill(region, 0, size, 1000);
            send(bench, size, seed);
            bench.far.check(region, 0, size, if waits { 1000 } else { seed });
            assert_eq!(bench.far.wait_one(b.receive_cq).status, IBV_WC_SUCCESS);
            bench.far.check(region, 0, size, seed);
        }
        // The receiver says only now and then that messages were taken, so the room may be slightly
        // smaller.
        bench.far.fill(region, 0, 100, 1000);
        for seed in 0..2 * ROOM as u64 - 8 {
            send(bench, 100, seed);
        }
        bench.far.check(region, 0, 100, 2 * ROOM as u64 - 9);
        for wc in bench.far.wait(b.receive_cq, 2 * ROOM - 8) {
            assert_eq!(wc.status, IBV_WC_SUCCESS);
        }
    }
}
