//! Files and trees from one rank to another (R11, R12).
//!
//! ```text
//! source/: walk ─► packer ─► Outlet ══ blocks, in order ══► Inlet ─► sink/: records ─► files
//!                            link/   ◄══ answers, credits ══ link/
//! ```
//!
//! * `link`: what carries blocks: TCP, or RDMA Writes into a ring that is registered once; `block`:
//!   their memory, which files are read into and written from;
//! * `record`: what blocks consist of; `name`: components of paths that lead nowhere else; `tree`:
//!   directories by number, opened without following a link; `digest`: checksums;
//! * `source`: walks trees and packs what is found, small files many to a block; `sink`: unpacks
//!   it, each file under a name of its own until it is whole;
//! * `spec`: what is sent where; `prepared`: the two ranks in the place of endpoints; `scratch`:
//!   files that are made for a point; `watch`: what is told meanwhile; `told`: what in the end.
//!
//! # Invariants
//!
//! * What has a name that the source gave is whole, and has the checksum that the source computed,
//!   however and whenever either end ends.
//! * Whatever the other end says, the sink touches nothing outside of its target, and the source
//!   reads nothing but what it was told to send.
//! * A file that cannot be read or written is a sentence; the others arrive.

mod block;
mod digest;
mod foreign;
mod link;
mod name;
mod prepared;
mod record;
mod scratch;
mod sink;
mod source;
mod spec;
mod told;
mod tree;
mod watch;

pub(crate) use block::ALIGNMENT;
pub use digest::Checksum;
pub use foreign::receive_foreign;
pub use link::is_block;
pub(crate) use link::verbs::RENEWED_SLOTS_MAX;
pub(crate) use link::{BLOCK_BYTES_MAX, BLOCK_BYTES_MIN, is_ring};
pub(crate) use prepared::{makes_files, prepare};
pub use spec::TransferSpec;
pub(crate) use told::{DIRECT, EndTold};
pub use watch::{News, Telling};

#[cfg(test)]
mod tests;
