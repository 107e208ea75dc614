//! What kinds of endpoints can do: patterns say what they need of it.

/// A set of what endpoints can do.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Capabilities(u32);

impl Capabilities {
    /// Messages by themselves between two ranks: every endpoint has that.
    pub(crate) const NONE: Self = Self(0);
    /// It is known how many messages are done, whoever takes them, and there may be more than two
    /// ranks.
    pub(crate) const COUNTED: Self = Self(1);
    /// Calls of RDMA verbs, each by itself.
    pub(crate) const VERBS_CALLS: Self = Self(1 << 1);
    /// Sends go to a given peer, and each arrival names its sender.
    pub(crate) const ADDRESSED: Self = Self(1 << 2);
    /// All ranks do something together, by one call of each.
    pub(crate) const COLLECTIVES: Self = Self(1 << 3);

    /// A program of somebody else runs, and has messages of its own.
    pub(crate) const PROGRAMS: Self = Self(1 << 4);

    /// These and those.
    pub(crate) const fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Whether all of those are among these.
    pub(crate) const fn contain(self, others: Self) -> bool {
        self.0 & others.0 == others.0
    }
}
