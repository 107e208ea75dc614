//! Unreliable datagrams.

use std::time::Duration;

use verbs::abi::*;

use crate::rig::{gid_of, op};
use crate::{Bench, Node, PATIENCE, QKEY, Send, Shape, Side, Tuning};

/// UDP header, base transport header, datagram header, integrity check (RoCE v2 annex; IBTA volume
/// 1, section 9.2).
const RDMA_BYTES: usize = 8 + 12 + 8 + 4;

pub(crate) fn header_names_both_ends(bench: &mut Bench) {
    let (a, b) = bench.connected(&Shape::of(IBV_QPT_UD), &Tuning::default());
    let mut attr = bench.near.origin.route(b.gid);
    (attr.grh.traffic_class, attr.sl) = (0x5a, 3);
    let handle = bench.near.handle_by(a.pd, &attr);
    for (size, imm) in [(0, false), (5, false), (32, true), (1001, true)] {
        bench.far.receive(b.qp, 1, &[b.at(0, 4096)]);
        let request = Send::new(1, &[a.at(0, size)]).to(handle, b.number, QKEY);
        bench.near.send(a.qp, if imm { request.immediate(1) } else { request });
        let got = bench.far.wait_one(b.receive_cq);
        assert_eq!((got.status, got.byte_len as usize), (IBV_WC_SUCCESS, size + 40));
        assert_eq!((got.src_qp, got.flags & IBV_WC_GRH), (a.number, IBV_WC_GRH));
        let header = bench.far.read(b.region, 0, 40);
        if header[0] >> 4 != 6 {
            // RoCE v2 over IPv4: the last 20 bytes are the IPv4 header.
            assert_eq!(header[20] >> 4, 4, "neither an IPv6 nor an IPv4 header: {header:x?}");
            continue;
        }
        assert_eq!((header[0] << 4) | header[1] >> 4, 0x5a, "traffic class");
        let padded = size.next_multiple_of(4) + if imm { 4 } else { 0 };
        let length = usize::from(u16::from_be_bytes([header[4], header[5]]));
        match header[6] {
            17 => assert_eq!(length, RDMA_BYTES + padded, "payload length of {size} B over UDP"),
            0x1b => assert_eq!(length, RDMA_BYTES - 8 + padded, "payload length of {size} B"),
            other => panic!("next header {other}"),
        }
        assert_eq!(header[8..24], gid_of(a.gid), "source");
        assert_eq!(header[24..40], gid_of(b.gid), "destination");
    }
}

/// No part of a longer datagram arrives. The sender's completion depends on the device: C10-93.1.1
/// of the IBTA's volume 1 requires no error, adapters report a local length error.
pub(crate) fn a_datagram_has_one_packet_at_most(bench: &mut Bench) {
    let (a, b) = bench.connected(&Shape::of(IBV_QPT_UD), &Tuning::default());
    let handle = bench.near.handle(a.pd, b.gid);
    let most = bench.near.datagram_bytes();
    bench.far.receive(b.qp, 1, &[b.at(0, 8192)]);
    let long = Send::new(1, &[a.at(0, most - 96), a.at(0, 97)]).to(handle, b.number, QKEY);
    bench.near.send(a.qp, long);
    let wc = bench.near.wait_one(a.send_cq);
    assert_eq!(wc.id, 1);
    if wc.status != IBV_WC_SUCCESS {
        assert_eq!(wc.status, IBV_WC_LOC_LEN_ERR);
        bench.near.settles(a.qp, IBV_QPS_SQE, "the send queue has stopped");
        bench.near.change_state(a.qp, IBV_QPS_RTS);
    }
    bench.near.send(a.qp, Send::new(2, &[a.at(0, most)]).to(handle, b.number, QKEY));
    assert_eq!(bench.near.wait_one(a.send_cq).status, IBV_WC_SUCCESS);
    assert_eq!(bench.far.wait_one(b.receive_cq).byte_len as usize, most + 40);
}

/// Numbered datagrams from a sender to a receiver, which posts each receive again.
struct Probe {
    a: Side,
    b: Side,
    handle: usize,
    sent: u32,
}

impl Probe {
    fn new(bench: &mut Bench) -> Self {
        let (a, b) = bench.connected(&Shape::of(IBV_QPT_UD), &Tuning::default());
        let handle = bench.near.handle(a.pd, b.gid);
        bench.far.receive(b.qp, 1, &[b.at(0, 4096)]);
        Self { a, b, handle, sent: 0 }
    }

