//! The state machine: the transitions and the attributes that each allows. The cases for what a
//! queue pair does in each state are in `behaviour.rs`.

use verbs::abi::*;

use crate::rig::op;
use crate::{Bench, Node, QKEY, REMOTE, Send, Shape, Side, Tuning};

/// IBTA volume 1, section 11.2.5.2, table "QP State Transition Properties", as the Linux kernel
/// enforces it (`qp_state_table`): services | from | to | required | optional. Attributes in
/// brackets are not tried: a device need not support their features (alternate paths, the drain
/// event), and UC's route has a separate case.
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
    UC       | SQD     | SQD  | | [AV] ACCESS_FLAGS PKEY_INDEX [ALT_PATH] [PATH_MIG_STATE]
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
        let from = row[1];
        let to = row[2];
        let required = row[3];
        let optional = row[4];
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

/// Creates queue pairs of one service with one domain, completion queue and region.
pub(crate) struct Maker<'a> {
    pub(crate) node: &'a mut Node,
    shape: Shape,
    parents: (usize, usize, usize),
    pub(crate) handle: usize,
}

impl<'a> Maker<'a> {
    pub(crate) fn new(node: &'a mut Node, service: ibv_qp_type) -> Self {
        let shape = Shape { sends: 4, receives: 4, bytes: 4096, ..Shape::of(service) };
        let pd = node.pd();
        let cq = node.cq(64);
        let region = node.region(pd, shape.bytes, IBV_ACCESS_LOCAL_WRITE);
        let gid = node.gid();
        let handle = node.handle(pd, gid);
        Self { node, shape, parents: (pd, cq, region), handle }
    }

    /// Creates a queue pair and takes it to a state. It has no peer.
    pub(crate) fn in_state(&mut self, state: ibv_qp_state) -> Side {
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
            IBV_QPS_ERR => self.node.change_state(side.qp, state),
            IBV_QPS_SQD => {
                self.node.change_state(side.qp, state);
                self.node.drains(side.qp);
            }
            IBV_QPS_SQE => {
                // A local error stops the send queue of an unreliable service.
                let mut element = side.at(0, 8);
                element[3] = 0xdead_be00;
                let request = Send::new(1, &[element]).to(self.handle, side.number, QKEY);
                self.node.send(side.qp, request);
                assert_ne!(self.node.wait_one(side.receive_cq).status, IBV_WC_SUCCESS);
            }
            _ => {}
        }
        self.node.settles(side.qp, state, "on the way");
        side
    }

    fn attempt(&mut self, from: u32, to: u32, mask: u32) -> i32 {
        let side = self.in_state(from);
        let errno = self.node.modify(side.qp, &good(&side, from, to), mask | IBV_QP_STATE);
        let expected = if errno == 0 { to } else { from };
        let states = (STATES[from as usize], STATES[to as usize]);
        assert_eq!(self.node.state(side.qp), expected, "state after {states:?}: errno {errno}");
        assert_eq!(self.node.errno(op::DESTROY_QP, &[side.qp as u64]), 0);
        errno
    }
}

/// Returns valid values for all attributes.
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

