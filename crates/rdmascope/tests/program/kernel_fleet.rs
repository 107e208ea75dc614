//! A fleet whose links need a feature of the kernel.

use crate::fleet::slow_host;
use crate::support::switch::Switch;

/// Network namespaces behind a switch, one of which sends late (tc-netem(8)).
#[test]
fn a_host_behind_a_long_link_is_named() {
    let is_late = |switch: &Switch| switch.shape(3, "netem limit 100000 delay 2ms");
    // In a virtual machine, throughputs over a shorter time vary too much for any verdict.
    slow_host(8, "-D 100ms", "netem", &is_late, "latency: ");
}
