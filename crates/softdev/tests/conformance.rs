//! The conformance cases on softdev.

#[path = "conformance/mod.rs"]
mod conformance;

use conformance::node::{Bench, PEER, serve};
use conformance::runner::{Trial, run};
use conformance::{CASES, Case};

const DEVICE: &str = "softdev0";

fn main() {
    if std::env::args().nth(1).as_deref() == Some(PEER) {
        serve(&softdev::PROVIDER, DEVICE);
        return;
    }
    let alone = CASES.iter().map(|case| trial(case, false));
    let across = CASES.iter().filter(|case| case.two_ends).map(|case| trial(case, true));
    run(&alone.chain(across).collect::<Vec<_>>());
}

fn trial(case: &'static Case, processes: bool) -> Trial {
    let place = if processes { "two_processes" } else { "one_process" };
    let run = move || {
        let mut bench = Bench::new(&softdev::PROVIDER, DEVICE, processes);
        (case.run)(&mut bench);
        bench.close();
    };
    Trial { name: format!("{place}::{}", case.name), run: Box::new(run) }
}
