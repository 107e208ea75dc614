use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use proptest::prelude::*;

use super::*;

/// A field: its first byte and bit, its width in bits, and a function that sets all of them. Bit 0
/// is the highest bit of a byte, as in the specification's tables.
type Field<M> = (usize, usize, usize, fn(&mut M));

/// The tables of 12.6.5 to 12.6.11 and 12.11, as in the kernel's `ibta_vol1_c12.h`; all other bits
/// are reserved.
const REQ: [Field<Request>; 46] = [
    (0, 0, 32, |m| m.local_communication_id = !0),
    (8, 0, 64, |m| m.service_id = !0),
    (16, 0, 64, |m| m.local_ca_guid = !0),
    (28, 0, 32, |m| m.local_q_key = !0),
    (32, 0, 24, |m| m.local_qpn = !0),
    (35, 0, 8, |m| m.responder_resources = !0),
    (36, 0, 24, |m| m.local_eecn = !0),
    (39, 0, 8, |m| m.initiator_depth = !0),
    (40, 0, 24, |m| m.remote_eecn = !0),
    (43, 0, 5, |m| m.remote_cm_response_timeout = !0),
    (43, 5, 2, |m| m.transport_service.0 = !0),
    (43, 7, 1, |m| m.end_to_end_flow_control = true),
    (44, 0, 24, |m| m.starting_psn = !0),
    (47, 0, 5, |m| m.local_cm_response_timeout = !0),
    (47, 5, 3, |m| m.retry_count = !0),
    (48, 0, 16, |m| m.p_key = !0),
    (50, 0, 4, |m| m.path_mtu = !0),
    (50, 4, 1, |m| m.rdc_exists = true),
    (50, 5, 3, |m| m.rnr_retry_count = !0),
    (51, 0, 4, |m| m.max_cm_retries = !0),
    (51, 4, 1, |m| m.srq = true),
    (51, 5, 3, |m| m.extended_transport.0 = !0),
    (52, 0, 16, |m| m.primary_path.local_lid = !0),
    (54, 0, 16, |m| m.primary_path.remote_lid = !0),
    (56, 0, 128, |m| m.primary_path.local_gid = [!0; 16]),
    (72, 0, 128, |m| m.primary_path.remote_gid = [!0; 16]),
    (88, 0, 20, |m| m.primary_path.flow_label = !0),
    (91, 2, 6, |m| m.primary_path.packet_rate = !0),
    (92, 0, 8, |m| m.primary_path.traffic_class = !0),
    (93, 0, 8, |m| m.primary_path.hop_limit = !0),
    (94, 0, 4, |m| m.primary_path.service_level = !0),
    (94, 4, 1, |m| m.primary_path.subnet_local = true),
    (95, 0, 5, |m| m.primary_path.local_ack_timeout = !0),
    (96, 0, 16, |m| m.alternate_path.local_lid = !0),
    (98, 0, 16, |m| m.alternate_path.remote_lid = !0),
    (100, 0, 128, |m| m.alternate_path.local_gid = [!0; 16]),
    (116, 0, 128, |m| m.alternate_path.remote_gid = [!0; 16]),
    (132, 0, 20, |m| m.alternate_path.flow_label = !0),
    (135, 2, 6, |m| m.alternate_path.packet_rate = !0),
    (136, 0, 8, |m| m.alternate_path.traffic_class = !0),
    (137, 0, 8, |m| m.alternate_path.hop_limit = !0),
    (138, 0, 4, |m| m.alternate_path.service_level = !0),
    (138, 4, 1, |m| m.alternate_path.subnet_local = true),
    (139, 0, 5, |m| m.alternate_path.local_ack_timeout = !0),
    (139, 5, 1, |m| m.sap_supported = true),
    (140, 0, 736, |m| m.private_data.0 = [!0; 92]),
];

/// "Message MRAed" has two bits, which are never both set.
const MRA: [Field<MessageReceipt>; 6] = [
    (0, 0, 32, |m| m.local_communication_id = !0),
    (4, 0, 32, |m| m.remote_communication_id = !0),
    (8, 0, 1, |m| m.message = AnsweredMessage::Other),
    (8, 1, 1, |m| m.message = AnsweredMessage::Reply),
    (9, 0, 5, |m| m.service_timeout = !0),
    (10, 0, 1776, |m| m.private_data.0 = [!0; 222]),
];

