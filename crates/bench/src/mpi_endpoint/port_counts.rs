//! The packets that ports of RDMA devices have sent. They show which port carries messages if the
//! library does not report it.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use crate::host_counters::number;

/// Fewer messages than these prove nothing, because other programs use a port as well.
const MESSAGES_MIN: u64 = 100;

/// The packets that the ports of this host have sent, by device and port (`mlx5_0:1`).
#[derive(Clone, Debug, Default)]
pub(super) struct PortCounts(BTreeMap<String, u64>);

impl PortCounts {
    /// Returns the packets that the ports of the kernel's devices have sent so far.
    pub(super) fn now() -> Self {
        Self::of(Path::new("/sys/class/infiniband"))
    }

    /// Reads the packets from a tree of files. Adapters count in `counters`, Soft-RoCE in
    /// `hw_counters`.
    fn of(class: &Path) -> Self {
        let names = |path: &Path| {
            let entries = fs::read_dir(path).into_iter().flatten().flatten();
            entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect::<Vec<_>>()
        };
        let mut all = BTreeMap::new();
        for device in names(class) {
            let ports = class.join(&device).join("ports");
            for port in names(&ports) {
                let files = ["counters/port_xmit_packets", "hw_counters/sent_pkts"];
                let sent = files.iter().find_map(|file| number(&ports.join(&port).join(file)));
                all.extend(sent.map(|sent| (format!("{device}:{port}"), sent)));
            }
        }
        Self(all)
    }

    /// Returns the ports that have since sent at least one packet for each of `messages` messages.
    pub(super) fn carriers(&self, before: &Self, messages: u64) -> Vec<String> {
        let sent = |(name, now): &(&String, &u64)| {
            let before = before.0.get(*name)?;
            now.checked_sub(*before)
        };
        let carries = |port: &(&String, &u64)| sent(port).is_some_and(|sent| sent >= messages);
        if messages < MESSAGES_MIN {
            return Vec::new();
        }
        self.0.iter().filter(carries).map(|(name, _)| name.clone()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(class: &Path, port: &str, file: &str, packets: u64) {
        let path = class.join(port).join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, format!("{packets}\n")).unwrap();
    }

    #[test]
    fn a_port_that_has_sent_as_many_packets_carries_the_messages() {
        let directory = tempfile::tempdir().unwrap();
        let class = directory.path();
        let write_all = |adapter: u64, other: u64, soft: u64| {
            write(class, "mlx5_0/ports/1", "counters/port_xmit_packets", adapter);
            write(class, "mlx5_0/ports/2", "counters/port_xmit_packets", other);
            write(class, "rxe0/ports/1", "hw_counters/sent_pkts", soft);
        };
        write_all(1000, 50, 7);
        let before = PortCounts::of(class);
        assert_eq!(before.0.len(), 3);
        write_all(3000, 60, 1006);
        let now = PortCounts::of(class);
        assert_eq!(now.carriers(&before, 1000), ["mlx5_0:1"]);
        assert_eq!(now.carriers(&before, 999), ["mlx5_0:1", "rxe0:1"]);
        assert!(now.carriers(&before, 2001).is_empty());
        assert!(now.carriers(&before, 9).is_empty(), "ten packets may belong to any program");
        // A counter that was reset proves nothing, nor does a port that was absent before.
        write_all(10, 60, 7);
        assert!(PortCounts::of(class).carriers(&before, 100).is_empty());
        assert!(now.carriers(&PortCounts::default(), 100).is_empty());
        assert!(PortCounts::of(Path::new("/no/such/class")).0.is_empty());
    }
}
