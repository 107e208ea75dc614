//! A fleet whose links need a feature of the kernel.

use crate::fleet::is_named;
use crate::support::Scratch;
use crate::support::switch::Switch;

/// Network namespaces behind a switch, one of which sends late (tc-netem(8)). Without it, the
/// throughputs of an emulated machine vary too much for any verdict.
#[test]
fn the_host_with_a_long_link_is_named() {
    let scratch = Scratch::alone();
    if let Some(switch) = Switch::new(8) {
        is_named(&scratch, &switch, "netem limit 100000 delay 2ms", "latency: ");
    }
}
