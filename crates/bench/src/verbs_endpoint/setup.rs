//! From a point to connected queue pairs.

use std::sync::Arc;

use measure::clock::Clock;
use verbs::{
    AddressHandle, CompletionChannel, CompletionQueue, Connection, Context, Init, Initialisation, Mtu,
    ProtectionDomain, QueuePair, QueuePairOptions, ReadyToSend, Remote, Route, SendRequest,
};

use super::buffers::{Buffers, access, receive_depth, receive_fill};
use super::endpoint::{Notification, Parts, Peer, VerbsEndpoint};
use super::failure::Path;
use super::lane::Lane;
use super::managed::Managed;
use super::numbering::Numbering;
use super::port::GidAddress;
use super::{Address, FILL, GREETINGS, LAST, LocalPort, MORE, PairAddress, QKEY, Target};
use crate::Error;
use crate::calibrate::only_cpu;
use crate::point::{Operation, Pattern, PointSpec, QueuePoll, Service};
use crate::timepiece::Timepiece;

/// Local ACK timeout, 4.096 us x 2^14 = 67 ms, and retries: perftest's.
pub(super) const TIMEOUT: u8 = 14;
pub(super) const RETRY_COUNT: u8 = 7;
/// For ever, as perftest: a slow receiver makes a stream slow, not broken.
const RNR_RETRY: u8 = 7;
/// Code of 10 us, the shortest: a requester that finds the receiver not ready loses as little as possible.
const MIN_RNR_TIMER: u8 = 1;
/// First packet sequence number: any will do.
const PSN: u32 = 0x5c09e;

/// The completion queues, and the channel on which they announce completions in event mode.
pub(super) struct Queues {
    pub(super) send: CompletionQueue,
    pub(super) receive: CompletionQueue,
    pub(super) channel: Option<CompletionChannel>,
}

/// Queue pairs with their buffers and posted receives, not connected yet.
pub(crate) struct Unconnected {
    pairs: Vec<QueuePair<Init>>,
    queues: Queues,
    buffers: Buffers,
    domain: ProtectionDomain,
    port: Arc<LocalPort>,
    managed: Option<Managed>,
    address: Address,
    spec: PointSpec,
    clock: Clock,
}

impl Unconnected {
    /// Makes queues, buffers and queue pairs for a point, and posts the receives.
    pub(crate) fn new(
        context: &Context,
        port: &Arc<LocalPort>,
        spec: &PointSpec,
        rank: u32,
        timepiece: &Timepiece,
    ) -> Result<Self, Error> {
        let limits = context.limits()?;
        let domain = context.protection_domain()?;
        let polls = (spec.poll, spec.send_poll);
        let sleeps = polls.0.sleeps() || polls.1.sleeps();
        let channel = sleeps.then(|| context.completion_channel()).transpose()?;
        let announced = |poll: QueuePoll| channel.as_ref().filter(|_| poll.sleeps());
        let entries = |depth: u32| depth.saturating_add(1).saturating_mul(spec.queue_pairs);
        let queues = Queues {
            send: context.completion_queue(entries(spec.tx_depth), announced(spec.send_poll))?,
            receive: context.completion_queue(entries(receive_depth(spec)), announced(spec.poll))?,
            channel,
        };
        let mut buffers = Buffers::new(&domain, spec)?;
        let pairs = (0..spec.queue_pairs)
            .map(|lane| pair(&domain, &queues, &mut buffers, port, spec, lane))
            .collect::<Result<Vec<_>, _>>()?;
        let managed = Managed::new(port, spec, rank)?;
        let asked = spec.outstanding_reads.unwrap_or(u8::MAX);
        let address = Address {
            pairs: pairs.iter().map(|pair| PairAddress { qp_num: pair.number(), psn: PSN }).collect(),
            gid: port.gid.as_ref().map(GidAddress::new),
            lid: port.is.lid,
            target: buffers.remote()?.map(Target::from),
            responder_reads: limits.max_responder_reads.min(asked),
            initiator_reads: limits.max_initiator_reads.min(asked),
            manager: managed.as_ref().and_then(Managed::address),
            cpu: only_cpu(),
            clock: timepiece.domain.clone(),
        };
        let (port, spec, clock) = (Arc::clone(port), spec.clone(), timepiece.clock);
        Ok(Self { pairs, queues, buffers, domain, port, managed, address, spec, clock })
    }

