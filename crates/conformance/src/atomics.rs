//! Compare-and-swap and fetch-and-add.

use verbs::abi::*;

use crate::rig::{op, pattern};
use crate::{Bench, Node, PATIENCE, Send, Shape, Side, Tuning};

/// Executes an atomic whose result goes to byte 16 of the near node's region. Returns the result:
/// the value before the operation.
#[track_caller]
fn before(bench: &mut Bench, a: &Side, request: Send) -> u64 {
    let id = request.id;
    let adds = request.opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
    bench.near.fill(a.region, 0, 64, 3);
    bench.near.send(a.qp, request);
    let wc = bench.near.wait_one(a.send_cq);
    let opcode = if adds { IBV_WC_FETCH_ADD } else { IBV_WC_COMP_SWAP };
    assert_eq!((wc.id, wc.status, wc.opcode), (id, IBV_WC_SUCCESS, opcode));
    assert_eq!(wc.byte_len, 8, "bytes of an atomic");
    bench.near.check(a.region, 0, 16, 3);
    bench.near.check_from(a.region, 24, 40, 3, 24);
    bench.near.word(a.region, 16)
}

fn answers(bench: &mut Bench, own_memory: bool) {
    let shape = Shape { own_memory, ..Shape::open(IBV_QPT_RC) };
    let (a, b) = bench.connected(&shape, &Tuning::OPEN);
    let local = a.at(16, 8);
    let spot = b.spot(4096);
    bench.far.fill(b.region, 4088, 24, 8);
    bench.far.put(b.region, 4096, 40);
    assert_eq!(before(bench, &a, Send::fetch_add(1, local, spot, 2)), 40);
    assert_eq!(before(bench, &a, Send::fetch_add(2, local, spot, 0)), 42);
    assert_eq!(before(bench, &a, Send::compare_swap(3, local, spot, 41, 7)), 42, "not this value");
    assert_eq!(before(bench, &a, Send::compare_swap(4, local, spot, 42, u64::MAX)), 42, "this value");
    assert_eq!(before(bench, &a, Send::fetch_add(5, local, spot, 3)), u64::MAX);
    assert_eq!(bench.far.word(b.region, 4096), 2, "the sum wraps around");
    assert_eq!(before(bench, &a, Send::fetch_add(6, local, spot, u64::MAX)), 2);
    assert_eq!(before(bench, &a, Send::compare_swap(7, local, spot, 1, 1 << 40)), 1);
    assert_eq!(bench.far.word(b.region, 4096), 1 << 40);
    bench.far.check(b.region, 4088, 8, 8);
    bench.far.check_from(b.region, 4104, 8, 8, 16);
}

pub(crate) fn atomics_answer_with_what_was_there(bench: &mut Bench) {
    answers(bench, false);
}

pub(crate) fn atomics_reach_own_memory_as_well(bench: &mut Bench) {
    answers(bench, true);
}

/// The milliseconds for which nodes count: much longer than it takes them all to start.
const TIME_MS: u64 = 40;

/// The words of a count: see `Rig::count`.
fn count(side: &Side, to: &Side, by_swap: bool) -> Vec<u64> {
    let spot = to.spot(64);
    let mut words: Vec<u64> = [side.qp, side.send_cq, side.region, 8].map(|w| w as u64).to_vec();
    words.extend([spot.addr, u64::from(spot.key), TIME_MS, u64::from(by_swap), PATIENCE.as_millis() as u64]);
    words
}

