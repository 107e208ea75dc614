//! Which entries of a table are in use. A free entry is reused as late as possible.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// The entries of a table with `SIZE` entries.
pub(crate) struct Indexes<const SIZE: usize>(Mutex<Used>);

struct Used {
    used: Vec<bool>,
    next: usize,
}

impl<const SIZE: usize> Indexes<SIZE> {
    pub(crate) const fn new() -> Self {
        Self(Mutex::new(Used { used: Vec::new(), next: 0 }))
    }

    fn used(&self) -> MutexGuard<'_, Used> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes an unused entry.
    pub(crate) fn take(&self) -> Option<u32> {
        let Used { used, next } = &mut *self.used();
        used.resize(SIZE, false);
        let index = (0..SIZE).map(|i| (*next + i) % SIZE).find(|i| !used[*i])?;
        used[index] = true;
        *next = index + 1;
        Some(index as u32)
    }

    pub(crate) fn give_back(&self, index: u32) {
        self.used().used[index as usize] = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_come_round_and_none_is_given_twice() {
        let indexes = Indexes::<3>::new();
        assert_eq!([(); 4].map(|()| indexes.take()), [Some(0), Some(1), Some(2), None]);
        indexes.give_back(1);
        indexes.give_back(0);
        assert_eq!([(); 3].map(|()| indexes.take()), [Some(0), Some(1), None]);
        indexes.give_back(2);
        indexes.give_back(0);
        assert_eq!(indexes.take(), Some(2), "not the one that was just given back");
    }
}
