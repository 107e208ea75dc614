//! What a plan must not ask of halo exchanges.

use crate::Error;
use crate::pattern::check::Check;
use crate::pattern::joint;

/// Checks an experiment of halo exchanges.
pub(super) fn experiment(check: &Check<'_>) -> Result<(), Error> {
    joint::experiment(check)
}
