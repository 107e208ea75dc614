//! The link limit of a point, computed from the link's data rate, the packets of a message, and
//! their headers.
//!
//! Everything that need not be there is left out: flow control, gaps between packets, losses, and
//! acknowledgements, because an adapter may answer many messages at once. So a measured throughput
//! cannot exceed the limit. Traffic that each message needs is counted: the request of a read and
//! the answer to an atomic go in the other direction, and if both ranks send at once, they share
//! that direction with the messages of the other rank.
//!
//! # Invariants
//!
//! * Only `report::link_limit` computes link limits. A limit counts what every message must have
//!   and nothing else, so that only an error lets a throughput exceed it. Where a part of the link
//!   is not known, there is no limit.

use std::collections::BTreeSet;
use std::time::Duration;

use measure::presentation::Patterns;
use measure::record::{Device, Direction, LatencyKind, Point};
use measure::units;
use serde_json::Value;

use crate::link::{self, Layer, Transfer};
use crate::{unit, value};

/// A link that the messages of a point used.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Link {
    /// Its rate, e.g. `4X FDR`.
    pub(crate) name: String,
    /// Its data rate, in bit/s.
    pub(crate) bits_per_s: u64,
    /// The bytes around the payload of each packet.
    pub(crate) header_bytes: u64,
    /// The payload of a packet, where it differs from that of the queue pair.
    mtu_bytes: Option<u64>,
    /// Smallest time between two messages, in ns.
    gap_ns: u64,
    /// Whether packets also have the headers of their operation; `false` where a link model gives
    /// the size of the headers.
    has_extended: bool,
    /// Payloads are padded to a multiple of this many bytes.
    padding: u64,
}

/// The link limit of the messages of a point.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct LinkLimit {
    pub(crate) link: Link,
    /// Payload of a message.
    size: u64,
    /// The time for which a message occupies the link, in ns; with several links, divided by their
    /// number.
    message_ns: f64,
    /// Whether both directions were used at once by a service whose acknowledgements are not
    /// counted.
    pub(crate) is_shared: bool,
    /// Whether several ranks share the limit.
    of_several: bool,
}

impl LinkLimit {
    /// The limit of a point with a throughput; `None` where the link of its messages is not known.
    pub(crate) fn of(point: &Point, devices: &[Device], patterns: Patterns) -> Option<Self> {
        let of_pair = of_pair(point, devices);
        let devices = of_pair.as_deref().unwrap_or(devices);
        let direction = point.throughput.as_ref()?.direction;
        let traffic = (patterns.of(&point.pattern).traffic)(&point.axes, direction)?;
        let link = Link::of(point, devices, &traffic.flows)?;
        let links = links(point, devices, &traffic.flows)?;
        let number = |name| point.axes.get(name).and_then(Value::as_u64);
        let mtu = link.mtu_bytes.or_else(|| number("mtu_bytes")).filter(|mtu| *mtu > 0)?;
        let size = number(traffic.size)?;
        let (with, other) = Transfer::of(&traffic.service, &traffic.operation, mtu, size)?;
        let with_ns = link.transfer_ns(with);
        let other_ns = other.map(|other| link.transfer_ns(other));
        let is_both = matches!(direction, Direction::BiOne | Direction::BiTotal);
        let message_ns = match other_ns {
            Some(other_ns) if is_both => with_ns + other_ns,
            Some(other_ns) => with_ns.max(other_ns),
            None => with_ns,
        } / (links * ways(point)) as f64;
        let is_shared = is_both && traffic.service == "RC" && other.is_none();
        let of_several = matches!(direction, Direction::Load | Direction::Pairs);
        (message_ns > 0.0).then_some(Self { link, size, message_ns, is_shared, of_several })
    }

    /// The limit for the number at a path into a point: a throughput of a rank, of one direction or
    /// of both.
    pub(crate) fn number(&self, path: &str) -> Option<f64> {
        let (one, field) =
            throughput(path).filter(|_| !self.of_several || path.starts_with("throughput."))?;
        let messages = f64::from(one) * 1e9 / self.message_ns;
        Some(if field == "bytes_per_s" { messages * self.size as f64 } else { messages })
    }

