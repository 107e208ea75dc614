//! Memory for samples that causes no page fault while it is written: whole pages, each written once
//! before the run, and locked where the system allows it.

use rustix::mm::{mlock, munlock};

use crate::{Error, Result};

/// The initial content of pages. Not zeros, because the system provides zeros without touching
/// pages.
pub(super) const UNTAKEN: u64 = u64::MAX;
/// Samples in a [`Page`].
pub(super) const PAGE_SAMPLES: usize = 512;

/// 4 KiB of samples. Whole aligned pages, so that locking and unlocking them affects no other
/// memory. (A kernel with larger pages rounds outwards; a neighbour may then be locked too, which
/// does no harm.)
#[derive(Clone, Copy, Debug)]
#[repr(C, align(4096))]
pub(super) struct Page(pub(super) [u64; PAGE_SAMPLES]);

/// Pages that were written and, where allowed, are locked.
#[derive(Debug)]
pub(super) struct Pages {
    pages: Vec<Page>,
    not_locked: Option<String>,
}

impl Pages {
    pub(super) fn new(samples: usize) -> Result<Self> {
        let pages = touched(samples)?;
        let not_locked = lock(&pages).err().map(|errno| why_not_locked(size_of_val(pages.as_slice()), errno));
        Ok(Self { pages, not_locked })
    }

    pub(super) fn not_locked(&self) -> Option<&str> {
        self.not_locked.as_deref()
    }

    #[inline(always)]
    pub(super) fn as_slice(&self) -> &[Page] {
        &self.pages
    }

    #[inline(always)]
    pub(super) fn as_mut_slice(&mut self) -> &mut [Page] {
        &mut self.pages
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        if self.not_locked.is_none() {
            let bytes = size_of_val(self.pages.as_slice());
            // SAFETY: the range is the allocation of `pages`, which lives until after this call.
            // Unlocking changes neither the content nor the validity of the memory. A refusal
            // leaves it locked, which is harmless.
            let _ = unsafe { munlock(self.pages.as_mut_ptr().cast(), bytes) };
        }
    }
}

/// Pages for a number of samples, each page written.
pub(super) fn touched(samples: usize) -> Result<Vec<Page>> {
    let count = samples.div_ceil(PAGE_SAMPLES);
    let bytes = count.saturating_mul(size_of::<Page>());
    let mut pages = Vec::new();
    pages.try_reserve_exact(count).map_err(|cause| Error::Memory { samples, bytes, cause })?;
    pages.resize(count, Page([UNTAKEN; PAGE_SAMPLES]));
    Ok(pages)
}

fn lock(pages: &[Page]) -> rustix::io::Result<()> {
    // SAFETY: the range is the allocation behind the slice. Locking changes neither its content nor
    // its validity.
    unsafe { mlock(pages.as_ptr().cast_mut().cast(), size_of_val(pages)) }
}

/// mlock(2): ENOMEM above the soft limit, EPERM when the limit is 0.
pub(super) fn why_not_locked(bytes: usize, errno: rustix::io::Errno) -> String {
    format!(
        "cannot lock {} KiB of samples in memory: {errno}; raise the limit with ulimit -l unlimited (LimitMEMLOCK= of \
         a systemd unit, memlock in limits.conf) or run with CAP_IPC_LOCK",
        bytes / 1024
    )
}
