//! What a plan must not ask of pairs.

use crate::Error;
use crate::axis;
use crate::pattern::check::Check;
use crate::point::{Carrier, Length, Operation, RAW_SAMPLES_MAX, Service, Traffic};

/// Checks an experiment of several pairs.
pub(super) fn experiment(check: &Check<'_>) -> Result<(), Error> {
    let why = "each pair is a process with one queue pair, as in Sur et al. 2007";
    check.one(axis::QUEUE_PAIRS.row, "several queue pairs of each pair", why)?;
    if check.has(axis::TRAFFIC, Traffic::PingPong) {
        together(check)?;
    }
    if check.has(axis::TRAFFIC, Traffic::Stream) {
        floods(check)?;
    }
    Ok(())
}

/// Checks messages that all pairs start together.
fn together(check: &Check<'_>) -> Result<(), Error> {
    match check.0.length {
        Length::Duration(_) => {
            let why = "all pairs start each message together, so they need the same number: give iterations";
            check.refuse("duration", "ping-pong of pairs for a duration", why)
        }
        Length::Iterations(n) if n > RAW_SAMPLES_MAX => {
            let why = "the coordinator merges the samples of all pairs";
            check.refuse("iterations", &format!("more than {RAW_SAMPLES_MAX} messages of a pair"), why)
        }
        Length::Iterations(_) => Ok(()),
    }
}

/// Checks streams, of which only acknowledged messages count.
fn floods(check: &Check<'_>) -> Result<(), Error> {
    let services = check.0.axes.get(axis::SERVICE);
    let silent = match check.0.carrier {
        Carrier::Udp => "UDP acknowledges nothing",
        Carrier::Sctp => "SCTP does not report acknowledgements",
        _ => "",
    };
    if !silent.is_empty() {
        let why = format!("only acknowledged messages count in the common time, and {silent}: use tcp");
        let what = format!("streams of pairs over {}", check.0.carrier.name());
        return check.refuse("endpoint", &what, &why);
    }
    if let Some(service) = services.iter().find(|service| **service != Service::Rc) {
        let why = "only acknowledged messages count in the common time, and only RC acknowledges: use RC";
        return check.refuse("service", &format!("streams of pairs over {}", service.word()), why);
    }
    if check.has(axis::OPERATION, Operation::SendImm) {
        return check.refuse("operation", "a stream of Send with immediate", "use send");
    }
    Ok(())
}
