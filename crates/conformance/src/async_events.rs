//! Asynchronous events (IBTA vol. 1, section 11.6.3; man ibv_get_async_event).

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use verbs::abi::*;

use crate::rig::op;
use crate::srq::Shared;
use crate::{Bench, Node, Send, Shape, Side, Tuning};

/// The next event: its number, its type and its object; or the error number.
#[track_caller]
fn event(node: &mut Node) -> Result<(usize, ibv_event_type, usize), i32> {
    match node.call(op::ASYNC, &[])[..] {
        [0, number, event_type, object] => Ok((number as usize, event_type as u32, object as usize)),
        ref answer => Err(answer[0] as i32),
    }
}

/// Waits for the next event, which must come soon, and acknowledges it.
#[track_caller]
fn take(node: &mut Node) -> (ibv_event_type, usize) {
    assert!((0..20).any(|_| node.is_alarmed(900)), "no event arrives");
    let (number, event_type, object) = event(node).expect("an event");
    node.errno(op::ASYNC_ACK, &[number as u64]);
    (event_type, object)
}

/// Asserts that there is no event, and that none arrives in the usual time of an event.
#[track_caller]
fn none(node: &mut Node) {
    assert!(!node.is_alarmed(5), "an unexpected event: {:?}", event(node));
}

#[track_caller]
fn nonblocking(node: &mut Node) {
    assert_eq!(node.errno(op::ASYNC_NONBLOCK, &[1]), 0);
}

/// Stops the send queue of a queue pair in RTS, with or without an event.
#[track_caller]
fn drain(node: &mut Node, qp: usize, tell: bool) {
    let en_sqd_async_notify = u8::from(tell);
    let attr = ibv_qp_attr { qp_state: IBV_QPS_SQD, en_sqd_async_notify, ..ibv_qp_attr::default() };
    assert_eq!(node.modify(qp, &attr, IBV_QP_STATE | IBV_QP_EN_SQD_ASYNC_NOTIFY), 0);
}

/// A queue pair in RTS that is connected to itself.
fn running(node: &mut Node) -> Side {
    let side = node.side(&Shape::of(IBV_QPT_RC));
    node.connect_to(&side, side.number, side.gid, &Tuning::default());
    side
}

pub(crate) fn a_quiet_context_has_no_events(bench: &mut Bench) {
    nonblocking(&mut bench.near);
    assert_eq!(event(&mut bench.near), Err(libc::EAGAIN));
    none(&mut bench.near);
    // Normal operation causes none either.
    let side = running(&mut bench.near);
    bench.near.receive(side.qp, 1, &[side.at(0, 64)]);
    bench.near.send(side.qp, Send::new(1, &[side.at(0, 8)]));
    bench.near.wait_one(side.receive_cq);
    bench.near.change_state(side.qp, IBV_QPS_ERR);
    none(&mut bench.near);
    assert_eq!(event(&mut bench.near), Err(libc::EAGAIN));
}

pub(crate) fn a_signal_interrupts_the_wait(bench: &mut Bench) {
    extern "C" fn nothing(_: libc::c_int) {}
    // SAFETY: all-zero bytes are a valid sigaction; the handler does nothing, so any thread may be
    // interrupted by it.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = nothing as *const () as usize;
        assert_eq!(libc::sigaction(libc::SIGUSR2, &raw const action, std::ptr::null_mut()), 0);
    }
    let waiter = bench.near.rig().async_waiter();
    std::thread::scope(|scope| {
        let (tell, told) = std::sync::mpsc::channel();
        let sleeper = scope.spawn(move || {
            // SAFETY: a thread may ask for its own identity.
            tell.send(unsafe { libc::pthread_self() }).expect("the channel is open");
            waiter.wait()
        });
        let thread = told.recv().expect("the sleeper sends its identity");
        // The thread may not sleep yet at the first signal.
        while !sleeper.is_finished() {
            // SAFETY: the thread has not been joined, so its identity is valid.
            unsafe { libc::pthread_kill(thread, libc::SIGUSR2) };
            std::thread::sleep(Duration::from_millis(1));
        }
        assert_eq!(sleeper.join().expect("the sleeper"), libc::EINTR);
    });
}

