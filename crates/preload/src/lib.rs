//! The drop-in library: unmodified programs that are linked against libibverbs find softdev in its
//! place.
//!
//! `rdmascope exec` names the library in `LD_PRELOAD`, so that the dynamic linker finds its
//! functions before those of libibverbs. Every public function that takes an object of the device
//! is here ([`SYMBOLS`]): one that was missed would hand such an object to the real libibverbs,
//! which takes it for one of its own and crashes. What takes no object, such as
//! `ibv_wc_status_str`, stays with the real one ([`LEFT`]), as do the private functions, which
//! nothing here depends on.
//!
//! Some programs also look for the files that the kernel's devices have, in `/dev/infiniband` and
//! `/sys/class/infiniband`. What they ask the C library of those goes through `files` (whether they
//! are there), `opening` and `listing`, and [`softdev::tree`] says what the kernel would. Others
//! open libibverbs while they run: what they look up in it goes through `lookup`. librdmacm stays
//! the real one: the commands that it writes to the kernel's connection manager come to `manager`.
//!
//! The symbols have no version. So they satisfy a reference to any version of the name, of any
//! rdma-core.
//!
//! # What it does not reach
//!
//! * Libraries that are opened in a namespace of their own (`dlmopen`) or with `RTLD_DEEPBIND`:
//!   what they call is the real libibverbs. The first is said on standard error.
//! * Files that are asked for by other ways than the functions of [`SYMBOLS`]: by system calls of
//!   a program's own, or by functions of the C library that call each other within it, such as
//!   `glob`, `ftw` and `fts`; and the directories have no descriptors, which `find` asks for.
//! * Programs that are linked statically, or that change their rights when they start: the dynamic
//!   linker preloads nothing.
//!
//! # Invariants
//!
//! * It defines every public function of libibverbs that takes an object, of every version: one
//!   that is missed hands ours to the real library, which crashes. A test compares the table of
//!   symbols with the system's library and with the newest map.
//! * It depends on nothing private of libibverbs, opens nothing when it is loaded, and costs
//!   nothing where no verb is called, but for the look-up of the functions of libc that `files`
//!   stands in front of.
//! * How a program ends on softdev is in a file, and whoever changes that changes the file: none
//!   crashes, and none hangs but where the file says so.

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

/// File name of the library.
pub const LIBRARY: &str = "librdmascope_preload.so";
