//! Moving bytes from a gather list to a scatter list.

use std::io::IoSlice;

use rustix::io::Errno;

use crate::shared::SLOT_PAYLOAD;

/// From this many bytes on, stores bypass the cache: the bytes land in memory, as an adapter's would, and the receiver
/// does not have to fetch dirty lines from the sender's cache one by one. Measured: cached hand-over is faster below
/// 8 KiB, streaming stores up to ten times faster above it.
const STREAM_BYTES: usize = 8 << 10;

/// Bytes in this process.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Piece {
    pub(crate) addr: *mut u8,
    pub(crate) len: usize,
}

/// Where a piece of a scatter list is.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Place {
    /// Mapped in this process.
    Here(Piece),
    /// In another process only, at this address.
    There {
        /// The process.
        pid: u32,
        /// Address there.
        addr: u64,
        /// Bytes.
        len: usize,
    },
}

impl Place {
    /// Its length.
    pub(crate) fn bytes(&self) -> usize {
        match self {
            Self::Here(piece) => piece.len,
            Self::There { len, .. } => *len,
        }
    }

    /// Without its first `n` bytes.
    fn skip(self, n: usize) -> Self {
        match self {
            Self::Here(Piece { addr, len }) => {
                // SAFETY: callers skip at most the piece's own length.
                let addr = unsafe { addr.add(n) };
                Self::Here(Piece { addr, len: len - n })
            }
            Self::There { pid, addr, len } => Self::There { pid, addr: addr + n as u64, len: len - n },
        }
    }
}

/// Copies all of `from` to the places in turn.
///
/// # Errors
/// When another process's memory cannot be written to (the system's reason).
///
/// # Safety
/// The bytes of `from` are readable, those of `Here` places writable, and neither is freed meanwhile.
pub(crate) unsafe fn scatter(
    mut from: impl Iterator<Item = Piece>,
    to: impl Iterator<Item = Place>,
) -> Result<(), Errno> {
    let mut source = Piece { addr: std::ptr::null_mut(), len: 0 };
    for mut place in to {
        while place.bytes() > 0 {
            if source.len == 0 {
                let Some(next) = from.next() else { return Ok(()) };
                source = next;
                continue;
            }
            let n = source.len.min(place.bytes());
            // SAFETY: n is within both, and the caller vouches for them.
            unsafe { copy_to(source.addr, place, n)? };
            // SAFETY: n is at most the piece's length.
            source = Piece { addr: unsafe { source.addr.add(n) }, len: source.len - n };
            place = place.skip(n);
        }
    }
    Ok(())
}

/// # Safety
/// `n` bytes are readable at `from` and lie in `place`.
unsafe fn copy_to(from: *const u8, place: Place, n: usize) -> Result<(), Errno> {
    match place {
        Place::Here(piece) => {
            // SAFETY: as the caller vouches.
            unsafe { copy(from, piece.addr, n) };
            Ok(())
        }
        Place::There { pid, addr, .. } => {
            // SAFETY: as the caller vouches.
            write_other(pid, addr, unsafe { std::slice::from_raw_parts(from, n) })
        }
    }
}

/// Writes to memory of another process (`process_vm_writev(2)`).
fn write_other(pid: u32, addr: u64, bytes: &[u8]) -> Result<(), Errno> {
    let mut done = 0;
    while done < bytes.len() {
        let local = IoSlice::new(&bytes[done..]);
        let remote = libc::iovec { iov_base: (addr as usize + done) as *mut _, iov_len: bytes.len() - done };
        // SAFETY: the local bytes are readable for the call; the kernel checks the remote ones. IoSlice is an iovec.
        let written = unsafe {
            libc::process_vm_writev(pid.cast_signed(), (&raw const local).cast(), 1, &raw const remote, 1, 0)
        };
        match usize::try_from(written) {
            Ok(0) => return Err(Errno::FAULT),
            Ok(n) => done += n,
            Err(_) => {
                return Err(Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::FAULT));
            }
        }
    }
    Ok(())
}

