//! Numbers that both ends of a connection must agree on, or that follow perftest's.

/// Q_Key of datagrams: perftest's.
pub(super) const QKEY: u32 = 0x1111_1111;
/// Receives that a queue pair keeps posted where nothing but greetings arrives.
pub(super) const GREETINGS: u32 = 4;
/// Immediate data of the last message and of greetings.
pub(super) const LAST: u32 = u32::from_be_bytes(*b"last");
/// Immediate data of every other message, where the operation has some.
pub(super) const MORE: u32 = u32::from_be_bytes(*b"more");
/// Local ACK timeout, 4.096 us x 2^14 = 67 ms, and retries: perftest's.
pub(super) const TIMEOUT: u8 = 14;
pub(super) const RETRY_COUNT: u8 = 7;
/// First packet sequence number: any will do.
pub(super) const PSN: u32 = 0x5c09e;
/// For ever, as perftest: a slow receiver makes a stream slow, not broken.
pub(super) const RNR_RETRY: u8 = 7;
/// Code of 10 us, the shortest: a requester that finds the receiver not ready loses as little as
/// possible.
pub(super) const MIN_RNR_TIMER: u8 = 1;
