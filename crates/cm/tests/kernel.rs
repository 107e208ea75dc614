//! Messages that Linux's own connection manager has sent, compared with the programs' parameters.
//!
//! `golden/linux-6.1.txt` has an abbreviation and the 256 bytes of a datagram in each line. They
//! were taken between two virtual machines with rxe0 (`cargo xtask vm --peer`, Debian's Linux
//! 6.1.0-56, tcpdump): librdmacm's `ucmatose -s 10.0.2.16 -c 1 -C 2 -S 64 -t 96` with a server that
//! is stopped until an MRA has come, the same without a server, `udaddy -s 10.0.2.16 -c 1 -C 2 -S
//! 64` without a server and with one, and `rping -c -a fd00::16 -C 1`.

use std::net::{Ipv4Addr, Ipv6Addr};

use cm::wire::*;

/// The ports of the programs.
const UCMATOSE_PORT: u16 = 7471;
const UDADDY_PORT: u16 = 7174;
const RPING_PORT: u16 = 7174;
/// rxe takes the GUIDs from the addresses of eth0, 52:54:00:00:02:15 and 52:54:00:00:02:16.
const CLIENT_GUID: u64 = 0x5054_00FF_FE00_0215;
const SERVER_GUID: u64 = 0x5054_00FF_FE00_0216;
/// The Q_Key of `RDMA_PS_UDP` (`RDMA_UDP_QKEY`).
const UDP_Q_KEY: u32 = 0x0123_4567;
/// The kernel's timeout for an answer and number of retries (`CMA_CM_RESPONSE_TIMEOUT`,
/// `CMA_MAX_CM_RETRIES`); its timeout after an MRA (`CMA_CM_MRA_SETTING`).
const RESPONSE_TIMEOUT: u8 = 20;
const MAX_CM_RETRIES: u8 = 15;
const MRA_TIMEOUT: u8 = 24;

/// The datagrams. Each is encoded to exactly the bytes that it was decoded from.
fn captured() -> Vec<Mad> {
    let lines = include_str!("golden/linux-6.1.txt").lines();
    let mads = lines.map(|line| {
        let (name, hex) = line.split_once(' ').unwrap();
        let digits = hex.as_bytes().chunks(2).map(|pair| std::str::from_utf8(pair).unwrap());
        let bytes: Vec<u8> = digits.map(|pair| u8::from_str_radix(pair, 16).unwrap()).collect();
        let mad = Mad::decode(&bytes).unwrap();
        assert_eq!(mad.message.name(), name);
        assert_eq!(mad.encode()[..], bytes, "{name}");
        mad
    });
    mads.collect()
}

macro_rules! only {
    ($mads:expr, $name:ident, $nth:expr) => {{
        let mut found = $mads.iter().filter_map(|mad| match &mad.message {
            Message::$name(message) => Some((mad.transaction, message)),
            _ => None,
        });
        found.nth($nth).unwrap()
    }};
}

/// A GID of rxe0 for an IPv4 address.
fn gid(last: u8) -> [u8; 16] {
    Ipv4Addr::new(10, 0, 2, last).to_ipv6_mapped().octets()
}

/// The flow label that the kernel computes from both ports for a path over Ethernet
/// (`cma_get_roce_udp_flow_label`).
fn flow_label(private_data: &Bytes<92>, port: u16) -> u32 {
    let header = IpHeader::decode(&private_data.0).unwrap();
    (u32::from(header.source_port) * 31 + u32::from(port)) & 0xF_FFFF
}

/// The header of IP addresses, from the client at .15 to the server at .16.
fn assert_addressed(private_data: &[u8]) {
    let source = Ipv4Addr::new(10, 0, 2, 15);
    let destination = Ipv4Addr::new(10, 0, 2, 16);
    let header = IpHeader::decode(private_data).unwrap();
    assert_eq!(header.addresses, Addresses::V4 { source, destination });
    // The kernel takes a free port from 32768 on.
    assert!(header.source_port >= 32768, "{}", header.source_port);
    assert_eq!(private_data[..IpHeader::BYTES], header.encode());
    assert!(private_data[IpHeader::BYTES..].iter().all(|byte| *byte == 0));
}

#[test]
fn a_request_is_what_ucmatose_asked_for() {
    let mads = captured();
    let (_, request) = only!(mads, Request, 0);
    let path = Path {
        local_lid: 0xFFFF,
        remote_lid: 0xFFFF,
        local_gid: gid(15),
        remote_gid: gid(16),
        flow_label: flow_label(&request.private_data, UCMATOSE_PORT),
        packet_rate: 0,
        traffic_class: 96,
        hop_limit: 64,
        service_level: 0,
        subnet_local: false,
        local_ack_timeout: 19,
    };
    let expected = Request {
        local_communication_id: request.local_communication_id,
        service_id: service_id(PortSpace::TCP, UCMATOSE_PORT),
        local_ca_guid: CLIENT_GUID,
        // The first queue pair of a user on rxe0, as in the DREQ, too.
        local_qpn: 0x11,
        responder_resources: 1,
        initiator_depth: 1,
        remote_cm_response_timeout: RESPONSE_TIMEOUT,
        transport_service: TransportService::RC,
        starting_psn: request.starting_psn,
        local_cm_response_timeout: RESPONSE_TIMEOUT,
        retry_count: 5,
        p_key: 0xFFFF,
        // 1024 bytes, the largest that fits into Ethernet's 1500.
        path_mtu: 3,
        max_cm_retries: MAX_CM_RETRIES,
        primary_path: path,
        private_data: request.private_data,
        ..Request::default()
    };
    assert_eq!(*request, expected);
    assert_ne!(request.local_communication_id, 0);
    assert_ne!(request.starting_psn, 0);
    assert_addressed(&request.private_data.0);
}

