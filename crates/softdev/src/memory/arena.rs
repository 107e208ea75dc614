//! A process's arena: one sealed memfd that holds all that the process shares with its peers.
//!
//! The tables of queue pairs, completion queues and memory regions are at its start; lanes and the
//! buffers of memory regions follow. A peer maps the whole arena once and then addresses everything
//! by offset. It checks every offset that it reads from an arena against the mapping. The file has
//! no name, so the kernel frees it with the last process that maps it, however that process ends.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::Mutex;
use std::time::Duration;

use rustix::fs::{FallocateFlags, MemfdFlags, SealFlags};
use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags};
use rustix::process::Resource;

use crate::sys::timer::Instant;

/// Granularity of an arena: a page.
pub(crate) const PAGE: usize = 4096;

/// The address space of an arena in bytes. The file is sparse, so unused bytes cost nothing.
/// Smaller sizes are tried if the address space is limited.
const SIZES: [usize; 4] = [64 << 30, 16 << 30, 4 << 30, 1 << 30];

/// How long freed bytes are kept before they are allocated again: a peer that was preempted during
/// a delivery to a destroyed queue pair may still write there.
pub(crate) const QUARANTINE: Duration = Duration::from_secs(1);

/// Frees pages; they read as zeroes afterwards.
const PUNCH: FallocateFlags = FallocateFlags::PUNCH_HOLE.union(FallocateFlags::KEEP_SIZE);

/// A mapping of an arena: this process's or a peer's.
#[derive(Debug)]
pub(crate) struct View {
    base: NonNull<u8>,
    len: usize,
}

// SAFETY: a view is an address and a length; the memory behind it is shared between processes
// anyway and is accessed only through atomics and raw copies.
unsafe impl Send for View {}
// SAFETY: as above.
unsafe impl Sync for View {}

impl View {
    /// Maps the whole file of an arena. The file must be sealed against shrinking, so that an
    /// access never raises SIGBUS.
    pub(crate) fn map(fd: BorrowedFd<'_>) -> io::Result<Self> {
        if !rustix::fs::fcntl_get_seals(fd)?.contains(SealFlags::SHRINK) {
            return Err(io::Error::other("the arena is not sealed"));
        }
        let len = usize::try_from(rustix::fs::fstat(fd)?.st_size).map_err(io::Error::other)?;
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        let flags = MapFlags::SHARED | MapFlags::NORESERVE;
        // SAFETY: a new mapping at an address that the kernel chooses touches nothing that exists.
        let base = unsafe { rustix::mm::mmap(std::ptr::null_mut(), len, protection, flags, fd, 0)? };
        // SAFETY: the mapping exists. A core dump of the sparse gigabytes would be useless; a
        // failure does not matter.
        let _ = unsafe { rustix::mm::madvise(base, len, rustix::mm::Advice::LinuxDontDump) };
        let base = NonNull::new(base.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Self { base, len })
    }

    /// Returns the address of `len` bytes at `offset` if they lie in the arena.
    #[inline]
    pub(crate) fn at(&self, offset: u64, len: u64) -> Option<NonNull<u8>> {
        let end = offset.checked_add(len)?;
        if end > self.len as u64 {
            return None;
        }
        // SAFETY: the sum was checked to lie in the mapping.
        Some(unsafe { self.base.add(offset as usize) })
    }

    /// Whether the arena has at least `len` bytes.
    pub(crate) fn holds(&self, len: u64) -> bool {
        len <= self.len as u64
    }

    /// Returns a shared structure at `offset` if it lies in the arena and is aligned.
    #[inline]
    pub(crate) fn shared<T: Shared>(&self, offset: u64) -> Option<&T> {
        let at = self.at(offset, size_of::<T>() as u64)?.cast::<T>();
        if !at.is_aligned() {
            return None;
        }
        // SAFETY: the range lies in the mapping and is aligned, and `Shared` types are valid for
        // any bytes and have interior mutability throughout, so that other processes may write to
        // them.
        Some(unsafe { at.as_ref() })
    }

