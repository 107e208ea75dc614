//! A communicator, and its blocking point-to-point calls.

use std::ffi::{c_int, c_void};
use std::rc::Rc;
use std::sync::atomic::AtomicU64;

use crate::error::{Error, Result};
use crate::functions::{Call, Functions, Handle};
use crate::handles::HandleArray;
use crate::library::Library;
use crate::status::{RawStatus, Status};
use crate::waiting;

/// A group of ranks whose messages are separate from those of other communicators. A clone means
/// the same communicator; the last clone of a duplicate frees it.
#[derive(Clone)]
pub struct Communicator(pub(crate) Rc<Inner>);

/// The state that clones share.
pub(crate) struct Inner {
    pub(crate) handle: Handle,
    pub(crate) functions: &'static Functions,
    pub(crate) byte: Handle,
    pub(crate) library: &'static Library,
    pub(crate) rank: u32,
    pub(crate) size: u32,
    /// The number of neighbours in the Cartesian grid; 0 without a grid.
    pub(crate) neighbors: usize,
    /// Whether the communicator is freed with its last clone.
    is_owned: bool,
    /// One per communicator: `MPI_Finalize` waits until only the world's is left.
    pub(crate) use_count: Rc<()>,
}

impl Inner {
    /// Makes the communicator of a handle.
    ///
    /// # Errors
    /// Errors of `MPI_Comm_rank` and `MPI_Comm_size`.
    pub(crate) fn new(
        library: &'static Library,
        handle: Handle,
        is_owned: bool,
        use_count: Rc<()>,
    ) -> Result<Self> {
        let functions = &library.functions;
        let mut rank = 0;
        let mut size = 0;
        // SAFETY: the handle is a communicator of this library, MPI is initialised, and both
        // numbers are writable.
        let codes = unsafe {
            [(functions.comm_rank)(handle, &raw mut rank), (functions.comm_size)(handle, &raw mut size)]
        };
        library.check(Call::Comm_rank, None, codes[0])?;
        library.check(Call::Comm_size, None, codes[1])?;
        let byte = library.constants.handles.byte;
        // MPI's ranks and sizes are not negative.
        let rank = rank.unsigned_abs();
        let size = size.unsigned_abs();
        Ok(Self { handle, functions, byte, library, rank, size, neighbors: 0, is_owned, use_count })
    }

    /// Runs a call that can block, visible to [`waiting::current_call`].
    #[inline]
    pub(crate) fn blocking(
        &self,
        call: Call,
        peer: Option<u32>,
        run: impl FnOnce(&'static Functions) -> c_int,
    ) -> Result<()> {
        waiting::enter(call, peer);
        let code = run(self.functions);
        waiting::leave();
        self.library.check(call, peer, code)
    }

    /// The rank as MPI takes it.
    #[inline]
    pub(crate) fn peer(&self, rank: u32) -> Result<c_int> {
        if rank < self.size { Ok(rank as c_int) } else { Err(Error::Rank { rank, size: self.size }) }
    }

    /// The rank to receive from, or `MPI_ANY_SOURCE`.
    #[inline]
    pub(crate) fn source(&self, from: Option<u32>) -> Result<c_int> {
        from.map_or(Ok(self.library.constants.numbers.any_source), |rank| self.peer(rank))
    }

    /// The tag to receive, or `MPI_ANY_TAG`.
    #[inline]
    pub(crate) fn expected_tag(&self, tag: Option<i32>) -> Result<c_int> {
        tag.map_or(Ok(self.library.constants.numbers.any_tag), checked_tag)
    }
}

/// Returns a tag, which must not be negative.
#[inline]
pub(crate) fn checked_tag(tag: i32) -> Result<c_int> {
    if tag >= 0 { Ok(tag) } else { Err(Error::Tag { tag }) }
}

/// A number of bytes as MPI counts them.
#[inline]
pub(crate) fn count(bytes: usize) -> Result<c_int> {
    c_int::try_from(bytes).map_err(|_| Error::TooLong { bytes })
}

/// The address of a collective's send buffer. An empty slice may have the address 1, which means
/// `MPI_IN_PLACE` in two of the ABIs.
#[inline]
pub(crate) fn address(bytes: &[u8]) -> *const c_void {
    static EMPTY: u64 = 0;
    if bytes.is_empty() { (&raw const EMPTY).cast() } else { bytes.as_ptr().cast() }
}

/// The address of a collective's receive buffer; see [`address`]. It differs from the send
/// buffer's, because a library may refuse the same address for both.
#[inline]
pub(crate) fn address_mut(bytes: &mut [u8]) -> *mut c_void {
    static EMPTY: AtomicU64 = AtomicU64::new(0);
    if bytes.is_empty() { EMPTY.as_ptr().cast() } else { bytes.as_mut_ptr().cast() }
}

impl Drop for Inner {
    fn drop(&mut self) {
        if self.is_owned {
            let mut handle = HandleArray::new(self.library.constants.numbers.handle_bytes, 1, self.handle);
            // SAFETY: MPI is not finalised, since it waits for `use_count`; the only requests that
            // may still use the communicator are abandoned.
            unsafe { (self.functions.comm_free)(handle.at(0)) };
        }
    }
}

impl Communicator {
    /// This process's rank.
    #[must_use]
    pub fn rank(&self) -> u32 {
        self.0.rank
    }

