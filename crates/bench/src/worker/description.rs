//! The description of a rank's device.

use measure::record;
use serde_json::json;
use verbs::{Context, DeviceKind};

use crate::Error;
use crate::choice::Reason;
use crate::point::LinkLayer;
use crate::process::message::Limits;
use crate::verbs_endpoint::{LocalPort, inline_bytes_max};

/// The device for the record.
pub(super) fn device(
    context: &Context,
    port: &LocalPort,
    rank: u32,
    reason: &Reason,
) -> Result<record::Device, Error> {
    let device = context.device();
    let limits = context.limits()?;
    let pkey = context.pkey(port.number, port.options.pkey_index).ok();
    let kind = DeviceKind::of(device, Some(&limits));
    let attributes = [
        ("kind", Some(json!(kind.to_string()))),
        ("device_choice", Some(json!(reason.to_string()))),
        ("passed_over", reason.passed_over().map(|why| json!(why))),
        ("firmware", Some(json!(limits.firmware))),
        ("node_guid", Some(json!(format!("{:016x}", limits.node_guid)))),
        ("port", Some(json!(port.number))),
        ("link_layer", Some(json!(format!("{:?}", port.is.link_layer)))),
        ("port_state", Some(json!(format!("{:?}", port.is.state)))),
        // A user-space device moves bytes in memory: it names a rate, but has no link.
        ("link", (kind != DeviceKind::UserSoftware).then(|| json!(port.is.speed.to_string()))),
        ("active_mtu_bytes", Some(json!(port.is.active_mtu.bytes()))),
        ("max_mtu_bytes", Some(json!(port.is.max_mtu.bytes()))),
        ("max_message_bytes", Some(json!(port.is.max_message_bytes))),
        ("lid", Some(json!(port.is.lid))),
        ("gid", port.gid.map(|gid| json!(gid.gid.to_string()))),
        ("gid_index", port.gid.map(|gid| json!(gid.index))),
        ("gid_type", port.gid.map(|gid| json!(gid.kind.to_string()))),
        ("gid_choice", Some(json!(port.reason))),
        ("pkey", pkey.map(|pkey| json!(format!("{pkey:#06x}")))),
        ("service_level", Some(json!(port.options.service_level))),
        ("traffic_class", Some(json!(port.options.traffic_class))),
        ("max_qp", Some(json!(limits.max_qp))),
        ("max_qp_wr", Some(json!(limits.max_qp_wr))),
        ("max_sge", Some(json!(limits.max_sge))),
        ("max_reads", Some(json!(limits.max_initiator_reads.min(limits.max_responder_reads)))),
    ];
    let known = attributes.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
    Ok(record::Device {
        rank,
        name: device.name().to_owned(),
        provider: format!("{} ({})", device.provider().name, device.provider().about),
        attributes: known.collect(),
    })
}

/// The limits of the device.
pub(super) fn limits(context: &Context, port: &LocalPort) -> Result<Limits, Error> {
    let limits = context.limits()?;
    let is_memory = DeviceKind::of(context.device(), Some(&limits)) == DeviceKind::UserSoftware;
    Ok(Limits {
        inline_bytes_max: Some(inline_bytes_max(context)?),
        message_bytes_max: Some(u64::from(port.is.max_message_bytes)),
        mtu_bytes_max: Some(port.is.active_mtu.bytes()),
        depth_max: Some(limits.max_qp_wr),
        sge_max: Some(limits.max_sge),
        queue_pairs_max: Some(limits.max_qp),
        reads_max: Some(limits.max_initiator_reads.min(limits.max_responder_reads)),
        link_layer: match port.is.link_layer {
            // There is only memory below it.
            _ if is_memory => None,
            verbs::LinkLayer::Ethernet => Some(LinkLayer::Ethernet),
            verbs::LinkLayer::InfiniBand => Some(LinkLayer::Infiniband),
            verbs::LinkLayer::Other(_) => None,
        },
        has_atomics: Some(limits.has_atomics),
        own_system: is_memory.then_some(limits.system_guid),
    })
}
