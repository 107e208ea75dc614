//! What plans cannot ask of message libraries.

use super::endpoint::LibraryEndpoint;
use crate::Error;
use crate::endpoint::connecting::DrivenEndpoint;
use crate::endpoint::header::HEADER_BYTES;
use crate::pattern::check::{Check, patterns};
use crate::point::Pattern;

/// Checks an experiment over a message library.
pub(super) fn experiment(check: &Check<'_>) -> Result<(), Error> {
    let carrier = check.0.carrier;
    // No library reports what was acknowledged, or connects more than two ranks.
    let carries = |pattern: &Pattern| LibraryEndpoint::CAPABILITIES.contain(pattern.row().needs);
    if !carries(&check.0.pattern) {
        let what = format!("the pattern {:?} over {}", check.0.pattern.name(), carrier.name());
        let why = format!("message libraries carry {}", patterns(carries).join(", "));
        return check.refuse("endpoint", &what, &why);
    }
    match check.size_below(HEADER_BYTES as u64) {
        Some(size) => {
            let why = format!("the number of a message takes {HEADER_BYTES} bytes");
            check.refuse("size_bytes", &format!("messages of {size} B over {}", carrier.name()), &why)
        }
        None => Ok(()),
    }
}
