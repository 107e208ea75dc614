//! The state machine: which change is allowed with which attributes, and what each state does.

use std::time::Duration;

use verbs::abi::*;

use crate::rig::op;
use crate::{Bench, Node, QKEY, REMOTE, Send, Shape, Side, Tuning};

/// IBTA volume 1, section 11.2.5.2, table "QP State Transition Properties", as the Linux kernel enforces it
/// (`qp_state_table`): services | from | to | required | optional. Attributes of features that a device need not have
/// (alternate paths, the drain event) are in brackets: they are not tried.
const TABLE: &str = "
    RC UC UD | RESET INIT RTR RTS SQD SQE ERR | RESET | |
    RC UC UD | INIT RTR RTS SQD SQE ERR       | ERR   | |
    RC UC    | RESET   | INIT | PKEY_INDEX PORT ACCESS_FLAGS |
    UD       | RESET   | INIT | PKEY_INDEX PORT QKEY |
    RC UC    | INIT    | INIT | | PKEY_INDEX PORT ACCESS_FLAGS
    UD       | INIT    | INIT | | PKEY_INDEX PORT QKEY
    RC       | INIT    | RTR  | AV PATH_MTU DEST_QPN RQ_PSN MAX_DEST_RD_ATOMIC MIN_RNR_TIMER | ACCESS_FLAGS PKEY_INDEX [ALT_PATH]
    UC       | INIT    | RTR  | AV PATH_MTU DEST_QPN RQ_PSN | ACCESS_FLAGS PKEY_INDEX [ALT_PATH]
    UD       | INIT    | RTR  | | PKEY_INDEX QKEY
    RC       | RTR     | RTS  | TIMEOUT RETRY_CNT RNR_RETRY SQ_PSN MAX_QP_RD_ATOMIC | CUR_STATE ACCESS_FLAGS MIN_RNR_TIMER [ALT_PATH] [PATH_MIG_STATE]
    UC       | RTR     | RTS  | SQ_PSN | CUR_STATE ACCESS_FLAGS [ALT_PATH] [PATH_MIG_STATE]
    UD       | RTR     | RTS  | SQ_PSN | CUR_STATE QKEY
    RC       | RTS SQD | RTS  | | CUR_STATE ACCESS_FLAGS MIN_RNR_TIMER [ALT_PATH] [PATH_MIG_STATE]
    UC       | RTS SQD | RTS  | | CUR_STATE ACCESS_FLAGS [ALT_PATH] [PATH_MIG_STATE]
    UD       | RTS SQD | RTS  | | CUR_STATE QKEY
    RC UC UD | RTS     | SQD  | | [EN_SQD_ASYNC_NOTIFY]
    RC       | SQD     | SQD  | | AV PORT TIMEOUT RETRY_CNT RNR_RETRY MAX_QP_RD_ATOMIC MAX_DEST_RD_ATOMIC ACCESS_FLAGS PKEY_INDEX MIN_RNR_TIMER [ALT_PATH] [PATH_MIG_STATE]
    UC       | SQD     | SQD  | | AV ACCESS_FLAGS PKEY_INDEX [ALT_PATH] [PATH_MIG_STATE]
    UD       | SQD     | SQD  | | PKEY_INDEX QKEY
    UC       | SQE     | RTS  | | CUR_STATE ACCESS_FLAGS
    UD       | SQE     | RTS  | | CUR_STATE QKEY
";

const STATES: [&str; 7] = ["RESET", "INIT", "RTR", "RTS", "SQD", "SQE", "ERR"];

const BITS: [&str; 21] = [
    "STATE",
    "CUR_STATE",
    "EN_SQD_ASYNC_NOTIFY",
    "ACCESS_FLAGS",
    "PKEY_INDEX",
    "PORT",
    "QKEY",
    "AV",
    "PATH_MTU",
    "TIMEOUT",
    "RETRY_CNT",
    "RNR_RETRY",
    "RQ_PSN",
    "MAX_QP_RD_ATOMIC",
    "ALT_PATH",
    "MIN_RNR_TIMER",
    "SQ_PSN",
    "MAX_DEST_RD_ATOMIC",
    "PATH_MIG_STATE",
    "CAP",
    "DEST_QPN",
];

struct Rule {
    from: u32,
    to: u32,
    required: u32,
    optional: u32,
    untried: u32,
}

