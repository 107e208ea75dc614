//! Queue-pair state transitions and the attributes that each needs and allows.
//!
//! The table is that of the InfiniBand Architecture Specification, volume 1, sections 10.3.1 (states) and 11.2.5.2
//! (Modify Queue Pair, table "QP State Transition Properties"), for RC, UC and UD. A device refuses what is not in it
//! (softdev does so from this very table), and the wrapper uses it to say which attributes were wrong when a device
//! answers EINVAL.

use crate::abi::*;

/// What a transition needs and allows, as `IBV_QP_*` bits; `IBV_QP_STATE` is implied.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Attributes {
    /// Bits that must be set.
    pub required: u32,
    /// Further bits that may be set.
    pub optional: u32,
}

/// Why a transition is refused.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Refusal {
    /// The states do not follow each other.
    NoSuchTransition,
    /// Attributes are missing, or there are some that do not belong.
    Mask {
        /// Bits that the transition needs and that are not set.
        missing: u32,
        /// Bits that are set and that the transition does not allow.
        invalid: u32,
    },
}

/// Checks a transition from one `ibv_qp_state` to another with the attributes in `mask`.
///
/// # Errors
/// A [`Refusal`] that says which rule is broken.
pub fn check(service: ibv_qp_type, from: ibv_qp_state, to: ibv_qp_state, mask: u32) -> Result<(), Refusal> {
    let attributes = attributes(service, from, to).ok_or(Refusal::NoSuchTransition)?;
    let missing = attributes.required & !mask;
    let invalid = mask & !(attributes.required | attributes.optional | IBV_QP_STATE);
    if missing | invalid == 0 { Ok(()) } else { Err(Refusal::Mask { missing, invalid }) }
}

/// The attributes of a transition, or `None` where the states do not follow each other.
#[must_use]
pub fn attributes(service: ibv_qp_type, from: ibv_qp_state, to: ibv_qp_state) -> Option<Attributes> {
    let (rc, uc, ud) = (service == IBV_QPT_RC, service == IBV_QPT_UC, service == IBV_QPT_UD);
    let connected = rc || uc;
    if !(connected || ud) {
        return None;
    }
    let when = |condition: bool, bits: u32| if condition { bits } else { 0 };
    let all = |bits: u32| bits;
    // The migration and access attributes that the running states share.
    let running = all(IBV_QP_CUR_STATE)
        | when(ud, IBV_QP_QKEY)
        | when(connected, IBV_QP_ALT_PATH | IBV_QP_ACCESS_FLAGS | IBV_QP_PATH_MIG_STATE)
        | when(rc, IBV_QP_MIN_RNR_TIMER);
    let addressing = IBV_QP_PKEY_INDEX | IBV_QP_PORT;
    let identity = addressing | when(ud, IBV_QP_QKEY) | when(connected, IBV_QP_ACCESS_FLAGS);
    let (required, optional) = match (from, to) {
        (IBV_QPS_RESET..=IBV_QPS_ERR, IBV_QPS_RESET | IBV_QPS_ERR) => (0, 0),
        (IBV_QPS_RESET, IBV_QPS_INIT) => (identity, 0),
        (IBV_QPS_INIT, IBV_QPS_INIT) => (0, identity),
        (IBV_QPS_INIT, IBV_QPS_RTR) => (
            when(connected, IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN)
                | when(rc, IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER),
            IBV_QP_PKEY_INDEX
                | when(ud, IBV_QP_QKEY)
                | when(connected, IBV_QP_ALT_PATH | IBV_QP_ACCESS_FLAGS),
        ),
        (IBV_QPS_RTR, IBV_QPS_RTS) => (
            IBV_QP_SQ_PSN
                | when(rc, IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC),
            running,
        ),
        (IBV_QPS_RTS | IBV_QPS_SQD, IBV_QPS_RTS) => (0, running),
        (IBV_QPS_RTS, IBV_QPS_SQD) => (0, IBV_QP_EN_SQD_ASYNC_NOTIFY),
        (IBV_QPS_SQD, IBV_QPS_SQD) => (0, drained(rc, uc)),
        (IBV_QPS_SQE, IBV_QPS_RTS) if ud => (0, IBV_QP_CUR_STATE | IBV_QP_QKEY),
        (IBV_QPS_SQE, IBV_QPS_RTS) if uc => (0, IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS),
        _ => return None,
    };
    Some(Attributes { required, optional })
}

/// What may be changed while the send queue is drained.
fn drained(rc: bool, uc: bool) -> u32 {
    const CONNECTED: u32 =
        IBV_QP_AV | IBV_QP_ALT_PATH | IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX | IBV_QP_PATH_MIG_STATE;
    const RELIABLE: u32 = IBV_QP_PORT
        | IBV_QP_TIMEOUT
        | IBV_QP_RETRY_CNT
        | IBV_QP_RNR_RETRY
        | IBV_QP_MAX_QP_RD_ATOMIC
        | IBV_QP_MAX_DEST_RD_ATOMIC
        | IBV_QP_MIN_RNR_TIMER;
    match (rc, uc) {
        (true, _) => CONNECTED | RELIABLE,
        (_, true) => CONNECTED,
        _ => IBV_QP_PKEY_INDEX | IBV_QP_QKEY,
    }
}

/// The names of the `IBV_QP_*` bits in `mask`, joined with commas.
#[must_use]
pub fn names(mask: u32) -> String {
    const NAMES: [&str; 21] = [
        "STATE",
        "CUR_STATE",
        "EN_SQD_ASYNC_NOTIFY",
        "ACCESS_FLAGS",
        "PKEY_INDEX",
        "PORT",
        "QKEY",
        "AV",
        "PATH_MTU",
        "TIMEOUT",
        "RETRY_CNT",
        "RNR_RETRY",
        "RQ_PSN",
        "MAX_QP_RD_ATOMIC",
        "ALT_PATH",
        "MIN_RNR_TIMER",
        "SQ_PSN",
        "MAX_DEST_RD_ATOMIC",
        "PATH_MIG_STATE",
        "CAP",
        "DEST_QPN",
    ];
    let known = NAMES.iter().enumerate().filter(|(bit, _)| mask & (1 << bit) != 0);
    known.map(|(_, name)| format!("IBV_QP_{name}")).collect::<Vec<_>>().join(", ")
}

/// The abbreviation of a state in the specification.
#[must_use]
pub fn state_name(state: ibv_qp_state) -> &'static str {
    ["RESET", "INIT", "RTR", "RTS", "SQD", "SQE", "ERR"].get(state as usize).copied().unwrap_or("unknown")
}
