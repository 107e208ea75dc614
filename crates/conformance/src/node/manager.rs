//! The connection manager of a node.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use verbs::abi::rdma_cm::*;
use verbs::abi::*;

use super::{Node, PATIENCE};
use crate::rig::{address, address_words, attributes, cm, gid_of, route};
use crate::shape::{CmEvent, Parameters, Shape, Side};

impl Node {
    /// The addresses of the device's port, without link-local ones, which need an interface.
    #[track_caller]
    pub fn addresses(&mut self) -> Vec<IpAddr> {
        let words = self.get(cm::OWN_ADDRESSES, &[]);
        let address = |gid: &[u64]| {
            let ip = Ipv6Addr::from(gid_of([gid[0], gid[1]]));
            ip.to_ipv4_mapped().map_or(IpAddr::V6(ip), IpAddr::V4)
        };
        let is_usable = |ip: &IpAddr| !matches!(ip, IpAddr::V6(ip) if ip.is_unicast_link_local());
        words.chunks(2).map(address).filter(is_usable).collect()
    }

    /// An event channel.
    #[track_caller]
    pub fn event_channel(&mut self) -> usize {
        self.make(cm::CHANNEL, &[])
    }

    /// An identifier whose events go to a channel.
    #[track_caller]
    pub fn identifier(&mut self, channel: usize, space: i32) -> usize {
        self.make(cm::ID, &[channel as u64 + 1, space as u64])
    }

    /// A synchronous identifier, whose calls wait for their events.
    #[track_caller]
    pub fn waiting_identifier(&mut self, space: i32) -> usize {
        self.make(cm::ID, &[0, space as u64])
    }

    #[track_caller]
    pub fn destroy_identifier(&mut self, id: usize) {
        assert_eq!(self.errno(cm::DESTROY_ID, &[id as u64]), 0, "rdma_destroy_id");
    }

    /// The error number of `rdma_bind_addr`.
    #[track_caller]
    pub fn bind(&mut self, id: usize, to: SocketAddr) -> i32 {
        self.errno(cm::BIND, &with_address(id, Some(to)))
    }

    #[track_caller]
    pub fn listen(&mut self, id: usize, backlog: i32) -> i32 {
        self.errno(cm::LISTEN, &[id as u64, backlog as u64])
    }

    /// An identifier that listens, and its port.
    #[track_caller]
    pub fn listener(&mut self, channel: usize, space: i32, at: SocketAddr, backlog: i32) -> (usize, u16) {
        let id = self.identifier(channel, space);
        assert_eq!(self.bind(id, at), 0, "bind {at}");
        assert_eq!(self.listen(id, backlog), 0, "listen at {at}");
        (id, self.ports(id)[0])
    }

    #[track_caller]
    pub fn resolve_address(&mut self, id: usize, from: Option<SocketAddr>, to: SocketAddr) -> i32 {
        self.resolve_address_within(id, from, to, PATIENCE)
    }

    /// As `resolve_address`, with a time limit.
    #[track_caller]
    pub fn resolve_address_within(
        &mut self,
        id: usize,
        from: Option<SocketAddr>,
        to: SocketAddr,
        limit: Duration,
    ) -> i32 {
        let mut words = vec![id as u64, limit.as_millis() as u64];
        words.extend(address_words(Some(to)));
        words.extend(address_words(from));
        self.errno(cm::RESOLVE_ADDR, &words)
    }

    #[track_caller]
    pub fn resolve_route(&mut self, id: usize) -> i32 {
        self.errno(cm::RESOLVE_ROUTE, &[id as u64, PATIENCE.as_millis() as u64])
    }

    /// An identifier whose address is resolved.
    #[track_caller]
    pub fn resolved(&mut self, channel: usize, space: i32, to: SocketAddr) -> usize {
        let id = self.identifier(channel, space);
        assert_eq!(self.resolve_address(id, None, to), 0, "resolve {to}");
        self.expect_event(channel, id, RDMA_CM_EVENT_ADDR_RESOLVED);
        id
    }

