//! Both ranks over a wire between threads.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Instant;

use measure::clock::Clock;
use rustix::time::{ClockId, clock_gettime};

use super::*;
use crate::endpoint::{Arrival, Mark, Posted};
use crate::plan::{Axis, Options, Plan, Settings, resolve};
use crate::point::Pattern;

/// CPU time of an end for each exchange of clocks.
const EXCHANGE_COSTS: Duration = Duration::from_micros(200);

/// One end of a wire that carries everything, and whose exchanges of clocks cost CPU time.
struct End {
    out: Sender<Arrival>,
    into: Receiver<Arrival>,
    posted: u64,
    clock: Clock,
    began: Instant,
}

impl End {
    fn pair() -> [Self; 2] {
        let ((to_one, one), (to_other, other)) = (channel(), channel());
        let (clock, began) = (Clock::monotonic(), Instant::now());
        let end = |out, into| Self { out, into, posted: 0, clock, began };
        [end(to_other, one), end(to_one, other)]
    }
}

/// Uses CPU time: as much as it says, however often the thread has to wait for a CPU.
fn burn(time: Duration) {
    let now = || Duration::try_from(clock_gettime(ClockId::ThreadCPUTime)).unwrap();
    let until = now() + time;
    while now() < until {}
}

impl Endpoint for End {
    fn clock(&self) -> Clock {
        self.clock
    }
    fn try_send(&mut self, mark: Mark) -> Result<Posted, Error> {
        self.out.send(Arrival { mark, number: self.posted, is_greeting: false }).unwrap();
        self.posted += 1;
        Ok(Posted::Queued)
    }
    fn try_greet_as(&mut self, number: u32) -> Result<Posted, Error> {
        if number >= BEFORE {
            burn(EXCHANGE_COSTS);
        }
        let greeting = Arrival { mark: Mark::Last, number: number.into(), is_greeting: true };
        // Nobody may be there to hear the last one.
        let _ = self.out.send(greeting);
        Ok(Posted::Queued)
    }
    fn try_receive(&mut self) -> Result<Option<Arrival>, Error> {
        Ok(self.into.try_recv().ok())
    }
    fn replenish(&mut self) -> Result<(), Error> {
        Ok(())
    }
    fn outstanding(&mut self) -> Result<u32, Error> {
        Ok(0)
    }
    fn try_sent(&mut self) -> Result<u64, Error> {
        Ok(self.posted)
    }
    fn carry(&mut self, _: u64, _: Ticks) -> Result<(), Error> {
        Ok(())
    }
    fn carried(&self, _: &Arrival) -> Result<Option<Ticks>, Error> {
        Ok(None)
    }
    fn idle(&mut self) -> Result<(), Error> {
        if self.began.elapsed() > Duration::from_secs(60) {
            return Err(Error::Deadline { what: "arrived", waited_s: 60.0, advice: String::new() });
        }
        std::thread::yield_now();
        Ok(())
    }
    fn idle_until(&mut self, _: Ticks) -> Result<(), Error> {
        self.idle()
    }
    fn quiet(&self) -> Duration {
        Duration::ZERO
    }
}

/// What two messages cost each end, in ns, where the ends have clocks of their own.
fn cost_ns() -> [u64; 2] {
    let settings = Settings { iterations: Some(1), warmup: Some(1), ..Settings::default() };
    let settings = settings.axis(Axis::Burst(vec![Some(1)]));
    let plan = Plan::new("one-way", "One way").experiment("one", Pattern::OneWay, settings);
    let spec = &resolve(&plan, &Options::default()).unwrap().points[0];
    let rank = |mut end: End, rank| {
        let timepiece = Timepiece::new(end.clock, None);
        let (stamped, cpu) = run(&mut end, spec, rank, false, &timepiece).unwrap();
        assert_eq!(stamped.column(Column::Exchanged).len(), 4 * EXCHANGES as usize);
        let cpu = cpu.expect("Linux has an account of each thread");
        cpu.user_ns + cpu.system_ns
    };
    let [one, other] = End::pair();
    std::thread::scope(|scope| {
        let other = scope.spawn(|| rank(other, 1));
        [rank(one, 0), other.join().unwrap()]
    })
}

/// Whoever waits for a peer that gets no CPU burns its own, so that once in a while is enough; what exchanges cost would be
/// there every time.
#[test]
fn the_cost_of_messages_is_without_that_of_comparing_clocks() {
    let exchanges_ns = 2 * u64::from(EXCHANGES) * EXCHANGE_COSTS.as_nanos() as u64;
    let least = (0..20).map(|_| *cost_ns().iter().max().unwrap()).min().unwrap();
    assert!(least < exchanges_ns / 2, "{least} ns for two messages, and {exchanges_ns} ns for exchanges");
}
