//! RDMA CM connections that are made and ended one by one, to time that: rank 0 makes and ends
//! them, rank 1 accepts them.
//!
//! # Invariants
//!
//! * Between two time stamps of rank 0, rank 1 does its part of the connection and nothing else. It
//!   creates its queue pairs for a batch before rank 0 continues after the previous batch: rank 0
//!   waits for the answer that ends its connections, and rank 1 gives that answer when the queue
//!   pairs exist.

use super::Objects;
use crate::Error;
use crate::endpoint::calls::Step;
use crate::verbs_endpoint::address::PairAddress;
use crate::verbs_endpoint::constants::PSN;
use crate::verbs_endpoint::managed::{PATIENCE, silent};
use crate::verbs_endpoint::setup::connection;

impl Objects<'_> {
    /// Creates the queue pairs of a batch, whose peers RDMA CM will find.
    fn make_initialised(&mut self) -> Result<(), Error> {
        for _ in 0..self.batch {
            let pair = self.initialised_pair()?;
            let unknown = PairAddress { qp_num: 0, psn: PSN };
            self.unconnected.push((pair, connection(self.spec, &self.port, PSN, &unknown, self.to_peer)));
        }
        Ok(())
    }

    /// Creates the channels and queue pairs with which rank 0 connects a batch.
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

    /// Destroys the rest of ended connections.
    pub(super) fn take_down(&mut self) {
        self.links.clear();
        self.connected.clear();
    }

    /// Does rank 1's part of `batches` batches.
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
                // Rank 0 waits for the answer, but this is not timed.
                if ended == 0 && self.step == Step::RdmaCmConnect && !is_last {
                    self.connected.clear();
                    self.make_initialised()?;
                }
                // The end is answered at once, and the link is destroyed when nothing is timed.
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
