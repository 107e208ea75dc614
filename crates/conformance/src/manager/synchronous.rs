//! Synchronous identifiers, whose calls wait for their events (man rdma_create_id, rdma_create_ep,
//! rdma_getaddrinfo, rdma_get_request).

use std::net::SocketAddr;

use verbs::abi::rdma_cm::*;
use verbs::abi::*;

use super::{any_port, home, talk, unpaired};
use crate::rig::{address_words, cm};
use crate::shape::Parameters;
use crate::{Bench, Node};

/// The kind and the status of the last event of a synchronous identifier.
#[track_caller]
fn last_event(node: &mut Node, id: usize) -> (u32, i32) {
    let answer = node.call(cm::OWN_EVENT, &[id as u64]);
    assert_eq!(answer[0], 0, "there is an event");
    (answer[1] as u32, answer[2].cast_signed() as i32)
}

pub(crate) fn calls_wait_for_their_events(bench: &mut Bench) {
    let node = &mut bench.near;
    let to = SocketAddr::new(home(node).into(), 7471);
    let id = node.waiting_identifier(RDMA_PS_TCP);
    assert_eq!(node.resolve_address(id, None, to), 0);
    assert_eq!(last_event(node, id), (RDMA_CM_EVENT_ADDR_RESOLVED, 0));
    assert_eq!(node.ends(id)[1], Some(to));
    assert_eq!(node.resolve_route(id), 0);
    assert_eq!(last_event(node, id), (RDMA_CM_EVENT_ROUTE_RESOLVED, 0));
    let channel = node.event_channel();
    assert_eq!(node.migrate(id, channel), 0, "now the identifier has a channel");
    assert_eq!(node.request(id, &unpaired()), 0);
    assert_eq!(node.next_event(channel).kind, RDMA_CM_EVENT_REJECTED);
}

pub(crate) fn a_call_says_that_nobody_listens(bench: &mut Bench) {
    const NOBODY_LISTENS: i32 = 8;
    let node = &mut bench.near;
    let home = home(node);
    let channel = node.event_channel();
    let bound = node.identifier(channel, RDMA_PS_TCP);
    assert_eq!(node.bind(bound, any_port(home)), 0);
    let to = SocketAddr::new(home.into(), node.ports(bound)[0]);
    let id = node.waiting_identifier(RDMA_PS_TCP);
    assert_eq!(node.resolve_address(id, None, to), 0);
    assert_eq!(node.resolve_route(id), 0);
    assert_eq!(node.request(id, &unpaired()), libc::ECONNREFUSED);
    assert_eq!(last_event(node, id), (RDMA_CM_EVENT_REJECTED, NOBODY_LISTENS));
}

/// Calls rdma_create_ep: an identifier with its own queue pair that listens at an address or has a
/// route to it.
#[track_caller]
fn endpoint(node: &mut Node, service: ibv_qp_type, flags: i32, at: SocketAddr) -> usize {
    // The port space TCP has only reliable connections.
    let space = if service == IBV_QPT_RC { RDMA_PS_TCP } else { RDMA_PS_IB };
    let mut words = vec![(flags | RAI_NUMERICHOST) as u64, space as u64, service.into()];
    words.extend(address_words(Some(at)));
    let answer = node.call(cm::ENDPOINT, &words);
    assert_eq!(answer[0], 0, "rdma_create_ep {at}");
    answer[1] as usize
}

pub(crate) fn endpoints_are_connected(bench: &mut Bench) {
    for service in [IBV_QPT_RC, IBV_QPT_UC] {
        connects_endpoints(bench, service);
    }
}

fn connects_endpoints(bench: &mut Bench, service: ibv_qp_type) {
    let home = home(&mut bench.near);
    let listener = endpoint(&mut bench.far, service, RAI_PASSIVE, any_port(home));
    assert_eq!(bench.far.listen(listener, 1), 0);
    let at = SocketAddr::new(home.into(), bench.far.ports(listener)[0]);
    let near = endpoint(&mut bench.near, service, 0, at);
    let near_side = bench.near.own_pair(near, service);
    let Bench { near: node, far, .. } = bench;
    let (id, far_side) = std::thread::scope(|scope| {
        let asking = scope.spawn(|| node.call(cm::CONNECT, &Parameters::default().words(near)));
        let answer = far.call(cm::REQUEST, &[listener as u64]);
        assert_eq!(answer[0], 0, "rdma_get_request");
        let id = answer[1] as usize;
        let side = far.own_pair(id, service);
        assert_eq!(far.accept(id, &Parameters::default()), 0, "accept waits until the peer is ready");
        assert_eq!(asking.join().expect("the thread does not panic"), [0], "connect waits as well");
        (id, side)
    });
    assert_eq!(last_event(&mut bench.near, near), (RDMA_CM_EVENT_ESTABLISHED, 0));
    assert_eq!(last_event(&mut bench.far, id), (RDMA_CM_EVENT_ESTABLISHED, 0));
    talk(bench, &near_side, &far_side);
    let Bench { near: node, far, .. } = bench;
    std::thread::scope(|scope| {
        let ending = scope.spawn(|| node.disconnect(near));
        assert_eq!(far.disconnect(id), 0);
        assert_eq!(ending.join().expect("the thread does not panic"), 0);
    });
    assert_eq!(last_event(&mut bench.near, near), (RDMA_CM_EVENT_DISCONNECTED, 0));
    assert_eq!(last_event(&mut bench.far, id), (RDMA_CM_EVENT_DISCONNECTED, 0));
}
