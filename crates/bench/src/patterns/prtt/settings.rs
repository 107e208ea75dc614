//! The settings of parametrised round trips.

use crate::pattern::defaults::BURST;
use crate::pattern::settings::settings;

settings! {
    usual {
        burst: Option<u32> = BURST or Some(BURST),
        pause_ns: u64 = PAUSE_NS or 0,
    }
}
