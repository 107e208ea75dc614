//! What each kind of endpoint can do. Patterns state which capabilities they need.

/// A set of capabilities.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Capabilities(u32);

impl Capabilities {
    /// Single messages between two ranks; every endpoint has this.
    pub(crate) const NONE: Self = Self(0);
    /// The endpoint counts how many messages are done, whichever rank receives them. There may be
    /// more than two ranks.
    pub(crate) const COUNTED: Self = Self(1);
    /// Single calls of RDMA verbs.
    pub(crate) const VERBS_CALLS: Self = Self(1 << 1);
    /// Sends go to a given peer, and each arrival names its sender.
    pub(crate) const ADDRESSED: Self = Self(1 << 2);
    /// Collectives and other joint operations: each rank makes one call.
    pub(crate) const COLLECTIVES: Self = Self(1 << 3);

    /// The endpoint runs an application, which sends its own messages.
    pub(crate) const PROGRAMS: Self = Self(1 << 4);

    /// Returns the union of both sets.
    pub(crate) const fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Returns whether this set contains all of `others`.
    pub(crate) const fn contain(self, others: Self) -> bool {
        self.0 & others.0 == others.0
    }
}
