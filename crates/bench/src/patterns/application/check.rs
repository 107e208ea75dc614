//! What a plan must not ask of a program of somebody else.

use crate::Error;
use crate::pattern::check::Check;
use crate::point::Carrier;

/// Checks an experiment with programs.
pub(super) fn experiment(check: &Check<'_>) -> Result<(), Error> {
    if check.0.carrier != Carrier::Program {
        let what = format!("programs over {}", check.0.carrier.name());
        let why = "a program decides that itself: leave it out, and give mpi_transport or a [[mode]]";
        return check.refuse("endpoint", &what, why);
    }
    let why = "a program has messages of its own: put a placeholder into its command, and leave it out";
    check.only_own_axes("a program", why)?;
    check.no_length("a program", "a program runs once, until it ends: give repetitions, and leave it out")
}
