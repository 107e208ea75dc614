//! Messages that the sender copies into shared memory: the least that any transfer through shared
//! memory does.

use std::sync::atomic::Ordering::{Acquire, Release};

use anyhow::Result;

use crate::link::{Link, MESSAGE_BYTES, Side};
use crate::stream::{self, Reader, Receiver, Sender};

/// How a message is stored.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Stores {
    /// `memcpy`.
    Cached,
    /// Bypassing the cache, 32 bytes at a time.
    Streaming32,
    /// Bypassing the cache, a whole cache line at a time.
    Streaming64,
}

impl Stores {
    /// Returns the widest stores that bypass the cache.
    pub(crate) fn streaming() -> Self {
        #[cfg(target_arch = "x86_64")]
        if is_x86_feature_detected!("avx512f") {
            return Self::Streaming64;
        } else if is_x86_feature_detected!("avx") {
            return Self::Streaming32;
        }
        Self::Cached
    }
}

/// Runs the benchmark: the first process measures and receives, the second sends.
pub(crate) fn run(link: &Link, stores: Stores, reader: Reader) -> Result<String> {
    link.exchange(&[0; 8])?;
    if link.side == Side::First {
        return stream::receive(link, &mut Taker { link }, reader);
    }
    let source = vec![0_u64; MESSAGE_BYTES / 8 + 8];
    stream::send(link, &mut Copier { link, source, stores })?;
    Ok(String::new())
}

struct Copier<'a> {
    link: &'a Link,
    source: Vec<u64>,
    stores: Stores,
}

impl Sender for Copier<'_> {
    fn source(&mut self) -> *mut u8 {
        let start = self.source.as_mut_ptr().cast::<u8>();
        // SAFETY: the buffer is a cache line longer than a message.
        unsafe { start.add(start.align_offset(64)) }
    }

    fn put(&mut self, n: u64) -> Result<()> {
        let from = self.source();
        let to = self.link.place(n);
        // SAFETY: both have space for a message and do not overlap; the receiver no longer reads
        // the old content.
        unsafe { copy(from, to, self.stores) };
        self.link.control().written.0.store(n, Release);
        Ok(())
    }

    fn taken(&self) -> u64 {
        self.link.control().taken.0.load(Acquire)
    }
}

struct Taker<'a> {
    link: &'a Link,
}

impl Receiver for Taker<'_> {
    fn has(&self, n: u64) -> bool {
        self.link.control().written.0.load(Acquire) >= n
    }

    fn place(&self, n: u64) -> *const u8 {
        self.link.place(n)
    }

    fn take(&mut self, n: u64) -> Result<()> {
        self.link.control().taken.0.store(n, Release);
        Ok(())
    }
}

/// # Safety
/// A message is readable at `from` and writable at `to`, both are aligned to cache lines and do not
/// overlap, and the processor supports the stores.
unsafe fn copy(from: *const u8, to: *mut u8, stores: Stores) {
    match stores {
        // SAFETY: guaranteed by the caller.
        Stores::Cached => unsafe { std::ptr::copy_nonoverlapping(from, to, MESSAGE_BYTES) },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: guaranteed by the caller.
        Stores::Streaming32 => unsafe { stream_32(from, to) },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: guaranteed by the caller.
        Stores::Streaming64 => unsafe { stream_64(from, to) },
        #[cfg(not(target_arch = "x86_64"))]
        Stores::Streaming32 | Stores::Streaming64 => unreachable!("only x86_64 has them"),
    }
}

/// # Safety
/// As [`copy`], with AVX.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx")]
unsafe fn stream_32(from: *const u8, to: *mut u8) {
    use std::arch::x86_64::{_mm_sfence, _mm256_load_si256, _mm256_stream_si256};
    for at in (0..MESSAGE_BYTES).step_by(128) {
        // SAFETY: four aligned half cache lines within the message.
        unsafe {
            let halves = [0, 32, 64, 96].map(|i| _mm256_load_si256(from.add(at + i).cast()));
            for (i, half) in halves.into_iter().enumerate() {
                _mm256_stream_si256(to.add(at + i * 32).cast(), half);
            }
        }
    }
    // Streaming stores are not ordered with later ones.
    _mm_sfence();
}

/// # Safety
/// As [`copy`], with AVX-512F.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f")]
unsafe fn stream_64(from: *const u8, to: *mut u8) {
    use std::arch::x86_64::{_mm_sfence, _mm512_load_si512, _mm512_stream_si512};
    for at in (0..MESSAGE_BYTES).step_by(256) {
        // SAFETY: four aligned cache lines within the message.
        unsafe {
            let lines = [0, 64, 128, 192].map(|i| _mm512_load_si512(from.add(at + i).cast()));
            for (i, line) in lines.into_iter().enumerate() {
                _mm512_stream_si512(to.add(at + i * 64).cast(), line);
            }
        }
    }
    _mm_sfence();
}
