//! How each state of a queue pair treats requests, and what a reset discards.

use std::time::Duration;

use verbs::abi::*;

use crate::rig::op;
use crate::shape::ids;
use crate::states::Maker;
use crate::{Bench, QKEY, SERVICES, Send, Shape, Tuning};

/// States in which nothing can be sent.
const BEFORE_RTS: [ibv_qp_state; 3] = [IBV_QPS_RESET, IBV_QPS_INIT, IBV_QPS_RTR];

pub(crate) fn sends_are_refused_before_rts(bench: &mut Bench) {
    for service in SERVICES {
        let mut maker = Maker::new(&mut bench.near, service);
        for state in BEFORE_RTS {
            let side = maker.in_state(state);
            let request = Send::new(1, &[side.at(0, 8)]).to(maker.handle, side.number, QKEY);
            let errno = maker.node.try_send(side.qp, &[request]).0;
            assert_eq!(errno, libc::EINVAL, "service {service} state {state}");
            assert_eq!(maker.node.poll(side.send_cq, 1), []);
        }
    }
}

pub(crate) fn receives_are_refused_in_reset_only(bench: &mut Bench) {
    for service in SERVICES {
        let mut maker = Maker::new(&mut bench.near, service);
        for state in (IBV_QPS_RESET..=IBV_QPS_ERR).filter(|state| *state != IBV_QPS_SQE) {
            let side = maker.in_state(state);
            let errno = maker.node.try_receive(side.qp, &[(1, vec![side.at(0, 64)])]).0;
            let expected = if state == IBV_QPS_RESET { libc::EINVAL } else { 0 };
            assert_eq!(errno, expected, "service {service} state {state}");
            assert_eq!(maker.node.errno(op::DESTROY_QP, &[side.qp as u64]), 0);
        }
    }
}

/// `ibv_post_send(3)`, `ibv_post_recv(3)`: `bad_wr` points to the refused request.
pub(crate) fn what_a_state_refuses_is_named(bench: &mut Bench) {
    let mut maker = Maker::new(&mut bench.near, IBV_QPT_RC);
    for state in BEFORE_RTS {
        let side = maker.in_state(state);
        let send = maker.node.try_send(side.qp, &[Send::new(1, &[side.at(0, 8)])]);
        assert_eq!(send, (libc::EINVAL, Some(0)), "a send in state {state}");
        if state == IBV_QPS_RESET {
            let receive = maker.node.try_receive(side.qp, &[(1, vec![side.at(0, 64)])]);
            assert_eq!(receive, (libc::EINVAL, Some(0)), "a receive");
        }
    }
}

pub(crate) fn a_refused_send_is_not_sent_later(bench: &mut Bench) {
    let a = bench.near.side(&Shape::of(IBV_QPT_RC));
    let b = bench.far.side(&Shape::of(IBV_QPT_RC));
    let tuning = Tuning::default();
    bench.far.connect_to(&b, a.number, a.gid, &tuning);
    bench.far.receive(b.qp, 1, &[b.at(0, 64)]);
    bench.near.init(&a, &Tuning::default());
    bench.near.ready_to_receive(&a, b.number, b.gid, &tuning);
    assert_eq!(bench.near.try_send(a.qp, &[Send::new(666, &[a.at(0, 13)])]).0, libc::EINVAL);
    bench.near.ready_to_send(&a, &tuning);
    bench.near.send(a.qp, Send::new(7, &[a.at(0, 8)]));
    let sent = bench.near.wait_one(a.send_cq);
    assert_eq!((sent.id, sent.status), (7, IBV_WC_SUCCESS));
    assert_eq!(bench.far.wait_one(b.receive_cq).byte_len, 8);
}

pub(crate) fn error_state_flushes_sends_posted_to_it(bench: &mut Bench) {
    for service in SERVICES {
        let mut maker = Maker::new(&mut bench.near, service);
        let side = maker.in_state(IBV_QPS_RTS);
        maker.node.change_state(side.qp, IBV_QPS_ERR);
        let request = Send::new(5, &[side.at(0, 8)]).to(maker.handle, side.number, QKEY);
        maker.node.send(side.qp, request.unsignaled());
        let wc = maker.node.wait_one(side.send_cq);
        assert_eq!((wc.id, wc.status, wc.qp), (5, IBV_WC_WR_FLUSH_ERR, side.number), "service {service}");
        maker.node.quiet(side.send_cq, Duration::from_millis(1));
    }
}

pub(crate) fn error_state_flushes_receives_posted_to_it(bench: &mut Bench) {
    for service in SERVICES {
        let mut maker = Maker::new(&mut bench.near, service);
        let side = maker.in_state(IBV_QPS_RTS);
        // The change of state flushes the first receive; the others are flushed when posted.
        maker.node.receive(side.qp, 5, &[side.at(0, 64)]);
        maker.node.change_state(side.qp, IBV_QPS_ERR);
        for id in 5..8 {
            let wc = maker.node.wait_one(side.receive_cq);
            let expected = (id, IBV_WC_WR_FLUSH_ERR, side.number);
            assert_eq!((wc.id, wc.status, wc.qp), expected, "service {service}");
            if id < 7 {
                maker.node.receive(side.qp, id + 1, &[side.at(0, 64)]);
            }
        }
        maker.node.quiet(side.receive_cq, Duration::from_millis(1));
    }
}

