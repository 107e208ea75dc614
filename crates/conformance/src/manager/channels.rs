//! Event channels (man rdma_create_event_channel, rdma_get_cm_event, rdma_migrate_id).

use std::net::SocketAddr;
use std::time::Duration;

use verbs::abi::rdma_cm::*;

use super::{Meeting, home, unpaired};
use crate::rig::cm;
use crate::{Bench, Node};

/// An address to resolve.
#[track_caller]
fn somewhere(node: &mut Node) -> SocketAddr {
    SocketAddr::new(home(node).into(), 7471)
}

pub(crate) fn a_channel_says_whether_it_has_events(bench: &mut Bench) {
    let node = &mut bench.near;
    let to = somewhere(node);
    let channel = node.event_channel();
    let other = node.event_channel();
    assert_eq!(node.errno(cm::NONBLOCK, &[channel as u64, 1]), 0);
    let id = node.identifier(channel, RDMA_PS_TCP);
    assert!(!node.has_event(channel, 20));
    assert_eq!(node.take_event(channel).err(), Some(libc::EAGAIN));
    assert_eq!(node.resolve_address(id, None, to), 0);
    assert!(node.has_event(channel, 10_000));
    assert!(node.has_event(channel, 0), "polling takes no event");
    assert!(!node.has_event(other, 0), "another channel has none");
    node.expect_event(channel, id, RDMA_CM_EVENT_ADDR_RESOLVED);
    assert!(!node.has_event(channel, 20), "the event was taken");
    assert_eq!(node.take_event(channel).err(), Some(libc::EAGAIN));
    // One of two events is left.
    let second = node.identifier(channel, RDMA_PS_TCP);
    assert_eq!(node.resolve_route(id), 0);
    assert!(node.has_event(channel, 10_000));
    assert_eq!(node.resolve_address(second, None, to), 0);
    node.expect_event(channel, id, RDMA_CM_EVENT_ROUTE_RESOLVED);
    node.expect_event(channel, second, RDMA_CM_EVENT_ADDR_RESOLVED);
    assert_eq!(node.resolve_route(second), 0);
    assert!(node.has_event(channel, 10_000));
    node.destroy_identifier(second);
    assert!(!node.has_event(channel, 20), "the events of a destroyed identifier are dropped");
}

pub(crate) fn a_channel_survives_duplication(bench: &mut Bench) {
    let node = &mut bench.near;
    let to = somewhere(node);
    let channel = node.event_channel();
    let id = node.identifier(channel, RDMA_PS_TCP);
    assert_eq!(node.resolve_address(id, None, to), 0);
    assert_eq!(node.errno(cm::DUPLICATE, &[channel as u64]), 0);
    node.expect_event(channel, id, RDMA_CM_EVENT_ADDR_RESOLVED);
    assert_eq!(node.errno(cm::DUPLICATE, &[channel as u64]), 0);
    assert!(!node.has_event(channel, 20));
    assert_eq!(node.resolve_route(id), 0);
    node.expect_event(channel, id, RDMA_CM_EVENT_ROUTE_RESOLVED);
}

pub(crate) fn an_identifier_takes_its_events_along(bench: &mut Bench) {
    let node = &mut bench.near;
    let to = somewhere(node);
    let from = node.event_channel();
    let channel = node.event_channel();
    let stays = node.resolved(from, RDMA_PS_TCP, to);
    let id = node.identifier(from, RDMA_PS_TCP);
    assert_eq!(node.resolve_address(id, None, to), 0);
    assert!(node.has_event(from, 10_000));
    assert_eq!(node.resolve_route(stays), 0);
    // Both events are there.
    std::thread::sleep(Duration::from_millis(100));
    assert_eq!(node.migrate(id, channel), 0);
    assert!(node.has_event(channel, 0));
    node.expect_event(channel, id, RDMA_CM_EVENT_ADDR_RESOLVED);
    node.expect_event(from, stays, RDMA_CM_EVENT_ROUTE_RESOLVED);
    assert_eq!(node.resolve_route(id), 0);
    node.expect_event(channel, id, RDMA_CM_EVENT_ROUTE_RESOLVED);
    assert_eq!(node.migrate(stays, channel), 0, "an identifier without waiting events");
    assert_eq!(node.errno(cm::DESTROY_CHANNEL, &[from as u64]), 0);
    assert_eq!(node.request(stays, &unpaired()), 0);
    let event = node.next_event(channel);
    assert_eq!((event.kind, event.id), (RDMA_CM_EVENT_REJECTED, stays), "there is no listener");
}

pub(crate) fn a_wait_is_woken(bench: &mut Bench) {
    let meeting = Meeting::new(bench, RDMA_PS_TCP);
    let Bench { near, far, .. } = bench;
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| far.take_event(meeting.far_channel));
        std::thread::sleep(Duration::from_millis(100));
        assert!(!waiting.is_finished(), "there is no event");
        assert_eq!(near.request(meeting.near, &unpaired()), 0);
        let request = waiting.join().expect("the thread does not panic").expect("an event");
        assert_eq!((request.kind, request.listener), (RDMA_CM_EVENT_CONNECT_REQUEST, Some(meeting.listener)));
    });
}

pub(crate) fn a_listener_takes_its_requests_along(bench: &mut Bench) {
    let meeting = Meeting::new(bench, RDMA_PS_TCP);
    assert_eq!(bench.near.request(meeting.near, &unpaired()), 0);
    assert!(bench.far.has_event(meeting.far_channel, 10_000));
    let channel = bench.far.event_channel();
    assert_eq!(bench.far.migrate(meeting.listener, channel), 0);
    assert!(!bench.far.has_event(meeting.far_channel, 20));
    let request = bench.far.expect_request(channel, meeting.listener);
    assert_eq!(bench.far.accept(request.id, &unpaired()), 0);
    bench.near.expect_event(meeting.near_channel, meeting.near, RDMA_CM_EVENT_CONNECT_RESPONSE);
    assert_eq!(bench.near.establish(meeting.near), 0);
    bench.far.expect_event(channel, request.id, RDMA_CM_EVENT_ESTABLISHED);
}

pub(crate) fn a_listener_moves(bench: &mut Bench) {
    let meeting = Meeting::new(bench, RDMA_PS_TCP);
    let channel = bench.far.event_channel();
    assert_eq!(bench.far.migrate(meeting.listener, channel), 0);
    assert_eq!(bench.near.request(meeting.near, &unpaired()), 0);
    let request = bench.far.expect_request(channel, meeting.listener);
    assert!(!bench.far.has_event(meeting.far_channel, 20));
    assert_eq!(bench.far.accept(request.id, &unpaired()), 0);
    bench.near.expect_event(meeting.near_channel, meeting.near, RDMA_CM_EVENT_CONNECT_RESPONSE);
    assert_eq!(bench.near.establish(meeting.near), 0);
    bench.far.expect_event(channel, request.id, RDMA_CM_EVENT_ESTABLISHED);
}
