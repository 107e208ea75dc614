//! Signal and data rates of InfiniBand links, computed from lane rate, width and coding.
//!
//! Lane rates and codings are those of the InfiniBand Architecture Specification, vol. 2, as Gamess and
//! Ortiz-Zuazaga 2016 tabulate them (Table 1). All arithmetic is in integers, in bit/s, and exact up to the last
//! division.

use measure::record::Device;
use serde_json::Value;

/// A generation of InfiniBand links.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Generation {
    /// Single data rate.
    Sdr,
    /// Double data rate.
    Ddr,
    /// Quad data rate.
    Qdr,
    /// Fourteen data rate.
    Fdr,
    /// Enhanced data rate.
    Edr,
}

impl Generation {
    /// All that are computed, slowest first.
    pub const ALL: [Self; 5] = [Self::Sdr, Self::Ddr, Self::Qdr, Self::Fdr, Self::Edr];

    /// The name in print, e.g. `FDR`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Sdr => "SDR",
            Self::Ddr => "DDR",
            Self::Qdr => "QDR",
            Self::Fdr => "FDR",
            Self::Edr => "EDR",
        }
    }

    /// Signal rate of one lane, in bit/s.
    pub fn lane_bits_per_s(self) -> u64 {
        match self {
            Self::Sdr => 2_500_000_000,
            Self::Ddr => 5_000_000_000,
            Self::Qdr => 10_000_000_000,
            Self::Fdr => 14_062_500_000,
            Self::Edr => 25_781_250_000,
        }
    }

    /// The line code: so many data bits in so many signalled ones.
    pub fn coding(self) -> (u64, u64) {
        match self {
            Self::Sdr | Self::Ddr | Self::Qdr => (8, 10),
            Self::Fdr | Self::Edr => (64, 66),
        }
    }

    /// Signal rate of a link of so many lanes, in bit/s.
    pub fn signal_bits_per_s(self, lanes: u64) -> u64 {
        self.lane_bits_per_s() * lanes
    }

    /// Data rate of a link of so many lanes, in whole bit/s.
    pub fn data_bits_per_s(self, lanes: u64) -> u64 {
        let (data, coded) = self.coding();
        self.signal_bits_per_s(lanes) * data / coded
    }
}

/// Link widths, in lanes.
pub const WIDTHS: [u64; 4] = [1, 4, 8, 12];

/// Data bits that a link carries in a second, by its name in records: `4X FDR` or `40Gb/s`. None for what is no such name.
pub fn data_bits_per_s(link: &str) -> Option<u64> {
    if let Some(gbps) = link.strip_suffix("Gb/s") {
        return gbps.trim().parse::<u64>().ok()?.checked_mul(1_000_000_000);
    }
    let (lanes, name) = link.split_once("X ")?;
    let lanes: u64 = lanes.parse().ok().filter(|lanes| (1..=12).contains(lanes))?;
    let known = Generation::ALL.into_iter().find(|generation| generation.name() == name);
    // Those after EDR are named by their data rate: what forward error correction takes is signalled beside it.
    let lane = match name {
        "HDR" => 50_000_000_000,
        "NDR" => 100_000_000_000,
        "XDR" => 200_000_000_000,
        _ => return known.map(|generation| generation.data_bits_per_s(lanes)),
    };
    Some(lanes * lane)
}

/// What carries the packets of a queue pair.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Layer {
    /// InfiniBand, within a subnet.
    InfiniBand,
    /// RoCE over Ethernet, without IP.
    RoceV1,
    /// RoCE over UDP and IPv4.
    RoceV2,
    /// RoCE over UDP and IPv6.
    RoceV2Ipv6,
}

impl Layer {
    /// That of a device that was measured on; none where its record does not say.
    pub fn of(device: &Device) -> Option<Self> {
        let attribute = |name| device.attributes.get(name).and_then(Value::as_str);
        match (attribute("link_layer")?, attribute("gid_type")) {
            ("InfiniBand", _) => Some(Self::InfiniBand),
            ("Ethernet", Some("RoCE v1")) => Some(Self::RoceV1),
            ("Ethernet", Some("RoCE v2")) => {
                let is_mapped =
                    attribute("gid").is_some_and(|gid| gid.contains("ffff:") && gid.starts_with("::"));
                Some(if is_mapped { Self::RoceV2 } else { Self::RoceV2Ipv6 })
            }
            _ => None,
        }
    }

