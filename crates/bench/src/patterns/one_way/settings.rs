//! The settings of one-way messages.

use super::choices::Stamp;
use crate::pattern::defaults::BURST;
use crate::pattern::settings::settings;

settings! {
    usual {
        burst: Option<u32> = BURST or Some(BURST),
        pause_ns: u64 = PAUSE_NS or 0,
        stamp: Stamp = STAMP or Stamp::Submitted,
    }
    messages {
        BUFFERS,
        RX_FILL,
        SEND_POLL,
    }
}
