//! What a case asks of an end: limits that the device has, and states that it reaches in its own time.

use std::time::Instant;

use verbs::abi::*;

use super::{Node, PATIENCE};
use crate::rig::op;

impl Node {
    /// The port's active MTU, as a code: the largest packet, and so the largest datagram, has 128 B << code.
    #[track_caller]
    pub fn mtu(&mut self) -> ibv_mtu {
        self.get(op::PORT, &[])[0] as ibv_mtu
    }

    /// The largest datagram.
    #[track_caller]
    pub fn datagram_bytes(&mut self) -> usize {
        128 << self.mtu()
    }

    /// What a queue pair has room for, as a query gives it: sends, receives, inline bytes.
    #[track_caller]
    pub fn depths(&mut self, qp: usize) -> [u32; 3] {
        let words = self.get(op::DEPTHS, &[qp as u64]);
        [words[0] as u32, words[1] as u32, words[2] as u32]
    }

    /// Waits for a state that the device goes to by itself: a completion in error may be seen before the state that
    /// comes with it.
    #[track_caller]
    pub fn settles(&mut self, qp: usize, state: ibv_qp_state, what: &str) {
        let start = Instant::now();
        loop {
            let now = self.state(qp);
            if now == state {
                return;
            }
            // Only the program leads out of the error state.
            let may_come = now != IBV_QPS_ERR && start.elapsed() < PATIENCE;
            assert!(may_come, "state {now} stays, {state} does not come: {what}");
        }
    }

    /// Waits until a send queue that was told to has drained: no other change is allowed before.
    #[track_caller]
    pub fn drains(&mut self, qp: usize) {
        let start = Instant::now();
        while self.get(op::DEPTHS, &[qp as u64])[3] != 0 {
            assert!(start.elapsed() < PATIENCE, "the send queue does not drain");
        }
    }

    /// Whether an asynchronous event comes within so many milliseconds.
    #[track_caller]
    pub fn is_alarmed(&mut self, ms: u64) -> bool {
        self.get(op::ALARM, &[ms])[0] != 0
    }
}
