//! What a plan must not ask of a program of somebody else.

use super::axes::ONLY;
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
    let given = check.0.settings.axes.iter().map(|axis| axis.row);
    if let Some(row) = given.into_iter().find(|row| !ONLY.iter().any(|known| known.name == row.name)) {
        let why = "a program has messages of its own: put a placeholder into its command, and leave it out";
        return check.refuse(row.name, &format!("{} of a program", row.name), why);
    }
    let settings = &check.0.settings;
    let messages = [
        ("iterations", settings.iterations.is_some()),
        ("duration", settings.duration_s.is_some()),
        ("warmup", settings.warmup.is_some()),
        ("bytes_max", settings.bytes_max.is_some()),
    ];
    match messages.into_iter().find(|(_, is_given)| *is_given) {
        Some((key, _)) => {
            let why = "a program runs once, until it ends: give repetitions, and leave it out";
            check.refuse(key, &format!("{key} of a program"), why)
        }
        None => Ok(()),
    }
}