    /// Makes the pages of these bytes present before they are first written: an adapter does not
    /// take page faults either. This only saves time, so a failure does not matter (kernels before
    /// 5.14 cannot do it).
    pub(crate) fn populate(&self, offset: u64, len: u64) {
        let start = offset / PAGE as u64 * PAGE as u64;
        let Some(at) = self.at(start, offset.saturating_add(len).saturating_sub(start)) else { return };
        let len = (offset + len - start) as usize;
        // SAFETY: the range lies in the mapping, and populating changes no byte of it.
        let _ =
            unsafe { rustix::mm::madvise(at.as_ptr().cast(), len, rustix::mm::Advice::LinuxPopulateWrite) };
    }

    /// Returns the offset of an address if `len` bytes from it lie in the arena.
    pub(crate) fn offset_of(&self, addr: u64, len: u64) -> Option<u64> {
        let offset = addr.checked_sub(self.base.as_ptr() as u64)?;
        self.at(offset, len).map(|_| offset)
    }
}

impl Drop for View {
    fn drop(&mut self) {
        // SAFETY: the mapping was made with this length, and every user of it held the view.
        let _ = unsafe { rustix::mm::munmap(self.base.as_ptr().cast(), self.len) };
    }
}

/// Types that may be placed in shared memory.
///
/// # Safety
/// Every member is an atomic (or an array of such), any bytes are a valid value, and there is no
/// padding that matters.
pub(crate) unsafe trait Shared {}

/// This process's arena and its allocator.
#[derive(Debug)]
pub(crate) struct Arena {
    pub(crate) view: View,
    fd: OwnedFd,
    heap: Mutex<Heap>,
}

#[derive(Debug, Default)]
struct Heap {
    /// Free ranges: length by offset.
    free: BTreeMap<u64, u64>,
    /// Freed ranges that may not be allocated yet.
    quarantine: VecDeque<(Instant, u64, u64)>,
}

impl Arena {
    /// Makes an arena with this name; the first `reserved` bytes are for its tables.
    pub(crate) fn new(name: &str, reserved: u64) -> io::Result<Self> {
        let fd = rustix::fs::memfd_create(name, MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
        let mut view = Err(Errno::NOMEM.into());
        for size in SIZES {
            if !may_grow_to(size as u64) {
                view = Err(Errno::FBIG.into());
                continue;
            }
            rustix::fs::ftruncate(&fd, size as u64)?;
            // Growing is never needed, and shrinking must be impossible once a peer has mapped the
            // file. The size may still change while sizes are tried, so only the attempt that
            // succeeds is sealed.
            if probe(&fd, size) {
                rustix::fs::fcntl_add_seals(&fd, SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL)?;
                view = View::map(fd.as_fd());
                break;
            }
            view = Err(Errno::NOMEM.into());
        }
        let view = view?;
        let heap = Heap { free: BTreeMap::from([(reserved, view.len as u64 - reserved)]), ..Heap::default() };
        Ok(Self { view, fd, heap: Mutex::new(heap) })
    }

    /// Allocates zeroed, page-aligned bytes and returns their offset.
    pub(crate) fn allocate(&self, len: u64) -> Option<u64> {
        let len = page_multiple(len)?;
        let mut heap = self.heap.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        heap.release(&self.fd, false);
        if let Some(offset) = heap.take(len) {
            return Some(offset);
        }
        heap.release(&self.fd, true);
        heap.take(len)
    }

    /// Frees bytes that were allocated with this length.
    pub(crate) fn free(&self, offset: u64, len: u64) {
        let Some(len) = page_multiple(len) else { return };
        // The pages are freed at once, and again after the quarantine, because a late peer may have
        // written to them.
        let _ = rustix::fs::fallocate(&self.fd, PUNCH, offset, len);
        let mut heap = self.heap.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        heap.quarantine.push_back((Instant::now(), offset, len));
    }
}

impl Heap {
    /// Takes the first range that fits.
    fn take(&mut self, len: u64) -> Option<u64> {
        let (&offset, &free) = self.free.iter().find(|(_, free)| **free >= len)?;
        self.free.remove(&offset);
        if free > len {
            self.free.insert(offset + len, free - len);
        }
        Some(offset)
    }

