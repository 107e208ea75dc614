//! The kinds of endpoints. Each has a folder and a line in the list below.

mod prepared;
#[cfg(test)]
mod simulated;

use self::prepared::PreparedParts;
use crate::Error;
use crate::endpoint::capabilities::Capabilities;
use crate::endpoint::connecting::DrivenEndpoint;
use crate::endpoint::kind::{EndpointKind, PreparedEndpoints, Site};
use crate::fault::PointError;
use crate::pattern::check::Check;
use crate::point::Carrier;
use crate::{
    application, library_endpoint, mpi_endpoint, shmem_endpoint, socket_endpoint, tool_endpoint,
    verbs_endpoint,
};

/// All kinds of endpoints.
static ROWS: &[Row] = &[
    Row {
        carriers: &[Carrier::Program],
        capabilities: Capabilities::PROGRAMS,
        check: application::check,
        prepare: application::prepare,
    },
    Row::of::<library_endpoint::Unconnected>(),
    Row::of::<mpi_endpoint::Unconnected>(),
    Row::of::<shmem_endpoint::Unopened>(),
    Row::of::<socket_endpoint::Unconnected>(),
    Row::of::<verbs_endpoint::Unconnected>(),
];

/// A kind of endpoint, without its types.
pub(crate) struct Row {
    carriers: &'static [Carrier],
    /// What its endpoints can do.
    pub(crate) capabilities: Capabilities,
    /// Refuses experiments that it cannot measure.
    pub(crate) check: fn(&Check<'_>) -> Result<(), Error>,
    prepare: fn(&mut Site<'_>) -> Result<Box<dyn PreparedEndpoints>, PointError>,
}

impl Row {
    const fn of<K: EndpointKind>() -> Self {
        Self {
            carriers: K::CARRIERS,
            capabilities: K::Connected::CAPABILITIES,
            check: K::check,
            prepare: prepare_as::<K>,
        }
    }
}

/// The kind of endpoint for a carrier.
pub(crate) fn row(carrier: Carrier) -> &'static Row {
    let row = ROWS.iter().find(|row| row.carriers.contains(&carrier));
    row.expect("each carrier has a kind of endpoint")
}

/// Sets up the endpoints of a rank for a point, or a tool that measures between the same addresses.
///
/// # Errors
/// Why the point cannot be measured here.
pub(crate) fn prepare(site: &mut Site<'_>) -> Result<Box<dyn PreparedEndpoints>, PointError> {
    if let Some(tool) = site.spec.tool {
        return Ok(Box::new(tool_endpoint::Unstarted::new(tool, site)?));
    }
    match site.spec.pattern.row().stands_in {
        Some(prepare) => prepare(site),
        None => (row(site.spec.message.endpoint).prepare)(site),
    }
}

fn prepare_as<K: EndpointKind>(site: &mut Site<'_>) -> Result<Box<dyn PreparedEndpoints>, PointError> {
    K::arrange(site)?;
    Ok(Box::new(PreparedParts::<K>::new(site)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::point::choice::Choice;

    #[test]
    fn each_carrier_has_one_kind_of_endpoint() {
        for carrier in Carrier::VALUES {
            let kinds = ROWS.iter().filter(|row| row.carriers.contains(carrier)).count();
            assert_eq!(kinds, 1, "{}", carrier.name());
        }
    }
}
