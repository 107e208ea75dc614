//! One-sided communication.

use std::ffi::{c_int, c_void};
use std::ptr::NonNull;

use crate::abi::{Datatype, Op};
use crate::communicator::{Communicator, count};
use crate::error::{Error, Result};
use crate::functions::{Call, Functions, Handle};
use crate::handles::HandleArray;
use crate::memory::Memory;

/// Sizes of windows are rounded up to cache lines. MPICH 4.0.2 puts to wrong addresses in windows
/// of ranks on the same host whose sizes are not multiples of 8 (measured: 100 B, 4 B too low).
const SIZE_UNIT: usize = 64;

/// Memory of each rank that the other ranks read and write, and the origin memory of this rank's
/// puts and gets.
///
/// A window that is dropped without [`free`](Self::free) stays until the process ends, because
/// `MPI_Win_free` is a collective call.
pub struct Window {
    communicator: Communicator,
    handle: HandleArray,
    base: NonNull<u8>,
    bytes: usize,
    origin: Memory,
    origin_bytes: usize,
    epoch: Epoch,
    /// The ranks whose puts and gets may still use the origin memory, and whether there may be any.
    outstanding: Vec<bool>,
    may_be_outstanding: bool,
}

/// The epoch: between which calls puts and gets are allowed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Epoch {
    None,
    Fence,
    /// The window of one rank is locked.
    Lock(u32),
    LockAll,
}

impl Epoch {
    fn is_locked(self) -> bool {
        matches!(self, Self::Lock(_) | Self::LockAll)
    }
}

impl Window {
    /// `MPI_Win_allocate` of `bytes` bytes on each rank, and origin memory of `origin_bytes` bytes.
    /// All ranks call it with the same `bytes`. The memory of the window is zeroed.
    ///
    /// # Errors
    /// Errors of MPI, a library without one-sided communication, different numbers of bytes.
    pub fn allocate(communicator: &Communicator, bytes: usize, origin_bytes: usize) -> Result<Self> {
        let inner = &*communicator.0;
        let library = inner.library;
        let function = library.optional(inner.functions.win_allocate, Call::Win_allocate)?;
        let set_errhandler =
            library.optional(inner.functions.win_set_errhandler, Call::Win_set_errhandler)?;
        let size = bytes.max(1).checked_next_multiple_of(SIZE_UNIT);
        let size = size.and_then(|size| isize::try_from(size).ok()).ok_or(Error::TooLong { bytes })?;
        same_on_all_ranks(communicator, bytes)?;
        let origin = Memory::new(origin_bytes)?;
        let constants = &library.constants;
        let mut handle = HandleArray::new(constants.numbers.handle_bytes, 1, constants.handles.win_null);
        let mut base: *mut u8 = std::ptr::null_mut();
        inner.blocking(Call::Win_allocate, None, |_| {
            // SAFETY: there is room for an address and for a handle.
            unsafe {
                let info = constants.handles.info_null;
                function(size, 1, info, inner.handle, (&raw mut base).cast::<c_void>(), handle.at(0))
            }
        })?;
        // SAFETY: the window and the error handler are valid.
        let code = unsafe { set_errhandler(handle.get(0), constants.handles.errors_return) };
        library.check(Call::Win_set_errhandler, None, code)?;
        let window = Self {
            communicator: communicator.clone(),
            handle,
            // A library may return no address for 0 bytes.
            base: NonNull::new(base).unwrap_or(NonNull::dangling()),
            bytes,
            origin,
            origin_bytes,
            epoch: Epoch::None,
            outstanding: vec![false; inner.ranks()],
            may_be_outstanding: false,
        };
        for offset in 0..bytes {
            // SAFETY: MPI has allocated `bytes` bytes, and no rank can put before the barrier.
            unsafe { window.base.add(offset).write_volatile(0) };
        }
        window.sync()?;
        communicator.barrier()?;
        Ok(window)
    }

    /// `MPI_Win_free`. All ranks call it, outside of locks.
    ///
    /// # Errors
    /// Errors of MPI, a window that is locked.
    pub fn free(mut self) -> Result<()> {
        if self.epoch.is_locked() {
            return Err(Error::State { call: Call::Win_free.name(), reason: "the window is locked" });
        }
        let inner = &*self.communicator.0;
        let function = inner.library.optional(inner.functions.win_free, Call::Win_free)?;
        let handle = self.handle.at(0);
        // SAFETY: the window is valid, and its memory cannot be reached after this call.
        inner.blocking(Call::Win_free, None, |_| unsafe { function(handle) })?;
        self.completed();
        Ok(())
    }

