//! What the agents' devices cannot do, found before a point is set up: it is then not measured, with the reason.

use super::message::{Description, Limits};
use crate::point::PointSpec;

/// Why a point cannot be measured between these ranks, if so.
pub(super) fn refusal(spec: &PointSpec, descriptions: &[&Description]) -> Option<String> {
    descriptions.iter().enumerate().find_map(|(rank, description)| {
        let name = description.device.as_ref().map(|device| device.name.as_str());
        let reason = exceeded(spec, &description.limits)?;
        Some(format!("{reason} of {} at rank {rank}", name.unwrap_or("the device")))
    })
}

fn exceeded(spec: &PointSpec, limits: &Limits) -> Option<String> {
    let size = spec.size_bytes;
    let depth = spec.tx_depth.max(spec.rx_depth);
    if let Some(max) = limits.inline_bytes_max.filter(|max| spec.inline && size > *max) {
        return Some(format!("{size} bytes inline are above the limit of {max}"));
    }
    if let Some(max) = limits.message_bytes_max.filter(|max| size > *max) {
        return Some(format!("a message of {size} bytes is above the limit of {max}"));
    }
    if let Some(max) = limits.mtu_bytes_max.filter(|max| spec.mtu_bytes > *max) {
        return Some(format!("the path MTU of {} bytes is above the limit of {max}", spec.mtu_bytes));
    }
    let max = limits.depth_max.filter(|max| depth > *max)?;
    Some(format!("a queue of {depth} requests is above the limit of {max}"))
}
