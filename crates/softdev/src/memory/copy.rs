//! Copying bytes from a gather list to a scatter list.

use std::sync::atomic::Ordering::{Relaxed, Release};
use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64, fence};

use crate::memory::slots::SLOT_PAYLOAD;

pub(crate) mod streaming;

/// Up to this many bytes, a cache line, storing word after word is as fast as any other copy.
const WORDWISE_BYTES: usize = 64;

/// Bytes in the memory of this process.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Piece {
    pub(crate) addr: *mut u8,
    pub(crate) len: usize,
}

/// Copies bytes; a large copy bypasses the cache. The ranges may overlap, as in a send to the
/// sender's own buffer.
///
/// # Safety
/// `n` bytes are readable at `from` and writable at `to`.
#[inline]
pub(crate) unsafe fn copy(from: *const u8, to: *mut u8, n: usize) {
    #[cfg(target_arch = "x86_64")]
    if streaming::pays(n)
        && !cfg!(sanitized) // The sanitizer does not see stores of this size.
        && from.addr().abs_diff(to.addr()) >= n && is_x86_feature_detected!("avx")
    {
        // SAFETY: AVX is available, the ranges do not overlap, and the caller guarantees both.
        unsafe { streaming::stream(from, to, n) };
        return;
    }
    // SAFETY: the caller guarantees both ranges.
    unsafe { std::ptr::copy(from, to, n) };
}

/// Copies pieces one after another to `to`. The last bytes become visible last: programs wait for
/// an RDMA Write by watching them.
///
/// # Safety
/// The pieces are readable and have `bytes` bytes together, and as many are writable at `to`.
#[inline]
pub(crate) unsafe fn write_in_order(from: &[Piece], bytes: usize, to: *mut u8) {
    match from {
        [piece] if bytes <= WORDWISE_BYTES && piece.addr.addr().abs_diff(to.addr()) >= bytes => {
            // SAFETY: as the caller guarantees; the ranges do not overlap.
            unsafe { store_wordwise(piece.addr, to, bytes) };
        }
        // SAFETY: as the caller guarantees.
        _ => unsafe { write_long(from, bytes, to) },
    }
}

/// As [`write_in_order`], for any length: first all but the last word, in the fastest order, then
/// the last word.
///
/// # Safety
/// As [`write_in_order`].
unsafe fn write_long(from: &[Piece], bytes: usize, to: *mut u8) {
    const WORD: usize = size_of::<u64>();
    let over = (to.addr() + bytes) % WORD;
    let last = bytes.min(if over == 0 { WORD } else { over });
    let body = bytes - last;
    // Read before anything is written, because the ranges may overlap.
    let mut word = [0_u8; WORD];
    let mut at = 0;
    for piece in from {
        let skip = body.saturating_sub(at).min(piece.len);
        let n = piece.len - skip;
        let into = at + skip - body.min(at + skip);
        // SAFETY: the piece has n bytes after those that are skipped, and `last` bytes fit in the
        // word.
        unsafe { std::ptr::copy_nonoverlapping(piece.addr.add(skip), word.as_mut_ptr().add(into), n) };
        at += piece.len;
    }
    let mut at = 0;
    for piece in from {
        let n = piece.len.min(body - at);
        // SAFETY: the piece has n bytes, and `at + n` is at most `body`.
        unsafe { copy(piece.addr, to.add(at), n) };
        at += n;
    }
    // Stores of string instructions are ordered before a later store (Intel SDM vol. 3, 9.2.4);
    // streaming stores have had their own fence.
    fence(Release);
    // SAFETY: the last bytes lie behind the body.
    unsafe { store_wordwise(word.as_ptr(), to.add(body), last) };
}

/// Stores bytes in ascending order, in aligned words as large as possible, so that no word crosses
/// a cache line and each is seen whole.
///
/// # Safety
/// `n` bytes are readable at `from` and writable at `to`, and the ranges do not overlap.
#[inline]
pub(crate) unsafe fn store_wordwise(from: *const u8, to: *mut u8, n: usize) {
    let mut at = 0;
    macro_rules! store {
        ($type:ty, $atomic:ty) => {{
            // SAFETY: the word lies within the n bytes and is aligned at its target.
            unsafe {
                let word = from.add(at).cast::<$type>().read_unaligned();
                <$atomic>::from_ptr(to.add(at).cast()).store(word, Release);
            }
            at += size_of::<$type>();
        }};
    }
    if to.addr() & 7 != 0 {
        if (to.addr() + at) & 1 != 0 && n - at >= 1 {
            store!(u8, AtomicU8);
        }
        if (to.addr() + at) & 2 != 0 && n - at >= 2 {
            store!(u16, AtomicU16);
        }
        if (to.addr() + at) & 4 != 0 && n - at >= 4 {
            store!(u32, AtomicU32);
        }
    }
    while n - at >= 8 {
        store!(u64, AtomicU64);
    }
    if n - at >= 4 {
        store!(u32, AtomicU32);
    }
    if n - at >= 2 {
        store!(u16, AtomicU16);
    }
    if n - at >= 1 {
        store!(u8, AtomicU8);
    }
    let _ = at;
}

