//! Private data of programs (man rdma_connect, rdma_accept, rdma_reject). Its lengths are the
//! lengths in the messages (InfiniBand Architecture Specification, volume 1, sections 12.6 and
//! 12.11).

use std::time::Duration;

use verbs::abi::rdma_cm::*;

use super::{Meeting, unpaired};
use crate::Bench;
use crate::shape::Parameters;

/// The reason of a rejection by a program (`IB_CM_REJ_CONSUMER_DEFINED`).
const BY_CONSUMER: i32 = 28;

/// A number of bytes, of which no two neighbours are equal.
fn bytes(count: u8) -> Vec<u8> {
    (1..=count).collect()
}

/// The data that a program receives: the whole field, padded with zeros.
fn heard(data: &[u8], field: usize) -> Vec<u8> {
    let mut all = data.to_vec();
    all.resize(field, 0);
    all
}

/// Sends a request with private data. Returns the identifier of the request.
#[track_caller]
fn asked(bench: &mut Bench, space: i32, data: &[u8], field: usize) -> (Meeting, usize) {
    let meeting = Meeting::new(bench, space);
    let request = meeting.ask(bench, &Parameters { data: data.to_vec(), ..unpaired() });
    assert_eq!(request.parameters.data, heard(data, field), "the data of a request");
    (meeting, request.id)
}

pub(crate) fn a_request_carries_56_bytes(bench: &mut Bench) {
    const MOST: u8 = 56;
    for count in [0, 1, MOST] {
        asked(bench, RDMA_PS_TCP, &bytes(count), MOST.into());
    }
    let meeting = Meeting::new(bench, RDMA_PS_TCP);
    for count in [MOST + 1, 255] {
        assert_eq!(
            bench.near.request(meeting.near, &Parameters::with(&bytes(count))),
            libc::EINVAL,
            "{count} bytes"
        );
    }
    bench.far.is_quiet(meeting.far_channel, Duration::from_millis(50));
    meeting.ask(bench, &Parameters { data: bytes(MOST), ..unpaired() });
}

pub(crate) fn an_answer_carries_196_bytes(bench: &mut Bench) {
    const MOST: u8 = 196;
    for count in [0, 1, MOST] {
        let (meeting, id) = asked(bench, RDMA_PS_TCP, &[], 56);
        assert_eq!(
            bench.far.accept(id, &Parameters { data: bytes(count), ..unpaired() }),
            0,
            "{count} bytes"
        );
        let response =
            bench.near.expect_event(meeting.near_channel, meeting.near, RDMA_CM_EVENT_CONNECT_RESPONSE);
        assert_eq!(response.parameters.data, heard(&bytes(count), MOST.into()));
    }
}

pub(crate) fn an_answer_that_is_too_long_rejects(bench: &mut Bench) {
    let (meeting, id) = asked(bench, RDMA_PS_TCP, &[], 56);
    assert_eq!(bench.far.accept(id, &Parameters::with(&bytes(197))), libc::EINVAL);
    let event =
        bench.near.expect_failure(meeting.near_channel, meeting.near, RDMA_CM_EVENT_REJECTED, BY_CONSUMER);
    assert_eq!(event.parameters.data, [0; 148]);
    assert_eq!(bench.far.accept(id, &Parameters::default()), libc::EINVAL, "the request is over");
}

pub(crate) fn a_rejection_carries_148_bytes(bench: &mut Bench) {
    const MOST: u8 = 148;
    for count in [0, 1, MOST] {
        let (meeting, id) = asked(bench, RDMA_PS_TCP, &[], 56);
        assert_eq!(bench.far.reject(id, &bytes(MOST + 1)), libc::EINVAL, "one more");
        bench.near.is_quiet(meeting.near_channel, Duration::from_millis(20));
        assert_eq!(bench.far.reject(id, &bytes(count)), 0, "{count} bytes");
        let event = bench.near.expect_failure(
            meeting.near_channel,
            meeting.near,
            RDMA_CM_EVENT_REJECTED,
            BY_CONSUMER,
        );
        assert_eq!(event.parameters.data, heard(&bytes(count), MOST.into()));
    }
}

pub(crate) fn a_resolution_carries_180_bytes(bench: &mut Bench) {
    const MOST: u8 = 180;
    for count in [0, 1, MOST] {
        asked(bench, RDMA_PS_UDP, &bytes(count), MOST.into());
    }
    let meeting = Meeting::new(bench, RDMA_PS_UDP);
    assert_eq!(bench.near.request(meeting.near, &Parameters::with(&bytes(MOST + 1))), libc::EINVAL);
    meeting.ask(bench, &Parameters { data: bytes(MOST), ..unpaired() });
}

pub(crate) fn its_answer_carries_136_bytes(bench: &mut Bench) {
    const MOST: u8 = 136;
    const REJECTED: i32 = 2;
    for count in [0, 1, MOST] {
        let (meeting, id) = asked(bench, RDMA_PS_UDP, &[], 180);
        assert_eq!(bench.far.accept(id, &Parameters { qp_num: 0x222, ..Parameters::with(&bytes(count)) }), 0);
        let event = bench.near.expect_event(meeting.near_channel, meeting.near, RDMA_CM_EVENT_ESTABLISHED);
        assert_eq!(event.parameters.data, heard(&bytes(count), MOST.into()));
        let (meeting, id) = asked(bench, RDMA_PS_UDP, &[], 180);
        assert_eq!(bench.far.reject(id, &bytes(MOST + 1)), libc::EINVAL, "one more");
        assert_eq!(bench.far.reject(id, &bytes(count)), 0);
        let event = bench.near.expect_failure(
            meeting.near_channel,
            meeting.near,
            RDMA_CM_EVENT_UNREACHABLE,
            REJECTED,
        );
        assert_eq!(event.parameters.data, heard(&bytes(count), MOST.into()), "rejected, with data");
    }
    let (meeting, id) = asked(bench, RDMA_PS_UDP, &[], 180);
    assert_eq!(bench.far.accept(id, &Parameters::with(&bytes(MOST + 1))), libc::EINVAL);
    bench.near.expect_failure(meeting.near_channel, meeting.near, RDMA_CM_EVENT_UNREACHABLE, REJECTED);
}
