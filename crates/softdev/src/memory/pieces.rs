//! The pieces of a payload.

use std::mem::MaybeUninit;

use crate::memory::copy::Piece;
use crate::sys::limits::MAX_SGE;

/// The elements of a payload, one of which may have been fetched in part.
const PIECES_MAX: usize = MAX_SGE + 1;

/// Pieces of a payload, on the stack.
pub(crate) struct Pieces {
    items: [MaybeUninit<Piece>; PIECES_MAX],
    len: usize,
    pub(crate) bytes: u64,
}

impl Pieces {
    #[inline]
    pub(crate) fn new() -> Self {
        Self { items: [const { MaybeUninit::uninit() }; PIECES_MAX], len: 0, bytes: 0 }
    }

    #[inline]
    pub(crate) fn push(&mut self, piece: Piece) {
        self.items[self.len].write(piece);
        self.len += 1;
        self.bytes += piece.len as u64;
    }

    #[inline]
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns the bytes of the pieces in order, at most `most`.
    ///
    /// # Safety
    /// The pieces are readable.
    pub(crate) unsafe fn to_vec(&self, most: u64) -> Vec<u8> {
        let mut left = self.bytes.min(most) as usize;
        let mut bytes = Vec::with_capacity(left);
        // A piece without bytes may have any address, even null, which a slice cannot have.
        for piece in self.as_slice().iter().filter(|piece| piece.len > 0) {
            let n = piece.len.min(left);
            // SAFETY: as the caller guarantees.
            bytes.extend_from_slice(unsafe { std::slice::from_raw_parts(piece.addr, n) });
            left -= n;
        }
        bytes
    }

    #[inline]
    pub(crate) fn as_slice(&self) -> &[Piece] {
        // SAFETY: the first `len` items were written by `push`.
        unsafe { std::slice::from_raw_parts(self.items.as_ptr().cast(), self.len) }
    }
}
