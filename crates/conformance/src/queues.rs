//! Depths, accounting, order and fairness of the queues.

use std::time::{Duration, Instant};

use verbs::abi::*;

use crate::rig::op;
use crate::{Bench, PATIENCE, SERVICES, Send, Shape, Tuning, ids};

/// The completion of a signalled send also frees the places of unsignalled sends before it, so a
/// queue that is filled again and again in this way never refuses a send.
pub(crate) fn unsignaled_sends_give_their_place_back_with_a_signaled_one(bench: &mut Bench) {
    let shape = Shape { sends: 4, receives: 64, ..Shape::of(IBV_QPT_RC) };
    let (a, b) = bench.connected(&shape, &Tuning::default());
    for id in 0..64 {
        bench.far.receive(b.qp, id, &[b.at(0, 64)]);
    }
    let depth = u64::from(a.sends);
    for round in 0..3 {
        for id in 0..depth {
            let request = Send::new(round * 100 + id, &[a.at(0, 8)]);
            bench.near.send(a.qp, if id + 1 < depth { request.unsignaled() } else { request });
        }
        let wc = bench.near.wait_one(a.send_cq);
        assert_eq!((wc.id, wc.status), (round * 100 + depth - 1, IBV_WC_SUCCESS));
    }
    assert_eq!(bench.far.wait(b.receive_cq, 3 * depth as usize).len(), 3 * depth as usize);
    bench.far.quiet(b.receive_cq, Duration::from_millis(1));
}

pub(crate) fn send_queue_has_its_limit(bench: &mut Bench) {
    let shape = Shape { sends: 4, receives: 64, ..Shape::of(IBV_QPT_RC) };
    let (a, b) = bench.connected(&shape, &Tuning { rnr_timer: 1, ..Tuning::default() });
    let depth = u64::from(a.sends);
    for round in 0..3 {
        // Without receives, all sends wait in the queue.
        for id in 0..depth {
            let request = Send::new(round * 100 + id, &[a.at(0, 8)]);
            bench.near.send(a.qp, if id + 1 < depth { request.unsignaled() } else { request });
        }
        let full = bench.near.try_send(a.qp, &[Send::new(99, &[a.at(0, 8)])]);
        assert_eq!(full, (libc::ENOMEM, Some(0)), "round {round}");
        for id in 0..depth {
            bench.far.receive(b.qp, id, &[b.at(0, 64)]);
        }
        let wc = bench.near.wait_one(a.send_cq);
        assert_eq!((wc.id, wc.status), (round * 100 + depth - 1, IBV_WC_SUCCESS));
        bench.far.wait(b.receive_cq, depth as usize);
    }
}

/// `ibv_create_qp(3)` returns the actual depths, which may be larger than the requested ones.
pub(crate) fn creation_says_how_deep_the_queues_are(bench: &mut Bench) {
    let node = &mut bench.near;
    let pd = node.pd() as u64;
    let cq = node.cq(8) as u64;
    for (sends, receives) in [(4, 4), (5, 9), (16, 1)] {
        let words = [pd, cq, cq, u64::from(IBV_QPT_RC), sends, receives, 1, 1, 0, 0];
        let made = node.call(op::QP, &words);
        assert_eq!(made[0], 0);
        assert!(made[3] >= sends && made[4] >= receives, "less than was requested: {made:?}");
        assert_eq!(made[3..], node.depths(made[1] as usize).map(u64::from), "{sends} and {receives}");
    }
}

pub(crate) fn every_send_is_signaled_where_the_queue_says_so(bench: &mut Bench) {
    let shape = Shape { all_signaled: true, ..Shape::of(IBV_QPT_RC) };
    let (a, b) = bench.connected(&shape, &Tuning::default());
    for id in 0..8 {
        bench.far.receive(b.qp, id, &[b.at(0, 64)]);
        bench.near.send(a.qp, Send::new(id, &[a.at(0, 8)]).unsignaled());
    }
    assert_eq!(ids(&bench.near.wait(a.send_cq, 8)), (0..8).collect::<Vec<_>>());
}

pub(crate) fn unsignaled_sends_do_not_complete(bench: &mut Bench) {
    for service in [IBV_QPT_RC, IBV_QPT_UC] {
        let (a, b) = bench.connected(&Shape::of(service), &Tuning::default());
        for id in 0..4 {
            bench.far.receive(b.qp, id, &[b.at(0, 64)]);
            bench.near.send(a.qp, Send::new(id, &[a.at(0, 8)]).unsignaled());
        }
        bench.far.wait(b.receive_cq, 4);
        bench.near.quiet(a.send_cq, Duration::from_millis(2));
    }
}

