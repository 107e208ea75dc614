//! Encoded messages as an independent dissector decodes them: Wireshark's, by `tshark`.
//!
//! Without tshark the test is skipped and says so, or fails if RDMASCOPE_REQUIRE contains
//! `dissector`.
//!
//! Wireshark 4.0 shows all fields except:
//!
//! * the flow labels and packet rates of a REQ's paths. It takes 3 bytes for the label with a mask
//!   for 4 bytes, and the rate from the first of these bytes instead of the last. The label is
//!   checked in `kernel.rs`; the place of the rate is only stated in the unit tests;
//! * the fields of MRA, SIDR_REQ and SIDR_REP, of which it knows only the names. `kernel.rs` checks
//!   messages of these types that Linux has sent.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::process::Command;
use std::{env, fs, iter};

use cm::wire::*;

/// A value that the dissector should show.
#[derive(Clone, Debug, PartialEq)]
enum Value {
    Number(u64),
    Bytes(Vec<u8>),
    Address(IpAddr),
    Text(&'static str),
}

use Value::{Address, Number, Text};

impl Value {
    /// Parses the output of tshark as a value of this kind.
    fn read(&self, text: &str) -> Option<Self> {
        match self {
            Number(_) => match text.strip_prefix("0x") {
                Some(digits) => u64::from_str_radix(digits, 16).ok().map(Number),
                None => text.parse().ok().map(Number),
            },
            Self::Bytes(_) => {
                let digits = text.replace(':', "");
                let pairs = (0..digits.len()).step_by(2).map(|at| digits.get(at..at + 2));
                let bytes = pairs.map(|pair| u8::from_str_radix(pair?, 16).ok());
                bytes.collect::<Option<_>>().map(Self::Bytes)
            }
            Address(_) => text.parse().ok().map(Address),
            Text(expected) => (text == *expected).then(|| self.clone()),
        }
    }
}

/// A datagram, the IP version that carries it, and the values that should be shown.
struct Case {
    mad: Mad,
    is_ipv6: bool,
    shown: Vec<(&'static str, Value)>,
}

/// Bytes that all differ, up to 251 of them.
fn distinct<const SIZE: usize>(first: u8) -> [u8; SIZE] {
    std::array::from_fn(|n| first.wrapping_add(n as u8).wrapping_mul(13))
}

fn bytes<const SIZE: usize>(bytes: &Bytes<SIZE>) -> Value {
    Value::Bytes(bytes.0.to_vec())
}

/// The bytes of an address, which the dissector shows without their names.
fn address(octets: [u8; 16]) -> Value {
    Address(Ipv6Addr::from(octets).into())
}

fn number(number: impl Into<u64>) -> Value {
    Number(number.into())
}

/// A REQ with a different value in each field.
fn request() -> Request {
    Request {
        local_communication_id: 0x8123_4567,
        service_id: 0x9A00_0000_0000_00B1,
        local_ca_guid: 0x8877_6655_4433_2211,
        local_q_key: 0x9111_2222,
        local_qpn: 0xA1_0203,
        responder_resources: 0x91,
        local_eecn: 0xB1_0405,
        initiator_depth: 0x82,
        remote_eecn: 0xC1_0607,
        remote_cm_response_timeout: 0b1_0110,
        transport_service: TransportService::RD,
        end_to_end_flow_control: true,
        starting_psn: 0xD1_0809,
        local_cm_response_timeout: 0b1_0011,
        retry_count: 0b101,
        p_key: 0x8ABC,
        path_mtu: 0b1010,
        rdc_exists: true,
        rnr_retry_count: 0b011,
        max_cm_retries: 0b1001,
        srq: true,
        extended_transport: ExtendedTransport(0b110),
        primary_path: Path {
            local_lid: 0x9001,
            remote_lid: 0xA002,
            local_gid: distinct(1),
            remote_gid: distinct(101),
            flow_label: 0xE_1234,
            packet_rate: 0b10_0101,
            traffic_class: 0xB3,
            hop_limit: 0xC4,
            service_level: 0b1011,
            subnet_local: true,
            local_ack_timeout: 0b1_0101,
        },
        alternate_path: Path {
            local_lid: 0xB003,
            remote_lid: 0xC004,
            local_gid: distinct(51),
            remote_gid: distinct(151),
            flow_label: 0xD_4321,
            packet_rate: 0b11_0010,
            traffic_class: 0xD5,
            hop_limit: 0xE6,
            service_level: 0b1101,
            subnet_local: true,
            local_ack_timeout: 0b1_1001,
        },
        sap_supported: true,
        private_data: Bytes(distinct(7)),
    }
}

fn request_case() -> Case {
    let m = request();
    let mut shown = vec![
        ("infiniband.mad.attributeid", Number(0x0010)),
        ("infiniband.cm.req", number(m.local_communication_id)),
        ("infiniband.cm.req.serviceid", number(m.service_id)),
        ("infiniband.cm.req.localcaguid", number(m.local_ca_guid)),
        ("infiniband.cm.req.localqkey", number(m.local_q_key)),
        ("infiniband.cm.req.localqpn", number(m.local_qpn)),
        ("infiniband.cm.req.responderres", number(m.responder_resources)),
        ("infiniband.cm.req.localeecn", number(m.local_eecn)),
        ("infiniband.cm.req.initdepth", number(m.initiator_depth)),
        ("infiniband.cm.req.remoteeecn", number(m.remote_eecn)),
        ("infiniband.cm.req.remoteresptout", number(m.remote_cm_response_timeout)),
        ("infiniband.cm.req.transpsvctype", number(m.transport_service.0)),
        ("infiniband.cm.req.e2eflowctrl", number(m.end_to_end_flow_control)),
        ("infiniband.cm.req.startpsn", number(m.starting_psn)),
        ("infiniband.cm.req.localresptout", number(m.local_cm_response_timeout)),
        ("infiniband.cm.req.retrcount", number(m.retry_count)),
        ("infiniband.cm.req.pkey", number(m.p_key)),
        ("infiniband.cm.req.pppmtu", number(m.path_mtu)),
        ("infiniband.cm.req.rdcexist", number(m.rdc_exists)),
        ("infiniband.cm.req.rnrretrcount", number(m.rnr_retry_count)),
        ("infiniband.cm.req.maxcmretr", number(m.max_cm_retries)),
        ("infiniband.cm.req.srq", number(m.srq)),
        ("infiniband.cm.req.ext_transport", number(m.extended_transport.0)),
        ("infiniband.cm.req.prim_localgid", address(m.primary_path.local_gid)),
        ("infiniband.cm.req.prim_remotegid", address(m.primary_path.remote_gid)),
        ("infiniband.cm.req.alt_localgid", Value::Bytes(m.alternate_path.local_gid.to_vec())),
        ("infiniband.cm.req.alt_remotegid", Value::Bytes(m.alternate_path.remote_gid.to_vec())),
        ("infiniband.cm.req.private", bytes(&m.private_data)),
        ("infiniband.cm.req.prim_reserved1", Number(0)),
        ("infiniband.cm.req.prim_reserved2", Number(0)),
        // The dissector has two fields of this name, with three bits each. "SAP supported" is the
        // highest bit of the second one.
        ("infiniband.cm.req.alt_reserved1", Text("0x00,0x04")),
    ];
    shown.extend(PRIMARY.into_iter().zip(path(&m.primary_path)));
    shown.extend(ALTERNATE.into_iter().zip(path(&m.alternate_path)));
    Case { mad: Mad { transaction: 0x8000_0001_0000_0001, message: m.into() }, is_ipv6: true, shown }
}

/// Names of fields of paths, in the order of `path`.
const PRIMARY: [&str; 7] = [
    "infiniband.cm.req.prim_locallid",
    "infiniband.cm.req.prim_remotelid",
    "infiniband.cm.req.prim_tfcclass",
    "infiniband.cm.req.prim_hoplim",
    "infiniband.cm.req.prim_sl",
    "infiniband.cm.req.prim_subnetlocal",
    "infiniband.cm.req.prim_localacktout",
];
const ALTERNATE: [&str; 7] = [
    "infiniband.cm.req.alt_locallid",
    "infiniband.cm.req.alt_remotelid",
    "infiniband.cm.req.alt_tfcclass",
    "infiniband.cm.req.alt_hoplim",
    "infiniband.cm.req.alt_sl",
    "infiniband.cm.req.alt_subnetlocal",
    "infiniband.cm.req.alt_localacktout",
];

fn path(path: &Path) -> [Value; 7] {
    [
        number(path.local_lid),
        number(path.remote_lid),
        number(path.traffic_class),
        number(path.hop_limit),
        number(path.service_level),
        number(path.subnet_local),
        number(path.local_ack_timeout),
    ]
}

/// A REQ for an IP port.
fn addressed_case(addresses: Addresses, is_ipv6: bool, names: [&'static str; 2]) -> Case {
    let header = IpHeader { source_port: 0xC001, addresses };
    let consumers: [u8; 56] = distinct(77);
    let data = [&header.encode()[..], &consumers].concat();
    let message = Request {
        service_id: service_id(PortSpace::TCP, 7471),
        private_data: Bytes::of(&data).unwrap(),
        ..request()
    };
    let shown = vec![
        ("infiniband.cm.req.serviceid.prefix", Value::Bytes(vec![0, 0, 0, 0, 1])),
        ("infiniband.cm.req.serviceid.protocol", Number(6)),
        ("infiniband.cm.req.serviceid.dport", Number(7471)),
        ("infiniband.cm.req.ip_cm.majv", Number(0)),
        ("infiniband.cm.req.ip_cm.minv", Number(0)),
        ("infiniband.cm.req.ip_cm.ipv", Number(if addresses.source().is_ipv4() { 4 } else { 6 })),
        ("infiniband.cm.req.ip_cm.reserved", Number(0)),
        ("infiniband.cm.req.ip_cm.sport", Number(0xC001)),
        (names[0], Address(addresses.source())),
        (names[1], Address(addresses.destination())),
        ("infiniband.cm.req.ip_cm.private", Value::Bytes(consumers.to_vec())),
    ];
    Case { mad: Mad { transaction: 2, message: message.into() }, is_ipv6, shown }
}

fn reply_case() -> Case {
    let m = Reply {
        local_communication_id: 0x8123_4567,
        remote_communication_id: 0x9765_4321,
        local_q_key: 0xA111_2222,
        local_qpn: 0xA1_0203,
        local_eecn: 0xB1_0405,
        starting_psn: 0xD1_0809,
        responder_resources: 0x91,
        initiator_depth: 0x82,
        target_ack_delay: 0b1_0110,
        failover_accepted: FailoverAccepted::REJECTED,
        end_to_end_flow_control: true,
        rnr_retry_count: 0b101,
        srq: true,
        local_ca_guid: 0x8877_6655_4433_2211,
        private_data: Bytes(distinct(9)),
    };
    let shown = vec![
        ("infiniband.mad.attributeid", Number(0x0013)),
        ("infiniband.cm.rep", number(m.local_communication_id)),
        ("infiniband.cm.rep.remotecommid", number(m.remote_communication_id)),
        ("infiniband.cm.rep.localqkey", number(m.local_q_key)),
        ("infiniband.cm.rep.localqpn", number(m.local_qpn)),
        ("infiniband.cm.rep.localeecn", number(m.local_eecn)),
        ("infiniband.cm.rep.startpsn", number(m.starting_psn)),
        ("infiniband.cm.rep.respres", number(m.responder_resources)),
        ("infiniband.cm.rep.initdepth", number(m.initiator_depth)),
        ("infiniband.cm.rep.tgtackdelay", number(m.target_ack_delay)),
        ("infiniband.cm.rep.failoveracc", number(m.failover_accepted.0)),
        ("infiniband.cm.rep.e2eflowctrl", number(m.end_to_end_flow_control)),
        ("infiniband.cm.rep.rnrretrcount", number(m.rnr_retry_count)),
        ("infiniband.cm.rep.srq", number(m.srq)),
        ("infiniband.cm.rep.reserved", Number(0)),
        ("infiniband.cm.rep.localcaguid", number(m.local_ca_guid)),
        ("infiniband.cm.rep.private", bytes(&m.private_data)),
    ];
    Case { mad: Mad { transaction: 3, message: m.into() }, is_ipv6: false, shown }
}

fn reject_case() -> Case {
    let m = Reject {
        local_communication_id: 0x8123_4567,
        remote_communication_id: 0x9765_4321,
        message: AnsweredMessage::Other,
        additional_information_length: 0b100_0101,
        reason: RejectReason(0x9234),
        additional_information: Bytes(distinct(11)),
        private_data: Bytes(distinct(111)),
    };
    let shown = vec![
        ("infiniband.mad.attributeid", Number(0x0012)),
        ("infiniband.cm.rej.localcommid", number(m.local_communication_id)),
        ("infiniband.cm.rej.remotecommid", number(m.remote_communication_id)),
        ("infiniband.cm.rej.msgrej", Number(2)),
        ("infiniband.cm.rej.reserved0", Number(0)),
        ("infiniband.cm.rej.rejinfolen", number(m.additional_information_length)),
        ("infiniband.cm.rej.reserved1", Number(0)),
        ("infiniband.cm.rej.reason", number(m.reason.0)),
        ("infiniband.cm.rej.ari", bytes(&m.additional_information)),
        ("infiniband.cm.rej.private", bytes(&m.private_data)),
    ];
    Case { mad: Mad { transaction: 4, message: m.into() }, is_ipv6: false, shown }
}

/// RTU, DREQ and DREP.
fn short_cases() -> [Case; 3] {
    let local_communication_id = 0x8123_4567;
    let remote_communication_id = 0x9765_4321;
    let private_data = Bytes(distinct(13));
    let ready = ReadyToUse { local_communication_id, remote_communication_id, private_data };
    let shown_of_ready = vec![
        ("infiniband.mad.attributeid", Number(0x0014)),
        ("infiniband.cm.rtu.localcommid", number(local_communication_id)),
        ("infiniband.cm.rtu.remotecommid", number(remote_communication_id)),
        ("infiniband.cm.rtu.private", bytes(&ready.private_data)),
    ];
    let release = DisconnectRequest {
        local_communication_id,
        remote_communication_id,
        remote_qpn: 0xA1_0203,
        private_data: Bytes(distinct(15)),
    };
    let shown_of_release = vec![
        ("infiniband.mad.attributeid", Number(0x0015)),
        ("infiniband.cm.dreq.localcommid", number(local_communication_id)),
        ("infiniband.cm.dreq.remotecommid", number(remote_communication_id)),
        ("infiniband.cm.req.remoteqpneecn", number(release.remote_qpn)),
        ("infiniband.cm.dreq.private", bytes(&release.private_data)),
    ];
    let released = DisconnectReply { local_communication_id, remote_communication_id, private_data };
    let shown_of_released = vec![
        ("infiniband.mad.attributeid", Number(0x0016)),
        ("infiniband.cm.drsp.localcommid", number(local_communication_id)),
        ("infiniband.cm.drsp.remotecommid", number(remote_communication_id)),
        ("infiniband.cm.drsp.private", bytes(&released.private_data)),
    ];
    let case = |message, shown| Case { mad: Mad { transaction: 5, message }, is_ipv6: false, shown };
    [
        case(ready.into(), shown_of_ready),
        case(release.into(), shown_of_release),
        case(released.into(), shown_of_released),
    ]
}

/// The messages of which the dissector shows only the header and the name.
fn named_cases() -> impl Iterator<Item = Case> {
    let named: [(Message, u64, &str); 3] = [
        (MessageReceipt::default().into(), 0x0011, "CM: MsgRcptAck"),
        (ResolutionRequest::default().into(), 0x0017, "CM: ServiceIDResReq"),
        (ResolutionReply::default().into(), 0x0018, "CM: ServiceIDResReqResp"),
    ];
    named.into_iter().map(|(message, attribute, name)| Case {
        mad: Mad { transaction: 6, message },
        is_ipv6: false,
        shown: vec![("infiniband.mad.attributeid", Number(attribute)), ("_ws.col.Info", Text(name))],
    })
}

fn cases() -> Vec<Case> {
    let four =
        Addresses::V4 { source: Ipv4Addr::new(192, 0, 2, 15), destination: Ipv4Addr::new(198, 51, 100, 16) };
    let source: Ipv6Addr = "2001:db8::15".parse().unwrap();
    let destination: Ipv6Addr = "2001:db8:ffff::16".parse().unwrap();
    let six = Addresses::V6 { source, destination };
    let names_of_four = ["infiniband.cm.req.ip_cm.sip4", "infiniband.cm.req.ip_cm.dip4"];
    let names_of_six = ["infiniband.cm.req.ip_cm.sip6", "infiniband.cm.req.ip_cm.dip6"];
    let mut cases = vec![
        request_case(),
        addressed_case(four, false, names_of_four),
        addressed_case(six, true, names_of_six),
        reply_case(),
        reject_case(),
    ];
    cases.extend(short_cases());
    cases.extend(named_cases());
    for case in &mut cases {
        let transaction = case.mad.transaction;
        case.shown.extend([
            ("infiniband.mad.baseversion", Number(1)),
            ("infiniband.mad.mgmtclass", Number(7)),
            ("infiniband.mad.classversion", Number(2)),
            ("infiniband.mad.method", Number(3)),
            ("infiniband.mad.status", Number(0)),
            ("infiniband.mad.classspecific", Number(0)),
            ("infiniband.mad.transactionid", Number(transaction)),
            ("infiniband.mad.attributemodifier", Number(0)),
        ]);
    }
    cases
}

/// A frame of Ethernet with RoCE v2: a send to queue pair 1 by unreliable datagram.
fn frame(case: &Case) -> Vec<u8> {
    // Base transport header (9.2): opcode, flags, P_Key, queue pair, sequence number. Then the
    // datagram header (9.3.5): the Q_Key of queue pair 1, and the sender's queue pair.
    let base = [0x64, 0, 0xFF, 0xFF, 0, 0, 0, 1, 0, 0, 0, 0];
    let datagram = [0x80, 0x01, 0, 0, 0, 0, 0, 1];
    // The checksum is not verified.
    let payload = [&base[..], &datagram, &case.mad.encode(), &[0; 4]].concat();
    let udp_bytes = (8 + payload.len()) as u16;
    let udp = [0xC000, 4791, udp_bytes, 0].map(u16::to_be_bytes).concat();
    let ethernet = [2, 0, 0, 0, 0, 16, 2, 0, 0, 0, 0, 15];
    let ip = if case.is_ipv6 {
        let source: Ipv6Addr = "fd00::15".parse().unwrap();
        let destination: Ipv6Addr = "fd00::16".parse().unwrap();
        let head = [&[0x86, 0xDD, 0x60, 0, 0, 0][..], &udp_bytes.to_be_bytes(), &[17, 64]].concat();
        [&head[..], &source.octets(), &destination.octets()].concat()
    } else {
        let length = (20 + udp_bytes).to_be_bytes();
        let head = [&[0x08, 0, 0x45, 0][..], &length, &[0, 0, 0x40, 0, 64, 17, 0, 0]].concat();
        [&head[..], &[10, 0, 2, 15], &[10, 0, 2, 16]].concat()
    };
    [&ethernet[..], &ip, &udp, &payload].concat()
}

/// A tcpdump capture file: its header, and each frame after its time and length.
fn capture(cases: &[Case]) -> Vec<u8> {
    // Magic number, version 2.4, no time zone or accuracy, longest frame, Ethernet.
    let mut file = [0xA1B2_C3D4, 0x0002_0004, 0, 0, 65535, 1].map(u32::to_be_bytes).concat();
    for case in cases {
        let frame = frame(case);
        let length = frame.len() as u32;
        file.extend([0, 0, length, length].map(u32::to_be_bytes).concat());
        file.extend(frame);
    }
    file
}

#[test]
fn a_dissector_sees_what_was_encoded() {
    if Command::new("tshark").arg("--version").output().is_err() {
        return skip("dissector", "there is no tshark (Debian package tshark)");
    }
    let cases = cases();
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("cm.pcap");
    fs::write(&file, capture(&cases)).unwrap();
    let mut names: Vec<_> = cases.iter().flat_map(|case| &case.shown).map(|(name, _)| *name).collect();
    names.sort_unstable();
    names.dedup();
    let columns = names.iter().flat_map(|name| ["-e", name]);
    let mut command = Command::new("tshark");
    // No settings of the user who runs this.
    command.env("HOME", directory.path()).env("XDG_CONFIG_HOME", directory.path());
    command.arg("-r").arg(&file).args(["-n", "-T", "fields", "-E", "separator=|"]).args(columns);
    let output = command.output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(text.lines().count(), cases.len(), "{text}");
    for (case, line) in iter::zip(&cases, text.lines()) {
        let found: BTreeMap<_, _> = iter::zip(names.iter().copied(), line.split('|')).collect();
        for (name, expected) in &case.shown {
            let shown = found[name];
            let read = expected.read(shown);
            assert_eq!(read.as_ref(), Some(expected), "{} {name}: {shown}", case.mad.message.name());
        }
    }
}

/// Reports that a test is skipped and why, or fails if `RDMASCOPE_REQUIRE` names what is missing.
fn skip(what: &str, why: &str) {
    let required = env::var("RDMASCOPE_REQUIRE").unwrap_or_default();
    assert!(!required.split(',').any(|name| name.trim() == what), "{what} is required: {why}");
    eprintln!("SKIPPED ({what}): {why}");
}
