//! softdev between processes: what a killed process leaves behind, how two busy ones affect each
//! other, and what an unprivileged user can do.

use std::os::unix::process::CommandExt;
use std::process::Command;
use std::time::{Duration, Instant};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use softdev::PROVIDER;
use verbs::abi::*;

use conformance::node::{peer, serve};
use conformance::rig::{self, op};
use conformance::runner::{Trial, run};
use conformance::subject::Origin;
use conformance::{Node, PATIENCE, QKEY, Send, Shape, Side, Subject, Tuning};

const SIZE: usize = 64 << 10;

fn main() {
    if peer().is_some() {
        serve(&subject());
        return;
    }
    let trial = |name: &str, run: fn()| Trial { name: name.to_owned(), skipped: None, run: Box::new(run) };
    run(&[
        trial(
            "a_killed_receiver_exhausts_the_senders_retries",
            a_killed_receiver_exhausts_the_senders_retries,
        ),
        trial("a_killed_sender_leaves_a_receiver_that_works", a_killed_sender_leaves_a_receiver_that_works),
        trial("killed_senders_of_datagrams_disturb_no_others", killed_senders_of_datagrams_disturb_no_others),
        trial("a_killed_sleeper_does_no_harm", a_killed_sleeper_does_no_harm),
        trial("a_dead_owner_of_events_harms_nobody", a_dead_owner_of_events_harms_nobody),
        trial("a_killed_target_exhausts_the_retries", a_killed_target_exhausts_the_retries),
        trial("a_killed_counter_holds_nobody_up", a_killed_counter_holds_nobody_up),
        trial("the_owners_cpu_counts_as_well", the_owners_cpu_counts_as_well),
        trial("two_busy_processes_exchange_whole_messages", two_busy_processes_exchange_whole_messages),
        trial("two_processes_reach_each_others_own_memory", two_processes_reach_each_others_own_memory),
        trial("sleeping_processes_wake_each_other", sleeping_processes_wake_each_other),
        trial("a_sender_without_descriptors_wakes_its_peer", a_sender_without_descriptors_wakes_its_peer),
        trial("nobody_can_use_the_device", nobody_can_use_the_device),
        trial("users_are_strangers", users_are_strangers),
        // The last trial, since it maps the arenas of all other processes of this host.
        trial("killed_members_of_a_group_are_forgotten", killed_members_of_a_group_are_forgotten),
    ]);
}

fn subject() -> Subject {
    Subject { provider: &PROVIDER, device: "softdev0".to_owned(), origin: Origin::default() }
}

fn near() -> Node {
    Node::local(&subject())
}

fn far() -> Node {
    Node::remote(&subject())
}

fn shape() -> Shape {
    Shape { bytes: 2 * 8 * (SIZE + 64) + SIZE, entries: 256, ..Shape::of(IBV_QPT_RC) }
}

/// A request without an answer ends soon: after 16.8 ms for each attempt.
const TUNING: Tuning =
    Tuning { mtu: IBV_MTU_4096, timeout: 12, retries: 1, rnr_timer: 1, psn: 7, ..Tuning::OPEN };

fn connect(near: &mut Node, a: &Side, far: &mut Node, b: &Side) {
    for (node, side) in [(&mut *near, a), (&mut *far, b)] {
        node.init(side, &TUNING);
    }
    near.ready_to_receive(a, b.number, b.gid, &TUNING);
    far.ready_to_receive(b, a.number, a.gid, &TUNING);
    near.ready_to_send(a, &TUNING);
    far.ready_to_send(b, &TUNING);
}

/// The words of an exchange: see `Rig::exchange`.
fn exchange_words(side: &Side, size: usize, counts: [u64; 2], idle_ms: u64) -> Vec<u64> {
    let mut words: Vec<u64> =
        [side.qp, side.send_cq, side.receive_cq, side.region, size, 8].map(|w| w as u64).to_vec();
    words.extend(counts);
    words.extend([idle_ms, 0, 0, 0]);
    words
}

