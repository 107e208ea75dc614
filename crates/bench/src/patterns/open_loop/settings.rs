//! The settings of messages at a set rate, and of the load.

use super::choices::Load;
use crate::pattern::defaults::{RATE_HZ, SIZE_BYTES_STREAM};
use crate::pattern::settings::settings;

settings! {
    usual {
        rate_hz: u64 = RATE_HZ or RATE_HZ,
        loaders: u32 = LOADERS or 0,
    }
    asked {
        load: Load = LOAD or LOAD,
        load_bytes: u64 = LOAD_BYTES or LOAD_BYTES,
    }
}

/// The default load.
pub(super) const LOAD: Load = Load::Incast;
/// The default payload of a message of the load.
pub(super) const LOAD_BYTES: u64 = SIZE_BYTES_STREAM;
