//! What the user asks for: the configurations that may be recommended, the steps between them, and
//! the points that measure them.

use std::collections::BTreeSet;
use std::time::Duration;

use bench::axis;
use bench::plan::{MTU_BYTES_MAX, Options, Plan, Resolved, Settings, resolve};
use bench::point::{Operation, Pattern, Poll, Service, Setup};
use measure::units;
use report::advice::{Conditions, Goal, OPERATIONS, POLLS, SERVICES, Step, Way};
use serde::de::DeserializeOwned;

use super::arguments::{AdviseArguments, Rate};
use crate::cli::Circumstances;
use crate::failure::Usage;

/// Few buffers, as a program has that posts some receives.
const FEW: u64 = 16;
/// Many buffers: a pool as in Potter 2018, too large for caches of data and of translations.
const MANY: u64 = 4096;
/// Largest pool, in bytes.
const POOL_BYTES_MAX: u64 = 64 << 20;
/// The default depth of the send queue, as in perftest.
const TX_DEPTH: u32 = 128;
/// Time limit of a point without the pauses between its messages, in s: far above a healthy point.
const TIMEOUT_S: f64 = 30.0;

/// What the user asks for.
#[derive(Debug)]
pub(super) struct Ask {
    pub(super) size: u64,
    pub(super) rate: Option<Rate>,
    pub(super) goal: Goal,
    pub(super) rounds: u32,
    pub(super) iterations: Option<u64>,
    pub(super) budget: Duration,
    allow_loss: bool,
    services: Vec<&'static str>,
    operations: Vec<&'static str>,
    rx_fill: Option<u32>,
    circumstances: Circumstances,
}

impl Ask {
    pub(super) fn new(arguments: &AdviseArguments) -> Result<Self, Usage> {
        arguments.refused.refuse()?;
        let services: Vec<_> = arguments.connection.iter().map(|connection| connection.word()).collect();
        let operations: Vec<_> = arguments.operation.iter().map(|operation| operation.name()).collect();
        let ask = Self {
            size: arguments.size,
            rate: arguments.rate,
            goal: arguments.goal.goal(),
            rounds: arguments.rounds,
            iterations: arguments.iters,
            budget: arguments.budget,
            allow_loss: arguments.allow_loss,
            services: SERVICES.into_iter().filter(|service| services.contains(service)).collect(),
            operations: OPERATIONS.into_iter().filter(|name| operations.contains(name)).collect(),
            rx_fill: arguments.rx_fill,
            circumstances: arguments.circumstances.clone(),
        };
        if ask.size == 0 {
            return Err(Usage("-s 0: a message has at least 1 byte".to_owned()));
        }
        if ask.coarse().is_empty() {
            let services = ask.services.join(",");
            let why = ask.why_nothing();
            return Err(Usage(format!("-c {services} leaves nothing to measure: {why}")));
        }
        Ok(ask)
    }

    /// Returns the size and the rate of messages, in words.
    pub(super) fn subject(&self) -> String {
        let pace = match self.rate {
            None => "one message at a time".to_owned(),
            Some(Rate::Asap) => "as fast as possible".to_owned(),
            Some(Rate::PerSecond(rate)) => format!("{rate} messages per second"),
        };
        format!("{} B, {pace}", self.size)
    }

    /// Returns the conditions of a recommendation.
    pub(super) fn conditions(&self) -> Conditions {
        let rate = match self.rate {
            Some(Rate::PerSecond(rate)) => Some(rate),
            _ => None,
        };
        Conditions { allow_loss: self.allow_loss, rate }
    }

    /// Returns the least time between posts.
    pub(super) fn pause(&self) -> Duration {
        match self.rate {
            Some(Rate::PerSecond(rate)) => Duration::from_nanos((1e9 / rate).round() as u64),
            _ => Duration::ZERO,
        }
    }

    /// Returns the numbers of few and of many buffers.
    fn pools(&self) -> [u64; 2] {
        [FEW, MANY].map(|count| count.min(POOL_BYTES_MAX / self.size).max(1))
    }

