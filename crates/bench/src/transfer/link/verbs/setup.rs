//! An unconnected link: queue pairs and registered slots.

use std::collections::VecDeque;

use measure::clock::Clock;
use serde::{Deserialize, Serialize};
use verbs::abi::{IBV_ACCESS_LOCAL_WRITE, IBV_ACCESS_REMOTE_WRITE};
use verbs::{
    CompletionChannel, CompletionQueue, Context, Init, MemoryRegion, ProtectionDomain, QueuePair,
    QueuePairOptions, ReceiveRequest, Remote, SendRequest, Service,
};

use super::connected::{Flow, Lane, Link, sends_of_lane};
use super::constants::{ANSWER_SLOTS, CREDIT_RECEIVES, RECEIVE};
use super::registered::{Registered, slots};
use crate::Error;
use crate::transfer::link::{ANSWER_BLOCK_BYTES, Patience};
use crate::verbs_endpoint::{GidAddress, LocalPort};

/// The address that a rank sends to its peer.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct VerbsAddress {
    gid: Option<GidAddress>,
    lid: u16,
    pairs: Vec<u32>,
    /// The number of slots that the rank fills itself.
    own_slots: u64,
    /// The slots that the peer fills.
    slots: Vec<Slot>,
    /// The bytes of each slot.
    slot_bytes: u64,
}

#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Slot {
    addr: u64,
    rkey: u32,
}

/// The settings of a link.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wanted {
    pub(crate) is_source: bool,
    /// The number of queue pairs.
    pub(crate) pairs: usize,
    /// The bytes of a block of files.
    pub(crate) block_bytes: usize,
    /// The blocks of files under way on each queue pair.
    pub(crate) depth: usize,
    /// Whether slots stay registered between blocks.
    pub(crate) keeps_registrations: bool,
}

/// One side of an unconnected link.
pub(crate) struct Unconnected {
    wanted: Wanted,
    domain: ProtectionDomain,
    queue: CompletionQueue,
    channel: CompletionChannel,
    pairs: Vec<QueuePair<Init>>,
    own: Vec<MemoryRegion>,
    theirs: Vec<MemoryRegion>,
    registered: Registered,
    gid: Option<GidAddress>,
    lid: u16,
    clock: Clock,
    /// Why there are fewer or smaller blocks than asked for, if so.
    shrunk: Option<String>,
}

impl Unconnected {
    /// Makes queue pairs and registers slots.
    ///
    /// # Errors
    /// The errors of the device.
    pub(crate) fn new(
        context: &Context,
        port: &LocalPort,
        wanted: Wanted,
        clock: Clock,
    ) -> Result<Self, Error> {
        let domain = context.protection_domain()?;
        let mut registered = Registered::default();
        let files = (wanted.depth * wanted.pairs, wanted.block_bytes);
        let answers = (ANSWER_SLOTS, ANSWER_BLOCK_BYTES);
        let (out, into) = if wanted.is_source { (files, answers) } else { (answers, files) };
        let local = IBV_ACCESS_LOCAL_WRITE;
        let (own, own_bytes) = slots(&mut registered, clock, &domain, out, local)?;
        let remote = local | IBV_ACCESS_REMOTE_WRITE;
        let (theirs, bytes) = slots(&mut registered, clock, &domain, into, remote)?;
        let of_files = if wanted.is_source { (own.len(), own_bytes) } else { (theirs.len(), bytes) };
        let shrunk = (of_files != files).then(|| {
            format!(
                "{} blocks of {} KiB instead of {} of {} KiB, because no more memory could be registered (`ulimit -l`)",
                of_files.0,
                of_files.1 >> 10,
                files.0,
                files.1 >> 10
            )
        });
        // For each queue pair.
        let receives = theirs.len().div_ceil(wanted.pairs) + CREDIT_RECEIVES;
        let sends = sends_of_lane(own.len(), wanted.pairs);
        let depth = |of: usize| u32::try_from(of).unwrap_or(u32::MAX);
        let channel = context.completion_channel()?;
        let queue = context.completion_queue(depth((receives + sends) * wanted.pairs), Some(&channel))?;
        let options = QueuePairOptions {
            service: Service::Rc,
            max_send_wr: depth(sends),
            max_recv_wr: depth(receives),
            max_send_sge: 1,
            max_recv_sge: 1,
            max_inline_data: 0,
        };
        let pair = |lane: usize| -> Result<QueuePair<Init>, Error> {
            let pair = domain.queue_pair(&options, &queue, &queue)?;
            let mut pair = pair.init(&port.initialisation(IBV_ACCESS_REMOTE_WRITE))?;
            for _ in 0..receives {
                pair.post_receive(&mut ReceiveRequest::new(lane as u64 | RECEIVE, Vec::new()))?;
            }
            Ok(pair)
        };
        let pairs = (0..wanted.pairs).map(pair).collect::<Result<_, Error>>()?;
        let gid = port.gid.as_ref().map(GidAddress::new);
        let lid = port.is.lid;
        Ok(Self { wanted, domain, queue, channel, pairs, own, theirs, registered, gid, lid, clock, shrunk })
    }

