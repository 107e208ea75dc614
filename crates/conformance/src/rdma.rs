//! RDMA Writes and Reads: all bytes are moved, in order, without calls of the target's program.

use std::time::Duration;

use verbs::abi::*;

use crate::rig::op;
use crate::{Bench, Remote, Send, Shape, Side, Tuning, Wc, ids};

const SIZES: [usize; 13] = [1, 7, 8, 31, 64, 65, 511, 4095, 4096, 4097, 64 << 10, 8 << 20, (8 << 20) + 13];

/// The bytes before and after the written memory that must not change.
const GUARD: usize = 3;

/// The time limit of waits for a change in memory, in milliseconds.
const MS: u64 = 20_000;

#[track_caller]
fn done(wc: Wc, id: u64, opcode: ibv_wc_opcode, qp: u32) {
    assert_eq!((wc.id, wc.status, wc.opcode, wc.qp), (id, IBV_WC_SUCCESS, opcode, qp));
}

fn roomy(service: ibv_qp_type, own_memory: bool) -> Shape {
    let largest = SIZES.iter().max().expect("some sizes") + 2 * GUARD;
    Shape { bytes: largest, own_memory, ..Shape::open(service) }
}

fn writes(bench: &mut Bench, service: ibv_qp_type, own_memory: bool) {
    let (a, b) = bench.connected(&roomy(service, own_memory), &Tuning::OPEN);
    for (seed, size) in (1..).zip(SIZES) {
        bench.near.fill(a.region, 0, size, seed);
        bench.far.fill(b.region, 0, size + 2 * GUARD, 1000);
        bench.near.send(a.qp, Send::write(seed, &[a.at(0, size)], b.spot(GUARD)));
        done(bench.near.wait_one(a.send_cq), seed, IBV_WC_RDMA_WRITE, a.number);
        bench.settle(&a, &b);
        bench.far.check(b.region, GUARD, size, seed);
        bench.far.check(b.region, 0, GUARD, 1000);
        bench.far.check_from(b.region, size + GUARD, GUARD, 1000, size + GUARD);
    }
    // No receive is taken.
    bench.far.receive(b.qp, 77, &[b.at(0, 64)]);
    bench.near.send(a.qp, Send::write(78, &[a.at(0, 64)], b.spot(0)));
    done(bench.near.wait_one(a.send_cq), 78, IBV_WC_RDMA_WRITE, a.number);
    bench.far.quiet(b.receive_cq, Duration::from_millis(2));
}

pub(crate) fn rc_writes_every_size(bench: &mut Bench) {
    writes(bench, IBV_QPT_RC, false);
}

pub(crate) fn uc_writes_every_size(bench: &mut Bench) {
    writes(bench, IBV_QPT_UC, false);
}

pub(crate) fn own_memory_is_written_as_well(bench: &mut Bench) {
    writes(bench, IBV_QPT_RC, true);
}

fn reads(bench: &mut Bench, own_memory: bool) {
    let (a, b) = bench.connected(&roomy(IBV_QPT_RC, own_memory), &Tuning::OPEN);
    for (seed, size) in (1..).zip(SIZES) {
        bench.far.fill(b.region, 1, size, seed);
        bench.near.fill(a.region, 0, size + 2 * GUARD, 1000);
        bench.near.send(a.qp, Send::read(seed, &[a.at(GUARD, size)], b.spot(1)));
        let wc = bench.near.wait_one(a.send_cq);
        done(wc, seed, IBV_WC_RDMA_READ, a.number);
        assert_eq!(wc.byte_len as usize, size, "bytes read");
        bench.near.check(a.region, GUARD, size, seed);
        bench.near.check(a.region, 0, GUARD, 1000);
        bench.near.check_from(a.region, size + GUARD, GUARD, 1000, size + GUARD);
        bench.far.check(b.region, 1, size, seed);
    }
}

pub(crate) fn rc_reads_every_size(bench: &mut Bench) {
    reads(bench, false);
}

pub(crate) fn own_memory_is_read_as_well(bench: &mut Bench) {
    reads(bench, true);
}