    /// What surrounds the payload of a packet of a connected service, in bytes. InfiniBand: local route header (8), base
    /// transport header (12), invariant and variant CRC (4 and 2; InfiniBand Architecture Specification, vol. 1, sections 7.7,
    /// 7.8 and 9.2). RoCE: preamble and gap (20), Ethernet (14 and 4), a global route header (40; Annex A16) or IPv4 (20) or
    /// IPv6 (40) and UDP (8; Annex A17), base transport header and invariant CRC.
    pub fn header_bytes(self) -> u64 {
        match self {
            Self::InfiniBand => 8 + 12 + 4 + 2,
            Self::RoceV1 => 20 + 18 + 40 + 12 + 4,
            Self::RoceV2 => 20 + 18 + 20 + 8 + 12 + 4,
            Self::RoceV2Ipv6 => 20 + 18 + 40 + 8 + 12 + 4,
        }
    }

    /// What a message takes on the link in the direction of its payload, in bytes: its packets, and the headers that only some
    /// of them have (section 9.2 and 9.3 of the specification). None for what is unknown here.
    pub fn message_bytes(self, service: &str, operation: &str, mtu: u64, size: u64) -> Option<u64> {
        let packets = size.div_ceil(mtu).max(1);
        let datagram = if service == "UD" { 8 } else { 0 };
        let extended = match operation {
            "send" => 0,
            "send_imm" => IMMEDIATE,
            "write" => RDMA,
            "write_imm" => RDMA + IMMEDIATE,
            // Of the response, in which the first and the last packet acknowledge.
            "read" => ACKNOWLEDGE * packets.min(2),
            _ => return None,
        };
        Some(size + packets * (self.header_bytes() + datagram) + extended)
    }
}

/// Extended transport headers in bytes: immediate data, RDMA, acknowledgement.
const IMMEDIATE: u64 = 4;
const RDMA: u64 = 16;
const ACKNOWLEDGE: u64 = 4;

/// A rate in Gb/s: with all of its decimals, at least two, where five are enough; else cut after three, with dots.
pub fn gbps(bits_per_s: u64) -> String {
    let (whole, fraction) = (bits_per_s / 1_000_000_000, bits_per_s % 1_000_000_000);
    if !fraction.is_multiple_of(10_000) {
        return format!("{whole}.{:03}…", fraction / 1_000_000);
    }
    let digits = format!("{:05}", fraction / 10_000);
    let needed = digits.trim_end_matches('0').len().max(2);
    format!("{whole}.{}", &digits[..needed])
}

/// How a printed number relates to the exact rate.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Printed {
    /// The very same number.
    Exact,
    /// The exact rate cut after the printed digits.
    Cut,
    /// The exact rate rounded up in the last printed digit.
    Rounded,
    /// Another number, or none.
    Other,
}

