//! Numbers that both ends agree on.

/// Slots for answers.
pub(super) const ANSWER_SLOTS: usize = 4;
/// Credits are told when so many parts of a ring have been released.
pub(super) const CREDITS_IN_A_RING: usize = 4;
/// In a ring of at most so many slots each is told at once where the other end waits for it.
pub(super) const PROMPT_SLOTS_MAX: usize = 64;
/// Receives for messages that carry credits alone, beside those for blocks: as many as there may be
/// before the other end has looked at one.
pub(super) const CREDIT_RECEIVES: usize = PROMPT_SLOTS_MAX + 2 * CREDITS_IN_A_RING;
/// Requests for such messages that may be under way.
pub(super) const CREDIT_SENDS: usize = 2 * CREDITS_IN_A_RING;
/// Marks the identifiers of receives; the other bits are the lane.
pub(super) const RECEIVE: u64 = 1 << 63;
