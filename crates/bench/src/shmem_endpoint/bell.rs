//! Wakes a rank that sleeps: one word for all events that it may wait for.
//!
//! A rank announces its sleep, checks once more for its event, and sleeps until the word changes. A
//! rank that causes an event checks afterwards whether the other one sleeps. Both check after a
//! fence that no store passes, so at least one of them sees the other.

use std::sync::Arc;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::sync::atomic::{AtomicU32, fence};

use rustix::thread::futex;
use rustix::time::Timespec;

use crate::shared::Shared;

/// A message was put into a ring, or a rank waits for one.
pub(super) const MESSAGE: u32 = 1;
/// Cells of a ring were emptied, or a rank waits for that.
pub(super) const ROOM: u32 = 2;

/// The lines of memory that a bell takes.
pub(super) const LINES: usize = 1;

/// The bell of a rank, in the rank's own memory or opened by another rank.
pub(super) struct Bell(Arc<Shared>);

impl Bell {
    /// Creates the bell in the first line of a rank's memory.
    pub(super) fn new(memory: Arc<Shared>) -> Self {
        Self(memory)
    }

    /// Wakes the owner if it sleeps for the event `what`, which has happened before.
    #[inline]
    pub(super) fn ring(&self, what: u32) {
        fence(SeqCst);
        if self.asleep().load(Relaxed) & what != 0 {
            self.wake();
        }
    }

    #[cold]
    fn wake(&self) {
        // Of several ranks that ring, one wakes the owner.
        if self.asleep().swap(0, Relaxed) != 0 {
            self.rung().fetch_add(1, Relaxed);
            // This fails only for a word that cannot be read.
            let _ = futex::wake(self.rung(), futex::Flags::empty(), 1);
        }
    }

    /// Sleeps until the bell rings for any of these events, or for at most `limit`; returns at once
    /// if `is_there` once the sleep is announced.
    pub(super) fn sleep(&self, what: u32, limit: &Timespec, is_there: impl FnOnce() -> bool) {
        let rung = self.rung().load(Relaxed);
        self.asleep().store(what, Relaxed);
        fence(SeqCst);
        if !is_there() {
            // The caller checks again whether the bell rang, the time is over, or a signal came.
            let _ = futex::wait(self.rung(), futex::Flags::empty(), rung, Some(limit));
        }
        self.asleep().store(0, Relaxed);
    }

    /// Returns the word to sleep on: how often the bell rang, in a number that wraps.
    fn rung(&self) -> &AtomicU32 {
        self.word(0)
    }

    /// Returns the events that the owner sleeps for; 0 if it is awake.
    fn asleep(&self) -> &AtomicU32 {
        self.word(1)
    }

    fn word(&self, index: usize) -> &AtomicU32 {
        let line = self.0.lines(0, LINES).cast::<AtomicU32>();
        // SAFETY: both words lie in the line, which is aligned, is used only this way, and lives as
        // long as the borrow.
        unsafe { &*line.add(index) }
    }
}
