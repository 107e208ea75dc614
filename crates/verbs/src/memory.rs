//! Protection domains and memory regions.

use std::ffi::c_void;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

use crate::abi::*;
use crate::context::{Context, ContextInner};
use crate::error::{Error, Result};

/// A protection domain. Clones share it.
#[derive(Clone, Debug)]
pub struct ProtectionDomain {
    pub(crate) inner: Arc<PdInner>,
}

#[derive(Debug)]
pub(crate) struct PdInner {
    pub(crate) raw: *mut ibv_pd,
    pub(crate) context: Arc<ContextInner>,
}

// SAFETY: verbs are thread-safe.
unsafe impl Send for PdInner {}
// SAFETY: verbs are thread-safe.
unsafe impl Sync for PdInner {}

impl Drop for PdInner {
    fn drop(&mut self) {
        // SAFETY: the domain is alive, and all objects made in it are gone, because they held it.
        unsafe { (self.context.provider().dealloc_pd)(self.raw) };
    }
}

impl Context {
    /// Makes a protection domain (`ibv_alloc_pd`).
    ///
    /// # Errors
    /// The device has no more protection domains.
    pub fn protection_domain(&self) -> Result<ProtectionDomain> {
        // SAFETY: the context is open.
        let raw = unsafe { (self.inner.provider().alloc_pd)(self.inner.raw) };
        if raw.is_null() {
            return Err(Error::last("alloc_pd", self.device().name()));
        }
        Ok(ProtectionDomain { inner: Arc::new(PdInner { raw, context: Arc::clone(&self.inner) }) })
    }
}

impl ProtectionDomain {
    /// Its context.
    #[must_use]
    pub fn context(&self) -> Context {
        Context { inner: Arc::clone(&self.inner.context) }
    }

    /// Allocates `length` zeroed bytes, in the device's own memory if it has some, and registers
    /// them (`ibv_reg_mr`) with `access` (`IBV_ACCESS_*`).
    ///
    /// # Errors
    /// There is no memory, the limit of locked memory is too small, or the access flags are not a
    /// valid combination.
    pub fn memory_region(&self, length: usize, access: u32) -> Result<MemoryRegion> {
        self.memory_region_of(MemoryKind::Device, length, access)
    }

    /// As [`memory_region`](Self::memory_region), with memory of the given kind.
    ///
    /// # Errors
    /// As [`memory_region`](Self::memory_region).
    pub fn memory_region_of(&self, kind: MemoryKind, length: usize, access: u32) -> Result<MemoryRegion> {
        self.register(Buffer::new(&self.inner.context, kind, length)?, access)
    }

    /// Allocates `length` zeroed bytes of the given kind without registering them. Memory of the
    /// process is mapped, but its pages do not exist before they are touched.
    ///
    /// # Errors
    /// There is no memory.
    pub fn buffer(&self, kind: MemoryKind, length: usize) -> Result<Buffer> {
        Buffer::new(&self.inner.context, kind, length)
    }

    /// Registers a buffer (`ibv_reg_mr`) with `access` (`IBV_ACCESS_*`). If this fails, the buffer
    /// is freed.
    ///
    /// # Errors
    /// The limit of locked memory is too small, or the access flags are not a valid combination.
    #[inline]
    pub fn register(&self, buffer: Buffer, access: u32) -> Result<MemoryRegion> {
        let provider = self.inner.context.provider();
        let length = buffer.len;
        // SAFETY: the buffer has `length` writable bytes and outlives the registration, which
        // `MemoryRegion` holds.
        let raw = unsafe { (provider.reg_mr)(self.inner.raw, buffer.addr, length, access.cast_signed()) };
        if raw.is_null() {
            return Err(Error::last("reg_mr", format!("{length} B with access {access:#x}")));
        }
        Ok(MemoryRegion { registration: Registration { raw, pd: Arc::clone(&self.inner) }, buffer })
    }
}

/// The kind of memory to register.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum MemoryKind {
    /// The device's memory ([`crate::Provider::alloc_buffer`]), if it has some.
    Device,
    /// The process's memory, as in any program.
    Process,
}

/// A location in a peer's memory, as told by the peer.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Remote {
    /// Virtual address.
    pub addr: u64,
    /// The key for remote access.
    pub rkey: u32,
}

/// A memory region.
///
/// The device may write to it at any time, so there are no references into it: bytes are copied in
/// and out.
#[derive(Debug)]
pub struct MemoryRegion {
    // Dropped first: the registration ends before its buffer is freed.
    registration: Registration,
    buffer: Buffer,
}

/// The registration of a buffer.
#[derive(Debug)]
struct Registration {
    /// Null after the registration has ended.
    raw: *mut ibv_mr,
    pd: Arc<PdInner>,
}

// SAFETY: verbs are thread-safe, and the bytes are reached only by copies through raw pointers.
unsafe impl Send for MemoryRegion {}
// SAFETY: as above; writers take `&mut self`.
unsafe impl Sync for MemoryRegion {}

