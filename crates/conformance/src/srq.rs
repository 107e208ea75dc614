//! Shared receive queues (IBTA vol. 1, sections 10.2.9 and 10.3.1.5; man ibv_create_srq,
//! ibv_post_srq_recv).

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use verbs::abi::*;

use crate::rig::op;
use crate::{Bench, QKEY, SERVICES, Send, Shape, Side, Tuning, ids};

/// Bytes of a receive: the largest message of these cases, and the header of a datagram.
const ROOM: usize = 2048 + 40;

/// Connected queue pairs; those of the far node use one shared receive queue.
pub(crate) struct Shared {
    pub(crate) srq: usize,
    pub(crate) pairs: Vec<(Side, Side)>,
    /// The near node's address handle, for datagrams.
    handle: usize,
    header: usize,
}

impl Shared {
    /// Creates and connects so many pairs. The queue pairs of the far node share a completion
    /// queue.
    #[track_caller]
    pub(crate) fn new(bench: &mut Bench, service: ibv_qp_type, pairs: usize, tuning: &Tuning) -> Self {
        let shape = Shape { sends: 64, entries: 256, bytes: 64 * ROOM, ..Shape::open(service) };
        Self::of(bench, &shape, 32, pairs, tuning)
    }

    /// As [`new`](Self::new), with queue pairs of this shape and a queue of so many receives.
    #[track_caller]
    fn of(bench: &mut Bench, shape: &Shape, receives: u32, pairs: usize, tuning: &Tuning) -> Self {
        let service = shape.service;
        let pd = bench.far.pd();
        let srq = bench.far.srq(pd, receives, 2);
        let send_cq = bench.far.cq(256);
        let receive_cq = bench.far.cq(256);
        let region = if shape.own_memory {
            bench.far.own_region(pd, shape.bytes, shape.access)
        } else {
            bench.far.region(pd, shape.bytes, shape.access)
        };
        let shape = Shape { srq: Some(srq), ..*shape };
        let mut made = Vec::new();
        for _ in 0..pairs {
            let a = bench.near.side(&Shape { srq: None, ..shape });
            let b = bench.far.side_with(&shape, pd, [send_cq, receive_cq], region);
            bench.connect(&a, &b, tuning);
            made.push((a, b));
        }
        let (a, b) = made[0];
        let header = if service == IBV_QPT_UD { 40 } else { 0 };
        Self { srq, pairs: made, handle: bench.near.handle(a.pd, b.gid), header }
    }

    /// Posts a receive of `len` bytes, at an offset that its identifier determines.
    #[track_caller]
    pub(crate) fn post(&self, bench: &mut Bench, id: u64, len: usize) {
        let b = self.pairs[0].1;
        bench.far.receive_shared(self.srq, id, &[b.at(id as usize * ROOM, len)]);
    }

    /// Sends `len` bytes of the pattern `seed` from the near node.
    #[track_caller]
    fn send(&self, bench: &mut Bench, pair: usize, len: usize, seed: u64) {
        let (a, b) = self.pairs[pair];
        bench.near.fill(a.region, 0, len, seed);
        let handle = if self.header == 0 { self.handle } else { bench.near.handle(a.pd, b.gid) };
        let request = Send::new(seed, &[a.at(0, len)]).to(handle, b.number, QKEY);
        bench.near.send(a.qp, request);
        assert_eq!(bench.near.wait_one(a.send_cq).status, IBV_WC_SUCCESS, "message {seed}");
    }

    fn completions(&self) -> usize {
        self.pairs[0].1.receive_cq
    }
}

fn takes_in_turn(bench: &mut Bench, service: ibv_qp_type) {
    let shared = Shared::new(bench, service, 3, &Tuning::OPEN);
    let mut seed = 0;
    for round in 0..4 {
        for id in 0..24 {
            shared.post(bench, id, ROOM);
        }
        let mut sent: BTreeMap<u32, Vec<(u64, usize)>> = BTreeMap::new();
        for i in 0..24 {
            let pair = (i * 7 + round) % 3;
            let len = [0, 8, 32, 33, 1000, 1024][i % 6];
            seed += 1;
            shared.send(bench, pair, len, seed);
            sent.entry(shared.pairs[pair].1.number).or_default().push((seed, len));
        }
        let region = shared.pairs[0].1.region;
        let mut seen = [false; 24];
        for wc in bench.far.wait(shared.completions(), 24) {
            assert_eq!((wc.status, wc.opcode), (IBV_WC_SUCCESS, IBV_WC_RECV));
            assert!(!std::mem::replace(&mut seen[wc.id as usize], true), "receive {} completes twice", wc.id);
            let (seed, len) = sent.get_mut(&wc.qp).expect("a queue pair that was sent to").remove(0);
            assert_eq!(wc.byte_len as usize, len + shared.header, "the messages of a pair keep their order");
            bench.far.check(region, wc.id as usize * ROOM + shared.header, len, seed);
        }
    }
}

