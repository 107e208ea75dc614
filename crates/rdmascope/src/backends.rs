//! The registry of backends: the one place that names them.

use verbs::Provider;

/// Every provider of verbs, the preferred first.
pub(crate) static PROVIDERS: &[&Provider] = &[&softdev::PROVIDER];
