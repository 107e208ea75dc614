//! Messages arrive complete and in order.

use verbs::abi::*;

use crate::{Bench, QKEY, SERVICES, Send, Shape, Tuning};

const SIZES: [usize; 12] = [0, 1, 31, 32, 33, 4095, 4096, 4097, 8320, 8321, 64 << 10, 8 << 20];

/// Bytes on each side of a buffer that must not change.
const GUARD: usize = 1;

fn every_size(bench: &mut Bench, service: ibv_qp_type, sizes: &[usize], own_memory: bool) {
    let largest = sizes.iter().max().expect("some sizes") + 2 * GUARD;
    let shape = Shape { bytes: largest, own_memory, ..Shape::of(service) };
    let (a, b) = bench.connected(&shape, &Tuning::default());
    for (seed, &size) in (1..).zip(sizes) {
        bench.near.fill(a.region, GUARD, size, seed);
        bench.far.fill(b.region, 0, size + 2 * GUARD, 1000);
        bench.far.receive(b.qp, seed, &[b.at(GUARD, size)]);
        bench.near.send(a.qp, Send::new(100 + seed, &[a.at(GUARD, size)]));
        let sent = bench.near.wait_one(a.send_cq);
        assert_eq!((sent.id, sent.status, sent.qp), (100 + seed, IBV_WC_SUCCESS, a.number), "{size} B");
        assert_eq!(sent.opcode, IBV_WC_SEND);
        let got = bench.far.wait_one(b.receive_cq);
        assert_eq!((got.id, got.status, got.qp), (seed, IBV_WC_SUCCESS, b.number), "{size} B");
        assert_eq!((got.opcode, got.byte_len), (IBV_WC_RECV, size as u32), "{size} B");
        assert_eq!(got.flags & !IBV_WC_GRH, 0, "{size} B: flags except IBV_WC_GRH");
        bench.far.check(b.region, GUARD, size, seed);
        bench.far.check(b.region, 0, GUARD, 1000);
        bench.far.check_from(b.region, size + GUARD, GUARD, 1000, size + GUARD);
    }
}

pub(crate) fn rc_carries_every_size(bench: &mut Bench) {
    every_size(bench, IBV_QPT_RC, &SIZES, false);
}

pub(crate) fn uc_carries_every_size(bench: &mut Bench) {
    every_size(bench, IBV_QPT_UC, &SIZES, false);
}

pub(crate) fn own_memory_is_reached_as_well(bench: &mut Bench) {
    every_size(bench, IBV_QPT_RC, &SIZES, true);
}

pub(crate) fn ud_carries_every_size(bench: &mut Bench) {
    let (a, b) = bench.connected(&Shape::of(IBV_QPT_UD), &Tuning::default());
    let handle = bench.near.handle(a.pd, b.gid);
    let most = bench.near.datagram_bytes();
    for (seed, size) in (1..).zip([0, 1, 31, 32, 33, most - 1, most]) {
        bench.near.fill(a.region, 0, size, seed);
        bench.far.fill(b.region, 0, size + 80, 1000);
        bench.far.receive(b.qp, seed, &[b.at(0, size + 40)]);
        bench.near.send(a.qp, Send::new(seed, &[a.at(0, size)]).to(handle, b.number, QKEY));
        assert_eq!(bench.near.wait_one(a.send_cq).status, IBV_WC_SUCCESS, "{size} B");
        let got = bench.far.wait_one(b.receive_cq);
        assert_eq!((got.id, got.status, got.byte_len), (seed, IBV_WC_SUCCESS, size as u32 + 40));
        assert_eq!((got.src_qp, got.flags), (a.number, IBV_WC_GRH));
        bench.far.check(b.region, 40, size, seed);
        bench.far.check_from(b.region, size + 40, 40, 1000, size + 40);
    }
}

pub(crate) fn gathers_and_scatters_across_odd_cuts(bench: &mut Bench) {
    for service in [IBV_QPT_RC, IBV_QPT_UC] {
        let (a, b) = bench.connected(&Shape::of(service), &Tuning::default());
        for (seed, cuts) in (1..).zip([[1, 2, 4, 1], [7, 8192, 3, 61], [31, 1, 1, 5], [9000, 1, 9000, 13]]) {
            let total: usize = cuts.iter().sum();
            // The bytes are gathered from four places with gaps, and scattered to four other places
            // in another order.
            bench.near.fill(a.region, 0, 40_000, 500 + seed);
            let mut from = Vec::new();
            let mut at = 0;
            for cut in cuts {
                from.push(a.at(at, cut));
                at += cut + 11;
            }
            bench.far.fill(b.region, 0, 40_000, 900);
            let rest = total - total / 3 - 1;
            let to = [b.at(30_000, total / 3), b.at(3, 1), b.at(10_000, rest), b.at(50_000, 100)];
            bench.far.receive(b.qp, seed, &to);
            bench.near.send(a.qp, Send::new(seed, &from));
            assert_eq!(bench.near.wait_one(a.send_cq).status, IBV_WC_SUCCESS);
            let got = bench.far.wait_one(b.receive_cq);
            assert_eq!((got.status, got.byte_len), (IBV_WC_SUCCESS, total as u32));
            let mut expected = Vec::new();
            for element in &from {
                expected.extend(bench.near.read(a.region, element[1] as usize, element[2] as usize));
            }
            let mut found = bench.far.read(b.region, 30_000, total / 3);
            found.extend(bench.far.read(b.region, 3, 1));
            found.extend(bench.far.read(b.region, 10_000, rest));
            assert!(found == expected, "service {service}, cuts {cuts:?}");
            bench.far.check(b.region, 0, 3, 900);
            bench.far.check_from(b.region, 4, 1000, 900, 4);
        }
    }
}

