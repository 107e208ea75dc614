//! What a signal does to a wait.

use std::ptr::null;

/// Signals that a thread raises by what it does itself, so that they interrupt no wait. Their
/// handlers, of which Rust's programs have some, need not have `SA_RESTART`.
const FAULTS: [i32; 7] =
    [libc::SIGSEGV, libc::SIGBUS, libc::SIGILL, libc::SIGFPE, libc::SIGTRAP, libc::SIGSYS, libc::SIGABRT];

/// Whether a wait that a signal has interrupted is to go on, as one in read(2) would: every
/// function that handles a signal has `SA_RESTART`. A wait in poll(2) is interrupted by these as
/// well (signal(7)), and nothing says which signal it was.
#[cold]
pub(crate) fn all_restart() -> bool {
    (1..=libc::SIGRTMAX()).filter(|signal| !FAULTS.contains(signal)).all(|signal| {
        // SAFETY: all-zero bytes are a valid sigaction: integers and no function.
        let mut found: libc::sigaction = unsafe { std::mem::zeroed() };
        // SAFETY: nothing is changed, and what there is is written to a valid structure.
        let is_known = unsafe { libc::sigaction(signal, null(), &raw mut found) } == 0;
        let is_handled = is_known && ![libc::SIG_DFL, libc::SIG_IGN].contains(&found.sa_sigaction);
        !is_handled || found.sa_flags & libc::SA_RESTART != 0
    })
}
