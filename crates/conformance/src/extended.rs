//! Extended completion queues (man ibv_create_cq_ex), their clock, and extensible queries.

use std::time::Duration;

use verbs::abi::*;

use crate::rig::{op, wr};
use crate::shape::Read;
use crate::shape::ids;
use crate::{Bench, QKEY, SERVICES, Send, Shape, Side, Tuning, Wc};

const FIELDS: u32 =
    IBV_WC_EX_WITH_BYTE_LEN | IBV_WC_EX_WITH_IMM | IBV_WC_EX_WITH_QP_NUM | IBV_WC_EX_WITH_SRC_QP;
const STAMP: u32 = IBV_WC_EX_WITH_COMPLETION_TIMESTAMP;
const WALLCLOCK: u32 = IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK;

/// Two connected sides with extended completion queues, whose fields are read one by one.
#[track_caller]
fn connected(bench: &mut Bench, shape: &Shape, fields: u32) -> (Side, Side) {
    let a = bench.near.reading_side(shape, fields);
    let b = bench.far.reading_side(shape, fields);
    bench.connect(&a, &b, &Tuning::OPEN);
    (a, b)
}

fn completions(found: &[Read]) -> Vec<Wc> {
    found.iter().map(|read| read.wc).collect()
}

/// Both kinds of queue report the same messages equally.
pub(crate) fn members_are_those_of_a_completion(bench: &mut Bench) {
    for service in SERVICES {
        let shape = Shape::open(service);
        let (a, b) = connected(bench, &shape, FIELDS);
        let (c, d) = bench.connected(&shape, &Tuning::OPEN);
        let mut seen = Vec::new();
        for (near, far, extended) in [(a, b, true), (c, d, false)] {
            let handle = bench.near.handle(near.pd, far.gid);
            for id in 0..3 {
                bench.far.receive(far.qp, 10 + id, &[far.at(0, 512)]);
            }
            let send = |id| Send::new(id, &[near.at(0, 100 + id as usize)]).to(handle, far.number, QKEY);
            let third = match service {
                IBV_QPT_UD => send(2),
                _ => Send::write(2, &[near.at(0, 50)], far.spot(1024)).immediate(4),
            };
            let sends = [send(0), send(1).immediate(3), third];
            assert_eq!(bench.near.try_send(near.qp, &sends), (0, None));
            let mut both = if extended {
                let sent = bench.near.read_all(near.send_cq, 3);
                [sent, bench.far.read_all(far.receive_cq, 3)].map(|found| completions(&found))
            } else {
                [bench.near.wait(near.send_cq, 3), bench.far.wait(far.receive_cq, 3)]
            };
            for wc in &mut both[0] {
                assert_eq!(std::mem::take(&mut wc.qp), near.number);
                // Undefined for sends (IBTA vol. 1, section 11.4.2.1).
                (wc.byte_len, wc.imm, wc.src_qp) = (0, 0, 0);
            }
            for wc in &mut both[1] {
                assert_eq!(std::mem::take(&mut wc.qp), far.number);
                if service == IBV_QPT_UD {
                    assert_eq!(wc.src_qp, near.number);
                }
                (wc.src_qp, wc.slid) = (0, 0); // `src_qp` is checked above, `slid` is not read.
                if wc.flags & IBV_WC_WITH_IMM == 0 {
                    wc.imm = 0;
                }
            }
            seen.push(both);
        }
        assert_eq!(seen[0], seen[1], "service {service}");
        assert_eq!(ids(&seen[0][0]), [0, 1, 2]);
        assert_eq!(ids(&seen[0][1]), [10, 11, 12]);
    }
}

pub(crate) fn an_empty_queue_has_nothing_to_read(bench: &mut Bench) {
    let (a, b) = connected(bench, &Shape::of(IBV_QPT_RC), FIELDS);
    for round in 0..3 {
        for _ in 0..3 {
            assert_eq!(bench.near.try_read(op::START_POLL, a.send_cq), Err(libc::ENOENT));
        }
        bench.far.receive(b.qp, round, &[b.at(0, 64)]);
        bench.near.send(a.qp, Send::new(round, &[a.at(0, 8)]));
        assert_eq!(bench.near.read_all(a.send_cq, 1)[0].wc.id, round);
        assert_eq!(bench.far.read_all(b.receive_cq, 1)[0].wc.id, round);
    }
}

