//! Memory that only another process has mapped: memory that a program registers but did not get
//! from the device.
//!
//! Such memory is read and written by system calls. An atomic on it is a read and a write under a
//! lock in its owner's arena. Atomics are therefore atomic among themselves, but not towards the
//! owner's CPU: that is why the device promises no more than `IBV_ATOMIC_HCA`. The lock is the only
//! word between processes whose holder can die. A process that waits for it takes it from a dead
//! holder, and waits for a live one only as long as for an answer.

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use libc::iovec;
use rustix::io::Errno;

use crate::memory::layout::{LOCKS, Lock};
use crate::sys::limits::QP_INDEX_BITS;
use crate::sys::sync::{Atomic, Machine};
use crate::transport::local::host::Host;

/// Writes bytes to another process (`process_vm_writev(2)`). The last byte is a range of its own,
/// because the kernel copies the bytes of one range in any order.
///
/// # Errors
/// If the process has ended (`SRCH`), or there is no such memory.
pub(crate) fn write(pid: u32, addr: u64, bytes: &[u8]) -> Result<(), Errno> {
    let mut done = 0;
    while done < bytes.len() {
        let rest = &bytes[done..];
        let local = part(rest.as_ptr() as u64, rest.len());
        let start = addr + done as u64;
        let remote = [part(start, rest.len() - 1), part(start + rest.len() as u64 - 1, 1)];
        // SAFETY: the local bytes are readable for the call; the kernel checks the remote ones.
        let written =
            unsafe { libc::process_vm_writev(pid.cast_signed(), &raw const local, 1, remote.as_ptr(), 2, 0) };
        done += moved(written)?;
    }
    Ok(())
}

/// Reads bytes of another process (`process_vm_readv(2)`).
///
/// # Errors
/// As [`write()`].
///
/// # Safety
/// `len` bytes are writable at `to`.
pub(crate) unsafe fn read(pid: u32, addr: u64, to: *mut u8, len: usize) -> Result<(), Errno> {
    let mut done = 0;
    while done < len {
        let local = part(to as u64 + done as u64, len - done);
        let remote = part(addr + done as u64, len - done);
        // SAFETY: the local bytes are writable for the call, as the caller guarantees; the kernel
        // checks the remote ones.
        let read = unsafe {
            libc::process_vm_readv(pid.cast_signed(), &raw const local, 1, &raw const remote, 1, 0)
        };
        done += moved(read)?;
    }
    Ok(())
}

fn part(addr: u64, len: usize) -> iovec {
    iovec { iov_base: addr as *mut _, iov_len: len }
}

fn moved(returned: isize) -> Result<usize, Errno> {
    match usize::try_from(returned) {
        Ok(0) => Err(Errno::FAULT),
        Ok(n) => Ok(n),
        Err(_) => Err(Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::FAULT)),
    }
}

/// Attempts at a lock before the holder's health is checked, and as many again before the lock is
/// given up for now: many times as long as an atomic takes.
const ATTEMPTS: u32 = 10_000;

/// Runs `work` while no other process runs any for the same word of the process with these locks;
/// `None` if one does so for long.
pub(crate) fn exclusively<T>(
    host: &Host,
    locks: &[Lock; LOCKS],
    addr: u64,
    work: impl FnOnce() -> T,
) -> Option<T> {
    let lock = &locks[(addr / 8) as usize % LOCKS].holder;
    let own = u64::from(host.block) << 32 | u64::from(host.life());
    while_held(lock, own, ATTEMPTS, |holder| is_held(host, holder), work)
}

/// Runs `work` while a lock's word is `own`. Takes the lock from a holder that is not `alive` after
/// `attempts` attempts, and gives up after as many again.
fn while_held<Word: Atomic<Value = u64>, T>(
    lock: &Word,
    own: u64,
    attempts: u32,
    alive: impl Fn(u64) -> bool,
    work: impl FnOnce() -> T,
) -> Option<T> {
    for attempt in 1..=2 * attempts {
        let expected = match lock.load(Relaxed) {
            holder if attempt == attempts && !alive(holder) => holder,
            _ => 0,
        };
        if lock.compare_exchange(expected, own, Acquire, Relaxed).is_ok() {
            let done = work();
            lock.store(0, Release);
            return Some(done);
        }
        Word::On::pause();
    }
    None
}