impl MemoryRegion {
    /// Ends the registration (`ibv_dereg_mr`) and returns the buffer.
    ///
    /// # Errors
    /// The device refuses.
    #[inline]
    pub fn deregister(self) -> Result<Buffer> {
        let Self { mut registration, buffer } = self;
        Error::check("dereg_mr", || format!("{} B", buffer.len), registration.end())?;
        Ok(buffer)
    }

    /// Its length in bytes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.buffer.len
    }

    /// Whether its length is 0.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.buffer.len == 0
    }

    /// The key for local access.
    #[must_use]
    pub fn lkey(&self) -> u32 {
        // SAFETY: the registration is alive.
        unsafe { (*self.registration.raw).lkey }
    }

    /// Returns a scatter/gather element of `len` bytes from `offset`.
    ///
    /// # Errors
    /// [`Error::Range`] if the bytes do not lie in the region.
    pub fn sge(&self, offset: usize, len: usize) -> Result<ibv_sge> {
        self.check(offset, len)?;
        let length = u32::try_from(len).map_err(|_| Error::Range { offset, len, length: self.len() })?;
        Ok(ibv_sge { addr: (self.buffer.addr as usize + offset) as u64, length, lkey: self.lkey() })
    }

    /// Returns the remote address of the byte at `offset`, for a peer's one-sided operations.
    ///
    /// # Errors
    /// [`Error::Range`] if there is no such byte.
    pub fn remote(&self, offset: usize) -> Result<Remote> {
        self.check(offset, 1)?;
        // SAFETY: the registration is alive.
        let rkey = unsafe { (*self.registration.raw).rkey };
        Ok(Remote { addr: (self.buffer.addr as usize + offset) as u64, rkey })
    }

    /// Reads the byte at `offset` from memory, to see whether a peer's RDMA Write has changed it.
    /// Bytes that were written before it, by the same operation or an earlier one of the same queue
    /// pair, are then visible as well, on every device that writes in ascending order. perftest and
    /// other benchmarks assume this order, too.
    ///
    /// # Errors
    /// [`Error::Range`] if there is no such byte.
    #[inline]
    pub fn peek(&self, offset: usize) -> Result<u8> {
        self.check(offset, 1)?;
        // SAFETY: the byte lies in the buffer, which lives as long as the region. Only copies and
        // devices access it, so it may be used as an atomic.
        let byte = unsafe { AtomicU8::from_ptr(self.buffer.addr.cast::<u8>().add(offset)) };
        Ok(byte.load(Ordering::Acquire))
    }

    /// Writes eight bytes atomically, in native byte order: a device that reads them at the same
    /// time sees the old or the new value.
    ///
    /// # Errors
    /// [`Error::Range`] if they do not fit, or `offset` is not a multiple of 8.
    #[inline]
    pub fn store(&self, offset: usize, value: u64) -> Result<()> {
        self.word(offset)?.store(value, Ordering::Release);
        Ok(())
    }

    /// Returns eight aligned bytes as an atomic.
    #[inline]
    fn word(&self, offset: usize) -> Result<&AtomicU64> {
        let len = size_of::<u64>();
        self.check(offset, len)?;
        if !(self.buffer.addr as usize + offset).is_multiple_of(len) {
            return Err(Error::Range { offset, len, length: self.len() });
        }
        // SAFETY: the bytes lie in the buffer, which lives as long as the region, and are aligned.
        // Only copies and devices access them, so they may be used as an atomic.
        Ok(unsafe { AtomicU64::from_ptr(self.buffer.addr.cast::<u8>().add(offset).cast()) })
    }

    /// Reads eight bytes atomically, in native byte order.
    ///
    /// # Errors
    /// As [`store`](Self::store).
    #[inline]
    pub fn load(&self, offset: usize) -> Result<u64> {
        Ok(self.word(offset)?.load(Ordering::Acquire))
    }

    /// Copies bytes into the region.
    ///
    /// # Errors
    /// [`Error::Range`] if they do not fit.
    #[inline]
    pub fn write(&mut self, offset: usize, bytes: &[u8]) -> Result<()> {
        self.check(offset, bytes.len())?;
        // SAFETY: the range was checked, and `bytes` cannot overlap memory that is accessed only
        // through raw pointers.
        unsafe {
            std::ptr::copy_nonoverlapping(
                bytes.as_ptr(),
                self.buffer.addr.cast::<u8>().add(offset),
                bytes.len(),
            );
        }
        Ok(())
    }

    /// Copies bytes out of the region.
    ///
    /// # Errors
    /// [`Error::Range`] if the region has fewer bytes.
    #[inline]
    pub fn read(&self, offset: usize, bytes: &mut [u8]) -> Result<()> {
        self.check(offset, bytes.len())?;
        // SAFETY: the range was checked, and `bytes` cannot overlap memory that is accessed only
        // through raw pointers.
        unsafe {
            std::ptr::copy_nonoverlapping(
                self.buffer.addr.cast::<u8>().add(offset),
                bytes.as_mut_ptr(),
                bytes.len(),
            );
        }
        Ok(())
    }

    /// Reads from a file into the region (`pread`): at most `len` bytes from `at` in the file, to
    /// `offset`. Returns the number of bytes, fewer than `len` if the file ends before.
    ///
    /// # Errors
    /// [`Error::Range`], as `EINVAL`, if the bytes do not lie in the region; errors of `pread`.
    pub fn read_file(
        &mut self,
        offset: usize,
        len: usize,
        file: BorrowedFd<'_>,
        at: u64,
    ) -> std::io::Result<usize> {
        let to = self.bytes_at(offset, len)?;
        let at = libc::off_t::try_from(at).map_err(|_| std::io::ErrorKind::InvalidInput)?;
        // SAFETY: the range was checked; there are no references to it, and the kernel may write
        // there as a device may.
        let read = unsafe { libc::pread(file.as_raw_fd(), to.cast(), len, at) };
        usize::try_from(read).map_err(|_| std::io::Error::last_os_error())
    }

    /// Writes from the region to a file (`pwrite`): at most `len` bytes from `offset`, to `at` in
    /// the file. Returns the number of bytes.
    ///
    /// # Errors
    /// As [`read_file`](Self::read_file).
    pub fn write_file(
        &self,
        offset: usize,
        len: usize,
        file: BorrowedFd<'_>,
        at: u64,
    ) -> std::io::Result<usize> {
        let from = self.bytes_at(offset, len)?;
        let at = libc::off_t::try_from(at).map_err(|_| std::io::ErrorKind::InvalidInput)?;
        // SAFETY: the range was checked. If a device writes there at the same time, the kernel
        // copies the old or the new bytes.
        let written = unsafe { libc::pwrite(file.as_raw_fd(), from.cast(), len, at) };
        usize::try_from(written).map_err(|_| std::io::Error::last_os_error())
    }

    /// Returns the address of `len` bytes at `offset`, after a check of the range.
    fn bytes_at(&self, offset: usize, len: usize) -> std::io::Result<*mut u8> {
        self.check(offset, len)
            .map_err(|error| std::io::Error::new(std::io::ErrorKind::InvalidInput, error))?;
        // SAFETY: the range was checked.
        Ok(unsafe { self.buffer.addr.cast::<u8>().add(offset) })
    }

    fn check(&self, offset: usize, len: usize) -> Result<()> {
        let fits = offset.checked_add(len).is_some_and(|end| end <= self.len());
        if fits { Ok(()) } else { Err(Error::Range { offset, len, length: self.len() }) }
    }
}