/// An unreliable service only stops its send queue: it flushes sends, still receives, and continues
/// after a change to RTS.
pub(crate) fn a_stopped_send_queue_still_receives_and_goes_on(bench: &mut Bench) {
    for service in [IBV_QPT_UC, IBV_QPT_UD] {
        let (a, b) = bench.connected(&Shape::of(service), &Tuning::default());
        let there = bench.near.handle(a.pd, b.gid);
        let back = bench.far.handle(b.pd, a.gid);
        let mut element = a.at(0, 64);
        element[3] = 0xdead_be00;
        bench.near.receive(a.qp, 3, &[a.at(8192, 4096)]);
        bench.near.send(a.qp, Send::new(1, &[element]).to(there, b.number, QKEY));
        assert_ne!(bench.near.wait_one(a.send_cq).status, IBV_WC_SUCCESS);
        bench.near.settles(a.qp, IBV_QPS_SQE, "after a local error");
        let good = Send::new(2, &[a.at(0, 100)]).to(there, b.number, QKEY);
        bench.near.send(a.qp, good.clone());
        assert_eq!(bench.near.wait_one(a.send_cq).status, IBV_WC_WR_FLUSH_ERR);
        for id in [3, 4] {
            bench.far.send(b.qp, Send::new(9, &[b.at(0, 100)]).to(back, a.number, QKEY));
            let got = bench.near.wait_one(a.receive_cq);
            assert_eq!((got.id, got.status), (id, IBV_WC_SUCCESS), "a stopped send queue receives");
            bench.near.receive(a.qp, 4, &[a.at(8192, 4096)]);
        }
        bench.far.receive(b.qp, 1, &[b.at(0, 4096)]);
        bench.near.change_state(a.qp, IBV_QPS_RTS);
        bench.near.send(a.qp, good);
        assert_eq!(bench.near.wait_one(a.send_cq).status, IBV_WC_SUCCESS);
        assert_eq!(bench.far.wait_one(b.receive_cq).status, IBV_WC_SUCCESS);
    }
}

fn send_to_a_drained_queue(bench: &mut Bench) -> (crate::Side, crate::Side) {
    let (a, b) = bench.connected(&Shape::of(IBV_QPT_RC), &Tuning::default());
    bench.far.receive(b.qp, 1, &[b.at(0, 4096)]);
    bench.near.fill(a.region, 0, 512, 3);
    bench.near.change_state(a.qp, IBV_QPS_SQD);
    bench.near.drains(a.qp);
    bench.near.send(a.qp, Send::new(2, &[a.at(0, 512)]));
    bench.near.quiet(a.send_cq, Duration::from_millis(20));
    assert_eq!(bench.far.poll(b.receive_cq, 1), []);
    (a, b)
}

pub(crate) fn a_drained_queue_holds_sends_back(bench: &mut Bench) {
    send_to_a_drained_queue(bench);
}

pub(crate) fn what_was_held_back_is_sent_in_rts(bench: &mut Bench) {
    let (a, b) = send_to_a_drained_queue(bench);
    bench.near.change_state(a.qp, IBV_QPS_RTS);
    assert_eq!(bench.near.wait_one(a.send_cq).status, IBV_WC_SUCCESS);
    assert_eq!(bench.far.wait_one(b.receive_cq).byte_len, 512);
    bench.far.check(b.region, 0, 512, 3);
}

pub(crate) fn reset_forgets_requests_and_connects_again(bench: &mut Bench) {
    for service in [IBV_QPT_RC, IBV_QPT_UC] {
        let shape = Shape { receives: 8, sends: 4, ..Shape::of(service) };
        let (a, b) = bench.connected(&shape, &Tuning::default());
        for round in 0..4 {
            // Left behind: posted receives, and sends in flight.
            for id in 0..u64::from(b.receives) {
                bench.far.receive(b.qp, 1000 + id, &[b.at(0, 4096)]);
            }
            for id in 0..2 {
                bench.near.send(a.qp, Send::new(2000 + id, &[a.at(0, 64)]));
            }
            bench.near.wait(a.send_cq, 2);
            bench.far.wait(b.receive_cq, 2);
            for id in 0..2 {
                bench.near.send(a.qp, Send::new(3000 + id, &[a.at(0, 64)]).unsignaled());
            }
            bench.near.change_state(a.qp, IBV_QPS_RESET);
            bench.far.change_state(b.qp, IBV_QPS_RESET);
            assert_eq!(bench.near.state(a.qp), IBV_QPS_RESET);
            // Completions before the reset may be lost or not (see `reset_forgets_completions`).
            while !bench.far.poll(b.receive_cq, 16).is_empty() {}
            let tuning = Tuning { psn: 77 + round, ..Tuning::default() };
            bench.connect(&a, &b, &tuning);
            // The whole queue depth is free again, and only the new requests complete.
            for id in 0..u64::from(b.receives) {
                bench.far.receive(b.qp, id, &[b.at(64 * id as usize, 64)]);
            }
            for id in 0..u64::from(a.sends) {
                bench.near.fill(a.region, 64 * id as usize, 64, u64::from(round) * 10 + id);
                bench.near.send(a.qp, Send::new(id, &[a.at(64 * id as usize, 64)]));
            }
            let sent = bench.near.wait(a.send_cq, a.sends as usize);
            assert!(sent.iter().all(|wc| wc.status == IBV_WC_SUCCESS), "{sent:?}");
            assert_eq!(ids(&sent), (0..u64::from(a.sends)).collect::<Vec<_>>());
            let found = bench.far.wait(b.receive_cq, a.sends as usize);
            assert_eq!(ids(&found), (0..u64::from(a.sends)).collect::<Vec<_>>());
            for id in 0..u64::from(a.sends) {
                bench.far.check(b.region, 64 * id as usize, 64, u64::from(round) * 10 + id);
            }
            bench.near.change_state(a.qp, IBV_QPS_RESET);
            bench.far.change_state(b.qp, IBV_QPS_RESET);
            bench.connect(&a, &b, &tuning);
        }
    }
}

