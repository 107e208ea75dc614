//! The effect of signals on interrupted waits.

use std::ptr::null;

/// Signals that a thread causes by its own actions, so that they interrupt no wait. Their handlers
/// need not have `SA_RESTART`; programs in Rust have some.
const FAULTS: [i32; 7] =
    [libc::SIGSEGV, libc::SIGBUS, libc::SIGILL, libc::SIGFPE, libc::SIGTRAP, libc::SIGSYS, libc::SIGABRT];

/// Whether a wait that a signal has interrupted should continue, as read(2) would: every signal
/// handler has `SA_RESTART`. A signal interrupts poll(2) in this case as well (signal(7)), and does
/// not tell which signal it was.
#[cold]
pub fn all_restart() -> bool {
    (1..=libc::SIGRTMAX()).filter(|signal| !FAULTS.contains(signal)).all(|signal| {
        // SAFETY: all-zero bytes are a valid sigaction: integers and no function.
        let mut found: libc::sigaction = unsafe { std::mem::zeroed() };
        // SAFETY: no handler is changed, and the current one is written to a valid structure.
        let is_known = unsafe { libc::sigaction(signal, null(), &raw mut found) } == 0;
        let is_handled = is_known && ![libc::SIG_DFL, libc::SIG_IGN].contains(&found.sa_sigaction);
        !is_handled || found.sa_flags & libc::SA_RESTART != 0
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    extern "C" fn handle(_: i32) {}

    fn set(handler: libc::sighandler_t, flags: i32) {
        // SAFETY: all-zero bytes are a valid sigaction; the handler does nothing, and no other test
        // uses this signal.
        unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = handler;
            action.sa_flags = flags;
            assert_eq!(libc::sigaction(libc::SIGUSR2, &raw const action, std::ptr::null_mut()), 0);
        }
    }

    #[test]
    fn a_wait_goes_on_if_every_handler_restarts() {
        let handler = handle as extern "C" fn(i32) as libc::sighandler_t;
        set(handler, libc::SA_RESTART);
        assert!(all_restart());
        set(handler, 0);
        assert!(!all_restart());
        set(libc::SIG_DFL, 0);
        assert!(all_restart());
    }
}
