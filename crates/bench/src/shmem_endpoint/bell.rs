//! Waking a rank that sleeps: one word for all that may happen to it.
//!
//! Who sleeps says so, looks once more, and sleeps until the word changes. Who has done something
//! that may be waited for looks whether somebody sleeps. Both look after a fence that no store
//! passes: one of the two sees the other.

use std::sync::Arc;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::sync::atomic::{AtomicU32, fence};

use rustix::thread::futex;
use rustix::time::Timespec;

use crate::shared::Shared;

/// A message was put into a ring, or one is waited for.
pub(super) const MESSAGE: u32 = 1;
/// Cells of a ring were emptied, or that is waited for.
pub(super) const ROOM: u32 = 2;

/// Lines of memory that it takes.
pub(super) const LINES: usize = 1;

/// The bell of a rank, in its own memory or opened by another.
pub(super) struct Bell(Arc<Shared>);

impl Bell {
    /// That in the first line of a rank's memory.
    pub(super) fn new(memory: Arc<Shared>) -> Self {
        Self(memory)
    }

    /// Lets whoever sleeps for this, which was done before, look at it.
    #[inline]
    pub(super) fn ring(&self, what: u32) {
        fence(SeqCst);
        if self.asleep().load(Relaxed) & what != 0 {
            self.wake();
        }
    }

    #[cold]
    fn wake(&self) {
        // Of several that ring, one wakes.
        if self.asleep().swap(0, Relaxed) != 0 {
            self.rung().fetch_add(1, Relaxed);
            // It fails only for a word that cannot be read.
            let _ = futex::wake(self.rung(), futex::Flags::empty(), 1);
        }
    }

    /// Sleeps until it rings for any of these, or until a time is over; not if one of them is there
    /// once that is said.
    pub(super) fn sleep(&self, what: u32, limit: &Timespec, is_there: impl FnOnce() -> bool) {
        let rung = self.rung().load(Relaxed);
        self.asleep().store(what, Relaxed);
        fence(SeqCst);
        if !is_there() {
            // Whether it rang, the time is over, or a signal came, who asked looks again.
            let _ = futex::wait(self.rung(), futex::Flags::empty(), rung, Some(limit));
        }
        self.asleep().store(0, Relaxed);
    }

    /// How often it rang, in a number that wraps: what is slept on.
    fn rung(&self) -> &AtomicU32 {
        self.word(0)
    }

    /// What somebody sleeps for; 0 if nobody does.
    fn asleep(&self) -> &AtomicU32 {
        self.word(1)
    }

    fn word(&self, index: usize) -> &AtomicU32 {
        let line = self.0.lines(0, LINES).cast::<AtomicU32>();
        // SAFETY: both words lie in the line, which is aligned, is only ever used so, and lives as
        // long as what is borrowed.
        unsafe { &*line.add(index) }
    }
}