/// A request is outstanding until its completion is polled. A reset discards outstanding requests
/// without completions (IBTA volume 1, section 10.3.1.1).
pub(crate) fn reset_forgets_completions(bench: &mut Bench) {
    for service in [IBV_QPT_RC, IBV_QPT_UC] {
        let (a, b) = bench.connected(&Shape::of(service), &Tuning::default());
        for id in 0..2 {
            bench.far.receive(b.qp, 1000 + id, &[b.at(0, 4096)]);
            bench.near.send(a.qp, Send::new(2000 + id, &[a.at(0, 64)]));
        }
        bench.near.wait_one(a.send_cq);
        bench.far.wait_one(b.receive_cq);
        bench.near.change_state(a.qp, IBV_QPS_RESET);
        bench.far.change_state(b.qp, IBV_QPS_RESET);
        assert_eq!(bench.near.poll(a.send_cq, 16), [], "sends of before RESET");
        assert_eq!(bench.far.poll(b.receive_cq, 16), [], "receives of before RESET");
    }
}

/// A requester that continues after its responder was reset is out of sequence, so none of its
/// messages arrives.
pub(crate) fn reset_ends_the_old_connection(bench: &mut Bench) {
    // Long enough for an acknowledgement, short enough to wait for one that does not come.
    let tuning = Tuning { timeout: 15, retries: 2, ..Tuning::default() };
    let (a, b) = bench.connected(&Shape::of(IBV_QPT_RC), &tuning);
    bench.far.receive(b.qp, 1, &[b.at(0, 64)]);
    bench.near.send(a.qp, Send::new(1, &[a.at(0, 64)]));
    assert_eq!(bench.near.wait_one(a.send_cq).status, IBV_WC_SUCCESS);
    assert_eq!(bench.far.wait_one(b.receive_cq).status, IBV_WC_SUCCESS);
    bench.far.change_state(b.qp, IBV_QPS_RESET);
    bench.far.connect_to(&b, a.number, a.gid, &Tuning { psn: 99, ..tuning });
    bench.far.receive(b.qp, 2, &[b.at(0, 64)]);
    bench.near.send(a.qp, Send::new(2, &[a.at(0, 64)]));
    assert_eq!(bench.near.wait_one(a.send_cq).status, IBV_WC_RETRY_EXC_ERR);
    assert_eq!(bench.far.poll(b.receive_cq, 1), []);
}

/// After an error and a reset, the peer gets receiver not ready, not an error.
pub(crate) fn flushed_receives_do_not_outlive_a_reset(bench: &mut Bench) {
    let tuning = Tuning { rnr_timer: 1, ..Tuning::default() };
    let (a, b) = bench.connected(&Shape::of(IBV_QPT_RC), &tuning);
    for id in 0..u64::from(b.receives) {
        bench.far.receive(b.qp, id, &[b.at(0, 64)]);
    }
    bench.far.change_state(b.qp, IBV_QPS_ERR);
    assert_eq!(bench.far.wait(b.receive_cq, b.receives as usize)[0].status, IBV_WC_WR_FLUSH_ERR);
    bench.far.change_state(b.qp, IBV_QPS_RESET);
    bench.near.change_state(a.qp, IBV_QPS_RESET);
    bench.connect(&a, &b, &tuning);
    bench.near.send(a.qp, Send::new(1, &[a.at(0, 64)]));
    bench.near.quiet(a.send_cq, Duration::from_millis(20));
    bench.far.receive(b.qp, 1, &[b.at(0, 64)]);
    assert_eq!(bench.near.wait_one(a.send_cq).status, IBV_WC_SUCCESS);
    assert_eq!(bench.far.wait_one(b.receive_cq).status, IBV_WC_SUCCESS);
}