impl Registration {
    /// Ends the registration once. Returns the result of the verb.
    fn end(&mut self) -> i32 {
        let raw = std::mem::replace(&mut self.raw, std::ptr::null_mut());
        if raw.is_null() {
            return 0;
        }
        // SAFETY: the registration is alive, and ends before its buffer, which its owner drops
        // later.
        unsafe { (self.pd.context.provider().dereg_mr)(raw) }
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        self.end();
    }
}

/// Page-aligned zeroed memory, from the device if it provides some. There are no references to it
/// while it is not registered.
#[derive(Debug)]
pub struct Buffer {
    addr: *mut c_void,
    len: usize,
    kind: MemoryKind,
    context: Arc<ContextInner>,
}

impl Buffer {
    fn new(context: &Arc<ContextInner>, kind: MemoryKind, len: usize) -> Result<Self> {
        let addr = match context.provider().alloc_buffer {
            // SAFETY: the context is open.
            Some(alloc) if kind == MemoryKind::Device => unsafe { alloc(context.raw, len) },
            _ => map_anonymous(len),
        };
        if addr.is_null() {
            return Err(Error::last("the allocation of a buffer", format!("{len} B")));
        }
        Ok(Self { addr, len, kind, context: Arc::clone(context) })
    }

    /// Writes to every page, so that all pages exist.
    pub fn touch(&mut self) {
        for offset in (0..self.len).step_by(PAGE) {
            // SAFETY: the byte lies in the buffer, which has no other reference. The write is
            // volatile so that the compiler keeps it.
            unsafe { self.addr.cast::<u8>().add(offset).write_volatile(0) };
        }
    }
}

/// The size of the smallest page, in bytes.
const PAGE: usize = 4096;

impl Drop for Buffer {
    fn drop(&mut self) {
        match self.context.provider().free_buffer {
            // SAFETY: the buffer came from the same provider, with this length.
            Some(free) if self.kind == MemoryKind::Device => unsafe {
                free(self.context.raw, self.addr, self.len);
            },
            // SAFETY: the mapping was made with this length, and there are no references to it.
            _ => unsafe {
                libc::munmap(self.addr, self.len.max(1));
            },
        }
    }
}

/// Maps anonymous private memory. Returns null, with `errno` set, on failure.
fn map_anonymous(len: usize) -> *mut c_void {
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    // SAFETY: a new mapping at an address that the kernel chooses does not change existing memory.
    let addr = unsafe { libc::mmap(std::ptr::null_mut(), len.max(1), protection, flags, -1, 0) };
    if addr == libc::MAP_FAILED { std::ptr::null_mut() } else { addr }
}