pub(crate) fn rc_pairs_take_from_one_queue(bench: &mut Bench) {
    takes_in_turn(bench, IBV_QPT_RC);
}

pub(crate) fn uc_pairs_take_from_one_queue(bench: &mut Bench) {
    takes_in_turn(bench, IBV_QPT_UC);
}

pub(crate) fn ud_pairs_take_from_one_queue(bench: &mut Bench) {
    takes_in_turn(bench, IBV_QPT_UD);
}

/// Messages of sizes around those at which a device may change its way of transfer. Each is sent
/// from and received in two pieces, and more of them arrive than a device may buffer until they
/// are polled.
pub(crate) fn shared_receives_in_own_memory_take_every_size(bench: &mut Bench) {
    const SIZES: [usize; 13] = [0, 1, 32, 33, 200, 4056, 4096, 8192, 8256, 8319, 8320, 8321, LONGEST];
    const LONGEST: usize = 9001;
    const MESSAGES: usize = 48;
    /// Bytes between two pieces, and between two receives.
    const GAP: usize = 7;
    const PLACE: usize = LONGEST + 40 + 2 * GAP;
    for service in SERVICES {
        let most = if service == IBV_QPT_UD { bench.near.datagram_bytes() } else { LONGEST };
        let sizes: Vec<_> = SIZES.into_iter().filter(|size| *size <= most).collect();
        let shape = Shape { bytes: MESSAGES * PLACE, own_memory: true, ..Shape::open(service) };
        let shared = Shared::of(bench, &shape, 64, 2, &Tuning::OPEN);
        let b = shared.pairs[0].1;
        for round in 0..2 {
            let cut = |id: usize| 41 + (id * 613 + round) % LONGEST;
            bench.far.fill(b.region, 0, shape.bytes, 1000);
            for id in 0..MESSAGES {
                let rest = b.at(id * PLACE + cut(id) + GAP, LONGEST + 40 - cut(id));
                bench.far.receive_shared(shared.srq, id as u64, &[b.at(id * PLACE, cut(id)), rest]);
            }
            let mut sent: BTreeMap<u32, VecDeque<(u64, usize)>> = BTreeMap::new();
            for i in 0..MESSAGES {
                let (a, b) = shared.pairs[usize::from(i % 8 == 7)];
                let size = sizes[(i * 5 + round) % sizes.len()];
                let seed = (1 + round * MESSAGES + i) as u64;
                bench.near.fill(a.region, 0, size, seed);
                let handle = bench.near.handle(a.pd, b.gid);
                let pieces = [a.at(0, size / 3), a.at(size / 3, size - size / 3)];
                bench.near.send(a.qp, Send::new(seed, &pieces).to(handle, b.number, QKEY));
                assert_eq!(bench.near.wait_one(a.send_cq).status, IBV_WC_SUCCESS, "{size} B");
                sent.entry(b.number).or_default().push_back((seed, size));
            }
            for wc in bench.far.wait(shared.completions(), MESSAGES) {
                let next = sent.get_mut(&wc.qp).and_then(VecDeque::pop_front);
                let (seed, size) = next.expect("a message of this queue pair");
                assert_eq!(wc.status, IBV_WC_SUCCESS, "service {service}, {size} B");
                assert_eq!(wc.byte_len as usize, size + shared.header);
                let start = wc.id as usize * PLACE;
                let cut = cut(wc.id as usize);
                let first = size.min(cut - shared.header);
                bench.far.check(b.region, start + shared.header, first, seed);
                bench.far.check_from(b.region, start + cut + GAP, size - first, seed, first);
                bench.far.check_from(b.region, start + cut, GAP, 1000, start + cut);
                let end = start + cut + GAP + size - first;
                bench.far.check_from(b.region, end, GAP, 1000, end);
            }
        }
    }
}

