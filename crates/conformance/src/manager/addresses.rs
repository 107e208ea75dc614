//! Addresses and routes (man rdma_resolve_addr, rdma_resolve_route).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use verbs::abi::rdma_cm::*;

use super::{Meeting, NOBODY, any_port, home, talk, unpaired};
use crate::Bench;
use crate::shape::Parameters;

pub(crate) fn a_way_is_found_step_by_step(bench: &mut Bench) {
    let node = &mut bench.near;
    let to = SocketAddr::new(home(node).into(), 7471);
    let channel = node.event_channel();
    let id = node.identifier(channel, RDMA_PS_TCP);
    assert_eq!(node.ends(id), [None, None]);
    assert_eq!(node.resolve_address(id, None, to), 0);
    node.expect_event(channel, id, RDMA_CM_EVENT_ADDR_RESOLVED);
    let [source, destination] = node.ends(id);
    let source = source.expect("a local address was found");
    assert_eq!((source.ip(), destination), (to.ip(), Some(to)), "an address is reached from itself");
    assert_eq!(node.ports(id), [source.port(), to.port()]);
    assert_ne!(source.port(), 0, "a local port was found");
    assert_eq!(node.resolve_route(id), 0);
    node.expect_event(channel, id, RDMA_CM_EVENT_ROUTE_RESOLVED);
    node.is_quiet(channel, Duration::from_millis(50));
}

pub(crate) fn steps_in_the_wrong_order_are_refused(bench: &mut Bench) {
    let node = &mut bench.near;
    let to = SocketAddr::new(home(node).into(), 7471);
    let channel = node.event_channel();
    let id = node.resolved(channel, RDMA_PS_TCP, to);
    assert_eq!(node.request(id, &Parameters::default()), libc::EINVAL, "a connection without a route");
    assert_eq!(node.bind(id, any_port(to.ip())), libc::EINVAL, "bound after it was resolved");
    assert_eq!(node.resolve_address(id, None, to), libc::EINVAL, "resolved twice");
    assert_eq!(node.listen(id, 1), libc::EINVAL, "a listener that has a destination");
    assert_eq!(node.disconnect(id), libc::EINVAL, "disconnected before it was connected");
    assert_eq!(node.reject(id, &[]), libc::EINVAL, "an answer without a request");
    assert_eq!(node.resolve_route(id), 0);
    node.expect_event(channel, id, RDMA_CM_EVENT_ROUTE_RESOLVED);
    assert_eq!(node.resolve_route(id), libc::EINVAL, "a second route");
    assert_eq!(node.resolve_address(id, None, to), libc::EINVAL, "resolved after the route");
    assert_eq!(node.accept(id, &Parameters::default()), libc::EINVAL, "an answer without a request");
    let listener = node.identifier(channel, RDMA_PS_TCP);
    assert_eq!(node.bind(listener, any_port(to.ip())), 0);
    assert_eq!(node.listen(listener, 1), 0);
    assert_eq!(node.resolve_address(listener, None, to), libc::EINVAL, "a listener cannot be resolved");
    node.is_quiet(channel, Duration::from_millis(50));
}

pub(crate) fn a_neighbour_that_is_not_there_is_an_error(bench: &mut Bench) {
    let node = &mut bench.near;
    let home = home(node);
    let [a, b, c, d] = home.octets();
    let neighbour = Ipv4Addr::new(a, b, c, if d == 77 { 78 } else { 77 });
    let channel = node.event_channel();
    let id = node.identifier(channel, RDMA_PS_TCP);
    let to = SocketAddr::new(neighbour.into(), 7471);
    assert_eq!(node.resolve_address_within(id, None, to, Duration::from_millis(500)), 0);
    let event = node.next_event(channel);
    assert_eq!((event.kind, event.id), (RDMA_CM_EVENT_ADDR_ERROR, id));
    assert!(event.status < 0, "an error number: {}", event.status);
    assert_eq!(node.resolve_address(id, None, SocketAddr::new(home.into(), 7471)), 0, "another address");
    node.expect_event(channel, id, RDMA_CM_EVENT_ADDR_RESOLVED);
}

/// If the host has no route, the call may fail, or an event may report it.
pub(crate) fn an_address_without_a_way_is_an_error(bench: &mut Bench) {
    let node = &mut bench.near;
    let home = home(node);
    let channel = node.event_channel();
    let id = node.identifier(channel, RDMA_PS_TCP);
    match node.resolve_address(id, None, SocketAddr::new(NOBODY.into(), 7471)) {
        0 => assert_eq!(node.next_event(channel).kind, RDMA_CM_EVENT_ADDR_ERROR),
        error => assert!(error == libc::ENETUNREACH || error == libc::EHOSTUNREACH, "errno {error}"),
    }
    node.is_quiet(channel, Duration::from_millis(20));
    assert_eq!(node.resolve_address(id, None, SocketAddr::new(home.into(), 7471)), 0, "another address");
    node.expect_event(channel, id, RDMA_CM_EVENT_ADDR_RESOLVED);
}