    /// Number of ranks.
    #[must_use]
    pub fn size(&self) -> u32 {
        self.0.size
    }

    /// The library.
    #[must_use]
    pub fn library(&self) -> &'static Library {
        self.0.library
    }

    /// `MPI_Comm_dup`: the same ranks with separate messages. All ranks call it.
    ///
    /// # Errors
    /// Errors of MPI.
    pub fn duplicate(&self) -> Result<Self> {
        let inner = &*self.0;
        let copy = self.derive(Call::Comm_dup, |functions, out| {
            // SAFETY: the communicator is valid, and `out` has room for a handle.
            unsafe { (functions.comm_dup)(inner.handle, out) }
        })?;
        Ok(copy.with_neighbors(inner.neighbors))
    }

    /// `MPI_Comm_split`: the ranks that pass the same `color`, in the order of `key` and then of
    /// their ranks here. All ranks call it.
    ///
    /// # Errors
    /// Errors of MPI, and a color above 2147483647.
    pub fn split(&self, color: u32, key: i32) -> Result<Self> {
        let inner = &*self.0;
        let color = count(color as usize)?;
        self.derive(Call::Comm_split, |functions, out| {
            // SAFETY: as in `duplicate`.
            unsafe { (functions.comm_split)(inner.handle, color, key, out) }
        })
    }

