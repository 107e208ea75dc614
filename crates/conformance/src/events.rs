//! Completion channels.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use verbs::abi::*;

use crate::rig::op;
use crate::{Bench, Node, Send, Shape, Side, Tuning};

/// A far side that sends, and a near side whose completion queues are on a channel.
struct Watched {
    channel: usize,
    a: Side,
    b: Side,
}

fn watched(bench: &mut Bench, service: ibv_qp_type, tuning: &Tuning) -> Watched {
    let shape = Shape::of(service);
    let channel = bench.near.channel();
    let pd = bench.near.pd();
    let cqs = [bench.near.cq_on(channel, 64), bench.near.cq_on(channel, 64)];
    let a = bench.near.side_on(&shape, pd, cqs);
    let b = bench.far.side(&shape);
    bench.connect(&a, &b, tuning);
    Watched { channel, a, b }
}

/// Takes an event: the completion queue, or the error number.
#[track_caller]
fn event(node: &mut Node, channel: usize) -> Result<usize, i32> {
    let answer = node.call(op::EVENT, &[channel as u64]);
    if answer[0] == 0 { Ok(answer[1] as usize) } else { Err(answer[0] as i32) }
}

#[track_caller]
fn take(node: &mut Node, channel: usize) -> usize {
    let cq = event(node, channel).expect("an event");
    node.errno(op::ACK, &[cq as u64, 1]);
    cq
}

#[track_caller]
fn nonblocking(node: &mut Node, channel: usize, on: bool) {
    assert_eq!(node.errno(op::NONBLOCK, &[channel as u64, u64::from(on)]), 0);
}

/// Sends a message to the near node and waits until it is acknowledged.
#[track_caller]
fn message(bench: &mut Bench, w: &Watched, request: Send) {
    bench.near.receive(w.a.qp, 7, &[w.a.at(0, 4096)]);
    bench.far.send(w.b.qp, request);
    assert_eq!(bench.far.wait_one(w.b.send_cq).status, IBV_WC_SUCCESS);
}

fn plain(w: &Watched) -> Send {
    Send::new(1, &[w.b.at(0, 8)])
}

pub(crate) fn one_event_for_one_arming(bench: &mut Bench) {
    let w = watched(bench, IBV_QPT_RC, &Tuning::default());
    nonblocking(&mut bench.near, w.channel, true);
    for _ in 0..3 {
        bench.near.arm(w.a.receive_cq, false);
        for _ in 0..3 {
            message(bench, &w, plain(&w));
        }
        assert!(bench.near.is_ready(w.channel, 5000));
        assert_eq!(take(&mut bench.near, w.channel), w.a.receive_cq);
        assert_eq!(event(&mut bench.near, w.channel), Err(libc::EAGAIN), "one event only");
        assert_eq!(bench.near.wait(w.a.receive_cq, 3).len(), 3);
    }
    // Not armed: no event.
    message(bench, &w, plain(&w));
    assert_eq!(event(&mut bench.near, w.channel), Err(libc::EAGAIN));
}

pub(crate) fn a_completion_before_arming_is_not_announced(bench: &mut Bench) {
    let w = watched(bench, IBV_QPT_RC, &Tuning::default());
    nonblocking(&mut bench.near, w.channel, true);
    message(bench, &w, plain(&w));
    bench.near.arm(w.a.receive_cq, false);
    // For this reason, a program polls again after arming.
    assert_eq!(bench.near.wait(w.a.receive_cq, 1).len(), 1);
    assert_eq!(event(&mut bench.near, w.channel), Err(libc::EAGAIN));
    message(bench, &w, plain(&w));
    assert!(bench.near.is_ready(w.channel, 5000));
    assert_eq!(take(&mut bench.near, w.channel), w.a.receive_cq);
}

pub(crate) fn a_descriptor_that_does_not_block_says_so(bench: &mut Bench) {
    let w = watched(bench, IBV_QPT_UC, &Tuning::default());
    nonblocking(&mut bench.near, w.channel, true);
    assert_eq!(event(&mut bench.near, w.channel), Err(libc::EAGAIN));
    bench.near.arm(w.a.receive_cq, false);
    assert_eq!(event(&mut bench.near, w.channel), Err(libc::EAGAIN));
    message(bench, &w, plain(&w));
    assert_eq!(take(&mut bench.near, w.channel), w.a.receive_cq);
}

