//! Connections of RDMA CM that are made and ended by themselves, to time that: rank 0 asks for them
//! and ends them, rank 1 takes them.
//!
//! # Invariants
//!
//! * What rank 1 does between two stamps of rank 0 is its part of the connection and nothing else.
//!   Its queue pairs for a batch are made before rank 0 goes on from the batch before: rank 0 waits
//!   for the answer that ends its connections, and rank 1 gives that answer when they are made.

use super::Objects;
use crate::Error;
use crate::endpoint::calls::Step;
use crate::verbs_endpoint::address::PairAddress;
use crate::verbs_endpoint::constants::PSN;
use crate::verbs_endpoint::managed::{PATIENCE, silent};
use crate::verbs_endpoint::setup::connection;

impl Objects<'_> {
    /// Makes the queue pairs of a batch, whose peers RDMA CM is to find.
    fn make_initialised(&mut self) -> Result<(), Error> {
        for _ in 0..self.batch {
            let pair = self.initialised_pair()?;
            let unknown = PairAddress { qp_num: 0, psn: PSN };
            self.unconnected.push((pair, connection(self.spec, &self.port, PSN, &unknown, self.to_peer)));
        }
        Ok(())
    }

    /// Makes what rank 0 connects a batch with.
    pub(super) fn prepare_connections(&mut self) -> Result<(), Error> {
        let (managed, _) = self.managed.ok_or_else(silent)?;
        for _ in 0..self.batch {
            self.channels.push(managed.channel()?);
        }
        self.make_initialised()
    }

    /// Connects the queue pairs of a batch, one after another.
    pub(super) fn connect_by_manager(&mut self) -> Result<(), Error> {
        let (managed, listener) = self.managed.ok_or_else(silent)?;
        let listener = listener.ok_or_else(silent)?;
        let waiting = self.unconnected.drain(..).zip(self.channels.drain(..));
        for (((pair, to), channel), tag) in waiting.zip((0..=u8::MAX).cycle()) {
            let (pair, link) = channel.connect(pair, managed.own(), listener, &to, tag, PATIENCE)?;
            self.connected.push(pair);
            self.links.push(link);
        }
        Ok(())
    }

    /// Ends the connections of a batch, one after another.
    pub(super) fn disconnect(&mut self) -> Result<(), Error> {
        self.links.iter().try_for_each(|link| Ok(link.disconnect(PATIENCE)?))
    }

    /// Destroys what is left of connections that have ended.
    pub(super) fn take_down(&mut self) {
        self.links.clear();
        self.connected.clear();
    }

    /// Does rank 1's part of so many batches.
    pub(in super::super) fn accept(&mut self, batches: u64) -> Result<(), Error> {
        let (managed, _) = self.managed.ok_or_else(silent)?;
        let listener = managed.listener()?;
        self.make_initialised()?;
        let mut over = Vec::new();
        for batch in 1..=batches {
            for ((pair, to), tag) in self.unconnected.drain(..).zip((0..=u8::MAX).cycle()) {
                let (pair, link) = listener.accept(pair, &to, tag, PATIENCE)?;
                self.connected.push(pair);
                self.links.push(link);
            }
            let is_last = batch == batches;
            for ended in 0..self.batch {
                let link = listener.ended(&mut self.links, PATIENCE)?;
                // Rank 0 waits for the answer, but is not timed.
                if ended == 0 && self.step == Step::RdmaCmConnect && !is_last {
                    self.connected.clear();
                    self.make_initialised()?;
                }
                // It is answered at once, and destroyed when nobody is timed.
                link.answer_end()?;
                over.push(link);
            }
            over.clear();
            if self.step == Step::RdmaCmDisconnect && !is_last {
                self.connected.clear();
                self.make_initialised()?;
            }
        }
        Ok(())
    }
}