pub(crate) fn a_drained_send_queue_says_so_where_it_is_asked(bench: &mut Bench) {
    nonblocking(&mut bench.near);
    let sides = [running(&mut bench.near), running(&mut bench.near)];
    for round in 0..4 {
        let side = &sides[round % 2];
        drain(&mut bench.near, side.qp, true);
        assert_eq!(take(&mut bench.near), (IBV_EVENT_SQ_DRAINED, side.qp), "round {round}");
        bench.near.change_state(side.qp, IBV_QPS_RTS);
    }
    assert_eq!(event(&mut bench.near), Err(libc::EAGAIN), "one event each");
}

pub(crate) fn nobody_is_told_unasked(bench: &mut Bench) {
    let side = running(&mut bench.near);
    bench.near.change_state(side.qp, IBV_QPS_SQD);
    none(&mut bench.near);
    bench.near.change_state(side.qp, IBV_QPS_RTS);
    drain(&mut bench.near, side.qp, false);
    none(&mut bench.near);
}

pub(crate) fn events_of_a_pair_that_has_gone_are_dropped(bench: &mut Bench) {
    nonblocking(&mut bench.near);
    let gone = running(&mut bench.near);
    let stays = running(&mut bench.near);
    drain(&mut bench.near, gone.qp, true);
    bench.near.drains(gone.qp);
    assert!(bench.near.is_alarmed(900));
    drain(&mut bench.near, stays.qp, true);
    bench.near.drains(stays.qp);
    assert_eq!(bench.near.errno(op::DESTROY_QP, &[gone.qp as u64]), 0);
    assert_eq!(take(&mut bench.near), (IBV_EVENT_SQ_DRAINED, stays.qp));
    assert_eq!(event(&mut bench.near), Err(libc::EAGAIN));
}

pub(crate) fn destruction_waits_for_the_acknowledgement(bench: &mut Bench) {
    let side = running(&mut bench.near);
    drain(&mut bench.near, side.qp, true);
    let (number, ..) = event(&mut bench.near).expect("an event");
    let rig = bench.near.rig();
    let acknowledge = rig.async_acknowledger(number);
    let acknowledged = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(Duration::from_millis(30));
            acknowledged.store(true, Ordering::SeqCst);
            acknowledge.acknowledge();
        });
        assert_eq!(rig.execute(&[op::DESTROY_QP, side.qp as u64]), [0]);
        assert!(
            acknowledged.load(Ordering::SeqCst),
            "the pair was destroyed before its event was acknowledged"
        );
    });
}

/// Only the program removes events.
pub(crate) fn events_outlive_a_reset(bench: &mut Bench) {
    nonblocking(&mut bench.near);
    let side = running(&mut bench.near);
    drain(&mut bench.near, side.qp, true);
    bench.near.drains(side.qp);
    bench.near.change_state(side.qp, IBV_QPS_RESET);
    assert_eq!(take(&mut bench.near), (IBV_EVENT_SQ_DRAINED, side.qp));
}

/// Connected queue pairs, of which the far one allows every access.
fn open(bench: &mut Bench, tuning: &Tuning) -> (Side, Side) {
    nonblocking(&mut bench.far);
    nonblocking(&mut bench.near);
    bench.connected(&Shape::open(IBV_QPT_RC), tuning)
}

