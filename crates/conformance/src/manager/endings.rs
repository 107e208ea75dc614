//! Ends of connections (man rdma_disconnect, rdma_destroy_id), also after the end of a process.

use std::net::SocketAddr;
use std::time::Duration;

use verbs::abi::rdma_cm::*;
use verbs::abi::*;

use super::{BACKLOG, Meeting, any_port, home, unpaired};
use crate::shape::{Parameters, Side};
use crate::{Bench, Node};

pub(crate) fn what_is_not_connected_is_not_disconnected(bench: &mut Bench) {
    let node = &mut bench.near;
    let home = home(node);
    let channel = node.event_channel();
    let id = node.identifier(channel, RDMA_PS_TCP);
    assert_eq!(node.disconnect(id), libc::EINVAL);
    assert_eq!(node.bind(id, any_port(home)), 0);
    assert_eq!(node.disconnect(id), libc::EINVAL);
    let routed = node.routed(channel, RDMA_PS_TCP, SocketAddr::new(home.into(), 7471));
    assert_eq!(node.disconnect(routed), libc::EINVAL);
    node.is_quiet(channel, Duration::from_millis(20));
}

/// Two connected identifiers with their queue pairs.
struct Connected {
    meeting: Meeting,
    near: usize,
    far: usize,
    near_side: Side,
    far_side: Side,
}

impl Connected {
    #[track_caller]
    fn new(bench: &mut Bench) -> Self {
        let meeting = Meeting::new(bench, RDMA_PS_TCP);
        let [(near, near_side), (far, far_side)] = meeting.connect(bench);
        Self { meeting, near, far, near_side, far_side }
    }

    #[track_caller]
    fn near_hears(&self, bench: &mut Bench, kind: u32) {
        bench.near.expect_event(self.meeting.near_channel, self.near, kind);
    }

    #[track_caller]
    fn far_hears(&self, bench: &mut Bench, kind: u32) {
        bench.far.expect_event(self.meeting.far_channel, self.far, kind);
    }

    /// Waits until both nodes have left the state TIMEWAIT.
    #[track_caller]
    fn both_wait(&self, bench: &mut Bench) {
        self.near_hears(bench, RDMA_CM_EVENT_TIMEWAIT_EXIT);
        self.far_hears(bench, RDMA_CM_EVENT_TIMEWAIT_EXIT);
        bench.near.is_quiet(self.meeting.near_channel, Duration::ZERO);
        bench.far.is_quiet(self.meeting.far_channel, Duration::ZERO);
    }
}

pub(crate) fn who_asks_ends_a_connection(bench: &mut Bench) {
    let ends = Connected::new(bench);
    assert_eq!(bench.near.disconnect(ends.near), 0);
    ends.far_hears(bench, RDMA_CM_EVENT_DISCONNECTED);
    bench.near.is_quiet(ends.meeting.near_channel, Duration::from_millis(20));
    assert_eq!(bench.far.disconnect(ends.far), 0, "the answer");
    ends.near_hears(bench, RDMA_CM_EVENT_DISCONNECTED);
    ends.both_wait(bench);
}

pub(crate) fn who_is_asked_ends_a_connection(bench: &mut Bench) {
    let ends = Connected::new(bench);
    assert_eq!(bench.far.disconnect(ends.far), 0);
    ends.near_hears(bench, RDMA_CM_EVENT_DISCONNECTED);
    bench.far.is_quiet(ends.meeting.far_channel, Duration::from_millis(20));
    assert_eq!(bench.near.disconnect(ends.near), 0, "the answer");
    ends.far_hears(bench, RDMA_CM_EVENT_DISCONNECTED);
    ends.both_wait(bench);
}

pub(crate) fn both_end_a_connection(bench: &mut Bench) {
    let ends = Connected::new(bench);
    assert_eq!(bench.near.disconnect(ends.near), 0);
    assert_eq!(bench.far.disconnect(ends.far), 0);
    ends.near_hears(bench, RDMA_CM_EVENT_DISCONNECTED);
    ends.far_hears(bench, RDMA_CM_EVENT_DISCONNECTED);
}