/// Three nodes, including the owner of the memory, count in one word at once. Each number is seen
/// once.
fn contention(bench: &mut Bench, own_memory: bool, by_swap: bool) {
    let shape = Shape { own_memory, ..Shape::open(IBV_QPT_RC) };
    let mut third = bench.another();
    let near = &mut bench.near;
    let far = &mut bench.far;
    let first = near.side(&shape);
    let second = third.side(&shape);
    let owner = far.side(&shape);
    for (node, side) in [(&mut *near, &first), (&mut third, &second)] {
        let served = far.side_with(&shape, owner.pd, [owner.send_cq, owner.receive_cq], owner.region);
        node.connect_to(side, served.number, served.gid, &Tuning::OPEN);
        far.connect_to(&served, side.number, side.gid, &Tuning::OPEN);
    }
    far.connect_to(&owner, owner.number, owner.gid, &Tuning::OPEN);
    let run = |node: &mut Node, side: &Side| node.call(op::COUNT, &count(side, &owner, by_swap));
    let counts = std::thread::scope(|scope| {
        let others = [scope.spawn(|| run(near, &first)), scope.spawn(|| run(&mut third, &second))];
        let own = run(far, &owner);
        let [first, second] = others.map(|thread| thread.join().expect("a counter"));
        [own, first, second]
    });
    // A swap may always fail because other nodes are faster; an addition never fails.
    assert!(counts.iter().all(|count| by_swap || count[1] > 0), "{counts:?}");
    let additions: u64 = counts.iter().map(|count| count[1]).sum();
    assert_eq!(far.word(owner.region, 64), additions);
    let sum = counts.iter().fold(0_u64, |sum, count| sum.wrapping_add(count[2]));
    assert_eq!(sum, additions * (additions - 1) / 2, "the values before each addition");
    third.close();
}

pub(crate) fn additions_of_all_ends_count(bench: &mut Bench) {
    contention(bench, false, false);
}

pub(crate) fn additions_in_own_memory_count(bench: &mut Bench) {
    contention(bench, true, false);
}

pub(crate) fn swaps_of_all_ends_count(bench: &mut Bench) {
    contention(bench, false, true);
}

pub(crate) fn swaps_in_own_memory_count(bench: &mut Bench) {
    contention(bench, true, true);
}

/// IBTA volume 1, section 9.4.5: the address is a multiple of eight. Either the device checks this
/// when the request is posted, or the responder does.
pub(crate) fn a_misaligned_word_is_refused(bench: &mut Bench) {
    for (own_memory, adds, offset) in [(false, true, 1), (false, false, 4), (true, true, 4), (true, false, 7)]
    {
        let shape = Shape { own_memory, ..Shape::open(IBV_QPT_RC) };
        let (a, b) = bench.connected(&shape, &Tuning::OPEN);
        bench.far.fill(b.region, 0, 64, 5);
        bench.far.receive(b.qp, 1, &[]);
        let local = a.at(0, 8);
        let spot = b.spot(16 + offset);
        let found = u64::from_ne_bytes(std::array::from_fn(|i| pattern(5, 16 + offset + i)));
        let request = if adds {
            Send::fetch_add(1, local, spot, 1)
        } else {
            Send::compare_swap(1, local, spot, found, 1)
        };
        match bench.near.try_send(a.qp, &[request]) {
            (0, None) => {
                assert_eq!(bench.near.wait_one(a.send_cq).status, IBV_WC_REM_INV_REQ_ERR);
                assert_eq!(bench.far.wait_one(b.receive_cq).status, IBV_WC_WR_FLUSH_ERR);
                assert_eq!(bench.far.state(b.qp), IBV_QPS_ERR);
            }
            refused => assert_eq!(refused, (libc::EINVAL, Some(0))),
        }
        bench.far.check(b.region, 0, 64, 5);
    }
}

/// The result has eight bytes. A device detects a too short element when the request is posted or
/// when the result arrives.
pub(crate) fn an_answer_needs_room(bench: &mut Bench) {
    for element in [None, Some(4)] {
        let (a, b) = bench.connected(&Shape::open(IBV_QPT_RC), &Tuning::OPEN);
        let mut request = Send::fetch_add(1, a.at(0, 8), b.spot(0), 1);
        request.elements = element.map(|len| a.at(0, len)).into_iter().collect();
        bench.near.fill(a.region, 0, 64, 5);
        match bench.near.try_send(a.qp, &[request]) {
            (0, None) => {
                assert_eq!(bench.near.wait_one(a.send_cq).status, IBV_WC_LOC_LEN_ERR);
                assert_eq!(bench.near.state(a.qp), IBV_QPS_ERR);
            }
            refused => assert_eq!(refused, (libc::EINVAL, Some(0))),
        }
        bench.near.check(a.region, 0, 64, 5);
    }
}
