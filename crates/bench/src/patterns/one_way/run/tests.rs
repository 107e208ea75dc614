//! Both ranks over a wire between threads.

use rustix::time::{ClockId, clock_gettime};

use super::*;
use crate::axis;
use crate::endpoint::wire::Wire;
use crate::plan::{Options, Plan, Settings, resolve};
use crate::point::Pattern;

/// The CPU time of a rank for each exchange of clocks.
const EXCHANGE_COSTS: Duration = Duration::from_micros(200);

/// Uses this much CPU time, however often the thread waits for a CPU.
fn burn(time: Duration) {
    let now = || Duration::try_from(clock_gettime(ClockId::ThreadCPUTime)).unwrap();
    let until = now() + time;
    while now() < until {}
}

/// The cost of a greeting that belongs to an exchange.
fn pay(number: u32) {
    if number >= BEFORE {
        burn(EXCHANGE_COSTS);
    }
}

/// The cost of two messages for each rank, in ns, where the ranks have different clocks.
fn cost_ns() -> [u64; 2] {
    let settings = Settings { iterations: Some(1), warmup: Some(1), ..Settings::default() };
    let settings = settings.axis(axis::BURST.value(Some(1)));
    let plan = Plan::new("one-way", "One way").experiment("one", Pattern::ONE_WAY, settings);
    let spec = &resolve(&plan, &Options::default()).unwrap().points[0];
    let rank = |mut end: Wire, rank| {
        let rank_clock = RankClock::new(end.clock(), None);
        let (stamped, cpu) = stamp(&mut end, spec, rank, false, &rank_clock).unwrap();
        assert_eq!(stamped.column(Column::Exchanged).len(), 4 * EXCHANGES as usize);
        let cpu = cpu.expect("Linux has an account of each thread");
        cpu.user_ns + cpu.system_ns
    };
    let [one, other] = Wire::pair(&[], pay);
    std::thread::scope(|scope| {
        let other = scope.spawn(|| rank(other, 1));
        [rank(one, 0), other.join().unwrap()]
    })
}

/// A rank that polls for a peer without a CPU uses its own CPU time. One attempt without that is
/// enough; exchanges would cost time in every attempt.
#[test]
fn the_cost_of_messages_is_without_that_of_comparing_clocks() {
    let exchanges_ns = 2 * u64::from(EXCHANGES) * EXCHANGE_COSTS.as_nanos() as u64;
    let least = (0..20).map(|_| *cost_ns().iter().max().unwrap()).min().unwrap();
    assert!(least < exchanges_ns / 2, "{least} ns for two messages, and {exchanges_ns} ns for exchanges");
}
