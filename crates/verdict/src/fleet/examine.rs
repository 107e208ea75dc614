//! The procedure.

use super::{Examined, Hosts, Options, Probe};

/// Measures a fleet and says who is to blame.
///
/// # Errors
///
/// Only those of the probe.
pub fn examine<P: Probe>(_hosts: &Hosts, _options: &Options, _probe: &mut P) -> Result<Examined, P::Error> {
    todo!()
}
