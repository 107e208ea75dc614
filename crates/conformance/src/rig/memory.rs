//! Commands that register, deregister and unmap memory.

use std::ffi::c_void;
use std::ptr::null_mut;

use super::region::{Memory, Region, file_of, map};
use super::{Rig, errno};

impl Rig {
    /// Registers new memory. Returns the number of the region and its key.
    ///
    /// Words: domain, length, access flags, kind of memory.
    pub(super) fn register(&mut self, w: &[u64]) -> Vec<u64> {
        let len = w[1] as usize;
        let kind = Memory::of(w[3]);
        let from_device = kind == Memory::Device && self.provider.alloc_buffer.is_some();
        let file = (kind == Memory::File).then(|| file_of(len));
        let addr = match self.provider.alloc_buffer {
            // SAFETY: the context is open.
            Some(alloc) if from_device => unsafe { alloc(self.context, len) },
            _ => map(len, kind, file.as_ref()),
        };
        assert!(!addr.is_null(), "no memory for {len} B");
        // SAFETY: the domain and the buffer are alive.
        let mr = unsafe { (self.provider.reg_mr)(self.domains[w[0] as usize], addr, len, w[2] as i32) };
        let mut region = Region { mr, addr: addr.cast(), len, lkey: 0, rkey: 0, from_device, file };
        if mr.is_null() {
            let refused = errno();
            self.give_back(&region);
            return vec![refused];
        }
        // SAFETY: the region was just registered.
        (region.lkey, region.rkey) = unsafe { ((*mr).lkey, (*mr).rkey) };
        let lkey = region.lkey;
        self.regions.push(region);
        vec![0, self.regions.len() as u64 - 1, u64::from(lkey)]
    }

    /// Deregisters a region. Its address and key are kept, so that a case can misuse them.
    pub(super) fn deregister(&mut self, i: usize) -> u64 {
        let mr = std::mem::replace(&mut self.regions[i].mr, null_mut());
        // SAFETY: the region is registered.
        unsafe { (self.provider.dereg_mr)(mr) as u64 }
    }

    /// Deregisters a region and frees its memory.
    pub(super) fn release(&mut self, i: usize) -> Vec<u64> {
        let errno = self.deregister(i);
        let nothing = Region {
            mr: null_mut(),
            addr: null_mut(),
            len: 0,
            lkey: 0,
            rkey: 0,
            from_device: false,
            file: None,
        };
        let region = std::mem::replace(&mut self.regions[i], nothing);
        self.give_back(&region);
        vec![errno]
    }

    /// Unmaps the memory of a region that stays registered.
    pub(super) fn unmap(&mut self, i: usize) -> Vec<u64> {
        let region = &mut self.regions[i];
        let addr = std::mem::replace(&mut region.addr, null_mut());
        // SAFETY: the mapping was made with this length. A case tries what its registration then
        // does.
        unsafe { libc::munmap(addr.cast(), region.len) };
        vec![0]
    }

    /// Truncates the file that a region maps to no bytes.
    pub(super) fn truncate(&mut self, i: usize) -> Vec<u64> {
        let file = self.regions[i].file.as_ref().expect("a region of a file");
        rustix::fs::ftruncate(file, 0).expect("the file is open for writing");
        vec![0]
    }

    pub(super) fn give_back(&self, region: &Region) {
        let addr = region.addr.cast::<c_void>();
        match self.provider.free_buffer {
            _ if addr.is_null() => {}
            // SAFETY: the buffer came from the same provider with this length.
            Some(free) if region.from_device => unsafe { free(self.context, addr, region.len) },
            // SAFETY: the mapping was made with this length and nothing refers to it any more.
            _ => unsafe {
                libc::munmap(addr, region.len.max(1));
            },
        }
    }
}