fn rules(service: &str) -> Vec<Rule> {
    let state = |name: &str| STATES.iter().position(|s| *s == name).expect("a state") as u32;
    let bits = |names: &str, bracketed: bool| -> u32 {
        let chosen = names.split_whitespace().filter(|name| name.starts_with('[') == bracketed);
        chosen.map(|n| bit(n.trim_matches(['[', ']']))).fold(0, |mask, bit| mask | bit)
    };
    let rows = TABLE.lines().filter(|row| row.contains('|')).map(|row| row.split('|').collect::<Vec<_>>());
    let mine = rows.filter(|row| row[0].split_whitespace().any(|s| s == service));
    mine.flat_map(|row| {
        let (from, to, required, optional) = (row[1], row[2], row[3], row[4]);
        from.split_whitespace().map(move |from| Rule {
            from: state(from),
            to: state(to.trim()),
            required: bits(required, false),
            optional: bits(optional, false),
            untried: bits(optional, true),
        })
    })
    .collect()
}

fn bit(name: &str) -> u32 {
    1 << BITS.iter().position(|b| *b == name).expect("an attribute")
}

/// Queue pairs of one service on one set of parents.
struct Maker<'a> {
    node: &'a mut Node,
    shape: Shape,
    parents: (usize, usize, usize),
    handle: usize,
}

impl<'a> Maker<'a> {
    fn new(node: &'a mut Node, service: ibv_qp_type) -> Self {
        let shape = Shape { sends: 4, receives: 4, bytes: 4096, ..Shape::of(service) };
        let (pd, cq) = (node.pd(), node.cq(64));
        let region = node.region(pd, shape.bytes, IBV_ACCESS_LOCAL_WRITE);
        let gid = node.gid();
        let handle = node.handle(pd, gid);
        Self { node, shape, parents: (pd, cq, region), handle }
    }

    /// A queue pair in a state; its peer does not exist.
    fn in_state(&mut self, state: ibv_qp_state) -> Side {
        let (pd, cq, region) = self.parents;
        let side = self.node.side_with(&self.shape, pd, [cq, cq], region);
        let tuning = Tuning::default();
        if state != IBV_QPS_RESET {
            self.node.init(&side, &tuning);
        }
        if (IBV_QPS_RTR..=IBV_QPS_SQE).contains(&state) {
            self.node.ready_to_receive(&side, side.number, side.gid, &tuning);
        }
        if (IBV_QPS_RTS..=IBV_QPS_SQE).contains(&state) {
            self.node.ready_to_send(&side, &tuning);
        }
        match state {
            IBV_QPS_SQD | IBV_QPS_ERR => self.node.change_state(side.qp, state),
            IBV_QPS_SQE => {
                // A local error stops the send queue of an unreliable service.
                let mut element = side.at(0, 8);
                element[3] = 0xdead_be00;
                let request = Send::new(1, &[element]).to(self.handle, side.number, QKEY);
                self.node.send(side.qp, request);
                assert_eq!(self.node.wait_one(side.receive_cq).status, IBV_WC_LOC_PROT_ERR);
            }
            _ => {}
        }
        assert_eq!(self.node.state(side.qp), state);
        side
    }

    fn attempt(&mut self, from: u32, to: u32, mask: u32) -> i32 {
        let side = self.in_state(from);
        let errno = self.node.modify(side.qp, &good(&side, from, to), mask | IBV_QP_STATE);
        let expected = if errno == 0 { to } else { from };
        let states = (STATES[from as usize], STATES[to as usize]);
        assert_eq!(self.node.state(side.qp), expected, "state after {states:?} gave {errno}");
        assert_eq!(self.node.errno(op::DESTROY_QP, &[side.qp as u64]), 0);
        errno
    }
}

/// Acceptable values for everything.
fn good(side: &Side, from: u32, to: u32) -> ibv_qp_attr {
    ibv_qp_attr {
        qp_state: to,
        cur_qp_state: from,
        path_mtu: IBV_MTU_1024,
        qkey: QKEY,
        rq_psn: 1,
        sq_psn: 1,
        dest_qp_num: side.number,
        max_rd_atomic: 1,
        max_dest_rd_atomic: 1,
        min_rnr_timer: 12,
        port_num: side.origin.port,
        timeout: 14,
        retry_cnt: 7,
        rnr_retry: 7,
        ah_attr: side.origin.route(side.gid),
        ..ibv_qp_attr::default()
    }
}

