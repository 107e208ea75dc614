//! Patterns by their places in the list of all.

/// A pattern, by its place in the list of all.
#[derive(Clone, Copy, Eq, PartialEq)]
pub struct PatternId(pub(crate) u8);
