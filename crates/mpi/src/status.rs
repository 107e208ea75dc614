//! `MPI_Status`.

use std::ffi::{c_int, c_void};
use std::ops::Range;

use crate::abi::Abi;
use crate::library::Library;

/// The result of a receive, or of a send.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Status {
    /// Rank of the sender (of a send: of the receiver) in the communicator.
    pub source: i32,
    /// Tag of the message.
    pub tag: i32,
    /// Length of the message (`MPI_Get_count` of `MPI_BYTE`).
    pub bytes: usize,
}

/// Space for an `MPI_Status` of any ABI (32 bytes at most), with the alignment of its members.
#[repr(C, align(8))]
#[derive(Clone, Copy)]
pub(crate) struct RawStatus([i32; RAW_WORDS]);

impl RawStatus {
    /// Returns a zeroed status.
    #[inline]
    pub(crate) const fn new() -> Self {
        Self([0; RAW_WORDS])
    }

    /// Returns a status filled with a byte value, to see which bytes a function has written.
    pub(crate) const fn filled(byte: u8) -> Self {
        Self([i32::from_ne_bytes([byte; 4]); RAW_WORDS])
    }

    /// Its bytes.
    pub(crate) fn bytes(&self) -> impl Iterator<Item = u8> + '_ {
        self.0.iter().flat_map(|word| word.to_ne_bytes())
    }

    /// The address for a function that stores the status.
    #[inline]
    pub(crate) fn out(&mut self) -> *mut c_void {
        (&raw mut *self).cast()
    }

    /// Reads the status of a receive that `library` has completed. MPI must not be finalised.
    #[inline]
    pub(crate) fn read(&self, library: &Library) -> Status {
        read(&self.0, library)
    }
}

/// Space for an array of statuses of any ABI.
pub(crate) struct RawStatuses(Vec<RawStatus>);

impl RawStatuses {
    /// Makes space for `count` statuses.
    pub(crate) fn new(count: usize) -> Self {
        Self(vec![RawStatus::new(); count])
    }

    /// The address for a function of `library` that stores the statuses of `range`.
    ///
    /// # Panics
    /// If the array is shorter.
    #[inline]
    pub(crate) fn out(&mut self, range: Range<usize>, library: &Library) -> *mut c_void {
        assert!(range.start <= range.end && range.end <= self.0.len(), "there is room for these");
        let bytes = range.start * library.constants.numbers.status_bytes as usize;
        // SAFETY: no library's status is longer than `RawStatus`, and the array has at least as
        // many.
        unsafe { self.0.as_mut_ptr().cast::<u8>().add(bytes).cast() }
    }

    /// Whether all statuses of `range` have the tag `tag`.
    #[inline]
    pub(crate) fn are_tagged(&self, range: Range<usize>, tag: c_int, library: &Library) -> bool {
        let numbers = &library.constants.numbers;
        let place = numbers.status_tag as usize / 4;
        let words = numbers.status_bytes as usize / 4;
        let all = &self.all()[range.start * words..range.end * words];
        all.chunks_exact(words).fold(true, |all, words| all & (words[place] == tag))
    }

    /// Reads status `index` of the receives that `library` has completed. It is read in place: a
    /// copy would have to wait for the words that the library has just stored one by one.
    #[inline]
    pub(crate) fn read(&self, index: usize, library: &Library) -> Status {
        read(self.words(index, library), library)
    }

    /// Returns the error of request `index` after a call that has returned `MPI_ERR_IN_STATUS`, if
    /// that request has failed.
    #[cold]
    pub(crate) fn error(&self, index: usize, library: &Library) -> Option<c_int> {
        let numbers = &library.constants.numbers;
        let code = self.words(index, library)[numbers.status_error as usize / 4];
        (code != 0 && code != numbers.err_pending).then_some(code)
    }

    /// The ints of status `index`.
    #[inline]
    fn words(&self, index: usize, library: &Library) -> &[i32] {
        let words = library.constants.numbers.status_bytes as usize / 4;
        &self.all()[index * words..][..words]
    }

    /// The ints of all statuses.
    #[inline]
    fn all(&self) -> &[i32] {
        // SAFETY: each status is an array of ints without padding, with at least their alignment.
        unsafe { std::slice::from_raw_parts(self.0.as_ptr().cast(), self.0.len() * RAW_WORDS) }
    }
}

/// Reads the status from its ints.
#[inline]
fn read(words: &[i32], library: &Library) -> Status {
    let numbers = &library.constants.numbers;
    Status {
        source: words[numbers.status_source as usize / 4],
        tag: words[numbers.status_tag as usize / 4],
        bytes: count(words, library),
    }
}

/// Returns the count of bytes. Two of the ABIs have its field in their public headers, and reading
/// the field takes a tenth of the time of the function. `World::init` has compared it with the
/// length of a message.
#[inline]
fn count(words: &[i32], library: &Library) -> usize {
    match library.abi() {
        // `_ucount`, a `size_t` behind four ints.
        Abi::OpenMpi => (words[OPEN_MPI_COUNT] as u32) as usize,
        // `count_lo`; the other half is 0, because every count was an int.
        Abi::Mpich => (words[0] as u32) as usize,
        Abi::Standard => asked_count(words, library),
    }
}

fn asked_count(words: &[i32], library: &Library) -> usize {
    let mut bytes = 0;
    let byte = library.constants.handles.byte;
    // SAFETY: the status was filled by this library, and the count is writable.
    unsafe {
        (library.functions.get_count)(words.as_ptr().cast(), byte, &raw mut bytes);
    }
    // MPI_UNDEFINED, which is negative, is impossible: every count was an int.
    usize::try_from(bytes).unwrap_or(0)
}

/// The ints of a [`RawStatus`].
const RAW_WORDS: usize = 8;
/// The index of `_ucount` in Open MPI's status, in ints.
const OPEN_MPI_COUNT: usize = 4;
