//! Errors of MPI.

use std::path::PathBuf;

use crate::abi::Abi;

/// Result of a call of MPI.
pub type Result<T> = std::result::Result<T, Error>;

/// Why a library cannot be used, or why a call failed.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The dynamic linker cannot open the library.
    #[error(
        "the MPI library {name} cannot be opened ({reason}): name an installed one by its path, or add its directory to \
         LD_LIBRARY_PATH"
    )]
    NotFound {
        /// Name or path.
        name: String,
        /// The dynamic linker's words.
        reason: String,
    },
    /// The library has no `MPI_Init_thread`.
    #[error("{name} is not an MPI library: it has no MPI_Init_thread")]
    NotMpi {
        /// Name or path.
        name: String,
    },
    /// The library has no function of that name.
    #[error("the MPI library {path} has no function {function}", path = path.display())]
    Lacks {
        /// The function.
        function: &'static str,
        /// The library's file.
        path: PathBuf,
    },
    /// This process has opened another MPI library.
    #[error("this process uses the MPI library {open}, and cannot open {asked} as well", open = open.display())]
    AnotherLibrary {
        /// The file of the open library.
        open: PathBuf,
        /// Name or path of the refused one.
        asked: String,
    },
    /// MPI was initialised before.
    #[error(
        "MPI is initialised already: a process can initialise it only once, and not again after MPI_Finalize"
    )]
    AlreadyInitialized,
    /// The library provides a lower thread level than was required.
    #[error("{version} provides thread level {provided} of MPI, and {required} is required")]
    ThreadLevel {
        /// The library's version.
        version: String,
        /// What it provides.
        provided: i32,
        /// What was asked for.
        required: &'static str,
    },
    /// The library does not behave as its ABI prescribes.
    #[error("{version} does not follow the {abi} ABI: {what}")]
    Constant {
        /// The library's version.
        version: String,
        /// The ABI that its symbols show.
        abi: Abi,
        /// What a call returned, and what it should have returned.
        what: String,
    },
    /// A call returned an error.
    #[error("{call}{} failed: {reason}", peer.map_or_else(String::new, |peer| format!(" (rank {peer})")))]
    Call {
        /// The function.
        call: &'static str,
        /// Rank of the peer or of the root in the communicator, for calls that have one.
        peer: Option<u32>,
        /// The text of `MPI_Error_string`, on one line.
        reason: String,
    },
    /// A message is longer than MPI can count.
    #[error("a message of {bytes} B is too long: MPI counts with an int, so the limit is 2147483647 B")]
    TooLong {
        /// Its length.
        bytes: usize,
    },
    /// A buffer's length does not fit the call.
    #[error("{call}: {what} must have {needed} B and has {given} B")]
    Length {
        /// The function.
        call: &'static str,
        /// Which buffer.
        what: &'static str,
        /// Bytes that the call needs.
        needed: usize,
        /// Bytes that the buffer has.
        given: usize,
    },
    /// A buffer is not made of whole elements, or does not start at a multiple of their size.
    #[error("{call}: a buffer of {bytes} B does not consist of aligned elements of {element} B")]
    Elements {
        /// The function.
        call: &'static str,
        /// Bytes of the buffer.
        bytes: usize,
        /// Bytes of an element.
        element: usize,
    },
    /// A rank that the communicator does not have.
    #[error("there is no rank {rank}: the communicator has {size} ranks")]
    Rank {
        /// The rank.
        rank: u32,
        /// Number of ranks.
        size: u32,
    },
    /// A tag below 0.
    #[error("{tag} is not a tag: tags start at 0")]
    Tag {
        /// The tag.
        tag: i32,
    },
    /// Bytes that lie outside of a buffer.
    #[error("{bytes} B at {offset} lie outside of a buffer of {length} B")]
    Range {
        /// First byte.
        offset: usize,
        /// Number of bytes.
        bytes: usize,
        /// Length of the buffer.
        length: usize,
    },
    /// A request is pending where none may be, or none is where one must be.
    #[error("{call} on slot {slot}: {reason}")]
    Slot {
        /// The function.
        call: &'static str,
        /// Number of the slot.
        slot: usize,
        /// What the slot's request is.
        reason: &'static str,
    },
    /// A call that the state of its object does not allow.
    #[error("{call} is not possible: {reason}")]
    State {
        /// The function.
        call: &'static str,
        /// Why.
        reason: &'static str,
    },
}
