//! The one-time key that a waiting server prints and its client needs.

use std::fmt;
use std::str::FromStr;

use rustix::rand::{GetRandomFlags, getrandom};

use crate::Error;

/// A secret that admits one client, once: [`LETTERS`] letters of 5 bits each, 130 bits in all, from
/// the system's random number generator.
///
/// Only [`fmt::Display`] prints it; [`fmt::Debug`] hides it.
#[derive(Clone, Eq, PartialEq)]
pub struct Key([u8; LETTERS]);

/// The number of letters of a key: the fewest with at least 128 bits.
pub const LETTERS: usize = 26;

impl Key {
    /// Returns a new random key.
    ///
    /// # Errors
    ///
    /// If the system has no random numbers.
    pub fn generate() -> Result<Self, Error> {
        let mut letters = [0; LETTERS];
        // Up to 256 bytes are returned completely or not at all (getrandom(2)).
        getrandom(&mut letters, GetRandomFlags::empty()).map_err(Error::system("make a key"))?;
        Ok(Self(letters.map(|random| ALPHABET[usize::from(random) % ALPHABET.len()])))
    }

    /// Returns the key as the pre-shared key of Noise: 32 bytes, the letters and then zeros.
    pub(super) fn pre_shared(&self) -> [u8; 32] {
        let mut bytes = [0; 32];
        bytes[..LETTERS].copy_from_slice(&self.0);
        bytes
    }
}

impl FromStr for Key {
    type Err = Error;

    /// Parses a key. Capital letters are accepted, too.
    fn from_str(text: &str) -> Result<Self, Error> {
        let text = text.trim().to_ascii_lowercase();
        let count = text.chars().count();
        if let Some(odd) = text.bytes().find(|byte| !ALPHABET.contains(byte)) {
            let reason = format!("has a {:?}", char::from(odd));
            return Err(Error::BadKey {
                reason: if odd.is_ascii() { reason } else { "has a character that is not ASCII".into() },
            });
        }
        let characters = if count == 1 { "character" } else { "characters" };
        let letters = text.as_bytes().try_into();
        letters.map(Self).map_err(|_| Error::BadKey { reason: format!("has {count} {characters}") })
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|letter| write!(f, "{}", char::from(*letter)))
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key(..)")
    }
}

/// The alphabet of RFC 4648, section 6, in small letters. It has no 0 or 1, which look like o and
/// l. A random byte modulo its 32 letters is uniform.
const ALPHABET: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_read_as_it_was_printed() {
        let key = Key::generate().unwrap();
        let text = key.to_string();
        assert_eq!(text.len(), LETTERS);
        assert_eq!(text.parse::<Key>().unwrap(), key);
        assert_eq!(format!(" {} \n", text.to_uppercase()).parse::<Key>().unwrap(), key);
        assert!(!format!("{key:?}").contains(&text), "it is not printed by accident");
    }

    #[test]
    fn keys_differ_and_use_every_letter() {
        let keys: Vec<String> = (0..64).map(|_| Key::generate().unwrap().to_string()).collect();
        let different: std::collections::BTreeSet<_> = keys.iter().collect();
        assert_eq!(different.len(), keys.len());
        let all = keys.concat();
        assert!(ALPHABET.iter().all(|letter| all.contains(char::from(*letter))), "{all}");
    }

    #[test]
    fn what_is_no_key_is_refused_with_the_reason() {
        for (text, reason) in [
            ("", "has 0 characters"),
            ("abc", "has 3 characters"),
            (&"a".repeat(27), "has 27 characters"),
            ("abcdefghijklmnopqrstuvwxy1", "has a '1'"),
            ("abcdefghijklmnopqrstuvwx\u{e9}", "has a character that is not ASCII"),
            ("\u{1b}[31m", "has a '\\u{1b}'"),
        ] {
            let error = text.parse::<Key>().unwrap_err().to_string();
            assert!(error.contains(reason) && error.contains("a key has 26"), "{text:?}: {error}");
        }
    }
}
