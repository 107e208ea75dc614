use measure::record::{Axes, Throughput};
use serde_json::json;

use super::*;

fn limit_of(point: &Point, devices: &[Device]) -> Option<LinkLimit> {
    LinkLimit::of(point, devices, bench::PATTERNS)
}

/// A port of a device, as in a record.
fn device(rank: u32, attributes: &Value) -> Device {
    let device = json!({ "rank": rank, "name": "d", "provider": "p", "attributes": attributes });
    serde_json::from_value(device).unwrap()
}

/// softdev with RoCE v2: 20 of preamble and gap, 18 of Ethernet, 20 of IPv4, 8 of UDP, 12 of BTH, 4
/// of ICRC are 82 B.
fn softdev() -> Vec<Device> {
    let attributes = json!({
        "kind": "user-space software", "link_layer": "Ethernet", "gid_type": "RoCE v2", "gid": "fe80::2f4",
    });
    [0, 1].map(|rank| device(rank, &attributes)).into()
}

/// Two adapters on InfiniBand: 8 of LRH, 12 of BTH, 4 of ICRC, 2 of VCRC are 26 B.
fn adapters(links: [&str; 2]) -> Vec<Device> {
    let attributes = |rank: u32, link: &str| {
        json!({
            "kind": "hardware", "link_layer": "InfiniBand", "gid_type": "IB", "link": link, "port": 1,
            "node_guid": format!("248a07030000000{rank}"),
        })
    };
    (0..).zip(links).map(|(rank, link)| device(rank, &attributes(rank, link))).collect()
}

/// A stream of 1000 messages per second.
fn stream(service: &str, operation: &str, size: u64, direction: &str, link_model: Option<&str>) -> Point {
    let mut point = json!({
        "id": 0, "experiment": "e", "pattern": "stream", "status": "measured", "repetition": 0, "wall_ns": 0,
        "axes": {"service": service, "operation": operation, "mtu_bytes": 4096, "size_bytes": size},
        "throughput": {"bytes_per_s": 1e3 * size as f64, "messages_per_s": 1e3, "direction": direction},
    });
    if let Some(link_model) = link_model {
        point["link_model"] = json!(link_model);
    }
    serde_json::from_value(point).unwrap()
}

/// The time of a message in ns on a link with one byte per nanosecond, rounded to 1/1000.
fn message_ns(point: &Point, devices: &[Device]) -> Option<f64> {
    limit_of(point, devices).map(|limit| (limit.message_ns * 1e3).round() / 1e3)
}

/// A stream of several pairs, or a load, with these axes.
fn several(pattern: &str, direction: &str, axes: &Value, link_model: Option<&str>) -> Point {
    let mut point = stream("RC", "write", 4096, "uni", link_model);
    point.pattern = pattern.to_owned();
    let direction = serde_json::from_value(json!(direction)).unwrap();
    point.throughput = point.throughput.map(|throughput| Throughput { direction, ..throughput });
    point.axes.extend(serde_json::from_value::<Axes>(axes.clone()).unwrap());
    point
}

/// All messages of one rank to n ranks go out of its port, and their answers come in there: half of
/// a round takes at least half of the time of one direction.
#[test]
fn one_to_n_goes_through_the_port_of_the_one() {
    let of = |operation: &str, kind: LatencyKind| {
        let mut point = stream("RC", operation, 4096, "uni", Some("4X SDR"));
        point.pattern = "fan-out".to_owned();
        point.axes.insert("peers".to_owned(), json!(5));
        point.latency = measure::stats::latency(kind, &[1000; 10], &[]);
        point
    };
    assert_eq!(message_ns(&of("send", LatencyKind::FanHalf), &softdev()), Some((4096.0 + 82.0) / 2.0));
    assert_eq!(message_ns(&of("read", LatencyKind::Fan), &softdev()), Some(4096.0 + 82.0 + 4.0));
}