/// "Message REJected" has two bits, which are never both set.
const REJ: [Field<Reject>; 8] = [
    (0, 0, 32, |m| m.local_communication_id = !0),
    (4, 0, 32, |m| m.remote_communication_id = !0),
    (8, 0, 1, |m| m.message = AnsweredMessage::Other),
    (8, 1, 1, |m| m.message = AnsweredMessage::Reply),
    (9, 0, 7, |m| m.additional_information_length = !0),
    (10, 0, 16, |m| m.reason.0 = !0),
    (12, 0, 576, |m| m.additional_information.0 = [!0; 72]),
    (84, 0, 1184, |m| m.private_data.0 = [!0; 148]),
];

const REP: [Field<Reply>; 15] = [
    (0, 0, 32, |m| m.local_communication_id = !0),
    (4, 0, 32, |m| m.remote_communication_id = !0),
    (8, 0, 32, |m| m.local_q_key = !0),
    (12, 0, 24, |m| m.local_qpn = !0),
    (16, 0, 24, |m| m.local_eecn = !0),
    (20, 0, 24, |m| m.starting_psn = !0),
    (24, 0, 8, |m| m.responder_resources = !0),
    (25, 0, 8, |m| m.initiator_depth = !0),
    (26, 0, 5, |m| m.target_ack_delay = !0),
    (26, 5, 2, |m| m.failover_accepted.0 = !0),
    (26, 7, 1, |m| m.end_to_end_flow_control = true),
    (27, 0, 3, |m| m.rnr_retry_count = !0),
    (27, 3, 1, |m| m.srq = true),
    (28, 0, 64, |m| m.local_ca_guid = !0),
    (36, 0, 1568, |m| m.private_data.0 = [!0; 196]),
];

const RTU: [Field<ReadyToUse>; 3] = [
    (0, 0, 32, |m| m.local_communication_id = !0),
    (4, 0, 32, |m| m.remote_communication_id = !0),
    (8, 0, 1792, |m| m.private_data.0 = [!0; 224]),
];

const DREQ: [Field<DisconnectRequest>; 4] = [
    (0, 0, 32, |m| m.local_communication_id = !0),
    (4, 0, 32, |m| m.remote_communication_id = !0),
    (8, 0, 24, |m| m.remote_qpn = !0),
    (12, 0, 1760, |m| m.private_data.0 = [!0; 220]),
];

const DREP: [Field<DisconnectReply>; 3] = [
    (0, 0, 32, |m| m.local_communication_id = !0),
    (4, 0, 32, |m| m.remote_communication_id = !0),
    (8, 0, 1792, |m| m.private_data.0 = [!0; 224]),
];

const SIDR_REQ: [Field<ResolutionRequest>; 4] = [
    (0, 0, 32, |m| m.request_id = !0),
    (4, 0, 16, |m| m.p_key = !0),
    (8, 0, 64, |m| m.service_id = !0),
    (16, 0, 1728, |m| m.private_data.0 = [!0; 216]),
];

const SIDR_REP: [Field<ResolutionReply>; 8] = [
    (0, 0, 32, |m| m.request_id = !0),
    (4, 0, 8, |m| m.status.0 = !0),
    (5, 0, 8, |m| m.additional_information_length = !0),
    (8, 0, 24, |m| m.qpn = !0),
    (12, 0, 64, |m| m.service_id = !0),
    (20, 0, 32, |m| m.q_key = !0),
    (24, 0, 576, |m| m.additional_information.0 = [!0; 72]),
    (96, 0, 1088, |m| m.private_data.0 = [!0; 136]),
];

/// The offset of a message in a datagram.
const HEADER: usize = 24;

/// A table's description of a message: its attribute, its name, and which bits belong to fields.
struct Table {
    attribute: u16,
    name: &'static str,
    is_field: [u8; 232],
}

/// The bits of a field.
fn bits(byte: usize, bit: usize, width: usize) -> [u8; 232] {
    let mut bytes = [0; 232];
    for at in byte * 8 + bit..byte * 8 + bit + width {
        bytes[at / 8] |= 0x80 >> (at % 8);
    }
    bytes
}

