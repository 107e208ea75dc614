//! The cases for connections through librdmacm: the promises of its man pages (rdma_cm(7),
//! `rdma_*(3)`) and the behaviour of the kernel's connection manager. The cases call librdmacm,
//! which is opened at run time, and verbs. librdmacm or the program creates the queue pairs.
//!
//! The kernel is the reference: another connection manager that behaves differently is wrong. If
//! the kernel violates its man pages, or a device cannot do something, this is a departure with its
//! reason.

mod addresses;
mod channels;
mod connections;
mod endings;
mod groups;
mod ports;
mod private_data;
mod refusals;
mod resolution;
mod synchronous;

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Relaxed;

use verbs::abi::rdma_cm::*;
use verbs::abi::*;

use crate::rig::librdmacm::librdmacm;
use crate::runner::Skip;
use crate::shape::{CmEvent, Parameters, Side};
use crate::{Bench, Node, Send, Subject, cases, run_some};

/// Returns why librdmacm cannot be used, or `None` if it can.
pub fn missing() -> Option<String> {
    librdmacm().err().map(ToString::to_string)
}

/// Runs the cases of the list that the program's arguments select, and ends the program. `why_not`
/// is the reason if no case can run.
pub fn run(subject: &Subject, why_not: Option<String>) -> ! {
    let has_ipv6 = why_not.is_none() && Node::local(subject).addresses().iter().any(IpAddr::is_ipv6);
    run_some(subject, CASES, |case| {
        let lacks_ipv6 = !has_ipv6 && OF_IPV6.contains(&case.name);
        let no_ipv6 = lacks_ipv6.then(|| "ipv6: the device has no IPv6 address".to_owned());
        let why = why_not.clone().or(no_ipv6)?;
        Some(Skip { why, at_times: false })
    })
}

/// Cases that need an IPv6 address.
const OF_IPV6: &[&str] = &["addresses::an_address_of_ipv6_leads_as_well"];

cases! {
    CASES
    addresses {
        one: a_way_is_found_step_by_step steps_in_the_wrong_order_are_refused
            a_neighbour_that_is_not_there_is_an_error an_address_without_a_way_is_an_error
            a_source_may_be_named families_do_not_mix;
        two: both_ends_know_each_other an_address_of_ipv6_leads_as_well
            a_listener_of_all_interfaces_is_reached a_listener_of_both_families_is_reached
            loopback_leads_to_the_own_host;
    }
    ports {
        one: any_port_is_one_that_nobody_has an_identifier_is_bound_once
            an_address_that_is_nobodys_is_refused listening_takes_any_port an_identifier_listens_once
            spaces_are_apart who_shares_may_have_the_same families_may_be_apart
            options_have_their_size_and_their_time;
        two: a_port_is_one_ends;
    }
    connections {
        one: ;
        two: pairs_of_the_manager_are_connected pairs_of_the_program_are_connected
            what_each_end_may_do_is_told attributes_follow_the_connection
            what_is_set_reaches_both_ends a_pair_has_one_connection
            a_first_message_establishes_as_well fifty_share_a_listener
            a_request_beyond_the_backlog_waits;
    }
    private_data {
        one: ;
        two: a_request_carries_56_bytes an_answer_carries_196_bytes a_rejection_carries_148_bytes
            an_answer_that_is_too_long_rejects
            a_resolution_carries_180_bytes its_answer_carries_136_bytes;
    }
    refusals {
        one: nobody_listens;
        two: who_rejects_may_say_why a_request_that_is_dropped_is_rejected
            a_listener_that_goes_rejects_what_waits an_answer_can_be_refused
            who_is_accepted_twice_is_rejected
            a_rejected_identifier_is_used_up who_has_given_up_is_not_accepted;
    }
    endings {
        one: what_is_not_connected_is_not_disconnected
            a_killed_listener_disconnects_its_peer
            a_killed_listener_rejects_what_waits a_killed_peer_disconnects_the_listener
            a_killed_process_frees_its_port;
        two: who_asks_ends_a_connection who_is_asked_ends_a_connection both_end_a_connection
            an_end_is_asked_for_twice a_request_is_not_taken_back an_identifier_that_goes_ends_its_connection
            an_ended_pair_is_flushed;
    }
    channels {
        one: a_channel_says_whether_it_has_events a_channel_survives_duplication
            an_identifier_takes_its_events_along;
        two: a_wait_is_woken a_listener_moves a_listener_takes_its_requests_along;
    }
    synchronous {
        one: calls_wait_for_their_events a_call_says_that_nobody_listens;
        two: endpoints_are_connected;
    }
    resolution {
        one: nobody_is_resolved;
        two: datagrams_find_their_way who_rejects_is_not_resolved who_is_dropped_is_not_resolved;
    }
    groups {
        one: a_group_is_joined_and_left who_cannot_join_is_refused;
        two: a_datagram_reaches_the_group;
    }
}