pub(crate) fn writes_gather_and_reads_scatter_across_odd_cuts(bench: &mut Bench) {
    for own_memory in [false, true] {
        let shape = Shape { own_memory, ..Shape::open(IBV_QPT_RC) };
        let (a, b) = bench.connected(&shape, &Tuning::OPEN);
        for (seed, cuts) in (1..).zip([[1, 2, 4, 1], [7, 8192, 3, 61], [0, 1, 9000, 5], [30, 1, 1, 16]]) {
            let total: usize = cuts.iter().sum();
            // Four places with gaps, the last one in memory first.
            let mut at = 30_000;
            let places: Vec<_> = cuts
                .map(|cut| {
                    at -= cut + 11;
                    a.at(at, cut)
                })
                .to_vec();
            bench.near.fill(a.region, 0, 40_000, 500 + seed);
            bench.near.send(a.qp, Send::write(seed, &places, b.spot(5)));
            bench.near.wait_one(a.send_cq);
            let mut expected = Vec::new();
            for place in &places {
                expected.extend(bench.near.read(a.region, place[1] as usize, place[2] as usize));
            }
            assert!(bench.far.read(b.region, 5, total) == expected, "written in {cuts:?}");
            bench.near.fill(a.region, 0, 40_000, 900);
            bench.near.send(a.qp, Send::read(seed, &places, b.spot(5)));
            assert_eq!(bench.near.wait_one(a.send_cq).byte_len as usize, total);
            let mut found = Vec::new();
            for place in &places {
                let start = place[1] as usize;
                let len = place[2] as usize;
                found.extend(bench.near.read(a.region, start, len));
                bench.near.check_from(a.region, start + len, 11, 900, start + len);
            }
            assert!(found == expected, "read in {cuts:?}");
        }
    }
}

pub(crate) fn every_mtu_writes_and_reads_the_same(bench: &mut Bench) {
    for mtu in IBV_MTU_256..=IBV_MTU_4096 {
        let (a, b) = bench.connected(&Shape::open(IBV_QPT_RC), &Tuning { mtu, ..Tuning::OPEN });
        let bytes = 128 << mtu;
        for (id, size) in (0..).zip([bytes - 1, bytes, bytes + 1, 5 * bytes + 3]) {
            bench.near.fill(a.region, 0, size, id);
            bench.near.send(a.qp, Send::write(id, &[a.at(0, size)], b.spot(100)));
            bench.near.send(a.qp, Send::read(id, &[a.at(30_000, size)], b.spot(100)));
            let found = bench.near.wait(a.send_cq, 2);
            done(found[0], id, IBV_WC_RDMA_WRITE, a.number);
            done(found[1], id, IBV_WC_RDMA_READ, a.number);
            bench.far.check(b.region, 100, size, id);
            bench.near.check(a.region, 30_000, size, id);
        }
    }
}

pub(crate) fn an_immediate_takes_a_receive(bench: &mut Bench) {
    for service in [IBV_QPT_RC, IBV_QPT_UC] {
        let (a, b) = bench.connected(&Shape::open(service), &Tuning::OPEN);
        for (id, size) in (0..).zip([0, 1, 8, 33, 1000, 20_000]) {
            bench.near.fill(a.region, 0, size, id);
            bench.far.fill(b.region, 0, 60_000, 1000);
            // The elements of the receive are not used; it may have none.
            let elements = if id % 2 == 0 { vec![b.at(50_000, 64)] } else { vec![] };
            bench.far.receive(b.qp, 500 + id, &elements);
            let request = Send::write(id, &[a.at(0, size)], b.spot(4)).immediate(0xbeef_0000 + id as u32);
            bench.near.send(a.qp, request);
            done(bench.near.wait_one(a.send_cq), id, IBV_WC_RDMA_WRITE, a.number);
            let got = bench.far.wait_one(b.receive_cq);
            done(got, 500 + id, IBV_WC_RECV_RDMA_WITH_IMM, b.number);
            // IBV_WC_GRH has a meaning for datagrams only.
            assert_eq!((got.imm, got.flags & !IBV_WC_GRH), (0xbeef_0000 + id as u32, IBV_WC_WITH_IMM));
            assert_eq!(got.byte_len as usize, size, "bytes written");
            bench.far.check(b.region, 4, size, id);
            bench.far.check(b.region, 0, 4, 1000);
            bench.far.check_from(b.region, size + 4, 55_000 - size, 1000, size + 4);
        }
    }
}