/// Sets each field alone to ones, compares the bytes, and returns the description.
fn checked<M: Default + Clone + Into<Message>>(
    attribute: u16,
    name: &'static str,
    fields: &[Field<M>],
) -> Table {
    let mut is_field = [0; 232];
    let mut last = 0;
    for (byte, bit, width, set) in fields {
        let mut message = M::default();
        set(&mut message);
        let mad = Mad { transaction: 0, message: message.into() };
        let encoded = mad.encode();
        let expected = bits(*byte, *bit, *width);
        assert_eq!(encoded[HEADER..], expected, "{name}: byte {byte}, bit {bit}");
        let decoded = Mad::decode(&encoded).unwrap();
        assert_eq!(decoded.encode(), encoded, "{name}: byte {byte}, bit {bit}");
        assert_eq!(decoded.message.name(), name);
        assert_eq!(encoded[16..18], attribute.to_be_bytes());
        for (all, new) in is_field.iter_mut().zip(expected) {
            assert_eq!(*all & new, 0, "{name}: byte {byte}, bit {bit} is in two fields");
            *all |= new;
        }
        assert!(byte * 8 + bit >= last, "{name}: the table is in order");
        last = byte * 8 + bit + width;
    }
    assert_eq!(last, 232 * 8, "{name}: the last field ends the message");
    Table { attribute, name, is_field }
}

fn tables() -> [Table; 9] {
    [
        checked(0x0010, "REQ", &REQ),
        checked(0x0011, "MRA", &MRA),
        checked(0x0012, "REJ", &REJ),
        checked(0x0013, "REP", &REP),
        checked(0x0014, "RTU", &RTU),
        checked(0x0015, "DREQ", &DREQ),
        checked(0x0016, "DREP", &DREP),
        checked(0x0017, "SIDR_REQ", &SIDR_REQ),
        checked(0x0018, "SIDR_REP", &SIDR_REP),
    ]
}

/// A datagram with these bytes as its message.
fn datagram(attribute: u16, transaction: u64, message: &[u8; 232]) -> Vec<u8> {
    let header = [1, 7, 2, 3, 0, 0, 0, 0];
    let attribute = attribute.to_be_bytes();
    [&header[..], &transaction.to_be_bytes(), &attribute, &[0; 6], message].concat()
}

#[test]
fn each_field_is_where_the_specification_has_it() {
    let reserved: Vec<(&str, u32)> = tables()
        .iter()
        .map(|table| (table.name, table.is_field.iter().map(|byte| byte.count_zeros()).sum()))
        .collect();
    // REQ: bytes 4 to 7 and 24 to 27, and of each path 6 bits before the rate, 3 after "subnet
    // local" and 3 at its end, of which SAP takes one. REP: a byte after each of three numbers of
    // 24 bits, and 5 bits.
    let expected = [
        ("REQ", 32 + 32 + 12 + 12 - 1),
        ("MRA", 6 + 3),
        ("REJ", 6 + 1),
        ("REP", 8 + 8 + 8 + 4),
        ("RTU", 0),
        ("DREQ", 8),
        ("DREP", 0),
        ("SIDR_REQ", 16),
        ("SIDR_REP", 16 + 8),
    ];
    assert_eq!(reserved, expected);
}

#[test]
fn reserved_bits_are_ignored() {
    for table in tables() {
        let reserved = table.is_field.map(|byte| !byte);
        let mad = Mad::decode(&datagram(table.attribute, 7, &reserved)).unwrap();
        assert_eq!(mad.encode()[..], datagram(table.attribute, 7, &[0; 232]), "{}", table.name);
    }
}

#[test]
fn the_header_is_that_of_the_class() {
    let message = ReadyToUse::default().into();
    let mad = Mad { transaction: 0x0102_0304_0506_0708, message };
    let header = [
        [0x01, 0x07, 0x02, 0x03, 0, 0, 0, 0],
        [0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0x08],
        [0x00, 0x14, 0, 0, 0, 0, 0, 0],
    ];
    assert_eq!(mad.encode()[..HEADER], *header.as_flattened());
    let mut bytes = mad.encode();
    // Status, class-specific bytes, reserved bytes, attribute modifier.
    for at in (4..8).chain(18..24) {
        bytes[at] = 0xFF;
    }
    assert_eq!(Mad::decode(&bytes), Ok(mad));
}