pub(crate) fn receive_queue_has_its_limit(bench: &mut Bench) {
    for service in SERVICES {
        let shape = Shape { receives: 5, ..Shape::of(service) };
        let (a, b) = bench.connected(&shape, &Tuning::default());
        let handle = bench.near.handle(a.pd, b.gid);
        for id in 0..u64::from(b.receives) {
            bench.far.receive(b.qp, id, &[b.at(0, 64)]);
        }
        let full = bench.far.try_receive(b.qp, &[(99, vec![b.at(0, 64)])]);
        assert_eq!(full, (libc::ENOMEM, Some(0)), "service {service}");
        // A place is free again when its completion has been polled, or earlier.
        bench.near.send(a.qp, Send::new(1, &[a.at(0, 8)]).to(handle, b.number, crate::QKEY));
        bench.near.wait_one(a.send_cq);
        bench.far.wait_one(b.receive_cq);
        bench.far.receive(b.qp, 7, &[b.at(0, 64)]);
        let full = bench.far.try_receive(b.qp, &[(99, vec![b.at(0, 64)])]);
        assert_eq!(full.0, libc::ENOMEM, "service {service}");
    }
}

/// More elements than any device allows if four are requested.
const MANY: usize = 40;

pub(crate) fn lists_stop_at_the_bad_request(bench: &mut Bench) {
    let (a, b) = bench.connected(&Shape::of(IBV_QPT_RC), &Tuning::default());
    let good = |id| (id, vec![b.at(0, 64)]);
    let bad = (2, vec![b.at(0, 8); MANY]);
    assert_eq!(bench.far.try_receive(b.qp, &[good(0), good(1), bad, good(3)]), (libc::EINVAL, Some(2)));
    let send = |id| Send::new(id, &[a.at(0, 8)]);
    let bad = Send::new(2, &[a.at(0, 1); MANY]);
    assert_eq!(bench.near.try_send(a.qp, &[send(0), send(1), bad, send(3)]), (libc::EINVAL, Some(2)));
    assert_eq!(ids(&bench.near.wait(a.send_cq, 2)), [0, 1]);
    assert_eq!(ids(&bench.far.wait(b.receive_cq, 2)), [0, 1]);
    bench.near.quiet(a.send_cq, Duration::from_millis(2));
}

pub(crate) fn unknown_operations_are_refused(bench: &mut Bench) {
    let (a, b) = bench.connected(&Shape::of(IBV_QPT_RC), &Tuning::default());
    bench.far.receive(b.qp, 0, &[b.at(0, 64)]);
    let send = |id| Send::new(id, &[a.at(0, 8)]);
    let bad = Send { opcode: 250, ..send(1) };
    assert_eq!(bench.near.try_send(a.qp, &[send(0), bad, send(2)]), (libc::EINVAL, Some(1)));
    assert_eq!(bench.near.wait_one(a.send_cq).id, 0);
    bench.near.quiet(a.send_cq, Duration::from_millis(2));
}

pub(crate) fn too_many_elements_are_refused(bench: &mut Bench) {
    let (a, b) = bench.connected(&Shape::of(IBV_QPT_RC), &Tuning::default());
    let send = Send::new(1, &[a.at(0, 1); MANY]);
    assert_eq!(bench.near.try_send(a.qp, &[send]).0, libc::EINVAL);
    assert_eq!(bench.far.try_receive(b.qp, &[(1, vec![b.at(0, 1); MANY])]).0, libc::EINVAL);
    bench.far.receive(b.qp, 2, &[b.at(0, 2), b.at(2, 2), b.at(4, 2), b.at(6, 2)]);
    bench.near.send(a.qp, Send::new(2, &[a.at(0, 2), a.at(2, 2), a.at(4, 2), a.at(6, 2)]));
    assert_eq!(bench.near.wait_one(a.send_cq).status, IBV_WC_SUCCESS);
}

pub(crate) fn completions_keep_the_order_of_posting(bench: &mut Bench) {
    let shape = Shape { sends: 64, receives: 64, ..Shape::of(IBV_QPT_RC) };
    let (a, b) = bench.connected(&shape, &Tuning::default());
    // Half of the sends wait for receives.
    for id in 0..32 {
        bench.far.receive(b.qp, id, &[b.at(0, 2048)]);
    }
    for id in 0..64 {
        bench.near.send(a.qp, Send::new(id, &[a.at(0, (id as usize * 97) % 2000)]));
    }
    for id in 32..64 {
        bench.far.receive(b.qp, id, &[b.at(0, 2048)]);
    }
    let all: Vec<u64> = (0..64).collect();
    assert_eq!(ids(&bench.near.wait(a.send_cq, 64)), all);
    assert_eq!(ids(&bench.far.wait(b.receive_cq, 64)), all);
}

