//! The registry of backends: the one place that names them.

use std::sync::OnceLock;

use verbs::{Provider, system};

/// Every provider of verbs that can be used here, the preferred first: what reaches a network
/// before what does not.
pub(crate) fn providers() -> &'static [&'static Provider] {
    static PROVIDERS: OnceLock<Vec<&'static Provider>> = OnceLock::new();
    PROVIDERS.get_or_init(|| system::provider().into_iter().chain([&softdev::PROVIDER]).collect())
}

/// Why a provider cannot be used here, in a sentence each.
pub(crate) fn missing() -> Vec<String> {
    system::provider().err().map(ToString::to_string).into_iter().collect()
}