pub(crate) fn immediates_and_sends_take_receives_in_turn(bench: &mut Bench) {
    let (a, b) = bench.connected(&Shape::open(IBV_QPT_RC), &Tuning::OPEN);
    for id in 0..9 {
        bench.far.receive(b.qp, id, &[b.at(1000 * id as usize, 1000)]);
    }
    for id in 0..9 {
        bench.near.fill(a.region, 1000 * id as usize, 1000, id);
        let element = [a.at(1000 * id as usize, 100)];
        let request = match id % 3 {
            0 => Send::write(id, &element, b.spot(20_000 + 1000 * id as usize)).immediate(id as u32),
            1 => Send::new(id, &element).immediate(id as u32),
            _ => Send::new(id, &element),
        };
        bench.near.send(a.qp, request);
    }
    for wc in bench.far.wait(b.receive_cq, 9) {
        let written = wc.id % 3 == 0;
        assert_eq!(wc.opcode, if written { IBV_WC_RECV_RDMA_WITH_IMM } else { IBV_WC_RECV });
        assert_eq!((wc.status, wc.byte_len), (IBV_WC_SUCCESS, 100));
        assert_eq!(wc.flags & !IBV_WC_GRH, if wc.id % 3 == 2 { 0 } else { IBV_WC_WITH_IMM });
        let place = 1000 * wc.id as usize + if written { 20_000 } else { 0 };
        bench.far.check(b.region, place, 100, wc.id);
    }
    assert_eq!(ids(&bench.near.wait(a.send_cq, 9)), (0..9).collect::<Vec<_>>());
}

pub(crate) fn an_immediate_waits_for_its_receive(bench: &mut Bench) {
    let (a, b) = bench.connected(&Shape::open(IBV_QPT_RC), &Tuning { rnr_timer: 1, ..Tuning::OPEN });
    bench.near.fill(a.region, 0, 200, 5);
    bench.near.send(a.qp, Send::write(1, &[a.at(0, 100)], b.spot(0)).immediate(1));
    // Later requests wait as well.
    bench.near.send(a.qp, Send::write(2, &[a.at(100, 100)], b.spot(100)));
    bench.near.send(a.qp, Send::read(3, &[a.at(1000, 200)], b.spot(0)));
    bench.near.quiet(a.send_cq, Duration::from_millis(20));
    bench.far.receive(b.qp, 9, &[]);
    assert_eq!(ids(&bench.near.wait(a.send_cq, 3)), [1, 2, 3]);
    assert_eq!(bench.far.wait_one(b.receive_cq).opcode, IBV_WC_RECV_RDMA_WITH_IMM);
    bench.far.check(b.region, 0, 200, 5);
    bench.near.check(a.region, 1000, 200, 5);
}

pub(crate) fn an_immediate_without_receive_fails_without_retries(bench: &mut Bench) {
    let (a, b) = bench.connected(&Shape::open(IBV_QPT_RC), &Tuning { rnr_retries: 0, ..Tuning::OPEN });
    bench.near.send(a.qp, Send::write(1, &[a.at(0, 100)], b.spot(0)).immediate(1));
    let wc = bench.near.wait_one(a.send_cq);
    assert_eq!((wc.id, wc.status), (1, IBV_WC_RNR_RETRY_EXC_ERR));
    assert_eq!(bench.near.state(a.qp), IBV_QPS_ERR);
    assert_eq!(bench.far.state(b.qp), IBV_QPS_RTS, "the responder has no error");
}

pub(crate) fn uc_drops_an_immediate_that_nobody_awaits(bench: &mut Bench) {
    let (a, b) = bench.connected(&Shape::open(IBV_QPT_UC), &Tuning::OPEN);
    bench.near.send(a.qp, Send::write(1, &[a.at(0, 100)], b.spot(0)).immediate(1));
    done(bench.near.wait_one(a.send_cq), 1, IBV_WC_RDMA_WRITE, a.number);
    bench.far.quiet(b.receive_cq, Duration::from_millis(5));
    bench.far.receive(b.qp, 2, &[]);
    bench.far.quiet(b.receive_cq, Duration::from_millis(5));
    bench.near.send(a.qp, Send::write(2, &[a.at(0, 100)], b.spot(0)).immediate(2));
    assert_eq!(bench.far.wait_one(b.receive_cq).imm, 2);
}

