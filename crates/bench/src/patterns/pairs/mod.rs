//! Several pairs at once.

mod loops;
pub(crate) mod rank;

pub(crate) use loops::{Burst, post_batch};