/// Exchanges messages. Returns how many were sent and received, and the status that ended the
/// exchange.
#[track_caller]
fn exchange(node: &mut Node, words: &[u64]) -> (u64, u64, ibv_wc_status) {
    let answer = node.call(op::EXCHANGE, words);
    (answer[1], answer[2], answer[3] as u32)
}

/// Returns a different time for each round, from before the first message on.
fn moment(round: u64) -> Duration {
    Duration::from_micros(round.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40 & 0xfff)
}

/// Returns the number of arenas that this process has mapped.
fn arenas() -> usize {
    let maps = std::fs::read_to_string("/proc/self/maps").expect("a process sees its mappings");
    maps.lines().filter(|line| line.contains("memfd:rdmascope-softdev")).count()
}

/// Checks that nothing of an ended peer is left: only this process's own arena and its descriptors
/// from before.
fn assert_nothing_left(descriptors: usize) {
    // A look for new peers drops old ones.
    let mut node = near();
    node.side(&Shape::of(IBV_QPT_RC));
    assert_eq!(arenas(), 1, "arenas of dead peers are mapped");
    node.close();
    assert_eq!(rig::descriptors(), descriptors, "descriptors");
    let shared = std::fs::read_dir("/dev/shm").map(|entries| entries.flatten().collect::<Vec<_>>());
    let names = shared.unwrap_or_default();
    let ours = names.iter().find(|entry| entry.file_name().to_string_lossy().contains("softdev"));
    assert!(ours.is_none(), "{ours:?} is left");
}

fn descriptors_at_rest() -> usize {
    near().side(&Shape::of(IBV_QPT_RC));
    rig::descriptors()
}

fn a_killed_receiver_exhausts_the_senders_retries() {
    let descriptors = descriptors_at_rest();
    for round in 0..25 {
        let mut near = near();
        let mut far = far();
        let a = near.side(&shape());
        let b = far.side(&shape());
        connect(&mut near, &a, &mut far, &b);
        far.start(op::EXCHANGE, &exchange_words(&b, SIZE, [0, u64::MAX >> 1], 60_000));
        let killer = std::thread::spawn(move || {
            std::thread::sleep(moment(round));
            far.kill();
        });
        let start = Instant::now();
        let (_, _, status) = exchange(&mut near, &exchange_words(&a, SIZE, [u64::MAX >> 1, 0], 15_000));
        assert_eq!(status, IBV_WC_RETRY_EXC_ERR, "round {round} after {:?}", start.elapsed());
        killer.join().expect("the killer");
        assert_eq!(near.state(a.qp), IBV_QPS_ERR);
        works_with_a_fresh_peer(&mut near);
        near.close();
    }
    assert_nothing_left(descriptors);
}

fn works_with_a_fresh_peer(near: &mut Node) {
    let mut far = far();
    let a = near.side(&shape());
    let b = far.side(&shape());
    connect(near, &a, &mut far, &b);
    far.start(op::EXCHANGE, &exchange_words(&b, SIZE, [20, 20], 15_000));
    assert_eq!(exchange(near, &exchange_words(&a, SIZE, [20, 20], 15_000)), (20, 20, IBV_WC_SUCCESS));
    assert_eq!(far.finish(op::EXCHANGE, &[]), [0, 20, 20, 0]);
}

