//! Types whose values are words: one definition for plans, records, the command line and its help.

use measure::conditions::IpoibMode;

/// One of the words of a [`Choice`].
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Variant {
    /// The word that plans, records and the command line share.
    pub word: &'static str,
    /// The doc comment of the variant. Each line starts with a blank.
    documentation: &'static str,
}

impl Variant {
    /// Its help: the doc comment without the last full stop.
    pub fn help(&self) -> &'static str {
        self.documentation.trim().trim_end_matches('.')
    }
}

/// A type whose values are words.
pub trait Choice: Sized + 'static {
    /// Its values, in the order in which they are defined.
    const VALUES: &'static [Self];
    /// Its words, in the same order.
    const VARIANTS: &'static [Variant];
}

/// Defines a type whose values are words. The doc comment of a variant is also its help.
macro_rules! choice {
    (
        $(#[$of:meta])*
        pub enum $name:ident { $($(#[doc = $documentation:literal])+ $variant:ident = $word:literal,)+ }
    ) => {
        $(#[$of])*
        #[derive(Clone, Copy, Debug, serde::Deserialize, Eq, PartialEq, serde::Serialize)]
        pub enum $name {
            $($(#[doc = $documentation])+ #[serde(rename = $word)] $variant,)+
        }

        impl $name {
            /// Its word in plans, records and on the command line.
            pub const fn word(self) -> &'static str {
                match self {
                    $(Self::$variant => $word,)+
                }
            }
        }

        impl $crate::point::Choice for $name {
            const VALUES: &'static [Self] = &[$(Self::$variant,)+];
            const VARIANTS: &'static [$crate::point::Variant] =
                &[$($crate::point::Variant::new($word, concat!($($documentation),+)),)+];
        }
    };
}

pub(crate) use choice;

impl Variant {
    /// A word and its documentation.
    pub(crate) const fn new(word: &'static str, documentation: &'static str) -> Self {
        Self { word, documentation }
    }
}

/// Written out here because `IpoibMode` is defined in a crate below this one.
impl Choice for IpoibMode {
    const VALUES: &'static [Self] = &[Self::Connected, Self::Datagram];
    const VARIANTS: &'static [Variant] = &[
        Variant::new("connected", "Reliable connections, which allow long packets."),
        Variant::new("datagram", "Unreliable datagrams. Packets are no longer than the link's MTU."),
    ];
}

#[cfg(test)]
mod tests {
    use serde::Serialize;
    use serde::de::DeserializeOwned;

    use super::*;
    use crate::point::{Operation, Service, Step};

    fn are_read_and_written<T: Choice + DeserializeOwned + Serialize>() {
        for variant in T::VARIANTS {
            let value: T = serde_json::from_value(variant.word.into()).expect(variant.word);
            assert_eq!(serde_json::to_value(value).expect("a word"), variant.word);
            assert!(!variant.help().is_empty() && !variant.help().contains("  "), "{variant:?}");
        }
    }

    #[test]
    fn words_are_those_of_plans_and_documentation_is_help() {
        are_read_and_written::<IpoibMode>();
        are_read_and_written::<Operation>();
        are_read_and_written::<Step>();
        assert_eq!(Service::Rc.word(), "RC");
        assert_eq!(Service::VARIANTS[0].help(), "Reliable connection");
    }
}