/// Receives are taken in the order of posting, whichever queue pair the message is for.
pub(crate) fn receives_are_taken_in_the_order_of_posting(bench: &mut Bench) {
    let shared = Shared::new(bench, IBV_QPT_RC, 3, &Tuning::OPEN);
    for id in [5, 3, 9, 0, 7] {
        shared.post(bench, id, ROOM);
    }
    for (pair, id) in [(2, 5), (0, 3), (1, 9), (1, 0), (0, 7)] {
        shared.send(bench, pair, 8, id);
        let wc = bench.far.wait_one(shared.completions());
        assert_eq!((wc.id, wc.qp), (id, shared.pairs[pair].1.number));
    }
}

pub(crate) fn an_immediate_takes_a_shared_receive(bench: &mut Bench) {
    for service in [IBV_QPT_RC, IBV_QPT_UC] {
        let shared = Shared::new(bench, service, 2, &Tuning::OPEN);
        let (a, b) = shared.pairs[1];
        shared.post(bench, 4, 0);
        bench.near.fill(a.region, 0, 100, 3);
        bench.near.send(a.qp, Send::write(1, &[a.at(0, 100)], b.spot(ROOM)).immediate(77));
        assert_eq!(bench.near.wait_one(a.send_cq).status, IBV_WC_SUCCESS);
        let wc = bench.far.wait_one(shared.completions());
        assert_eq!((wc.id, wc.qp, wc.imm, wc.byte_len), (4, b.number, 77, 100));
        assert_eq!(wc.opcode, IBV_WC_RECV_RDMA_WITH_IMM);
        bench.far.check(b.region, ROOM, 100, 3);
    }
}

pub(crate) fn an_empty_shared_queue_is_not_ready(bench: &mut Bench) {
    let tuning = Tuning { rnr_retries: 0, ..Tuning::OPEN };
    let shared = Shared::new(bench, IBV_QPT_RC, 2, &tuning);
    shared.post(bench, 0, ROOM);
    shared.send(bench, 0, 8, 1);
    let (a, _) = shared.pairs[1];
    bench.near.send(a.qp, Send::new(2, &[a.at(0, 8)]));
    assert_eq!(bench.near.wait_one(a.send_cq).status, IBV_WC_RNR_RETRY_EXC_ERR);
    // The other pair still works.
    assert_eq!(bench.far.wait_one(shared.completions()).id, 0);
    shared.post(bench, 1, ROOM);
    shared.send(bench, 0, 8, 3);
    assert_eq!(bench.far.wait_one(shared.completions()).id, 1);
}

pub(crate) fn a_send_waits_for_a_shared_receive(bench: &mut Bench) {
    let tuning = Tuning { rnr_timer: 1, ..Tuning::OPEN };
    let shared = Shared::new(bench, IBV_QPT_RC, 1, &tuning);
    let (a, _) = shared.pairs[0];
    bench.near.send(a.qp, Send::new(2, &[a.at(0, 8)]));
    bench.near.quiet(a.send_cq, Duration::from_millis(5));
    shared.post(bench, 1, ROOM);
    assert_eq!(bench.near.wait_one(a.send_cq).status, IBV_WC_SUCCESS);
    assert_eq!(bench.far.wait_one(shared.completions()).id, 1);
}

pub(crate) fn unreliable_messages_without_shared_receive_are_dropped(bench: &mut Bench) {
    for service in [IBV_QPT_UC, IBV_QPT_UD] {
        let shared = Shared::new(bench, service, 2, &Tuning::OPEN);
        shared.send(bench, 0, 8, 1);
        shared.send(bench, 1, 8, 2);
        bench.far.quiet(shared.completions(), Duration::from_millis(5));
        shared.post(bench, 6, ROOM);
        shared.send(bench, 1, 8, 3);
        let wc = bench.far.wait_one(shared.completions());
        assert_eq!((wc.id, wc.qp), (6, shared.pairs[1].1.number));
    }
}

/// Only the queue pair of the message fails.
pub(crate) fn a_shared_receive_that_is_too_small_fails_one_pair(bench: &mut Bench) {
    let shared = Shared::new(bench, IBV_QPT_RC, 2, &Tuning::OPEN);
    let (a, b) = shared.pairs[0];
    let other = shared.pairs[1];
    shared.post(bench, 0, 8);
    shared.post(bench, 1, ROOM);
    bench.near.send(a.qp, Send::new(1, &[a.at(0, 9)]));
    assert!(bench.near.wait_one(a.send_cq).has_failed());
    let wc = bench.far.wait_one(shared.completions());
    assert!(wc.has_failed());
    assert_eq!((wc.id, wc.qp), (0, b.number));
    bench.far.settles(b.qp, IBV_QPS_ERR, "the pair fails");
    shared.send(bench, 1, 8, 2);
    let wc = bench.far.wait_one(shared.completions());
    assert_eq!((wc.id, wc.qp, wc.status), (1, other.1.number, IBV_WC_SUCCESS));
}