/// No completion is lost or out of order, whether the queue is read one by one or all at once.
pub(crate) fn every_completion_is_read_once(bench: &mut Bench) {
    let shape = Shape { sends: 64, receives: 64, ..Shape::of(IBV_QPT_RC) };
    let (a, b) = connected(bench, &shape, FIELDS);
    for id in 0..64 {
        bench.far.receive(b.qp, id, &[b.at(0, 64)]);
        bench.near.send(a.qp, Send::new(id, &[a.at(0, 8)]));
    }
    assert_eq!(ids(&completions(&bench.far.read_all(b.receive_cq, 64))), (0..64).collect::<Vec<_>>());
    for id in 0..10 {
        assert_eq!(bench.near.try_read(op::START_POLL, a.send_cq).expect("a completion").wc.id, id);
        bench.near.end_read(a.send_cq);
    }
    assert_eq!(ids(&completions(&bench.near.read_all(a.send_cq, 54))), (10..64).collect::<Vec<_>>());
    assert_eq!(bench.near.try_read(op::START_POLL, a.send_cq), Err(libc::ENOENT));
}

pub(crate) fn plain_polls_serve_an_extended_queue(bench: &mut Bench) {
    let (a, b) = connected(bench, &Shape::of(IBV_QPT_RC), FIELDS);
    for id in 0..4 {
        bench.far.receive(b.qp, id, &[b.at(0, 64)]);
        bench.near.send(a.qp, Send::new(id, &[a.at(0, 8)]));
    }
    assert_eq!(bench.near.read_all(a.send_cq, 4).len(), 4);
    assert_eq!(ids(&bench.far.wait(b.receive_cq, 4)), [0, 1, 2, 3]);
}

pub(crate) fn failures_are_read_as_well(bench: &mut Bench) {
    let a = bench.near.reading_side(&Shape::of(IBV_QPT_RC), FIELDS);
    let b = bench.far.reading_side(&Shape::of(IBV_QPT_RC), FIELDS);
    bench.connect(&a, &b, &Tuning { rnr_retries: 0, ..Tuning::default() });
    bench.near.receive(a.qp, 9, &[a.at(0, 64)]);
    bench.near.send(a.qp, Send::new(1, &[a.at(0, 8)]).unsignaled());
    let failed = bench.near.read_all(a.send_cq, 1)[0].wc;
    assert_eq!((failed.id, failed.status, failed.qp), (1, IBV_WC_RNR_RETRY_EXC_ERR, a.number));
    let flushed = bench.near.read_all(a.receive_cq, 1)[0].wc;
    assert_eq!((flushed.id, flushed.status, flushed.qp), (9, IBV_WC_WR_FLUSH_ERR, a.number));
}

/// From `start_poll` to `end_poll`, a thread excludes other threads from the queue.
pub(crate) fn another_thread_waits_for_its_turn_to_read(bench: &mut Bench) {
    let (a, b) = connected(bench, &Shape::of(IBV_QPT_RC), FIELDS);
    for id in 0..2 {
        bench.far.receive(b.qp, id, &[b.at(0, 64)]);
        bench.near.send(a.qp, Send::new(id, &[a.at(0, 8)]));
    }
    bench.far.read_all(b.receive_cq, 2);
    let other = bench.near.rig().poller(a.send_cq);
    assert_eq!(bench.near.try_read(op::START_POLL, a.send_cq).expect("a completion").wc.id, 0);
    std::thread::scope(|scope| {
        let waiter = scope.spawn(|| other.poll());
        std::thread::sleep(Duration::from_millis(50));
        assert!(!waiter.is_finished(), "two threads poll at once");
        bench.near.end_read(a.send_cq);
        assert_eq!(waiter.join().expect("the other thread"), Some(IBV_WC_SUCCESS));
    });
    assert_eq!(bench.near.try_read(op::START_POLL, a.send_cq), Err(libc::ENOENT));
}

pub(crate) fn an_extended_queue_wakes_its_channel(bench: &mut Bench) {
    let shape = Shape::of(IBV_QPT_RC);
    let node = &mut bench.far;
    let pd = node.pd();
    let channel = node.channel();
    let words = [16, channel as u64 + 1, u64::from(FIELDS), 0, 0, 0];
    let made = node.call(op::CQ_EX, &words);
    assert_eq!(made[0], 0);
    let cq = made[1] as usize;
    let b = node.side_on(&shape, pd, [cq, cq]);
    let a = bench.near.side(&shape);
    bench.connect(&a, &b, &Tuning::default());
    bench.far.receive(b.qp, 5, &[b.at(0, 64)]);
    bench.far.arm(cq, false);
    assert!(!bench.far.is_ready(channel, 5));
    bench.near.send(a.qp, Send::new(1, &[a.at(0, 8)]));
    assert!(bench.far.is_ready(channel, 10_000));
    assert_eq!(bench.far.call(op::EVENT, &[channel as u64]), [0, cq as u64]);
    assert_eq!(bench.far.read_all(cq, 1)[0].wc.id, 5);
    bench.far.call(op::ACK, &[cq as u64, 1]);
}