/// A queue pair that is always busy does not hide the completions of other queue pairs.
pub(crate) fn one_queue_serves_several_pairs_fairly(bench: &mut Bench) {
    let shape = Shape { receives: 64, sends: 64, entries: 1024, ..Shape::of(IBV_QPT_RC) };
    let pd = bench.far.pd();
    let cq = bench.far.cq(1024);
    let mut pairs = Vec::new();
    for _ in 0..3 {
        let a = bench.near.side(&shape);
        let b = bench.far.side_on(&shape, pd, [cq, cq]);
        bench.connect(&a, &b, &Tuning::default());
        pairs.push((a, b));
    }
    let busy = pairs[0];
    for id in 0..32 {
        bench.far.receive(busy.1.qp, id, &[busy.1.at(0, 64)]);
        bench.near.send(busy.0.qp, Send::new(id, &[busy.0.at(0, 8)]));
    }
    bench.near.wait(busy.0.send_cq, 32);
    for (a, b) in &pairs[1..] {
        bench.far.receive(b.qp, 500, &[b.at(0, 64)]);
        bench.near.send(a.qp, Send::new(500, &[a.at(0, 8)]));
        bench.near.wait_one(a.send_cq);
    }
    let mut quiet: Vec<u32> = pairs[1..].iter().map(|(_, b)| b.number).collect();
    for polls in 0.. {
        assert!(polls < 500, "completions of {quiet:x?} starve");
        let wc = bench.far.wait_one(cq);
        quiet.retain(|number| *number != wc.qp);
        if quiet.is_empty() {
            return;
        }
        if wc.qp == busy.1.number {
            bench.far.receive(busy.1.qp, 0, &[busy.1.at(0, 64)]);
            bench.near.send(busy.0.qp, Send::new(0, &[busy.0.at(0, 8)]));
            bench.near.wait_one(busy.0.send_cq);
        }
    }
}

/// A program that polls once for each posted send also sees receives on the same queue.
pub(crate) fn receives_do_not_starve_behind_sends(bench: &mut Bench) {
    let shape = Shape { receives: 600, sends: 64, ..Shape::of(IBV_QPT_RC) };
    let pd = bench.near.pd();
    let cq = bench.near.cq(1024);
    let a = bench.near.side_on(&shape, pd, [cq, cq]);
    let b = bench.far.side(&shape);
    bench.connect(&a, &b, &Tuning::default());
    for id in 0..600 {
        bench.far.receive(b.qp, id, &[b.at(0, 64)]);
    }
    bench.near.receive(a.qp, 7777, &[a.at(0, 64)]);
    for id in 0..32 {
        bench.near.send(a.qp, Send::new(id, &[a.at(0, 8)]));
    }
    bench.far.send(b.qp, Send::new(1, &[b.at(0, 8)]));
    assert_eq!(bench.far.wait_one(b.send_cq).status, IBV_WC_SUCCESS);
    for id in 32..550 {
        if bench.near.wait_one(cq).id == 7777 {
            return;
        }
        bench.near.send(a.qp, Send::new(id, &[a.at(0, 8)]));
    }
    panic!("the receive starves");
}

/// Polling fails or, as in `ibv_poll_cq(3)`, an asynchronous event arrives (IBV_EVENT_CQ_ERR).
pub(crate) fn an_overrun_queue_says_so(bench: &mut Bench) {
    let shape = Shape { sends: 512, receives: 512, ..Shape::of(IBV_QPT_RC) };
    let pd = bench.near.pd();
    let short = bench.near.call(op::CQ, &[4, 0]);
    let cq = short[1] as usize;
    let entries = short[2] as usize;
    assert!((4..400).contains(&entries), "a queue of 4 has {entries} entries");
    let receive_cq = bench.near.cq(16);
    let a = bench.near.side_on(&shape, pd, [cq, receive_cq]);
    let b = bench.far.side(&shape);
    bench.connect(&a, &b, &Tuning::default());
    assert!(!bench.near.is_alarmed(0));
    for id in 0..=entries as u64 {
        bench.far.receive(b.qp, id, &[b.at(0, 64)]);
        bench.near.send(a.qp, Send::new(id, &[a.at(0, 8)]));
    }
    bench.far.wait(b.receive_cq, entries + 1);
    let start = Instant::now();
    let mut seen = 0;
    while !bench.near.is_alarmed(1) {
        match bench.near.try_poll(cq, 1) {
            Ok(found) => seen += found.len(),
            Err(errno) => return assert!(errno > 0, "errno {errno}"),
        }
        assert!(seen <= entries, "more completions than the queue has entries");
        assert!(start.elapsed() < PATIENCE, "no error reports the lost completion");
    }
}
