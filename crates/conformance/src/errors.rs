//! Retries, errors and flushed requests.

use std::time::{Duration, Instant};

use verbs::abi::*;

use crate::rig::op;
use crate::shape::ids;
use crate::{Bench, Send, Shape, Tuning, Wc};

/// Code 20 of the RNR timer (IBTA volume 1, table 45).
const RNR_20: Duration = Duration::from_micros(10_240);

#[track_caller]
fn all(found: &[Wc], status: ibv_wc_status) {
    assert!(found.iter().all(|wc| wc.status == status), "status {status} expected: {found:?}");
}

/// Sends a message that is never received, and returns the time until it fails.
#[track_caller]
fn time_to_fail(bench: &mut Bench, a: &crate::Side, status: ibv_wc_status) -> Duration {
    let start = Instant::now();
    bench.near.send(a.qp, Send::new(1, &[a.at(0, 64)]));
    let wc = bench.near.wait_one(a.send_cq);
    assert_eq!((wc.id, wc.status, wc.qp), (1, status, a.number));
    let time = start.elapsed();
    bench.near.settles(a.qp, IBV_QPS_ERR, "after a failed send");
    time
}

pub(crate) fn receiver_not_ready_ends_at_once_without_retries(bench: &mut Bench) {
    // Code 0 is the longest wait, 655 ms: without retries, the requester does not wait.
    let tuning = Tuning { rnr_retries: 0, rnr_timer: 0, ..Tuning::default() };
    let (a, b) = bench.connected(&Shape::of(IBV_QPT_RC), &tuning);
    time_to_fail(bench, &a, IBV_WC_RNR_RETRY_EXC_ERR);
    assert_eq!(bench.far.state(b.qp), IBV_QPS_RTS, "the responder has no error");
}

pub(crate) fn receiver_not_ready_waits_as_long_as_it_is_told(bench: &mut Bench) {
    for rnr_retries in [1, 3] {
        let tuning = Tuning { rnr_retries, rnr_timer: 20, ..Tuning::default() };
        let (a, _) = bench.connected(&Shape::of(IBV_QPT_RC), &tuning);
        let time = time_to_fail(bench, &a, IBV_WC_RNR_RETRY_EXC_ERR);
        assert!(time >= RNR_20 * u32::from(rnr_retries), "{rnr_retries} waits took {time:?}");
    }
}

pub(crate) fn receiver_not_ready_waits_for_ever_with_seven(bench: &mut Bench) {
    let tuning = Tuning { rnr_retries: 7, rnr_timer: 1, ..Tuning::default() };
    let (a, b) = bench.connected(&Shape::of(IBV_QPT_RC), &tuning);
    bench.near.fill(a.region, 0, 1000, 4);
    for id in 0..3 {
        bench.near.send(a.qp, Send::new(id, &[a.at(0, 1000)]));
    }
    // Much longer than seven waits.
    bench.near.quiet(a.send_cq, Duration::from_millis(50));
    for id in 0..3 {
        bench.far.receive(b.qp, id, &[b.at(id as usize * 1000, 1000)]);
    }
    let sent = bench.near.wait(a.send_cq, 3);
    all(&sent, IBV_WC_SUCCESS);
    assert_eq!(ids(&sent), [0, 1, 2]);
    assert_eq!(ids(&bench.far.wait(b.receive_cq, 3)), [0, 1, 2]);
    for id in 0..3 {
        bench.far.check(b.region, id * 1000, 1000, 4);
    }
}

pub(crate) fn an_early_receive_does_not_shorten_the_wait(bench: &mut Bench) {
    // Code 26: 81.92 ms.
    let tuning = Tuning { rnr_retries: 7, rnr_timer: 26, ..Tuning::default() };
    let (a, b) = bench.connected(&Shape::of(IBV_QPT_RC), &tuning);
    let start = Instant::now();
    bench.near.send(a.qp, Send::new(1, &[a.at(0, 64)]));
    bench.far.receive(b.qp, 1, &[b.at(0, 64)]);
    assert_eq!(bench.near.wait_one(a.send_cq).status, IBV_WC_SUCCESS);
    assert!(start.elapsed() >= Duration::from_micros(81_920), "after {:?}", start.elapsed());
    bench.far.wait_one(b.receive_cq);
}

/// Timeout 10 is 4.194 ms; with two retries, no send may fail before three timeouts.
pub(crate) const IMPATIENT: Tuning = Tuning { timeout: 10, retries: 2, psn: 100, ..Tuning::USUAL };
const THREE_TIMEOUTS: Duration = Duration::from_nanos(3 * (4096 << 10));

#[track_caller]
fn fails_by_retries(bench: &mut Bench, a: &crate::Side) {
    let time = time_to_fail(bench, a, IBV_WC_RETRY_EXC_ERR);
    assert!(time >= THREE_TIMEOUTS, "three timeouts took {time:?}");
}