/// Whether a holder is a live process.
fn is_held(host: &Host, holder: u64) -> bool {
    let block = (holder >> 32) as u32;
    let life = holder as u32;
    let peer = host.peer_of(block.wrapping_shl(QP_INDEX_BITS));
    peer.is_some_and(|peer| peer.view(&host.arena.view).header().life.load(Relaxed) == life)
}

#[cfg(test)]
mod tests {
    use loom::sync::atomic::AtomicU64;

    use super::*;
    use crate::sys::sync::model::{self, Weaker};
    use crate::transport::local::host::host;

    #[test]
    fn another_process_is_reached_by_its_address_and_a_bad_address_is_refused() {
        let mut target = [0_u8; 5];
        let pid = std::process::id();
        let addr = target.as_mut_ptr() as u64;
        write(pid, addr, b"hello").unwrap();
        assert_eq!(&target, b"hello");
        write(pid, addr + 1, b"a").unwrap();
        assert_eq!(&target, b"hallo");
        assert_eq!(write(pid, 8, b"hello"), Err(Errno::FAULT));
        let mut found = [0_u8; 4];
        // SAFETY: the array is writable.
        unsafe { read(pid, addr + 1, found.as_mut_ptr(), 4) }.unwrap();
        assert_eq!(&found, b"allo");
        // SAFETY: as above.
        assert_eq!(unsafe { read(pid, 8, found.as_mut_ptr(), 4) }, Err(Errno::FAULT));
    }

    /// Runs `exclusively` on word `n` of this process, which `holder` holds.
    fn with_holder(n: u64, holder: u64) -> bool {
        let host = host().unwrap();
        let locks = &host.arena.view.header().locks;
        locks[n as usize].holder.store(holder, Relaxed);
        let ran = exclusively(host, locks, n * 8, || ()).is_some();
        assert_eq!(locks[n as usize].holder.swap(0, Relaxed), if ran { 0 } else { holder });
        ran
    }

    #[test]
    fn a_lock_is_taken_from_the_dead_only() {
        let host = host().unwrap();
        let own = u64::from(host.block) << 32 | u64::from(host.life());
        let dead = (1..1 << (24 - QP_INDEX_BITS)).rev().find(|block| !host.lives(*block)).unwrap();
        assert!(with_holder(5, 0), "nobody");
        assert!(with_holder(6, u64::from(dead) << 32 | 1), "a process that has ended");
        assert!(with_holder(7, own ^ 1), "an earlier process of the same block");
        assert!(!with_holder(8, own), "a live process");
    }

    /// Two processes add to a word under a lock whose holder may have died.
    fn counted<Word>(word: impl Fn() -> Word + Send + Sync + 'static) -> impl Fn() + Send + Sync + 'static
    where
        Word: Atomic<Value = u64> + Send + Sync + 'static,
    {
        move || {
            let shared = loom::sync::Arc::new((word(), loom::cell::UnsafeCell::new(0)));
            let add = |shared: &(Word, loom::cell::UnsafeCell<u32>), own| {
                let (lock, sum) = shared;
                // SAFETY: the lock is held; otherwise loom reports it.
                let work = || sum.with_mut(|sum| unsafe { *sum += 1 });
                while_held(lock, own, 2, |holder| holder != DEAD, work).is_some()
            };
            let other = loom::sync::Arc::clone(&shared);
            let other = loom::thread::spawn(move || add(&other, 1));
            let added = u32::from(add(&shared, 2)) + u32::from(other.join().unwrap());
            assert!(added > 0, "no process takes the lock");
            // SAFETY: as above.
            shared.1.with(|sum| assert_eq!(unsafe { *sum }, added));
            assert_eq!(shared.0.load(Relaxed), 0, "a process keeps the lock");
        }
    }

    const DEAD: u64 = 9;

    #[test]
    fn model_of_the_lock() {
        model::check(counted(|| AtomicU64::new(0)));
        model::check(counted(|| AtomicU64::new(DEAD)));
    }

    #[test]
    fn the_model_needs_the_order_of_lock_and_unlock() {
        for order in [Acquire, Release] {
            let why = model::must_fail(counted(move || Weaker { word: AtomicU64::new(0), order }));
            assert!(why.contains("access"), "{why}");
        }
    }
}