/// A completion reports the error to the requester. The responder has no receive that could
/// complete, so an event reports the error to it.
pub(crate) fn a_refused_access_is_an_event_of_the_target(bench: &mut Bench) {
    for round in 0..4 {
        let (a, b) = open(bench, &Tuning::OPEN);
        let wrong_key = b.spot(0).by(b.spot(0).key ^ 0xff00);
        let request = match round {
            0 => Send::write(1, &[a.at(0, 64)], wrong_key),
            1 => Send::read(1, &[a.at(0, 64)], wrong_key),
            2 => Send::write(1, &[a.at(0, 64)], b.spot((1 << 16) - 63)),
            _ => Send::fetch_add(1, a.at(0, 8), wrong_key, 1),
        };
        bench.near.send(a.qp, request);
        assert_eq!(bench.near.wait_one(a.send_cq).status, IBV_WC_REM_ACCESS_ERR, "round {round}");
        assert_eq!(take(&mut bench.far), (IBV_EVENT_QP_ACCESS_ERR, b.qp), "round {round}");
        bench.far.settles(b.qp, IBV_QPS_ERR, "a responder error");
        none(&mut bench.far);
        none(&mut bench.near);
    }
}

/// A request that the queue pair does not allow is an invalid request or an access error, depending
/// on the device; the event and the completion agree.
pub(crate) fn a_refused_request_is_an_event_of_the_target(bench: &mut Bench) {
    for is_write in [true, false] {
        let (a, b) = open(bench, &Tuning::default());
        let request = if is_write {
            Send::write(1, &[a.at(0, 64)], b.spot(0))
        } else {
            Send::read(1, &[a.at(0, 64)], b.spot(0))
        };
        bench.near.send(a.qp, request);
        let expected = match bench.near.wait_one(a.send_cq).status {
            IBV_WC_REM_ACCESS_ERR => IBV_EVENT_QP_ACCESS_ERR,
            IBV_WC_REM_INV_REQ_ERR => IBV_EVENT_QP_REQ_ERR,
            other => panic!("status {other}"),
        };
        assert_eq!(take(&mut bench.far), (expected, b.qp), "write: {is_write}");
    }
}

pub(crate) fn what_a_completion_says_is_no_event(bench: &mut Bench) {
    let (a, b) = open(bench, &Tuning::default());
    bench.far.receive(b.qp, 1, &[b.at(0, 8)]);
    bench.near.send(a.qp, Send::new(1, &[a.at(0, 9)]));
    assert!(bench.near.wait_one(a.send_cq).has_failed());
    assert!(bench.far.wait_one(b.receive_cq).has_failed());
    none(&mut bench.far);
    none(&mut bench.near);
}

pub(crate) fn the_first_message_establishes_the_communication(bench: &mut Bench) {
    for service in [IBV_QPT_RC, IBV_QPT_UC] {
        let tuning = Tuning::OPEN;
        let a = bench.near.side(&Shape::open(service));
        let b = bench.far.side(&Shape::open(service));
        bench.near.connect_to(&a, b.number, b.gid, &tuning);
        bench.far.init(&b, &tuning);
        bench.far.ready_to_receive(&b, a.number, a.gid, &tuning);
        none(&mut bench.far);
        for id in 0..3 {
            bench.far.receive(b.qp, id, &[b.at(0, 64)]);
            bench.near.send(a.qp, Send::new(id, &[a.at(0, 8)]));
            assert_eq!(bench.far.wait_one(b.receive_cq).id, id);
            if id == 0 {
                assert_eq!(take(&mut bench.far), (IBV_EVENT_COMM_EST, b.qp), "service {service}");
            }
        }
        none(&mut bench.far);
        bench.far.ready_to_send(&b, &tuning);
    }
}

pub(crate) fn a_ready_receiver_needs_no_telling(bench: &mut Bench) {
    let (a, b) = open(bench, &Tuning::OPEN);
    bench.near.send(a.qp, Send::write(1, &[a.at(0, 64)], b.spot(0)));
    assert_eq!(bench.near.wait_one(a.send_cq).status, IBV_WC_SUCCESS);
    none(&mut bench.far);
}