    /// Copies bytes of this rank's window memory. Bytes that another rank has put are visible after
    /// the call that ends its epoch and the call that begins this rank's.
    ///
    /// # Errors
    /// A range outside of the window.
    pub fn read(&self, offset: usize, bytes: &mut [u8]) -> Result<()> {
        within(offset, bytes.len(), self.bytes)?;
        for (at, byte) in bytes.iter_mut().enumerate() {
            // SAFETY: the byte lies in the window. Another process may write it: a volatile read
            // makes no assumption about its value.
            *byte = unsafe { self.base.add(offset + at).read_volatile() };
        }
        Ok(())
    }

    /// Copies bytes to this rank's window memory.
    ///
    /// # Errors
    /// A range outside of the window.
    pub fn write(&mut self, offset: usize, bytes: &[u8]) -> Result<()> {
        within(offset, bytes.len(), self.bytes)?;
        for (at, &byte) in bytes.iter().enumerate() {
            // SAFETY: as in `read`.
            unsafe { self.base.add(offset + at).write_volatile(byte) };
        }
        Ok(())
    }

    /// The origin memory.
    ///
    /// # Panics
    /// While a put or a get is outstanding: [`flush`](Self::flush), [`fence`](Self::fence) and
    /// [`unlock_all`](Self::unlock_all) complete them.
    #[must_use]
    pub fn origin(&self) -> &[u8] {
        assert!(!self.is_outstanding(), "a put or a get is outstanding");
        // SAFETY: MPI does not use the memory, and to start a put or a get takes `&mut self`.
        unsafe { self.origin.bytes(0, self.origin_bytes) }
    }

    /// The origin memory, to be changed.
    ///
    /// # Panics
    /// As [`origin`](Self::origin).
    #[must_use]
    pub fn origin_mut(&mut self) -> &mut [u8] {
        assert!(!self.is_outstanding(), "a put or a get is outstanding");
        // SAFETY: as in `origin`.
        unsafe { self.origin.bytes_mut(0, self.origin_bytes) }
    }

    /// `MPI_Put` of `bytes` bytes at `from` of the origin memory to `to` of a rank's window.
    ///
    /// # Errors
    /// Errors of MPI, a range outside of the memory, a call outside of an epoch, a rank whose
    /// window is not locked while another rank's is.
    #[inline]
    pub fn put(&mut self, from: usize, bytes: usize, target: u32, to: usize) -> Result<()> {
        let function = self.function(Call::Put, |functions| functions.put)?;
        let (length, peer, to) = self.transfer(Call::Put, from, (bytes, target, to))?;
        let inner = &*self.communicator.0;
        let origin = self.origin.at(from).cast::<c_void>();
        let byte = inner.byte;
        // SAFETY: the origin memory has the bytes, and is neither freed nor lent before the put has
        // completed; the target's window has them, since all windows have the same size.
        let code = unsafe { function(origin, length, byte, peer, to, length, byte, self.handle.get(0)) };
        inner.library.check(Call::Put, Some(target), code)
    }

    /// `MPI_Get` of `bytes` bytes at `from` of a rank's window to `to` of the origin memory.
    ///
    /// # Errors
    /// As [`put`](Self::put).
    #[inline]
    pub fn get(&mut self, to: usize, bytes: usize, target: u32, from: usize) -> Result<()> {
        let function = self.function(Call::Get, |functions| functions.get)?;
        let (length, peer, from) = self.transfer(Call::Get, to, (bytes, target, from))?;
        let inner = &*self.communicator.0;
        let origin = self.origin.at(to).cast::<c_void>();
        let byte = inner.byte;
        // SAFETY: as in `put`.
        let code = unsafe { function(origin, length, byte, peer, from, length, byte, self.handle.get(0)) };
        inner.library.check(Call::Get, Some(target), code)
    }

    /// `MPI_Win_fence`: completes the puts and gets of all ranks, and begins the next epoch. All
    /// ranks call it.
    ///
    /// # Errors
    /// Errors of MPI, a window that is locked.
    #[inline]
    pub fn fence(&mut self) -> Result<()> {
        let function = self.function(Call::Win_fence, |functions| functions.win_fence)?;
        if self.epoch.is_locked() {
            return Err(Error::State { call: Call::Win_fence.name(), reason: "the window is locked" });
        }
        let handle = self.handle.get(0);
        // SAFETY: the window is valid.
        self.communicator.0.blocking(Call::Win_fence, None, |_| unsafe { function(0, handle) })?;
        self.epoch = Epoch::Fence;
        self.completed();
        Ok(())
    }