pub(crate) fn the_descriptor_can_be_polled(bench: &mut Bench) {
    let w = watched(bench, IBV_QPT_RC, &Tuning::default());
    assert!(!bench.near.is_ready(w.channel, 0));
    bench.near.arm(w.a.receive_cq, false);
    assert!(!bench.near.is_ready(w.channel, 5));
    message(bench, &w, plain(&w));
    assert!(bench.near.is_ready(w.channel, 5000));
    assert_eq!(take(&mut bench.near, w.channel), w.a.receive_cq);
    assert!(!bench.near.is_ready(w.channel, 5), "the event has been taken");
}

pub(crate) fn only_solicited_completions_wake_the_solicited(bench: &mut Bench) {
    let w = watched(bench, IBV_QPT_RC, &Tuning::default());
    for size in [8, 4000] {
        bench.near.arm(w.a.receive_cq, true);
        let request = Send::new(1, &[w.b.at(0, size)]);
        message(bench, &w, request.clone());
        assert!(!bench.near.is_ready(w.channel, 5));
        message(bench, &w, request.flag(IBV_SEND_SOLICITED));
        assert!(bench.near.is_ready(w.channel, 5000));
        assert_eq!(take(&mut bench.near, w.channel), w.a.receive_cq);
        assert_eq!(bench.near.wait(w.a.receive_cq, 2).len(), 2);
    }
}

/// IBTA volume 1, section 11.4.2.2: a request for solicited events does not replace a request for
/// all events.
pub(crate) fn arming_for_all_is_not_weakened(bench: &mut Bench) {
    let w = watched(bench, IBV_QPT_RC, &Tuning::default());
    bench.near.arm(w.a.receive_cq, false);
    bench.near.arm(w.a.receive_cq, true);
    message(bench, &w, plain(&w));
    assert!(bench.near.is_ready(w.channel, 5000));
    take(&mut bench.near, w.channel);
    // A request for all events replaces a request for solicited events.
    bench.near.arm(w.a.receive_cq, true);
    bench.near.arm(w.a.receive_cq, false);
    message(bench, &w, plain(&w));
    assert!(bench.near.is_ready(w.channel, 5000));
}

pub(crate) fn errors_wake_the_solicited(bench: &mut Bench) {
    let w = watched(bench, IBV_QPT_RC, &Tuning::default());
    bench.near.arm(w.a.receive_cq, true);
    bench.near.receive(w.a.qp, 7, &[w.a.at(0, 4)]);
    bench.far.send(w.b.qp, plain(&w));
    assert_ne!(bench.far.wait_one(w.b.send_cq).status, IBV_WC_SUCCESS);
    assert!(bench.near.is_ready(w.channel, 5000));
    assert_eq!(take(&mut bench.near, w.channel), w.a.receive_cq);
    assert_ne!(bench.near.wait_one(w.a.receive_cq).status, IBV_WC_SUCCESS);
    bench.near.arm(w.a.send_cq, true);
    bench.near.send(w.a.qp, Send::new(1, &[w.a.at(0, 8)]));
    assert!(bench.near.is_ready(w.channel, 5000), "a flushed send is an error");
    assert_eq!(take(&mut bench.near, w.channel), w.a.send_cq);
}

pub(crate) fn sends_wake_their_own_queue(bench: &mut Bench) {
    let w = watched(bench, IBV_QPT_RC, &Tuning::default());
    bench.near.arm(w.a.send_cq, false);
    bench.far.receive(w.b.qp, 1, &[w.b.at(0, 64)]);
    bench.near.send(w.a.qp, Send::new(1, &[w.a.at(0, 8)]).unsignaled());
    bench.far.wait_one(w.b.receive_cq);
    assert!(!bench.near.is_ready(w.channel, 5), "the send is not signalled");
    bench.far.receive(w.b.qp, 1, &[w.b.at(0, 64)]);
    bench.near.send(w.a.qp, Send::new(2, &[w.a.at(0, 8)]));
    assert!(bench.near.is_ready(w.channel, 5000));
    assert_eq!(take(&mut bench.near, w.channel), w.a.send_cq);
}

