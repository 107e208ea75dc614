//! One direction between two ranks: cells that one rank fills and the other empties, in turn.
//!
//! A cell begins with the lap in which it was filled. A receiver that polls reads only that, so a
//! short message crosses in one cache line. The number of emptied cells is in another line, which
//! the sender reads only when all cells seem full.

use std::sync::Arc;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicU32, AtomicU64};

use crate::shared::{LINE_BYTES, Shared};
use crate::topology::{Form, PartSpec};

/// The alignment of cells: a cache line.
const ALIGN: usize = 64;
/// The size of the lap and a word.
const HEAD_BYTES: usize = 8;
/// Longer messages take several cells, so that the receiver empties cells while the sender fills
/// more.
const PAYLOAD_BYTES_MAX: usize = (8 << 10) - HEAD_BYTES;
/// The largest size of all cells, and the largest number of short cells: a part of a second-level
/// cache.
const RING: (usize, usize) = (256 << 10, 256);
/// The same for samples at a fixed rate, whose receiver may be preempted for some milliseconds: a
/// queue as long as in the benchmarks of the thesis (Potter 2018).
const RING_OF_SAMPLES: (usize, usize) = (1 << 20, 8192);

/// The division of a ring into cells.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Shape {
    /// The bytes of a message in one cell.
    pub(super) payload: usize,
    stride: usize,
    pub(super) cells: usize,
}

impl Shape {
    /// Returns the shape for the messages of a part of a point.
    pub(super) fn of(spec: &PartSpec) -> Self {
        let size = spec.message.size();
        Self::within(size, if spec.usage.form == Form::Written { RING_OF_SAMPLES } else { RING })
    }

    /// Returns the shape for messages of `size`, with at most `cells` cells in at most `bytes`
    /// bytes.
    fn within(size: usize, (bytes, cells): (usize, usize)) -> Self {
        let payload = size.clamp(1, PAYLOAD_BYTES_MAX);
        let stride = (HEAD_BYTES + payload).next_multiple_of(ALIGN);
        Self { payload, stride, cells: (bytes / stride).min(cells) }
    }

    /// Returns the lines of memory of a ring: one for the number of emptied cells, and the cells.
    pub(super) fn lines(self) -> usize {
        1 + (self.cells * self.stride).div_ceil(LINE_BYTES)
    }
}

/// A ring, as the sender and the receiver use it.
struct Ring {
    /// Keeps the memory mapped.
    _memory: Arc<Shared>,
    /// The number of cells that were emptied.
    emptied: *const AtomicU64,
    cells: *mut u8,
    shape: Shape,
    /// The current cell and lap.
    index: usize,
    lap: u32,
}

// SAFETY: the pointers refer to memory that the value keeps mapped, and that each rank uses as the
// laps allow.
unsafe impl Send for Ring {}

impl Ring {
    fn new(memory: &Arc<Shared>, line: usize, shape: Shape) -> Self {
        let base = memory.lines(line, shape.lines());
        // SAFETY: the cells begin in the second of the lines.
        let cells = unsafe { base.add(LINE_BYTES) };
        Self { _memory: Arc::clone(memory), emptied: base.cast(), cells, shape, index: 0, lap: 1 }
    }

    fn emptied(&self) -> &AtomicU64 {
        // SAFETY: the word is in the mapping, which lives as long as the value, and is used only
        // atomically.
        unsafe { &*self.emptied }
    }

    /// Returns the lap and the word of the current cell.
    #[inline]
    fn head(&self) -> (&AtomicU32, &AtomicU32) {
        // SAFETY: the index is below the number of cells, which lie in the mapping; both words are
        // at the start of an aligned cell, and are used only atomically.
        unsafe {
            let head = self.cells.add(self.index * self.shape.stride).cast::<AtomicU32>();
            (&*head, &*head.add(1))
        }
    }

    /// Returns the payload of the current cell.
    #[inline]
    fn payload(&self) -> *mut u8 {
        // SAFETY: the payload follows the head in the same cell.
        unsafe { self.cells.add(self.index * self.shape.stride + HEAD_BYTES) }
    }

    #[inline]
    fn advance(&mut self) {
        self.index += 1;
        if self.index == self.shape.cells {
            // Zero is the lap of a cell that was never filled.
            (self.index, self.lap) = (0, self.lap.checked_add(1).unwrap_or(1));
        }
    }
}

/// The sender's side of a ring.
pub(super) struct Filler {
    ring: Ring,
    /// The cells that were filled.
    pub(super) filled: u64,
    /// The cells that were emptied at the last check.
    emptied: u64,
}

impl Filler {
    pub(super) fn new(memory: &Arc<Shared>, line: usize, shape: Shape) -> Self {
        Self { ring: Ring::new(memory, line, shape), filled: 0, emptied: 0 }
    }

    /// Returns whether the next cell is empty.
    #[inline]
    pub(super) fn has_room(&mut self) -> bool {
        let cells = self.ring.shape.cells as u64;
        if self.filled - self.emptied == cells {
            self.emptied = self.emptied();
        }
        // The receiver may report any number; never more cells are empty than were filled.
        self.filled.saturating_sub(self.emptied) < cells
    }

    /// Fills the next cell with a word and as much of `part` as fits; returns `false` if the cell
    /// is full.
    #[inline]
    pub(super) fn fill(&mut self, word: u32, part: &[u8]) -> bool {
        if !self.has_room() {
            return false;
        }
        let part = &part[..part.len().min(self.ring.shape.payload)];
        // SAFETY: the cell has this much room, and belongs to the sender until its lap is stored.
        unsafe { std::ptr::copy_nonoverlapping(part.as_ptr(), self.ring.payload(), part.len()) };
        let (lap, place) = self.ring.head();
        place.store(word, Relaxed);
        lap.store(self.ring.lap, Release);
        self.ring.advance();
        self.filled += 1;
        true
    }

    /// Returns how many cells the receiver reports as emptied.
    pub(super) fn emptied(&self) -> u64 {
        self.ring.emptied().load(Acquire).min(self.filled)
    }
}

/// The receiver's side of a ring.
pub(super) struct Emptier {
    ring: Ring,
    /// The cells that were emptied.
    pub(super) emptied: u64,
}

impl Emptier {
    pub(super) fn new(memory: &Arc<Shared>, line: usize, shape: Shape) -> Self {
        Self { ring: Ring::new(memory, line, shape), emptied: 0 }
    }

    /// Returns the word of the next cell, if the cell is filled.
    #[inline]
    pub(super) fn word(&self) -> Option<u32> {
        let (lap, word) = self.ring.head();
        (lap.load(Acquire) == self.ring.lap).then(|| word.load(Relaxed))
    }

    /// Empties the next cell, which is filled, into `part`, as far as it fits.
    #[inline]
    pub(super) fn empty(&mut self, part: &mut [u8]) {
        let length = part.len().min(self.ring.shape.payload);
        // SAFETY: the cell has this much payload, and belongs to the receiver until it is reported
        // as emptied.
        unsafe { std::ptr::copy_nonoverlapping(self.ring.payload(), part.as_mut_ptr(), length) };
        self.emptied += 1;
        self.ring.emptied().store(self.emptied, Release);
        self.ring.advance();
    }
}
