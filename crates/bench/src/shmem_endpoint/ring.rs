//! One direction between two ranks: cells that one end fills and the other empties, in turn.
//!
//! A cell begins with the lap in which it was filled. Whoever waits for it reads that and nothing
//! else, so that a short message crosses in one cache line. How many were emptied stands apart, and
//! who fills them reads it only when all seem full.

use std::sync::Arc;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicU32, AtomicU64};

use crate::shared::{LINE_BYTES, Shared};
use crate::topology::{Form, PartSpec};

/// What cells are aligned to: a cache line.
const ALIGN: usize = 64;
/// The lap and a word.
const HEAD_BYTES: usize = 8;
/// Longer messages take several cells, so that one end empties them while the other fills more.
const PAYLOAD_BYTES_MAX: usize = (8 << 10) - HEAD_BYTES;
/// What all cells should stay below, and how many they may be, if they are short: a part of a
/// second-level cache.
const RING: (usize, usize) = (256 << 10, 256);
/// The same of samples at a fixed rate, for which who takes them may be away for some milliseconds:
/// as long a queue as that of the thesis's benchmarks (V66 of the evaluations).
const RING_OF_SAMPLES: (usize, usize) = (1 << 20, 8192);

/// How a ring is divided.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Shape {
    /// Bytes of a message that a cell takes.
    pub(super) payload: usize,
    stride: usize,
    pub(super) cells: usize,
}

impl Shape {
    /// For messages of a part of a point.
    pub(super) fn of(spec: &PartSpec) -> Self {
        let size = spec.message.size();
        Self::within(size, if spec.usage.form == Form::Written { RING_OF_SAMPLES } else { RING })
    }

    /// For messages of a size, with all cells within so many bytes, and no more of them than so
    /// many.
    fn within(size: usize, (bytes, cells): (usize, usize)) -> Self {
        let payload = size.clamp(1, PAYLOAD_BYTES_MAX);
        let stride = (HEAD_BYTES + payload).next_multiple_of(ALIGN);
        Self { payload, stride, cells: (bytes / stride).min(cells) }
    }

    /// Lines of memory that it takes: one for what was emptied, and the cells.
    pub(super) fn lines(self) -> usize {
        1 + (self.cells * self.stride).div_ceil(LINE_BYTES)
    }
}

/// A ring as either end has it.
struct Ring {
    /// Keeps the memory mapped.
    _memory: Arc<Shared>,
    /// How many cells were emptied.
    emptied: *const AtomicU64,
    cells: *mut u8,
    shape: Shape,
    /// The cell whose turn it is, and the lap.
    index: usize,
    lap: u32,
}

// SAFETY: the pointers are to memory that the value keeps mapped, and that each end uses as the
// laps tell it.
unsafe impl Send for Ring {}

impl Ring {
    fn new(memory: &Arc<Shared>, line: usize, shape: Shape) -> Self {
        let base = memory.lines(line, shape.lines());
        // SAFETY: the cells begin in the second of the lines.
        let cells = unsafe { base.add(LINE_BYTES) };
        Self { _memory: Arc::clone(memory), emptied: base.cast(), cells, shape, index: 0, lap: 1 }
    }

    fn emptied(&self) -> &AtomicU64 {
        // SAFETY: it lies in the mapping, which lives as long as the value, and is used atomically
        // only.
        unsafe { &*self.emptied }
    }

    /// The lap and the word of the cell whose turn it is.
    #[inline]
    fn head(&self) -> (&AtomicU32, &AtomicU32) {
        // SAFETY: the index is below the number of cells, which lie in the mapping; both words are
        // at the begin of one, are aligned as it is, and are used atomically only.
        unsafe {
            let head = self.cells.add(self.index * self.shape.stride).cast::<AtomicU32>();
            (&*head, &*head.add(1))
        }
    }

    /// Its payload.
    #[inline]
    fn payload(&self) -> *mut u8 {
        // SAFETY: it follows the head in the same cell.
        unsafe { self.cells.add(self.index * self.shape.stride + HEAD_BYTES) }
    }

    #[inline]
    fn advance(&mut self) {
        self.index += 1;
        if self.index == self.shape.cells {
            // Zero is what no lap has written.
            (self.index, self.lap) = (0, self.lap.checked_add(1).unwrap_or(1));
        }
    }
}

/// The end that fills.
pub(super) struct Filler {
    ring: Ring,
    /// Cells that were filled.
    pub(super) filled: u64,
    /// Cells that were empty when that was looked at last.
    emptied: u64,
}

impl Filler {
    pub(super) fn new(memory: &Arc<Shared>, line: usize, shape: Shape) -> Self {
        Self { ring: Ring::new(memory, line, shape), filled: 0, emptied: 0 }
    }

    /// Whether the next cell is empty.
    #[inline]
    pub(super) fn has_room(&mut self) -> bool {
        let cells = self.ring.shape.cells as u64;
        if self.filled - self.emptied == cells {
            self.emptied = self.emptied();
        }
        // Who empties may say anything: never more than was filled.
        self.filled.saturating_sub(self.emptied) < cells
    }

    /// Fills the next cell with a word and a part of a message, at most as much as it takes; not if
    /// it is full.
    #[inline]
    pub(super) fn fill(&mut self, word: u32, part: &[u8]) -> bool {
        if !self.has_room() {
            return false;
        }
        let part = &part[..part.len().min(self.ring.shape.payload)];
        // SAFETY: the cell has room for so much, and is this end's until its lap says otherwise.
        unsafe { std::ptr::copy_nonoverlapping(part.as_ptr(), self.ring.payload(), part.len()) };
        let (lap, place) = self.ring.head();
        place.store(word, Relaxed);
        lap.store(self.ring.lap, Release);
        self.ring.advance();
        self.filled += 1;
        true
    }

    /// Cells that the other end has emptied, as it says.
    pub(super) fn emptied(&self) -> u64 {
        self.ring.emptied().load(Acquire).min(self.filled)
    }
}

/// The end that empties.
pub(super) struct Emptier {
    ring: Ring,
    /// Cells that were emptied.
    pub(super) emptied: u64,
}

impl Emptier {
    pub(super) fn new(memory: &Arc<Shared>, line: usize, shape: Shape) -> Self {
        Self { ring: Ring::new(memory, line, shape), emptied: 0 }
    }

    /// The word of the next cell, if that is filled.
    #[inline]
    pub(super) fn word(&self) -> Option<u32> {
        let (lap, word) = self.ring.head();
        (lap.load(Acquire) == self.ring.lap).then(|| word.load(Relaxed))
    }

    /// Empties the next cell, which is filled, into a part of a message, with at most as much as it
    /// has.
    #[inline]
    pub(super) fn empty(&mut self, part: &mut [u8]) {
        let length = part.len().min(self.ring.shape.payload);
        // SAFETY: the cell has so much, and is this end's until it says that it was emptied.
        unsafe { std::ptr::copy_nonoverlapping(self.ring.payload(), part.as_mut_ptr(), length) };
        self.emptied += 1;
        self.ring.emptied().store(self.emptied, Release);
        self.ring.advance();
    }
}
