//! A fleet whose links need a feature of the kernel.

use crate::fleet::{is_healthy, is_named};
use crate::support::switch::Switch;
use crate::support::{Scratch, skip};

/// Network namespaces behind a switch, one of which sends late (tc-netem(8)). All of them send
/// late, and at a limited rate: without that, the throughputs of an emulated machine vary too much
/// for any verdict. Four hosts and few messages, because each measurement takes a part of a second
/// there.
#[test]
fn the_host_with_a_long_link_is_named_and_none_without_it() {
    let scratch = Scratch::alone();
    let Some(switch) = Switch::new(4) else { return };
    let delayed = |delay: &str| format!("netem limit 100000 rate 50mbit delay {delay}");
    if let Err(why) = (0..switch.names.len()).try_for_each(|host| switch.shape(host, &delayed("300us"))) {
        return skip("netem", &why);
    }
    is_healthy(&scratch, &switch, "10");
    is_named(&scratch, &switch, "10", &delayed("3ms"), "latency: ");
}
