//! Ports and their owners (man rdma_bind_addr, rdma_listen, rdma_set_option).

use std::collections::HashSet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use verbs::abi::rdma_cm::*;

use super::{NOBODY, any_port, home};
use crate::{Bench, Node};

/// The bytes of an option that is a switch.
const SWITCH: usize = 4;

/// An identifier that is bound to an address, or the error number.
#[track_caller]
fn bound(node: &mut Node, channel: usize, space: i32, to: SocketAddr) -> Result<usize, i32> {
    let id = node.identifier(channel, space);
    match node.bind(id, to) {
        0 => Ok(id),
        error => Err(error),
    }
}

pub(crate) fn any_port_is_one_that_nobody_has(bench: &mut Bench) {
    let node = &mut bench.near;
    let home: IpAddr = home(node).into();
    let channel = node.event_channel();
    let mut ports = HashSet::new();
    for n in 0..100 {
        let ip = if n % 2 == 0 { home } else { Ipv4Addr::UNSPECIFIED.into() };
        let id = bound(node, channel, RDMA_PS_TCP, any_port(ip)).expect("a port is free");
        let port = node.ports(id)[0];
        let nowhere = any_port(Ipv4Addr::UNSPECIFIED);
        assert_eq!(node.ends(id), [Some(SocketAddr::new(ip, port)), Some(nowhere)], "only the family is set");
        assert!(port >= 1024 && ports.insert(port), "port {port} of {ports:?}");
    }
}

pub(crate) fn an_identifier_is_bound_once(bench: &mut Bench) {
    let node = &mut bench.near;
    let home = home(node);
    let channel = node.event_channel();
    let id = bound(node, channel, RDMA_PS_TCP, any_port(home)).expect("a port is free");
    let port = node.ports(id)[0];
    assert_eq!(node.bind(id, any_port(home)), libc::EINVAL);
    assert_eq!(node.ports(id)[0], port);
}

pub(crate) fn an_address_that_is_nobodys_is_refused(bench: &mut Bench) {
    let node = &mut bench.near;
    let home = home(node);
    let channel = node.event_channel();
    let id = node.identifier(channel, RDMA_PS_TCP);
    assert_eq!(node.bind(id, any_port(NOBODY)), libc::EADDRNOTAVAIL);
    assert_eq!(node.bind(id, any_port(home)), 0, "the identifier is unchanged");
}

pub(crate) fn listening_takes_any_port(bench: &mut Bench) {
    let node = &mut bench.near;
    let channel = node.event_channel();
    let id = node.identifier(channel, RDMA_PS_TCP);
    assert_eq!(node.listen(id, 1), 0);
    let port = node.ports(id)[0];
    assert_ne!(port, 0);
    assert_eq!(node.ends(id)[0], Some(SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), port)));
}

pub(crate) fn an_identifier_listens_once(bench: &mut Bench) {
    let node = &mut bench.near;
    let home = home(node);
    let channel = node.event_channel();
    let (id, _) = node.listener(channel, RDMA_PS_TCP, any_port(home), 1);
    assert_eq!(node.listen(id, 1), libc::EINVAL);
    assert_eq!(node.bind(id, any_port(home)), libc::EINVAL);
}

pub(crate) fn spaces_are_apart(bench: &mut Bench) {
    let node = &mut bench.near;
    let home = home(node);
    let channel = node.event_channel();
    let (_, port) = node.listener(channel, RDMA_PS_TCP, any_port(home), 1);
    let at = SocketAddr::new(home.into(), port);
    let of_udp = bound(node, channel, RDMA_PS_UDP, at).expect("UDP has its own ports");
    assert_eq!(node.listen(of_udp, 1), 0);
    assert_eq!(bound(node, channel, RDMA_PS_UDP, at), Err(libc::EADDRINUSE));
}

pub(crate) fn who_shares_may_have_the_same(bench: &mut Bench) {
    let node = &mut bench.near;
    let home = home(node);
    let channel = node.event_channel();
    let share = |node: &mut Node, at: SocketAddr| {
        let id = node.identifier(channel, RDMA_PS_TCP);
        assert_eq!(node.set_option(id, RDMA_OPTION_ID_REUSEADDR, SWITCH, 1), 0);
        (id, node.bind(id, at))
    };
    let (first, bind) = share(node, any_port(home));
    assert_eq!(bind, 0);
    let at = SocketAddr::new(home.into(), node.ports(first)[0]);
    let (second, bind) = share(node, at);
    assert_eq!(bind, 0, "both share it");
    assert_eq!(
        bound(node, channel, RDMA_PS_TCP, at),
        Err(libc::EADDRINUSE),
        "an identifier that does not share"
    );
    assert_eq!(node.listen(first, 1), libc::EADDRINUSE, "a listener cannot share");
    node.destroy_identifier(second);
    assert_eq!(node.listen(first, 1), 0, "the only owner may listen");
    assert_eq!(share(node, at).1, libc::EADDRINUSE, "a listener does not share");
}

