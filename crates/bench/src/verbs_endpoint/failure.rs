//! What a failed completion, or none at all, means and what to do about it. The field knows these
//! by number ("status 12").

use std::fmt;

use verbs::abi::*;
use verbs::{LinkLayer, WcStatus};

use super::address::{Address, GidAddress};
use super::constants::{RETRY_COUNT, TIMEOUT};
use super::port::{self, LocalPort};
use crate::Error;
use crate::point::Service;
use crate::topology::PartSpec;

/// The way of an endpoint's packets.
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

    /// Cause and remedy of a failed request, and the way that it took.
    pub(super) fn advice(&self, status: WcStatus) -> String {
        let advice = match status.0 {
            IBV_WC_RETRY_EXC_ERR => self.nothing_came_back(),
            other => meaning(other).to_owned(),
        };
        format!("{advice} ({self})")
    }

    /// The same where nothing completed within the point's time.
    pub(super) fn advice_on_silence(&self, is_unacknowledged: bool) -> String {
        let advice = match self.service {
            // rxe takes a retry count of 7 for "for ever" (rxe_comp.c), so nothing ends as status
            // 12 there.
            Service::Rc if is_unacknowledged => format!(
                "the peer has stopped and posts no receives (RNR, which is retried for ever); or, on a device that repeats \
                 for ever as Soft-RoCE does, {}",
                self.lost_on_the_way()
            ),
            Service::Rc => {
                "the peer has ended or stopped, or takes longer than the point may: raise its timeout"
                    .to_owned()
            }
            Service::Uc | Service::Ud => format!(
                "{}; or a message was lost, which this service does not repeat: measure RC, look for drops (`rdma \
                 statistic`, `ethtool -S DEV`), or send less at once (-t)",
                self.lost_on_the_way()
            ),
        };
        format!("{advice} ({self})")
    }

    /// The failure where the peer has been silent for longer than a message takes.
    pub(super) fn silent(&self, is_unacknowledged: bool, waited_s: f64) -> Error {
        let what = if is_unacknowledged { "was acknowledged by the peer" } else { "came from the peer" };
        let advice = match self.service {
            Service::Rc if is_unacknowledged => {
                "its program has stopped and posts no receives (RNR, which is retried for ever), or its device has stopped"
            }
            Service::Rc => "its program has stopped: look there",
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

    /// Why packets, or what answers them, do not arrive.
    fn lost_on_the_way(&self) -> String {
        let filter = if self.sends_udp {
            ", a firewall drops UDP port 4791 (`nft list ruleset` at both ends)"
        } else {
            ""
        };
        format!(
            "the peer has ended, its address is another's or not reachable (`rdmascope devices` at both ends, -x){filter}, \
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

/// What the other statuses mean (IBTA vol. 1, section 11.6.2, and `ibv_poll_cq(3)`).
fn meaning(status: ibv_wc_status) -> &'static str {
    match status {
        IBV_WC_WR_FLUSH_ERR => {
            "its queue pair had failed before, on a request of the peer or of another rank: look for the failure there"
        }
        IBV_WC_RNR_RETRY_EXC_ERR => {
            "the peer had no receive posted whenever it was asked: its program is stopped or slower than what is sent; \
             post more receives (-r), or send less at once (-t)"
        }
        IBV_WC_REM_ACCESS_ERR => {
            "the peer's memory does not allow it: its region has gone, or its key or its address is another's; run the same \
             version at both ends, and start both again"
        }
        IBV_WC_REM_INV_REQ_ERR => {
            "the peer's device does not take such a request: it is longer than the receive that waits for it, or the \
             operation is not allowed on its queue pair; run the same version and the same settings at both ends"
        }
        IBV_WC_REM_OP_ERR | IBV_WC_REM_ABORT_ERR => {
            "the peer's device failed at it: see the kernel's log there (`dmesg`)"
        }
        IBV_WC_LOC_QP_OP_ERR => {
            "this end's device could not carry it out: the route to the peer has gone (`ip route get` its address, `ip link`), \
             or the request does not fit the queue pair"
        }
        IBV_WC_LOC_LEN_ERR | IBV_WC_LOC_PROT_ERR | IBV_WC_LOC_ACCESS_ERR | IBV_WC_BAD_RESP_ERR => {
            "this end's memory does not fit what was sent or answered: run the same version at both ends; if it is, this is \
             a bug of rdmascope or of the driver, please report it"
        }
        IBV_WC_RESP_TIMEOUT_ERR => {
            "the peer took the request and never answered it: it is stopped or its device is stuck"
        }
        _ => "this end's device failed: see the kernel's log (`dmesg`) and the adapter's firmware",
    }
}

#[cfg(test)]
mod tests;
