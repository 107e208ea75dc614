//! Fields of structures, by their offsets in bytes.

/// Bytes to read. Missing bytes are zero, like fields that an older program does not know.
#[derive(Clone, Copy)]
pub(crate) struct Fields<'a>(pub(crate) &'a [u8]);

impl Fields<'_> {
    pub(crate) fn array<const N: usize>(self, at: usize) -> [u8; N] {
        let mut bytes = [0; N];
        let there = self.0.get(at..).unwrap_or_default();
        let length = there.len().min(N);
        bytes[..length].copy_from_slice(&there[..length]);
        bytes
    }

    pub(crate) fn u8(self, at: usize) -> u8 {
        self.array::<1>(at)[0]
    }

    pub(crate) fn u16(self, at: usize) -> u16 {
        u16::from_ne_bytes(self.array(at))
    }

    pub(crate) fn u32(self, at: usize) -> u32 {
        u32::from_ne_bytes(self.array(at))
    }

    pub(crate) fn u64(self, at: usize) -> u64 {
        u64::from_ne_bytes(self.array(at))
    }
}

/// Writes a field.
pub(crate) fn put(to: &mut [u8], at: usize, bytes: &[u8]) {
    to[at..at + bytes.len()].copy_from_slice(bytes);
}