    /// An identifier whose route is resolved.
    #[track_caller]
    pub fn routed(&mut self, channel: usize, space: i32, to: SocketAddr) -> usize {
        let id = self.resolved(channel, space, to);
        assert_eq!(self.resolve_route(id), 0, "route to {to}");
        self.expect_event(channel, id, RDMA_CM_EVENT_ROUTE_RESOLVED);
        id
    }

    /// The error number of `rdma_connect`.
    #[track_caller]
    pub fn request(&mut self, id: usize, parameters: &Parameters) -> i32 {
        self.errno(cm::CONNECT, &parameters.words(id))
    }

    /// The error number of `rdma_accept`.
    #[track_caller]
    pub fn accept(&mut self, id: usize, parameters: &Parameters) -> i32 {
        self.errno(cm::ACCEPT, &parameters.words(id))
    }

    #[track_caller]
    pub fn reject(&mut self, id: usize, data: &[u8]) -> i32 {
        let words: Vec<u64> = std::iter::once(id as u64).chain(data.iter().map(|b| u64::from(*b))).collect();
        self.errno(cm::REJECT, &words)
    }

    #[track_caller]
    pub fn disconnect(&mut self, id: usize) -> i32 {
        self.errno(cm::DISCONNECT, &[id as u64])
    }

    #[track_caller]
    pub fn establish(&mut self, id: usize) -> i32 {
        self.errno(cm::ESTABLISH, &[id as u64])
    }

    /// The attributes for a state and their mask, or the error number.
    #[track_caller]
    pub fn attributes_for(&mut self, id: usize, state: ibv_qp_state) -> Result<(ibv_qp_attr, u32), i32> {
        let answer = self.call(cm::ATTRIBUTES, &[id as u64, state.into()]);
        if answer[0] == 0 {
            Ok((attributes(&answer[2..], 0), answer[1] as u32))
        } else {
            Err(answer[0] as i32)
        }
    }

    /// Takes a queue pair of the program to a state, with the attributes of an identifier.
    #[track_caller]
    pub fn enter(&mut self, id: usize, qp: usize, state: ibv_qp_state) {
        let (attr, mask) = self.attributes_for(id, state).expect("attributes");
        assert_eq!(self.modify(qp, &attr, mask), 0, "the change to state {state}");
    }

    /// A queue pair that librdmacm creates, with a region.
    #[track_caller]
    pub fn pair_of(&mut self, id: usize, service: ibv_qp_type) -> Side {
        let made = self.get(cm::CREATE_QP, &[id as u64, service.into()]);
        self.side_of_pair(service, &made)
    }

    /// As `pair_of`, for a queue pair that librdmacm has created already.
    #[track_caller]
    pub fn own_pair(&mut self, id: usize, service: ibv_qp_type) -> Side {
        let made = self.get(cm::PAIR, &[id as u64]);
        self.side_of_pair(service, &made)
    }

    #[track_caller]
    fn side_of_pair(&mut self, service: ibv_qp_type, made: &[u64]) -> Side {
        let shape = Shape { bytes: 1 << 14, ..Shape::of(service) };
        let [pd, send_cq, receive_cq] = [0, 1, 2].map(|i| made[i] as usize);
        let region = self.own_region(pd, shape.bytes, shape.access);
        self.side_of(&shape, pd, [send_cq, receive_cq], region, &made[3..])
    }

    /// Destroys an identifier's queue pair.
    #[track_caller]
    pub fn destroy_pair(&mut self, id: usize, side: &Side) {
        self.release(side.region);
        self.get(cm::DESTROY_QP, &[id as u64]);
    }

    /// Takes an event without waiting for one. Returns the event, or the error number.
    #[track_caller]
    pub fn take_event(&mut self, channel: usize) -> Result<CmEvent, i32> {
        let answer = self.call(cm::EVENT, &[channel as u64]);
        if answer[0] == 0 { Ok(event(&answer[1..])) } else { Err(answer[0] as i32) }
    }

    /// Whether an event arrives within a number of milliseconds. The event is not taken.
    #[track_caller]
    pub fn has_event(&mut self, channel: usize, ms: u64) -> bool {
        self.get(cm::READY, &[channel as u64, ms])[0] != 0
    }