fn every_transition(bench: &mut Bench, name: &str, service: ibv_qp_type) {
    let rules = rules(name);
    let mut maker = Maker::new(&mut bench.near, service);
    let mut legal = 0;
    for from in 0..7 {
        if service == IBV_QPT_RC && from == IBV_QPS_SQE {
            continue; // An RC queue pair never is in it.
        }
        for to in 0..7 {
            let states = (STATES[from as usize], STATES[to as usize]);
            if let Some(rule) = rules.iter().find(|r| (r.from, r.to) == (from, to)) {
                assert_eq!(maker.attempt(from, to, rule.required), 0, "{name} {states:?} is legal");
                legal += 1;
                continue;
            }
            let leading = rules.iter().filter(|r| r.to == to).map(|r| r.required);
            for mask in leading.chain([0]) {
                assert_eq!(maker.attempt(from, to, mask), libc::EINVAL, "{name} {states:?} is illegal");
            }
        }
    }
    assert_eq!(legal, rules.len() - usize::from(service == IBV_QPT_RC) * 2, "rules that were tried");
}

fn every_attribute(bench: &mut Bench, name: &str, service: ibv_qp_type) {
    let mut maker = Maker::new(&mut bench.near, service);
    for rule in rules(name) {
        if service == IBV_QPT_RC && rule.from == IBV_QPS_SQE {
            continue;
        }
        let states = (STATES[rule.from as usize], STATES[rule.to as usize]);
        for (i, attribute) in BITS.iter().enumerate().skip(1) {
            let bit = 1 << i;
            if bit & rule.untried != 0 {
                continue;
            }
            if bit & rule.required != 0 {
                let errno = maker.attempt(rule.from, rule.to, rule.required & !bit);
                assert_eq!(errno, libc::EINVAL, "{name} {states:?} without {attribute}");
            } else {
                let allowed = bit & rule.optional != 0;
                let errno = maker.attempt(rule.from, rule.to, rule.required | bit);
                assert_eq!(errno == 0, allowed, "{name} {states:?} with {attribute}: errno {errno}");
            }
        }
        assert_eq!(maker.attempt(rule.from, rule.to, rule.required | rule.optional), 0, "{name} {states:?}");
    }
}

pub(crate) fn every_transition_of_rc(bench: &mut Bench) {
    every_transition(bench, "RC", IBV_QPT_RC);
}

pub(crate) fn every_transition_of_uc(bench: &mut Bench) {
    every_transition(bench, "UC", IBV_QPT_UC);
}

pub(crate) fn every_transition_of_ud(bench: &mut Bench) {
    every_transition(bench, "UD", IBV_QPT_UD);
}

pub(crate) fn every_attribute_of_rc(bench: &mut Bench) {
    every_attribute(bench, "RC", IBV_QPT_RC);
}

pub(crate) fn every_attribute_of_uc(bench: &mut Bench) {
    every_attribute(bench, "UC", IBV_QPT_UC);
}

pub(crate) fn every_attribute_of_ud(bench: &mut Bench) {
    every_attribute(bench, "UD", IBV_QPT_UD);
}

