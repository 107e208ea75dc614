//! The places of a scatter list, in this process or another, and copying to them.

use rustix::io::Errno;

use crate::memory::copy::{Piece, copy};
use crate::transport::local::foreign;

/// The place of a piece of a scatter list.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Place {
    /// Mapped in this process.
    Here(Piece),
    /// In another process only.
    There {
        /// The process.
        pid: u32,
        /// The address there.
        addr: u64,
        /// The length in bytes.
        len: usize,
    },
}

impl Place {
    /// Returns its length in bytes.
    pub(crate) fn bytes(&self) -> usize {
        match self {
            Self::Here(piece) => piece.len,
            Self::There { len, .. } => *len,
        }
    }

    /// Returns the place without its first `n` bytes.
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
/// If another process's memory cannot be written (the system's error).
///
/// # Safety
/// The bytes of `from` are readable, those of `Here` places writable, and neither is freed
/// meanwhile.
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
            // SAFETY: n is within both, and the caller guarantees them.
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
            // SAFETY: as the caller guarantees.
            unsafe { copy(from, piece.addr, n) };
            Ok(())
        }
        Place::There { pid, addr, .. } => {
            // SAFETY: as the caller guarantees.
            foreign::write(pid, addr, unsafe { std::slice::from_raw_parts(from, n) })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn here(bytes: &mut [u8]) -> Place {
        Place::Here(Piece { addr: bytes.as_mut_ptr(), len: bytes.len() })
    }

    #[test]
    #[cfg_attr(miri, ignore = "too long for an interpreter")]
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
            let mut a = vec![0; 33];
            let mut b = vec![0; 60_001];
            let mut c = vec![0; 50_000];
            let places = [here(&mut a), here(&mut b), here(&mut c)];
            // SAFETY: all pieces are live vectors of this test.
            unsafe { scatter(from.into_iter(), places.into_iter()) }.unwrap();
            let mut all = [a, b, c].concat();
            assert!(all[source.len()..].iter().all(|byte| *byte == 0));
            all.truncate(source.len());
            assert!(all == source, "cuts {cuts:?}");
        }
    }
}