fn a_killed_sender_leaves_a_receiver_that_works() {
    let descriptors = descriptors_at_rest();
    for round in 0..25 {
        let mut near = near();
        let mut far = far();
        let a = near.side(&shape());
        let b = far.side(&shape());
        connect(&mut near, &a, &mut far, &b);
        far.start(op::EXCHANGE, &exchange_words(&b, SIZE, [u64::MAX >> 1, 0], 60_000));
        let killer = std::thread::spawn(move || {
            std::thread::sleep(moment(round));
            far.kill();
        });
        // Every message that arrives is whole; then nothing arrives.
        let words = exchange_words(&a, SIZE, [0, u64::MAX >> 1], 30);
        let (_, _, status) = exchange(&mut near, &words);
        killer.join().expect("the killer");
        assert_eq!(status, IBV_WC_SUCCESS);
        // Eight receives are posted, whatever has happened to them; each completes once when the
        // queue pair fails.
        near.change_state(a.qp, IBV_QPS_ERR);
        let mut left = near.wait(a.receive_cq, 8);
        left.retain(|wc| wc.status != IBV_WC_SUCCESS);
        assert!(left.iter().all(|wc| wc.status == IBV_WC_WR_FLUSH_ERR), "round {round}: {left:?}");
        near.quiet(a.receive_cq, Duration::from_millis(1));
        works_with_a_fresh_peer(&mut near);
        near.close();
    }
    assert_nothing_left(descriptors);
}

fn killed_senders_of_datagrams_disturb_no_others() {
    let descriptors = descriptors_at_rest();
    let mut near = near();
    let shape = Shape { receives: 2, bytes: 1 << 20, ..Shape::of(IBV_QPT_UD) };
    let side = near.side(&shape);
    let own = near.side(&shape);
    for side in [&side, &own] {
        near.connect_to(side, 0, side.gid, &TUNING);
    }
    let handle = near.handle(own.pd, side.gid);
    for id in 0..2 {
        near.receive(side.qp, id, &[side.at(id as usize * 8192, 8192)]);
    }
    for round in 0..25 {
        let mut far = far();
        let b = far.side(&shape);
        far.connect_to(&b, 0, b.gid, &TUNING);
        let to = far.handle(b.pd, side.gid) as u64;
        let mut words = exchange_words(&b, 4096, [u64::MAX >> 1, 0], 60_000);
        words.splice(9.., [to + 1, u64::from(side.number), u64::from(QKEY)]);
        far.start(op::EXCHANGE, &words);
        let start = Instant::now();
        while start.elapsed() < moment(round) {
            repost(&mut near, &side);
        }
        far.kill();
        // Other senders' datagrams still arrive: none is lost for ever.
        let start = Instant::now();
        loop {
            assert!(start.elapsed() < PATIENCE, "the receiver is deaf in round {round}");
            near.send(own.qp, Send::new(1, &[own.at(0, 100)]).to(handle, side.number, QKEY));
            near.wait_one(own.send_cq);
            if repost(&mut near, &side).contains(&own.number) {
                break;
            }
        }
    }
    // Both receives are still there.
    while !repost(&mut near, &side).is_empty() {}
    for _ in 0..2 {
        near.send(own.qp, Send::new(1, &[own.at(0, 100)]).to(handle, side.number, QKEY));
    }
    let start = Instant::now();
    let mut got = 0;
    while got < 2 {
        assert!(start.elapsed() < PATIENCE, "a receive is lost");
        got += near.poll(side.receive_cq, 2).len();
    }
    near.close();
    assert_nothing_left(descriptors);
}

/// Posts completed receives again; returns their senders.
fn repost(near: &mut Node, side: &Side) -> Vec<u32> {
    let found = near.poll(side.receive_cq, 2);
    for wc in &found {
        assert_eq!(wc.status, IBV_WC_SUCCESS);
        near.receive(side.qp, wc.id, &[side.at(wc.id as usize * 8192, 8192)]);
    }
    found.iter().map(|wc| wc.src_qp).collect()
}