    /// What the peer has to know.
    pub(crate) fn address(&self) -> &Address {
        &self.address
    }

    /// Connects to the peer.
    pub(crate) fn connect(self, peer: &Address) -> Result<VerbsEndpoint, Error> {
        let Self { pairs, queues, buffers, domain, port, managed, address: own, spec, clock } = self;
        if peer.pairs.len() != pairs.len() {
            let reason = format!("it has {} queue pairs where {} are needed", peer.pairs.len(), pairs.len());
            return Err(Error::PeerAddress { reason });
        }
        let route = port.route(peer)?;
        let handle = (spec.service == Service::Ud).then(|| domain.address_handle(&route)).transpose()?;
        let mut lanes = Vec::with_capacity(pairs.len());
        let mut links = Vec::new();
        for ((id, pair), (own_pair, their_pair)) in (0..).zip(pairs).zip(own.pairs.iter().zip(&peer.pairs)) {
            let connection = connection(&spec, &port, &own, peer, (own_pair, their_pair), route);
            let mut handle = handle.clone();
            let pair = match &managed {
                None => pair.ready_to_receive(&connection)?.ready_to_send(&connection)?,
                Some(managed) => {
                    let (pair, link) = managed.connect(pair, id, peer.manager, &connection)?;
                    handle = link.address_handle(&domain)?.or(handle);
                    links.push(link);
                    pair
                }
            };
            let to = Destination { spec: &spec, buffers: &buffers, peer, qp_num: their_pair.qp_num };
            lanes.push(to.lane(id, pair, handle.as_ref())?);
        }
        let notification = match (spec.pattern, spec.operation) {
            (Pattern::PingPong, Operation::Write) => Notification::Memory,
            _ => Notification::Completion,
        };
        let numbering =
            (spec.pattern == Pattern::OneWay).then(|| Numbering::new(&spec, &buffers, peer)).transpose()?;
        let peer_gid = peer.gid.as_ref().map(GidAddress::entry);
        let shares_cpu = own.cpu.is_some()
            && own.cpu == peer.cpu
            && port.gid.map(|gid| gid.gid) == peer_gid.map(|gid| gid.gid);
        let pauses = domain.context().device().provider().pauses;
        let parts = Parts { lanes, queues, buffers, links, numbering, pauses };
        let has_one_clock = own.clock.shares_with(&peer.clock);
        let peer = Peer { notification, shares_cpu, has_one_clock, path: Path::new(&spec, &port, peer) };
        Ok(VerbsEndpoint::new(&spec, parts, clock, peer))
    }
}

/// The queue pair of a lane, with receives posted.
fn pair(
    domain: &ProtectionDomain,
    queues: &Queues,
    buffers: &mut Buffers,
    port: &LocalPort,
    spec: &PointSpec,
    lane: u32,
) -> Result<QueuePair<Init>, Error> {
    let depth = receive_depth(spec);
    let options = QueuePairOptions {
        service: service(spec.service),
        // One for a greeting when the queue is full of what is measured.
        max_send_wr: spec.tx_depth.saturating_add(1),
        max_recv_wr: depth,
        max_send_sge: spec.sge,
        max_recv_sge: spec.sge,
        max_inline_data: if spec.inline { u32::try_from(spec.size_bytes).unwrap_or(u32::MAX) } else { 0 },
    };
    let qp = domain.queue_pair(&options, &queues.send, &queues.receive)?;
    let mut qp = qp.init(&Initialisation {
        port: port.number,
        pkey_index: port.options.pkey_index,
        qkey: QKEY,
        access: access(spec.operation),
    })?;
    let requests = buffers.receives.len();
    for i in 0..receive_fill(spec) as usize {
        let request = &mut buffers.receives[i % requests];
        request.set_id(u64::from(lane));
        qp.post_receive(request)?;
    }
    Ok(qp)
}

