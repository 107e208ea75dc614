//! Memory of the device's or the program's, and its registrations.

use std::ffi::c_void;
use std::ptr::null_mut;

use verbs::abi::*;

use super::{Rig, errno};

pub(super) struct Region {
    pub(super) mr: *mut ibv_mr,
    pub(super) addr: *mut u8,
    pub(super) len: usize,
    pub(super) lkey: u32,
    pub(super) rkey: u32,
    from_device: bool,
}

impl Rig {
    pub(super) fn register(&mut self, w: &[u64]) -> Vec<u64> {
        let (len, from_device) = (w[1] as usize, w[3] == 0 && self.provider.alloc_buffer.is_some());
        let addr = match self.provider.alloc_buffer {
            // SAFETY: the context is open.
            Some(alloc) if from_device => unsafe { alloc(self.context, len) },
            _ => map(len),
        };
        assert!(!addr.is_null(), "no memory for {len} B");
        // SAFETY: the domain is alive and the buffer is.
        let mr = unsafe { (self.provider.reg_mr)(self.domains[w[0] as usize], addr, len, w[2] as i32) };
        if mr.is_null() {
            return vec![errno()];
        }
        // SAFETY: it was just made.
        let (lkey, rkey) = unsafe { ((*mr).lkey, (*mr).rkey) };
        self.regions.push(Region { mr, addr: addr.cast(), len, lkey, rkey, from_device });
        vec![0, self.regions.len() as u64 - 1, u64::from(lkey)]
    }

    /// Deregisters; the bytes and the key stay known, so that they can be misused.
    pub(super) fn deregister(&mut self, i: usize) -> u64 {
        let mr = std::mem::replace(&mut self.regions[i].mr, null_mut());
        // SAFETY: the region is registered.
        unsafe { (self.provider.dereg_mr)(mr) as u64 }
    }

    /// Deregisters and gives the memory back.
    pub(super) fn release(&mut self, i: usize) -> Vec<u64> {
        let errno = self.deregister(i);
        let nothing =
            Region { mr: null_mut(), addr: null_mut(), len: 0, lkey: 0, rkey: 0, from_device: false };
        let region = std::mem::replace(&mut self.regions[i], nothing);
        self.give_back(&region);
        vec![errno]
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

fn map(len: usize) -> *mut c_void {
    let (protection, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
    // SAFETY: a new mapping at an address of the kernel's choice touches nothing that exists.
    let addr = unsafe { libc::mmap(null_mut(), len.max(1), protection, flags, -1, 0) };
    assert!(addr != libc::MAP_FAILED, "no memory for {len} B");
    addr
}
