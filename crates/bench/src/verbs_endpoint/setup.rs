//! Set-up of a point: from its specification to queue pairs that can be connected.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use measure::clock::Clock;
use verbs::{
    CompletionChannel, CompletionQueue, Connection, Context, Init, Initialisation, LinkModel, Mtu,
    ProtectionDomain, QueuePair, QueuePairOptions, Route,
};

use super::address::{Address, GidAddress, PairAddress, PeerParams, Target};
use super::buffers::{Buffers, access, receive_depth, receives_before};
use super::constants::{GREETINGS, PSN};
use super::device::Open;
use super::joint;
use super::managed::Managed;
use super::port::LocalPort;
use crate::Error;
use crate::endpoint::connecting::Offer;
use crate::endpoint::kind::{EndpointKind, Site};
use crate::fault::PointError;
use crate::point::{Carrier, Operation, QueuePoll, Service};
use crate::topology::PartSpec;

/// The completion queues, and the channel that announces completions in event mode.
pub(super) struct Queues {
    pub(super) send: CompletionQueue,
    pub(super) receive: CompletionQueue,
    pub(super) channel: Option<CompletionChannel>,
}

/// Queue pairs with their buffers and posted receives, not connected yet.
pub(crate) struct Unconnected {
    pub(super) pairs: Vec<QueuePair<Init>>,
    pub(super) queues: Queues,
    pub(super) buffers: Buffers,
    pub(super) domain: ProtectionDomain,
    pub(super) port: Arc<LocalPort>,
    pub(super) managed: Option<Managed>,
    pub(super) joint: Option<joint::Prepared>,
    pub(super) offer: Offer<Address, PeerParams>,
    pub(super) rank: u32,
    pub(super) spec: PartSpec,
    pub(super) clock: Clock,
}

impl Unconnected {
    /// Creates queues, buffers and queue pairs for a point, and posts the receives.
    pub(crate) fn new(
        context: &Context,
        port: &Arc<LocalPort>,
        spec: &PartSpec,
        rank: u32,
        clock: Clock,
    ) -> Result<Self, Error> {
        let limits = context.limits()?;
        let domain = context.protection_domain()?;
        let polls = (spec.message.poll, spec.message.send_poll);
        let sleeps = polls.0.sleeps() || polls.1.sleeps();
        let channel = sleeps.then(|| context.completion_channel()).transpose()?;
        let announced = |poll: QueuePoll| channel.as_ref().filter(|_| poll.sleeps());
        let neighbours = spec.links.neighbours(rank);
        let each = spec.message.queue_pairs as usize;
        let count = if shares_queue_pair(spec) { each } else { each * neighbours.len() };
        let lanes = u32::try_from(count).unwrap_or(u32::MAX);
        let entries = |depth: u32| depth.saturating_add(1).saturating_mul(lanes);
        let queues = Queues {
            send: context
                .completion_queue(entries(spec.message.tx_depth), announced(spec.message.send_poll))?,
            receive: context.completion_queue(entries(receive_depth(spec)), announced(spec.message.poll))?,
            channel,
        };
        let mut buffers = Buffers::new(&domain, spec, rank)?;
        let pairs = (0..lanes)
            .map(|lane| pair(&domain, &queues, &mut buffers, port, spec, lane))
            .collect::<Result<Vec<_>, _>>()?;
        let managed = Managed::new(port, spec, rank)?;
        let joint = joint::Prepared::new(&domain, spec, rank, port.is.max_message_bytes.into())?;
        let targets = joint.as_ref().map(joint::Prepared::targets).transpose()?;
        let asked = spec.message.outstanding_reads.unwrap_or(u8::MAX);
        let address = Address {
            gid: port.gid.as_ref().map(GidAddress::new),
            lid: port.is.lid,
            responder_reads: limits.max_responder_reads.min(asked),
            initiator_reads: limits.max_initiator_reads.min(asked),
            manager: managed.as_ref().and_then(Managed::address),
            group: sends_to_group(spec, rank).then(group),
        };
        let mut offer = Offer::new(address, spec.links.ranks());
        let partners = spec.links.partners(rank).len();
        for (partner, neighbour) in neighbours.iter().enumerate() {
            let first = if shares_queue_pair(spec) { 0 } else { partner * each };
            let numbers = pairs[first..first + each].iter().map(QueuePair::number);
            let params = PeerParams {
                pairs: numbers.map(|qp_num| PairAddress { qp_num, psn: PSN }).collect(),
                target: buffers.remote(partner)?.map(Target::from),
                // Ranks of a mesh that exchange no messages have no position for signals.
                signal: match partner < partners {
                    true => buffers.remote_signal(partner)?.map(Target::from),
                    false => None,
                },
                joint: targets,
            };
            offer.give(*neighbour, params);
        }
        let port = Arc::clone(port);
        let spec = spec.clone();
        Ok(Self { pairs, queues, buffers, domain, port, managed, joint, offer, rank, spec, clock })
    }
}

