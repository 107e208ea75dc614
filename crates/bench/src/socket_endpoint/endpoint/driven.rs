//! The worker's operations on sockets before and after a pattern runs.

use std::collections::BTreeMap;
use std::time::Duration;

use super::{LOST_AFTER, SocketEndpoint};
use crate::Error;
use crate::alarm::Alarm;
use crate::endpoint::capabilities::Capabilities;
use crate::endpoint::connecting::DrivenEndpoint;
use crate::endpoint::header::HEADER_BYTES;
use crate::host_counters::Ways;
use crate::socket_endpoint::drain::Drain;
use crate::socket_endpoint::lane::Lane;
use crate::socket_endpoint::zero_copy::ZeroCopyBuffers;

impl DrivenEndpoint for SocketEndpoint {
    const CAPABILITIES: Capabilities = Capabilities::COUNTED.and(Capabilities::ADDRESSED);

    fn start(&mut self, timeout_s: f64) -> Result<(), Error> {
        self.limits.start(Duration::from_secs_f64(timeout_s));
        if self.sleeps {
            let until = self.next_look();
            let first = Duration::from_nanos(self.clock.ns(until.saturating_sub(self.clock.now().0)));
            self.alarm = Some(Alarm::set(first, LOST_AFTER)?.following(until));
        }
        if self.drains {
            self._drain = Some(Drain::start(&self.lanes)?);
        }
        Ok(())
    }

    /// The thread that drains a load keeps running, because the loader may not have finished.
    fn stop(&mut self) {
        self.alarm = None;
    }

    fn ways(&self) -> Ways {
        let interfaces = self.paths.iter().filter_map(|path| path.interface.clone()).collect();
        Ways { interfaces, ports: Vec::new() }
    }

    fn counters(&self) -> BTreeMap<String, u64> {
        let mut counters = BTreeMap::new();
        let mut count = |name: &str, number: u64| *counters.entry(name.to_owned()).or_default() += number;
        for lane in &self.lanes {
            if let Some((calls, copied)) = lane.zero_copy().map(ZeroCopyBuffers::counts) {
                count("sends_lent", calls);
                count("sends_copied_anyway", copied);
            }
            let Lane::Datagram(datagram) = lane else { continue };
            if let Some(stop_and_wait) = &datagram.stop_and_wait {
                if stop_and_wait.asks {
                    // A message that was sent again and answered twice was late and not lost.
                    count("messages_lost", stop_and_wait.repeated.saturating_sub(stop_and_wait.duplicates));
                }
                count("messages_duplicate", stop_and_wait.duplicates);
            } else if datagram.mode.is_lossy && datagram.mode.size >= HEADER_BYTES {
                count("messages_duplicate", datagram.track.duplicates);
                count("messages_reordered", datagram.track.reordered);
            }
        }
        counters
    }
}