#[test]
fn several_share_what_they_go_through() {
    let one = 4096.0 + 82.0 + 16.0;
    let of = |ns: f64| Some((ns * 1e3).round() / 1e3);
    let pairs = |pairs: u32| several("pairs", "pairs", &json!({ "pairs": pairs }), Some("4X SDR"));
    assert_eq!(message_ns(&pairs(1), &softdev()), of(one));
    assert_eq!(message_ns(&pairs(4), &softdev()), of(one / 4.0), "a link model for each rank");
    let load = |load: &str, loaders: u32, link_model: Option<&str>| {
        // The timed messages have another size and another operation.
        let axes = json!({
            "load": load, "loaders": loaders, "load_bytes": 4096, "size_bytes": 2, "operation": "send",
            "service": "UD",
        });
        several("open-loop", "load", &axes, link_model)
    };
    assert_eq!(
        message_ns(&load("incast", 3, Some("4X SDR")), &softdev()),
        of(one),
        "one rank receives them all"
    );
    // Read: no RETH, but an AETH in its only packet; its request, with RETH, goes the other way.
    assert_eq!(message_ns(&load("outcast", 3, Some("4X SDR")), &softdev()), of(4096.0 + 82.0 + 4.0));
    assert_eq!(message_ns(&load("beside", 3, Some("4X SDR")), &softdev()), of(one / 3.0));
    assert_eq!(message_ns(&load("incast", 0, Some("4X SDR")), &softdev()), None);

    // Two hosts in turn, with a port each: all messages use one link, whatever the ranks. On four
    // hosts two pairs use two links.
    let hosts = |ranks: u32, hosts: u32| {
        let all = adapters(["4X SDR"; 2]);
        (0..ranks)
            .map(|rank| {
                let mut device = Device { rank, ..all[0].clone() };
                device.attributes.insert("node_guid".to_owned(), json!(format!("{}", rank % hosts)));
                device
            })
            .collect::<Vec<_>>()
    };
    let one = 4096.0 + 26.0 + 16.0;
    let pairs = several("pairs", "pairs", &json!({ "pairs": 2 }), None);
    assert_eq!(message_ns(&pairs, &hosts(4, 2)), of(one));
    assert_eq!(message_ns(&pairs, &hosts(4, 4)), of(one / 2.0));
    assert_eq!(message_ns(&load("incast", 2, None), &hosts(4, 4)), of(one));
    assert_eq!(message_ns(&pairs, &hosts(3, 4)), None, "the last host is not known");
    // The second loader is on the host that it sends to.
    assert_eq!(message_ns(&load("incast", 2, None), &hosts(4, 2)), None);
    let mut slow = hosts(4, 4);
    slow[3].attributes.insert("link".to_owned(), json!("1X SDR"));
    assert_eq!(message_ns(&load("incast", 2, None), &slow), of(4.0 * one), "as fast as the slowest");
    assert_eq!(message_ns(&load("incast", 1, None), &slow), of(one), "the slow link is not used");
    let limit = limit_of(&pairs, &hosts(4, 2)).unwrap();
    assert!(
        limit.number("throughput.bytes_per_s").is_some()
            && limit.number("ends.0.throughput.bytes_per_s").is_none()
    );
}

/// 4X SDR signals 4 x 2.5 Gb/s; 8b/10b leaves 8 Gb/s, a byte per nanosecond.
#[test]
fn a_message_takes_its_bytes_and_its_headers() {
    for (service, operation, size, direction, ns) in [
        ("RC", "send", 0, "uni", 82.0),
        ("RC", "send", 4, "uni", 86.0),
        ("UC", "send", 65536, "uni", 65536.0 + 16.0 * 82.0),
        ("UC", "send", 65536, "bi_one", 65536.0 + 16.0 * 82.0), // each direction is a separate link
        ("RC", "send_imm", 4097, "uni", 4097.0 + 2.0 * 82.0 + 4.0), // ImmDt
        ("UD", "send", 64, "uni", 64.0 + 82.0 + 8.0),           // DETH
        ("RC", "write", 65536, "uni", 65536.0 + 16.0 * 82.0 + 16.0), // RETH in the first packet
        ("RC", "write", 65536, "bi_one", 65536.0 + 16.0 * 82.0 + 16.0), // acknowledgements are coalesced
        ("RC", "write_imm", 8, "uni", 8.0 + 82.0 + 16.0 + 4.0),
        ("RC", "read", 65536, "uni", 65536.0 + 16.0 * 82.0 + 2.0 * 4.0), // AETH in the first and the last
        ("RC", "read", 4, "uni", 82.0 + 16.0), // the request is longer than the answer of 4 + 82 + 4
        ("RC", "read", 65536, "bi_one", 65536.0 + 16.0 * 82.0 + 8.0 + 82.0 + 16.0), // with requests of the peer
        ("RC", "fetch_add", 8, "uni", 82.0 + 28.0),                                 // AtomicETH
        ("RC", "compare_swap", 8, "bi_one", 82.0 + 28.0 + 8.0 + 82.0 + 4.0), // and AtomicAckETH with AETH
    ] {
        let point = stream(service, operation, size, direction, Some("4X SDR"));
        assert_eq!(message_ns(&point, &softdev()), Some(ns), "{service} {operation} {size} {direction}");
    }
}

#[test]
fn a_model_says_what_its_packets_are() {
    for (model, size, ns) in [
        ("4X SDR,latency=1us,back=2us,fetch=300ns", 4096, 4178.0),
        ("8000Mb/s,header=40", 4096, 4136.0), // and no RETH
        ("4X SDR,mtu=1024", 4096, 4096.0 + 4.0 * 82.0 + 16.0),
        ("4X SDR,gap=1us", 8, 1000.0), // 106 ns on the wire
        ("4X SDR,gap=1us", 4096, 4194.0),
        // 4 x 14.0625 Gb/s in 64b/66b are 54.545 Gb/s: (1 Mi + 256 x 82 + 16) x 8 bits.
        ("4X FDR", 1 << 20, 156_872.320),
    ] {
        let operation = if model.contains("latency") { "send" } else { "write" };
        let point = stream("RC", operation, size, "uni", Some(model));
        assert_eq!(message_ns(&point, &softdev()), Some(ns), "{model} {size}");
    }
}

