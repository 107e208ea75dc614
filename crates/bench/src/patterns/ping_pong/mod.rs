//! A message forth, one back.

mod bounce;
mod fetch;

pub(crate) use bounce::ping_pong;
pub(crate) use fetch::fetch;