/// Copies bytes, past the cache where they are many. They may overlap, as a send to the own buffer does.
///
/// # Safety
/// `n` bytes are readable at `from` and writable at `to`.
#[inline]
unsafe fn copy(from: *const u8, to: *mut u8, n: usize) {
    #[cfg(target_arch = "x86_64")]
    if n >= STREAM_BYTES && from.addr().abs_diff(to.addr()) >= n && is_x86_feature_detected!("avx") {
        // SAFETY: AVX is there, the ranges do not overlap, and the caller vouches for them.
        unsafe { stream(from, to, n) };
        return;
    }
    // SAFETY: the caller vouches for both ranges.
    unsafe { std::ptr::copy(from, to, n) };
}

/// # Safety
/// As [`copy`], and the ranges do not overlap.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx")]
unsafe fn stream(from: *const u8, to: *mut u8, n: usize) {
    use std::arch::x86_64::{_mm_sfence, _mm256_loadu_si256, _mm256_stream_si256};
    let head = to.align_offset(64).min(n);
    let body = (n - head) / 128 * 128;
    // SAFETY: head, body and the rest add up to n; streaming stores go to 32-byte aligned addresses.
    unsafe {
        std::ptr::copy_nonoverlapping(from, to, head);
        let mut at = head;
        while at < head + body {
            let (source, target) = (from.add(at), to.add(at));
            let lines = [0, 32, 64, 96].map(|i| _mm256_loadu_si256(source.add(i).cast()));
            for (i, line) in lines.into_iter().enumerate() {
                _mm256_stream_si256(target.add(i * 32).cast(), line);
            }
            at += 128;
        }
        std::ptr::copy_nonoverlapping(from.add(at), to.add(at), n - at);
        // Streaming stores are not ordered with later ones: the completion must not overtake the payload.
        _mm_sfence();
    }
}

/// Fills an array with the bytes of `from`; for payloads that fit in a slot.
///
/// # Safety
/// The bytes of `from` are readable.
#[inline]
pub(crate) unsafe fn gather_small(from: &[Piece]) -> [u8; SLOT_PAYLOAD] {
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

/// Copies at most [`SLOT_PAYLOAD`] bytes without a call: by two moves that may overlap, of the largest power of two that
/// fits.
///
/// # Safety
/// `n` bytes are readable at `from` and writable at `to`, `n` is at most [`SLOT_PAYLOAD`], and the ranges do not overlap.
#[inline(always)]
pub(crate) unsafe fn copy_small(from: *const u8, to: *mut u8, n: usize) {
    macro_rules! two_of {
        ($type:ty) => {{
            let last = n - size_of::<$type>();
            // SAFETY: both moves lie within the n bytes, which the caller vouches for.
            unsafe {
                let (head, tail) =
                    (from.cast::<$type>().read_unaligned(), from.add(last).cast::<$type>().read_unaligned());
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

    fn here(bytes: &mut [u8]) -> Place {
        Place::Here(Piece { addr: bytes.as_mut_ptr(), len: bytes.len() })
    }

    #[test]
    fn bytes_arrive_in_order_whatever_the_cuts() {
        let source: Vec<u8> = (0..100_003_u32).map(|i| (i % 251) as u8).collect();
        for cuts in [vec![], vec![1], vec![7, 8192], vec![9_000, 9_001, 50_000], vec![0, 0, 64]] {
            let mut from = Vec::new();
            let mut start = 0;
            for end in cuts.iter().copied().chain([source.len()]) {
                let part = &source[start..end.max(start)];
                from.push(Piece { addr: part.as_ptr().cast_mut(), len: part.len() });
                start = end.max(start);
            }
            let (mut a, mut b, mut c) = (vec![0; 33], vec![0; 60_001], vec![0; 50_000]);
            let places = [here(&mut a), here(&mut b), here(&mut c)];
            // SAFETY: all pieces are live vectors of this test.
            unsafe { scatter(from.into_iter(), places.into_iter()) }.unwrap();
            let mut all = [a, b, c].concat();
            assert!(all[source.len()..].iter().all(|byte| *byte == 0));
            all.truncate(source.len());
            assert!(all == source, "cuts {cuts:?}");
        }
    }

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

    #[test]
    fn another_process_is_reached_by_its_address_and_a_bad_address_is_refused() {
        let mut target = [0_u8; 5];
        let addr = target.as_mut_ptr() as u64;
        write_other(std::process::id(), addr, b"hello").unwrap();
        assert_eq!(&target, b"hello");
        assert_eq!(write_other(std::process::id(), 8, b"hello"), Err(Errno::FAULT));
    }
}