    /// The share of the limit that a point reached.
    pub(crate) fn share(&self, point: &Point) -> Option<f64> {
        Some(point.throughput.as_ref()?.messages_per_s * self.message_ns / 1e9)
    }
}

/// The devices of a point of a fleet, by the ranks of the point: its run has those of all members.
fn of_pair(point: &Point, devices: &[Device]) -> Option<Vec<Device>> {
    let members = &point.fleet.as_ref()?.members;
    let own = members.iter().zip(0..).filter_map(|(member, rank)| {
        let device = devices.iter().find(|device| device.rank == *member)?;
        Some(Device { rank, ..device.clone() })
    });
    Some(own.collect())
}

/// How many directions of a link the messages of a throughput use at once although they are counted
/// as one: two if it is computed from half of a round of `fan-out`, out and back.
fn ways(point: &Point) -> usize {
    let is_half = point.latency.as_ref().is_some_and(|latency| latency.kind == LatencyKind::FanHalf);
    if is_half { 2 } else { 1 }
}

/// The number of links that the messages use: each goes out of one port and into another. `None`
/// where that is not known, or where no link need be used because both ranks have the same port.
fn links(point: &Point, devices: &[Device], flows: &[(u32, u32)]) -> Option<usize> {
    // With a link model, each rank has its own link.
    let of = |rank: u32| match point.link_model {
        Some(_) => Some((rank.to_string(), String::new())),
        None => devices.iter().find(|device| device.rank == rank).and_then(port),
    };
    if let [_] = flows {
        return Some(1).filter(|_| of(flows[0].0).is_none() || of(flows[0].0) != of(flows[0].1));
    }
    let mut senders = BTreeSet::new();
    let mut receivers = BTreeSet::new();
    for (sender, receiver) in flows {
        let ports = of(*sender).zip(of(*receiver)).filter(|(out, into)| out != into)?;
        senders.insert(ports.0);
        receivers.insert(ports.1);
    }
    Some(senders.len().min(receivers.len())).filter(|links| *links > 0)
}

/// What identifies the port of an adapter: the GUID of its node, and its number.
fn port(device: &Device) -> Option<(String, String)> {
    let attribute = |name| device.attributes.get(name).map(value::text);
    Some((attribute("node_guid")?, attribute("port")?))
}

/// Whether a path leads to a throughput.
pub(crate) fn is_throughput(path: &str) -> bool {
    throughput(path).is_some()
}

/// The number of directions of the throughput at a path, and its field.
fn throughput(path: &str) -> Option<(u8, &str)> {
    let (group, field) = path.rsplit_once('.')?;
    let directions = match group.strip_prefix("ends.").and_then(|end| end.split_once('.')) {
        Some((_, "throughput")) => 1,
        None if group == "throughput" => 1,
        None if group == "throughput_total" => 2,
        _ => return None,
    };
    ["bytes_per_s", "messages_per_s"].contains(&field).then_some((directions, field))
}

impl Link {
    /// The link of a point's messages, if all of it is known: the device's link model, or the
    /// slowest link of the adapters.
    fn of(point: &Point, devices: &[Device], flows: &[(u32, u32)]) -> Option<Self> {
        let layer = layer(point, devices)?;
        let Some(model) = &point.link_model else { return Self::of_adapters(devices, flows, layer) };
        let item = |key: &str| model.split(',').find_map(|item| item.strip_prefix(key)?.strip_prefix('='));
        let bytes = |key| item(key).map(str::parse).transpose().ok();
        let name = model.split(',').next().filter(|first| !first.contains('='))?;
        let gap: Option<Duration> = item("gap").map(units::parse_duration).transpose().ok()?;
        let header_bytes = bytes("header")?;
        Some(Self {
            name: name.to_owned(),
            bits_per_s: link::data_bits_per_s(name).filter(|bits| *bits > 0)?,
            header_bytes: header_bytes.unwrap_or_else(|| layer.header_bytes()),
            mtu_bytes: bytes("mtu")?,
            gap_ns: gap.map_or(0, |gap| gap.as_nanos().try_into().unwrap_or(u64::MAX)),
            has_extended: header_bytes.is_none(),
            padding: 1,
        })
    }

