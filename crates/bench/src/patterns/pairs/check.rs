//! What a plan must not ask of several pairs, and what only they have.

use crate::Error;
use crate::axis;
use crate::pattern::check::Check;
use crate::point::{Carrier, Length, Operation, RAW_SAMPLES_MAX, Service, Traffic};

impl Check<'_> {
    /// Checks an experiment of several pairs.
    pub(crate) fn pairs(&self) -> Result<(), Error> {
        if self.largest(axis::QUEUE_PAIRS.row) > 1 {
            let why = "each pair is a process with one, as the paper has it";
            return self.refuse("queue_pairs", "several queue pairs of each pair", why);
        }
        let traffic = self.0.axes.get(axis::TRAFFIC);
        if traffic.contains(&Traffic::PingPong) {
            self.together()?;
        }
        if traffic.contains(&Traffic::Stream) {
            self.floods()?;
        }
        Ok(())
    }

    /// Messages that all pairs begin together.
    fn together(&self) -> Result<(), Error> {
        match self.0.length {
            Length::Duration(_) => {
                let why =
                    "all pairs begin each message together, so they need the same number: give iterations";
                self.refuse("duration", "pairs that take turns for a time", why)
            }
            Length::Iterations(n) if n > RAW_SAMPLES_MAX => {
                let why = "samples of all pairs are put together";
                self.refuse("iterations", &format!("more than {RAW_SAMPLES_MAX} messages of a pair"), why)
            }
            Length::Iterations(_) => Ok(()),
        }
    }

    /// Floods, of which what is acknowledged counts.
    fn floods(&self) -> Result<(), Error> {
        let services = self.0.axes.get(axis::SERVICE);
        let silent = match self.0.carrier {
            Carrier::Udp => "UDP acknowledges nothing",
            Carrier::Sctp => "SCTP tells no program",
            _ => "",
        };
        if !silent.is_empty() {
            let why = format!("what is acknowledged counts in the common time, and {silent}: use tcp");
            let what = format!("streams of pairs over {}", self.0.carrier.name());
            return self.refuse("endpoint", &what, &why);
        }
        if let Some(service) = services.iter().find(|service| **service != Service::Rc) {
            let why = "what is acknowledged counts in the common time, and only RC acknowledges";
            return self.refuse("service", &format!("streams of pairs over {}", service.word()), why);
        }
        let operations = self.0.axes.get(axis::OPERATION);
        if operations.contains(&Operation::SendImm) {
            return self.refuse("operation", "a stream of Send with immediate", "use send");
        }
        Ok(())
    }
}
