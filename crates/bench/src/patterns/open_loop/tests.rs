use measure::clock::{Clock, Domain};
use measure::record::Throughput;

use super::*;
use crate::axis;
use crate::pattern::flood::{FloodProgress, Window};
use crate::plan::{Options, Plan, Settings, resolve};
use crate::point::Pattern as Named;

fn spec() -> PointSpec {
    let settings = Settings::default().axis(axis::LOADERS.value(1)).axis(axis::LOAD_BYTES.value(100));
    let plan = Plan::new("load", "Load").experiment("e", Named::OPEN_LOOP, settings);
    resolve(&plan, &Options::default()).unwrap().points.remove(0)
}

fn passed(seen: Vec<(u64, u64)>) -> FloodProgress {
    FloodProgress { clock: Domain::of(&Clock::monotonic()), tick_hz: 1e9, span: [0, 1500], seen }
}

/// Merges a rank that asks during `timed`, a rank that answers, and a rank that loads.
fn merged(timed: Option<[u64; 2]>, load: FloodProgress, outcomes: &mut Vec<Outcome>) -> Merged {
    let timed = timed.map(|span| Window { clock: load.clock.clone(), span });
    let told = vec![Some(Told { timed, passed: None }), None, Some(Told { timed: None, passed: Some(load) })];
    OpenLoop::merge(&spec(), outcomes, told)
}

/// The messages of a load count while other messages are timed, and not before.
#[test]
fn a_load_counts_beside_what_is_timed() {
    let slow = (0..=100).map(|done| (10 * done, done));
    let seen: Vec<_> = slow.chain((1..=100).map(|done| (1000 + 5 * done, 100 + done))).collect();
    let timed = |span: [u64; 2]| {
        let mut outcomes = vec![Outcome::default(); 3];
        merged(Some(span), passed(seen.clone()), &mut outcomes).throughput.unwrap()
    };
    assert_eq!(timed([100, 900]).messages_per_s, 1e8);
    let fast = timed([1100, 1400]);
    assert_eq!((fast.messages_per_s, fast.bytes_per_s, fast.direction), (2e8, 2e10, Direction::Load));
    let whole = 200.0 / 1500.0 * 1e9;
    assert!(
        (timed([1100, 1120]).messages_per_s / whole - 1.0).abs() < 1e-9,
        "too short for a rate of its own"
    );
}

#[test]
fn a_load_that_is_hardly_counted_leaves_the_messages_that_were_timed() {
    let own = Throughput { bytes_per_s: 1.0, messages_per_s: 1.0, direction: Direction::Uni };
    let loads = Outcome { throughput: Some(own), ..Outcome::default() };
    let mut outcomes = vec![Outcome::default(), Outcome::default(), loads];
    let load = merged(None, passed(vec![(0, 0), (1400, 16)]), &mut outcomes);
    assert!(load.unstable[0].starts_with("the load: too few messages"));
    assert_eq!((load.throughput, &outcomes[2].throughput, load.status), (None, &None, None));
}