#[test]
fn what_is_no_message_is_refused_with_a_sentence() {
    let bytes = Mad { transaction: 1, message: Reject::default().into() }.encode();
    let with = |at: usize, value: u8| {
        let mut bytes = bytes;
        bytes[at] = value;
        Mad::decode(&bytes).unwrap_err().to_string()
    };
    let refused = |length: usize| Mad::decode(&[1; 300][..length]).unwrap_err().to_string();
    let receipt = Mad { transaction: 1, message: MessageReceipt::default().into() };
    let mut receipt = receipt.encode();
    receipt[HEADER + 8] = 0xC0;
    let sentences = [
        refused(255),
        refused(257),
        refused(0),
        with(0, 2),
        with(1, 3),
        with(2, 1),
        with(3, 0x83),
        with(17, 0x19),
        with(HEADER + 8, 0xFF),
        Mad::decode(&receipt).unwrap_err().to_string(),
    ];
    let expected = [
        "a management datagram has 256 bytes, not 255 (IBA 13.4.2)",
        "a management datagram has 256 bytes, not 257 (IBA 13.4.2)",
        "a management datagram has 256 bytes, not 0 (IBA 13.4.2)",
        "the base version of the datagram is 2, not 1 (IBA 13.4.3)",
        "the datagram is of management class 0x03, not 0x07, communication management (IBA 16.7)",
        "the datagram is of version 1 of communication management, not 2 (IBA 16.7)",
        "the method of the datagram is 0x83, not 0x03, Send, the only one of the class (IBA 16.7)",
        "the datagram's attribute 0x0019 is not a message that this connection manager knows (IBA 16.7)",
        "the field `message REJected` of REJ is 3, which the specification does not define",
        "the field `message MRAed` of MRA is 3, which the specification does not define",
    ];
    assert_eq!(sentences, expected);
}

#[test]
fn a_value_wider_than_its_field_is_cut_to_its_lowest_bits() {
    let request = Request { local_qpn: 0x1200_0011, retry_count: 9, ..Request::default() };
    let mad = Mad { transaction: 0, message: request.into() };
    let Message::Request(request) = Mad::decode(&mad.encode()).unwrap().message else { panic!() };
    assert_eq!([request.local_qpn, request.retry_count.into()], [0x11, 1]);
}

#[test]
fn private_data_are_padded_with_zeros_and_no_claimed_length_leads_out_of_them() {
    let bytes = Bytes::<4>::of(b"ab").unwrap();
    assert_eq!(bytes.0, *b"ab\0\0");
    assert_eq!(Bytes::<4>::of(b"abcd").unwrap().0, *b"abcd");
    assert_eq!(Bytes::<4>::of(b"abcde"), None);
    assert_eq!([bytes.prefix(0), bytes.prefix(3), bytes.prefix(255)], [&b""[..], b"ab\0", b"ab\0\0"]);
}

#[test]
fn the_header_of_ip_addresses_is_that_of_annex_a11() {
    let source = Ipv4Addr::new(10, 0, 2, 15);
    let destination = Ipv4Addr::new(10, 0, 2, 16);
    let four = IpHeader { source_port: 0xABCD, addresses: Addresses::V4 { source, destination } };
    let zeros = [0; 12];
    let expected = [&[0x00, 0x40, 0xAB, 0xCD][..], &zeros, &[10, 0, 2, 15], &zeros, &[10, 0, 2, 16]].concat();
    assert_eq!(four.encode()[..], expected);
    let source: Ipv6Addr = "fd00::15".parse().unwrap();
    let destination: Ipv6Addr = "2001:db8::16".parse().unwrap();
    let six = IpHeader { source_port: 1, addresses: Addresses::V6 { source, destination } };
    let expected = [&[0x00, 0x60, 0x00, 0x01][..], &source.octets(), &destination.octets()].concat();
    assert_eq!(six.encode()[..], expected);
    for header in [four, six] {
        let mut bytes = header.encode().to_vec();
        // Reserved bits and, behind the header, the consumer's data.
        bytes[1] |= 0x0F;
        bytes.push(0xFF);
        assert_eq!(IpHeader::decode(&bytes), Ok(header));
        let of = Addresses::of(header.addresses.source(), header.addresses.destination());
        assert_eq!(of, Some(header.addresses));
    }
    assert_eq!(Addresses::of(IpAddr::from(Ipv4Addr::LOCALHOST), Ipv6Addr::LOCALHOST.into()), None);
    let refused = |bytes: &[u8]| IpHeader::decode(bytes).unwrap_err().to_string();
    let mut other = four.encode();
    assert_eq!(
        refused(&other[..35]),
        "the header of IP addresses has 36 bytes, but there are 35 of private data (IBA annex A11)"
    );
    other[1] = 0x50;
    assert_eq!(
        refused(&other),
        "the IP version in the header of IP addresses is 5, not 4 or 6 (IBA annex A11)"
    );
    other[0] = 0x21;
    assert_eq!(refused(&other), "the header of IP addresses is of version 2.1, not 0.0 (IBA annex A11)");
}