    /// `MPI_Win_lock_all` without assertions, as the OSU benchmarks call it. A window that has been
    /// fenced cannot be locked.
    ///
    /// # Errors
    /// Errors of MPI, a window that is locked or was fenced.
    #[inline]
    pub fn lock_all(&mut self) -> Result<()> {
        let function = self.function(Call::Win_lock_all, |functions| functions.win_lock_all)?;
        self.lockable(Call::Win_lock_all)?;
        let inner = &*self.communicator.0;
        let handle = self.handle.get(0);
        // SAFETY: the window is valid.
        inner.blocking(Call::Win_lock_all, None, |_| unsafe { function(0, handle) })?;
        self.epoch = Epoch::LockAll;
        Ok(())
    }

    /// `MPI_Win_unlock_all`: completes this rank's puts and gets.
    ///
    /// # Errors
    /// Errors of MPI, a window that was not locked by [`lock_all`](Self::lock_all).
    #[inline]
    pub fn unlock_all(&mut self) -> Result<()> {
        let function = self.function(Call::Win_unlock_all, |functions| functions.win_unlock_all)?;
        if self.epoch != Epoch::LockAll {
            return Err(not_locked(Call::Win_unlock_all));
        }
        let handle = self.handle.get(0);
        // SAFETY: the window is valid.
        self.communicator.0.blocking(Call::Win_unlock_all, None, |_| unsafe { function(handle) })?;
        self.epoch = Epoch::None;
        self.completed();
        Ok(())
    }

    /// `MPI_Win_lock` with `MPI_LOCK_SHARED`: the window of one rank, which may be this one. A
    /// window that has been fenced cannot be locked.
    ///
    /// # Errors
    /// Errors of MPI, a window that is locked or was fenced.
    #[inline]
    pub fn lock(&mut self, target: u32) -> Result<()> {
        let function = self.function(Call::Win_lock, |functions| functions.win_lock)?;
        self.lockable(Call::Win_lock)?;
        let inner = &*self.communicator.0;
        let peer = inner.peer(target)?;
        let shared = inner.library.constants.numbers.lock_shared;
        let handle = self.handle.get(0);
        // SAFETY: the window is valid.
        inner.blocking(Call::Win_lock, Some(target), |_| unsafe { function(shared, peer, 0, handle) })?;
        self.epoch = Epoch::Lock(target);
        Ok(())
    }

    /// `MPI_Win_unlock`: completes this rank's puts and gets to the rank whose window is locked.
    ///
    /// # Errors
    /// Errors of MPI, a window that was not locked by [`lock`](Self::lock).
    #[inline]
    pub fn unlock(&mut self) -> Result<()> {
        let function = self.function(Call::Win_unlock, |functions| functions.win_unlock)?;
        let Epoch::Lock(target) = self.epoch else { return Err(not_locked(Call::Win_unlock)) };
        let inner = &*self.communicator.0;
        let peer = inner.peer(target)?;
        let handle = self.handle.get(0);
        // SAFETY: the window is valid.
        inner.blocking(Call::Win_unlock, Some(target), |_| unsafe { function(peer, handle) })?;
        self.epoch = Epoch::None;
        self.completed();
        Ok(())
    }

    /// `MPI_Win_flush`: completes this rank's puts and gets to one rank, at both ranks.
    ///
    /// # Errors
    /// Errors of MPI, a window that is not locked, or another rank's lock.
    #[inline]
    pub fn flush(&mut self, target: u32) -> Result<()> {
        let function = self.function(Call::Win_flush, |functions| functions.win_flush)?;
        self.flush_by(Call::Win_flush, function, target)
    }

    /// `MPI_Win_flush_local`: completes this rank's puts and gets to one rank locally. Bytes of a
    /// get have arrived. Bytes of a put may still be on the way, but the origin memory may be
    /// reused.
    ///
    /// # Errors
    /// As [`flush`](Self::flush).
    #[inline]
    pub fn flush_local(&mut self, target: u32) -> Result<()> {
        let function = self.function(Call::Win_flush_local, |functions| functions.win_flush_local)?;
        self.flush_by(Call::Win_flush_local, function, target)
    }

    #[inline]
    fn flush_by(
        &mut self,
        call: Call,
        function: unsafe extern "C" fn(c_int, Handle) -> c_int,
        target: u32,
    ) -> Result<()> {
        self.locked(call)?;
        self.reachable(call, target)?;
        let inner = &*self.communicator.0;
        let peer = inner.peer(target)?;
        let handle = self.handle.get(0);
        // SAFETY: the window is valid.
        inner.blocking(call, Some(target), |_| unsafe { function(peer, handle) })?;
        self.outstanding[target as usize] = false;
        Ok(())
    }

    /// `MPI_Win_flush_all`: completes this rank's puts and gets.
    ///
    /// # Errors
    /// Errors of MPI, a window that is not locked.
    #[inline]
    pub fn flush_all(&mut self) -> Result<()> {
        let function = self.function(Call::Win_flush_all, |functions| functions.win_flush_all)?;
        self.locked(Call::Win_flush_all)?;
        let handle = self.handle.get(0);
        // SAFETY: the window is valid.
        self.communicator.0.blocking(Call::Win_flush_all, None, |_| unsafe { function(handle) })?;
        self.completed();
        Ok(())
    }