pub(crate) fn what_a_queue_has_not_cannot_be_asked_for(bench: &mut Bench) {
    let node = &mut bench.near;
    for (fields, mask, flags) in [(1 << 63, 0, 0), (0, 1 << 31, 0), (0, 1, 1 << 31)] {
        let errno = node.errno(op::CQ_EX, &[16, 0, fields, mask, flags, 0]);
        assert!(
            [libc::EOPNOTSUPP, libc::EINVAL].contains(&errno),
            "{fields:#x} {mask:#x} {flags:#x}: {errno}"
        );
    }
    assert_eq!(node.errno(op::CQ_EX, &[u64::from(u32::MAX), 0, 0, 0, 0, 0]), libc::EINVAL);
    assert_eq!(node.errno(op::CQ_EX, &[16, 0, 0, 0, 0, 1 << 20]), libc::EINVAL, "a completion vector");
    let flags = u64::from(IBV_CREATE_CQ_ATTR_SINGLE_THREADED);
    assert_eq!(node.errno(op::CQ_EX, &[16, 0, u64::from(FIELDS), 1, flags, 0]), 0);
}

/// The time stamp of a completion is the time of the message, however late the completion is read.
pub(crate) fn stamps_say_when_a_send_was_done(bench: &mut Bench) {
    for service in [IBV_QPT_RC, IBV_QPT_UC] {
        let (a, b) = connected(bench, &Shape::open(service), STAMP | WALLCLOCK);
        bench.far.receive(b.qp, 0, &[b.at(0, 64)]);
        let before = bench.near.clock();
        bench.near.send(a.qp, Send::new(1, &[a.at(0, 8)]));
        std::thread::sleep(LATE);
        let after = bench.near.clock();
        let read = bench.near.read_all(a.send_cq, 1)[0];
        check_stamp(bench.near.ticks_per_ms(), before, read, after);
    }
}

pub(crate) fn stamps_say_when_a_message_came(bench: &mut Bench) {
    for service in SERVICES {
        let (a, b) = connected(bench, &Shape::open(service), STAMP | WALLCLOCK);
        let handle = bench.near.handle(a.pd, b.gid);
        // A message that fits into a cache line, and a longer one.
        for (id, bytes) in [(0, 8), (1, 1000)] {
            bench.far.receive(b.qp, id, &[b.at(0, 2048)]);
            let before = bench.far.clock();
            bench.near.send(a.qp, Send::new(id, &[a.at(0, bytes)]).to(handle, b.number, QKEY));
            std::thread::sleep(LATE);
            let after = bench.far.clock();
            let read = bench.far.read_all(b.receive_cq, 1)[0];
            check_stamp(bench.far.ticks_per_ms(), before, read, after);
            bench.near.read_all(a.send_cq, 1);
        }
    }
}

/// How long completions wait before they are read.
const LATE: Duration = Duration::from_millis(60);

/// Checks that the stamp is later than `before` and clearly earlier than `after`, in both clocks.
#[track_caller]
fn check_stamp(ticks_per_ms: u64, before: (u64, u64), read: Read, after: (u64, u64)) {
    assert_eq!(read.wc.status, IBV_WC_SUCCESS);
    // Half of the time of the sleep.
    let margin = LATE.as_millis() as u64 / 2;
    let stamp = read.stamp;
    let early = before.0;
    let late = after.0 - margin * ticks_per_ms;
    assert!((early..=late).contains(&stamp), "the stamp {stamp} is not between {early} and {late}");
    // The two clocks are not read at once: 1 ms of tolerance.
    let early = before.1 - 1_000_000;
    let late = after.1 - margin * 1_000_000 + 1_000_000;
    let time = read.wallclock;
    assert!((early..=late).contains(&time), "the time of day {time} is not between {early} and {late}");
}

pub(crate) fn stamps_keep_the_order_of_completions(bench: &mut Bench) {
    let shape = Shape { sends: 64, receives: 64, ..Shape::of(IBV_QPT_RC) };
    let (a, b) = connected(bench, &shape, STAMP);
    for id in 0..50 {
        bench.far.receive(b.qp, id, &[b.at(0, 64)]);
        bench.near.send(a.qp, Send::new(id, &[a.at(0, 8)]));
    }
    for found in [bench.near.read_all(a.send_cq, 50), bench.far.read_all(b.receive_cq, 50)] {
        let stamps: Vec<u64> = found.iter().map(|read| read.stamp).collect();
        assert!(stamps.is_sorted() && stamps[0] != 0, "{stamps:?}");
    }
}

pub(crate) fn the_clock_has_its_frequency(bench: &mut Bench) {
    let per_ms = bench.near.ticks_per_ms();
    let (raw, wall) = bench.near.clock();
    std::thread::sleep(Duration::from_millis(100));
    let (later, wall_later) = bench.near.clock();
    let expected = (wall_later - wall) as f64 / 1e6 * per_ms as f64;
    let ratio = (later - raw) as f64 / expected;
    // The thread may be preempted between the readings of the two clocks.
    assert!((0.8..1.25).contains(&ratio), "the clock has {ratio} times its reported frequency");
}

