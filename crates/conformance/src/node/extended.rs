//! The extended verbs of a node.

use std::time::Instant;

use verbs::abi::*;

use super::{Node, PATIENCE, completion};
use crate::rig::{Element, op, wr};
use crate::shape::{Read, Remote, Shape, Side};

impl Node {
    /// An extended completion queue with fields (`IBV_WC_EX_WITH_*`) and flags
    /// (`IBV_CREATE_CQ_ATTR_*`).
    #[track_caller]
    pub fn cq_ex(&mut self, entries: u32, fields: u32, flags: u32) -> usize {
        let mask = if flags == 0 { 0 } else { IBV_CQ_INIT_ATTR_MASK_FLAGS };
        let words = [entries, 0, fields, mask, flags, 0].map(u64::from);
        self.make(op::CQ_EX, &words)
    }

    /// A side whose sends can be built by calls (`IBV_QP_EX_WITH_*`).
    #[track_caller]
    pub fn building_side(&mut self, shape: &Shape, operations: u32) -> Side {
        let pd = self.pd();
        let send_cq = self.cq(shape.entries);
        let receive_cq = self.cq(shape.entries);
        let region = self.region(pd, shape.bytes, shape.access);
        let cqs = [send_cq, receive_cq];
        let mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
        let words = [mask, 0, operations].map(u64::from);
        let made = self.get(op::QP_EX, &[&words[..], &shape.words(pd, cqs)].concat());
        self.side_of(shape, pd, cqs, region, &made)
    }

    /// A side with extended completion queues.
    #[track_caller]
    pub fn reading_side(&mut self, shape: &Shape, fields: u32) -> Side {
        let pd = self.pd();
        let cqs = [self.cq_ex(shape.entries, fields, 0), self.cq_ex(shape.entries, fields, 0)];
        self.side_on(shape, pd, cqs)
    }

    /// A step of a work request builder. Errors are reported only by the completion.
    #[track_caller]
    pub fn step(&mut self, side: &Side, step: u64, words: &[u64]) {
        let errno = self.try_step(side, step, words);
        assert_eq!(errno, 0, "step {step} {words:?}");
    }

    #[track_caller]
    pub fn try_step(&mut self, side: &Side, step: u64, words: &[u64]) -> i32 {
        self.errno(op::WR, &[&[side.qp as u64, step], words].concat())
    }

    /// Sets the identifier and the flags of the next work request.
    #[track_caller]
    pub fn tag(&mut self, side: &Side, id: u64, flags: u32) {
        self.step(side, wr::TAG, &[id, u64::from(flags)]);
    }

    /// Builds a signalled Send.
    #[track_caller]
    pub fn build_send(&mut self, side: &Side, id: u64, element: Element) {
        self.tag(side, id, IBV_SEND_SIGNALED);
        self.step(side, wr::SEND, &[]);
        self.step(side, wr::SGE, &element);
    }

    /// Builds a signalled request with remote memory; `own` has the further words of the operation.
    #[track_caller]
    pub fn build_reach(
        &mut self,
        side: &Side,
        id: u64,
        step: u64,
        remote: Remote,
        own: &[u64],
        element: Element,
    ) {
        self.tag(side, id, IBV_SEND_SIGNALED);
        self.step(side, step, &[&[u64::from(remote.key), remote.addr], own].concat());
        self.step(side, wr::SGE, &element);
    }

    /// Starts or continues a poll. Returns a completion, or the error number.
    #[track_caller]
    pub fn try_read(&mut self, command: u64, cq: usize) -> Result<Read, i32> {
        let answer = self.call(command, &[cq as u64]);
        if answer[0] != 0 {
            return Err(answer[0] as i32);
        }
        let wc = completion(&answer[1..9]);
        Ok(Read { wc, stamp: answer[9], wallclock: answer[10] })
    }

    #[track_caller]
    pub fn end_read(&mut self, cq: usize) {
        self.get(op::END_POLL, &[cq as u64]);
    }

    /// Reads until there are `n` completions, in as few polls as possible.
    #[track_caller]
    pub fn read_all(&mut self, cq: usize, n: usize) -> Vec<Read> {
        let start = Instant::now();
        let mut found = Vec::new();
        while found.len() < n {
            assert!(start.elapsed() < PATIENCE, "only {} of {n} completions: {found:?}", found.len());
            let mut next = self.try_read(op::START_POLL, cq);
            let begun = next.is_ok();
            while let Ok(read) = next {
                found.push(read);
                next = self.try_read(op::NEXT_POLL, cq);
            }
            assert_eq!(next, Err(libc::ENOENT), "an empty queue");
            if begun {
                self.end_read(cq);
            }
        }
        assert_eq!(found.len(), n, "{found:?}");
        found
    }

    /// The device's clock in ticks, and the time of day in ns since 1970.
    #[track_caller]
    pub fn clock(&mut self) -> (u64, u64) {
        let words = self.get(op::CLOCK, &[]);
        (words[0], words[1])
    }

    /// The frequency of the device's clock, in ticks per millisecond.
    #[track_caller]
    pub fn ticks_per_ms(&mut self) -> u64 {
        let room = size_of::<ibv_device_attr_ex>() as u64;
        self.get(op::DEVICE_EX, &[room, 0])[1]
    }
}