pub(crate) fn values_out_of_range_are_refused(bench: &mut Bench) {
    type Change = fn(&mut ibv_qp_attr);
    let changes: [(u32, u32, &str, Change); 14] = [
        (IBV_QPS_RESET, IBV_QPS_INIT, "port 0", |a| a.port_num = 0),
        (IBV_QPS_RESET, IBV_QPS_INIT, "port 99", |a| a.port_num = 99),
        (IBV_QPS_RESET, IBV_QPS_INIT, "P_Key index", |a| a.pkey_index = 0xffff),
        (IBV_QPS_INIT, IBV_QPS_RTR, "MTU 0", |a| a.path_mtu = 0),
        (IBV_QPS_INIT, IBV_QPS_RTR, "MTU 6", |a| a.path_mtu = 6),
        (IBV_QPS_INIT, IBV_QPS_RTR, "25-bit number", |a| a.dest_qp_num = 1 << 24),
        (IBV_QPS_INIT, IBV_QPS_RTR, "RNR timer 32", |a| a.min_rnr_timer = 32),
        (IBV_QPS_INIT, IBV_QPS_RTR, "reads in flight", |a| a.max_dest_rd_atomic = 255),
        (IBV_QPS_INIT, IBV_QPS_RTR, "port of the route", |a| a.ah_attr.port_num = 99),
        (IBV_QPS_INIT, IBV_QPS_RTR, "GID index", |a| a.ah_attr.grh.sgid_index = 255),
        (IBV_QPS_RTR, IBV_QPS_RTS, "timeout 32", |a| a.timeout = 32),
        (IBV_QPS_RTR, IBV_QPS_RTS, "retries 8", |a| a.retry_cnt = 8),
        (IBV_QPS_RTR, IBV_QPS_RTS, "RNR retries 8", |a| a.rnr_retry = 8),
        (IBV_QPS_RTR, IBV_QPS_RTS, "reads under way", |a| a.max_rd_atomic = 255),
    ];
    let rules = rules("RC");
    let mut maker = Maker::new(&mut bench.near, IBV_QPT_RC);
    for (from, to, what, change) in changes {
        let side = maker.in_state(from);
        let rule = rules.iter().find(|r| (r.from, r.to) == (from, to)).expect("a legal change");
        let mut attr = good(&side, from, to);
        change(&mut attr);
        let mask = rule.required | IBV_QP_STATE;
        assert_eq!(maker.node.modify(side.qp, &attr, mask), libc::EINVAL, "{what}");
        assert_eq!(maker.node.state(side.qp), from, "{what}");
        assert_eq!(maker.node.modify(side.qp, &good(&side, from, to), mask), 0, "a good value after {what}");
    }
    let side = maker.in_state(IBV_QPS_RTS);
    let mut attr = good(&side, IBV_QPS_SQD, IBV_QPS_RTS);
    let mask = IBV_QP_STATE | IBV_QP_CUR_STATE;
    assert_eq!(maker.node.modify(side.qp, &attr, mask), libc::EINVAL, "a wrong current state");
    attr.cur_qp_state = IBV_QPS_RTS;
    assert_eq!(maker.node.modify(side.qp, &attr, mask), 0, "the right current state");
}

pub(crate) fn sends_are_refused_before_rts(bench: &mut Bench) {
    for service in [IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD] {
        let mut maker = Maker::new(&mut bench.near, service);
        for state in [IBV_QPS_RESET, IBV_QPS_INIT, IBV_QPS_RTR] {
            let side = maker.in_state(state);
            let request = Send::new(1, &[side.at(0, 8)]).to(maker.handle, side.number, QKEY);
            let (errno, bad) = maker.node.try_send(side.qp, &[request]);
            assert_eq!((errno, bad), (libc::EINVAL, Some(0)), "service {service} state {state}");
            assert_eq!(maker.node.poll(side.send_cq, 1), []);
        }
    }
}

pub(crate) fn receives_are_refused_in_reset_only(bench: &mut Bench) {
    for service in [IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD] {
        let mut maker = Maker::new(&mut bench.near, service);
        for state in (IBV_QPS_RESET..=IBV_QPS_ERR).filter(|s| service != IBV_QPT_RC || *s != IBV_QPS_SQE) {
            let side = maker.in_state(state);
            let posted = maker.node.try_receive(side.qp, &[(1, vec![side.at(0, 64)])]);
            let expected = if state == IBV_QPS_RESET { (libc::EINVAL, Some(0)) } else { (0, None) };
            assert_eq!(posted, expected, "service {service} state {state}");
            assert_eq!(maker.node.errno(op::DESTROY_QP, &[side.qp as u64]), 0);
        }
    }
}

pub(crate) fn error_state_flushes_what_is_posted_to_it(bench: &mut Bench) {
    for service in [IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD] {
        let mut maker = Maker::new(&mut bench.near, service);
        let side = maker.in_state(IBV_QPS_RTS);
        maker.node.change_state(side.qp, IBV_QPS_ERR);
        let request = Send::new(5, &[side.at(0, 8)]).to(maker.handle, side.number, QKEY);
        maker.node.send(side.qp, request.clone().unsignaled());
        let wc = maker.node.wait_one(side.send_cq);
        assert_eq!((wc.id, wc.status, wc.qp), (5, IBV_WC_WR_FLUSH_ERR, side.number), "service {service}");
        maker.node.receive(side.qp, 6, &[side.at(0, 64)]);
        let wc = maker.node.wait_one(side.receive_cq);
        assert_eq!((wc.id, wc.status, wc.qp), (6, IBV_WC_WR_FLUSH_ERR, side.number), "service {service}");
        maker.node.quiet(side.send_cq, Duration::from_millis(1));
    }
}

