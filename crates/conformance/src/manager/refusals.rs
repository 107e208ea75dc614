//! Requests that do not become connections (man rdma_reject, rdma_destroy_id). The reasons are in
//! the InfiniBand Architecture Specification, volume 1, section 12.6.7.2.

use std::net::SocketAddr;
use std::time::Duration;

use verbs::abi::rdma_cm::*;

use super::{Meeting, any_port, home, unpaired};
use crate::Bench;
use crate::shape::Parameters;

/// `IB_CM_REJ_INVALID_SERVICE_ID`.
const NOBODY_LISTENS: i32 = 8;
/// `IB_CM_REJ_CONSUMER_DEFINED`.
const BY_CONSUMER: i32 = 28;

#[track_caller]
fn is_rejected(bench: &mut Bench, meeting: &Meeting) {
    bench.near.expect_failure(meeting.near_channel, meeting.near, RDMA_CM_EVENT_REJECTED, BY_CONSUMER);
    bench.near.is_quiet(meeting.near_channel, Duration::from_millis(20));
}

pub(crate) fn nobody_listens(bench: &mut Bench) {
    let node = &mut bench.near;
    let home = home(node);
    let channel = node.event_channel();
    let bound = node.identifier(channel, RDMA_PS_TCP);
    assert_eq!(node.bind(bound, any_port(home)), 0);
    let at = SocketAddr::new(home.into(), node.ports(bound)[0]);
    let id = node.routed(channel, RDMA_PS_TCP, at);
    assert_eq!(node.request(id, &unpaired()), 0);
    let event = node.expect_failure(channel, id, RDMA_CM_EVENT_REJECTED, NOBODY_LISTENS);
    assert_eq!(event.parameters.data, [0; 148]);
    // A listener of another port space.
    let (_, port) = node.listener(channel, RDMA_PS_UDP, any_port(home), 1);
    let id = node.routed(channel, RDMA_PS_TCP, SocketAddr::new(home.into(), port));
    assert_eq!(node.request(id, &unpaired()), 0);
    node.expect_failure(channel, id, RDMA_CM_EVENT_REJECTED, NOBODY_LISTENS);
}

pub(crate) fn who_rejects_may_say_why(bench: &mut Bench) {
    let meeting = Meeting::new(bench, RDMA_PS_TCP);
    let request = meeting.ask(bench, &unpaired());
    assert_eq!(bench.far.reject(request.id, b"not today"), 0);
    let event =
        bench.near.expect_failure(meeting.near_channel, meeting.near, RDMA_CM_EVENT_REJECTED, BY_CONSUMER);
    assert_eq!(event.parameters.data[..10], *b"not today\0");
    assert_eq!(bench.far.reject(request.id, &[]), libc::EINVAL, "the request is already rejected");
    assert_eq!(
        bench.far.accept(request.id, &Parameters::default()),
        libc::EINVAL,
        "a rejected request is accepted"
    );
    bench.far.destroy_identifier(request.id);
    bench.near.is_quiet(meeting.near_channel, Duration::from_millis(20));
    bench.far.is_quiet(meeting.far_channel, Duration::from_millis(20));
}

pub(crate) fn a_request_that_is_dropped_is_rejected(bench: &mut Bench) {
    let meeting = Meeting::new(bench, RDMA_PS_TCP);
    let request = meeting.ask(bench, &unpaired());
    bench.far.destroy_identifier(request.id);
    is_rejected(bench, &meeting);
}

