//! What a plan must not ask of collective calls.

use crate::Error;
use crate::axis;
use crate::pattern::check::Check;
use crate::point::{Length, Operation, Poll, RAW_SAMPLES_MAX, Service, Setup};

/// Refuses experiments that no pattern of collective calls can measure.
///
/// # Errors
/// The reason, and what to change.
pub(crate) fn experiment(check: &Check<'_>) -> Result<(), Error> {
    length(check)?;
    if check.0.carrier.is_verbs() { over_verbs(check) } else { Ok(()) }
}

/// Refuses operations other than RDMA Writes that arrive for certain and whose target polls.
fn over_verbs(check: &Check<'_>) -> Result<(), Error> {
    if let Some(service) = check.0.axes.get(axis::SERVICE).into_iter().find(|one| *one != Service::Rc) {
        let what = format!("collective calls over {}", service.word());
        return check.refuse("service", &what, "each message must arrive: use RC");
    }
    if let Some(other) = check.operation(|operation| *operation != Operation::Write) {
        let why = "ranks write to each other's memory: leave operation out";
        return check.refuse("operation", &format!("collective calls by {}", other.name()), why);
    }
    let sleeps = check.0.axes.get(axis::POLL).into_iter().any(|poll| poll != Poll::Busy);
    let sleeps_for_sends = check.0.axes.get(axis::SEND_POLL).into_iter().flatten().any(|poll| poll.sleeps());
    if sleeps || sleeps_for_sends {
        let why = "only polling the memory shows that an RDMA Write has arrived: use poll busy";
        let key = if sleeps { "poll" } else { "send_poll" };
        return check.refuse(key, "collective calls whose ranks sleep", why);
    }
    if check.has(axis::SETUP, Setup::RdmaCm) {
        let why =
            "RDMA CM needs one rank of each pair to listen, and these ranks are symmetric: leave setup out";
        return check.refuse("setup", "collective calls with RDMA CM", why);
    }
    check.one(
        axis::QUEUE_PAIRS.row,
        "several queue pairs between two ranks",
        "one queue pair keeps the order of writes",
    )?;
    check.one(axis::SGE.row, "messages of several elements", "each message is contiguous in memory")
}

/// Refuses numbers of calls that differ between ranks, or whose stamps do not fit into memory.
fn length(check: &Check<'_>) -> Result<(), Error> {
    match check.0.length {
        Length::Duration(_) => {
            let why = "all ranks make each call together, so they need the same number: give iterations";
            check.refuse("duration", "collective calls for a duration", why)
        }
        Length::Iterations(n) if n > CALLS_MAX => {
            let why = "the coordinator compares the stamps of all ranks";
            check.refuse("iterations", &format!("more than {CALLS_MAX} calls"), why)
        }
        Length::Iterations(_) => Ok(()),
    }
}

/// For each call, a rank reports two stamps, perhaps that it was late, and the stamps that compare
/// clocks.
const CALLS_MAX: u64 = RAW_SAMPLES_MAX / 4;

#[cfg(test)]
mod tests {
    use crate::plan::{Options, Plan, Settings, resolve};
    use crate::point::Pattern;

    #[test]
    fn a_rank_keeps_no_more_stamps_than_it_can_tell() {
        let of = |calls: u64| {
            let settings = Settings { iterations: Some(calls), ..Settings::default() };
            let plan = Plan::new("joint", "Joint").experiment("one", Pattern::COLLECTIVE, settings);
            resolve(&plan, &Options::default())
        };
        assert!(of(super::CALLS_MAX).is_ok());
        let refused = of(super::CALLS_MAX + 1).unwrap_err().to_string();
        assert!(refused.contains("more than 1048576 calls"), "{refused}");
    }
}
