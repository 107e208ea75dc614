//! Memory that MPI reads and writes while Rust code runs.

use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::ptr::NonNull;

use crate::error::{Error, Result};

/// Alignment: a page, so that registration of the memory covers no other bytes.
const ALIGN: usize = 4096;

/// Page-aligned memory, touched and zeroed. All access is through its address: no reference to it
/// outlives a call for which the owner has checked that MPI does not use it.
pub(crate) struct Memory {
    address: NonNull<u8>,
    layout: Layout,
    /// MPI may still use the memory: it is never freed.
    is_leaked: bool,
}

impl Memory {
    /// Allocates `bytes` (at least one page).
    ///
    /// # Errors
    /// A size above the limit of the address space.
    pub(crate) fn new(bytes: usize) -> Result<Self> {
        let layout =
            Layout::from_size_align(bytes.max(ALIGN), ALIGN).map_err(|_| Error::TooLong { bytes })?;
        // SAFETY: the layout has a size of at least one page.
        let address = unsafe { alloc_zeroed(layout) };
        let Some(address) = NonNull::new(address) else { handle_alloc_error(layout) };
        for page in (0..layout.size()).step_by(ALIGN) {
            // Zeroed pages do not exist before the first write, which would be part of a sample.
            // SAFETY: the byte lies in the allocation, which nothing else knows yet.
            unsafe { address.add(page).write_volatile(0) };
        }
        Ok(Self { address, layout, is_leaked: false })
    }

    /// The address of the byte at `offset`.
    #[inline]
    pub(crate) fn at(&self, offset: usize) -> *mut u8 {
        assert!(offset <= self.layout.size(), "the offset lies in the memory");
        // SAFETY: the offset lies in the allocation or is its end.
        unsafe { self.address.as_ptr().add(offset) }
    }

    /// The bytes from `offset` on.
    ///
    /// # Safety
    /// MPI does not write them while the result lives.
    #[inline]
    pub(crate) unsafe fn bytes(&self, offset: usize, bytes: usize) -> &[u8] {
        assert!(offset + bytes <= self.layout.size(), "the bytes lie in the memory");
        // SAFETY: the bytes are initialised and lie in the allocation; the caller guarantees that
        // MPI does not write them, and `&self` that Rust code does not.
        unsafe { std::slice::from_raw_parts(self.address.as_ptr().add(offset), bytes) }
    }

    /// The bytes from `offset` on, to be changed.
    ///
    /// # Safety
    /// MPI does not read or write them while the result lives.
    #[inline]
    pub(crate) unsafe fn bytes_mut(&mut self, offset: usize, bytes: usize) -> &mut [u8] {
        assert!(offset + bytes <= self.layout.size(), "the bytes lie in the memory");
        // SAFETY: as in `bytes`; `&mut self` excludes other references.
        unsafe { std::slice::from_raw_parts_mut(self.address.as_ptr().add(offset), bytes) }
    }

    /// Keeps the memory for ever, because MPI may still use it.
    pub(crate) fn leak(&mut self) {
        self.is_leaked = true;
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        if !self.is_leaked {
            // SAFETY: allocated with this layout; its owner leaks it where MPI may still use it.
            unsafe { dealloc(self.address.as_ptr(), self.layout) };
        }
    }
}