pub(crate) fn an_immediate_can_be_solicited(bench: &mut Bench) {
    let shape = Shape::open(IBV_QPT_RC);
    let channel = bench.far.channel();
    let pd = bench.far.pd();
    let cq = bench.far.cq_on(channel, 64);
    let b = bench.far.side_on(&shape, pd, [cq, cq]);
    let a = bench.near.side(&shape);
    bench.connect(&a, &b, &Tuning::OPEN);
    bench.far.receive(b.qp, 1, &[]);
    bench.far.receive(b.qp, 2, &[]);
    bench.far.arm(cq, true);
    let request = Send::write(1, &[a.at(0, 8)], b.spot(0)).immediate(1);
    bench.near.send(a.qp, request.clone());
    assert_eq!(bench.near.wait_one(a.send_cq).status, IBV_WC_SUCCESS);
    assert!(!bench.far.is_ready(channel, 5));
    bench.near.send(a.qp, request.flag(IBV_SEND_SOLICITED));
    assert_eq!(bench.near.wait_one(a.send_cq).status, IBV_WC_SUCCESS);
    assert!(bench.far.is_ready(channel, 5000));
}

/// When a receive completes, all earlier writes are in memory.
pub(crate) fn writes_arrive_before_the_send_that_follows_them(bench: &mut Bench) {
    for service in [IBV_QPT_RC, IBV_QPT_UC] {
        let (a, b) = bench.connected(&Shape::open(service), &Tuning::OPEN);
        for round in 0..200 {
            let size = 1 + (round as usize * 997) % 12_000;
            bench.near.fill(a.region, 0, 2 * size, round);
            bench.far.receive(b.qp, round, &[b.at(60_000, 8)]);
            let write = Send::write(round, &[a.at(0, size)], b.spot(7)).unsignaled();
            let second = Send::write(round, &[a.at(size, size)], b.spot(7 + size)).unsignaled();
            let send = Send::new(round, &[a.at(0, 8)]);
            assert_eq!(bench.near.try_send(a.qp, &[write, second, send]), (0, None));
            assert_eq!(bench.far.wait_one(b.receive_cq).status, IBV_WC_SUCCESS);
            bench.far.check(b.region, 7, 2 * size, round);
            done(bench.near.wait_one(a.send_cq), round, IBV_WC_SEND, a.number);
        }
    }
}

/// The target calls no verb.
pub(crate) fn a_write_shows_to_whoever_watches_memory(bench: &mut Bench) {
    for own_memory in [false, true] {
        let shape = Shape { own_memory, bytes: 1 << 20, ..Shape::open(IBV_QPT_RC) };
        let (a, b) = bench.connected(&shape, &Tuning::OPEN);
        let near = &mut bench.near;
        let far = &mut bench.far;
        for (seed, size) in (1..).zip([1, 8, 9, 100, 5000, 100_000]) {
            far.fill(b.region, 0, size, 1000 + seed);
            near.fill(a.region, 0, size, seed);
            let last = near.read(a.region, size - 1, 1)[0];
            if far.read(b.region, size - 1, 1)[0] == last {
                continue; // The watcher would return at once.
            }
            let words = [b.region as u64, 0, size as u64, u64::from(last), MS];
            std::thread::scope(|scope| {
                let watcher = scope.spawn(|| far.errno(op::AWAIT, &words));
                near.send(a.qp, Send::write(seed, &[a.at(0, size)], b.spot(0)));
                done(near.wait_one(a.send_cq), seed, IBV_WC_RDMA_WRITE, a.number);
                assert_eq!(watcher.join().expect("the watcher"), 0, "{size} bytes");
            });
            far.check(b.region, 0, size, seed);
        }
    }
}

fn volleys(bench: &mut Bench, service: ibv_qp_type, own_memory: bool) {
    let largest = 1 << 20;
    let shape = Shape { own_memory, bytes: 2 * largest, ..Shape::open(service) };
    for (size, rounds) in
        [(2, 2000), (8, 2000), (64, 2000), (100, 1000), (4096, 500), (20_000, 200), (largest, 10)]
    {
        let (a, b) = bench.connected(&shape, &Tuning::OPEN);
        let words = |own: &Side, to: Remote, begins: u64| {
            let numbers = [own.qp, own.send_cq, own.region, size].map(|w| w as u64);
            [&numbers[..], &[rounds, begins, to.addr, u64::from(to.key), MS]].concat()
        };
        let first = words(&a, b.spot(size), 1);
        let second = words(&b, a.spot(size), 0);
        let near = &mut bench.near;
        let far = &mut bench.far;
        std::thread::scope(|scope| {
            let other = scope.spawn(|| far.call(op::VOLLEY, &second));
            assert_eq!(near.call(op::VOLLEY, &first), [0, rounds], "rounds of {size} B");
            assert_eq!(other.join().expect("the far node"), [0, rounds], "rounds of {size} B");
        });
    }
}

