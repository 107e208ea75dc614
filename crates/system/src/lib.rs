//! System calls that rustix has no function for.

mod peer;
mod signals;

pub use peer::Peer;
pub use signals::all_restart;
