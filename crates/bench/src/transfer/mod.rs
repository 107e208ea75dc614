//! Transfers of files and trees from one rank to another (Subramoni, Lai, Luo and Panda 2009).
//!
//! ```text
//! source/: walk ─► packer ─► Outlet ══ blocks, in order ══► Inlet ─► sink/: records ─► files
//!                            link/   ◄══ answers, credits ══ link/
//! ```
//!
//! * `link`: carries blocks over TCP, or by RDMA Writes into a ring that is registered once;
//!   `block`: their memory, which files are read into and written from;
//! * `record`: the contents of blocks; `name`: components of paths that lead nowhere else; `tree`:
//!   directories by number, opened without following a link; `digest`: checksums;
//! * `source`: walks trees and packs files into blocks, many small files to a block; `sink`:
//!   unpacks them, each file under a temporary name until it is complete;
//! * `spec`: the paths to send and the target; `prepared`: the two ranks in the place of endpoints;
//!   `scratch`: files that are made for a point; `watch`: progress; `told`: the results.
//!
//! # Invariants
//!
//! * A file with a name from the source is complete and has the checksum that the source computed,
//!   even if source or sink is killed at any time.
//! * Whatever its peer sends, the sink touches nothing outside of its target, and the source reads
//!   nothing but the paths that it was told to send.
//! * A file that cannot be read or written is reported in a sentence, and the other files arrive.

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
