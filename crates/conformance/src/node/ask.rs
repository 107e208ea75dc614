//! Queries of a node: limits of the device, and waits for its states.

use std::time::Instant;

use verbs::abi::*;

use super::{Node, PATIENCE};
use crate::rig::{Element, op};
use crate::shape::PortFacts;

impl Node {
    /// The port's active MTU, as a code: the largest packet and datagram have 128 B << code.
    #[track_caller]
    pub fn mtu(&mut self) -> ibv_mtu {
        self.get(op::PORT, &[])[0] as ibv_mtu
    }

    /// The properties of the port.
    #[track_caller]
    pub fn port(&mut self) -> PortFacts {
        let words = self.get(op::PORT, &[]);
        PortFacts {
            lid: words[1] as u16,
            sm_lid: words[2] as u16,
            link_layer: words[3] as u8,
            state: words[4] as ibv_port_state,
        }
    }

    /// The largest datagram.
    #[track_caller]
    pub fn datagram_bytes(&mut self) -> usize {
        128 << self.mtu()
    }

    /// The capacity of a queue pair, as a query returns it: sends, receives, inline bytes.
    #[track_caller]
    pub fn depths(&mut self, qp: usize) -> [u32; 3] {
        let words = self.get(op::DEPTHS, &[qp as u64]);
        [words[0] as u32, words[1] as u32, words[2] as u32]
    }

    /// A shared receive queue for a number of receives and elements.
    #[track_caller]
    pub fn srq(&mut self, pd: usize, receives: u32, elements: u32) -> usize {
        self.get(op::SRQ, &[pd as u64, u64::from(receives), u64::from(elements)])[0] as usize
    }

    /// The receives, elements and limit of a shared receive queue.
    #[track_caller]
    pub fn query_srq(&mut self, srq: usize) -> [u32; 3] {
        let words = self.get(op::QUERY_SRQ, &[srq as u64]);
        [words[0] as u32, words[1] as u32, words[2] as u32]
    }

    /// Posts a list of receives to a shared receive queue. Returns the error number and the
    /// position of the bad request.
    #[track_caller]
    pub fn try_receive_shared(
        &mut self,
        srq: usize,
        requests: &[(u64, Vec<Element>)],
    ) -> (i32, Option<usize>) {
        self.post_receives(op::RECEIVE_SHARED, srq, requests)
    }

    #[track_caller]
    pub fn receive_shared(&mut self, srq: usize, id: u64, elements: &[Element]) {
        assert_eq!(self.try_receive_shared(srq, &[(id, elements.to_vec())]), (0, None), "post_srq_recv");
    }

    /// Waits for a state that the device enters by itself: a completion in error may be visible
    /// before the state changes.
    #[track_caller]
    pub fn settles(&mut self, qp: usize, state: ibv_qp_state, what: &str) {
        let start = Instant::now();
        loop {
            let now = self.state(qp);
            if now == state {
                return;
            }
            // Only the program can leave the error state.
            let may_come = now != IBV_QPS_ERR && start.elapsed() < PATIENCE;
            assert!(may_come, "the state stays {now} and does not become {state}: {what}");
        }
    }

    /// Waits until a send queue in SQD has drained: no other change is allowed before.
    #[track_caller]
    pub fn drains(&mut self, qp: usize) {
        let start = Instant::now();
        while self.get(op::DEPTHS, &[qp as u64])[3] != 0 {
            assert!(start.elapsed() < PATIENCE, "the send queue does not drain");
        }
    }

    /// Whether an asynchronous event arrives within a number of milliseconds.
    #[track_caller]
    pub fn is_alarmed(&mut self, ms: u64) -> bool {
        self.get(op::ALARM, &[ms])[0] != 0
    }
}
