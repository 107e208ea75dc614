//! An endpoint in virtual time. Patterns do not know about it: what they report is what the
//! simulation sets, to the tick.

use std::cell::Cell;
use std::collections::{BTreeMap, VecDeque};
use std::path::Path;
use std::time::Duration;

use measure::clock::{Clock, Ticks};
use measure::record::LatencyKind;

use crate::Error;
use crate::endpoint::capabilities::Capabilities;
use crate::endpoint::connecting::DrivenEndpoint;
use crate::endpoint::{Arrival, Endpoint, Mark, Posted};
use crate::pattern::outcome::Outcome;
use crate::pattern::rank::{Endpoints, Rank};
use crate::patterns;
use crate::placement::Placement;
use crate::plan::{Options, Plan, resolve};
use crate::rank_clock::RankClock;
use crate::topology::Part;

/// Ticks are 64ths of a nanosecond.
const TICKS_IN_NS: u64 = 64;

thread_local! {
    /// The time of the simulation that this thread runs.
    static NOW: Cell<u64> = const { Cell::new(0) };
}

/// Rank 0, and a rank that answers every message in the order of arrival. Time passes in
/// [`Endpoint::idle_until`] and while a message is posted.
struct Simulated {
    clock: Clock,
    /// How long rank 0 takes to post a message.
    posting: u64,
    /// How long a message travels.
    latency: u64,
    /// How long the other rank takes to serve a message.
    service: u64,
    /// When the other rank has served all messages that were posted.
    is_done: u64,
    answers: VecDeque<(u64, Arrival)>,
    posted: u64,
}

impl Simulated {
    fn new(latency_ns: u64, service_ns: u64) -> Self {
        NOW.set(0);
        let clock = Clock::simulated(|| Ticks(NOW.get()), 1e9 * TICKS_IN_NS as f64);
        let [latency, service] = [latency_ns, service_ns].map(|ns| ns * TICKS_IN_NS);
        Self { clock, posting: 0, latency, service, is_done: 0, answers: VecDeque::new(), posted: 0 }
    }

    fn posting(self, posting_ns: u64) -> Self {
        Self { posting: posting_ns * TICKS_IN_NS, ..self }
    }
}

impl Endpoint for Simulated {
    fn clock(&self) -> Clock {
        self.clock
    }

    fn try_send(&mut self, mark: Mark) -> Result<Posted, Error> {
        NOW.set(NOW.get() + self.posting);
        self.is_done = self.is_done.max(NOW.get() + self.latency) + self.service;
        let answer = Arrival { mark, number: self.posted, lane: 0, is_greeting: false };
        self.answers.push_back((self.is_done + self.latency, answer));
        self.posted += 1;
        Ok(Posted::Queued)
    }

    fn try_receive(&mut self) -> Result<Option<Arrival>, Error> {
        let has_come = self.answers.front().is_some_and(|(at, _)| *at <= NOW.get());
        Ok(has_come.then(|| self.answers.pop_front()).flatten().map(|(_, answer)| answer))
    }

    fn outstanding(&mut self) -> Result<u32, Error> {
        Ok(0)
    }

    fn try_sent(&mut self) -> Result<u64, Error> {
        Ok(self.posted)
    }

    fn has_room(&mut self) -> Result<bool, Error> {
        Ok(true)
    }

    fn put(&mut self, _word: usize, _value: u64) -> Result<(), Error> {
        Ok(())
    }

    fn get(&self, _word: usize) -> Result<u64, Error> {
        Ok(0)
    }

    fn idle_until(&mut self, instant: Ticks) -> Result<(), Error> {
        let next = self.answers.front().map_or(u64::MAX, |(at, _)| *at).min(instant.0);
        if next == u64::MAX {
            return Err(Error::Deadline { what: "arrived", waited_s: 0.0, advice: String::new() });
        }
        NOW.set(NOW.get().max(next));
        Ok(())
    }

    fn quiet(&self) -> Duration {
        Duration::ZERO
    }
}

impl DrivenEndpoint for Simulated {
    const CAPABILITIES: Capabilities = Capabilities::COUNTED;

    fn start(&mut self, _timeout_s: f64) -> Result<(), Error> {
        Ok(())
    }

    fn stop(&mut self) {}
}

/// Returns what rank 0 reports of the point of an experiment.
fn outcome(experiment: &str, endpoint: Simulated) -> Outcome {
    let text = format!("name = \"x\"\ntitle = \"X\"\n\n[[experiment]]\nname = \"one\"\n{experiment}");
    let plan = Plan::parse(&text, "plans/x.toml", Path::new(".")).unwrap();
    let spec = resolve(&plan, &Options::default()).unwrap().points.remove(0);
    let rank_clock = RankClock::new(endpoint.clock, None);
    let placement = Placement { barrier: None, oversubscribed: None, has_one_clock: true };
    let parts = BTreeMap::from([(Part::MAIN, endpoint)]);
    let mut endpoints = Endpoints { placement, parts };
    let left = Duration::from_secs(60);
    patterns::run(Rank { spec: &spec, rank: 0, left, rank_clock: &rank_clock, endpoints: &mut endpoints })
        .unwrap()
}

#[test]
fn a_ping_pong_takes_what_the_simulation_says() {
    let outcome =
        outcome("pattern = \"ping-pong\"\niterations = 1000\nwarmup = 10", Simulated::new(500, 250));
    let latency = outcome.latency.unwrap();
    assert_eq!((latency.kind, latency.count), (LatencyKind::RttHalf, 1000));
    // The message, its service and the answer, halved: (2 x 500 ns + 250 ns) / 2.
    assert_eq!((latency.min_ns, latency.p50_ns, latency.max_ns), (625, 625, 625));
    assert_eq!((outcome.unstable, outcome.cpu), (None, None));
}

/// On a device that copies a message while it is posted, a sample without a post would be too
/// short.
#[test]
fn every_sample_of_a_ping_pong_contains_a_post() {
    let experiment = "pattern = \"ping-pong\"\niterations = 20\nwarmup = 2";
    let outcome = outcome(experiment, Simulated::new(500, 250).posting(100));
    assert_eq!(outcome.samples, [(2 * 500 + 250 + 100) / 2; 20]);
}

#[test]
fn an_open_loop_takes_what_the_simulation_says() {
    let experiment = "pattern = \"open-loop\"\niterations = 100\nwarmup = 0\nkeep_samples = true\n\
                      axes = { rate_hz = [1_000_000] }";
    // A message is due every 1000 ns. Each takes less, so none waits for another.
    let responses = outcome(experiment, Simulated::new(500, 250)).samples;
    assert_eq!(responses, [1250; 100]);
    // Each takes 1500 ns and waits 500 ns longer than the one before.
    let outcome = outcome(experiment, Simulated::new(500, 1500));
    let expected: Vec<u64> = (0..100).map(|message| 2 * 500 + 1500 + 500 * message).collect();
    assert_eq!(outcome.samples, expected);
    assert!(outcome.kinds.iter().any(|kind| kind.latency.kind == LatencyKind::Lateness));
    for kind in outcome.kinds.iter().filter(|kind| kind.latency.kind == LatencyKind::Lateness) {
        assert_eq!((kind.latency.count, kind.latency.max_ns), (100, 0));
    }
}