pub(crate) fn inline_buffer_may_be_reused_at_once(bench: &mut Bench) {
    let (a, b) = bench.connected(&Shape::of(IBV_QPT_RC), &Tuning::default());
    // No receive is posted yet, so the device must have copied the bytes.
    for id in 0..4 {
        bench.near.fill(a.region, 0, 64, id);
        let mut element = a.at(0, 64);
        element[3] = 0xdead_be00; // The device does not check the key of inline bytes.
        bench.near.send(a.qp, Send::new(id, &[element]).flag(IBV_SEND_INLINE));
        bench.near.fill(a.region, 0, 64, 99);
    }
    for id in 0..4 {
        bench.far.receive(b.qp, id, &[b.at(64 * id as usize, 64)]);
    }
    let sent = bench.near.wait(a.send_cq, 4);
    assert!(sent.iter().all(|wc| wc.status == IBV_WC_SUCCESS), "{sent:?}");
    bench.far.wait(b.receive_cq, 4);
    for id in 0..4 {
        bench.far.check(b.region, 64 * id as usize, 64, id);
    }
}

pub(crate) fn inline_limit_is_kept(bench: &mut Bench) {
    let (a, b) = bench.connected(&Shape::of(IBV_QPT_RC), &Tuning::default());
    assert!(a.inline >= 64, "the device granted {} B of inline data, not 64 B", a.inline);
    let limit = a.inline as usize;
    bench.far.receive(b.qp, 1, &[b.at(0, 4096)]);
    let too_much = Send::new(1, &[a.at(0, limit), a.at(0, 1)]).flag(IBV_SEND_INLINE);
    let (errno, bad) = bench.near.try_send(a.qp, &[too_much]);
    assert!(errno == libc::EINVAL || errno == libc::ENOMEM, "errno {errno}");
    assert_eq!(bad, Some(0));
    bench.near.fill(a.region, 0, limit, 5);
    let just_so = Send::new(2, &[a.at(0, 1), a.at(1, limit - 1)]).flag(IBV_SEND_INLINE);
    bench.near.send(a.qp, just_so);
    let sent = bench.near.wait_one(a.send_cq);
    assert_eq!((sent.id, sent.status), (2, IBV_WC_SUCCESS));
    assert_eq!(bench.far.wait_one(b.receive_cq).byte_len, limit as u32);
    bench.far.check(b.region, 0, limit, 5);
}

pub(crate) fn immediate_data_arrives(bench: &mut Bench) {
    for service in SERVICES {
        let (a, b) = bench.connected(&Shape::of(service), &Tuning::default());
        let handle = bench.near.handle(a.pd, b.gid);
        // Only datagrams have a header; other services leave the flag undefined.
        let (grh, ignored) = if service == IBV_QPT_UD { (IBV_WC_GRH, 0) } else { (0, IBV_WC_GRH) };
        for (id, size) in (0..).zip([0, 8, 1000]) {
            for imm in [None, Some(0xdead_0000 + id as u32), Some(0)] {
                bench.far.receive(b.qp, id, &[b.at(0, 4096)]);
                let mut request = Send::new(id, &[a.at(0, size)]).to(handle, b.number, QKEY);
                if let Some(imm) = imm {
                    request = request.immediate(imm);
                }
                bench.near.send(a.qp, request);
                let sent = bench.near.wait_one(a.send_cq);
                assert_eq!((sent.status, sent.opcode), (IBV_WC_SUCCESS, IBV_WC_SEND));
                let got = bench.far.wait_one(b.receive_cq);
                assert_eq!((got.status, got.opcode), (IBV_WC_SUCCESS, IBV_WC_RECV));
                let flags = grh | if imm.is_some() { IBV_WC_WITH_IMM } else { 0 };
                assert_eq!(got.flags & !ignored, flags, "service {service}, {size} B");
                if let Some(imm) = imm {
                    assert_eq!(got.imm, imm);
                }
            }
        }
    }
}