    /// Returns the configurations of every service, operation and way to poll, with the simplest
    /// other settings.
    pub(super) fn coarse(&self) -> Vec<Way> {
        let mut ways = Vec::new();
        for service in &self.services {
            for operation in self.operations.iter().filter(|name| self.possible(service, name).is_ok()) {
                ways.extend(POLLS.map(|poll| Way {
                    service: (*service).to_owned(),
                    operation: (*operation).to_owned(),
                    inline: false,
                    signal_interval: 1,
                    poll: poll.to_owned(),
                    buffers: self.pools()[0],
                }));
            }
        }
        ways
    }

    /// Returns the steps away from a configuration: each changes one setting.
    pub(super) fn steps(&self, way: &Way) -> Vec<Step> {
        let mut steps = Vec::new();
        let other = |names: &'static [&'static str], own: &str| {
            let own = own.to_owned();
            names.iter().copied().filter(move |name| *name != own)
        };
        for service in other(&SERVICES, &way.service) {
            let to = Way { service: service.to_owned(), ..way.clone() };
            steps.push(step("service", service, self.allowed(to, self.services.contains(&service), "-c")));
        }
        for operation in other(&OPERATIONS, &way.operation) {
            let to = Way { operation: operation.to_owned(), ..way.clone() };
            let asked = self.operations.contains(&operation);
            steps.push(step("operation", operation, self.allowed(to, asked, "--operation")));
        }
        let inline = Way { inline: !way.inline, ..way.clone() };
        steps.push(step("inline", if inline.inline { "yes" } else { "no" }, Ok(inline)));
        let signal_interval = if way.signal_interval == 1 { self.seldom() } else { 1 };
        let seldom = match self.rate {
            None => Err("one message at a time waits for each completion: see --rate".to_owned()),
            Some(_) if self.seldom() < 2 => {
                Err(format!("half of a send queue of {} is no more than one send: see -t", self.tx_depth()))
            }
            Some(_) => Ok(Way { signal_interval, ..way.clone() }),
        };
        steps.push(step("signalled", &format!("every {signal_interval}"), seldom));
        for poll in other(&POLLS, &way.poll) {
            steps.push(step("poll", poll, Ok(Way { poll: poll.to_owned(), ..way.clone() })));
        }
        let [few, many] = self.pools();
        let buffers = if way.buffers == few { many } else { few };
        let pool = match few < many {
            true => Ok(Way { buffers, ..way.clone() }),
            false => Err(format!("a larger pool would exceed {} MiB", POOL_BYTES_MAX >> 20)),
        };
        steps.push(step("buffers", &buffers.to_string(), pool));
        steps
    }

    fn allowed(&self, to: Way, is_asked: bool, flag: &str) -> Result<Way, String> {
        self.possible(&to.service, &to.operation)?;
        if is_asked { Ok(to) } else { Err(format!("left out by {flag}")) }
    }

    /// Returns why none of the services can carry the messages with any of the operations.
    fn why_nothing(&self) -> String {
        let every =
            self.services.iter().flat_map(|service| self.operations.iter().map(move |name| (service, name)));
        let reasons: BTreeSet<String> =
            every.filter_map(|(service, operation)| self.possible(service, operation).err()).collect();
        reasons.into_iter().collect::<Vec<_>>().join("; ")
    }

    /// Returns the depth of the send queue.
    fn tx_depth(&self) -> u32 {
        self.circumstances.get(axis::TX_DEPTH).unwrap_or(TX_DEPTH)
    }

    /// Returns how many sends have one signalled send: half of the queue, so that it never runs
    /// empty (Potter 2018).
    fn seldom(&self) -> u64 {
        u64::from(self.tx_depth() / 2)
    }

    /// Fails with the reason if a service cannot carry the messages with an operation.
    fn possible(&self, service: &str, operation: &str) -> Result<(), String> {
        // If the ports have a smaller MTU, longer datagrams are not measured.
        let mtu = u64::from(self.circumstances.get(axis::MTU_BYTES).flatten().unwrap_or(MTU_BYTES_MAX));
        if !named::<Operation>(operation).exists_on(named(service)) {
            return Err("datagrams have Send only (IBTA vol. 1, section 9.4)".to_owned());
        }
        if service == "UC" && self.circumstances.get(axis::SETUP) == Some(Setup::RdmaCm) {
            return Err("librdmacm has port spaces for RC and UD only".to_owned());
        }
        if service == "UD" && self.size > mtu {
            return Err(format!("a datagram is no longer than the path MTU, {mtu} B"));
        }
        Ok(())
    }

    /// Returns the points that measure configurations in rounds: each of them once a round. Their
    /// ids start at `first`.
    pub(super) fn points(
        &self,
        stage: &str,
        ways: &[Way],
        rounds: u32,
        iterations: u64,
        first: u64,
    ) -> Result<Resolved, bench::Error> {
        let mut all: Option<Resolved> = None;
        let mut experiments = Vec::new();
        for way in ways {
            let title = format!("How to send {}: least {}", self.subject(), self.goal.name());
            let settings = self.settings(way, rounds, iterations);
            let plan = Plan::new("advise", title).experiment(stage, Pattern::ONE_WAY, settings);
            let one = resolve(&plan, &Options::default())?;
            experiments.extend(one.plan["experiments"].as_array().into_iter().flatten().cloned());
            match &mut all {
                Some(all) => all.points.extend(one.points),
                None => all = Some(one),
            }
        }
        let mut all = all.expect("there is at least one configuration");
        // The sort is stable: the configurations of a round stay in their order.
        all.points.sort_by_key(|spec| spec.repetition);
        (first..).zip(&mut all.points).for_each(|(id, spec)| spec.id = id);
        all.plan["experiments"] = experiments.into();
        Ok(all)
    }

    fn settings(&self, way: &Way, rounds: u32, iterations: u64) -> Settings {
        let number = |number: u64| u32::try_from(number).unwrap_or(u32::MAX);
        let mut settings = Settings::default()
            .axis(axis::SERVICE.value(named::<Service>(&way.service)))
            .axis(axis::OPERATION.value(named::<Operation>(&way.operation)))
            .axis(axis::POLL.value(named::<Poll>(&way.poll)))
            .axis(axis::INLINE.value(way.inline))
            .axis(axis::SIGNAL_INTERVAL.value(Some(number(way.signal_interval))))
            .axis(axis::BUFFERS.value(Some(number(way.buffers))))
            .axis(axis::SIZE_BYTES.value(self.size));
        if self.rate.is_some() {
            let pause_ns = u64::try_from(self.pause().as_nanos()).unwrap_or(u64::MAX);
            settings = settings.axis(axis::BURST.value(None)).axis(axis::PAUSE_NS.value(pause_ns));
        }
        if let Some(fill) = self.rx_fill {
            settings = settings.axis(axis::RX_FILL.value(Some(fill)));
        }
        settings.iterations = Some(iterations);
        settings.repetitions = Some(rounds);
        settings.tx_depth = Some(self.tx_depth());
        // Twice the messages' own time, warm-up included.
        settings.timeout_s = Some(TIMEOUT_S + 2.5 * iterations as f64 * self.pause().as_secs_f64());
        self.circumstances.settle(settings)
    }

    /// Returns the command that measures a configuration, with `ends` as its flags for hosts,
    /// device and CPUs.
    pub(super) fn command(&self, way: &Way, iterations: u64, ends: &str) -> String {
        let operation = if way.operation == "write_imm" { "write" } else { "send" };
        let mut command = format!(
            "rdmascope one-way {operation} {ends} -s {} -c {} --poll {} --buffers {} -n {iterations}",
            self.size, way.service, way.poll, way.buffers
        );
        if way.inline {
            command += &format!(" -I {}", self.size);
        }
        if self.rate.is_some() {
            command += " --burst all";
        }
        if !self.pause().is_zero() {
            command += &format!(" --pause {}", units::format_duration(self.pause()));
        }
        if way.signal_interval > 1 {
            command += &format!(" -Q {}", way.signal_interval);
        }
        if let Some(fill) = self.rx_fill {
            command += &format!(" --rx-fill {fill}");
        }
        command + &self.circumstances.words()
    }
}

fn step(setting: &'static str, instead: &str, to: Result<Way, String>) -> Step {
    Step { setting, instead: instead.to_owned(), to }
}

/// Returns the value that has a name in plans.
fn named<T: DeserializeOwned>(name: &str) -> T {
    serde_json::from_value(name.into()).expect("the names are those of plans")
}
