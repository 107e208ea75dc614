//! The bytes of a message that its users fill: private data and additional information.

/// An array for users of a message, always with its full size on the wire.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Bytes<const SIZE: usize>(pub [u8; SIZE]);

impl<const SIZE: usize> Bytes<SIZE> {
    /// Returns these bytes, followed by zeros; `None` if there are too many.
    pub fn of(data: &[u8]) -> Option<Self> {
        let mut bytes = Self::default();
        bytes.0.get_mut(..data.len())?.copy_from_slice(data);
        Some(bytes)
    }

    /// Returns the first `length` bytes, the number that a peer has declared; all bytes if there
    /// are fewer.
    pub fn prefix(&self, length: u8) -> &[u8] {
        &self.0[..usize::from(length).min(SIZE)]
    }
}

impl<const SIZE: usize> Default for Bytes<SIZE> {
    fn default() -> Self {
        Self([0; SIZE])
    }
}
