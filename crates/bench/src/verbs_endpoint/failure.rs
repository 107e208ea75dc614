//! The meaning of a failed completion, or of none at all, and what to do about it. Users know
//! failures by number ("status 12").

use std::fmt;

use verbs::abi::*;
use verbs::{LinkLayer, WcStatus};

use super::address::{Address, GidAddress};
use super::constants::{RETRY_COUNT, TIMEOUT};
use super::port::{self, LocalPort};
use crate::Error;
use crate::point::Service;
use crate::topology::PartSpec;

/// The path of an endpoint's packets.
#[derive(Clone, Debug)]
pub(super) struct Path {
    service: Service,
    mtu_bytes: u32,
    sends_udp: bool,
    own: String,
    theirs: String,
}

impl Path {
    pub(super) fn new(spec: &PartSpec, local: &LocalPort, peer: &Address) -> Self {
        let is_global = local.is.link_layer != LinkLayer::InfiniBand;
        let shown = |gid: Option<String>, lid: u16| match gid {
            Some(gid) if is_global => format!("GID {gid}"),
            _ => format!("LID {lid}"),
        };
        let their_gid = peer.gid.as_ref().map(GidAddress::entry);
        Self {
            service: spec.message.service,
            mtu_bytes: spec.message.mtu_bytes.unwrap_or_else(|| local.is.active_mtu.bytes()),
            sends_udp: local.sends_udp(),
            own: shown(local.gid.as_ref().map(port::shown), local.is.lid),
            theirs: shown(their_gid.as_ref().map(port::shown), peer.lid),
        }
    }

    /// Returns the cause and the remedy of a failed request, with its path.
    pub(super) fn advice(&self, status: WcStatus) -> String {
        let advice = match status.0 {
            IBV_WC_RETRY_EXC_ERR => self.nothing_came_back(),
            other => meaning(other).to_owned(),
        };
        format!("{advice} ({self})")
    }

    /// Returns the same for a point whose time ended without a completion.
    pub(super) fn advice_on_silence(&self, is_unacknowledged: bool) -> String {
        let advice = match self.service {
            // rxe takes a retry count of 7 as unlimited (rxe_comp.c), so status 12 does not occur
            // there.
            Service::Rc if is_unacknowledged => format!(
                "the peer has stopped and posts no receives (RNR, which is retried for ever); or, on a device that retries \
                 for ever such as Soft-RoCE, {}",
                self.lost_on_the_way()
            ),
            Service::Rc => {
                "the peer has ended or stopped, or needs more time: raise the point's timeout".to_owned()
            }
            Service::Uc | Service::Ud => format!(
                "{}; or a message was lost, which this service does not repeat: measure RC, look for drops (`rdma \
                 statistic`, `ethtool -S DEV`), or send less at once (-t)",
                self.lost_on_the_way()
            ),
        };
        format!("{advice} ({self})")
    }

    /// Returns the error of a peer that has been silent for longer than a message takes.
    pub(super) fn silent(&self, is_unacknowledged: bool, waited_s: f64) -> Error {
        let what = if is_unacknowledged { "was acknowledged by the peer" } else { "came from the peer" };
        let advice = match self.service {
            Service::Rc if is_unacknowledged => {
                "its program has stopped and posts no receives (RNR, which is retried for ever), or its device has stopped"
            }
            Service::Rc => "its program has stopped: check its host",
            Service::Uc | Service::Ud => {
                "its program has stopped, or a message was lost, which this service does not repeat: measure RC, look for \
                 drops (`rdma statistic`, `ethtool -S DEV`), or send less at once (-t)"
            }
        };
        Error::Silent { what, path: self.to_string(), waited_s, said: String::new(), advice }
    }

    fn nothing_came_back(&self) -> String {
        let attempts = u32::from(RETRY_COUNT) + 1;
        let each_ms = 4.096e-3 * f64::from(1u32 << TIMEOUT);
        let causes = self.lost_on_the_way();
        format!("nothing came back to {attempts} attempts of {each_ms:.0} ms each: {causes}")
    }

    /// Returns why packets, or the answers to them, do not arrive.
    fn lost_on_the_way(&self) -> String {
        let filter = if self.sends_udp {
            ", a firewall drops UDP port 4791 (`nft list ruleset` on both hosts)"
        } else {
            ""
        };
        format!(
            "the peer has ended, its address is wrong or not reachable (`rdmascope devices` on both hosts, -x){filter}, \
             or a switch drops packets of {} B (try -m {})",
            self.mtu_bytes,
            (self.mtu_bytes / 2).max(256)
        )
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { service, mtu_bytes, own, theirs, .. } = self;
        write!(f, "{} from {own} to {theirs}, path MTU {mtu_bytes} B", service.word())
    }
}

/// Returns the meaning of the other statuses (IBTA, volume 1, section 11.6.2, and
/// `ibv_poll_cq`(3)).
fn meaning(status: ibv_wc_status) -> &'static str {
    match status {
        IBV_WC_WR_FLUSH_ERR => {
            "its queue pair had failed before, on a request of the peer or of another rank: look for the failure there"
        }
        IBV_WC_RNR_RETRY_EXC_ERR => {
            "the peer had no receive posted at any attempt: its program is stopped or slower than the sender; \
             post more receives (-r), or send less at once (-t)"
        }
        IBV_WC_REM_ACCESS_ERR => {
            "the peer's memory does not allow it: the memory region has gone, or its key or its address is wrong; run the \
             same version on both hosts, and start both ranks again"
        }
        IBV_WC_REM_INV_REQ_ERR => {
            "the peer's device rejected the request: it is longer than the posted receive, or the operation is not allowed \
             on its queue pair; run the same version with the same settings on both hosts"
        }
        IBV_WC_REM_OP_ERR | IBV_WC_REM_ABORT_ERR => {
            "the peer's device failed: check the kernel log of its host (`dmesg`)"
        }
        IBV_WC_LOC_QP_OP_ERR => {
            "the device of this rank could not do it: the route to the peer has gone (`ip route get` its address, `ip link`), \
             or the request does not fit the queue pair"
        }
        IBV_WC_LOC_LEN_ERR | IBV_WC_LOC_PROT_ERR | IBV_WC_LOC_ACCESS_ERR | IBV_WC_BAD_RESP_ERR => {
            "the memory of this rank does not fit the message or its answer: run the same version on both hosts; if you do, \
             this is a bug of rdmascope or of the driver, please report it"
        }
        IBV_WC_RESP_TIMEOUT_ERR => {
            "the peer took the request and never answered it: it is stopped or its device is stuck"
        }
        _ => "the device of this rank failed: check the kernel log (`dmesg`) and the adapter's firmware",
    }
}

#[cfg(test)]
mod tests;
