//! Multicast groups (man rdma_join_multicast).

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use verbs::abi::rdma_cm::*;
use verbs::abi::*;

use super::{any_port, home};
use crate::shape::{CmEvent, Send, Side};
use crate::{Bench, Node};

/// The queue pair number of datagrams to a group.
const MULTICAST_QP: u32 = 0xff_ffff;
/// The bytes of a receive that the header of a datagram occupies.
const HEADER: usize = 40;

/// A group of this program, with a locally administered address (RFC 2365).
fn group() -> SocketAddr {
    let [.., third, fourth] = std::process::id().to_be_bytes();
    any_port(Ipv4Addr::new(239, 77, third, fourth))
}

/// An identifier for datagrams that is bound to the device.
#[track_caller]
fn bound(node: &mut Node, channel: usize) -> usize {
    let home = home(node);
    let id = node.identifier(channel, RDMA_PS_UDP);
    assert_eq!(node.bind(id, any_port(home)), 0);
    id
}

#[track_caller]
fn joined(node: &mut Node, channel: usize, id: usize, group: SocketAddr) -> CmEvent {
    assert_eq!(node.join(id, group), 0, "rdma_join_multicast");
    let event = node.expect_event(channel, id, RDMA_CM_EVENT_MULTICAST_JOIN);
    assert_eq!((event.qp_num, event.qkey), (MULTICAST_QP, RDMA_UDP_QKEY));
    assert_eq!(event.route.is_global, 1);
    event
}

pub(crate) fn a_group_is_joined_and_left(bench: &mut Bench) {
    let node = &mut bench.near;
    let channel = node.event_channel();
    let id = bound(node, channel);
    let group = group();
    let event = joined(node, channel, id, group);
    let SocketAddr::V4(ipv4) = group else { unreachable!("the group is IPv4") };
    assert_eq!(event.route.grh.dgid.raw, ipv4.ip().to_ipv6_mapped().octets());
    assert_eq!(node.leave(id, group), 0);
    assert_eq!(node.leave(id, group), libc::EADDRNOTAVAIL, "the group was left");
    joined(node, channel, id, group);
    node.is_quiet(channel, Duration::from_millis(20));
}

pub(crate) fn who_cannot_join_is_refused(bench: &mut Bench) {
    let node = &mut bench.near;
    let home = home(node);
    let channel = node.event_channel();
    let stream = node.identifier(channel, RDMA_PS_TCP);
    assert_eq!(node.bind(stream, any_port(home)), 0);
    assert_eq!(node.join(stream, group()), libc::EINVAL, "connections have no groups");
    let unbound = node.identifier(channel, RDMA_PS_UDP);
    assert_eq!(node.join(unbound, group()), libc::EINVAL, "the identifier is not bound");
    let (listener, _) = node.listener(channel, RDMA_PS_UDP, any_port(home), 1);
    assert_eq!(node.join(listener, group()), libc::EINVAL, "the identifier listens");
    let routed = node.routed(channel, RDMA_PS_UDP, SocketAddr::new(home.into(), 7471));
    assert_eq!(node.join(routed, group()), libc::EINVAL, "the identifier has a route");
    node.is_quiet(channel, Duration::from_millis(20));
}

/// A member of the group with a queue pair and a posted receive.
#[track_caller]
fn member(node: &mut Node, group: SocketAddr) -> (usize, Side, CmEvent) {
    let channel = node.event_channel();
    let id = bound(node, channel);
    let side = node.pair_of(id, IBV_QPT_UD);
    let event = joined(node, channel, id, group);
    node.receive(side.qp, 7, &[side.at(4096, 1024 + HEADER)]);
    (id, side, event)
}

pub(crate) fn a_datagram_reaches_the_group(bench: &mut Bench) {
    let group = group();
    let (_, near, event) = member(&mut bench.near, group);
    let (far_id, far, _) = member(&mut bench.far, group);
    let handle = bench.near.handle_by(near.pd, &event.route);
    let send = |node: &mut Node, seed| {
        node.fill(near.region, 0, 900, seed);
        node.send(near.qp, Send::new(8, &[near.at(0, 900)]).to(handle, event.qp_num, event.qkey));
        assert_eq!(node.wait_one(near.send_cq).status, IBV_WC_SUCCESS);
    };
    send(&mut bench.near, 5);
    let got = bench.far.wait_one(far.receive_cq);
    assert_eq!((got.status, got.byte_len as usize, got.src_qp), (IBV_WC_SUCCESS, 900 + HEADER, near.number));
    bench.far.check(far.region, 4096 + HEADER, 900, 5);
    assert_eq!(bench.far.leave(far_id, group), 0);
    bench.far.receive(far.qp, 7, &[far.at(4096, 1024 + HEADER)]);
    send(&mut bench.near, 6);
    bench.far.quiet(far.receive_cq, Duration::from_millis(50));
}
