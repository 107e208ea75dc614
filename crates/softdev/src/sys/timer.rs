//! Time for retries and grace periods, never on the measured path.

use std::time::Duration;

pub(crate) use std::time::Instant;

/// Returns the local ACK timeout, 4.096 us x 2^n; `None` for 0 (IBTA vol. 1, section 9.7.6.1.3).
pub(crate) fn ack_timeout(code: u8) -> Option<Duration> {
    (code != 0).then(|| Duration::from_nanos(4096 << code.min(31)))
}

/// RNR NAK timer (IBTA vol. 1, table 45), in units of 10 us.
const RNR_TIMER_10_US: [u32; 32] = [
    65536, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024, 1536, 2048,
    3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768, 49152,
];

/// Returns how long a requester waits after an RNR NAK with this code.
pub(crate) fn rnr_timer(code: u8) -> Duration {
    Duration::from_micros(u64::from(RNR_TIMER_10_US[usize::from(code & 31)]) * 10)
}
