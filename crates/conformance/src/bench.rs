//! The near and the far node of a case.

use verbs::abi::*;

use crate::node::Node;
use crate::shape::{Send, Shape, Side, Tuning};
use crate::subject::Subject;

/// The nodes on which a case runs.
pub struct Bench {
    pub subject: Subject,
    pub near: Node,
    pub far: Node,
    pub processes: bool,
}

impl Bench {
    /// Opens both nodes, in one process or in two.
    pub fn new(subject: &Subject, processes: bool) -> Self {
        let near = Node::local(subject);
        let far = if processes { Node::lasting(subject) } else { Node::local(subject) };
        Self { subject: subject.clone(), near, far, processes }
    }

    /// Opens another far node.
    pub fn another(&self) -> Node {
        if self.processes { Node::lasting(&self.subject) } else { Node::local(&self.subject) }
    }

    /// Creates two connected queue pairs in RTS.
    #[track_caller]
    pub fn connected(&mut self, shape: &Shape, tuning: &Tuning) -> (Side, Side) {
        let a = self.near.side(shape);
        let b = self.far.side(shape);
        self.connect(&a, &b, tuning);
        (a, b)
    }

    /// Connects two queue pairs, from RESET to RTS.
    #[track_caller]
    pub fn connect(&mut self, a: &Side, b: &Side, tuning: &Tuning) {
        self.near.init(a, tuning);
        self.far.init(b, tuning);
        self.near.ready_to_receive(a, b.number, b.gid, tuning);
        self.far.ready_to_receive(b, a.number, a.gid, tuning);
        self.near.ready_to_send(a, tuning);
        self.far.ready_to_send(b, tuning);
    }

    /// Waits until the near node's RDMA Writes are in the far memory. A completion of UC does
    /// not report this, but a later message arrives after them.
    #[track_caller]
    pub fn settle(&mut self, a: &Side, b: &Side) {
        if a.service == IBV_QPT_UC {
            self.far.receive(b.qp, 0, &[]);
            self.near.send(a.qp, Send::new(0, &[]));
            assert_eq!(self.near.wait_one(a.send_cq).status, IBV_WC_SUCCESS);
            assert_eq!(self.far.wait_one(b.receive_cq).status, IBV_WC_SUCCESS);
        }
    }

    /// Destroys all objects; no destruction may be refused.
    pub fn close(self) {
        self.near.close();
        self.far.close();
    }
}