/// Tries each transition from these states: legal ones with their required attributes, illegal ones
/// with the attributes of each legal transition to the same state, and with none.
fn every_transition(bench: &mut Bench, name: &str, service: ibv_qp_type, from: &[u32]) {
    let rules = rules(name);
    let mut maker = Maker::new(&mut bench.near, service);
    let mut legal = 0;
    for &from in from {
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
    let expected = rules.iter().filter(|r| from.contains(&r.from)).count();
    assert_eq!(legal, expected, "rules that were tried");
}

/// Tries each attribute with each legal transition from these states.
fn every_attribute(bench: &mut Bench, name: &str, service: ibv_qp_type, from: &[u32]) {
    let mut maker = Maker::new(&mut bench.near, service);
    for rule in rules(name).iter().filter(|r| from.contains(&r.from)) {
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

/// The states to which a program can take a queue pair; only the device sets SQE.
const ORDERED: [u32; 6] = [IBV_QPS_RESET, IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_RTS, IBV_QPS_SQD, IBV_QPS_ERR];

pub(crate) fn every_transition_of_rc(bench: &mut Bench) {
    every_transition(bench, "RC", IBV_QPT_RC, &ORDERED);
}

pub(crate) fn every_transition_of_uc(bench: &mut Bench) {
    every_transition(bench, "UC", IBV_QPT_UC, &ORDERED);
}

pub(crate) fn every_transition_of_ud(bench: &mut Bench) {
    every_transition(bench, "UD", IBV_QPT_UD, &ORDERED);
}

pub(crate) fn every_attribute_of_rc(bench: &mut Bench) {
    every_attribute(bench, "RC", IBV_QPT_RC, &ORDERED);
}

pub(crate) fn every_attribute_of_uc(bench: &mut Bench) {
    every_attribute(bench, "UC", IBV_QPT_UC, &ORDERED);
}

pub(crate) fn every_attribute_of_ud(bench: &mut Bench) {
    every_attribute(bench, "UD", IBV_QPT_UD, &ORDERED);
}

/// RC has no state SQE.
pub(crate) fn every_transition_from_sqe(bench: &mut Bench) {
    every_transition(bench, "UC", IBV_QPT_UC, &[IBV_QPS_SQE]);
    every_transition(bench, "UD", IBV_QPT_UD, &[IBV_QPS_SQE]);
}

/// RC has no state SQE.
pub(crate) fn every_attribute_from_sqe(bench: &mut Bench) {
    every_attribute(bench, "UC", IBV_QPT_UC, &[IBV_QPS_SQE]);
    every_attribute(bench, "UD", IBV_QPT_UD, &[IBV_QPS_SQE]);
}

pub(crate) fn a_drained_uc_pair_takes_another_route(bench: &mut Bench) {
    let mut maker = Maker::new(&mut bench.near, IBV_QPT_UC);
    assert_eq!(maker.attempt(IBV_QPS_SQD, IBV_QPS_SQD, IBV_QP_AV), 0);
}

type Change = fn(&mut ibv_qp_attr);

/// A transition from one state to another, the name of a wrong value, and the value.
type Wrong = (u32, u32, &'static str, Change);

/// Checks that each wrong value is refused and leaves the state unchanged, and that a valid value
/// is then accepted.
fn refused(bench: &mut Bench, changes: &[Wrong]) {
    let rules = rules("RC");
    let mut maker = Maker::new(&mut bench.near, IBV_QPT_RC);
    for &(from, to, what, change) in changes {
        let side = maker.in_state(from);
        let rule = rules.iter().find(|r| (r.from, r.to) == (from, to)).expect("a legal change");
        let mut attr = good(&side, from, to);
        change(&mut attr);
        let mask = rule.required | IBV_QP_STATE;
        assert_ne!(maker.node.modify(side.qp, &attr, mask), 0, "{what}");
        assert_eq!(maker.node.state(side.qp), from, "{what}");
        assert_eq!(maker.node.modify(side.qp, &good(&side, from, to), mask), 0, "a good value after {what}");
    }
}

pub(crate) fn values_out_of_range_are_refused(bench: &mut Bench) {
    refused(
        bench,
        &[
            (IBV_QPS_RESET, IBV_QPS_INIT, "port 0", |a| a.port_num = 0),
            (IBV_QPS_RESET, IBV_QPS_INIT, "port 99", |a| a.port_num = 99),
            (IBV_QPS_INIT, IBV_QPS_RTR, "MTU 6", |a| a.path_mtu = 6),
            (IBV_QPS_INIT, IBV_QPS_RTR, "port of the route", |a| a.ah_attr.port_num = 99),
            (IBV_QPS_INIT, IBV_QPS_RTR, "GID index", |a| a.ah_attr.grh.sgid_index = 255),
            (IBV_QPS_RTR, IBV_QPS_RTS, "timeout 32", |a| a.timeout = 32),
            (IBV_QPS_RTR, IBV_QPS_RTS, "reads under way", |a| a.max_rd_atomic = 255),
        ],
    );
}

/// Values that no packet can carry, or that the specification does not define.
pub(crate) fn values_that_mean_nothing_are_refused(bench: &mut Bench) {
    refused(
        bench,
        &[
            (IBV_QPS_INIT, IBV_QPS_RTR, "MTU 0", |a| a.path_mtu = 0),
            (IBV_QPS_INIT, IBV_QPS_RTR, "25-bit number", |a| a.dest_qp_num = 1 << 24),
            (IBV_QPS_INIT, IBV_QPS_RTR, "RNR timer 32", |a| a.min_rnr_timer = 32),
            (IBV_QPS_RTR, IBV_QPS_RTS, "retries 8", |a| a.retry_cnt = 8),
            (IBV_QPS_RTR, IBV_QPS_RTS, "RNR retries 8", |a| a.rnr_retry = 8),
        ],
    );
}

pub(crate) fn what_the_device_has_not_is_refused(bench: &mut Bench) {
    refused(
        bench,
        &[
            (IBV_QPS_RESET, IBV_QPS_INIT, "P_Key index", |a| a.pkey_index = 0xffff),
            (IBV_QPS_INIT, IBV_QPS_RTR, "reads in flight", |a| a.max_dest_rd_atomic = 255),
        ],
    );
}

pub(crate) fn a_wrong_current_state_is_refused(bench: &mut Bench) {
    let mut maker = Maker::new(&mut bench.near, IBV_QPT_RC);
    let side = maker.in_state(IBV_QPS_RTS);
    let mut attr = good(&side, IBV_QPS_SQD, IBV_QPS_RTS);
    let mask = IBV_QP_STATE | IBV_QP_CUR_STATE;
    assert_eq!(maker.node.modify(side.qp, &attr, mask), libc::EINVAL, "a wrong current state");
    attr.cur_qp_state = IBV_QPS_RTS;
    assert_eq!(maker.node.modify(side.qp, &attr, mask), 0, "the right current state");
}

pub(crate) fn attributes_read_back(bench: &mut Bench) {
    let mut maker = Maker::new(&mut bench.near, IBV_QPT_RC);
    let side = maker.in_state(IBV_QPS_RESET);
    let tuning = Tuning {
        mtu: IBV_MTU_512,
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
    let rest = [0x12_3456, 0x12_3456, 0xabcd, IBV_MTU_512, 9, 3, 5, 17, REMOTE, 4, 2].map(u64::from);
    assert_eq!(found[3..], rest);
}