#[test]
fn the_link_of_two_adapters_is_the_slower_one() {
    // 3 B are padded to 4.
    let limit = limit_of(&stream("RC", "send", 3, "uni", None), &adapters(["4X FDR", "4X SDR"])).unwrap();
    assert_eq!((limit.link.name.as_str(), limit.message_ns), ("4X SDR", 4.0 + 26.0));
    assert_eq!(limit.link.to_string(), "4X SDR: 8.00 Gb/s, 26 B around each packet's payload");
    // Other ranks do not matter.
    let mut three = adapters(["4X FDR", "4X SDR"]);
    three.push(Device { rank: 2, ..adapters(["1X SDR", "1X SDR"]).remove(0) });
    assert_eq!(limit_of(&stream("RC", "send", 3, "uni", None), &three), Some(limit));
    // Ranks at one port need not use the link.
    let mut same = adapters(["4X SDR", "4X SDR"]);
    let guid = same[0].attributes["node_guid"].clone();
    same[1].attributes.insert("node_guid".to_owned(), guid);
    assert_eq!(limit_of(&stream("RC", "send", 3, "uni", None), &same), None);
    // Ethernet of 40 Gb/s: (4096 + 82) x 8 / 40 ns.
    let mut ethernet = adapters(["4X QDR", "4X QDR"]);
    for device in &mut ethernet {
        device.attributes.extend([
            ("link_layer".to_owned(), json!("Ethernet")),
            ("gid_type".to_owned(), json!("RoCE v2")),
            ("gid".to_owned(), json!("::ffff:10.0.0.1")),
        ]);
    }
    assert_eq!(message_ns(&stream("RC", "send", 4096, "uni", None), &ethernet), Some(835.6));
}

#[test]
fn what_is_not_known_of_a_link_is_not_made_up() {
    let known = |point: &Point, devices: &[Device]| limit_of(point, devices).is_some();
    let of = |model| stream("RC", "send", 64, "uni", model);
    assert!(known(&of(Some("40Gb/s,latency=1us")), &softdev()));
    assert!(!known(&of(None), &softdev()), "memory has no link");
    assert!(!known(&of(Some("latency=1us")), &softdev()), "no rate");
    assert!(!known(&of(Some("4X SDR,header=few")), &softdev()));
    assert!(!known(&of(Some("4X SDR")), &[]), "no layer");
    assert!(!known(&of(None), &adapters(["4X SDR", "width 3 speed 5"])));
    assert!(!known(&stream("RC", "pray", 64, "uni", Some("4X SDR")), &softdev()));
    let mut point = of(Some("4X SDR"));
    point.axes.insert("mtu_bytes".to_owned(), json!("active"));
    assert!(!known(&point, &softdev()), "packets of some size");
    let fan_out = Point { pattern: "fan-out".to_owned(), ..of(Some("4X SDR")) };
    assert!(!known(&fan_out, &softdev()), "how many messages share a port");
    let mut point = of(Some("4X SDR"));
    point.throughput = None;
    assert!(!known(&point, &softdev()));
    let huge = format!("{0}b/s,header={0},mtu=1,gap=584years", u64::MAX);
    assert!(!known(&stream("UD", "send_imm", u64::MAX, "bi_one", Some(&huge)), &softdev()), "no such gap");
    let huge = huge.replace("584years", "1h");
    assert!(
        known(&stream("UD", "send_imm", u64::MAX, "bi_one", Some(&huge)), &softdev()),
        "it is large but valid"
    );
}

#[test]
fn numbers_of_a_point_stand_beside_their_best() {
    let point = stream("RC", "send", 918, "bi_one", Some("4X SDR"));
    let limit = limit_of(&point, &softdev()).unwrap();
    // 918 and 82 B: a message in a microsecond.
    for (path, number) in [
        ("throughput.bytes_per_s", Some(918e6)),
        ("throughput.messages_per_s", Some(1e6)),
        ("throughput_total.bytes_per_s", Some(2.0 * 918e6)),
        ("ends.1.throughput.messages_per_s", Some(1e6)),
        ("throughput.direction", None),
        ("ends.1.latency.p50_ns", None),
        ("latency.p50_ns", None),
        ("wall_ns", None),
    ] {
        assert_eq!(limit.number(path), number, "{path}");
        assert_eq!(is_throughput(path), number.is_some(), "{path}");
    }
    assert_eq!((limit.share(&point), limit.is_shared), (Some(1e3 / 1e6), true));
    let read = limit_of(&stream("RC", "read", 918, "bi_one", Some("4X SDR")), &softdev()).unwrap();
    assert!(!read.is_shared, "its responses are its acknowledgements");
}
