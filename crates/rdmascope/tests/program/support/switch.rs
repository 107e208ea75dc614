//! Network namespaces behind a switch, as the hosts of a fleet on one machine.

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use super::namespaces::run;
use super::skip;

/// Namespaces, each with a link to a switch, until the value is dropped.
pub(crate) struct Switch {
    pub(crate) names: Vec<String>,
    /// The namespace of the switch.
    switch: String,
}

/// Limits the buffers of a connection (tcp(7)): a slow link would take far longer to empty those
/// that the kernel has by itself, of megabytes, than a measurement takes to fill them.
const SMALL_BUFFERS: &str =
    "echo 4096 65536 65536 | tee /proc/sys/net/ipv4/tcp_wmem > /proc/sys/net/ipv4/tcp_rmem";

static NUMBER: AtomicU32 = AtomicU32::new(0);

impl Switch {
    /// Makes the namespaces; none if that is not allowed or not possible, which is reported.
    pub(crate) fn new(hosts: usize) -> Option<Self> {
        let number = std::process::id().wrapping_mul(16).wrapping_add(NUMBER.fetch_add(1, Relaxed));
        let names = (1..=hosts).map(|host| format!("rf{number}h{host}")).collect();
        let switch = Self { names, switch: format!("rf{number}s") };
        match switch.make() {
            Ok(()) => Some(switch),
            Err(why) => {
                skip("namespaces", &why);
                None
            }
        }
    }

    fn make(&self) -> Result<(), String> {
        let at = &self.switch;
        run(&["ip", "netns", "add", at])?;
        run(&["ip", "-n", at, "link", "add", "switch0", "type", "bridge"])?;
        run(&["ip", "-n", at, "link", "set", "switch0", "up"])?;
        for (number, name) in (1..).zip(&self.names) {
            let port = format!("port{number}");
            run(&["ip", "netns", "add", name])?;
            let pair = ["type", "veth", "peer", "name", &port, "netns", at];
            run(&[&["ip", "link", "add", "link0", "netns", name][..], &pair].concat())?;
            run(&["ip", "-n", at, "link", "set", &port, "master", "switch0", "up"])?;
            run(&["ip", "-n", name, "address", "add", &format!("10.98.8.{number}/24"), "dev", "link0"])?;
            run(&["ip", "-n", name, "link", "set", "link0", "up"])?;
            run(&["ip", "-n", name, "link", "set", "lo", "up"])?;
            run(&["ip", "netns", "exec", name, "sh", "-c", SMALL_BUFFERS])?;
        }
        Ok(())
    }

    /// Sets the queue of what a host sends, in the syntax of tc(8).
    ///
    /// # Errors
    /// If the kernel does not support it: the message of `tc`.
    pub(crate) fn shape(&self, host: usize, queue: &str) -> Result<(), String> {
        let words = format!("tc -n {} qdisc replace dev link0 root {queue}", self.names[host]);
        run(&words.split(' ').collect::<Vec<_>>()).map(drop)
    }
}

impl Drop for Switch {
    fn drop(&mut self) {
        for name in self.names.iter().chain([&self.switch]) {
            // The namespace may not have been made.
            let _ = run(&["ip", "netns", "delete", name]);
        }
    }
}
