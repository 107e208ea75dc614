//! One pass over the fields of a message, which reads or writes them.
//!
//! A message defines the places of its fields once ([`Layout::fields`]); the pass decides whether
//! that decodes or encodes.

use super::bytes::Bytes;
use super::malformed::Malformed;

/// The size of a management datagram.
pub(super) const MAD_BYTES: usize = 256;
/// The size of the header of all management datagrams (13.4.2).
pub(super) const HEADER_BYTES: usize = 24;
/// The size of a message, after the header.
pub(super) const MESSAGE_BYTES: usize = MAD_BYTES - HEADER_BYTES;

/// The fields of a message and their places.
pub(super) trait Layout: Clone + Default {
    /// Passes each field and its place to the pass.
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

/// The bytes of a message, and whether its fields are read or written.
pub(super) struct Pass {
    bytes: [u8; MESSAGE_BYTES],
    is_read: bool,
    undefined: Option<Malformed>,
}

impl Pass {
    /// A field of `width` bits, from `bit` of `byte` on. As in the specification's tables, bit 0 is
    /// the highest bit of a byte.
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

    /// Bytes that are copied unchanged.
    pub(super) fn array(&mut self, byte: usize, value: &mut [u8]) {
        let bytes = &mut self.bytes[byte..byte + value.len()];
        if self.is_read {
            value.copy_from_slice(bytes);
        } else {
            bytes.copy_from_slice(value);
        }
    }

    /// The private data, up to the end of the message.
    pub(super) fn private_data<const SIZE: usize>(&mut self, value: &mut Bytes<SIZE>) {
        self.array(MESSAGE_BYTES - SIZE, &mut value.0);
    }

    /// Refuses the message that is read.
    pub(super) fn refuse(&mut self, why: Malformed) {
        self.undefined.get_or_insert(why);
    }
}

/// A number in a field. A field is not wider than its number's type.
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
