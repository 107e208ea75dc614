//! The identifiers of patterns.

/// A pattern, by its index in the list of all patterns.
#[derive(Clone, Copy, Eq, PartialEq)]
pub struct PatternId(pub(crate) u8);
