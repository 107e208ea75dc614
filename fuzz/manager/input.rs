//! Reads the fuzzer's input.

/// Bytes that are taken from the front. Missing bytes are zero.
pub(super) struct Input<'a>(&'a [u8]);

impl<'a> Input<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    /// Takes the next byte, if there is one.
    pub(super) fn next(&mut self) -> Option<u8> {
        let (byte, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*byte)
    }

    pub(super) fn byte(&mut self) -> u8 {
        self.next().unwrap_or_default()
    }

    pub(super) fn array<const N: usize>(&mut self) -> [u8; N] {
        std::array::from_fn(|_| self.byte())
    }

    pub(super) fn word(&mut self) -> u32 {
        u32::from_le_bytes(self.array())
    }

    /// Takes at most so many bytes.
    pub(super) fn take(&mut self, bytes: usize) -> &'a [u8] {
        let (taken, rest) = self.0.split_at(bytes.min(self.0.len()));
        self.0 = rest;
        taken
    }
}