    fn send(&mut self, bench: &mut Bench, key: u32) {
        self.sent += 1;
        let request = Send::new(1, &[self.a.at(0, 50)]).to(self.handle, self.b.number, key);
        bench.near.send(self.a.qp, request.immediate(self.sent));
        assert_eq!(bench.near.wait_one(self.a.send_cq).status, IBV_WC_SUCCESS, "a sender gets no error");
    }

    #[track_caller]
    fn arrives(&mut self, bench: &mut Bench, key: u32, why: &str) {
        self.send(bench, key);
        let got = bench.far.wait_one(self.b.receive_cq);
        assert_eq!((got.status, got.imm), (IBV_WC_SUCCESS, self.sent), "{why}");
        bench.far.receive(self.b.qp, 1, &[self.b.at(0, 4096)]);
    }

    /// Sends a datagram that must be dropped. If it arrived late, `arrives` would find it.
    #[track_caller]
    fn is_dropped(&mut self, bench: &mut Bench, key: u32) {
        self.send(bench, key);
        bench.far.quiet(self.b.receive_cq, Duration::from_millis(5));
    }
}

fn set_key(node: &mut Node, side: &Side, qkey: u32) {
    let attr = ibv_qp_attr { qp_state: IBV_QPS_RTS, qkey, ..ibv_qp_attr::default() };
    assert_eq!(node.modify(side.qp, &attr, IBV_QP_STATE | IBV_QP_QKEY), 0);
}

pub(crate) fn wrong_keys_are_dropped(bench: &mut Bench) {
    let mut probe = Probe::new(bench);
    probe.is_dropped(bench, QKEY + 1);
    probe.is_dropped(bench, 0);
    probe.arrives(bench, QKEY, "the receiver's key");
    set_key(&mut bench.far, &probe.b, QKEY + 1);
    probe.is_dropped(bench, QKEY);
    probe.arrives(bench, QKEY + 1, "the receiver's new key");
}

/// IBTA volume 1, section 10.2.5: a controlled key in a request stands for the queue pair's own
/// key.
pub(crate) fn a_key_with_the_high_bit_is_the_queue_pairs_own(bench: &mut Bench) {
    let mut probe = Probe::new(bench);
    probe.arrives(bench, 0x8000_0001, "both have the same key");
    set_key(&mut bench.near, &probe.a, 0x77);
    probe.is_dropped(bench, 0x8000_0001);
    set_key(&mut bench.far, &probe.b, 0x77);
    probe.arrives(bench, 0xffff_ffff, "both have the same key again");
}

pub(crate) fn nobody_there_is_no_error(bench: &mut Bench) {
    let mut probe = Probe::new(bench);
    let a = probe.a;
    let b = probe.b;
    let far_off = (b.number + 9) ^ 0x80_0000;
    let mut wrong = vec![(probe.handle, far_off), (probe.handle, b.number + 1), (probe.handle, 1)];
    // A device that looks up the port of a GID may refuse the address handle.
    let nowhere = bench.near.origin.route([b.gid[0], b.gid[1] ^ 0xff]);
    if let Ok(handle) = bench.near.try_handle(a.pd, &nowhere) {
        wrong.push((handle, b.number));
    }
    for (handle, number) in wrong {
        bench.near.send(a.qp, Send::new(1, &[a.at(0, 50)]).to(handle, number, QKEY));
        assert_eq!(bench.near.wait_one(a.send_cq).status, IBV_WC_SUCCESS);
    }
    bench.far.quiet(b.receive_cq, Duration::from_millis(2));
    assert_eq!(bench.near.state(a.qp), IBV_QPS_RTS);
    // A receiver is destroyed, and another one is created.
    probe.arrives(bench, QKEY, "the receiver is there");
    assert_eq!(bench.far.errno(op::DESTROY_QP, &[b.qp as u64]), 0);
    probe.send(bench, QKEY);
    probe.b = bench.far.side(&Shape::of(IBV_QPT_UD));
    bench.far.connect_to(&probe.b, 0, b.gid, &Tuning::default());
    bench.far.receive(probe.b.qp, 1, &[probe.b.at(0, 4096)]);
    probe.arrives(bench, QKEY, "another receiver is there");
}

pub(crate) fn too_small_a_receive_is_kept(bench: &mut Bench) {
    let (a, b) = bench.connected(&Shape::of(IBV_QPT_UD), &Tuning::default());
    let handle = bench.near.handle(a.pd, b.gid);
    bench.far.receive(b.qp, 5, &[b.at(0, 40 + 49)]);
    for size in [50, 1000, 49] {
        bench.near.send(a.qp, Send::new(1, &[a.at(0, size)]).to(handle, b.number, QKEY));
    }
    let got = bench.far.wait_one(b.receive_cq);
    assert_eq!((got.id, got.status, got.byte_len), (5, IBV_WC_SUCCESS, 89), "others are too long");
    assert_eq!(bench.far.state(b.qp), IBV_QPS_RTS);
}