pub(crate) fn a_shared_receive_that_is_too_small_is_kept(bench: &mut Bench) {
    for service in [IBV_QPT_UC, IBV_QPT_UD] {
        let shared = Shared::new(bench, service, 2, &Tuning::OPEN);
        shared.post(bench, 0, shared.header + 8);
        shared.send(bench, 0, 9, 1);
        bench.far.quiet(shared.completions(), Duration::from_millis(5));
        shared.send(bench, 1, 8, 2);
        let wc = bench.far.wait_one(shared.completions());
        assert_eq!((wc.id, wc.qp, wc.status), (0, shared.pairs[1].1.number, IBV_WC_SUCCESS));
    }
}

pub(crate) fn shared_receives_into_forbidden_memory_fail(bench: &mut Bench) {
    for (service, len) in [(IBV_QPT_RC, 8), (IBV_QPT_RC, 100), (IBV_QPT_UC, 100)] {
        let shared = Shared::new(bench, service, 2, &Tuning::OPEN);
        let (a, b) = shared.pairs[0];
        let mut element = b.at(0, ROOM);
        element[3] = 0xdead_be00;
        bench.far.receive_shared(shared.srq, 0, &[element]);
        bench.near.send(a.qp, Send::new(1, &[a.at(0, len)]));
        bench.near.wait_one(a.send_cq);
        let wc = bench.far.wait_one(shared.completions());
        assert!(wc.has_failed(), "service {service}");
        bench.far.settles(b.qp, IBV_QPS_ERR, "the pair fails");
        shared.post(bench, 1, ROOM);
        shared.send(bench, 1, len, 2);
        assert_eq!(bench.far.wait_one(shared.completions()).id, 1);
    }
}

/// Posted receives belong to all queue pairs: they stay posted when one fails or is reset.
pub(crate) fn an_error_flushes_no_shared_receive(bench: &mut Bench) {
    for service in SERVICES {
        let shared = Shared::new(bench, service, 3, &Tuning::OPEN);
        for id in 0..4 {
            shared.post(bench, id, ROOM);
        }
        bench.far.change_state(shared.pairs[0].1.qp, IBV_QPS_ERR);
        bench.far.change_state(shared.pairs[1].1.qp, IBV_QPS_RESET);
        bench.far.quiet(shared.completions(), Duration::from_millis(5));
        for id in 0..4 {
            shared.send(bench, 2, 8, id);
            let wc = bench.far.wait_one(shared.completions());
            assert_eq!((wc.id, wc.status), (id, IBV_WC_SUCCESS), "service {service}");
        }
    }
}

pub(crate) fn a_shared_queue_has_its_limit(bench: &mut Bench) {
    let shared = Shared::new(bench, IBV_QPT_RC, 2, &Tuning::OPEN);
    let depth = bench.far.query_srq(shared.srq)[0];
    let b = shared.pairs[0].1;
    for round in 0..3 {
        for id in 0..u64::from(depth) {
            bench.far.receive_shared(shared.srq, id, &[b.at(0, ROOM)]);
        }
        let full = bench.far.try_receive_shared(shared.srq, &[(99, vec![b.at(0, ROOM)])]);
        assert_eq!(full, (libc::ENOMEM, Some(0)), "round {round}");
        for id in 0..u64::from(depth) {
            shared.send(bench, id as usize % 2, 8, id);
        }
        bench.far.wait(shared.completions(), depth as usize);
    }
}

pub(crate) fn lists_to_a_shared_queue_stop_at_the_bad_request(bench: &mut Bench) {
    let shared = Shared::new(bench, IBV_QPT_RC, 1, &Tuning::OPEN);
    let b = shared.pairs[0].1;
    let good = |id| (id, vec![b.at(0, 64)]);
    let list = [good(0), good(1), (2, vec![b.at(0, 1); 40]), good(3)];
    assert_eq!(bench.far.try_receive_shared(shared.srq, &list), (libc::EINVAL, Some(2)));
    shared.send(bench, 0, 8, 1);
    shared.send(bench, 0, 8, 2);
    assert_eq!(ids(&bench.far.wait(shared.completions(), 2)), [0, 1]);
}

