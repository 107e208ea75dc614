//! Constants that both ranks of a connection must agree on, or that follow perftest.

/// The Q_Key of datagrams, as in perftest.
pub(super) const QKEY: u32 = 0x1111_1111;
/// How many receives a queue pair keeps posted if only greetings arrive.
pub(super) const GREETINGS: u32 = 4;
/// The immediate data of the last message and of greetings.
pub(super) const LAST: u32 = u32::from_be_bytes(*b"last");
/// The immediate data of every other message, if the operation has immediate data.
pub(super) const MORE: u32 = u32::from_be_bytes(*b"more");
/// The local ACK timeout, 4.096 us x 2^14 = 67 ms, and the retry count, as in perftest.
pub(super) const TIMEOUT: u8 = 14;
pub(super) const RETRY_COUNT: u8 = 7;
/// The first packet sequence number; any value works.
pub(super) const PSN: u32 = 0x5c09e;
/// Retries for ever, as in perftest: a slow receiver slows a stream down and does not break it.
pub(super) const RNR_RETRY: u8 = 7;
/// The code of 10 us, the shortest time: a requester that finds the receiver not ready loses as
/// little time as possible.
pub(super) const MIN_RNR_TIMER: u8 = 1;