pub(crate) fn an_absent_peer_exhausts_the_retries(bench: &mut Bench) {
    let a = bench.near.side(&Shape::of(IBV_QPT_RC));
    let b = bench.far.side(&Shape::of(IBV_QPT_RC));
    // The queue pair exists, but is not ready to receive.
    bench.near.connect_to(&a, b.number, b.gid, &IMPATIENT);
    fails_by_retries(bench, &a);
    // No queue pair has this number.
    let c = bench.near.side(&Shape::of(IBV_QPT_RC));
    bench.near.connect_to(&c, (b.number + 7) ^ 0x80_0000, b.gid, &IMPATIENT);
    fails_by_retries(bench, &c);
}

/// IBTA volume 1, section 9.9.2.4.1: seven means infinite only for the RNR retry count.
pub(crate) fn seven_retries_are_seven(bench: &mut Bench) {
    const EIGHT_TIMEOUTS: Duration = Duration::from_nanos(8 * (4096 << 10));
    let a = bench.near.side(&Shape::of(IBV_QPT_RC));
    let b = bench.far.side(&Shape::of(IBV_QPT_RC));
    bench.near.connect_to(&a, b.number, b.gid, &Tuning { retries: 7, ..IMPATIENT });
    let time = time_to_fail(bench, &a, IBV_WC_RETRY_EXC_ERR);
    assert!(time >= EIGHT_TIMEOUTS, "eight timeouts took {time:?}");
}

pub(crate) fn a_wrong_sequence_number_exhausts_the_retries(bench: &mut Bench) {
    let a = bench.near.side(&Shape::of(IBV_QPT_RC));
    let b = bench.far.side(&Shape::of(IBV_QPT_RC));
    bench.near.connect_to(&a, b.number, b.gid, &IMPATIENT);
    bench.far.connect_to(&b, a.number, a.gid, &Tuning { psn: 101, ..IMPATIENT });
    bench.far.receive(b.qp, 1, &[b.at(0, 64)]);
    fails_by_retries(bench, &a);
    assert_eq!(bench.far.poll(b.receive_cq, 1), []);
}

/// A queue pair of another service does not answer.
pub(crate) fn another_service_exhausts_the_retries(bench: &mut Bench) {
    let a = bench.near.side(&Shape::of(IBV_QPT_RC));
    let b = bench.far.side(&Shape::of(IBV_QPT_UC));
    bench.far.connect_to(&b, a.number, a.gid, &IMPATIENT);
    bench.far.receive(b.qp, 1, &[b.at(0, 64)]);
    bench.near.connect_to(&a, b.number, b.gid, &IMPATIENT);
    fails_by_retries(bench, &a);
    assert_eq!(bench.far.poll(b.receive_cq, 1), []);
}

pub(crate) fn a_destroyed_peer_exhausts_the_retries(bench: &mut Bench) {
    // A timeout of 134 ms, because the first message must arrive.
    let tuning = Tuning { timeout: 15, ..IMPATIENT };
    let (a, b) = bench.connected(&Shape::of(IBV_QPT_RC), &tuning);
    for id in 0..4 {
        bench.far.receive(b.qp, id, &[b.at(0, 64)]);
    }
    bench.near.send(a.qp, Send::new(1, &[a.at(0, 64)]));
    assert_eq!(bench.near.wait_one(a.send_cq).status, IBV_WC_SUCCESS);
    assert_eq!(bench.far.errno(op::DESTROY_QP, &[b.qp as u64]), 0);
    fails_by_retries(bench, &a);
}

pub(crate) fn a_peer_in_error_exhausts_the_retries(bench: &mut Bench) {
    let (a, b) = bench.connected(&Shape::of(IBV_QPT_RC), &IMPATIENT);
    bench.far.receive(b.qp, 1, &[b.at(0, 64)]);
    bench.far.change_state(b.qp, IBV_QPS_ERR);
    fails_by_retries(bench, &a);
    assert_eq!(bench.far.wait_one(b.receive_cq).status, IBV_WC_WR_FLUSH_ERR);
}

