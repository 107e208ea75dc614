//! Verbs objects that are created and destroyed in batches, to time the set-up.

mod connections;

use std::net::SocketAddr;
use std::sync::Arc;

use verbs::abi::IBV_ACCESS_LOCAL_WRITE;
use verbs::manager::{Channel, Link};
use verbs::{
    AddressHandle, Buffer, CompletionQueue, Connection, Context, Init, MemoryKind, MemoryRegion,
    ProtectionDomain, QueuePair, ReadyToSend, Reset, Route,
};

use super::address::{GidAddress, PairAddress};
use super::buffers::access;
use super::constants::PSN;
use super::endpoint::VerbsEndpoint;
use super::managed::Managed;
use super::parts::Origin;
use super::port::LocalPort;
use super::setup::{connection, initialisation, options};
use crate::Error;
use crate::endpoint::calls::{Batch, Step};
use crate::endpoint::limits::{Limits, Over};
use crate::topology::PartSpec;

/// A step of set-up on the device of an endpoint. Objects are stored in arrays that were allocated
/// before.
pub(crate) struct Objects<'a> {
    step: Step,
    /// The calls of a batch.
    batch: u32,
    spec: &'a PartSpec,
    context: Context,
    domain: ProtectionDomain,
    /// The completion queue of every queue pair.
    queue: CompletionQueue,
    port: Arc<LocalPort>,
    managed: Option<&'a (Managed, Option<SocketAddr>)>,
    to_peer: Route,
    to_self: Route,
    limits: Limits,
    /// The batches that were started.
    batches: u64,
    buffers: Vec<Buffer>,
    regions: Vec<MemoryRegion>,
    queues: Vec<CompletionQueue>,
    made: Vec<QueuePair<Reset>>,
    unconnected: Vec<(QueuePair<Init>, Connection)>,
    connected: Vec<QueuePair<ReadyToSend>>,
    /// The queue pairs at the other end of connections.
    others: Vec<QueuePair<Init>>,
    handles: Vec<AddressHandle>,
    /// The channels of connections that are not made yet.
    channels: Vec<Channel>,
    /// The connections of RDMA CM, one for each queue pair in `connected`.
    links: Vec<Link>,
}

impl<'a> Objects<'a> {
    /// Creates a state without objects, in a separate protection domain.
    pub(super) fn new(
        origin: &'a Origin,
        endpoint: &VerbsEndpoint,
        step: Step,
        batch: u32,
    ) -> Result<Self, Error> {
        let Origin { context, port, spec, managed } = origin;
        let own = port.gid.as_ref().map(GidAddress::new);
        let calls = batch as usize;
        Ok(Self {
            step,
            batch,
            spec,
            context: context.clone(),
            domain: context.protection_domain()?,
            queue: context.completion_queue(spec.message.tx_depth.saturating_add(1), None)?,
            port: Arc::clone(port),
            managed: managed.as_ref(),
            to_peer: endpoint.route()?,
            to_self: port.route_to(own.as_ref(), port.is.lid)?,
            limits: endpoint.limits(),
            batches: 0,
            buffers: Vec::with_capacity(calls),
            regions: Vec::with_capacity(calls),
            queues: Vec::with_capacity(calls),
            made: Vec::with_capacity(calls),
            unconnected: Vec::with_capacity(calls),
            connected: Vec::with_capacity(calls),
            others: Vec::with_capacity(calls),
            handles: Vec::with_capacity(calls),
            channels: Vec::with_capacity(calls),
            links: Vec::with_capacity(calls),
        })
    }

    /// Ends the point if its time is over.
    fn check_deadline(&mut self) -> Result<(), Error> {
        let Err(Over::Time(waited_s) | Over::Silence(waited_s)) = self.limits.look() else { return Ok(()) };
        Err(Error::SlowCalls { step: self.step.word(), batches: self.batches, waited_s })
    }

    fn create_pair(&self) -> Result<QueuePair<Reset>, Error> {
        let options = options(self.spec, self.spec.message.tx_depth, self.spec.message.rx_depth);
        Ok(self.domain.queue_pair(&options, &self.queue, &self.queue)?)
    }

    fn initialised_pair(&self) -> Result<QueuePair<Init>, Error> {
        Ok(self.create_pair()?.init(&initialisation(&self.port, self.spec))?)
    }

