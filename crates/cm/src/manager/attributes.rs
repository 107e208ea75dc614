//! The attributes of a program's queue pair (`rdma_init_qp_attr()` of cma.c, `ib_cm_init_qp_attr()`
//! of cm.c).

use rustix::io::Errno;

use crate::abi::answer::QpAttributes;
use crate::host::Host;
use crate::identifier::{Exchange, Service, UDP_QKEY};
use crate::manager::state::Manager;

/// `enum ibv_qp_state`.
const INIT: u32 = 1;
const RTR: u32 = 2;
const RTS: u32 = 3;

/// `enum ibv_qp_attr_mask`.
mod mask {
    pub(super) const STATE: u32 = 1;
    pub(super) const ACCESS_FLAGS: u32 = 1 << 3;
    pub(super) const PKEY_INDEX: u32 = 1 << 4;
    pub(super) const PORT: u32 = 1 << 5;
    pub(super) const QKEY: u32 = 1 << 6;
    pub(super) const AV: u32 = 1 << 7;
    pub(super) const PATH_MTU: u32 = 1 << 8;
    const TIMEOUT: u32 = 1 << 9;
    const RETRY_CNT: u32 = 1 << 10;
    const RNR_RETRY: u32 = 1 << 11;
    pub(super) const RQ_PSN: u32 = 1 << 12;
    const MAX_QP_RD_ATOMIC: u32 = 1 << 13;
    const MIN_RNR_TIMER: u32 = 1 << 15;
    pub(super) const SQ_PSN: u32 = 1 << 16;
    const MAX_DEST_RD_ATOMIC: u32 = 1 << 17;
    pub(super) const DEST_QPN: u32 = 1 << 20;

    /// Attributes of RC only, for retransmission and RDMA Reads, as responder and as requester.
    pub(super) const OF_RESPONDER: u32 = MAX_DEST_RD_ATOMIC | MIN_RNR_TIMER;
    pub(super) const OF_REQUESTER: u32 = TIMEOUT | RETRY_CNT | RNR_RETRY | MAX_QP_RD_ATOMIC;
}

/// `IBV_ACCESS_REMOTE_WRITE`, and with `_READ` and `_ATOMIC`.
const WRITE: u32 = 1 << 1;
const ALL: u32 = WRITE | 1 << 2 | 1 << 3;

impl<H: Host> Manager<H> {
    /// Returns the attributes that a queue pair needs to enter a state.
    pub(super) fn attributes(&mut self, id: u32, state: u32) -> Result<QpAttributes, Errno> {
        let found = self.id(id);
        let port = found.port.ok_or(Errno::INVAL)?;
        let talk = &found.conversation;
        let made = QpAttributes { state, port: port.number, ..QpAttributes::default() };
        let first = mask::STATE | mask::PKEY_INDEX | mask::PORT;
        if found.service == Service::Ud {
            let qkey = if found.qkey == 0 { UDP_QKEY } else { found.qkey };
            found.qkey = qkey;
            return match state {
                INIT => Ok(QpAttributes { mask: first | mask::QKEY, qkey, ..made }),
                RTR => Ok(QpAttributes { mask: mask::STATE, ..made }),
                RTS => Ok(QpAttributes { mask: mask::STATE | mask::SQ_PSN, ..made }),
                _ => Err(Errno::INVAL),
            };
        }
        let is_reliable = found.service == Service::Rc;
        match (state, found.exchange) {
            // Before any message was sent.
            (INIT, Exchange::Idle) if talk.local == 0 => {
                Ok(QpAttributes { mask: first | mask::ACCESS_FLAGS, access: 0, ..made })
            }
            (
                INIT,
                Exchange::ReqSent
                | Exchange::ReqReceived
                | Exchange::RepSent
                | Exchange::RepReceived
                | Exchange::Established,
            ) => {
                let access = if talk.responder_resources == 0 { WRITE } else { ALL };
                Ok(QpAttributes { mask: first | mask::ACCESS_FLAGS, access, ..made })
            }
            (
                RTR,
                Exchange::ReqReceived | Exchange::RepSent | Exchange::RepReceived | Exchange::Established,
            ) => Ok(QpAttributes {
                mask: mask::STATE
                    | mask::AV
                    | mask::PATH_MTU
                    | mask::DEST_QPN
                    | mask::RQ_PSN
                    | if is_reliable { mask::OF_RESPONDER } else { 0 },
                address: found.address_handle(),
                path_mtu: talk.mtu.into(),
                dest_qp_num: talk.remote_qp,
                rq_psn: found.psn,
                max_dest_rd_atomic: talk.responder_resources,
                min_rnr_timer: 0,
                ..made
            }),
            (
                RTS,
                Exchange::ReqReceived | Exchange::RepSent | Exchange::RepReceived | Exchange::Established,
            ) => Ok(QpAttributes {
                mask: mask::STATE | mask::SQ_PSN | if is_reliable { mask::OF_REQUESTER } else { 0 },
                sq_psn: talk.sq_psn,
                timeout: found.ack_timeout(),
                retry_count: talk.retry_count,
                rnr_retry: talk.rnr_retry_count,
                max_rd_atomic: talk.initiator_depth,
                ..made
            }),
            _ => Err(Errno::INVAL),
        }
    }
}
