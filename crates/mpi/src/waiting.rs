//! The call of MPI that this process waits in, for a watchdog thread.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::functions::Call;

/// 0, or 1 + the call's number in the upper half and 1 + the peer's rank in the lower one (0: no
/// peer). One word, so that a reader never combines two calls.
static NOW: AtomicU64 = AtomicU64::new(0);

/// Stores that `call` has begun.
#[inline]
pub(crate) fn enter(call: Call, peer: Option<u32>) {
    let peer = peer.map_or(0, |peer| u64::from(peer) + 1);
    NOW.store(((call as u64 + 1) << 32) | peer, Ordering::Relaxed);
}

/// Stores that the call has returned.
#[inline]
pub(crate) fn leave() {
    NOW.store(0, Ordering::Relaxed);
}

/// Returns the call that this process is in if it can block, and the rank of its peer or root in
/// the communicator. Any thread may call this.
#[must_use]
pub fn current_call() -> Option<(&'static str, Option<u32>)> {
    let now = NOW.load(Ordering::Relaxed);
    let number = usize::try_from(now >> 32).ok()?.checked_sub(1)?;
    let peer = (now & u64::from(u32::MAX)).checked_sub(1).and_then(|peer| u32::try_from(peer).ok());
    Some((Call::from_number(number)?.name(), peer))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_is_named_with_its_peer_until_it_returns() {
        assert_eq!(current_call(), None);
        enter(Call::Recv, Some(0));
        assert_eq!(current_call(), Some(("MPI_Recv", Some(0))));
        enter(Call::Barrier, None);
        assert_eq!(current_call(), Some(("MPI_Barrier", None)));
        leave();
        assert_eq!(current_call(), None);
    }
}
