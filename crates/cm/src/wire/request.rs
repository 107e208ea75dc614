//! REQ, which asks for a connection.

use super::bytes::Bytes;
use super::pass::{Layout, Pass};

/// REQ, "request for communication": the active side asks for a connection (12.6.5).
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Request {
    /// The sender's communication ID.
    pub local_communication_id: u32,
    /// The requested service ([`service_id`](super::service_id) for an IP port).
    pub service_id: u64,
    /// EUI-64 of the sender's channel adapter.
    pub local_ca_guid: u64,
    /// The sender's Q_Key if its queue pair is a datagram one; else zero.
    pub local_q_key: u32,
    /// The sender's queue pair, 24 bits.
    pub local_qpn: u32,
    /// How many RDMA Reads and atomics the sender answers at the same time.
    pub responder_resources: u8,
    /// The sender's end-to-end context, 24 bits; zero except for reliable datagrams.
    pub local_eecn: u32,
    /// How many RDMA Reads and atomics the sender wants to have outstanding.
    pub initiator_depth: u8,
    /// The receiver's end-to-end context, 24 bits; zero except for reliable datagrams.
    pub remote_eecn: u32,
    /// The time within which the receiver should answer this message: 4.096 us x 2^n; 5 bits.
    pub remote_cm_response_timeout: u8,
    /// The transport of the connection, 2 bits.
    pub transport_service: TransportService,
    /// Whether the sender supports end-to-end flow control (9.7.7.2).
    pub end_to_end_flow_control: bool,
    /// The first packet sequence number that the sender will send, 24 bits.
    pub starting_psn: u32,
    /// The time within which the sender answers messages: 4.096 us x 2^n; 5 bits.
    pub local_cm_response_timeout: u8,
    /// How often the receiver repeats a request that is not acknowledged, 3 bits.
    pub retry_count: u8,
    /// Partition key.
    pub p_key: u16,
    /// The path MTU: 1 to 5 for 256 to 4096 bytes; 4 bits.
    pub path_mtu: u8,
    /// Whether there is a reliable datagram channel to the receiver already.
    pub rdc_exists: bool,
    /// How often the receiver repeats a message after an RNR NAK of the sender, 3 bits; 7 is for
    /// ever.
    pub rnr_retry_count: u8,
    /// How often the sender repeats messages without an answer, 4 bits.
    pub max_cm_retries: u8,
    /// Whether the sender's queue pair takes its receive buffers from a shared queue.
    pub srq: bool,
    /// The transport if `transport_service` is extended, 3 bits.
    pub extended_transport: ExtendedTransport,
    /// The path of the connection.
    pub primary_path: Path,
    /// The path to migrate to; zeros if there is none.
    pub alternate_path: Path,
    /// Whether the sender understands suggestions of alternate paths (SAP).
    pub sap_supported: bool,
    /// The consumer's bytes.
    pub private_data: Bytes<92>,
}

impl Layout for Request {
    fn fields(&mut self, pass: &mut Pass) {
        pass.number(0, &mut self.local_communication_id);
        pass.number(8, &mut self.service_id);
        pass.number(16, &mut self.local_ca_guid);
        pass.number(28, &mut self.local_q_key);
        pass.bits(32, 0, 24, &mut self.local_qpn);
        pass.number(35, &mut self.responder_resources);
        pass.bits(36, 0, 24, &mut self.local_eecn);
        pass.number(39, &mut self.initiator_depth);
        pass.bits(40, 0, 24, &mut self.remote_eecn);
        pass.bits(43, 0, 5, &mut self.remote_cm_response_timeout);
        pass.bits(43, 5, 2, &mut self.transport_service.0);
        pass.flag(43, 7, &mut self.end_to_end_flow_control);
        pass.bits(44, 0, 24, &mut self.starting_psn);
        pass.bits(47, 0, 5, &mut self.local_cm_response_timeout);
        pass.bits(47, 5, 3, &mut self.retry_count);
        pass.number(48, &mut self.p_key);
        pass.bits(50, 0, 4, &mut self.path_mtu);
        pass.flag(50, 4, &mut self.rdc_exists);
        pass.bits(50, 5, 3, &mut self.rnr_retry_count);
        pass.bits(51, 0, 4, &mut self.max_cm_retries);
        pass.flag(51, 4, &mut self.srq);
        pass.bits(51, 5, 3, &mut self.extended_transport.0);
        self.primary_path.fields(52, pass);
        self.alternate_path.fields(96, pass);
        pass.flag(139, 5, &mut self.sap_supported);
        pass.private_data(&mut self.private_data);
    }
}

/// A path between two ports, from the sender of a REQ to its receiver (12.6.5).
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Path {
    /// The sender's LID; 0xFFFF if its link is Ethernet.
    pub local_lid: u16,
    /// The receiver's LID; 0xFFFF if its link is Ethernet.
    pub remote_lid: u16,
    /// The sender's GID, in network byte order.
    pub local_gid: [u8; 16],
    /// The receiver's GID, in network byte order.
    pub remote_gid: [u8; 16],
    /// Flow label of the global route, 20 bits.
    pub flow_label: u32,
    /// Largest rate of packets, as in a path record (15.2.5.16); 6 bits.
    pub packet_rate: u8,
    /// Traffic class of the global route.
    pub traffic_class: u8,
    /// Hop limit of the global route.
    pub hop_limit: u8,
    /// Service level, 4 bits.
    pub service_level: u8,
    /// Whether both ports are in one subnet, so that packets need no global route.
    pub subnet_local: bool,
    /// The receiver's timeout before it repeats a request: 4.096 us x 2^n; 5 bits.
    pub local_ack_timeout: u8,
}

impl Path {
    /// The fields of a path that starts at byte `start`.
    fn fields(&mut self, start: usize, pass: &mut Pass) {
        pass.number(start, &mut self.local_lid);
        pass.number(start + 2, &mut self.remote_lid);
        pass.array(start + 4, &mut self.local_gid);
        pass.array(start + 20, &mut self.remote_gid);
        pass.bits(start + 36, 0, 20, &mut self.flow_label);
        pass.bits(start + 39, 2, 6, &mut self.packet_rate);
        pass.number(start + 40, &mut self.traffic_class);
        pass.number(start + 41, &mut self.hop_limit);
        pass.bits(start + 42, 0, 4, &mut self.service_level);
        pass.flag(start + 42, 4, &mut self.subnet_local);
        pass.bits(start + 43, 0, 5, &mut self.local_ack_timeout);
    }
}

/// Transport service type of a REQ, 2 bits (12.6.5).
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct TransportService(pub u8);

impl TransportService {
    /// Reliable connection.
    pub const RC: Self = Self(0);
    /// Unreliable connection.
    pub const UC: Self = Self(1);
    /// Reliable datagram.
    pub const RD: Self = Self(2);
    /// The transport is given by the extended transport type.
    pub const EXTENDED: Self = Self(3);
}

/// Extended transport type of a REQ, 3 bits (12.6.5, annex A14).
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct ExtendedTransport(pub u8);

impl ExtendedTransport {
    /// None: the transport service type is sufficient.
    pub const NONE: Self = Self(0);
    /// Extended reliable connection.
    pub const XRC: Self = Self(1);
}