pub(crate) fn rc_volleys_show_their_last_byte_last(bench: &mut Bench) {
    volleys(bench, IBV_QPT_RC, false);
}

pub(crate) fn uc_volleys_show_their_last_byte_last(bench: &mut Bench) {
    volleys(bench, IBV_QPT_UC, false);
}

pub(crate) fn own_memory_shows_its_last_byte_last(bench: &mut Bench) {
    volleys(bench, IBV_QPT_RC, true);
}

pub(crate) fn an_inline_write_leaves_its_buffer_at_once(bench: &mut Bench) {
    for service in [IBV_QPT_RC, IBV_QPT_UC] {
        let (a, b) = bench.connected(&Shape::open(service), &Tuning::OPEN);
        for id in 0..4 {
            bench.near.fill(a.region, 0, 64, id);
            let mut element = a.at(0, 64);
            element[3] = 0xdead_be00; // The program copies inline data, so its key is not checked.
            let request = Send::write(id, &[element], b.spot(64 * id as usize));
            bench.near.send(a.qp, request.flag(IBV_SEND_INLINE));
            bench.near.fill(a.region, 0, 64, 99);
        }
        let found = bench.near.wait(a.send_cq, 4);
        assert!(found.iter().all(|wc| wc.status == IBV_WC_SUCCESS), "{found:?}");
        bench.settle(&a, &b);
        for id in 0..4 {
            bench.far.check(b.region, 64 * id as usize, 64, id);
        }
    }
}

/// IBTA volume 1, section 9.7.4.1.5: without bytes, neither the key nor the address is checked.
pub(crate) fn no_bytes_need_no_key(bench: &mut Bench) {
    let (a, b) = bench.connected(&Shape::open(IBV_QPT_RC), &Tuning::OPEN);
    let nowhere = Remote { addr: u64::MAX - 1, key: 0xdead_be00 };
    for (id, elements) in (0..).zip([vec![], vec![a.at(0, 0)]]) {
        bench.near.send(a.qp, Send::write(id, &elements, nowhere));
        done(bench.near.wait_one(a.send_cq), id, IBV_WC_RDMA_WRITE, a.number);
        bench.near.send(a.qp, Send::read(id, &elements, nowhere));
        let wc = bench.near.wait_one(a.send_cq);
        done(wc, id, IBV_WC_RDMA_READ, a.number);
        assert_eq!(wc.byte_len, 0);
        bench.far.receive(b.qp, id, &[]);
        bench.near.send(a.qp, Send::write(id, &elements, nowhere).immediate(3));
        assert_eq!(bench.far.wait_one(b.receive_cq).byte_len, 0);
        bench.near.wait_one(a.send_cq);
    }
}

pub(crate) fn a_queue_pair_reaches_its_own_memory(bench: &mut Bench) {
    for own_memory in [false, true] {
        let shape = Shape { own_memory, ..Shape::open(IBV_QPT_RC) };
        let side = bench.far.side(&shape);
        bench.far.connect_to(&side, side.number, side.gid, &Tuning::OPEN);
        bench.far.fill(side.region, 0, 20_000, 6);
        bench.far.receive(side.qp, 9, &[]);
        bench.far.send(side.qp, Send::write(1, &[side.at(0, 20_000)], side.spot(20_000)).immediate(1));
        bench.far.send(side.qp, Send::read(2, &[side.at(40_000, 20_000)], side.spot(20_000)));
        let found = bench.far.wait(side.send_cq, 2);
        done(found[0], 1, IBV_WC_RDMA_WRITE, side.number);
        done(found[1], 2, IBV_WC_RDMA_READ, side.number);
        assert_eq!(bench.far.wait_one(side.receive_cq).byte_len, 20_000);
        bench.far.check(side.region, 40_000, 20_000, 6);
    }
}

