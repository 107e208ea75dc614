//! What is compared: the tests of perftest and qperf, the benchmark of ours that is their peer, and the sizes.

use super::table::{Quantity, Row};
use super::{perftest, qperf};

/// How much is measured.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Amount {
    Full,
    Quick,
}

/// Whose test it is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Tool {
    Perftest,
    Qperf,
}

/// A test of theirs over some sizes, and our benchmark of the same.
#[derive(Clone, Debug)]
pub(super) struct Group {
    pub(super) tool: Tool,
    /// Their name for it.
    pub(super) test: &'static str,
    pub(super) service: &'static str,
    pub(super) quantity: Quantity,
    /// Our words for it, `lat send`, and what else it takes to be the same.
    pub(super) ours: &'static [&'static str],
    /// Size in bytes and messages.
    pub(super) sizes: Vec<(u64, u64)>,
}

impl Group {
    /// Its name in files and messages.
    pub(super) fn name(&self) -> String {
        format!("{}-{}", self.test, self.service)
    }

    /// A row for each size.
    pub(super) fn rows(&self) -> impl Iterator<Item = Row> + '_ {
        self.sizes.iter().map(|(size, _)| Row::new(self.test, self.service, *size, self.quantity))
    }

    /// Measures all sizes with their tool.
    pub(super) fn measure_theirs(&self, device: &str, rows: &mut [Row]) {
        for (size, messages) in &self.sizes {
            let measured = match self.tool {
                Tool::Perftest => perftest::measure(self, device, *size, *messages),
                Tool::Qperf => qperf::measure(self, device, *size),
            };
            match (self.row(rows, *size), measured) {
                (Some(row), Ok(value)) => row.theirs.push(value),
                (Some(row), Err(error)) => row.failures.push(format!("{}: {error:#}", self.test)),
                (None, _) => {}
            }
        }
    }

    /// The row of a size.
    pub(super) fn row<'a>(&self, rows: &'a mut [Row], size: u64) -> Option<&'a mut Row> {
        rows.iter_mut().find(|row| row.is(self.test, self.service, size))
    }
}

/// Emulation moves some tens of megabytes a second, so that large messages are few.
fn messages(size: u64, quantity: Quantity) -> u64 {
    match (quantity, size) {
        (Quantity::Latency | Quantity::MeanLatency, 0..8192) => 1000,
        (Quantity::Latency | Quantity::MeanLatency, _) => 200,
        (Quantity::Rate, 0..8192) => 2000,
        (Quantity::Rate, _) => 300,
    }
}

/// All groups whose name has `only` in it.
pub(super) fn groups(amount: Amount, only: &str) -> Vec<Group> {
    let full = amount == Amount::Full;
    let sizes: &[u64] = if full { &[2, 64, 512, 1024, 4096, 16384, 65536] } else { &[2, 4096] };
    let mut groups = Vec::new();
    let mut add = |tool, test, service, quantity, ours: &'static [&'static str]| {
        // A datagram is one packet, of 1024 B on an interface whose packets have 1500; an atomic has 8 B.
        let largest = if service == "UD" { 1024 } else { u64::MAX };
        let mut sizes: Vec<u64> = match ours.get(1) {
            Some(&"atomic") => vec![8],
            _ => sizes.iter().map(|size| *size.min(&largest)).collect(),
        };
        sizes.dedup();
        let sizes = sizes.into_iter().map(|size| (size, messages(size, quantity))).collect();
        groups.push(Group { tool, test, service, quantity, ours, sizes });
    };
    use Quantity::{Latency, MeanLatency, Rate};
    use Tool::{Perftest, Qperf};
    for service in ["RC", "UC", "UD"] {
        add(Perftest, "ib_send_lat", service, Latency, &["lat", "send"]);
        add(Perftest, "ib_send_bw", service, Rate, &["bw", "send"]);
    }
    for service in ["RC", "UC"] {
        add(Perftest, "ib_write_lat", service, Latency, &["lat", "write"]);
        add(Perftest, "ib_write_bw", service, Rate, &["bw", "write"]);
    }
    add(Perftest, "ib_read_lat", "RC", Latency, &["lat", "read"]);
    add(Perftest, "ib_read_bw", "RC", Rate, &["bw", "read"]);
    add(Perftest, "ib_atomic_lat", "RC", Latency, &["lat", "atomic"]);
    // qperf makes no address handles with global routes, so that on Ethernet only its RC tests run, through RDMA CM; it
    // knows means alone.
    add(Qperf, "rc_lat", "RC", MeanLatency, &["lat", "send", "-R"]);
    add(Qperf, "rc_rdma_write_poll_lat", "RC", MeanLatency, &["lat", "write", "-R"]);
    add(Qperf, "rc_rdma_read_lat", "RC", MeanLatency, &["lat", "read", "-R"]);
    add(Qperf, "rc_bw", "RC", Rate, &["bw", "send", "-R"]);
    add(Qperf, "rc_rdma_write_bw", "RC", Rate, &["bw", "write", "-R"]);
    add(Qperf, "rc_rdma_read_bw", "RC", Rate, &["bw", "read", "-R"]);
    if !full {
        // One of each kind is enough to notice a change.
        groups.retain(|group| group.tool == Perftest || ["rc_lat", "rc_bw"].contains(&group.test));
        groups.iter_mut().filter(|group| group.tool == Qperf).for_each(|group| group.sizes.truncate(1));
    }
    groups.retain(|group| group.name().contains(only));
    groups
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_fit_their_services() {
        for amount in [Amount::Full, Amount::Quick] {
            let groups = groups(amount, "");
            assert!(groups.iter().all(|group| !group.sizes.is_empty()));
            let largest = |service: &str| {
                let of = groups.iter().filter(|group| group.service == service);
                of.flat_map(|group| &group.sizes).map(|(size, _)| *size).max()
            };
            let largest_of_rc = if amount == Amount::Full { 65536 } else { 4096 };
            assert_eq!((largest("UD"), largest("RC")), (Some(1024), Some(largest_of_rc)));
            let atomic = groups.iter().find(|group| group.test == "ib_atomic_lat").unwrap();
            assert_eq!(atomic.sizes, [(8, 1000)]);
        }
        assert!(groups(Amount::Full, "write_lat").iter().all(|group| group.test.contains("write_lat")));
    }
}
