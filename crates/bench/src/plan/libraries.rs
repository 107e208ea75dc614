//! What a plan must not ask of message libraries.

use crate::Error;
use crate::axis;
use crate::endpoint::header::HEADER_BYTES;
use crate::endpoints;
use crate::pattern::check::{Check, patterns};
use crate::point::Pattern;

impl Check<'_> {
    /// Checks an experiment over a message library.
    pub(super) fn libraries(&self) -> Result<(), Error> {
        let carrier = self.0.carrier;
        if !carrier.is_library() {
            return Ok(());
        }
        // No library tells what is acknowledged, nor connects more than two ranks.
        let carries = |pattern: &Pattern| endpoints::row(carrier).capabilities.contain(pattern.row().needs);
        if !carries(&self.0.pattern) {
            let what = format!("the pattern {:?} over {}", self.0.pattern.name(), carrier.name());
            let why = format!("message libraries carry {}", patterns(carries).join(", "));
            return self.refuse("endpoint", &what, &why);
        }
        match self.0.axes.get(axis::SIZE_BYTES).iter().find(|size| **size < HEADER_BYTES as u64) {
            Some(size) => {
                let why = format!("a message says its number in {HEADER_BYTES} bytes");
                self.refuse("size_bytes", &format!("messages of {size} B over {}", carrier.name()), &why)
            }
            None => Ok(()),
        }
    }
}
