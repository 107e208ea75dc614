//! What a plan must not ask of MPI.

use verbs::LinkModel;

use super::endpoint::MpiEndpoint;
use crate::Error;
use crate::axis::{self, AxisRow};
use crate::endpoint::connecting::DrivenEndpoint;
use crate::pattern::check::{Check, patterns};
use crate::point::{MpiCall, MpiOperation, MpiSync, MpiTransport, Pattern, Poll, Traffic};

/// Checks an experiment that MPI carries.
pub(super) fn experiment(check: &Check<'_>) -> Result<(), Error> {
    let carries = |pattern: &Pattern| MpiEndpoint::CAPABILITIES.contain(pattern.row().needs);
    if !carries(&check.0.pattern) {
        let what = format!("the pattern {:?} over MPI", check.0.pattern.name());
        let why = format!("MPI carries {}", patterns(carries).join(", "));
        return check.refuse("endpoint", &what, &why);
    }
    if check.has(axis::POLL, Poll::Event) {
        let why = "the library decides how its calls wait: leave it out";
        return check.refuse("poll", "MPI that sleeps for messages", why);
    }
    let floods = check.0.pattern.row().floods || check.has(axis::TRAFFIC, Traffic::Stream);
    if floods && check.has(axis::MPI_CALL, MpiCall::Blocking) {
        let why = "a flood keeps several messages under way: use nonblocking";
        return check.refuse("mpi_call", "a stream of blocking calls", why);
    }
    one_sided(check)?;
    if check.0.axes.numbers(axis::LOADERS.row).any(|loaders| loaders > 0) {
        let why =
            "a rank takes messages of MPI only in its own calls, so nobody would take a load: give loaders 0";
        return check.refuse("loaders", "a load of messages of MPI", why);
    }
    link(check)?;
    match check.0.axes.get(axis::SIZE_BYTES).into_iter().find(|size| *size > BYTES_MAX) {
        Some(size) => {
            let why = format!("a count of MPI is an int: at most {BYTES_MAX} B");
            check.refuse("size_bytes", &format!("messages of {size} B over MPI"), &why)
        }
        None => Ok(()),
    }
}

/// Refuses settings of puts and gets for sends, and of sends for them.
fn one_sided(check: &Check<'_>) -> Result<(), Error> {
    let is_given = |row: &AxisRow| check.0.settings.axes.find(row.name).is_some();
    let operations = check.0.axes.get(axis::MPI_OPERATION);
    let Some(operation) = operations.iter().find(|operation| operation.is_one_sided()) else {
        if is_given(axis::MPI_SYNC.row) {
            let why = "a send is complete by itself: give mpi_operation put or get, or leave it out";
            return check.refuse("mpi_sync", "mpi_sync for sends", why);
        }
        return Ok(());
    };
    let word = operation.word();
    if operations.contains(&MpiOperation::Send) {
        let why =
            "only puts and gets have mpi_sync, and only sends mpi_call: give each an experiment of its own";
        return check.refuse("mpi_operation", &format!("send and {word} in one experiment"), why);
    }
    if is_given(axis::MPI_CALL.row) {
        let why = "it says how messages are sent and received: leave it out";
        return check.refuse("mpi_call", &format!("mpi_call for {word}"), why);
    }
    let is_counted = check.0.length.iterations().is_some();
    if check.goes_both_ways() && check.has(axis::MPI_SYNC, MpiSync::Fence) && !is_counted {
        let why = "both ranks make the same fences, so they need the same number: give iterations";
        return check.refuse("duration", "puts both ways that fences complete, for a time", why);
    }
    Ok(())
}

/// Refuses links that MPI does not take, or not as they are meant.
pub(crate) fn link(check: &Check<'_>) -> Result<(), Error> {
    let links: Vec<String> = check.0.axes.get(axis::LINK).into_iter().flatten().collect();
    let Some(first) = links.first() else { return Ok(()) };
    let is_verbs = |transport: &MpiTransport| *transport == MpiTransport::Verbs;
    let given = check.0.axes.get(axis::MPI_TRANSPORT);
    let transports = if given.is_empty() { vec![MpiTransport::Default] } else { given };
    if let Some(other) = transports.into_iter().find(|one| !is_verbs(one)) {
        let what = format!("the link {first:?} for MPI by mpi_transport {:?}", other.word());
        return check.refuse("link", &what, "only a device has a link: give mpi_transport verbs alone");
    }
    let is_lopsided = |link: &&String| link.parse().is_ok_and(|link: LinkModel| link.back_ns.is_some());
    match links.iter().find(is_lopsided) {
        Some(link) => {
            let why = "both ranks are started with the same link: leave back out";
            check.refuse("link", &format!("the link {link:?} for MPI"), why)
        }
        None => Ok(()),
    }
}

/// The largest count.
const BYTES_MAX: u64 = i32::MAX as u64;