pub(crate) fn a_blocked_wait_is_woken(bench: &mut Bench) {
    for _ in 0..20 {
        let w = watched(bench, IBV_QPT_RC, &Tuning::default());
        bench.near.receive(w.a.qp, 7, &[w.a.at(0, 4096)]);
        bench.near.arm(w.a.receive_cq, false);
        let sleeping = AtomicBool::new(true);
        let near = &mut bench.near;
        let far = &mut bench.far;
        std::thread::scope(|scope| {
            scope.spawn(|| {
                std::thread::sleep(Duration::from_millis(3));
                assert!(sleeping.load(Ordering::SeqCst), "the program woke up without an event");
                far.send(w.b.qp, plain(&w));
            });
            assert_eq!(take(near, w.channel), w.a.receive_cq);
            sleeping.store(false, Ordering::SeqCst);
        });
        assert_eq!(bench.near.wait_one(w.a.receive_cq).status, IBV_WC_SUCCESS);
    }
}

pub(crate) fn flushes_are_announced(bench: &mut Bench) {
    let w = watched(bench, IBV_QPT_RC, &Tuning::default());
    bench.near.receive(w.a.qp, 1, &[w.a.at(0, 64)]);
    bench.near.arm(w.a.receive_cq, false);
    bench.near.change_state(w.a.qp, IBV_QPS_ERR);
    assert!(bench.near.is_ready(w.channel, 5000));
    take(&mut bench.near, w.channel);
    assert_eq!(bench.near.wait_one(w.a.receive_cq).status, IBV_WC_WR_FLUSH_ERR);
}

/// A receive that is flushed as soon as it is posted causes an event.
pub(crate) fn immediate_flushes_are_announced(bench: &mut Bench) {
    let w = watched(bench, IBV_QPT_RC, &Tuning::default());
    bench.near.receive(w.a.qp, 1, &[w.a.at(0, 64)]);
    bench.near.change_state(w.a.qp, IBV_QPS_ERR);
    assert_eq!(bench.near.wait_one(w.a.receive_cq).status, IBV_WC_WR_FLUSH_ERR);
    bench.near.arm(w.a.receive_cq, false);
    bench.near.receive(w.a.qp, 2, &[w.a.at(0, 64)]);
    assert!(bench.near.is_ready(w.channel, 5000));
    take(&mut bench.near, w.channel);
    assert_eq!(bench.near.wait_one(w.a.receive_cq).status, IBV_WC_WR_FLUSH_ERR);
}

/// A send that waits for a receive completes while its own process sleeps for the completion.
pub(crate) fn a_waiting_send_goes_on_while_its_process_sleeps(bench: &mut Bench) {
    let w = watched(bench, IBV_QPT_RC, &Tuning { rnr_timer: 1, ..Tuning::default() });
    bench.near.arm(w.a.send_cq, false);
    bench.near.send(w.a.qp, Send::new(1, &[w.a.at(0, 8)]));
    let near = &mut bench.near;
    let far = &mut bench.far;
    std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(Duration::from_millis(3));
            far.receive(w.b.qp, 1, &[w.b.at(0, 64)]);
        });
        assert_eq!(take(near, w.channel), w.a.send_cq);
    });
    assert_eq!(bench.near.wait_one(w.a.send_cq).status, IBV_WC_SUCCESS);
}

/// The same if one thread already sleeps for completions when another thread posts the send.
pub(crate) fn a_send_that_waits_wakes_the_sleeper(bench: &mut Bench) {
    let tuning = Tuning { timeout: 10, retries: 1, ..Tuning::default() };
    let w = watched(bench, IBV_QPT_RC, &tuning);
    assert_eq!(bench.far.errno(op::DESTROY_QP, &[w.b.qp as u64]), 0);
    bench.near.arm(w.a.send_cq, false);
    let rig = bench.near.rig();
    let event = rig.waiter(w.channel);
    let send = rig.poster(w.a.qp);
    std::thread::scope(|scope| {
        let sleeper = scope.spawn(move || event.wait());
        std::thread::sleep(Duration::from_millis(20));
        assert!(!sleeper.is_finished(), "the sleeper woke up without an event");
        // The peer does not exist: the send fails after its retries, without further calls of this
        // thread.
        assert_eq!(send.post(&mut []), 0);
        assert_eq!(sleeper.join().expect("the sleeper"), 0);
    });
    bench.near.errno(op::ACK, &[w.a.send_cq as u64, 1]);
    assert_eq!(bench.near.wait_one(w.a.send_cq).status, IBV_WC_RETRY_EXC_ERR);
}

