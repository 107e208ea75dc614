//! An identifier (`rdma_cm_id`): one side of a connection, a listener, or a datagram identifier.

use std::net::SocketAddr;
use std::time::Duration;

use crate::abi::Space;
use crate::abi::answer::{AddressHandle, Path};
use crate::host::{Link, Port};
use crate::wire::TransportService;

/// The state of an identifier for its program (`enum rdma_cm_state` of the kernel's cma.c).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Stage {
    Idle,
    AddressBound,
    AddressResolved,
    RouteResolved,
    Connect,
    Disconnect,
    Listen,
}

/// The state of the exchange of messages (IBTA vol. 1, section 12.9.7: the states of the
/// communication manager, without those of MRA and LAP).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Exchange {
    Idle,
    ReqSent,
    ReqReceived,
    RepSent,
    RepReceived,
    Established,
    DreqSent,
    DreqReceived,
    TimeWait,
    SidrReqSent,
    SidrReqReceived,
}

/// The transport service of an identifier's queue pair.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Service {
    Rc,
    Uc,
    Ud,
}

impl From<Service> for TransportService {
    /// The value in a REQ. Datagrams send none.
    fn from(service: Service) -> Self {
        if service == Service::Uc { Self::UC } else { Self::RC }
    }
}

impl From<TransportService> for Service {
    /// Reads the value in a REQ. Services that are not supported count as RC, as in the kernel.
    fn from(said: TransportService) -> Self {
        if said == TransportService::UC { Self::Uc } else { Self::Rc }
    }
}

/// The values that both sides have agreed on.
#[derive(Clone, Debug, Default)]
pub(crate) struct Conversation {
    pub(crate) link: Option<Link>,
    /// The communication IDs of both sides; 0 for none yet.
    pub(crate) local: u32,
    pub(crate) remote: u32,
    pub(crate) transaction: u64,
    pub(crate) local_qp: u32,
    pub(crate) remote_qp: u32,
    pub(crate) remote_guid: u64,
    pub(crate) remote_gid: [u8; 16],
    pub(crate) remote_lid: u16,
    /// The first sequence number that this side sends.
    pub(crate) sq_psn: u32,
    pub(crate) responder_resources: u8,
    pub(crate) initiator_depth: u8,
    pub(crate) retry_count: u8,
    pub(crate) rnr_retry_count: u8,
    /// As `enum ibv_mtu`.
    pub(crate) mtu: u8,
    /// A message that waits for its answer, and is sent again.
    pub(crate) waiting: Option<Vec<u8>>,
    /// How many more times it is sent.
    pub(crate) tries: u8,
    /// When it is sent next, or when the exchange ends.
    pub(crate) deadline: Option<Duration>,
}

/// The options that a program has set (man rdma_set_option).
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Options {
    pub(crate) is_shared: bool,
    pub(crate) is_of_one_family: Option<bool>,
    pub(crate) service_type: u8,
    pub(crate) ack_timeout: Option<u8>,
}

/// An identifier.
pub(crate) struct Identifier<Hold> {
    /// The channel that its events go to.
    pub(crate) channel: u32,
    /// The program's name for it; 0 if the program has not accepted it yet.
    pub(crate) uid: u64,
    /// Whether the program knows of it.
    pub(crate) is_known: bool,
    pub(crate) space: Space,
    pub(crate) service: Service,
    pub(crate) stage: Stage,
    pub(crate) exchange: Exchange,
    pub(crate) source: Option<SocketAddr>,
    pub(crate) destination: Option<SocketAddr>,
    pub(crate) port: Option<Port>,
    pub(crate) hold: Option<Hold>,
    pub(crate) options: Options,
    /// How many more requests may wait for the program.
    pub(crate) backlog: u32,
    /// How many events the program has taken.
    pub(crate) reported: u32,
    pub(crate) qkey: u32,
    /// Whether its queue pair has a shared receive queue, and end-to-end flow control.
    pub(crate) is_srq: bool,
    pub(crate) has_flow_control: bool,
    /// The first sequence number that the peer sends.
    pub(crate) psn: u32,
    pub(crate) conversation: Conversation,
}

/// The default key of datagrams (`RDMA_UDP_QKEY`).
pub(crate) const UDP_QKEY: u32 = 0x0123_4567;

/// The hop limit of packets, and the exponent of their longest lifetime, 4.096 us x 2^n (`cma.c`:
/// `CMA_IBOE_PACKET_LIFETIME`).
pub(crate) const HOP_LIMIT: u8 = 64;
pub(crate) const PACKET_LIFETIME: u8 = 16;

impl<Hold> Identifier<Hold> {
    pub(crate) fn new(channel: u32, uid: u64, space: Space, service: Service, psn: u32) -> Self {
        Self {
            channel,
            uid,
            is_known: true,
            space,
            service,
            stage: Stage::Idle,
            exchange: Exchange::Idle,
            source: None,
            destination: None,
            port: None,
            hold: None,
            options: Options::default(),
            backlog: 0,
            reported: 0,
            qkey: 0,
            is_srq: false,
            has_flow_control: false,
            psn: psn & 0xff_ffff,
            conversation: Conversation::default(),
        }
    }

    /// The path to its peer.
    pub(crate) fn path(&self) -> Option<Path> {
        let port = self.port?;
        let talk = &self.conversation;
        Some(Path {
            destination_gid: talk.remote_gid,
            source_gid: port.gid,
            destination_lid: talk.remote_lid,
            source_lid: port.lid,
            hop_limit: if port.is_infiniband { 0 } else { HOP_LIMIT },
            traffic_class: self.options.service_type,
            mtu: port.mtu,
            packet_lifetime: PACKET_LIFETIME,
        })
    }

    /// The same path, for packets of a queue pair.
    pub(crate) fn address_handle(&self) -> AddressHandle {
        let Some(port) = self.port else { return AddressHandle::default() };
        let talk = &self.conversation;
        let handle = AddressHandle { lid: talk.remote_lid, port: port.number, ..AddressHandle::default() };
        if port.is_infiniband {
            return handle;
        }
        AddressHandle {
            gid: talk.remote_gid,
            gid_index: port.gid_index,
            hop_limit: HOP_LIMIT,
            traffic_class: self.options.service_type,
            is_global: true,
            ..handle
        }
    }

    /// How long a queue pair waits for an acknowledgement, as the exponent n of 4.096 us x 2^n.
    pub(crate) fn ack_timeout(&self) -> u8 {
        // A packet takes its lifetime in each direction (IBTA vol. 1, section 12.7.34).
        self.options.ack_timeout.unwrap_or(PACKET_LIFETIME + 1)
    }
}