/// A fenced send after a read sends the data of the read (IBTA vol. 1, section 10.8.3), also if the
/// read itself waits for a send whose receiver is not ready.
pub(crate) fn a_fenced_send_takes_what_the_read_has_brought(bench: &mut Bench) {
    let (a, b) = bench.connected(&Shape::open(IBV_QPT_RC), &Tuning::OPEN);
    for round in 0..20_u64 {
        let size = 1 + (round as usize * 397) % 4000;
        let waits = round % 2 == 0;
        bench.far.fill(b.region, 0, size, round);
        bench.near.fill(a.region, 0, size, 1000 + round);
        let mut requests = vec![Send::new(1, &[a.at(8192, 8)])];
        requests.push(Send::read(2, &[a.at(0, size)], b.spot(0)));
        requests.push(Send::new(3, &[a.at(0, size)]).flag(IBV_SEND_FENCE));
        if !waits {
            bench.far.receive(b.qp, 1, &[b.at(8192, 8)]);
        }
        assert_eq!(bench.near.try_send(a.qp, &requests), (0, None));
        if waits {
            bench.near.quiet(a.send_cq, Duration::from_millis(1));
            bench.far.receive(b.qp, 1, &[b.at(8192, 8)]);
        }
        bench.far.receive(b.qp, 3, &[b.at(16384, 4096)]);
        for (id, wc) in (1..).zip(bench.near.wait(a.send_cq, 3)) {
            assert_eq!((wc.id, wc.status), (id, IBV_WC_SUCCESS), "round {round}");
        }
        bench.far.wait(b.receive_cq, 2);
        bench.far.check(b.region, 16384, size, round);
    }
}

/// Requests of all kinds complete in the order of posting, and a read returns the data of earlier
/// writes.
pub(crate) fn a_read_sees_the_writes_before_it(bench: &mut Bench) {
    let shape = Shape { sends: 64, ..Shape::open(IBV_QPT_RC) };
    let (a, b) = bench.connected(&shape, &Tuning { depth: 4, resources: 4, ..Tuning::OPEN });
    for round in 0..50 {
        let mut requests = Vec::new();
        for id in 0..16 {
            let size = 1 + (id * 331 + round) % 1500;
            let at = 2000 * id;
            bench.near.fill(a.region, at, size, (round * 16 + id) as u64);
            let spot = b.spot(at + round % 8);
            let write = Send::write(2 * id as u64, &[a.at(at, size)], spot);
            requests.push(write);
            let read = Send::read(2 * id as u64 + 1, &[a.at(33_000 + at, size)], spot);
            requests.push(if round % 2 == 0 { read } else { read.flag(IBV_SEND_FENCE) });
        }
        assert_eq!(bench.near.try_send(a.qp, &requests), (0, None));
        for (id, wc) in (0..).zip(bench.near.wait(a.send_cq, 32)) {
            let opcode = if id % 2 == 0 { IBV_WC_RDMA_WRITE } else { IBV_WC_RDMA_READ };
            done(wc, id, opcode, a.number);
        }
        for id in 0..16 {
            let size = 1 + (id * 331 + round) % 1500;
            let at = 2000 * id;
            bench.near.check(a.region, 33_000 + at, size, (round * 16 + id) as u64);
        }
    }
}

pub(crate) fn unsignaled_requests_do_not_complete(bench: &mut Bench) {
    let (a, b) = bench.connected(&Shape::open(IBV_QPT_RC), &Tuning::OPEN);
    let word = a.at(4096, 8);
    bench.near.fill(a.region, 0, 64, 1);
    bench.near.send(a.qp, Send::write(1, &[a.at(0, 64)], b.spot(0)).unsignaled());
    bench.near.send(a.qp, Send::read(2, &[a.at(64, 64)], b.spot(0)).unsignaled());
    bench.near.send(a.qp, Send::fetch_add(3, word, b.spot(4096), 1).unsignaled());
    bench.near.quiet(a.send_cq, Duration::from_millis(5));
    bench.near.send(a.qp, Send::compare_swap(4, word, b.spot(4096), 1, 2));
    done(bench.near.wait_one(a.send_cq), 4, IBV_WC_COMP_SWAP, a.number);
    bench.near.check(a.region, 64, 64, 1);
    assert_eq!(bench.near.read(a.region, 4096, 8), 1_u64.to_ne_bytes());
}