    /// The link of adapters whose records name it.
    fn of_adapters(devices: &[Device], flows: &[(u32, u32)], layer: Layer) -> Option<Self> {
        let is_end = |device: &&Device| {
            flows.iter().any(|(sender, receiver)| [sender, receiver].contains(&&device.rank))
        };
        let ends: Vec<&Device> = devices.iter().filter(is_end).collect();
        let is_adapter =
            |device: &&Device| device.attributes.get("kind").is_some_and(|kind| kind == "hardware");
        if !ends.iter().all(is_adapter) {
            return None;
        }
        let rate = |device: &&Device| {
            let name = device.attributes.get("link")?.as_str()?;
            let bits_per_s = match layer {
                Layer::InfiniBand => link::data_bits_per_s(name),
                _ => link::ethernet_bits_per_s(name),
            };
            Some((bits_per_s?, name.to_owned()))
        };
        let rates: Option<Vec<_>> = ends.iter().map(rate).collect();
        let (bits_per_s, name) = rates?.into_iter().min()?;
        Some(Self {
            name,
            bits_per_s,
            header_bytes: layer.header_bytes(),
            mtu_bytes: None,
            gap_ns: 0,
            has_extended: true,
            padding: ADAPTER_PADDING,
        })
    }

    /// The time for which a transfer occupies the link, in ns.
    fn transfer_ns(&self, transfer: Transfer) -> f64 {
        let extended = if self.has_extended { transfer.extended_bytes } else { 0 };
        let payload = transfer.payload_bytes.div_ceil(self.padding) as f64 * self.padding as f64;
        let bytes = payload + transfer.packets as f64 * self.header_bytes as f64 + extended as f64;
        (bytes * 8e9 / self.bits_per_s as f64).max(self.gap_ns as f64)
    }
}

/// Prints the link: `4X FDR: 54.545… Gb/s, 82 B around each packet's payload`.
impl std::fmt::Display for Link {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {} Gb/s", self.name, link::gbps(self.bits_per_s))?;
        if let Some(mtu) = self.mtu_bytes {
            write!(f, ", packets of {}", unit::size(mtu))?;
        }
        write!(f, ", {} B around each packet's payload", self.header_bytes)?;
        if self.gap_ns > 0 {
            write!(f, ", {} from message to message", unit::time(self.gap_ns as f64))?;
        }
        Ok(())
    }
}

/// The links of numbers that are shown together, in the order of their first appearance.
#[derive(Debug, Default)]
pub(crate) struct Links {
    /// The description of each link.
    pub(crate) texts: Vec<String>,
    /// Whether acknowledgements, which are not counted, used a part of a link.
    pub(crate) is_shared: bool,
}

impl Links {
    pub(crate) fn see(&mut self, limit: &LinkLimit) {
        let text = limit.link.to_string();
        self.is_shared |= limit.is_shared;
        if !self.texts.contains(&text) {
            self.texts.push(text);
        }
    }
}

/// The layer that carried the packets of a point.
pub(crate) fn layer(point: &Point, devices: &[Device]) -> Option<Layer> {
    match Layer::of(devices.first()?)? {
        // A link model of softdev has the headers of IPv4, whatever the GID is.
        Layer::RoceV2Ipv6 if point.link_model.is_some() => Some(Layer::RoceV2),
        layer => Some(layer),
    }
}

/// Payloads of packets are a multiple of four bytes (pad count; InfiniBand Architecture
/// Specification, vol. 1, section 9.2).
const ADAPTER_PADDING: u64 = 4;

#[cfg(test)]
mod tests;