fn a_killed_sleeper_does_no_harm() {
    let descriptors = descriptors_at_rest();
    for _ in 0..10 {
        let mut near = near();
        let mut far = far();
        let channel = far.channel();
        let pd = far.pd();
        let cq = far.cq_on(channel, 64);
        let b = far.side_on(&Shape::of(IBV_QPT_RC), pd, [cq, cq]);
        let a = near.side(&shape());
        connect(&mut near, &a, &mut far, &b);
        far.receive(b.qp, 1, &[b.at(0, 64)]);
        far.receive(b.qp, 2, &[b.at(0, 64)]);
        // The first event makes the channel known to the sender; the second one is for a dead
        // sleeper.
        far.arm(cq, false);
        near.send(a.qp, Send::new(1, &[a.at(0, 8)]));
        assert_eq!(far.call(op::EVENT, &[channel as u64]), [0, cq as u64]);
        far.arm(cq, false);
        far.start(op::EVENT, &[channel as u64]);
        far.kill();
        near.send(a.qp, Send::new(2, &[a.at(0, 8)]));
        near.send(a.qp, Send::new(3, &[a.at(0, 8)]));
        let sent = near.wait(a.send_cq, 3);
        assert_eq!(sent[2].status, IBV_WC_RETRY_EXC_ERR, "{sent:?}");
        near.close();
    }
    assert_nothing_left(descriptors);
}

/// Other members of the group continue, and nothing of a dead one is kept.
fn killed_members_of_a_group_are_forgotten() {
    let mut blocks = Vec::new();
    let mut near = near();
    let group = [0xff12_0000_0000_0000, u64::from(std::process::id()) | 1 << 40];
    let from = near.side(&Shape::of(IBV_QPT_UD));
    let own = near.side(&Shape::of(IBV_QPT_UD));
    for side in [&from, &own] {
        near.connect_to(side, 0, side.gid, &TUNING);
    }
    let words = |side: &Side| [side.qp as u64, group[0], group[1]];
    assert_eq!(near.errno(op::ATTACH, &words(&own)), 0);
    let handle = near.handle(from.pd, group);
    for round in 0..12 {
        let mut far = far();
        let side = far.side(&Shape::of(IBV_QPT_UD));
        blocks.push(side.number >> 12);
        far.connect_to(&side, 0, side.gid, &TUNING);
        assert_eq!(far.errno(op::ATTACH, &words(&side)), 0);
        far.receive(side.qp, 1, &[side.at(0, 4096)]);
        let send = |near: &mut Node| {
            near.receive(own.qp, 1, &[own.at(0, 4096)]);
            near.send(from.qp, Send::new(1, &[from.at(0, 64)]).to(handle, 0xff_ffff, QKEY));
            for cq in [from.send_cq, own.receive_cq] {
                assert_eq!(near.wait_one(cq).status, IBV_WC_SUCCESS, "round {round}");
            }
        };
        send(&mut near);
        assert_eq!(far.wait_one(side.receive_cq).status, IBV_WC_SUCCESS, "round {round}");
        far.kill();
        send(&mut near);
    }
    assert_eq!(near.errno(op::DETACH, &words(&own)), 0);
    near.close();
    // A look for new peers drops old ones.
    self::near().side(&Shape::of(IBV_QPT_RC));
    let maps = std::fs::read_to_string("/proc/self/maps").expect("a process sees its mappings");
    let kept = |block: &u32| maps.contains(&format!("memfd:rdmascope-softdev-{block} "));
    assert!(!blocks.iter().any(kept), "arenas of dead members are mapped");
}

/// Neither before the owner's pipe is known nor after.
fn a_dead_owner_of_events_harms_nobody() {
    let descriptors = descriptors_at_rest();
    for is_known in [false, true] {
        let mut near = near();
        let mut far = far();
        let pairs = [0, 1].map(|_| {
            let a = near.side(&Shape::open(IBV_QPT_RC));
            let b = far.side(&Shape::open(IBV_QPT_RC));
            connect(&mut near, &a, &mut far, &b);
            (a, b)
        });
        let violate = |near: &mut Node, (a, b): (Side, Side)| {
            near.send(a.qp, Send::write(1, &[a.at(0, 8)], b.spot(0).by(b.spot(0).key ^ 0xff00)));
            near.wait_one(a.send_cq).status
        };
        if is_known {
            assert_eq!(violate(&mut near, pairs[0]), IBV_WC_REM_ACCESS_ERR);
            assert!(far.is_alarmed(900));
        }
        far.kill();
        let status = violate(&mut near, pairs[1]);
        assert!([IBV_WC_REM_ACCESS_ERR, IBV_WC_RETRY_EXC_ERR].contains(&status), "status {status}");
        near.close();
    }
    assert_nothing_left(descriptors);
}

