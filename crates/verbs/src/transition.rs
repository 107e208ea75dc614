//! Queue-pair state transitions, and the attributes that each requires and allows.
//!
//! The table is that of the InfiniBand Architecture Specification, volume 1 (section 10.3.1,
//! states, and the verb Modify Queue Pair of chapter 11), for RC, UC and UD, as in Linux's
//! `qp_state_table`. A device refuses all other transitions; softdev uses this table. The wrapper
//! uses it to say which attributes were wrong when a device returns EINVAL.

use crate::abi::*;

/// The attributes that a transition requires and allows, as `IBV_QP_*` bits; `IBV_QP_STATE` is
/// implied.
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
    /// There is no transition between the states.
    NoSuchTransition,
    /// Attributes are missing or not allowed.
    Mask {
        /// Required bits that are not set.
        missing: u32,
        /// Bits that are set but not allowed.
        invalid: u32,
    },
}

/// Checks a transition from one `ibv_qp_state` to another with the attributes in `mask`.
///
/// # Errors
/// A [`Refusal`] with the broken rule.
pub fn check(service: ibv_qp_type, from: ibv_qp_state, to: ibv_qp_state, mask: u32) -> Result<(), Refusal> {
    let attributes = attributes(service, from, to).ok_or(Refusal::NoSuchTransition)?;
    let missing = attributes.required & !mask;
    let invalid = mask & !(attributes.required | attributes.optional | IBV_QP_STATE);
    if missing | invalid == 0 { Ok(()) } else { Err(Refusal::Mask { missing, invalid }) }
}

/// Returns the attributes of a transition, or `None` if there is no such transition.
#[must_use]
pub fn attributes(service: ibv_qp_type, from: ibv_qp_state, to: ibv_qp_state) -> Option<Attributes> {
    let rc = service == IBV_QPT_RC;
    let uc = service == IBV_QPT_UC;
    let ud = service == IBV_QPT_UD;
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
        (IBV_QPS_RESET..=IBV_QPS_ERR, IBV_QPS_RESET) => (0, 0),
        // Not from RESET, by the note to the state diagram of section 10.3.1, and as the Linux
        // kernel enforces.
        (IBV_QPS_INIT..=IBV_QPS_ERR, IBV_QPS_ERR) => (0, 0),
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

/// The attributes that may be changed while the send queue is drained.
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

/// The specification's abbreviation of a state.
#[must_use]
pub fn state_name(state: ibv_qp_state) -> &'static str {
    ["RESET", "INIT", "RTR", "RTS", "SQD", "SQE", "ERR"].get(state as usize).copied().unwrap_or("unknown")
}

#[cfg(test)]
mod tests {
    use super::*;

    const SERVICES: [ibv_qp_type; 3] = [IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD];

    #[test]
    fn the_way_to_rts_needs_what_the_man_page_says() {
        // man ibv_modify_qp, tables of the three services.
        let address = IBV_QP_PKEY_INDEX | IBV_QP_PORT;
        let path = IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
        let responder = IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
        let requester = IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
        let ways = [
            (IBV_QPT_RC, [address | IBV_QP_ACCESS_FLAGS, path | responder, IBV_QP_SQ_PSN | requester]),
            (IBV_QPT_UC, [address | IBV_QP_ACCESS_FLAGS, path, IBV_QP_SQ_PSN]),
            (IBV_QPT_UD, [address | IBV_QP_QKEY, 0, IBV_QP_SQ_PSN]),
        ];
        for (service, masks) in ways {
            for (from, mask) in (IBV_QPS_RESET..).zip(masks) {
                assert_eq!(check(service, from, from + 1, mask | IBV_QP_STATE), Ok(()));
                for bit in (0..21).map(|i| 1 << i).filter(|bit| mask & bit != 0) {
                    let refusal = Refusal::Mask { missing: bit, invalid: 0 };
                    assert_eq!(check(service, from, from + 1, mask & !bit), Err(refusal));
                }
                let refusal = Refusal::Mask { missing: 0, invalid: IBV_QP_CAP };
                assert_eq!(check(service, from, from + 1, mask | IBV_QP_CAP), Err(refusal));
            }
        }
    }

    #[test]
    fn every_state_can_be_reset_and_all_but_reset_can_fail() {
        for service in SERVICES {
            for from in IBV_QPS_RESET..=IBV_QPS_ERR {
                assert_eq!(check(service, from, IBV_QPS_RESET, IBV_QP_STATE), Ok(()));
                let fails = check(service, from, IBV_QPS_ERR, IBV_QP_STATE);
                assert_eq!(fails.is_ok(), from != IBV_QPS_RESET, "from {}", state_name(from));
            }
        }
    }

    #[test]
    fn nobody_skips_a_state_or_asks_for_the_send_queue_error() {
        let refused = Err(Refusal::NoSuchTransition);
        for service in SERVICES {
            for (from, to) in
                [(0, 2), (0, 3), (1, 3), (1, 4), (2, 1), (2, 2), (2, 4), (3, 1), (3, 2), (6, 1), (6, 3)]
            {
                assert_eq!(check(service, from, to, u32::MAX), refused, "{from} to {to}");
            }
            for from in IBV_QPS_RESET..=IBV_QPS_ERR {
                assert_eq!(check(service, from, IBV_QPS_SQE, IBV_QP_STATE), refused);
            }
        }
        assert_eq!(
            check(IBV_QPT_RC, IBV_QPS_SQE, IBV_QPS_RTS, IBV_QP_STATE),
            refused,
            "RC has no such state"
        );
        assert_eq!(check(IBV_QPT_UD, IBV_QPS_SQE, IBV_QPS_RTS, IBV_QP_STATE), Ok(()));
    }

    #[test]
    fn what_is_not_known_has_no_transitions() {
        assert_eq!(attributes(IBV_QPT_RAW_PACKET, IBV_QPS_RESET, IBV_QPS_INIT), None);
        assert_eq!(attributes(IBV_QPT_RC, 7, IBV_QPS_RESET), None);
        assert_eq!(attributes(IBV_QPT_RC, IBV_QPS_RESET, u32::MAX), None);
        assert_eq!(state_name(7), "unknown");
    }

    #[test]
    fn names_are_those_of_the_bits() {
        assert_eq!(
            names(IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_DEST_QPN),
            "IBV_QP_STATE, IBV_QP_SQ_PSN, IBV_QP_DEST_QPN"
        );
        assert_eq!(names(IBV_QP_CAP | IBV_QP_MIN_RNR_TIMER), "IBV_QP_MIN_RNR_TIMER, IBV_QP_CAP");
        assert_eq!(names(0), "");
    }
}