pub(crate) fn an_end_is_asked_for_twice(bench: &mut Bench) {
    let ends = Connected::new(bench);
    assert_eq!(bench.near.disconnect(ends.near), 0);
    assert_eq!(bench.near.disconnect(ends.near), 0, "while the answer is awaited");
    ends.far_hears(bench, RDMA_CM_EVENT_DISCONNECTED);
    assert_eq!(bench.far.disconnect(ends.far), 0);
    ends.near_hears(bench, RDMA_CM_EVENT_DISCONNECTED);
    assert_eq!(bench.near.disconnect(ends.near), 0, "when the connection has ended");
    assert_eq!(bench.far.disconnect(ends.far), 0, "when the connection has ended");
    ends.both_wait(bench);
    assert_eq!(bench.near.disconnect(ends.near), 0, "long after");
    bench.far.is_quiet(ends.meeting.far_channel, Duration::from_millis(20));
}

pub(crate) fn a_request_is_not_taken_back(bench: &mut Bench) {
    let meeting = Meeting::new(bench, RDMA_PS_TCP);
    let request = meeting.ask(bench, &unpaired());
    assert_eq!(bench.near.disconnect(meeting.near), 0, "no effect before the connection");
    assert_eq!(bench.far.disconnect(request.id), 0, "nor at the far node");
    assert_eq!(bench.far.accept(request.id, &unpaired()), 0);
    bench.near.expect_event(meeting.near_channel, meeting.near, RDMA_CM_EVENT_CONNECT_RESPONSE);
    assert_eq!(bench.near.establish(meeting.near), 0);
    bench.far.expect_event(meeting.far_channel, request.id, RDMA_CM_EVENT_ESTABLISHED);
}

pub(crate) fn an_identifier_that_goes_ends_its_connection(bench: &mut Bench) {
    let ends = Connected::new(bench);
    bench.near.destroy_pair(ends.near, &ends.near_side);
    bench.near.destroy_identifier(ends.near);
    ends.far_hears(bench, RDMA_CM_EVENT_DISCONNECTED);
    assert_eq!(bench.far.disconnect(ends.far), 0);
    ends.far_hears(bench, RDMA_CM_EVENT_TIMEWAIT_EXIT);
    bench.far.is_quiet(ends.meeting.far_channel, Duration::ZERO);
}

/// Disconnecting takes the queue pair to the error state, which flushes posted requests.
pub(crate) fn an_ended_pair_is_flushed(bench: &mut Bench) {
    let ends = Connected::new(bench);
    let [near, far] = [ends.near_side, ends.far_side];
    bench.near.receive(near.qp, 5, &[near.at(0, 8)]);
    bench.far.receive(far.qp, 6, &[far.at(0, 8)]);
    assert_eq!(bench.near.disconnect(ends.near), 0);
    let flushed = bench.near.wait_one(near.receive_cq);
    assert_eq!((flushed.id, flushed.status), (5, IBV_WC_WR_FLUSH_ERR));
    ends.far_hears(bench, RDMA_CM_EVENT_DISCONNECTED);
    assert_eq!(bench.far.disconnect(ends.far), 0);
    let flushed = bench.far.wait_one(far.receive_cq);
    assert_eq!((flushed.id, flushed.status), (6, IBV_WC_WR_FLUSH_ERR));
    assert_eq!([bench.near.state(near.qp), bench.far.state(far.qp)], [IBV_QPS_ERR; 2]);
}

/// Starts a separate process that listens. Returns its node, channel, listener and address.
#[track_caller]
fn doomed(bench: &mut Bench) -> (Node, usize, usize, SocketAddr) {
    let home = home(&mut bench.near);
    let mut node = Node::remote(&bench.subject);
    let channel = node.event_channel();
    let (listener, port) = node.listener(channel, RDMA_PS_TCP, any_port(home), BACKLOG);
    (node, channel, listener, SocketAddr::new(home.into(), port))
}