pub(crate) fn what_nobody_awaits_is_dropped(bench: &mut Bench) {
    let (a, b) = bench.connected(&Shape::of(IBV_QPT_UD), &Tuning::default());
    let handle = bench.near.handle(a.pd, b.gid);
    bench.near.fill(a.region, 0, 100, 1);
    bench.near.send(a.qp, Send::new(1, &[a.at(0, 50)]).to(handle, b.number, QKEY));
    assert_eq!(bench.near.wait_one(a.send_cq).status, IBV_WC_SUCCESS);
    bench.far.receive(b.qp, 1, &[b.at(0, 4096)]);
    bench.far.quiet(b.receive_cq, Duration::from_millis(5));
    bench.near.send(a.qp, Send::new(2, &[a.at(50, 50)]).to(handle, b.number, QKEY));
    bench.far.wait_one(b.receive_cq);
    bench.far.check_from(b.region, 40, 50, 1, 50);
}

/// The seed of the content of message `i` of sender `s`.
fn seed(s: u64, i: u64) -> u64 {
    s << 20 | i
}

fn size(s: u64, i: u64) -> usize {
    // Around the size of a cache line, and longer; at most 1024, the MTU of any current port.
    16 + ((s * 7 + i * 13) % 40) as usize + if i.is_multiple_of(5) { 960 } else { 0 }
}

/// Several senders send to one receiver with enough receives. Every datagram arrives once, whole
/// and in its sender's order.
pub(crate) fn many_senders_reach_one_receiver(bench: &mut Bench) {
    const SENDERS: u64 = 3;
    const EACH: u64 = 300;
    let total = (SENDERS * EACH) as usize;
    let shape =
        Shape { receives: total as u32, entries: total as u32, bytes: total * 2048, ..Shape::of(IBV_QPT_UD) };
    let side = bench.near.side(&shape);
    bench.near.connect_to(&side, 0, side.gid, &Tuning::default());
    for id in 0..total {
        bench.near.receive(side.qp, id as u64, &[side.at(id * 2048, 2048)]);
    }
    let senders: Vec<_> = (0..SENDERS)
        .map(|s| {
            let mut node = bench.another();
            let own = node.side(&Shape::of(IBV_QPT_UD));
            node.connect_to(&own, 0, own.gid, &Tuning::default());
            let handle = node.handle(own.pd, side.gid);
            let thread = std::thread::spawn(move || {
                for i in 0..EACH {
                    node.fill(own.region, 0, size(s, i), seed(s, i));
                    let request = Send::new(i, &[own.at(0, size(s, i))]).to(handle, side.number, QKEY);
                    node.send(own.qp, request.immediate((s << 16 | i) as u32));
                    assert_eq!(node.wait_one(own.send_cq).status, IBV_WC_SUCCESS);
                }
                node.close();
            });
            (own.number, thread)
        })
        .collect();
    let mut next = [0; SENDERS as usize];
    for wc in bench.near.wait(side.receive_cq, total) {
        let s = u64::from(wc.imm >> 16);
        let i = u64::from(wc.imm & 0xffff);
        assert_eq!((wc.status, wc.src_qp), (IBV_WC_SUCCESS, senders[s as usize].0));
        assert_eq!(wc.byte_len as usize, size(s, i) + 40);
        assert_eq!(i, next[s as usize], "sender {s}");
        next[s as usize] += 1;
        bench.near.check(side.region, wc.id as usize * 2048 + 40, size(s, i), seed(s, i));
    }
    assert_eq!(next, [EACH; SENDERS as usize]);
    senders.into_iter().for_each(|(_, thread)| thread.join().expect("a sender"));
    bench.near.quiet(side.receive_cq, Duration::from_millis(1));
}