/// The address of the nodes: an IPv4 address, not a loopback address if there is another one.
#[track_caller]
fn home(node: &mut Node) -> Ipv4Addr {
    let all =
        node.addresses().into_iter().filter_map(|ip| if let IpAddr::V4(ip) = ip { Some(ip) } else { None });
    all.min_by_key(Ipv4Addr::is_loopback).expect("the device has an IPv4 address")
}

/// An address of no host: it is reserved for documentation (RFC 5737).
const NOBODY: Ipv4Addr = Ipv4Addr::new(198, 51, 100, 77);

/// An address with any port.
fn any_port(ip: impl Into<IpAddr>) -> SocketAddr {
    SocketAddr::new(ip.into(), 0)
}

/// A listener of the far node, and an identifier of the near node with a route to it.
struct Meeting {
    space: i32,
    at: SocketAddr,
    far_channel: usize,
    listener: usize,
    near_channel: usize,
    /// The near node's identifier.
    near: usize,
}

/// The usual parameters for a queue pair that does not exist, with a unique number: a connection
/// manager treats a second request of one queue pair as a stale connection.
fn unpaired() -> Parameters {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let process = std::process::id() & 0x7ff;
    Parameters::of(0x80_0000 | process << 12 | NEXT.fetch_add(1, Relaxed) & 0xfff)
}

/// The default backlog.
const BACKLOG: i32 = 8;

impl Meeting {
    #[track_caller]
    fn new(bench: &mut Bench, space: i32) -> Self {
        let ip = home(&mut bench.near);
        Self::at(bench, space, ip.into())
    }

    #[track_caller]
    fn at(bench: &mut Bench, space: i32, ip: IpAddr) -> Self {
        let far_channel = bench.far.event_channel();
        let (listener, port) = bench.far.listener(far_channel, space, any_port(ip), BACKLOG);
        let at = SocketAddr::new(ip, port);
        let near_channel = bench.near.event_channel();
        let near = bench.near.routed(near_channel, space, at);
        Self { space, at, far_channel, listener, near_channel, near }
    }

    /// Another identifier of the near node.
    #[track_caller]
    fn another(&self, bench: &mut Bench) -> usize {
        bench.near.routed(self.near_channel, self.space, self.at)
    }

    /// Sends a request from the near node, and returns the far node's event.
    #[track_caller]
    fn ask(&self, bench: &mut Bench, parameters: &Parameters) -> CmEvent {
        assert_eq!(bench.near.request(self.near, parameters), 0, "rdma_connect");
        bench.far.expect_request(self.far_channel, self.listener)
    }

    /// Connects queue pairs that librdmacm creates. Returns the identifiers and the sides of the
    /// near and the far node.
    #[track_caller]
    fn connect(&self, bench: &mut Bench) -> [(usize, Side); 2] {
        let near = bench.near.pair_of(self.near, IBV_QPT_RC);
        let request = self.ask(bench, &Parameters::default());
        let far = bench.far.pair_of(request.id, IBV_QPT_RC);
        assert_eq!(bench.far.accept(request.id, &Parameters::default()), 0, "rdma_accept");
        bench.near.expect_event(self.near_channel, self.near, RDMA_CM_EVENT_ESTABLISHED);
        bench.far.expect_event(self.far_channel, request.id, RDMA_CM_EVENT_ESTABLISHED);
        [(self.near, near), (request.id, far)]
    }
}

/// Sends a message each way between connected queue pairs.
#[track_caller]
fn talk(bench: &mut Bench, near: &Side, far: &Side) {
    const BYTES: usize = 5000;
    pass(&mut bench.near, near, &mut bench.far, far, BYTES);
    pass(&mut bench.far, far, &mut bench.near, near, BYTES);
}

#[track_caller]
fn pass(from: &mut Node, of: &Side, to: &mut Node, at: &Side, bytes: usize) {
    let seed = u64::from(of.number);
    from.fill(of.region, 0, bytes, seed);
    to.receive(at.qp, 7, &[at.at(8192, bytes)]);
    from.send(of.qp, Send::new(8, &[of.at(0, bytes)]));
    assert_eq!(from.wait_one(of.send_cq).status, IBV_WC_SUCCESS, "the send");
    let got = to.wait_one(at.receive_cq);
    assert_eq!((got.id, got.status, got.byte_len as usize), (7, IBV_WC_SUCCESS, bytes), "the receive");
    to.check(at.region, 8192, bytes, seed);
}