    /// Moves ranges whose quarantine is over (or all ranges) to the free list, joins them with
    /// their neighbours, and frees their pages, which also zeroes them.
    fn release(&mut self, fd: &OwnedFd, all: bool) {
        while let Some(&(freed, offset, len)) = self.quarantine.front() {
            if !all && freed.elapsed() < QUARANTINE {
                return;
            }
            self.quarantine.pop_front();
            if rustix::fs::fallocate(fd, PUNCH, offset, len).is_err() {
                continue; // The bytes would not be zero: the range is lost rather than reused.
            }
            self.insert(offset, len);
        }
    }

    fn insert(&mut self, mut offset: u64, mut len: u64) {
        if let Some((&before, &before_len)) = self.free.range(..offset).next_back()
            && before + before_len == offset
        {
            self.free.remove(&before);
            (offset, len) = (before, before_len + len);
        }
        if let Some(after_len) = self.free.remove(&(offset + len)) {
            len += after_len;
        }
        self.free.insert(offset, len);
    }
}

/// Whether this process may have a file of this size. An attempt would raise SIGXFSZ, which kills
/// most programs.
fn may_grow_to(size: u64) -> bool {
    rustix::process::getrlimit(Resource::Fsize).current.is_none_or(|limit| size <= limit)
}

/// Whether this much address space can be mapped.
fn probe(fd: &OwnedFd, size: usize) -> bool {
    let flags = MapFlags::SHARED | MapFlags::NORESERVE;
    // SAFETY: a new mapping at an address that the kernel chooses touches nothing that exists.
    let mapped = unsafe { rustix::mm::mmap(std::ptr::null_mut(), size, ProtFlags::READ, flags, fd, 0) };
    // SAFETY: the mapping was made in the line above and nothing refers to it.
    mapped.is_ok_and(|base| unsafe { rustix::mm::munmap(base, size) }.is_ok())
}

fn page_multiple(len: u64) -> Option<u64> {
    len.max(1).checked_next_multiple_of(PAGE as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn freed_bytes_come_back_zeroed_and_joined_but_not_at_once() {
        let arena = Arena::new("softdev-test", 4096).unwrap();
        let first = arena.allocate(10_000).unwrap();
        let second = arena.allocate(1).unwrap();
        assert_eq!((first, second), (4096, 4096 + 12_288));
        let at = arena.view.at(first, 10_000).unwrap();
        // SAFETY: the bytes were allocated above.
        unsafe { at.write_bytes(7, 10_000) };
        arena.free(first, 10_000);
        arena.free(second, 1);
        assert_eq!(arena.allocate(1), Some(second + 4096), "freed bytes are in quarantine");
        arena.heap.lock().unwrap().release(&arena.fd, true);
        let again = arena.allocate(16_384).unwrap();
        assert_eq!(again, first, "both ranges were joined");
        // SAFETY: the bytes were allocated above.
        assert_eq!(unsafe { at.read() }, 0);
    }

    #[test]
    fn a_heap_joins_neighbours_and_gives_out_the_first_that_fits() {
        let mut heap = Heap { free: BTreeMap::from([(0, 100)]), ..Heap::default() };
        let taken = [10, 20, 30].map(|len| heap.take(len).unwrap());
        assert_eq!(taken, [0, 10, 30]);
        heap.insert(0, 10);
        heap.insert(30, 30);
        assert_eq!(heap.free, BTreeMap::from([(0, 10), (30, 70)]), "joined with what is behind it");
        assert_eq!(heap.take(11), Some(30));
        heap.insert(10, 20);
        assert_eq!(heap.free, BTreeMap::from([(0, 30), (41, 59)]), "joined with what is before it");
        heap.insert(30, 11);
        assert_eq!(heap.free, BTreeMap::from([(0, 100)]), "joined with both");
        assert_eq!(heap.take(101), None);
    }

    #[test]
    fn ranges_outside_the_arena_are_refused() {
        let arena = Arena::new("softdev-test", 4096).unwrap();
        let len = arena.view.len as u64;
        assert!(arena.view.at(len - 1, 1).is_some());
        assert!(arena.view.at(len, 1).is_none());
        assert!(arena.view.at(u64::MAX, 2).is_none());
        assert_eq!(arena.allocate(u64::MAX), None);
        assert_eq!(arena.allocate(len), None);
    }
}