#[test]
fn answers_name_both_ends_of_the_connection() {
    let mads = captured();
    let (transaction, request) = only!(mads, Request, 0);
    let client = request.local_communication_id;
    let (of_receipt, receipt) = only!(mads, MessageReceipt, 0);
    let server = receipt.local_communication_id;
    let expected = MessageReceipt {
        local_communication_id: server,
        remote_communication_id: client,
        message: AnsweredMessage::Request,
        service_timeout: MRA_TIMEOUT,
        ..MessageReceipt::default()
    };
    assert_eq!(*receipt, expected);
    let (of_reply, reply) = only!(mads, Reply, 0);
    let expected = Reply {
        local_communication_id: server,
        remote_communication_id: client,
        local_qpn: 0x11,
        starting_psn: reply.starting_psn,
        responder_resources: 1,
        initiator_depth: 1,
        // The value that rxe0 reports (`RXE_LOCAL_CA_ACK_DELAY`).
        target_ack_delay: 15,
        failover_accepted: FailoverAccepted::ACCEPTED,
        rnr_retry_count: 7,
        local_ca_guid: SERVER_GUID,
        ..Reply::default()
    };
    assert_eq!(*reply, expected);
    let (of_ready, ready) = only!(mads, ReadyToUse, 0);
    assert_eq!([ready.local_communication_id, ready.remote_communication_id], [client, server]);
    assert_eq!([of_receipt, of_reply, of_ready], [transaction; 3]);
    // The server ends first and names the client's queue pair.
    let (of_release, release) = only!(mads, DisconnectRequest, 0);
    assert_eq!([release.local_communication_id, release.remote_communication_id], [server, client]);
    assert_eq!(release.remote_qpn, 0x11);
    let (of_released, released) = only!(mads, DisconnectReply, 0);
    assert_eq!([released.local_communication_id, released.remote_communication_id], [client, server]);
    assert_eq!(of_release, of_released);
    assert_ne!(of_release, transaction);
}

#[test]
fn a_request_for_what_nobody_serves_is_rejected() {
    let mads = captured();
    let (_, reject) = only!(mads, Reject, 0);
    let expected = Reject {
        remote_communication_id: reject.remote_communication_id,
        message: AnsweredMessage::Request,
        reason: RejectReason::INVALID_SERVICE_ID,
        ..Reject::default()
    };
    assert_eq!(*reject, expected);
    assert_ne!(reject.remote_communication_id, 0);
}

#[test]
fn udaddys_service_is_resolved_or_not_supported() {
    let mads = captured();
    let service_id = service_id(PortSpace::UDP, UDADDY_PORT);
    let (transaction, request) = only!(mads, ResolutionRequest, 0);
    assert_eq!([request.service_id, request.p_key.into()], [service_id, 0xFFFF]);
    assert_addressed(&request.private_data.0);
    let (of_reply, reply) = only!(mads, ResolutionReply, 0);
    let request_id = request.request_id;
    let status = ResolutionStatus::SERVICE_ID_NOT_SUPPORTED;
    assert_eq!(*reply, ResolutionReply { request_id, status, service_id, ..ResolutionReply::default() });
    assert_eq!(of_reply, transaction);
    let (_, reply) = only!(mads, ResolutionReply, 1);
    let expected = ResolutionReply {
        request_id: reply.request_id,
        status: ResolutionStatus::VALID,
        qpn: 0x12,
        service_id,
        q_key: UDP_Q_KEY,
        ..ResolutionReply::default()
    };
    assert_eq!(*reply, expected);
    assert_ne!(reply.request_id, request_id);
}

#[test]
fn a_request_over_ipv6_says_so() {
    let mads = captured();
    let (_, request) = only!(mads, Request, 1);
    let source: Ipv6Addr = "fd00::15".parse().unwrap();
    let destination: Ipv6Addr = "fd00::16".parse().unwrap();
    assert_eq!(request.service_id, service_id(PortSpace::TCP, RPING_PORT));
    assert_eq!(request.primary_path.local_gid, source.octets());
    assert_eq!(request.primary_path.remote_gid, destination.octets());
    assert_eq!(request.primary_path.flow_label, flow_label(&request.private_data, RPING_PORT));
    // The parameters of rping.
    assert_eq!([request.retry_count, request.rnr_retry_count], [7, 7]);
    let header = IpHeader::decode(&request.private_data.0).unwrap();
    assert_eq!(header.addresses, Addresses::V6 { source, destination });
    assert_eq!(request.private_data.0[..IpHeader::BYTES], header.encode());
}
