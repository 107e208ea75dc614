//! Both ranks over a wire between threads.

use rustix::time::{ClockId, clock_gettime};

use super::*;
use crate::axis;
use crate::endpoint::wire::Wire;
use crate::plan::{Options, Plan, Settings, resolve};
use crate::point::Pattern;

/// CPU time of an end for each exchange of clocks.
const EXCHANGE_COSTS: Duration = Duration::from_micros(200);

/// Uses CPU time: as much as it says, however often the thread has to wait for a CPU.
fn burn(time: Duration) {
    let now = || Duration::try_from(clock_gettime(ClockId::ThreadCPUTime)).unwrap();
    let until = now() + time;
    while now() < until {}
}

/// What a greeting costs that is one of an exchange.
fn pay(number: u32) {
    if number >= BEFORE {
        burn(EXCHANGE_COSTS);
    }
}

/// What two messages cost each end, in ns, where the ends have clocks of their own.
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

/// Whoever waits for a peer that gets no CPU burns its own, so that once in a while is enough; what
/// exchanges cost would be there every time.
#[test]
fn the_cost_of_messages_is_without_that_of_comparing_clocks() {
    let exchanges_ns = 2 * u64::from(EXCHANGES) * EXCHANGE_COSTS.as_nanos() as u64;
    let least = (0..20).map(|_| *cost_ns().iter().max().unwrap()).min().unwrap();
    assert!(least < exchanges_ns / 2, "{least} ns for two messages, and {exchanges_ns} ns for exchanges");
}
