//! The preload library: unmodified programs that are linked against libibverbs use softdev instead.
//!
//! `rdmascope exec` names the library in `LD_PRELOAD`, so that the dynamic linker finds its
//! functions before those of libibverbs. Every public function that takes an object of the device
//! is defined here ([`SYMBOLS`]): a missing one would pass such an object to the real libibverbs,
//! which would take it for one of its own and crash. Functions without an object, such as
//! `ibv_wc_status_str`, stay with the real library ([`LEFT`]), as do the private functions, which
//! nothing here depends on.
//!
//! Some programs also look for the files of the kernel's devices, in `/dev/infiniband` and
//! `/sys/class/infiniband`. Their calls of the C library go through `files` (whether the files
//! exist), `opening` and `listing`, and [`softdev::tree`] returns what the kernel would. Other
//! programs open libibverbs at run time: `lookup` handles their symbol lookups. librdmacm stays the
//! real one: `manager` handles the commands that it writes to the kernel's connection manager.
//!
//! The symbols have no version, so they satisfy a reference to any version of the name, of any
//! rdma-core.
//!
//! # Limits
//!
//! * Libraries that are opened in a namespace of their own (`dlmopen`) or with `RTLD_DEEPBIND` call
//!   the real libibverbs. A message on standard error says so.
//! * Files are visible only through the functions of [`SYMBOLS`]: not through a program's own
//!   system calls, nor through functions of the C library that call each other internally, such as
//!   `glob`, `ftw` and `fts`. The directories have no descriptors, which `find` needs.
//! * Programs that are linked statically, or that change their rights when they start: the dynamic
//!   linker preloads nothing.
//!
//! # Invariants
//!
//! * The library defines every public function of libibverbs that takes an object, in every
//!   version: a missing one passes softdev's objects to the real library, which crashes. A test
//!   compares the table of symbols with the system's library and with the newest symbol map.
//! * It depends on nothing private of libibverbs, opens nothing when it is loaded, and costs a
//!   program without verbs only the lookup of the functions of libc that `files` intercepts.
//! * A file lists the expected result of each tested program on softdev (`xtask/src/programs`). A
//!   change of a result changes the file. No program crashes, and none hangs unless the file says
//!   so.

mod address;
mod asked;
mod elf;
mod files;
mod gid;
mod left;
mod listing;
mod lookup;
mod manager;
mod memory;
mod next;
mod opening;
mod refused;
mod start;
mod symbols;

pub use left::{LEFT, NEVER_MADE};
pub use lookup::LOOKUPS;
pub use symbols::SYMBOLS;

/// The file name of the library.
pub const LIBRARY: &str = "librdmascope_preload.so";