pub(crate) fn an_overrun_queue_has_an_event(bench: &mut Bench) {
    let shape = Shape { sends: 512, receives: 512, ..Shape::of(IBV_QPT_RC) };
    let pd = bench.near.pd();
    let short = bench.near.call(op::CQ, &[4, 0]);
    let cq = short[1] as usize;
    let entries = short[2] as usize;
    let other = bench.near.cq(16);
    let a = bench.near.side_on(&shape, pd, [cq, other]);
    let b = bench.far.side(&shape);
    bench.connect(&a, &b, &Tuning::default());
    for id in 0..entries as u64 {
        bench.far.receive(b.qp, id, &[b.at(0, 64)]);
        bench.near.send(a.qp, Send::new(id, &[a.at(0, 8)]));
    }
    bench.far.wait(b.receive_cq, entries);
    none(&mut bench.near);
    bench.far.receive(b.qp, 99, &[b.at(0, 64)]);
    bench.near.send(a.qp, Send::new(99, &[a.at(0, 8)]));
    assert_eq!(take(&mut bench.near), (IBV_EVENT_CQ_ERR, cq));
}

/// A program sleeps in the wait for an event until a peer causes its queue pair to fail.
pub(crate) fn a_sleeper_is_woken_by_a_peer(bench: &mut Bench) {
    let (a, b) = bench.connected(&Shape::open(IBV_QPT_RC), &Tuning::OPEN);
    let near = &mut bench.near;
    let far = &mut bench.far;
    let woken = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(Duration::from_millis(10));
            assert!(!woken.load(Ordering::SeqCst), "the program woke up without an event");
            let wrong_key = a.spot(0).by(a.spot(0).key ^ 0xff00);
            far.send(b.qp, Send::write(1, &[b.at(0, 8)], wrong_key));
        });
        let (number, event_type, object) = event(near).expect("an event");
        woken.store(true, Ordering::SeqCst);
        assert_eq!((event_type, object), (IBV_EVENT_QP_ACCESS_ERR, a.qp));
        near.errno(op::ASYNC_ACK, &[number as u64]);
    });
}

/// A near queue pair, and a far one with a shared receive queue of this many receives.
fn sharing(bench: &mut Bench, receives: u64) -> (Side, Side, usize) {
    nonblocking(&mut bench.far);
    let shared = Shared::new(bench, IBV_QPT_RC, 1, &Tuning::OPEN);
    for id in 0..receives {
        shared.post(bench, id, 64);
    }
    let (a, b) = shared.pairs[0];
    (a, b, shared.srq)
}

/// One event when fewer receives are left than the limit, until the limit is set again
/// (man ibv_modify_srq).
pub(crate) fn a_shared_queue_tells_of_its_limit(bench: &mut Bench) {
    let (a, b, srq) = sharing(bench, 8);
    for limit in [6, 3] {
        let words = [srq as u64, u64::from(IBV_SRQ_LIMIT), 0, limit];
        assert_eq!(bench.far.errno(op::MODIFY_SRQ, &words), 0);
        none(&mut bench.far);
        let mut left = if limit == 6 { 8 } else { 5 };
        while left >= limit {
            none(&mut bench.far);
            bench.near.send(a.qp, Send::new(1, &[a.at(0, 8)]));
            assert_eq!(bench.near.wait_one(a.send_cq).status, IBV_WC_SUCCESS);
            left -= 1;
        }
        assert_eq!(take(&mut bench.far), (IBV_EVENT_SRQ_LIMIT_REACHED, srq), "{left} are left");
        none(&mut bench.far);
    }
    bench.far.wait(b.receive_cq, 6);
}

/// After this event, a program can count its receives (IBTA vol. 1, section 10.3.1.5, and 11.6.2).
pub(crate) fn a_failed_pair_tells_that_it_takes_no_more(bench: &mut Bench) {
    let (_, b, _) = sharing(bench, 2);
    bench.far.change_state(b.qp, IBV_QPS_ERR);
    assert_eq!(take(&mut bench.far), (IBV_EVENT_QP_LAST_WQE_REACHED, b.qp));
    none(&mut bench.far);
    // And again after a reset.
    bench.far.change_state(b.qp, IBV_QPS_RESET);
    bench.far.init(&b, &Tuning::OPEN);
    bench.far.change_state(b.qp, IBV_QPS_ERR);
    assert_eq!(take(&mut bench.far), (IBV_EVENT_QP_LAST_WQE_REACHED, b.qp));
}