/// Sends a message of `size` bytes to a receive that is one byte too short, followed by another
/// message and another receive. Returns the first completions of the sender and the receiver.
fn too_long(bench: &mut Bench, size: usize) -> [Wc; 2] {
    let (a, b) = bench.connected(&Shape::of(IBV_QPT_RC), &Tuning::default());
    bench.far.fill(b.region, 0, 8192, 8);
    bench.far.receive(b.qp, 1, &[b.at(0, size - 1)]);
    bench.far.receive(b.qp, 2, &[b.at(0, size)]);
    bench.near.send(a.qp, Send::new(3, &[a.at(0, size)]));
    bench.near.send(a.qp, Send::new(4, &[a.at(0, 1)]));
    let sent = bench.near.wait(a.send_cq, 2);
    assert_eq!([sent[0].id, sent[1].id], [3, 4]);
    assert_eq!(sent[1].status, IBV_WC_WR_FLUSH_ERR);
    let got = bench.far.wait(b.receive_cq, 2);
    assert_eq!([got[0].id, got[1].id], [1, 2]);
    assert_eq!(got[1].status, IBV_WC_WR_FLUSH_ERR);
    bench.near.settles(a.qp, IBV_QPS_ERR, "the sender");
    bench.far.settles(b.qp, IBV_QPS_ERR, "the receiver");
    bench.far.check_from(b.region, size - 1, 1, 8, size - 1);
    [sent[0], got[0]]
}

pub(crate) fn rc_fails_both_ends_when_the_receive_is_too_small(bench: &mut Bench) {
    for size in [9, 5000] {
        for wc in too_long(bench, size) {
            assert!(wc.has_failed(), "{size} B: {wc:?}");
        }
    }
}

/// IBTA volume 1, section 9.9.3: a local length error for the receiver, and an invalid request for
/// the sender.
pub(crate) fn a_receive_that_is_too_small_is_named(bench: &mut Bench) {
    for size in [9, 5000] {
        let status = too_long(bench, size).map(|wc| wc.status);
        assert_eq!(status, [IBV_WC_REM_INV_REQ_ERR, IBV_WC_LOC_LEN_ERR], "{size} B");
    }
}

pub(crate) fn uc_drops_what_nobody_awaits(bench: &mut Bench) {
    let (a, b) = bench.connected(&Shape::of(IBV_QPT_UC), &Tuning::default());
    // The sender gets no error.
    bench.near.send(a.qp, Send::new(1, &[a.at(0, 64)]));
    assert_eq!(bench.near.wait_one(a.send_cq).status, IBV_WC_SUCCESS);
    bench.far.receive(b.qp, 5, &[b.at(0, 100)]);
    bench.far.quiet(b.receive_cq, Duration::from_millis(1));
    bench.near.fill(a.region, 0, 100, 2);
    bench.near.send(a.qp, Send::new(3, &[a.at(0, 100)]));
    let got = bench.far.wait_one(b.receive_cq);
    assert_eq!((got.id, got.status, got.byte_len), (5, IBV_WC_SUCCESS, 100));
    bench.far.check(b.region, 0, 100, 2);
}

pub(crate) fn uc_drops_what_is_too_long(bench: &mut Bench) {
    let (a, b) = bench.connected(&Shape::of(IBV_QPT_UC), &Tuning::default());
    bench.far.receive(b.qp, 5, &[b.at(0, 100)]);
    for size in [101, 5000] {
        bench.near.send(a.qp, Send::new(2, &[a.at(0, size)]));
        assert_eq!(bench.near.wait_one(a.send_cq).status, IBV_WC_SUCCESS);
    }
    bench.far.quiet(b.receive_cq, Duration::from_millis(1));
    assert_eq!(bench.far.state(b.qp), IBV_QPS_RTS);
    bench.near.fill(a.region, 0, 100, 2);
    bench.near.send(a.qp, Send::new(3, &[a.at(0, 100)]));
    let got = bench.far.wait_one(b.receive_cq);
    assert_eq!((got.id, got.status, got.byte_len), (5, IBV_WC_SUCCESS, 100));
    bench.far.check(b.region, 0, 100, 2);
}

pub(crate) fn a_failed_send_completes_although_unsignaled(bench: &mut Bench) {
    for service in [IBV_QPT_RC, IBV_QPT_UC] {
        let (a, _) = bench.connected(&Shape::of(service), &Tuning::default());
        let mut element = a.at(0, 64);
        element[3] = 0xdead_be00;
        bench.near.send(a.qp, Send::new(9, &[element]).unsignaled());
        let wc = bench.near.wait_one(a.send_cq);
        assert_eq!((wc.id, wc.qp), (9, a.number));
        assert!(wc.has_failed(), "{wc:?}");
        bench.near.send(a.qp, Send::new(10, &[a.at(0, 64)]).unsignaled());
        let wc = bench.near.wait_one(a.send_cq);
        assert_eq!((wc.id, wc.status), (10, IBV_WC_WR_FLUSH_ERR));
    }
}