    /// Makes the communicator that a collective call creates.
    pub(crate) fn derive(
        &self,
        call: Call,
        create: impl FnOnce(&'static Functions, *mut c_void) -> c_int,
    ) -> Result<Self> {
        let inner = &*self.0;
        let mut handle = HandleArray::new(inner.library.constants.numbers.handle_bytes, 1, 0);
        inner.blocking(call, None, |functions| create(functions, handle.at(0)))?;
        Ok(Self(Rc::new(Inner::new(inner.library, handle.get(0), true, inner.use_count.clone())?)))
    }

    /// Returns this communicator, which has no clone yet, with a number of neighbours.
    pub(crate) fn with_neighbors(mut self, neighbors: usize) -> Self {
        Rc::get_mut(&mut self.0).expect("nothing else holds a new communicator").neighbors = neighbors;
        self
    }

    /// `MPI_Send`.
    ///
    /// # Errors
    /// Errors of MPI, a rank or a tag that does not exist, more than 2147483647 B.
    #[inline]
    pub fn send(&self, bytes: &[u8], to: u32, tag: i32) -> Result<()> {
        let inner = &*self.0;
        let length = count(bytes.len())?;
        let peer = inner.peer(to)?;
        let tag = checked_tag(tag)?;
        inner.blocking(Call::Send, Some(to), |functions| {
            // SAFETY: MPI reads `length` bytes, which the slice has, until it returns.
            unsafe { (functions.send)(bytes.as_ptr().cast(), length, inner.byte, peer, tag, inner.handle) }
        })
    }

    /// `MPI_Ssend`: returns after the receiver has begun to receive the message.
    ///
    /// # Errors
    /// As [`send`](Self::send).
    #[inline]
    pub fn ssend(&self, bytes: &[u8], to: u32, tag: i32) -> Result<()> {
        let inner = &*self.0;
        let length = count(bytes.len())?;
        let peer = inner.peer(to)?;
        let tag = checked_tag(tag)?;
        inner.blocking(Call::Ssend, Some(to), |functions| {
            // SAFETY: as in `send`.
            unsafe { (functions.ssend)(bytes.as_ptr().cast(), length, inner.byte, peer, tag, inner.handle) }
        })
    }

    /// `MPI_Recv`, from any rank (`None`) and with any tag (`None`).
    ///
    /// # Errors
    /// Errors of MPI, such as `MPI_ERR_TRUNCATE` for a message longer than `bytes`; a rank or a tag
    /// that does not exist, more than 2147483647 B.
    #[inline]
    pub fn receive(&self, bytes: &mut [u8], from: Option<u32>, tag: Option<i32>) -> Result<Status> {
        let mut status = RawStatus::new();
        self.receive_into(bytes, from, tag, status.out())?;
        Ok(status.read(self.0.library))
    }

    /// `MPI_Recv` with `MPI_STATUS_IGNORE`: for loops that know what arrives.
    ///
    /// # Errors
    /// As [`receive`](Self::receive).
    #[inline]
    pub fn receive_ignoring_status(
        &self,
        bytes: &mut [u8],
        from: Option<u32>,
        tag: Option<i32>,
    ) -> Result<()> {
        self.receive_into(bytes, from, tag, self.0.library.constants.status_ignore())
    }

    #[inline]
    fn receive_into(
        &self,
        bytes: &mut [u8],
        from: Option<u32>,
        tag: Option<i32>,
        status: *mut c_void,
    ) -> Result<()> {
        let inner = &*self.0;
        let length = count(bytes.len())?;
        let peer = inner.source(from)?;
        let tag = inner.expected_tag(tag)?;
        inner.blocking(Call::Recv, from, |functions| {
            let address = bytes.as_mut_ptr().cast();
            // SAFETY: MPI writes at most `length` bytes, which the slice has, until it returns;
            // `status` has room for one or is MPI_STATUS_IGNORE.
            unsafe { (functions.recv)(address, length, inner.byte, peer, tag, inner.handle, status) }
        })
    }

    /// `MPI_Sendrecv`: sends to one rank and receives from another at once.
    ///
    /// # Errors
    /// As [`send`](Self::send) and [`receive`](Self::receive).
    #[inline]
    pub fn sendrecv(
        &self,
        sent: (&[u8], u32, i32),
        received: (&mut [u8], Option<u32>, Option<i32>),
    ) -> Result<Status> {
        let inner = &*self.0;
        let (bytes, to, tag) = sent;
        let (room, from, expected) = received;
        let length = count(bytes.len())?;
        let room_length = count(room.len())?;
        let peer = inner.peer(to)?;
        let tag = checked_tag(tag)?;
        let source = inner.source(from)?;
        let expected = inner.expected_tag(expected)?;
        let mut status = RawStatus::new();
        inner.blocking(Call::Sendrecv, from.or(Some(to)), |functions| {
            let address = bytes.as_ptr().cast();
            let room = room.as_mut_ptr().cast();
            let byte = inner.byte;
            // SAFETY: as in `send` and `receive_into`; the borrows exclude that the buffers
            // overlap.
            unsafe {
                (functions.sendrecv)(
                    address,
                    length,
                    byte,
                    peer,
                    tag,
                    room,
                    room_length,
                    byte,
                    source,
                    expected,
                    inner.handle,
                    status.out(),
                )
            }
        })?;
        Ok(status.read(inner.library))
    }
}
