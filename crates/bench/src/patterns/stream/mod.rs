//! Floods.

mod flood;
mod push;

pub(crate) use flood::{Flood, Flow, stream};
pub(crate) use push::push;