    /// The next event of a channel.
    #[track_caller]
    pub fn next_event(&mut self, channel: usize) -> CmEvent {
        assert!(self.has_event(channel, PATIENCE.as_millis() as u64), "no event arrives");
        self.take_event(channel).expect("there is an event")
    }

    /// The next event, which must be of this identifier and kind, with the status 0.
    #[track_caller]
    pub fn expect_event(&mut self, channel: usize, id: usize, kind: u32) -> CmEvent {
        self.expect_failure(channel, id, kind, 0)
    }

    /// As `expect_event`, with another status.
    #[track_caller]
    pub fn expect_failure(&mut self, channel: usize, id: usize, kind: u32, status: i32) -> CmEvent {
        let event = self.next_event(channel);
        assert_eq!((event.kind, event.status, event.id), (kind, status, id), "kind, status, identifier");
        event
    }

    /// The next event, which must be a request to this listener. It has a new identifier.
    #[track_caller]
    pub fn expect_request(&mut self, channel: usize, listener: usize) -> CmEvent {
        let event = self.next_event(channel);
        let got = (event.kind, event.status, event.listener);
        assert_eq!(got, (RDMA_CM_EVENT_CONNECT_REQUEST, 0, Some(listener)), "kind, status, listener");
        event
    }

    /// Asserts that no event arrives for a time.
    #[track_caller]
    pub fn is_quiet(&mut self, channel: usize, time: Duration) {
        if self.has_event(channel, time.as_millis() as u64) {
            panic!("an unexpected event: {:?}", self.take_event(channel));
        }
    }

    #[track_caller]
    pub fn set_option(&mut self, id: usize, option: i32, bytes: usize, value: u32) -> i32 {
        let words = [id as u64, RDMA_OPTION_ID as u64, option as u64, bytes as u64, value.into()];
        self.errno(cm::OPTION, &words)
    }

    /// The local and the remote port, from functions of librdmacm.
    #[track_caller]
    pub fn ports(&mut self, id: usize) -> [u16; 2] {
        let words = self.get(cm::PORTS, &[id as u64]);
        [words[0] as u16, words[1] as u16]
    }

    /// The local and the remote address, from the structure of the identifier.
    #[track_caller]
    pub fn ends(&mut self, id: usize) -> [Option<SocketAddr>; 2] {
        let words = self.get(cm::ADDRESSES, &[id as u64]);
        [address(&words[..5]), address(&words[5..])]
    }

    #[track_caller]
    pub fn migrate(&mut self, id: usize, channel: usize) -> i32 {
        self.errno(cm::MIGRATE, &[id as u64, channel as u64 + 1])
    }

    #[track_caller]
    pub fn join(&mut self, id: usize, group: SocketAddr) -> i32 {
        self.errno(cm::JOIN, &with_address(id, Some(group)))
    }

    #[track_caller]
    pub fn leave(&mut self, id: usize, group: SocketAddr) -> i32 {
        self.errno(cm::LEAVE, &with_address(id, Some(group)))
    }
}

fn with_address(id: usize, address: Option<SocketAddr>) -> Vec<u64> {
    std::iter::once(id as u64).chain(address_words(address)).collect()
}

/// An event from its words.
fn event(w: &[u64]) -> CmEvent {
    let [resources, depth, flow_control, retries, rnr_retries, srq] =
        [4, 5, 6, 7, 8, 9].map(|i: usize| w[i] as u8);
    let data = w[22..].iter().map(|w| *w as u8).collect();
    CmEvent {
        kind: w[0] as u32,
        status: w[1].cast_signed() as i32,
        id: w[2] as usize,
        listener: w[3].checked_sub(1).map(|listener| listener as usize),
        parameters: Parameters {
            data,
            responder_resources: resources,
            initiator_depth: depth,
            flow_control,
            retries,
            rnr_retries,
            srq,
            qp_num: w[10] as u32,
        },
        qp_num: w[11] as u32,
        qkey: w[12] as u32,
        route: route(&w[13..22], 0),
    }
}