pub(crate) fn attributes_read_back(bench: &mut Bench) {
    let mut maker = Maker::new(&mut bench.near, IBV_QPT_RC);
    let side = maker.in_state(IBV_QPS_RESET);
    let tuning = Tuning {
        mtu: IBV_MTU_2048,
        timeout: 9,
        retries: 3,
        rnr_retries: 5,
        rnr_timer: 17,
        psn: 0x12_3456,
        access: REMOTE,
        depth: 4,
        resources: 2,
    };
    maker.node.init(&side, &tuning);
    maker.node.ready_to_receive(&side, 0xabcd, side.gid, &tuning);
    maker.node.ready_to_send(&side, &tuning);
    let found = maker.node.call(op::QUERY, &[side.qp as u64]);
    let words = [0, IBV_QPS_RTS].map(u64::from);
    assert_eq!(found[..2], words);
    let rest = [0x12_3456, 0x12_3456, 0xabcd, IBV_MTU_2048, 9, 3, 5, 17, REMOTE, 4, 2].map(u64::from);
    assert_eq!(found[3..], rest);
}

pub(crate) fn drained_queue_holds_sends_back(bench: &mut Bench) {
    let (a, b) = bench.connected(&Shape::of(IBV_QPT_RC), &Tuning::default());
    bench.far.receive(b.qp, 1, &[b.at(0, 4096)]);
    bench.near.fill(a.region, 0, 512, 3);
    bench.near.change_state(a.qp, IBV_QPS_SQD);
    bench.near.send(a.qp, Send::new(2, &[a.at(0, 512)]));
    bench.near.quiet(a.send_cq, Duration::from_millis(20));
    assert_eq!(bench.far.poll(b.receive_cq, 1), []);
    bench.near.change_state(a.qp, IBV_QPS_RTS);
    assert_eq!(bench.near.wait_one(a.send_cq).status, IBV_WC_SUCCESS);
    assert_eq!(bench.far.wait_one(b.receive_cq).byte_len, 512);
    bench.far.check(b.region, 0, 512, 3);
}

pub(crate) fn reset_forgets_everything_and_connects_again(bench: &mut Bench) {
    for service in [IBV_QPT_RC, IBV_QPT_UC] {
        let shape = Shape { receives: 8, sends: 4, ..Shape::of(service) };
        let (a, b) = bench.connected(&shape, &Tuning::default());
        for round in 0..4 {
            // Left behind: completions that nobody polled, receives that nobody filled, sends that nobody awaited.
            for id in 0..u64::from(b.receives) {
                bench.far.receive(b.qp, 1000 + id, &[b.at(0, 4096)]);
            }
            for id in 0..2 {
                bench.near.send(a.qp, Send::new(2000 + id, &[a.at(0, 64)]));
            }
            bench.near.change_state(a.qp, IBV_QPS_RESET);
            bench.far.change_state(b.qp, IBV_QPS_RESET);
            assert_eq!(bench.near.state(a.qp), IBV_QPS_RESET);
            assert_eq!(bench.near.poll(a.send_cq, 16), [], "sends of before RESET");
            assert_eq!(bench.far.poll(b.receive_cq, 16), [], "receives of before RESET");
            let tuning = Tuning { psn: 77 + round, ..Tuning::default() };
            bench.connect(&a, &b, &tuning);
            // All places are free again, and only the new requests complete.
            for id in 0..u64::from(b.receives) {
                bench.far.receive(b.qp, id, &[b.at(64 * id as usize, 64)]);
            }
            for id in 0..u64::from(a.sends) {
                bench.near.fill(a.region, 64 * id as usize, 64, u64::from(round) * 10 + id);
                bench.near.send(a.qp, Send::new(id, &[a.at(64 * id as usize, 64)]));
            }
            let sent = bench.near.wait(a.send_cq, a.sends as usize);
            assert!(sent.iter().all(|wc| wc.status == IBV_WC_SUCCESS), "{sent:?}");
            let ids = |found: &[crate::Wc]| found.iter().map(|wc| wc.id).collect::<Vec<_>>();
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

/// A requester that goes on while its responder starts anew is out of sequence, so that nothing that it sends arrives.
pub(crate) fn reset_ends_the_old_connection(bench: &mut Bench) {
    let tuning = Tuning { timeout: 10, retries: 1, ..Tuning::default() };
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

/// After an error and a reset the peer finds a receiver that is not ready, not one that has failed.
pub(crate) fn flushed_receives_do_not_outlive_a_reset(bench: &mut Bench) {
    let tuning = Tuning { timeout: 8, retries: 1, rnr_timer: 1, ..Tuning::default() };
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