pub(crate) fn families_may_be_apart(bench: &mut Bench) {
    let node = &mut bench.near;
    let channel = node.event_channel();
    let (id, port) = node.listener(channel, RDMA_PS_TCP, any_port(Ipv4Addr::UNSPECIFIED), 1);
    let all = SocketAddr::new(Ipv6Addr::UNSPECIFIED.into(), port);
    assert_eq!(
        bound(node, channel, RDMA_PS_TCP, all),
        Err(libc::EADDRNOTAVAIL),
        "the address is for both families"
    );
    let apart = node.identifier(channel, RDMA_PS_TCP);
    assert_eq!(node.set_option(apart, RDMA_OPTION_ID_AFONLY, SWITCH, 1), 0);
    assert_eq!(node.bind(apart, all), 0, "the address is for its own family");
    assert_eq!(node.listen(apart, 1), 0);
    node.destroy_identifier(apart);
    node.destroy_identifier(id);
    let both = bound(node, channel, RDMA_PS_TCP, all).expect("the port is free again");
    assert_eq!(node.listen(both, 1), 0);
    let ipv4 = SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), port);
    assert_eq!(
        bound(node, channel, RDMA_PS_TCP, ipv4),
        Err(libc::EADDRNOTAVAIL),
        "the address for both families has the port"
    );
}

pub(crate) fn options_have_their_size_and_their_time(bench: &mut Bench) {
    let node = &mut bench.near;
    let home = home(node);
    let channel = node.event_channel();
    let id = node.identifier(channel, RDMA_PS_TCP);
    let options = [
        (RDMA_OPTION_ID_TOS, 1),
        (RDMA_OPTION_ID_REUSEADDR, 4),
        (RDMA_OPTION_ID_AFONLY, 4),
        (RDMA_OPTION_ID_ACK_TIMEOUT, 1),
    ];
    for (option, bytes) in options {
        assert_eq!(node.set_option(id, option, bytes + 1, 1), libc::EINVAL, "option {option} is too long");
        assert_eq!(node.set_option(id, option, bytes, 1), 0, "option {option}");
    }
    assert_eq!(node.set_option(id, 77, 4, 1), libc::ENOSYS, "an unknown option");
    assert_eq!(node.set_option(id, RDMA_OPTION_ID_REUSEADDR, SWITCH, 0), 0, "the option may be cleared");
    assert_eq!(node.bind(id, any_port(home)), 0);
    assert_eq!(node.set_option(id, RDMA_OPTION_ID_REUSEADDR, SWITCH, 1), 0, "bound");
    assert_eq!(
        node.set_option(id, RDMA_OPTION_ID_REUSEADDR, SWITCH, 0),
        libc::EINVAL,
        "the option cannot be cleared when bound"
    );
    assert_eq!(node.listen(id, 1), 0);
    assert_eq!(node.set_option(id, RDMA_OPTION_ID_REUSEADDR, SWITCH, 1), libc::EINVAL, "a listener");
    assert_eq!(node.set_option(id, RDMA_OPTION_ID_AFONLY, SWITCH, 1), libc::EINVAL, "a listener");
    let datagram = node.identifier(channel, RDMA_PS_UDP);
    assert_eq!(
        node.set_option(datagram, RDMA_OPTION_ID_ACK_TIMEOUT, 1, 14),
        libc::EINVAL,
        "datagrams have no acknowledgements"
    );
}

pub(crate) fn a_port_is_one_ends(bench: &mut Bench) {
    let home = home(&mut bench.near);
    let near_channel = bench.near.event_channel();
    let far_channel = bench.far.event_channel();
    let near = bound(&mut bench.near, near_channel, RDMA_PS_TCP, any_port(home)).expect("a port is free");
    let port = bench.near.ports(near)[0];
    let at = SocketAddr::new(home.into(), port);
    let all = SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), port);
    assert_eq!(bound(&mut bench.far, far_channel, RDMA_PS_TCP, at), Err(libc::EADDRINUSE));
    assert_eq!(bound(&mut bench.far, far_channel, RDMA_PS_TCP, all), Err(libc::EADDRNOTAVAIL));
    assert!(bound(&mut bench.far, far_channel, RDMA_PS_UDP, at).is_ok(), "UDP has its own ports");
    assert_eq!(bench.near.listen(near, 1), 0);
    assert_eq!(bound(&mut bench.far, far_channel, RDMA_PS_TCP, at), Err(libc::EADDRINUSE));
    bench.near.destroy_identifier(near);
    let far = bound(&mut bench.far, far_channel, RDMA_PS_TCP, at).expect("the port is free again");
    assert_eq!(bench.far.listen(far, 1), 0);
    assert_eq!(bound(&mut bench.near, near_channel, RDMA_PS_TCP, at), Err(libc::EADDRINUSE));
}