    /// `MPI_Win_sync`: in a locked window, makes puts of other ranks visible to
    /// [`read`](Self::read), and bytes written by [`write`](Self::write) visible to other ranks.
    ///
    /// # Errors
    /// Errors of MPI.
    #[inline]
    pub fn sync(&self) -> Result<()> {
        if !self.epoch.is_locked() {
            // Outside of passive epochs, the fences do this.
            std::sync::atomic::fence(std::sync::atomic::Ordering::SeqCst);
            return Ok(());
        }
        let function = self.function(Call::Win_sync, |functions| functions.win_sync)?;
        let inner = &*self.communicator.0;
        // SAFETY: the window is valid.
        let code = unsafe { function(self.handle.get(0)) };
        inner.library.check(Call::Win_sync, None, code)
    }

    #[inline]
    fn function<F>(&self, call: Call, function: impl FnOnce(&'static Functions) -> Option<F>) -> Result<F> {
        let inner = &self.communicator.0;
        inner.library.optional(function(inner.functions), call)
    }

    #[inline]
    fn locked(&self, call: Call) -> Result<()> {
        if self.epoch.is_locked() { Ok(()) } else { Err(not_locked(call)) }
    }

    /// Refuses a rank whose window is not locked while another rank's is: `MPI_Win_unlock` would
    /// not complete puts and gets to it.
    #[inline]
    fn reachable(&self, call: Call, target: u32) -> Result<()> {
        match self.epoch {
            Epoch::Lock(locked) if locked != target => {
                Err(Error::State { call: call.name(), reason: "another rank's window is locked" })
            }
            _ => Ok(()),
        }
    }

    #[inline]
    fn lockable(&self, call: Call) -> Result<()> {
        if self.epoch == Epoch::None {
            return Ok(());
        }
        let reason = "the window is locked or has been fenced";
        Err(Error::State { call: call.name(), reason })
    }

    /// Checks a put or a get, counts it as outstanding, and returns its length, rank and
    /// displacement.
    #[inline]
    fn transfer(
        &mut self,
        call: Call,
        origin: usize,
        (bytes, target, displacement): (usize, u32, usize),
    ) -> Result<(i32, i32, isize)> {
        if self.epoch == Epoch::None {
            let reason = "call fence, lock or lock_all first";
            return Err(Error::State { call: call.name(), reason });
        }
        self.reachable(call, target)?;
        within(origin, bytes, self.origin_bytes)?;
        within(displacement, bytes, self.bytes)?;
        let peer = self.communicator.0.peer(target)?;
        let length = count(bytes)?;
        self.outstanding[target as usize] = true;
        self.may_be_outstanding = true;
        // The displacement lies in the window, whose size is an MPI_Aint.
        Ok((length, peer, displacement as isize))
    }

    /// Marks all puts and gets as complete.
    #[inline]
    fn completed(&mut self) {
        if self.may_be_outstanding {
            self.outstanding.fill(false);
            self.may_be_outstanding = false;
        }
    }

    fn is_outstanding(&self) -> bool {
        self.may_be_outstanding && self.outstanding.contains(&true)
    }
}

impl Drop for Window {
    fn drop(&mut self) {
        if self.is_outstanding() {
            self.origin.leak();
        }
    }
}

#[cold]
fn not_locked(call: Call) -> Error {
    Error::State { call: call.name(), reason: "the window is not locked" }
}

/// Returns `Ok` if a range lies in `length` bytes.
#[inline]
fn within(offset: usize, bytes: usize, length: usize) -> Result<()> {
    if offset.checked_add(bytes).is_some_and(|end| end <= length) {
        return Ok(());
    }
    Err(Error::Range { offset, bytes, length })
}

/// Compares the windows' sizes; the check of a put's range relies on equal sizes.
fn same_on_all_ranks(communicator: &Communicator, bytes: usize) -> Result<()> {
    let own = Aligned((bytes as u64).to_ne_bytes());
    let mut least = Aligned([0; 8]);
    let mut most = Aligned([0; 8]);
    communicator.allreduce(&own.0, &mut least.0, Datatype::Uint64, Op::Min)?;
    communicator.allreduce(&own.0, &mut most.0, Datatype::Uint64, Op::Max)?;
    if least.0 == most.0 {
        return Ok(());
    }
    Err(Error::State { call: Call::Win_allocate.name(), reason: "the ranks ask for different sizes" })
}

/// A word, as bytes.
#[repr(align(8))]
struct Aligned([u8; 8]);