/// A requester that accesses the memory of a dead process learns of the death, although the memory
/// still exists.
fn a_killed_target_exhausts_the_retries() {
    let descriptors = descriptors_at_rest();
    for round in 0..32_u64 {
        let mut near = near();
        let mut far = far();
        let shape = Shape { own_memory: round & 1 == 1, ..Shape::open(IBV_QPT_RC) };
        let a = near.side(&shape);
        let b = far.side(&shape);
        connect(&mut near, &a, &mut far, &b);
        let killer = std::thread::spawn(move || {
            std::thread::sleep(moment(round));
            far.kill();
        });
        let size = if round & 2 == 0 { 8 } else { 60_000 };
        let request = match round % 5 {
            0 => Send::read(1, &[a.at(0, size)], b.spot(0)),
            1 => Send::fetch_add(1, a.at(0, 8), b.spot(0), 1),
            _ => Send::write(1, &[a.at(0, size)], b.spot(0)),
        };
        let start = Instant::now();
        let status = loop {
            near.send(a.qp, request.clone());
            match near.wait_one(a.send_cq).status {
                IBV_WC_SUCCESS => assert!(start.elapsed() < PATIENCE, "round {round}: death not noticed"),
                status => break status,
            }
        };
        assert_eq!(status, IBV_WC_RETRY_EXC_ERR, "round {round}");
        killer.join().expect("the killer");
        assert_eq!(near.state(a.qp), IBV_QPS_ERR);
        works_with_a_fresh_peer(&mut near);
        near.close();
    }
    assert_nothing_left(descriptors);
}

/// The words of a count in a word of `to`: see `Rig::count`.
fn count_words(side: &Side, to: &Side, ms: u64) -> Vec<u64> {
    let spot = to.spot(64);
    let mut words: Vec<u64> = [side.qp, side.send_cq, side.region, 8].map(|w| w as u64).to_vec();
    words.extend([spot.addr, u64::from(spot.key), ms, 0, 15_000]);
    words
}

/// A process that is killed in the middle of an atomic, even one that holds a lock, does not block
/// the atomics of others.
fn a_killed_counter_holds_nobody_up() {
    let descriptors = descriptors_at_rest();
    for round in 0..24 {
        let mut near = near();
        let mut far = far();
        let shape = Shape { own_memory: round % 4 != 0, ..Shape::open(IBV_QPT_RC) };
        let a = near.side(&shape);
        let b = far.side(&shape);
        connect(&mut near, &a, &mut far, &b);
        let own = near.side_with(&shape, a.pd, [a.send_cq, a.receive_cq], a.region);
        near.connect_to(&own, own.number, own.gid, &TUNING);
        far.start(op::COUNT, &count_words(&b, &a, 60_000));
        // It is counting when it is killed.
        let start = Instant::now();
        while near.word(a.region, 64) == 0 {
            assert!(start.elapsed() < PATIENCE, "the far node counts nothing");
        }
        std::thread::sleep(moment(round));
        far.kill();
        let before = near.word(a.region, 64);
        let counted = near.call(op::COUNT, &count_words(&own, &a, 20));
        assert!(counted[1] > 0, "round {round}");
        assert_eq!(near.word(a.region, 64), before + counted[1], "round {round}");
        near.close();
    }
    assert_nothing_left(descriptors);
}

