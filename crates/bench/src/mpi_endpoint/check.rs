//! What plans cannot ask of MPI.

use verbs::LinkModel;

use super::endpoint::MpiEndpoint;
use crate::Error;
use crate::axis::{self, AxisRow};
use crate::endpoint::connecting::DrivenEndpoint;
use crate::pattern::check::{Check, patterns};
use crate::point::{MpiCall, MpiOperation, MpiSync, MpiTransport, Pattern, Poll, Traffic};

/// Checks an experiment over MPI.
pub(super) fn experiment(check: &Check<'_>) -> Result<(), Error> {
    let carries = |pattern: &Pattern| MpiEndpoint::CAPABILITIES.contain(pattern.row().needs);
    if !carries(&check.0.pattern) {
        let what = format!("the pattern {:?} over MPI", check.0.pattern.name());
        let why = format!("MPI carries {}", patterns(carries).join(", "));
        return check.refuse("endpoint", &what, &why);
    }
    if check.has(axis::POLL, Poll::Event) {
        let why = "the MPI library decides how its calls wait: leave poll out";
        return check.refuse("poll", "MPI with poll event", why);
    }
    let floods = check.0.pattern.row().floods || check.has(axis::TRAFFIC, Traffic::Stream);
    if floods && check.has(axis::MPI_CALL, MpiCall::Blocking) {
        let why = "a stream keeps several messages outstanding: use nonblocking";
        return check.refuse("mpi_call", "a stream of blocking calls", why);
    }
    one_sided(check)?;
    if check.0.axes.numbers(axis::LOADERS.row).any(|loaders| loaders > 0) {
        let why = "MPI receives only inside calls of the receiving rank, so no rank would receive the load: give loaders 0";
        return check.refuse("loaders", "a load of MPI messages", why);
    }
    link(check)?;
    match check.0.axes.get(axis::SIZE_BYTES).into_iter().find(|size| *size > BYTES_MAX) {
        Some(size) => {
            let why = format!("MPI counts bytes in an int: at most {BYTES_MAX} B");
            check.refuse("size_bytes", &format!("messages of {size} B over MPI"), &why)
        }
        None => Ok(()),
    }
}

/// Refuses settings of puts and gets for sends, and settings of sends for puts and gets.
fn one_sided(check: &Check<'_>) -> Result<(), Error> {
    let is_given = |row: &AxisRow| check.0.settings.axes.find(row.name).is_some();
    let operations = check.0.axes.get(axis::MPI_OPERATION);
    let Some(operation) = operations.iter().find(|operation| operation.is_one_sided()) else {
        if is_given(axis::MPI_SYNC.row) {
            let why = "a send needs no synchronisation: give mpi_operation put or get, or leave mpi_sync out";
            return check.refuse("mpi_sync", "mpi_sync for sends", why);
        }
        return Ok(());
    };
    let word = operation.word();
    if operations.contains(&MpiOperation::Send) {
        let why = "mpi_sync is for puts and gets, and mpi_call for sends: use a separate experiment for each";
        return check.refuse("mpi_operation", &format!("send and {word} in one experiment"), why);
    }
    if is_given(axis::MPI_CALL.row) {
        let why = "it selects the calls of sends: leave it out";
        return check.refuse("mpi_call", &format!("mpi_call for {word}"), why);
    }
    let is_counted = check.0.length.iterations().is_some();
    if check.goes_both_ways() && check.has(axis::MPI_SYNC, MpiSync::Fence) && !is_counted {
        let why = "both ranks must call the same number of fences: give iterations";
        return check.refuse("duration", "puts both ways with fences and a duration", why);
    }
    Ok(())
}

/// Refuses links that MPI does not use, or would use differently than the plan means.
pub(crate) fn link(check: &Check<'_>) -> Result<(), Error> {
    let links: Vec<String> = check.0.axes.get(axis::LINK).into_iter().flatten().collect();
    let Some(first) = links.first() else { return Ok(()) };
    let is_verbs = |transport: &MpiTransport| *transport == MpiTransport::Verbs;
    let given = check.0.axes.get(axis::MPI_TRANSPORT);
    let transports = if given.is_empty() { vec![MpiTransport::Default] } else { given };
    if let Some(other) = transports.into_iter().find(|one| !is_verbs(one)) {
        let what = format!("the link {first:?} for MPI by mpi_transport {:?}", other.word());
        return check.refuse("link", &what, "a link needs a verbs device: give mpi_transport verbs only");
    }
    let is_lopsided = |link: &&String| link.parse().is_ok_and(|link: LinkModel| link.back_ns.is_some());
    match links.iter().find(is_lopsided) {
        Some(link) => {
            let why = "both ranks start with the same link: leave back out";
            check.refuse("link", &format!("the link {link:?} for MPI"), why)
        }
        None => Ok(()),
    }
}

/// The largest count.
const BYTES_MAX: u64 = i32::MAX as u64;
