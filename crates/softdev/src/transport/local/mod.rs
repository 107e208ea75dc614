//! How the queue pairs of one host reach each other: through arenas that both have mapped, and what else the kernel copies.

pub(crate) mod calibrate;
pub(crate) mod place;