pub(crate) fn a_listener_that_goes_rejects_what_waits(bench: &mut Bench) {
    let meeting = Meeting::new(bench, RDMA_PS_TCP);
    let mut waiting = vec![meeting.near, meeting.another(bench), meeting.another(bench)];
    for (n, id) in waiting.iter().enumerate() {
        let parameters = Parameters { data: vec![n as u8], ..unpaired() };
        assert_eq!(bench.near.request(*id, &parameters), 0);
    }
    let taken = bench.far.expect_request(meeting.far_channel, meeting.listener);
    // Requests need not arrive in order.
    let of_it = waiting.remove(taken.parameters.data[0].into());
    // The other requests arrive meanwhile.
    std::thread::sleep(Duration::from_millis(200));
    bench.far.destroy_identifier(meeting.listener);
    let mut rejected = [(); 2].map(|()| {
        let event = bench.near.next_event(meeting.near_channel);
        assert_eq!((event.kind, event.status), (RDMA_CM_EVENT_REJECTED, BY_CONSUMER));
        event.id
    });
    rejected.sort_unstable();
    assert_eq!(rejected, *waiting, "all but the taken request");
    assert_eq!(bench.far.accept(taken.id, &unpaired()), 0, "a taken request outlives its listener");
    bench.near.expect_event(meeting.near_channel, of_it, RDMA_CM_EVENT_CONNECT_RESPONSE);
    assert_eq!(bench.near.establish(of_it), 0);
    bench.far.expect_event(meeting.far_channel, taken.id, RDMA_CM_EVENT_ESTABLISHED);
    let late = meeting.another(bench);
    assert_eq!(bench.near.request(late, &unpaired()), 0);
    bench.near.expect_failure(meeting.near_channel, late, RDMA_CM_EVENT_REJECTED, NOBODY_LISTENS);
}

pub(crate) fn an_answer_can_be_refused(bench: &mut Bench) {
    let meeting = Meeting::new(bench, RDMA_PS_TCP);
    let request = meeting.ask(bench, &unpaired());
    assert_eq!(bench.far.accept(request.id, &unpaired()), 0);
    bench.near.expect_event(meeting.near_channel, meeting.near, RDMA_CM_EVENT_CONNECT_RESPONSE);
    assert_eq!(bench.near.reject(meeting.near, b"no"), 0);
    let event =
        bench.far.expect_failure(meeting.far_channel, request.id, RDMA_CM_EVENT_REJECTED, BY_CONSUMER);
    assert_eq!(event.parameters.data[..3], *b"no\0");
    assert_eq!(bench.near.establish(meeting.near), libc::EINVAL);
}

pub(crate) fn who_is_accepted_twice_is_rejected(bench: &mut Bench) {
    let meeting = Meeting::new(bench, RDMA_PS_TCP);
    let request = meeting.ask(bench, &unpaired());
    let answer = unpaired();
    assert_eq!(bench.far.accept(request.id, &answer), 0);
    bench.near.expect_event(meeting.near_channel, meeting.near, RDMA_CM_EVENT_CONNECT_RESPONSE);
    assert_eq!(bench.far.accept(request.id, &answer), libc::EINVAL);
    is_rejected(bench, &meeting);
    bench.far.is_quiet(meeting.far_channel, Duration::from_millis(20));
}

pub(crate) fn a_rejected_identifier_is_used_up(bench: &mut Bench) {
    let meeting = Meeting::new(bench, RDMA_PS_TCP);
    let request = meeting.ask(bench, &unpaired());
    assert_eq!(bench.far.reject(request.id, &[]), 0);
    is_rejected(bench, &meeting);
    assert_eq!(bench.near.request(meeting.near, &unpaired()), libc::EINVAL);
    assert_eq!(bench.near.disconnect(meeting.near), 0, "disconnecting has no effect");
    let again = meeting.another(bench);
    assert_eq!(bench.near.request(again, &unpaired()), 0);
    bench.far.expect_request(meeting.far_channel, meeting.listener);
}

pub(crate) fn who_has_given_up_is_not_accepted(bench: &mut Bench) {
    let meeting = Meeting::new(bench, RDMA_PS_TCP);
    let request = meeting.ask(bench, &unpaired());
    bench.near.destroy_identifier(meeting.near);
    // The rejection is sent at once, but takes time to arrive.
    std::thread::sleep(Duration::from_millis(200));
    bench.far.is_quiet(meeting.far_channel, Duration::ZERO);
    assert_eq!(bench.far.accept(request.id, &Parameters::default()), libc::EINVAL);
    bench.far.is_quiet(meeting.far_channel, Duration::from_millis(20));
}
