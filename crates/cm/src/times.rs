//! Time limits and numbers of retries.

use std::time::Duration;

use crate::identifier::PACKET_LIFETIME;

/// A time in the encoding of messages: 4.096 us x 2^power.
const fn time(power: u8) -> Duration {
    Duration::from_nanos(4096 << power)
}

/// How long a message waits for its answer, in the encoding of messages
/// (`CMA_CM_RESPONSE_TIMEOUT`).
pub(crate) const RESPONSE_TIMEOUT: u8 = 20;
/// The same time, 4.3 s.
pub const RESPONSE_TIME: Duration = time(RESPONSE_TIMEOUT);
/// Interval and number of retries while no process listens at the destination. After them, the
/// connection is rejected with reason 8. On a network a request takes some time, and some programs
/// (qperf) tell their peers an address a moment before they listen at it.
pub(crate) const CALL_TIME: Duration = Duration::from_millis(2);
pub(crate) const CALLS: u8 = 15;
/// Interval of these retries while the listening process's queue of connections is full. All
/// retries together last as long as a message waits for its answer.
pub(crate) const BUSY_TIME: Duration =
    Duration::from_nanos((RESPONSE_TIME.as_nanos() / CALLS as u128) as u64);
/// How often a message is sent again (`CMA_MAX_CM_RETRIES`).
pub const TRIES: u8 = 15;
/// How long a connection that has ended waits for packets on the way: 0.54 s.
pub const TIME_WAIT: Duration = time(PACKET_LIFETIME + 1);