/// `ibv_query_device_ex` for callers whose structure is shorter or longer.
pub(crate) fn a_device_query_fills_what_it_is_given(bench: &mut Bench) {
    let plain = size_of::<ibv_device_attr>() as u64;
    let whole = size_of::<ibv_device_attr_ex>() as u64;
    for room in [plain, plain + 48, whole, whole + 40] {
        let answer = bench.near.call(op::DEVICE_EX, &[room, 0]);
        assert_eq!((answer[0], &answer[4..]), (0, &[1, 1][..]), "room for {room} B");
    }
    let answer = bench.near.call(op::DEVICE_EX, &[whole, 0]);
    assert!(answer[3] >= 1, "no port");
    assert_eq!(bench.near.errno(op::DEVICE_EX, &[plain - 1, 0]), libc::EINVAL);
    assert_eq!(bench.near.errno(op::DEVICE_EX, &[whole, 1]), libc::EINVAL, "an unknown input");
}

pub(crate) fn a_port_query_fills_what_it_is_given(bench: &mut Bench) {
    for room in [48, size_of::<ibv_port_attr>() as u64] {
        assert_eq!(bench.near.call(op::PORT_EX, &[room]), [0, 1, 1], "room for {room} B");
    }
}

/// `ibv_create_srq_ex` and `ibv_create_qp_ex` create the same objects as the plain functions, also
/// with time stamps and work request builders.
pub(crate) fn receives_are_shared_as_well(bench: &mut Bench) {
    let shape = Shape::of(IBV_QPT_RC);
    let node = &mut bench.far;
    let pd = node.pd();
    let cq = node.cq_ex(16, STAMP, 0);
    let mask = u64::from(IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_TYPE);
    let made = node.call(op::SRQ_EX, &[pd as u64, 8, 1, mask, u64::from(IBV_SRQT_BASIC)]);
    assert_eq!(made[0], 0);
    let srq = made[1] as usize;
    let b = node.side_on(&Shape { srq: Some(srq), ..shape }, pd, [cq, cq]);
    let a = bench.near.building_side(&shape, IBV_QP_EX_WITH_SEND);
    bench.connect(&a, &b, &Tuning::default());
    bench.far.receive_shared(srq, 5, &[b.at(0, 64)]);
    let before = bench.far.clock();
    bench.near.step(&a, wr::START, &[]);
    bench.near.build_send(&a, 1, a.at(0, 8));
    bench.near.step(&a, wr::COMPLETE, &[]);
    assert_eq!(bench.near.wait_one(a.send_cq).status, IBV_WC_SUCCESS);
    std::thread::sleep(LATE);
    let after = bench.far.clock();
    let read = bench.far.read_all(cq, 1)[0];
    assert_eq!((read.wc.id, read.wc.status), (5, IBV_WC_SUCCESS));
    assert!((before.0..after.0).contains(&read.stamp), "{} of {before:?} to {after:?}", read.stamp);
    let late = after.0 - LATE.as_millis() as u64 / 2 * bench.far.ticks_per_ms();
    assert!(read.stamp < late, "the stamp is the time of the poll");
}

/// `ibv_resize_cq` keeps completions and makes room for the requested number.
pub(crate) fn a_resized_queue_keeps_its_completions(bench: &mut Bench) {
    let shape = Shape { sends: 64, receives: 64, ..Shape::of(IBV_QPT_RC) };
    let pd = bench.near.pd();
    let cq = bench.near.cq(4);
    let receive_cq = bench.near.cq(16);
    let a = bench.near.side_on(&shape, pd, [cq, receive_cq]);
    let b = bench.far.side(&shape);
    bench.connect(&a, &b, &Tuning::default());
    for id in 0..50 {
        if id == 3 {
            assert_eq!(bench.near.errno(op::RESIZE, &[cq as u64, 60]), 0);
        }
        bench.far.receive(b.qp, id, &[b.at(0, 64)]);
        bench.near.send(a.qp, Send::new(id, &[a.at(0, 8)]));
    }
    bench.far.wait(b.receive_cq, 50);
    // The device may ignore a smaller size, but must lose no completion.
    let _ = bench.near.errno(op::RESIZE, &[cq as u64, 1]);
    assert_eq!(ids(&bench.near.wait(cq, 50)), (0..50).collect::<Vec<_>>());
    bench.near.quiet(cq, Duration::from_millis(1));
    assert_ne!(bench.near.errno(op::RESIZE, &[cq as u64, u64::from(u32::MAX >> 1)]), 0);
}