#[test]
fn service_ids_are_those_of_the_port_spaces() {
    let ids = [
        (PortSpace::IPOIB, 0x0000_0000_0002_1CB6),
        (PortSpace::TCP, 0x0000_0000_0106_1CB6),
        (PortSpace::UDP, 0x0000_0000_0111_1CB6),
        (PortSpace::IB, 0x0000_0000_013F_1CB6),
    ];
    for (space, id) in ids {
        assert_eq!(service_id(space, 7350), id);
        assert_eq!(port_of(id), Some((space, 7350)));
    }
    for foreign in [0, 0x0107_0001, 0x1_0000_0106_0001, u64::MAX] {
        assert_eq!(port_of(foreign), None, "{foreign:#x}");
    }
}

#[test]
fn reasons_and_statuses_are_said_in_words() {
    let reasons = [8, 10, 28, 34].map(|number| RejectReason(number).to_string());
    let expected = [
        "invalid service ID",
        "stale connection",
        "rejected by the consumer",
        "reason 34, which the specification does not define",
    ];
    assert_eq!(reasons, expected);
    let statuses = [0, 1, 5, 6].map(|number| ResolutionStatus(number).to_string());
    let expected = [
        "valid",
        "service ID not supported",
        "unsupported class version",
        "status 6, which the specification does not define",
    ];
    assert_eq!(statuses, expected);
}

/// Whether an MRA or a REJ answers an undefined message.
fn is_undefined(attribute: u16, message: &[u8; 232]) -> bool {
    [0x0011, 0x0012].contains(&attribute) && message[8] >> 6 == 3
}

proptest! {
    #[test]
    fn any_message_is_read_and_written_by_the_tables(
        message in proptest::array::uniform::<_, 232>(any::<u8>()),
        transaction: u64,
    ) {
        for table in tables() {
            let decoded = Mad::decode(&datagram(table.attribute, transaction, &message));
            if is_undefined(table.attribute, &message) {
                let is_refused = matches!(decoded, Err(Malformed::Undefined { found: 3, .. }));
                prop_assert!(is_refused);
                continue;
            }
            let mad = decoded.unwrap();
            let mut fields = message;
            for (byte, is_field) in fields.iter_mut().zip(table.is_field) {
                *byte &= is_field;
            }
            let encoded = mad.encode();
            prop_assert_eq!(&encoded[..], &datagram(table.attribute, transaction, &fields)[..]);
            prop_assert_eq!(Mad::decode(&encoded), Ok(mad));
        }
    }

    #[test]
    fn foreign_bytes_do_not_panic(mut bytes in proptest::collection::vec(any::<u8>(), 0..400), is_headed: bool) {
        if is_headed && bytes.len() >= 4 {
            bytes[..4].copy_from_slice(&[1, 7, 2, 3]);
        }
        if let Ok(mad) = Mad::decode(&bytes) {
            prop_assert_eq!(Mad::decode(&mad.encode()), Ok(mad));
        }
        if let Ok(header) = IpHeader::decode(&bytes) {
            prop_assert_eq!(IpHeader::decode(&header.encode()), Ok(header));
        }
    }
}