/// What connects one of our queue pairs with one of the peer's.
fn connection(
    spec: &PointSpec,
    port: &LocalPort,
    own: &Address,
    peer: &Address,
    pairs: (&PairAddress, &PairAddress),
    route: Route,
) -> Connection {
    Connection {
        qp_num: pairs.1.qp_num,
        peer_psn: pairs.1.psn,
        own_psn: pairs.0.psn,
        mtu: spec.mtu_bytes.and_then(Mtu::from_bytes).unwrap_or(port.is.active_mtu),
        route,
        timeout: TIMEOUT,
        retry_count: RETRY_COUNT,
        rnr_retry: RNR_RETRY,
        min_rnr_timer: MIN_RNR_TIMER,
        responder_reads: own.responder_reads.min(peer.initiator_reads),
        initiator_reads: own.initiator_reads.min(peer.responder_reads),
    }
}

/// Where the requests of a lane go.
struct Destination<'a> {
    spec: &'a PointSpec,
    buffers: &'a Buffers,
    peer: &'a Address,
    qp_num: u32,
}

impl Destination<'_> {
    fn lane(
        &self,
        id: u64,
        qp: QueuePair<ReadyToSend>,
        handle: Option<&AddressHandle>,
    ) -> Result<Lane, Error> {
        let to = |request: SendRequest| match handle {
            Some(handle) => request.to(handle, self.qp_num, QKEY),
            None => request,
        };
        let has_immediate = self.spec.operation.has_immediate();
        let more = || {
            let request = self.request()?;
            Ok(to(if has_immediate { request.immediate(MORE) } else { request }))
        };
        let list = (0..self.spec.post_list).map(|_| more()).collect::<Result<Vec<_>, Error>>()?;
        // A one-sided operation has nobody to tell that it is the last.
        let last = self.request()?;
        let last = if self.spec.operation.arrives() { last.immediate(LAST) } else { last };
        let greeting = SendRequest::send(0, Vec::new()).immediate(LAST);
        Ok(Lane::new(id, qp, list, to(last).signaled(true), to(greeting).signaled(true)))
    }

    /// The operation that is measured, without immediate data and address.
    fn request(&self) -> Result<SendRequest, Error> {
        let spec = self.spec;
        let elements = self.buffers.elements(spec)?;
        let request = match spec.operation {
            Operation::Send | Operation::SendImm => SendRequest::send(0, elements),
            Operation::Write | Operation::WriteImm => SendRequest::write(0, elements, self.target()?),
            Operation::Read => SendRequest::read(0, elements, self.target()?),
            // The first finds the zero and swaps, the others find the one: either is a compare-and-swap.
            Operation::CompareSwap => SendRequest::compare_swap(0, elements[0], self.target()?, 0, 1),
            Operation::FetchAdd => SendRequest::fetch_add(0, elements[0], self.target()?, 1),
        };
        Ok(if spec.inline { request.inline(&vec![FILL; spec.size_bytes as usize]) } else { request })
    }

    fn target(&self) -> Result<Remote, Error> {
        let target = self.peer.target.ok_or_else(|| Error::PeerAddress {
            reason: "it has no memory for one-sided operations".to_owned(),
        })?;
        Ok(Remote { addr: target.addr, rkey: target.rkey })
    }
}

/// The most bytes that the device takes inline: no verb tells, so queue pairs are tried, as other tools do.
pub(crate) fn inline_bytes_max(context: &Context) -> Result<u64, Error> {
    /// Beyond it no adapter goes.
    const CEILING: u32 = 4096;
    let domain = context.protection_domain()?;
    let queue = context.completion_queue(GREETINGS, None)?;
    let takes = |max_inline_data| {
        let service = verbs::Service::Rc;
        let (max_send_wr, max_recv_wr, max_send_sge, max_recv_sge) = (1, 1, 1, 1);
        let options = QueuePairOptions {
            service,
            max_send_wr,
            max_recv_wr,
            max_send_sge,
            max_recv_sge,
            max_inline_data,
        };
        domain.queue_pair(&options, &queue, &queue).is_ok()
    };
    let (mut yes, mut no) = (0, CEILING + 1);
    while no - yes > 1 {
        let middle = yes.midpoint(no);
        if takes(middle) { yes = middle } else { no = middle }
    }
    Ok(u64::from(yes))
}

fn service(service: Service) -> verbs::Service {
    match service {
        Service::Rc => verbs::Service::Rc,
        Service::Uc => verbs::Service::Uc,
        Service::Ud => verbs::Service::Ud,
    }
}
