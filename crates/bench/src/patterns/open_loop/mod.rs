//! Messages at a set rate, beside a load.

pub(crate) mod rank;
mod schedule;
