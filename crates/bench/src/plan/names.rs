//! The names that a type accepts, taken from its `Deserialize`, and the errors of unknown names.
//!
//! Plans, messages and errors share one definition: a field or variant that is added to a type is
//! known here at once.

use serde::de::{Deserialize, Deserializer, Visitor, value::Error as Stop};
use serde::forward_to_deserialize_any;

use crate::nearest::hint;

/// The fields of a struct or the variants of an enum, as plans write them.
pub(super) fn names_of<T: for<'de> Deserialize<'de>>() -> &'static [&'static str] {
    let mut names: &'static [&'static str] = &[];
    // It always stops with an error, because only the names are needed.
    let _ = T::deserialize(Names(&mut names));
    names
}

/// Whether a plan may use a text as a name.
pub(super) fn is_name(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_')
}

/// Returns `: did you mean "iterations"?`, or all known names if none is near.
pub(super) fn hint_or_all(wrong: &str, known: &[&str]) -> String {
    match hint(wrong, known.iter().copied()) {
        none if none.is_empty() && known.is_empty() => ": there is none".to_owned(),
        none if none.is_empty() => format!(": use one of {}", known.join(", ")),
        hint => hint,
    }
}

/// Refuses an unknown name: `unknown axis "siez_bytes": did you mean "size_bytes"?`.
pub(super) fn known(what: &str, name: &str, known: &[&str]) -> Result<(), String> {
    if known.contains(&name) {
        return Ok(());
    }
    Err(format!("unknown {what} {name:?}{}", hint_or_all(name, known)))
}

struct Names<'a>(&'a mut &'static [&'static str]);

impl<'de> Deserializer<'de> for Names<'_> {
    type Error = Stop;

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Stop> {
        Err(serde::de::Error::custom("only names are asked for"))
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Stop> {
        *self.0 = fields;
        self.deserialize_any(visitor)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Stop> {
        *self.0 = variants;
        self.deserialize_any(visitor)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct
        newtype_struct seq tuple tuple_struct map identifier ignored_any
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::point::Service;
    use measure::figure::Figure;

    #[test]
    fn names_come_from_the_types() {
        assert_eq!(names_of::<Service>(), ["RC", "UC", "UD"]);
        assert!(names_of::<Figure>().contains(&"where"));
        assert!(names_of::<u64>().is_empty());
    }

    #[test]
    fn the_nearest_name_is_suggested_and_a_far_one_is_not() {
        let known = ["duration", "iterations"];
        assert_eq!(hint_or_all("iteratons", &known), ": did you mean \"iterations\"?");
        assert_eq!(hint_or_all("zzz", &known), ": use one of duration, iterations");
    }
}
