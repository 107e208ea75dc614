//! Constants that source and sink share.

/// The slots for answers.
pub(super) const ANSWER_SLOTS: usize = 4;
/// The number of credit messages for a ring: one is sent each time a quarter of the slots has been
/// released.
pub(super) const CREDITS_IN_A_RING: usize = 4;
/// The largest ring in which a credit is sent for each slot, if the peer may be waiting for it.
pub(super) const PROMPT_SLOTS_MAX: usize = 64;
/// The receives for credit messages, in addition to those for blocks: as many as may arrive before
/// the receiver has polled one.
pub(super) const CREDIT_RECEIVES: usize = PROMPT_SLOTS_MAX + 2 * CREDITS_IN_A_RING;
/// The most credit messages under way.
pub(super) const CREDIT_SENDS: usize = 2 * CREDITS_IN_A_RING;
/// Marks the identifiers of receives. The other bits are the lane.
pub(super) const RECEIVE: u64 = 1 << 63;