/// Copies the bytes of an RDMA Read from `from` to the pieces, one after another.
///
/// # Safety
/// The pieces are writable, and as many bytes as they have together are readable at `from`.
#[inline]
pub(crate) unsafe fn read_to(from: *const u8, to: &[Piece]) {
    let mut at = 0;
    for piece in to {
        // SAFETY: as the caller guarantees.
        unsafe {
            let from = from.add(at);
            if piece.len <= WORDWISE_BYTES && from.addr().abs_diff(piece.addr.addr()) >= piece.len {
                store_wordwise(from, piece.addr, piece.len);
            } else {
                copy(from, piece.addr, piece.len);
            }
        }
        at += piece.len;
    }
}

/// Stores the bytes of `from`, which fit, in the payload of a slot. The most common case avoids a
/// copy in memory: a load that covers several stores would wait until all earlier stores are done.
///
/// # Safety
/// The bytes of `from` are readable.
#[inline]
pub(crate) unsafe fn store_payload(from: &[Piece], to: &[AtomicU64; SLOT_PAYLOAD / 8]) {
    if let [Piece { addr, len: 8 }] = *from {
        // SAFETY: eight bytes are readable, as the caller guarantees.
        return to[0].store(unsafe { addr.cast::<u64>().read_unaligned() }, Relaxed);
    }
    // SAFETY: as the caller guarantees.
    let bytes = unsafe { gather_small(from) };
    for (word, bytes) in to.iter().zip(bytes.chunks_exact(8)) {
        word.store(u64::from_ne_bytes(bytes.try_into().unwrap_or_default()), Relaxed);
    }
}

/// Gathers the bytes of `from` into an array, for payloads that fit in a slot.
///
/// # Safety
/// The bytes of `from` are readable.
#[inline]
unsafe fn gather_small(from: &[Piece]) -> [u8; SLOT_PAYLOAD] {
    let mut bytes = [0; SLOT_PAYLOAD];
    let mut at = 0;
    for piece in from {
        let n = piece.len.min(SLOT_PAYLOAD - at);
        // SAFETY: n is within the piece and the rest of the array.
        unsafe { copy_small(piece.addr, bytes.as_mut_ptr().add(at), n) };
        at += n;
    }
    bytes
}

