//! Words of eight bytes in a message.

/// Writes word number `word` of a message, low byte first.
///
/// # Panics
/// If the message is too short, which is a bug of the caller.
#[inline]
pub(crate) fn put(message: &mut [u8], word: usize, value: u64) {
    message[8 * word..8 * word + 8].copy_from_slice(&value.to_le_bytes());
}

/// Reads word number `word` of a message.
///
/// # Panics
/// As [`put`].
#[inline]
pub(crate) fn get(message: &[u8], word: usize) -> u64 {
    let mut bytes = [0; 8];
    bytes.copy_from_slice(&message[8 * word..8 * word + 8]);
    u64::from_le_bytes(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_stand_one_after_the_other() {
        let mut message = [0xff; 20];
        put(&mut message, 0, 1);
        put(&mut message, 1, u64::MAX - 1);
        assert_eq!(message[..10], [1, 0, 0, 0, 0, 0, 0, 0, 0xfe, 0xff]);
        assert_eq!((get(&message, 0), get(&message, 1)), (1, u64::MAX - 1));
        assert_eq!(message[16..], [0xff; 4]);
    }
}