    /// Creates pairs of queue pairs; one of each pair will be connected to the other.
    fn make_unconnected(&mut self) -> Result<(), Error> {
        for _ in 0..self.batch {
            let pair = self.initialised_pair()?;
            let other = self.initialised_pair()?;
            let to = PairAddress { qp_num: other.number(), psn: PSN };
            self.unconnected.push((pair, connection(self.spec, &self.port, PSN, &to, self.to_self)));
            self.others.push(other);
        }
        Ok(())
    }

    fn connect(&mut self) -> Result<(), Error> {
        while let Some((pair, to)) = self.unconnected.pop() {
            self.connected.push(pair.ready_to_receive(&to)?.ready_to_send(&to)?);
        }
        Ok(())
    }

    fn register(&mut self) -> Result<(), Error> {
        let access = access(self.spec) | IBV_ACCESS_LOCAL_WRITE;
        while let Some(buffer) = self.buffers.pop() {
            self.regions.push(self.domain.register(buffer, access)?);
        }
        Ok(())
    }

    fn deregister(&mut self) -> Result<(), Error> {
        while let Some(region) = self.regions.pop() {
            self.buffers.push(region.deregister()?);
        }
        Ok(())
    }

    /// Maps memory for a batch, without populating any page.
    fn map(&mut self) -> Result<(), Error> {
        let size = self.spec.message.size();
        for _ in 0..self.batch {
            self.buffers.push(self.domain.buffer(MemoryKind::Process, size)?);
        }
        Ok(())
    }

    /// Creates memory for all batches, which is touched and registered once.
    fn warm(&mut self) -> Result<(), Error> {
        if self.buffers.is_empty() {
            self.map()?;
            self.buffers.iter_mut().for_each(Buffer::touch);
            self.register()?;
            self.deregister()?;
        }
        Ok(())
    }
}

impl Batch for Objects<'_> {
    fn prepare(&mut self) -> Result<(), Error> {
        self.check_deadline()?;
        self.batches += 1;
        match self.step {
            Step::RegisterCold => self.map(),
            Step::RegisterWarm => self.warm(),
            Step::Deregister => {
                self.warm()?;
                self.register()
            }
            Step::ConnectQp => self.make_unconnected(),
            Step::DestroyQp => {
                self.make_unconnected()?;
                self.connect()
            }
            Step::RdmaCmConnect => self.prepare_connections(),
            Step::RdmaCmDisconnect => {
                self.prepare_connections()?;
                self.connect_by_manager()
            }
            _ => Ok(()),
        }
    }

    fn run(&mut self) -> Result<u32, Error> {
        let calls = self.batch;
        match self.step {
            Step::RegisterCold | Step::RegisterWarm => self.register()?,
            Step::Deregister => self.deregister()?,
            Step::CreateCq => {
                for _ in 0..calls {
                    let entries = self.spec.message.tx_depth.saturating_add(1);
                    self.queues.push(self.context.completion_queue(entries, None)?);
                }
            }
            Step::CreateQp => {
                for _ in 0..calls {
                    let pair = self.create_pair()?;
                    self.made.push(pair);
                }
            }
            Step::ConnectQp => self.connect()?,
            Step::DestroyQp => self.connected.clear(),
            Step::RdmaCmConnect => self.connect_by_manager()?,
            Step::RdmaCmDisconnect => self.disconnect()?,
            Step::AddressHandle => {
                for _ in 0..calls {
                    self.handles.push(self.domain.address_handle(&self.to_peer)?);
                }
            }
            // The other steps are calls of an endpoint.
            _ => return Ok(0),
        }
        Ok(calls)
    }

    fn finish(&mut self, _: u32) -> Result<(), Error> {
        match self.step {
            Step::RegisterCold => self.regions.clear(),
            Step::RegisterWarm => self.deregister()?,
            Step::CreateCq => self.queues.clear(),
            Step::CreateQp => self.made.clear(),
            Step::ConnectQp | Step::DestroyQp => {
                self.connected.clear();
                self.others.clear();
            }
            Step::RdmaCmConnect => {
                self.disconnect()?;
                self.take_down();
            }
            Step::RdmaCmDisconnect => self.take_down(),
            Step::AddressHandle => self.handles.clear(),
            _ => {}
        }
        Ok(())
    }
}