/// In memory of the device, atomics of peers and of the owner's CPU count together, which is more
/// than the device promises.
fn the_owners_cpu_counts_as_well() {
    let mut near = near();
    let mut far = far();
    let shape = Shape::open(IBV_QPT_RC);
    let a = near.side(&shape);
    let b = far.side(&shape);
    connect(&mut near, &a, &mut far, &b);
    far.start(op::COUNT, &count_words(&b, &a, 200));
    let own = near.call(op::INCREMENT, &[a.region as u64, 64, 200]);
    let others = far.finish(op::COUNT, &[]);
    let additions = own[1] + others[1];
    assert!(own[1] > 0 && others[1] > 0, "{own:?} {others:?}");
    assert_eq!(near.word(a.region, 64), additions);
    assert_eq!(own[2].wrapping_add(others[2]), (0..additions).fold(0, u64::wrapping_add));
    near.close();
    far.close();
}

fn two_busy_processes_exchange_whole_messages() {
    let mut near = near();
    let mut far = far();
    // ThreadSanitizer checks every byte.
    let share = if cfg!(sanitized) { 100 } else { 1 };
    for (service, size, count) in [(IBV_QPT_RC, SIZE, 30_000 / share), (IBV_QPT_RC, 80, 600_000 / share)] {
        let shape = Shape { service, ..shape() };
        let a = near.side(&shape);
        let b = far.side(&shape);
        connect(&mut near, &a, &mut far, &b);
        far.start(op::EXCHANGE, &exchange_words(&b, size, [count, count], 15_000));
        let found = exchange(&mut near, &exchange_words(&a, size, [count, count], 15_000));
        assert_eq!(found, (count, count, IBV_WC_SUCCESS));
        assert_eq!(far.finish(op::EXCHANGE, &[]), [0, count, count, 0]);
    }
    near.close();
    far.close();
}

fn two_processes_reach_each_others_own_memory() {
    let mut near = near();
    let mut far = far();
    let shape = Shape { own_memory: true, ..shape() };
    let a = near.side(&shape);
    let b = far.side(&shape);
    connect(&mut near, &a, &mut far, &b);
    far.start(op::EXCHANGE, &exchange_words(&b, SIZE, [1000, 1000], 15_000));
    let found = exchange(&mut near, &exchange_words(&a, SIZE, [1000, 1000], 15_000));
    assert_eq!(found, (1000, 1000, IBV_WC_SUCCESS));
    assert_eq!(far.finish(op::EXCHANGE, &[]), [0, 1000, 1000, 0]);
    near.close();
    far.close();
}

/// Two processes sleep between messages: each event of one wakes the other.
fn sleeping_processes_wake_each_other() {
    let mut ends = [far(), far()];
    let sides = ends.each_mut().map(|node| {
        let channel = node.channel();
        let pd = node.pd();
        let send_cq = node.cq(64);
        let receive_cq = node.cq_on(channel, 64);
        (node.side_on(&Shape::of(IBV_QPT_RC), pd, [send_cq, receive_cq]), channel)
    });
    let [first, second] = &mut ends;
    connect(first, &sides[0].0, second, &sides[1].0);
    for round in 0..200 {
        let from = round % 2;
        let to = 1 - round % 2;
        let (side, channel) = sides[to];
        ends[to].receive(side.qp, 1, &[side.at(0, 64)]);
        ends[to].arm(side.receive_cq, false);
        ends[to].start(op::EVENT, &[channel as u64]);
        if round % 10 < 2 {
            std::thread::sleep(Duration::from_millis(2)); // So that it certainly sleeps.
        }
        ends[from].send(sides[from].0.qp, Send::new(1, &[sides[from].0.at(0, 8)]));
        assert_eq!(ends[from].wait_one(sides[from].0.send_cq).status, IBV_WC_SUCCESS);
        assert_eq!(ends[to].finish(op::EVENT, &[]), [0, side.receive_cq as u64]);
        ends[to].errno(op::ACK, &[side.receive_cq as u64, 1]);
        assert_eq!(ends[to].wait_one(side.receive_cq).status, IBV_WC_SUCCESS);
    }
    ends.into_iter().for_each(Node::close);
}