/// Compares a printed rate in Gb/s with the exact rate.
pub fn compare(printed: &str, bits_per_s: u64) -> Printed {
    let (whole, fraction) = printed.trim().split_once('.').unwrap_or((printed.trim(), ""));
    let (Ok(whole), true) = (whole.parse::<u64>(), fraction.len() <= 9) else { return Printed::Other };
    let step = 10u64.pow(9 - fraction.len() as u32);
    let fraction = if fraction.is_empty() { Ok(0) } else { fraction.parse::<u64>() };
    let Some(value) = fraction.ok().and_then(|f| whole.checked_mul(1_000_000_000)?.checked_add(f * step))
    else {
        return Printed::Other;
    };
    match bits_per_s {
        exact if exact == value => Printed::Exact,
        exact if exact / step * step == value => Printed::Cut,
        exact if (exact + step / 2) / step * step == value => Printed::Rounded,
        _ => Printed::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE1: &str = include_str!("../../../plans/reference/gamess-2016/table1_link_rates_gbps.csv");

    #[test]
    fn table_1_is_reproduced_cell_by_cell() {
        let mut seen = Vec::new();
        for line in TABLE1.lines().skip(1) {
            let cells: Vec<&str> = line.split(',').collect();
            let lanes: u64 = cells[1].parse().unwrap();
            assert_eq!(cells[0], format!("{lanes}X"));
            for (generation, printed) in Generation::ALL.into_iter().zip(&cells[3..]) {
                let exact = match cells[2] {
                    "signal" => generation.signal_bits_per_s(lanes),
                    _ => generation.data_bits_per_s(lanes),
                };
                let verdict = compare(printed, exact);
                if verdict != Printed::Exact {
                    seen.push((cells[0], cells[2], generation.name(), *printed, verdict));
                }
            }
        }
        // The paper cuts after two digits, but for 1X FDR, which it rounds (13.636 is printed as 13.64).
        let expected = [
            ("1X", "data", "FDR", "13.64", Printed::Rounded),
            ("4X", "data", "FDR", "54.54", Printed::Cut),
            ("8X", "data", "FDR", "109.09", Printed::Cut),
            ("12X", "data", "FDR", "163.63", Printed::Cut),
        ];
        assert_eq!(seen, expected);
    }

    #[test]
    fn the_signal_rate_is_a_multiple_of_the_lanes_exactly() {
        for generation in Generation::ALL {
            for lanes in WIDTHS {
                assert_eq!(generation.signal_bits_per_s(lanes), lanes * generation.signal_bits_per_s(1));
            }
        }
    }

    #[test]
    fn a_message_takes_its_packets_with_their_headers() {
        let send = |layer: Layer, mtu, size| layer.message_bytes("RC", "send", mtu, size).unwrap();
        assert_eq!(send(Layer::InfiniBand, 4096, 0), 26, "an empty message is a packet");
        assert_eq!(send(Layer::InfiniBand, 4096, 4096), 4122);
        assert_eq!(send(Layer::InfiniBand, 4096, 4097), 4097 + 2 * 26);
        assert_eq!(send(Layer::RoceV2, 1024, 1 << 20), (1 << 20) + 1024 * 82);
        assert_eq!((Layer::RoceV1.header_bytes(), Layer::RoceV2Ipv6.header_bytes()), (94, 102));
        let of = |service, operation, size| Layer::InfiniBand.message_bytes(service, operation, 2048, size);
        assert_eq!(of("UD", "send", 64), Some(64 + 34));
        assert_eq!(of("RC", "write_imm", 4096), Some(4096 + 52 + 20));
        assert_eq!((of("RC", "read", 64), of("RC", "read", 4096)), (Some(64 + 30), Some(4096 + 52 + 8)));
        assert_eq!(of("RC", "fetch_add", 8), None);
    }

    #[test]
    fn a_link_is_known_by_its_name() {
        for (name, bits_per_s) in [
            ("4X SDR", Some(8_000_000_000)),
            ("1X EDR", Some(25_000_000_000)),
            ("4X NDR", Some(400_000_000_000)),
            ("40Gb/s", Some(40_000_000_000)),
            ("width 3 speed 5", None),
            ("0X SDR", None),
            ("4X ODR", None),
            ("99999999999999999999Gb/s", None),
        ] {
            assert_eq!(data_bits_per_s(name), bits_per_s, "{name}");
        }
    }

    #[test]
    fn the_layer_is_that_of_the_device() {
        let layer = |link: &str, kind: &str, gid: &str| {
            let attributes = serde_json::json!({ "link_layer": link, "gid_type": kind, "gid": gid });
            let device =
                serde_json::json!({ "rank": 0, "name": "d", "provider": "p", "attributes": attributes });
            Layer::of(&serde_json::from_value(device).unwrap())
        };
        assert_eq!(layer("InfiniBand", "IB", "fe80::1"), Some(Layer::InfiniBand));
        assert_eq!(layer("Ethernet", "RoCE v1", "fe80::1"), Some(Layer::RoceV1));
        assert_eq!(layer("Ethernet", "RoCE v2", "::ffff:10.0.2.15"), Some(Layer::RoceV2));
        assert_eq!(layer("Ethernet", "RoCE v2", "fe80::1"), Some(Layer::RoceV2Ipv6));
        assert_eq!(layer("Other(0)", "type unknown", "fe80::1"), None);
    }

    #[test]
    fn rates_print_with_the_decimals_that_they_need() {
        assert_eq!(gbps(Generation::Fdr.signal_bits_per_s(1)), "14.0625");
        assert_eq!(gbps(Generation::Edr.signal_bits_per_s(12)), "309.375");
        assert_eq!(gbps(Generation::Edr.data_bits_per_s(12)), "300.00");
        assert_eq!(gbps(Generation::Fdr.data_bits_per_s(12)), "163.636…");
        assert_eq!(gbps(Generation::Fdr.data_bits_per_s(8)), "109.090…");
    }

    #[test]
    fn what_is_not_a_number_is_another_number() {
        for text in ["NA", "", "1.2.3", "-4", "99999999999999999999", "1.00000000001", "1.+5", "54.55x"] {
            assert_eq!(compare(text, 54_545_454_545), Printed::Other, "{text}");
        }
        assert_eq!(compare("54.55", 54_545_454_545), Printed::Rounded);
        assert_eq!(compare("54.56", 54_545_454_545), Printed::Other);
    }
}
