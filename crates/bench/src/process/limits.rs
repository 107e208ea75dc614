//! The limits of the agents' devices. A point beyond them is not set up, and is not measured, with
//! the reason.

use std::collections::BTreeSet;

use serde_json::Value;

use super::message::{Description, Limits};
use crate::point::{PointSpec, Service};
use crate::topology::PartSpec;

/// Returns why a point cannot be measured between these ranks, if so. The reason names the limit
/// and not the value beyond it: it is then the same for all such points, and is printed once.
pub(super) fn refusal(spec: &PointSpec, descriptions: &[&Description]) -> Option<String> {
    let topology = spec.topology();
    let ranks = topology.ranks as usize;
    let known = descriptions.len();
    if ranks > known {
        return Some(format!(
            "the point needs more ranks than the {known} that there are: a server that is started by hand is one rank"
        ));
    }
    if !spec.message.endpoint.is_verbs() {
        // The limits of a kernel are found when sockets are made.
        return None;
    }
    if let Some(reason) = apart(&descriptions[..ranks]) {
        return Some(reason);
    }
    if topology.parts.iter().any(|part| part.message.size_bytes == 0 && part.polls_last_byte()) {
        return Some("a message of 0 bytes leaves nothing in memory that a rank could poll for".to_owned());
    }
    let exceeded = (0u32..).zip(descriptions.iter().take(ranks)).find_map(|(rank, description)| {
        let name = description.device.as_ref().map(|device| device.name.as_str());
        let limit = topology.parts_of(rank).find_map(|part| exceeded(part, &description.limits))?;
        Some(format!("{} of rank {rank} {limit}", name.unwrap_or("the device")))
    });
    exceeded.or_else(|| spec.message.link_layer.and_then(|_| without_link(&descriptions[..ranks])))
}

/// Returns why ranks cannot reach each other, if so: the device of one rank is in memory, and
/// another rank is on another system. Addresses and queue pair numbers may be the same on both
/// systems, so that a rank would connect to itself instead of its peer.
fn apart(ranks: &[&Description]) -> Option<String> {
    let mut systems = ranks.iter().map(|rank| rank.limits.own_system);
    let first = systems.next()?;
    let other = (1..).zip(systems).find_map(|(rank, system)| (system != first).then_some(rank))?;
    let in_memory = ranks.iter().find(|rank| rank.limits.own_system.is_some())?;
    let name = in_memory.device.as_ref().map_or("a device in memory", |device| device.name.as_str());
    Some(format!(
        "{name} reaches ranks of its own host only, and rank {other} is on another host or device: name a network \
         device with -d"
    ))
}

/// Returns why there is no link between ranks, if so: a device that sends to itself uses no link.
fn without_link(ranks: &[&Description]) -> Option<String> {
    let devices = ranks.iter().filter_map(|rank| {
        let device = rank.device.as_ref()?;
        let guid = device.attributes.get("node_guid").and_then(Value::as_str);
        Some((&rank.environment.hostname, &device.name, guid))
    });
    let of_one = devices.clone().count() > devices.collect::<BTreeSet<_>>().len();
    of_one.then(|| {
        "ranks of one device exchange messages without a link: place them on two hosts (--hosts)".to_owned()
    })
}

/// Returns why none of the points can be measured, if so: the reason of the first.
pub(super) fn refusal_of_all(points: &[PointSpec], descriptions: &[&Description]) -> Option<String> {
    // A launcher may start as many ranks as a point of MPI needs.
    if points.iter().any(|spec| spec.message.endpoint.is_mpi()) {
        return None;
    }
    let mut refusals = points.iter().map(|spec| refusal(spec, descriptions));
    let first = refusals.next()??;
    refusals.all(|refusal| refusal.is_some()).then_some(first)
}

