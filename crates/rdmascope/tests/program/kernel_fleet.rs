//! A fleet whose links need a feature of the kernel.

use crate::fleet::{is_healthy, is_named};
use crate::support::switch::Switch;
use crate::support::{Scratch, skip};

/// Network namespaces behind a switch, one of which sends late (tc-netem(8)). Without it, the
/// throughputs of an emulated machine vary too much for any verdict.
#[test]
fn the_host_with_a_long_link_is_named() {
    let scratch = Scratch::alone();
    if let Some(switch) = Switch::new(8) {
        is_named(&scratch, &switch, "100", "netem limit 100000 delay 2ms", "latency: ");
    }
}

/// The same with links that are equally long and slow: the limits alone decide, and not the
/// emulated machine. A latency has few messages, because each of them takes a millisecond.
#[test]
fn none_of_hosts_with_equally_long_links_is_named() {
    let scratch = Scratch::alone();
    let Some(switch) = Switch::new(8) else { return };
    let queue = "netem limit 100000 rate 50mbit delay 300us";
    match (0..switch.names.len()).try_for_each(|host| switch.shape(host, queue)) {
        Ok(()) => is_healthy(&scratch, &switch, "10"),
        Err(why) => skip("netem", &why),
    }
}
