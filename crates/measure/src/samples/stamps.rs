//! Time stamps by message number, in an array that is allocated, touched and locked before the
//! clock starts.

use super::memory::{PAGE_SAMPLES, Pages, UNTAKEN};
use crate::clock::Ticks;

/// A stamp for each message, by its number; [`NONE`](Self::NONE) where none was taken.
#[derive(Debug)]
pub struct Stamps {
    pages: Pages,
    len: usize,
}

impl Stamps {
    /// The value where no stamp was taken.
    pub const NONE: u64 = UNTAKEN;

    /// Allocates room for the stamps of `len` messages, with every page written, and locked in
    /// memory where the system allows it.
    ///
    /// # Errors
    /// [`crate::Error::Memory`] when there is not enough memory.
    pub fn new(len: usize) -> crate::Result<Self> {
        Ok(Self { pages: Pages::new(len)?, len })
    }

    /// Why the array is not locked in memory and what to do about it; `None` when it is.
    pub fn not_locked(&self) -> Option<&str> {
        self.pages.not_locked()
    }

    /// Stores the stamp of a message. A number that does not belong to the point is ignored,
    /// because it may come from anywhere.
    #[inline(always)]
    pub fn set(&mut self, message: u64, at: Ticks) {
        if message < self.len as u64 {
            let index = message as usize;
            self.pages.as_mut_slice()[index / PAGE_SAMPLES].0[index % PAGE_SAMPLES] = at.0;
        }
    }

    /// The same for a message that may come twice: the first stamp stays. Returns whether this was
    /// it.
    #[inline(always)]
    pub fn set_first(&mut self, message: u64, at: Ticks) -> bool {
        if message >= self.len as u64 {
            return false;
        }
        let index = message as usize;
        let stamp = &mut self.pages.as_mut_slice()[index / PAGE_SAMPLES].0[index % PAGE_SAMPLES];
        let is_first = *stamp == Self::NONE;
        if is_first {
            *stamp = at.0;
        }
        is_first
    }

    /// The stamps in the order of the messages.
    pub fn to_vec(&self) -> Vec<u64> {
        self.first(self.len as u64)
    }

    /// The stamps of the first `messages` messages, or of all if there are fewer, in their order.
    pub fn first(&self, messages: u64) -> Vec<u64> {
        let count = usize::try_from(messages).unwrap_or(usize::MAX).min(self.len);
        self.pages.as_slice().iter().flat_map(|page| page.0).take(count).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stamp_stands_where_its_message_is() {
        let mut stamps = Stamps::new(1000).unwrap();
        stamps.set(999, Ticks(7));
        stamps.set(0, Ticks(5));
        stamps.set(1000, Ticks(9));
        stamps.set(u64::MAX, Ticks(9));
        for at in [3, 4] {
            assert_eq!(stamps.set_first(1, Ticks(at)), at == 3);
            assert!(!stamps.set_first(1000, Ticks(at)));
        }
        let all = stamps.to_vec();
        assert_eq!((all.len(), all[0], all[999]), (1000, 5, 7));
        assert_eq!(all[1], 3);
        assert!(all[2..999].iter().all(|stamp| *stamp == Stamps::NONE));
    }
}