    /// Returns the address for the peer.
    ///
    /// # Errors
    /// The errors of the device.
    pub(crate) fn address(&self) -> Result<VerbsAddress, Error> {
        let slot = |region: &MemoryRegion| -> Result<Slot, Error> {
            let Remote { addr, rkey } = region.remote(0)?;
            Ok(Slot { addr, rkey })
        };
        Ok(VerbsAddress {
            gid: self.gid,
            lid: self.lid,
            pairs: self.pairs.iter().map(QueuePair::number).collect(),
            own_slots: self.own.len() as u64,
            slots: self.theirs.iter().map(slot).collect::<Result<_, _>>()?,
            slot_bytes: self.theirs.first().map_or(0, |slot| slot.len() as u64),
        })
    }

    /// Returns why there are fewer or smaller blocks than asked for, if so.
    pub(crate) fn shrunk(&self) -> Option<&str> {
        self.shrunk.as_deref()
    }

    /// Connects the link to the peer.
    ///
    /// # Errors
    /// The errors of the device, or [`Error::PeerAddress`] if the address of the peer does not fit.
    pub(crate) fn connect(
        self,
        port: &LocalPort,
        peer: &VerbsAddress,
        patience: Patience,
    ) -> Result<Link, Error> {
        let wrong = |what: &str| Error::PeerAddress { reason: what.to_owned() };
        if peer.pairs.len() != self.pairs.len() {
            return Err(wrong("it has another number of queue pairs"));
        }
        let slot_bytes = usize::try_from(peer.slot_bytes).map_err(|_| wrong("its blocks are too long"))?;
        if peer.slots.is_empty() || slot_bytes < ANSWER_BLOCK_BYTES {
            return Err(wrong("it has no room for blocks"));
        }
        let mut lanes = Vec::new();
        for (pair, number) in self.pairs.into_iter().zip(&peer.pairs) {
            let to = port.connection(*number, peer.gid.as_ref(), peer.lid)?;
            let pair = pair.ready_to_receive(&to)?.ready_to_send(&to)?;
            lanes.push(Lane { pair, arrived: VecDeque::new(), under_way: 0 });
        }
        // Both ranks use the smaller number of slots.
        let mut own = self.own;
        own.truncate(peer.slots.len());
        let mut theirs = self.theirs;
        theirs.truncate(usize::try_from(peer.own_slots).unwrap_or(usize::MAX).max(1));
        let request = |(own, slot): (&MemoryRegion, &Slot)| {
            let to = Remote { addr: slot.addr, rkey: slot.rkey };
            Ok(SendRequest::write(0, vec![own.sge(0, 0)?], to).immediate(0).signaled(true))
        };
        let requests = own.iter().zip(&peer.slots).map(request).collect::<Result<_, Error>>()?;
        let own_bytes = own.first().map_or(0, MemoryRegion::len);
        Ok(Link {
            lanes,
            queue: self.queue,
            channel: self.channel,
            domain: self.domain,
            block_bytes: own_bytes.min(slot_bytes),
            free: (0..own.len()).rev().collect(),
            filling: None,
            posted: VecDeque::new(),
            own,
            requests,
            credit: SendRequest::send(0, Vec::new()).immediate(0).signaled(true),
            receive: ReceiveRequest::new(0, Vec::new()),
            theirs,
            flow: Flow::default(),
            keeps_registrations: self.wanted.keeps_registrations,
            registered: self.registered,
            sleeps: 0,
            patience,
            clock: self.clock,
        })
    }
}