pub(crate) fn one_channel_serves_several_queues(bench: &mut Bench) {
    let w = watched(bench, IBV_QPT_RC, &Tuning::default());
    nonblocking(&mut bench.near, w.channel, true);
    bench.near.arm(w.a.receive_cq, false);
    bench.near.arm(w.a.send_cq, false);
    bench.far.receive(w.b.qp, 1, &[w.b.at(0, 64)]);
    bench.near.send(w.a.qp, Send::new(1, &[w.a.at(0, 8)]));
    message(bench, &w, plain(&w));
    let mut events = Vec::new();
    while events.len() < 2 {
        assert!(bench.near.is_ready(w.channel, 5000), "two events");
        events.push(take(&mut bench.near, w.channel));
    }
    events.sort_unstable();
    let mut queues = [w.a.send_cq, w.a.receive_cq];
    queues.sort_unstable();
    assert_eq!(events, queues);
    assert_eq!(event(&mut bench.near, w.channel), Err(libc::EAGAIN));
}

pub(crate) fn a_queue_without_channel_may_be_armed(bench: &mut Bench) {
    let side = bench.near.side(&Shape::of(IBV_QPT_RC));
    bench.near.connect_to(&side, side.number, side.gid, &Tuning::default());
    bench.near.arm(side.receive_cq, false);
    bench.near.receive(side.qp, 1, &[side.at(0, 64)]);
    bench.near.send(side.qp, Send::new(1, &[side.at(0, 8)]));
    assert_eq!(bench.near.wait_one(side.receive_cq).status, IBV_WC_SUCCESS);
}

pub(crate) fn a_signal_interrupts_the_wait(bench: &mut Bench) {
    extern "C" fn nothing(_: libc::c_int) {}
    // SAFETY: all-zero bytes are a valid sigaction; the handler does nothing, so any thread may be
    // interrupted by it.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = nothing as *const () as usize;
        assert_eq!(libc::sigaction(libc::SIGUSR1, &raw const action, std::ptr::null_mut()), 0);
    }
    let channel = bench.near.channel();
    bench.near.cq_on(channel, 8);
    let rig = bench.near.rig();
    let event = rig.waiter(channel);
    std::thread::scope(|scope| {
        let (tell, told) = std::sync::mpsc::channel();
        let sleeper = scope.spawn(move || {
            // SAFETY: a thread may ask for its own identity.
            tell.send(unsafe { libc::pthread_self() }).expect("the channel is open");
            event.wait()
        });
        let thread = told.recv().expect("the sleeper sends its identity");
        // The thread may not sleep yet at the first signal.
        while !sleeper.is_finished() {
            // SAFETY: the thread has not been joined, so its identity is valid.
            unsafe { libc::pthread_kill(thread, libc::SIGUSR1) };
            std::thread::sleep(Duration::from_millis(1));
        }
        assert_eq!(sleeper.join().expect("the sleeper"), libc::EINTR);
    });
}

pub(crate) fn destruction_waits_for_the_acknowledgement(bench: &mut Bench) {
    let channel = bench.near.channel();
    let pd = bench.near.pd();
    let cqs = [bench.near.cq_on(channel, 8), bench.near.cq(8)];
    let side = bench.near.side_on(&Shape::of(IBV_QPT_RC), pd, [cqs[1], cqs[0]]);
    bench.near.connect_to(&side, side.number, side.gid, &Tuning::default());
    bench.near.arm(side.receive_cq, false);
    bench.near.receive(side.qp, 1, &[side.at(0, 64)]);
    bench.near.send(side.qp, Send::new(1, &[side.at(0, 8)]));
    assert_eq!(event(&mut bench.near, channel), Ok(side.receive_cq));
    assert_eq!(bench.near.errno(op::DESTROY_QP, &[side.qp as u64]), 0);
    let rig = bench.near.rig();
    let acknowledge = rig.acknowledger(side.receive_cq);
    let acknowledged = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(Duration::from_millis(30));
            acknowledged.store(true, Ordering::SeqCst);
            acknowledge.acknowledge(1);
        });
        assert_eq!(rig.execute(&[op::DESTROY_CQ, side.receive_cq as u64]), [0]);
        assert!(
            acknowledged.load(Ordering::SeqCst),
            "the queue was destroyed before its event was acknowledged"
        );
    });
}