/// Copies at most [`SLOT_PAYLOAD`] bytes without a call: by two moves, which may overlap, of the
/// largest power of two that fits.
///
/// # Safety
/// `n` bytes are readable at `from` and writable at `to`, `n` is at most [`SLOT_PAYLOAD`], and the
/// ranges do not overlap.
#[inline(always)]
pub(crate) unsafe fn copy_small(from: *const u8, to: *mut u8, n: usize) {
    macro_rules! two_of {
        ($type:ty) => {{
            let last = n - size_of::<$type>();
            // SAFETY: both moves lie within the n bytes, which the caller guarantees.
            unsafe {
                let head = from.cast::<$type>().read_unaligned();
                let tail = from.add(last).cast::<$type>().read_unaligned();
                to.cast::<$type>().write_unaligned(head);
                to.add(last).cast::<$type>().write_unaligned(tail);
            }
        }};
    }
    match n {
        0 => {}
        1 => two_of!(u8),
        2..4 => two_of!(u16),
        4..8 => two_of!(u32),
        8..16 => two_of!(u64),
        _ => two_of!(u128),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_small_length_is_copied_whole_and_no_further() {
        let source: [u8; SLOT_PAYLOAD] = std::array::from_fn(|i| i as u8 + 1);
        for n in 0..=SLOT_PAYLOAD {
            let mut target = [0; SLOT_PAYLOAD + 1];
            // SAFETY: both arrays have room for n bytes.
            unsafe { copy_small(source.as_ptr(), target.as_mut_ptr(), n) };
            assert_eq!(target[..n], source[..n]);
            assert!(target[n..].iter().all(|byte| *byte == 0), "{n}");
        }
    }

    /// Checks a write, and that the bytes around it do not change.
    fn check_write(cuts: &[usize], offset: usize) {
        let total: usize = cuts.iter().sum();
        let source: Vec<u8> = (0..total).map(|i| (i % 251) as u8 + 1).collect();
        let mut from = Vec::new();
        let mut at = 0;
        for cut in cuts {
            from.push(Piece { addr: source[at..].as_ptr().cast_mut(), len: *cut });
            at += cut;
        }
        // Aligned like a buffer.
        let mut target = vec![0_u64; (offset + total) / 8 + 3];
        let bytes = target.as_mut_ptr().cast::<u8>();
        // SAFETY: both vectors are live and have room for these bytes.
        let found = unsafe {
            write_in_order(&from, total, bytes.add(offset));
            std::slice::from_raw_parts(bytes, target.len() * 8)
        };
        assert!(found[offset..offset + total] == source, "{cuts:?} at {offset}");
        assert!(found[..offset].iter().chain(&found[offset + total..]).all(|byte| *byte == 0));
        // Read back with other cuts.
        let mut back = vec![0_u8; total];
        let half = total / 2;
        let (first, second) = back.split_at_mut(half);
        let to = [first, second].map(|part| Piece { addr: part.as_mut_ptr(), len: part.len() });
        // SAFETY: as above.
        unsafe { read_to(bytes.add(offset), &to) };
        assert!(back == source, "{cuts:?} back from {offset}");
    }

    #[test]
    fn a_write_is_whole_whatever_its_length_and_place() {
        // Fewer lengths for an interpreter.
        let (step, long) = if cfg!(miri) { (7, &[][..]) } else { (1, &[8191, 8192, 8200, 20_000][..]) };
        for offset in (0..16).step_by(step) {
            for n in (0..150).step_by(step).chain(long.iter().copied()) {
                check_write(&[n], offset);
                check_write(&[n / 3, 0, n - n / 3], offset);
                check_write(&[n.saturating_sub(3), 1.min(n), 2.min(n.saturating_sub(1))], offset);
            }
        }
    }

    #[test]
    #[cfg_attr(miri, ignore = "too long for an interpreter")]
    fn a_write_may_overlap_what_it_is_written_from() {
        for (from, to, n) in [(0, 1, 40), (5, 0, 60), (0, 8, 5000), (100, 3, 20_000), (7, 7, 33)] {
            let mut bytes: Vec<u8> = (0..30_000_u32).map(|i| (i % 253) as u8).collect();
            let expected = bytes[from..from + n].to_vec();
            let base = bytes.as_mut_ptr();
            // SAFETY: both ranges lie in the vector.
            unsafe { write_in_order(&[Piece { addr: base.add(from), len: n }], n, base.add(to)) };
            assert!(bytes[to..to + n] == expected, "{from} to {to}, {n} bytes");
        }
    }

    /// A reader that waits for the last bytes finds all earlier bytes in place.
    #[test]
    fn whoever_sees_the_last_bytes_sees_all() {
        // Miri allows concurrent accesses to a word by one size only, so the lengths there are
        // whole words.
        let rounds = if cfg!(miri) { 2 } else { 200_u32 };
        let lengths: &[usize] = if cfg!(miri) { &[8, 64, 200] } else { &[8, 64, 65, 200, 4096, 40_000] };
        for &n in lengths {
            let area: Vec<AtomicU64> = (0..n.div_ceil(8)).map(|_| AtomicU64::new(0)).collect();
            let turn = AtomicU32::new(0);
            let seen = |i: usize| area[i / 8].load(std::sync::atomic::Ordering::Acquire).to_ne_bytes()[i % 8];
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    for round in 1..=rounds {
                        let source = vec![round as u8; n];
                        let from = [Piece { addr: source.as_ptr().cast_mut(), len: n }];
                        // SAFETY: the area has room for n bytes and consists of atomics.
                        unsafe { write_in_order(&from, n, area.as_ptr().cast_mut().cast()) };
                        while turn.load(std::sync::atomic::Ordering::Acquire) != round {
                            std::thread::yield_now();
                        }
                    }
                });
                for round in 1..=rounds {
                    while seen(n - 1) != round as u8 {
                        std::hint::spin_loop();
                    }
                    let late = (0..n).find(|i| seen(*i) != round as u8);
                    turn.store(round, Release);
                    assert_eq!(late, None, "of {n} bytes in round {round}");
                }
            });
        }
    }
}
