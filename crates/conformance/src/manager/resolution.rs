//! Resolution of datagram queue pairs, which are not connected (man rdma_connect: `RDMA_PS_UDP`).

use std::net::SocketAddr;
use std::time::Duration;

use verbs::abi::rdma_cm::*;
use verbs::abi::*;

use super::{Meeting, any_port, home, unpaired};
use crate::shape::{Parameters, Send, Side};
use crate::{Bench, Node};

/// The reasons of a failed resolution (`enum ib_cm_sidr_status`).
const UNSUPPORTED: i32 = 1;
const REJECTED: i32 = 2;
/// The bytes of a receive that the header of a datagram occupies.
const HEADER: usize = 40;

pub(crate) fn nobody_is_resolved(bench: &mut Bench) {
    let node = &mut bench.near;
    let home = home(node);
    let channel = node.event_channel();
    let (_, port) = node.listener(channel, RDMA_PS_TCP, any_port(home), 1);
    let id = node.routed(channel, RDMA_PS_UDP, SocketAddr::new(home.into(), port));
    assert_eq!(node.request(id, &unpaired()), 0);
    let event = node.expect_failure(channel, id, RDMA_CM_EVENT_UNREACHABLE, UNSUPPORTED);
    assert_eq!((event.qp_num, event.qkey), (0, 0));
    assert_eq!(event.parameters.data, [0; 136]);
}

#[track_caller]
fn carry(from: &mut Node, of: &Side, to: &mut Node, at: &Side, handle: usize, qkey: u32) {
    const BYTES: usize = 900;
    from.fill(of.region, 0, BYTES, 5);
    to.receive(at.qp, 7, &[at.at(4096, BYTES + HEADER)]);
    from.send(of.qp, Send::new(8, &[of.at(0, BYTES)]).to(handle, at.number, qkey));
    assert_eq!(from.wait_one(of.send_cq).status, IBV_WC_SUCCESS);
    let got = to.wait_one(at.receive_cq);
    assert_eq!((got.status, got.byte_len as usize, got.src_qp), (IBV_WC_SUCCESS, BYTES + HEADER, of.number));
    to.check(at.region, 4096 + HEADER, BYTES, 5);
}

pub(crate) fn datagrams_find_their_way(bench: &mut Bench) {
    let meeting = Meeting::new(bench, RDMA_PS_UDP);
    let near = bench.near.pair_of(meeting.near, IBV_QPT_UD);
    assert_eq!(bench.near.state(near.qp), IBV_QPS_RTS, "it waits for no peer");
    let request = meeting.ask(bench, &Parameters::with(b"where"));
    assert_eq!(request.parameters.data[..6], *b"where\0");
    assert_eq!(
        (request.qp_num, request.qkey, request.route.is_global),
        (0, 0, 0),
        "the request names no queue pair"
    );
    let far = bench.far.pair_of(request.id, IBV_QPT_UD);
    assert_eq!(bench.far.accept(request.id, &Parameters::default()), 0);
    let found = bench.near.expect_event(meeting.near_channel, meeting.near, RDMA_CM_EVENT_ESTABLISHED);
    assert_eq!((found.qp_num, found.qkey), (far.number, RDMA_UDP_QKEY));
    bench.far.is_quiet(meeting.far_channel, Duration::from_millis(50));
    let handle = bench.near.handle_by(near.pd, &found.route);
    carry(&mut bench.near, &near, &mut bench.far, &far, handle, found.qkey);
    let back = bench.far.handle_by(far.pd, &found.route);
    carry(&mut bench.far, &far, &mut bench.near, &near, back, found.qkey);
    assert_eq!(bench.near.disconnect(meeting.near), 0, "there is no connection");
    bench.far.is_quiet(meeting.far_channel, Duration::from_millis(50));
    bench.near.is_quiet(meeting.near_channel, Duration::ZERO);
}

pub(crate) fn who_rejects_is_not_resolved(bench: &mut Bench) {
    let meeting = Meeting::new(bench, RDMA_PS_UDP);
    let request = meeting.ask(bench, &unpaired());
    assert_eq!(bench.far.reject(request.id, b"moved"), 0);
    let event =
        bench.near.expect_failure(meeting.near_channel, meeting.near, RDMA_CM_EVENT_UNREACHABLE, REJECTED);
    assert_eq!(event.parameters.data[..6], *b"moved\0");
    assert_eq!((event.qp_num, event.qkey, event.route.is_global), (0, 0, 0), "there is no destination");
    assert_eq!(
        bench.far.accept(request.id, &Parameters::default()),
        libc::EINVAL,
        "the request is already answered"
    );
}

pub(crate) fn who_is_dropped_is_not_resolved(bench: &mut Bench) {
    let meeting = Meeting::new(bench, RDMA_PS_UDP);
    let request = meeting.ask(bench, &unpaired());
    bench.far.destroy_identifier(request.id);
    bench.near.expect_failure(meeting.near_channel, meeting.near, RDMA_CM_EVENT_UNREACHABLE, REJECTED);
    let second = meeting.another(bench);
    assert_eq!(bench.near.request(second, &unpaired()), 0);
    assert!(bench.far.has_event(meeting.far_channel, 10_000));
    bench.far.destroy_identifier(meeting.listener);
    bench.near.expect_failure(meeting.near_channel, second, RDMA_CM_EVENT_UNREACHABLE, REJECTED);
}