impl EndpointKind for Unconnected {
    const CARRIERS: &'static [Carrier] = &[Carrier::Verbs];

    /// Sets the link model of the point on the device.
    fn arrange(site: &mut Site<'_>) -> Result<(), PointError> {
        let Open { context, port, .. } = site.device.open()?;
        let link = match site.topology.begins(site.rank) {
            true => site.spec.link,
            false => site.spec.link.map(LinkModel::seen_from_other_end),
        };
        if let Some(reason) = port.refusal(site.spec.message.setup) {
            return Err(PointError::NotMeasured(reason));
        }
        match context.device().provider().set_link {
            Ok(_) => context.set_link(link.as_ref()).map_err(Error::from)?,
            Err(reason) if link.is_some() => return Err(PointError::NotMeasured(reason.to_owned())),
            Err(_) => {}
        }
        Ok(())
    }

    fn prepare(part: &PartSpec, site: &mut Site<'_>) -> Result<Self, Error> {
        let Open { context, port, .. } = site.device.open()?;
        Self::new(context, port, part, site.rank, site.rank_clock.clock)
    }
}

/// Creates the queue pair of a lane, with receives posted.
fn pair(
    domain: &ProtectionDomain,
    queues: &Queues,
    buffers: &mut Buffers,
    port: &LocalPort,
    spec: &PartSpec,
    lane: u32,
) -> Result<QueuePair<Init>, Error> {
    // One more request, for a greeting when the queue is full of measured messages.
    let options = options(spec, spec.message.tx_depth.saturating_add(1), receive_depth(spec));
    let qp = domain.queue_pair(&options, &queues.send, &queues.receive)?;
    let mut qp = qp.init(&initialisation(port, spec))?;
    let requests = buffers.receives.len();
    for i in 0..receives_before(spec) as usize {
        let request = &mut buffers.receives[i % requests];
        request.set_id(u64::from(lane));
        qp.post_receive(request)?;
    }
    Ok(qp)
}

/// Returns the options of a queue pair with queues of these depths.
pub(super) fn options(spec: &PartSpec, max_send_wr: u32, max_recv_wr: u32) -> QueuePairOptions {
    QueuePairOptions {
        service: service(spec.message.service),
        max_send_wr,
        max_recv_wr,
        max_send_sge: spec.message.sge,
        max_recv_sge: spec.message.sge,
        max_inline_data: u32::try_from(spec.inline_bytes()).unwrap_or(u32::MAX),
    }
}

/// Returns the initialisation of a queue pair of a port.
pub(super) fn initialisation(port: &LocalPort, spec: &PartSpec) -> Initialisation {
    port.initialisation(access(spec))
}

/// Returns the connection of a queue pair to a peer's, with one outstanding Read or atomic.
pub(super) fn connection(
    spec: &PartSpec,
    port: &LocalPort,
    own_psn: u32,
    peer: &PairAddress,
    route: Route,
) -> Connection {
    let usual = port.connection_by(peer.qp_num, route);
    let mtu = spec.message.mtu_bytes.and_then(Mtu::from_bytes).unwrap_or(usual.mtu);
    Connection { peer_psn: peer.psn, own_psn, mtu, ..usual }
}

/// Returns whether one queue pair serves all neighbours of a rank: that of datagrams, which name
/// their destination.
pub(super) fn shares_queue_pair(spec: &PartSpec) -> bool {
    spec.usage.has_rounds && spec.message.service == Service::Ud
}

/// Returns whether a rank sends to a multicast group.
pub(super) fn sends_to_group(spec: &PartSpec, rank: u32) -> bool {
    spec.message.operation == Operation::Multicast && spec.links.begins(rank)
}

/// Returns a multicast group of local scope that no other point uses (RFC 4291, section 2.7).
fn group() -> [u8; 16] {
    let own = u64::from(std::process::id()) << 32 | u64::from(GROUPS.fetch_add(1, Relaxed));
    let mut group = [0; 16];
    group[..8].copy_from_slice(&0xff12_601b_7264_6d61_u64.to_be_bytes());
    group[8..].copy_from_slice(&own.to_be_bytes());
    group
}

/// The number of groups that this process has chosen.
static GROUPS: AtomicU32 = AtomicU32::new(0);

/// Returns the most bytes that the device sends inline. No verb reports it, so queue pairs are
/// tried, as other tools do.
pub(crate) fn inline_bytes_max(context: &Context) -> Result<u64, Error> {
    /// No adapter exceeds this.
    const CEILING: u32 = 4096;
    let domain = context.protection_domain()?;
    let queue = context.completion_queue(GREETINGS, None)?;
    let takes = |max_inline_data| {
        let options = QueuePairOptions {
            service: verbs::Service::Rc,
            max_send_wr: 1,
            max_recv_wr: 1,
            max_send_sge: 1,
            max_recv_sge: 1,
            max_inline_data,
        };
        domain.queue_pair(&options, &queue, &queue).is_ok()
    };
    let mut yes = 0;
    let mut no = CEILING + 1;
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