/// Connects two nodes by queue pairs that librdmacm creates. Returns the identifiers of both.
#[track_caller]
fn connect(
    asking: &mut Node,
    channel: usize,
    at: SocketAddr,
    asked: &mut Node,
    their: (usize, usize),
) -> [usize; 2] {
    let id = asking.routed(channel, RDMA_PS_TCP, at);
    asking.pair_of(id, IBV_QPT_RC);
    assert_eq!(asking.request(id, &Parameters::default()), 0);
    let request = asked.expect_request(their.0, their.1);
    asked.pair_of(request.id, IBV_QPT_RC);
    assert_eq!(asked.accept(request.id, &Parameters::default()), 0);
    asking.expect_event(channel, id, RDMA_CM_EVENT_ESTABLISHED);
    asked.expect_event(their.0, request.id, RDMA_CM_EVENT_ESTABLISHED);
    [id, request.id]
}

pub(crate) fn a_killed_listener_disconnects_its_peer(bench: &mut Bench) {
    let (mut node, their_channel, listener, at) = doomed(bench);
    let channel = bench.near.event_channel();
    let [id, _] = connect(&mut bench.near, channel, at, &mut node, (their_channel, listener));
    node.kill();
    bench.near.expect_event(channel, id, RDMA_CM_EVENT_DISCONNECTED);
    assert_eq!(bench.near.disconnect(id), 0);
    bench.near.expect_event(channel, id, RDMA_CM_EVENT_TIMEWAIT_EXIT);
}

pub(crate) fn a_killed_listener_rejects_what_waits(bench: &mut Bench) {
    /// `IB_CM_REJ_CONSUMER_DEFINED`.
    const BY_CONSUMER: i32 = 28;
    let (mut node, their_channel, listener, at) = doomed(bench);
    let channel = bench.near.event_channel();
    let ids = [(); 2].map(|()| bench.near.routed(channel, RDMA_PS_TCP, at));
    for id in ids {
        assert_eq!(bench.near.request(id, &unpaired()), 0);
    }
    node.expect_request(their_channel, listener);
    assert!(node.has_event(their_channel, 10_000), "the second request has arrived and is not taken");
    node.kill();
    let mut rejected = [(); 2].map(|()| {
        let event = bench.near.next_event(channel);
        assert_eq!((event.kind, event.status), (RDMA_CM_EVENT_REJECTED, BY_CONSUMER));
        event.id
    });
    rejected.sort_unstable();
    assert_eq!(rejected, ids);
}

pub(crate) fn a_killed_peer_disconnects_the_listener(bench: &mut Bench) {
    let home = home(&mut bench.near);
    let channel = bench.near.event_channel();
    let (listener, port) = bench.near.listener(channel, RDMA_PS_TCP, any_port(home), BACKLOG);
    let at = SocketAddr::new(home.into(), port);
    let mut node = Node::remote(&bench.subject);
    let their_channel = node.event_channel();
    let [_, id] = connect(&mut node, their_channel, at, &mut bench.near, (channel, listener));
    node.kill();
    bench.near.expect_event(channel, id, RDMA_CM_EVENT_DISCONNECTED);
    // The listener still accepts connections.
    let mut node = Node::remote(&bench.subject);
    let their_channel = node.event_channel();
    connect(&mut node, their_channel, at, &mut bench.near, (channel, listener));
    node.close();
}

pub(crate) fn a_killed_process_frees_its_port(bench: &mut Bench) {
    let (node, _, _, at) = doomed(bench);
    let channel = bench.near.event_channel();
    let id = bench.near.identifier(channel, RDMA_PS_TCP);
    assert_eq!(bench.near.bind(id, at), libc::EADDRINUSE);
    node.kill();
    assert_eq!(bench.near.bind(id, at), 0, "as soon as the process has ended");
    assert_eq!(bench.near.listen(id, 1), 0);
}