pub(crate) fn a_pair_with_a_shared_queue_has_no_receives_of_its_own(bench: &mut Bench) {
    let shared = Shared::new(bench, IBV_QPT_RC, 1, &Tuning::OPEN);
    let b = shared.pairs[0].1;
    assert_ne!(bench.far.try_receive(b.qp, &[(0, vec![b.at(0, 64)])]).0, 0);
}

/// `ibv_modify_srq(3)`: the limit is stored, and disarmed once fewer receives are left.
pub(crate) fn a_limit_is_kept_until_it_is_reached(bench: &mut Bench) {
    let shared = Shared::new(bench, IBV_QPT_RC, 1, &Tuning::OPEN);
    let limit = |bench: &mut Bench| bench.far.query_srq(shared.srq)[2];
    for id in 0..4 {
        shared.post(bench, id, ROOM);
    }
    assert_eq!(limit(bench), 0);
    assert_eq!(bench.far.errno(op::MODIFY_SRQ, &[shared.srq as u64, u64::from(IBV_SRQ_LIMIT), 0, 3]), 0);
    assert_eq!(limit(bench), 3);
    shared.send(bench, 0, 8, 1);
    assert_eq!(limit(bench), 3, "three are left");
    shared.send(bench, 0, 8, 2);
    bench.far.wait(shared.completions(), 2);
    assert_eq!(limit(bench), 0, "two are left");
}

pub(crate) fn attributes_of_a_shared_queue_are_checked(bench: &mut Bench) {
    let node = &mut bench.near;
    let pd = node.pd();
    let srq = node.srq(pd, 10, 3);
    let [receives, elements, limit] = node.query_srq(srq);
    assert!(receives >= 10 && elements >= 3 && limit == 0, "{receives} {elements} {limit}");
    let too_many = [srq as u64, u64::from(IBV_SRQ_LIMIT), 0, u64::from(receives) + 1];
    assert_eq!(node.errno(op::MODIFY_SRQ, &too_many), libc::EINVAL);
    assert_ne!(node.errno(op::SRQ, &[pd as u64, 1 << 30, 1]), 0);
    assert_ne!(node.errno(op::SRQ, &[pd as u64, 4, 1 << 20]), 0);
}

pub(crate) fn a_shared_queue_in_use_is_busy(bench: &mut Bench) {
    let shared = Shared::new(bench, IBV_QPT_RC, 1, &Tuning::OPEN);
    let b = shared.pairs[0].1;
    let destroy = [shared.srq as u64];
    assert_eq!(bench.far.errno(op::DESTROY_SRQ, &destroy), libc::EBUSY);
    assert_eq!(bench.far.errno(op::DESTROY_QP, &[b.qp as u64]), 0);
    assert_eq!(bench.far.errno(op::DESTROY_SRQ, &destroy), 0);
}

/// If a queue pair is reset or destroyed, the receives that it has taken free their places in the
/// queue, although their completions were not polled.
pub(crate) fn a_pair_that_goes_gives_its_places_back(bench: &mut Bench) {
    for service in SERVICES {
        for is_reset in [false, true] {
            let shared = Shared::new(bench, service, 2, &Tuning::OPEN);
            let depth = bench.far.query_srq(shared.srq)[0];
            let b = shared.pairs[0].1;
            for id in 0..u64::from(depth) {
                bench.far.receive_shared(shared.srq, id, &[b.at(0, ROOM)]);
            }
            for id in 0..4 {
                shared.send(bench, 0, 8, id);
            }
            if is_reset {
                bench.far.change_state(b.qp, IBV_QPS_RESET);
            } else {
                assert_eq!(bench.far.errno(op::DESTROY_QP, &[b.qp as u64]), 0);
            }
            for id in 0..4 {
                bench.far.receive_shared(shared.srq, id, &[b.at(0, ROOM)]);
            }
            let full = bench.far.try_receive_shared(shared.srq, &[(99, vec![b.at(0, ROOM)])]);
            assert_eq!(full.0, libc::ENOMEM, "service {service}");
            shared.send(bench, 1, 8, 9);
            assert_eq!(bench.far.wait_one(shared.completions()).id, 4, "service {service}");
        }
    }
}