/// As above, with a receive queue of two, which is too short: some datagrams are dropped, none is
/// damaged, and the receiver still receives afterwards.
pub(crate) fn many_senders_share_a_short_queue(bench: &mut Bench) {
    const SENDERS: u64 = 3;
    const EACH: u64 = 400;
    let shape = Shape { receives: 2, bytes: 4 * 2048, ..Shape::of(IBV_QPT_UD) };
    let side = bench.near.side(&shape);
    bench.near.connect_to(&side, 0, side.gid, &Tuning::default());
    for id in 0..2 {
        bench.near.receive(side.qp, id, &[side.at(id as usize * 2048, 2048)]);
    }
    let senders: Vec<_> = (0..SENDERS)
        .map(|s| {
            let mut node = bench.another();
            std::thread::spawn(move || {
                let own = node.side(&Shape::of(IBV_QPT_UD));
                node.connect_to(&own, 0, own.gid, &Tuning::default());
                let handle = node.handle(own.pd, side.gid);
                for i in 0..EACH {
                    node.fill(own.region, 0, size(s, i), seed(s, i));
                    let request = Send::new(i, &[own.at(0, size(s, i))]).to(handle, side.number, QKEY);
                    node.send(own.qp, request.immediate((s << 16 | i) as u32));
                    assert_eq!(node.wait_one(own.send_cq).status, IBV_WC_SUCCESS);
                }
                (node, own, handle)
            })
        })
        .collect();
    let mut last = [None; SENDERS as usize];
    let mut take = |near: &mut Node| {
        let found = near.poll(side.receive_cq, 2);
        for wc in &found {
            let s = u64::from(wc.imm >> 16);
            let i = u64::from(wc.imm & 0xffff);
            assert_eq!((wc.status, wc.byte_len as usize), (IBV_WC_SUCCESS, size(s, i) + 40));
            assert!(last[s as usize] < Some(i), "sender {s} is out of order");
            last[s as usize] = Some(i);
            near.check(side.region, wc.id as usize * 2048 + 40, size(s, i), seed(s, i));
            near.receive(side.qp, wc.id, &[side.at(wc.id as usize * 2048, 2048)]);
        }
        found.len()
    };
    while senders.iter().any(|thread| !thread.is_finished()) {
        take(&mut bench.near);
    }
    while take(&mut bench.near) != 0 {}
    // The queue still receives.
    let start = std::time::Instant::now();
    for thread in senders {
        let (mut node, own, handle) = thread.join().expect("a sender");
        for i in EACH..EACH + 4 {
            let s = 0;
            node.fill(own.region, 0, size(s, i), seed(s, i));
            let request = Send::new(i, &[own.at(0, size(s, i))]).to(handle, side.number, QKEY);
            node.send(own.qp, request.immediate(i as u32));
            let wc = bench.near.wait_one(side.receive_cq);
            assert_eq!((wc.status, wc.imm), (IBV_WC_SUCCESS, i as u32));
            bench.near.receive(side.qp, wc.id, &[side.at(wc.id as usize * 2048, 2048)]);
        }
        node.close();
    }
    assert!(start.elapsed() < PATIENCE);
}

pub(crate) fn a_connected_pair_takes_no_datagrams(bench: &mut Bench) {
    let (a, _) = bench.connected(&Shape::of(IBV_QPT_UD), &Tuning::default());
    let c = bench.far.side(&Shape::of(IBV_QPT_UC));
    bench.far.connect_to(&c, a.number, a.gid, &Tuning::default());
    bench.far.receive(c.qp, 1, &[c.at(0, 4096)]);
    let handle = bench.near.handle(a.pd, c.gid);
    bench.near.send(a.qp, Send::new(1, &[a.at(0, 64)]).to(handle, c.number, 0));
    assert_eq!(bench.near.wait_one(a.send_cq).status, IBV_WC_SUCCESS);
    bench.far.quiet(c.receive_cq, Duration::from_millis(2));
    // Nor does a datagram queue pair receive messages of a connection.
    let d = bench.far.side(&Shape::of(IBV_QPT_UD));
    bench.far.connect_to(&d, 0, d.gid, &Tuning::default());
    bench.far.receive(d.qp, 1, &[d.at(0, 4096)]);
    let e = bench.near.side(&Shape::of(IBV_QPT_UC));
    bench.near.connect_to(&e, d.number, d.gid, &Tuning::default());
    bench.near.send(e.qp, Send::new(1, &[e.at(0, 64)]));
    assert_eq!(bench.near.wait_one(e.send_cq).status, IBV_WC_SUCCESS);
    bench.far.quiet(d.receive_cq, Duration::from_millis(2));
}

pub(crate) fn routes_that_do_not_exist_are_refused(bench: &mut Bench) {
    let pd = bench.near.pd();
    let gid = bench.near.gid();
    type Change = fn(&mut ibv_ah_attr);
    let changes: [(&str, Change); 3] = [
        ("port 99", |a| a.port_num = 99),
        ("GID index 255", |a| a.grh.sgid_index = 255),
        ("port 0", |a| a.port_num = 0),
    ];
    for (what, change) in changes {
        let mut attr = bench.near.origin.route(gid);
        change(&mut attr);
        assert!(bench.near.try_handle(pd, &attr).is_err(), "{what}");
    }
}