pub(crate) fn every_mtu_carries_the_same(bench: &mut Bench) {
    for service in [IBV_QPT_RC, IBV_QPT_UC] {
        for mtu in IBV_MTU_256..=bench.near.mtu() {
            let tuning = Tuning { mtu, ..Tuning::default() };
            let (a, b) = bench.connected(&Shape::of(service), &tuning);
            let bytes = 128 << mtu;
            for (id, size) in (0..).zip([bytes - 1, bytes, bytes + 1, 5 * bytes + 3]) {
                bench.near.fill(a.region, 0, size, id);
                bench.far.receive(b.qp, id, &[b.at(0, 30_000)]);
                bench.near.send(a.qp, Send::new(id, &[a.at(0, size)]));
                assert_eq!(bench.near.wait_one(a.send_cq).status, IBV_WC_SUCCESS);
                assert_eq!(bench.far.wait_one(b.receive_cq).byte_len, size as u32);
                bench.far.check(b.region, 0, size, id);
            }
        }
    }
}

pub(crate) fn both_directions_at_once(bench: &mut Bench) {
    let (a, b) = bench.connected(&Shape::of(IBV_QPT_RC), &Tuning::default());
    for id in 0..200 {
        let size = 1 + (id as usize * 37) % 9000;
        let seed = id + 1;
        bench.near.fill(a.region, 0, size, seed);
        bench.far.fill(b.region, 0, size, seed + 1000);
        bench.near.receive(a.qp, id, &[a.at(20_000, 9000)]);
        bench.far.receive(b.qp, id, &[b.at(20_000, 9000)]);
        bench.near.send(a.qp, Send::new(id, &[a.at(0, size)]));
        bench.far.send(b.qp, Send::new(id, &[b.at(0, size)]));
        assert_eq!(bench.near.wait_one(a.send_cq).status, IBV_WC_SUCCESS);
        assert_eq!(bench.far.wait_one(b.send_cq).status, IBV_WC_SUCCESS);
        assert_eq!(bench.near.wait_one(a.receive_cq).byte_len, size as u32);
        assert_eq!(bench.far.wait_one(b.receive_cq).byte_len, size as u32);
        bench.far.check(b.region, 20_000, size, seed);
        bench.near.check(a.region, 20_000, size, seed + 1000);
    }
}

pub(crate) fn a_thousand_messages_keep_their_order(bench: &mut Bench) {
    let shape = Shape { sends: 16, receives: 8, ..Shape::of(IBV_QPT_RC) };
    let (a, b) = bench.connected(&shape, &Tuning { rnr_timer: 1, ..Tuning::default() });
    let mut posted = 0;
    let mut got = 0;
    let mut sent = 0;
    let mut confirmed = 0;
    let size = |id: u64| (id as usize * 29) % 100;
    while got < 1000 {
        let receives: Vec<_> =
            (posted..got + 8).map(|id| (id, vec![b.at((id % 8) as usize * 128, 128)])).collect();
        if !receives.is_empty() {
            assert_eq!(bench.far.try_receive(b.qp, &receives), (0, None));
            posted = got + 8;
        }
        // More messages than receives: some have to wait.
        while sent < confirmed + 16 && sent < 1000 {
            let slot = (sent % 16) as usize * 128;
            bench.near.fill(a.region, slot, size(sent), sent);
            bench.near.send(a.qp, Send::new(sent, &[a.at(slot, size(sent))]).immediate(sent as u32));
            sent += 1;
        }
        for wc in bench.near.poll(a.send_cq, 16) {
            assert_eq!((wc.id, wc.status), (confirmed, IBV_WC_SUCCESS));
            confirmed += 1;
        }
        for wc in bench.far.poll(b.receive_cq, 8) {
            assert_eq!((wc.id, wc.status, wc.imm), (got, IBV_WC_SUCCESS, got as u32));
            assert_eq!(wc.byte_len as usize, size(got));
            bench.far.check(b.region, (got % 8) as usize * 128, size(got), got);
            got += 1;
        }
    }
}

pub(crate) fn loopback_to_itself(bench: &mut Bench) {
    let side = bench.far.side(&Shape::of(IBV_QPT_RC));
    bench.far.connect_to(&side, side.number, side.gid, &Tuning::default());
    bench.far.fill(side.region, 0, 20_000, 6);
    bench.far.receive(side.qp, 1, &[side.at(30_000, 20_000)]);
    bench.far.send(side.qp, Send::new(2, &[side.at(0, 20_000)]));
    assert_eq!(bench.far.wait_one(side.send_cq).status, IBV_WC_SUCCESS);
    assert_eq!(bench.far.wait_one(side.receive_cq).byte_len, 20_000);
    bench.far.check(side.region, 30_000, 20_000, 6);
}
