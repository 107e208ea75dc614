//! Handlers of signals.

use std::io;

/// The action for a signal: a handler, `SIG_IGN` or `SIG_DFL`, with no other signals masked.
pub(crate) fn action(handler: libc::sighandler_t, flags: libc::c_int) -> libc::sigaction {
    // SAFETY: all zeros is a valid sigaction: default handler, empty mask, no flags.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    action.sa_sigaction = handler;
    action.sa_flags = flags;
    action
}

/// Installs an action and returns the previous one. A handler may call only functions that are
/// async-signal-safe (signal-safety(7)).
pub(crate) fn install(signal: libc::c_int, action: &libc::sigaction) -> io::Result<libc::sigaction> {
    let mut previous = self::action(libc::SIG_DFL, 0);
    // SAFETY: both pointers are to live sigactions; handlers are functions of this program that are
    // async-signal-safe.
    if unsafe { libc::sigaction(signal, action, &raw mut previous) } == 0 {
        Ok(previous)
    } else {
        Err(io::Error::last_os_error())
    }
}