/// Returns the limit that a part exceeds, if any, as a predicate of the device.
fn exceeded(part: &PartSpec, limits: &Limits) -> Option<String> {
    let message = &part.message;
    let size = message.size_bytes;
    let depth = message.tx_depth.max(message.rx_depth);
    if let Some(max) = limits.inline_bytes_max.filter(|max| part.inline_bytes() > *max) {
        return Some(format!("sends at most {max} bytes inline"));
    }
    if let Some(max) = limits.message_bytes_max.filter(|max| size > *max) {
        return Some(format!("sends messages of at most {max} bytes"));
    }
    if let Some(max) = limits.mtu_bytes_max.filter(|max| message.mtu_bytes.is_some_and(|mtu| mtu > *max)) {
        return Some(format!("has a path MTU of at most {max} bytes"));
    }
    if let Some(mtu) =
        message.mtu_bytes.filter(|mtu| message.service == Service::Ud && size > u64::from(*mtu))
    {
        return Some(format!("sends datagrams of at most {mtu} bytes, the path MTU"));
    }
    if let Some(max) = limits.sge_max.filter(|max| message.sge > *max) {
        return Some(format!("takes at most {max} scatter/gather elements in a work request"));
    }
    if let Some(max) = limits.queue_pairs_max.filter(|max| message.queue_pairs > *max) {
        return Some(format!("has at most {max} queue pairs"));
    }
    if limits.has_atomics == Some(false) && message.operation.is_atomic() {
        return Some("has no atomic operations".to_owned());
    }
    let reads = message.outstanding_reads.unwrap_or(1);
    if let Some(max) = limits.reads_max.filter(|max| message.operation.is_fetch() && reads > *max) {
        return Some(format!("has at most {max} outstanding RDMA Reads and atomics"));
    }
    if message.link_layer.is_some() && message.link_layer != limits.link_layer {
        return Some(match limits.link_layer {
            Some(is) => format!("has the link layer {}, which is not the one asked for", is.name()),
            None => "has neither an InfiniBand nor an Ethernet link".to_owned(),
        });
    }
    let max = limits.depth_max.filter(|max| depth > *max)?;
    Some(format!("has queues of at most {max} work requests"))
}

/// Fills in the path MTU from the devices, where the plan leaves it to the ports.
pub(super) fn settle(spec: &mut PointSpec, descriptions: &[&Description]) {
    if !spec.message.endpoint.is_verbs() {
        return;
    }
    let mtus = descriptions.iter().filter_map(|description| description.limits.mtu_bytes_max);
    if let (None, Some(mtu_bytes)) = (spec.message.mtu_bytes, mtus.min()) {
        spec.message.mtu_bytes = Some(mtu_bytes);
        spec.axes.insert("mtu_bytes".to_owned(), mtu_bytes.into());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{Options, Plan, resolve};
    use crate::point::LinkLayer;

    /// The first point of an experiment with these axes.
    fn spec(axes: &str) -> PointSpec {
        let text = format!(
            "name = \"x\"\ntitle = \"X\"\n[[experiment]]\nname = \"e\"\npattern = \"ping-pong\"\naxes = {{ {axes} }}"
        );
        let plan = Plan::parse(&text, "x.toml", std::path::Path::new(".")).unwrap();
        resolve(&plan, &Options::default()).unwrap().points.remove(0)
    }

    #[test]
    fn a_device_in_memory_reaches_its_own_host_only() {
        let rank = |own_system| Description {
            device: None,
            limits: Limits { own_system, ..Limits::default() },
            environment: measure::record::Environment::default(),
            overhead: measure::record::Overhead::default(),
        };
        let why = |systems: &[Option<u64>]| {
            let ranks: Vec<Description> = systems.iter().map(|system| rank(*system)).collect();
            apart(&ranks.iter().collect::<Vec<_>>())
        };
        assert_eq!(why(&[None, None]), None);
        assert_eq!(why(&[Some(1), Some(1), Some(1)]), None);
        let other = why(&[Some(1), Some(1), Some(2)]).unwrap();
        assert!(other.contains("its own host only, and rank 2 is on another"), "{other}");
        assert!(why(&[None, Some(1)]).is_some());
        assert_eq!(why(&[]), None);
    }

    #[test]
    fn a_link_layer_that_is_not_there_is_a_limit() {
        let ethernet = spec("link_layer = \"ethernet\"");
        let any = spec("link_layer = \"any\"");
        let part = |spec: &PointSpec| spec.topology().parts.remove(0);
        let on = |link_layer| Limits { link_layer, ..Limits::default() };
        assert_eq!(exceeded(&part(&ethernet), &on(Some(LinkLayer::Ethernet))), None);
        let other = exceeded(&part(&ethernet), &on(Some(LinkLayer::Infiniband)));
        assert_eq!(other.as_deref(), Some("has the link layer InfiniBand, which is not the one asked for"));
        let none = exceeded(&part(&ethernet), &on(None));
        assert_eq!(none.as_deref(), Some("has neither an InfiniBand nor an Ethernet link"));
        for layer in [None, Some(LinkLayer::Ethernet), Some(LinkLayer::Infiniband)] {
            assert_eq!(exceeded(&part(&any), &on(layer)), None);
        }
    }
}