/// A process has used up its descriptors before it first has to wake a peer, for which it would
/// open the peer's pipe.
fn a_sender_without_descriptors_wakes_its_peer() {
    let mut near = near();
    let mut far = far();
    let channel = far.channel();
    let pd = far.pd();
    let cqs = [far.cq(64), far.cq_on(channel, 64)];
    let b = far.side_on(&Shape::of(IBV_QPT_RC), pd, cqs);
    let a = near.side(&Shape::of(IBV_QPT_RC));
    connect(&mut near, &a, &mut far, &b);
    let send = |near: &mut Node, far: &mut Node| {
        far.receive(b.qp, 1, &[b.at(0, 64)]);
        near.send(a.qp, Send::new(1, &[a.at(0, 8)]));
        assert_eq!(near.wait_one(a.send_cq).status, IBV_WC_SUCCESS);
    };
    send(&mut near, &mut far); // Now the two know each other.
    assert_eq!(far.wait_one(b.receive_cq).status, IBV_WC_SUCCESS);
    let before = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: Some(256), ..before }).unwrap();
    let all: Vec<_> = std::iter::from_fn(|| std::fs::File::open("/dev/null").ok()).collect();
    for round in 0..3 {
        far.arm(b.receive_cq, false);
        send(&mut near, &mut far);
        assert!(far.is_ready(channel, 5000), "round {round}: the peer is not woken");
        assert_eq!(far.call(op::EVENT, &[channel as u64]), [0, b.receive_cq as u64]);
        far.errno(op::ACK, &[b.receive_cq as u64, 1]);
        assert_eq!(far.wait_one(b.receive_cq).status, IBV_WC_SUCCESS);
        assert!(std::fs::File::open("/dev/null").is_err(), "there is a descriptor");
    }
    drop(all);
    setrlimit(Resource::Nofile, before).unwrap();
    [near, far].into_iter().for_each(Node::close);
}

const NOBODY: u32 = 65534;

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Starts an unprivileged node: of the user `nobody` if this process is root's.
fn unprivileged() -> Node {
    // Not by its path, which the user `nobody` may be unable to follow.
    let mut command = Command::new("/proc/self/exe");
    command.current_dir("/");
    if is_root() {
        command.uid(NOBODY).gid(NOBODY);
    }
    Node::spawn(command, &subject())
}

fn nobody_can_use_the_device() {
    let mut ends = [unprivileged(), unprivileged()];
    for own_memory in [false, true] {
        let shape = Shape { own_memory, ..shape() };
        let [first, second] = &mut ends;
        let a = first.side(&shape);
        let b = second.side(&shape);
        connect(first, &a, second, &b);
        first.start(op::EXCHANGE, &exchange_words(&a, SIZE, [300, 300], 15_000));
        second.start(op::EXCHANGE, &exchange_words(&b, SIZE, [300, 300], 15_000));
        assert_eq!(first.finish(op::EXCHANGE, &[]), [0, 300, 300, 0]);
        assert_eq!(second.finish(op::EXCHANGE, &[]), [0, 300, 300, 0]);
    }
    ends.into_iter().for_each(Node::close);
}

/// Processes of different users do not see each other, in either direction.
fn users_are_strangers() {
    if !is_root() {
        println!("users_are_strangers needs root to become another user: skipped");
        return;
    }
    let mut ends = [near(), unprivileged()];
    let sides = ends.each_mut().map(|node| node.side(&shape()));
    let [first, second] = &mut ends;
    connect(first, &sides[0], second, &sides[1]);
    for (node, side) in ends.iter_mut().zip(sides) {
        node.receive(side.qp, 1, &[side.at(0, 64)]);
        node.send(side.qp, Send::new(1, &[side.at(0, 8)]));
        assert_eq!(node.wait_one(side.send_cq).status, IBV_WC_RETRY_EXC_ERR);
    }
    ends.into_iter().for_each(Node::close);
}
