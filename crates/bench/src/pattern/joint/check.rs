//! What a plan must not ask of calls that all ranks make together.

use crate::Error;
use crate::pattern::check::Check;
use crate::point::{Length, RAW_SAMPLES_MAX};

/// Refuses numbers of calls that ranks cannot have in common, or keep.
///
/// # Errors
/// Why, and what to give.
pub(crate) fn length(check: &Check<'_>) -> Result<(), Error> {
    match check.0.length {
        Length::Duration(_) => {
            let why = "all ranks make each call together, so they need the same number: give iterations";
            check.refuse("duration", "calls for a time", why)
        }
        Length::Iterations(n) if n > RAW_SAMPLES_MAX => {
            let why = "the stamps of all ranks are put together";
            check.refuse("iterations", &format!("more than {RAW_SAMPLES_MAX} calls"), why)
        }
        Length::Iterations(_) => Ok(()),
    }
}
