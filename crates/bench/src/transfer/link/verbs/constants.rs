//! Numbers that both ends agree on.

/// Slots for answers.
pub(super) const ANSWER_SLOTS: usize = 4;
/// Credits are told when so many parts of a ring have been released.
pub(super) const CREDITS_IN_A_RING: usize = 4;
/// Receives for messages that carry credits alone, beside those for blocks.
pub(super) const CREDIT_RECEIVES: usize = 2 * CREDITS_IN_A_RING;
/// Marks the identifiers of receives; the other bits are the lane.
pub(super) const RECEIVE: u64 = 1 << 63;
