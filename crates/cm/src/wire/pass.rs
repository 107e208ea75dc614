//! One pass over the fields of a message, which reads or writes them.
//!
//! A message says once where its fields are ([`Layout::fields`]); whether that decodes or encodes
//! is up to the pass.

use super::bytes::Bytes;
use super::malformed::Malformed;

/// Bytes of a management datagram.
pub(super) const MAD_BYTES: usize = 256;
/// Bytes of the header that all management datagrams have (13.4.2).
pub(super) const HEADER_BYTES: usize = 24;
/// Bytes of a message, after the header.
pub(super) const MESSAGE_BYTES: usize = MAD_BYTES - HEADER_BYTES;

/// Fields at their places in a message.
pub(super) trait Layout: Clone + Default {
    /// Shows the pass each field and its place.
    fn fields(&mut self, pass: &mut Pass);

    fn encode(&self) -> [u8; MESSAGE_BYTES] {
        let mut pass = Pass { bytes: [0; MESSAGE_BYTES], is_read: false, undefined: None };
        self.clone().fields(&mut pass);
        pass.bytes
    }

    fn decode(bytes: [u8; MESSAGE_BYTES]) -> Result<Self, Malformed> {
        let mut pass = Pass { bytes, is_read: true, undefined: None };
        let mut message = Self::default();
        message.fields(&mut pass);
        pass.undefined.map_or(Ok(message), Err)
    }
}

/// The bytes of a message, and which way its fields go.
pub(super) struct Pass {
    bytes: [u8; MESSAGE_BYTES],
    is_read: bool,
    undefined: Option<Malformed>,
}

impl Pass {
    /// A field of `width` bits from a bit of a byte on. As in the specification's tables, bit 0 of
    /// a byte is its highest.
    pub(super) fn bits<T: Number>(&mut self, byte: usize, bit: usize, width: usize, value: &mut T) {
        let bytes = &mut self.bytes[byte..byte + (bit + width).div_ceil(8)];
        let shift = bytes.len() * 8 - bit - width;
        let mask = u64::MAX >> (64 - width);
        let word = bytes.iter().fold(0, |word, byte| word << 8 | u64::from(*byte));
        if self.is_read {
            *value = T::from_wire(word >> shift & mask);
        } else {
            let word = word | (value.to_wire() & mask) << shift;
            let from = 8 - bytes.len();
            bytes.copy_from_slice(&word.to_be_bytes()[from..]);
        }
    }

    /// A field as wide as its type.
    pub(super) fn number<T: Number>(&mut self, byte: usize, value: &mut T) {
        self.bits(byte, 0, size_of::<T>() * 8, value);
    }

    /// A field of one bit.
    pub(super) fn flag(&mut self, byte: usize, bit: usize, value: &mut bool) {
        let mut number = u8::from(*value);
        self.bits(byte, bit, 1, &mut number);
        *value = number == 1;
    }

    /// Bytes as they are.
    pub(super) fn array(&mut self, byte: usize, value: &mut [u8]) {
        let bytes = &mut self.bytes[byte..byte + value.len()];
        if self.is_read {
            value.copy_from_slice(bytes);
        } else {
            bytes.copy_from_slice(value);
        }
    }

    /// The bytes of others, up to the end of the message.
    pub(super) fn private_data<const SIZE: usize>(&mut self, value: &mut Bytes<SIZE>) {
        self.array(MESSAGE_BYTES - SIZE, &mut value.0);
    }

    /// Refuses what is read.
    pub(super) fn refuse(&mut self, why: Malformed) {
        self.undefined.get_or_insert(why);
    }
}

/// A number in a field. A field is at least as narrow as its number's type.
pub(super) trait Number: Copy {
    fn to_wire(self) -> u64;
    fn from_wire(bits: u64) -> Self;
}

macro_rules! number {
    ($($type:ty),*) => {$(
        impl Number for $type {
            fn to_wire(self) -> u64 {
                self.into()
            }

            fn from_wire(bits: u64) -> Self {
                bits as Self
            }
        }
    )*};
}

number!(u8, u16, u32, u64);
