//! What a plan must not ask of message libraries.

use crate::Error;
use crate::axis;
use crate::endpoint::header::HEADER_BYTES;
use crate::endpoints;
use crate::pattern::check::Check;
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
            let names: Vec<_> =
                Pattern::all().filter(carries).map(|pattern| format!("{:?}", pattern.name())).collect();
            let what = format!("the pattern {:?} over {}", self.0.pattern.name(), carrier.name());
            return self.refuse("endpoint", &what, &format!("message libraries carry {}", names.join(", ")));
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
