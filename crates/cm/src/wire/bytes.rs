//! Bytes of a message that are not its manager's: private data and additional information.

/// An array of a message that others fill, always of its full size on the wire.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Bytes<const SIZE: usize>(pub [u8; SIZE]);

impl<const SIZE: usize> Bytes<SIZE> {
    /// These bytes with zeros behind them; `None` if they are more than there is room for.
    pub fn of(data: &[u8]) -> Option<Self> {
        let mut bytes = Self::default();
        bytes.0.get_mut(..data.len())?.copy_from_slice(data);
        Some(bytes)
    }

    /// The first `length` bytes, as many as a peer says that count; all if there are fewer.
    pub fn prefix(&self, length: u8) -> &[u8] {
        &self.0[..usize::from(length).min(SIZE)]
    }
}

impl<const SIZE: usize> Default for Bytes<SIZE> {
    fn default() -> Self {
        Self([0; SIZE])
    }
}
