//! `MPI_Status`.

use std::ffi::c_void;

use crate::abi::Abi;
use crate::library::Library;

/// What has been received; of a send, what was sent.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Status {
    /// Rank of the sender (of a send: of the receiver) in the communicator.
    pub source: i32,
    /// Tag of the message.
    pub tag: i32,
    /// Length of the message (`MPI_Get_count` of `MPI_BYTE`).
    pub bytes: usize,
}

/// Room for an `MPI_Status` of any ABI (32 bytes are the most), aligned as its members are.
#[repr(C, align(8))]
#[derive(Clone, Copy)]
pub(crate) struct RawStatus([i32; 8]);

impl RawStatus {
    /// An empty one.
    #[inline]
    pub(crate) const fn new() -> Self {
        Self([0; 8])
    }

    /// One of a value that shows which bytes a function has written.
    pub(crate) const fn filled(byte: u8) -> Self {
        Self([i32::from_ne_bytes([byte; 4]); 8])
    }

    /// Its bytes.
    pub(crate) fn bytes(&self) -> impl Iterator<Item = u8> + '_ {
        self.0.iter().flat_map(|word| word.to_ne_bytes())
    }

    /// Where a function stores it.
    #[inline]
    pub(crate) fn out(&mut self) -> *mut c_void {
        (&raw mut *self).cast()
    }

    /// The status of a receive that `library` has completed. MPI is not finalised.
    #[inline]
    pub(crate) fn read(&self, library: &Library) -> Status {
        let constants = &library.constants;
        Status {
            source: self.0[constants.numbers.status_source as usize / 4],
            tag: self.0[constants.numbers.status_tag as usize / 4],
            bytes: self.count(library),
        }
    }

    /// The count of bytes. It is in a field that two of the ABIs have made public in their headers;
    /// reading it takes a tenth of the time of the function. `World::init` has compared it with the
    /// length of a message.
    #[inline]
    fn count(&self, library: &Library) -> usize {
        match library.abi() {
            // `_ucount`, a `size_t` behind four ints.
            Abi::OpenMpi => (self.0[OPEN_MPI_COUNT] as u32) as usize,
            // `count_lo`; the other half is 0, because every count was an int.
            Abi::Mpich => (self.0[0] as u32) as usize,
            Abi::Standard => self.asked_count(library),
        }
    }

    fn asked_count(&self, library: &Library) -> usize {
        let mut bytes = 0;
        let byte = library.constants.handles.byte;
        // SAFETY: the status was filled by this library, and the count is writable.
        unsafe {
            (library.functions.get_count)((&raw const *self).cast(), byte, &raw mut bytes);
        }
        // MPI_UNDEFINED, which is negative, cannot be: every count was an int.
        usize::try_from(bytes).unwrap_or(0)
    }
}

/// Place of `_ucount` in Open MPI's status, in ints.
const OPEN_MPI_COUNT: usize = 4;