pub(crate) fn a_source_may_be_named(bench: &mut Bench) {
    let node = &mut bench.near;
    let home: IpAddr = home(node).into();
    let to = SocketAddr::new(home, 7471);
    let channel = node.event_channel();
    let id = node.identifier(channel, RDMA_PS_TCP);
    assert_eq!(node.resolve_address(id, Some(any_port(home)), to), 0);
    node.expect_event(channel, id, RDMA_CM_EVENT_ADDR_RESOLVED);
    assert_eq!(node.ends(id)[0].map(|source| source.ip()), Some(home));
    let wrong = node.identifier(channel, RDMA_PS_TCP);
    assert_eq!(node.resolve_address(wrong, Some(any_port(NOBODY)), to), libc::EADDRNOTAVAIL);
    let bound = node.identifier(channel, RDMA_PS_TCP);
    assert_eq!(node.bind(bound, any_port(home)), 0);
    let port = node.ports(bound)[0];
    assert_eq!(node.resolve_address(bound, None, to), 0);
    node.expect_event(channel, bound, RDMA_CM_EVENT_ADDR_RESOLVED);
    assert_eq!(node.ends(bound)[0], Some(SocketAddr::new(home, port)), "the bound address stays");
}

pub(crate) fn families_do_not_mix(bench: &mut Bench) {
    let node = &mut bench.near;
    let home = home(node);
    let channel = node.event_channel();
    let id = node.identifier(channel, RDMA_PS_TCP);
    assert_eq!(node.bind(id, any_port(home)), 0);
    let other = "[fd00::77]:7471".parse().expect("an address");
    assert_eq!(node.resolve_address(id, None, other), libc::EINVAL);
}

pub(crate) fn both_ends_know_each_other(bench: &mut Bench) {
    let meeting = Meeting::new(bench, RDMA_PS_TCP);
    let [source, destination] = bench.near.ends(meeting.near);
    assert_eq!(destination, Some(meeting.at));
    let [(_, near), (id, far)] = meeting.connect(bench);
    assert_eq!(bench.far.ends(id), [destination, source], "the same addresses, swapped");
    assert_eq!(bench.near.ends(meeting.near), [source, destination]);
    talk(bench, &near, &far);
}

pub(crate) fn an_address_of_ipv6_leads_as_well(bench: &mut Bench) {
    let all = bench.near.addresses();
    let ipv6 = all.iter().filter_map(|ip| if let IpAddr::V6(ip) = ip { Some(*ip) } else { None });
    let ip = ipv6.min_by_key(Ipv6Addr::is_loopback).expect("the runner has found an IPv6 address");
    let meeting = Meeting::at(bench, RDMA_PS_TCP, ip.into());
    let ends = bench.near.ends(meeting.near);
    assert_eq!((ends[0].map(|end| end.ip()), ends[1]), (Some(ip.into()), Some(meeting.at)));
    let [(_, near), (id, far)] = meeting.connect(bench);
    assert_eq!(bench.far.ends(id), [ends[1], ends[0]]);
    talk(bench, &near, &far);
}

/// Connects to a listener at one address by another address. Returns the far node's local address.
#[track_caller]
fn reached(bench: &mut Bench, at: SocketAddr, by: IpAddr) -> Option<SocketAddr> {
    let far_channel = bench.far.event_channel();
    let (listener, port) = bench.far.listener(far_channel, RDMA_PS_TCP, at, 1);
    let near_channel = bench.near.event_channel();
    let near = bench.near.routed(near_channel, RDMA_PS_TCP, SocketAddr::new(by, port));
    assert_eq!(bench.near.request(near, &unpaired()), 0);
    let request = bench.far.expect_request(far_channel, listener);
    let there = bench.near.ends(near);
    let here = bench.far.ends(request.id);
    assert_eq!(here, [there[1], there[0]]);
    assert_eq!(bench.far.ports(request.id), [port, bench.near.ports(near)[0]]);
    here[0].filter(|end| end.port() == port)
}

pub(crate) fn a_listener_of_all_interfaces_is_reached(bench: &mut Bench) {
    let home: IpAddr = home(&mut bench.near).into();
    let end = reached(bench, any_port(Ipv4Addr::UNSPECIFIED), home);
    assert_eq!(end.map(|end| end.ip()), Some(home), "the address by which it was reached");
}

pub(crate) fn a_listener_of_both_families_is_reached(bench: &mut Bench) {
    let home: IpAddr = home(&mut bench.near).into();
    let end = reached(bench, any_port(Ipv6Addr::UNSPECIFIED), home);
    assert_eq!(end.map(|end| end.ip()), Some(home), "the address by which it was reached");
}

pub(crate) fn loopback_leads_to_the_own_host(bench: &mut Bench) {
    let meeting = Meeting::at(bench, RDMA_PS_TCP, Ipv4Addr::LOCALHOST.into());
    let [(_, near), (_, far)] = meeting.connect(bench);
    talk(bench, &near, &far);
}
