//! The two ends of a case.

use crate::node::Node;
use crate::shape::{Shape, Side, Tuning};
use crate::subject::Subject;

/// What a case runs on.
pub struct Bench {
    pub subject: Subject,
    pub near: Node,
    pub far: Node,
    pub processes: bool,
}

impl Bench {
    /// Opens both ends, in one process or in two.
    pub fn new(subject: &Subject, processes: bool) -> Self {
        let near = Node::local(subject);
        let far = if processes { Node::remote(subject) } else { Node::local(subject) };
        Self { subject: subject.clone(), near, far, processes }
    }

    /// One more far end.
    pub fn another(&self) -> Node {
        if self.processes { Node::remote(&self.subject) } else { Node::local(&self.subject) }
    }

    /// Two connected queue pairs in RTS.
    #[track_caller]
    pub fn connected(&mut self, shape: &Shape, tuning: &Tuning) -> (Side, Side) {
        let (a, b) = (self.near.side(shape), self.far.side(shape));
        self.connect(&a, &b, tuning);
        (a, b)
    }

    /// Takes both from RESET to RTS.
    #[track_caller]
    pub fn connect(&mut self, a: &Side, b: &Side, tuning: &Tuning) {
        self.near.init(a);
        self.far.init(b);
        self.near.ready_to_receive(a, b.number, b.gid, tuning);
        self.far.ready_to_receive(b, a.number, a.gid, tuning);
        self.near.ready_to_send(a, tuning);
        self.far.ready_to_send(b, tuning);
    }

    /// Destroys everything; nothing may refuse.
    pub fn close(self) {
        self.near.close();
        self.far.close();
    }
}