pub(crate) fn a_failure_flushes_both_queues_in_order(bench: &mut Bench) {
    let (a, b) = bench.connected(&Shape::of(IBV_QPT_RC), &Tuning::default());
    for id in 0..5 {
        bench.near.receive(a.qp, id, &[a.at(0, 64)]);
    }
    // One receive completes before the failure and is not flushed.
    bench.far.send(b.qp, Send::new(1, &[b.at(0, 8)]));
    bench.far.wait_one(b.send_cq);
    for id in 10..14 {
        // Without receives these sends wait, whether or not they are signalled.
        let request = Send::new(id, &[a.at(0, 64)]);
        bench.near.send(a.qp, if id % 2 == 0 { request } else { request.unsignaled() });
    }
    bench.near.change_state(a.qp, IBV_QPS_ERR);
    let sent = bench.near.wait(a.send_cq, 4);
    all(&sent, IBV_WC_WR_FLUSH_ERR);
    assert_eq!(ids(&sent), [10, 11, 12, 13]);
    let got = bench.near.wait(a.receive_cq, 5);
    assert_eq!(ids(&got), [0, 1, 2, 3, 4]);
    assert_eq!(got[0].status, IBV_WC_SUCCESS);
    all(&got[1..], IBV_WC_WR_FLUSH_ERR);
    bench.near.change_state(a.qp, IBV_QPS_ERR);
    bench.near.quiet(a.send_cq, Duration::from_millis(1));
    bench.near.quiet(a.receive_cq, Duration::from_millis(1));
    assert_eq!(bench.far.poll(b.receive_cq, 1), []);
}

pub(crate) fn sends_behind_a_waiting_one_are_flushed_in_order(bench: &mut Bench) {
    // The responder breaks the connection while sends wait; all requests complete in the order of
    // posting.
    let (a, b) = bench.connected(&Shape::of(IBV_QPT_RC), &Tuning::default());
    bench.near.receive(a.qp, 50, &[a.at(0, 4)]);
    for id in 0..3 {
        bench.near.send(a.qp, Send::new(id, &[a.at(0, 64)]));
    }
    // Too long for the near node's receive: the far node makes the near queue pair fail.
    bench.far.send(b.qp, Send::new(9, &[b.at(0, 64)]));
    assert_ne!(bench.far.wait_one(b.send_cq).status, IBV_WC_SUCCESS);
    for id in 3..6 {
        let posted = bench.near.try_send(a.qp, &[Send::new(id, &[a.at(0, 64)])]);
        assert_eq!(posted, (0, None));
    }
    assert_ne!(bench.near.wait_one(a.receive_cq).status, IBV_WC_SUCCESS);
    let sent = bench.near.wait(a.send_cq, 6);
    assert_eq!(ids(&sent), [0, 1, 2, 3, 4, 5]);
    // The first send may have reached the far queue pair in error, or have been flushed.
    all(&sent[1..], IBV_WC_WR_FLUSH_ERR);
}

pub(crate) fn flushed_sends_leave_their_queue(bench: &mut Bench) {
    let shape = Shape { sends: 4, receives: 4, ..Shape::of(IBV_QPT_RC) };
    let (a, _) = bench.connected(&shape, &Tuning::default());
    bench.near.change_state(a.qp, IBV_QPS_ERR);
    for round in 0..5 {
        for id in 0..u64::from(a.sends) {
            bench.near.send(a.qp, Send::new(round * 10 + id, &[a.at(0, 64)]));
        }
        all(&bench.near.wait(a.send_cq, a.sends as usize), IBV_WC_WR_FLUSH_ERR);
    }
}

pub(crate) fn flushed_receives_leave_their_queue(bench: &mut Bench) {
    let shape = Shape { sends: 4, receives: 4, ..Shape::of(IBV_QPT_RC) };
    let (a, _) = bench.connected(&shape, &Tuning::default());
    bench.near.change_state(a.qp, IBV_QPS_ERR);
    for round in 0..5 {
        for id in 0..u64::from(a.receives) {
            bench.near.receive(a.qp, round * 10 + id, &[a.at(0, 64)]);
        }
        all(&bench.near.wait(a.receive_cq, a.receives as usize), IBV_WC_WR_FLUSH_ERR);
    }
}

/// IBTA volume 1, section 9.8.2: a UC responder accepts any sequence number at the start of a
/// message.
pub(crate) fn uc_begins_with_any_sequence_number(bench: &mut Bench) {
    let a = bench.near.side(&Shape::of(IBV_QPT_UC));
    let b = bench.far.side(&Shape::of(IBV_QPT_UC));
    bench.near.connect_to(&a, b.number, b.gid, &IMPATIENT);
    bench.far.connect_to(&b, a.number, a.gid, &Tuning { psn: 4711, ..IMPATIENT });
    bench.far.receive(b.qp, 1, &[b.at(0, 64)]);
    bench.near.send(a.qp, Send::new(1, &[a.at(0, 64)]));
    assert_eq!(bench.near.wait_one(a.send_cq).status, IBV_WC_SUCCESS);
    assert_eq!(bench.far.wait_one(b.receive_cq).status, IBV_WC_SUCCESS);
}
