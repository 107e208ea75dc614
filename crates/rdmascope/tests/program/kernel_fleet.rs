//! A fleet whose links need a feature of the kernel.

use crate::fleet::slow_host;

/// Network namespaces behind a switch, one of which sends late (tc-netem(8)).
#[test]
fn a_host_behind_a_long_link_is_named() {
    slow_host("netem", &|switch| switch.shape(3, "netem limit 100000 delay 2ms"), "latency: ");
}
