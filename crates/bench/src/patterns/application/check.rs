//! What a plan must not ask of applications.

use crate::Error;
use crate::pattern::check::Check;
use crate::point::Carrier;

/// Checks an experiment with applications.
pub(super) fn experiment(check: &Check<'_>) -> Result<(), Error> {
    if check.0.carrier != Carrier::Program {
        let what = format!("programs over {}", check.0.carrier.name());
        let why = "the program chooses its network itself: leave endpoint out, and give mpi_transport or a [[mode]]";
        return check.refuse("endpoint", &what, why);
    }
    let why =
        "the program sends its own messages: leave the axis out, and put a placeholder into the command";
    check.only_own_axes("a program", why)?;
    check.no_length("a program", "a program runs once, until it ends: give repetitions instead")
}
