//! Checks of plans, before anything is started.

use std::collections::BTreeSet;

use super::defaults::carriers as carriers_of;
use super::model::{Experiment, Plan};
use crate::Error;
use crate::axis::{self, Axis, Most};
use crate::endpoint::capabilities::Capabilities;
use crate::pattern::check::{Check, floods, patterns};
use crate::pattern::experiment::Filled;
use crate::point::{Length, Operation, Poll, Service, Setup};
use crate::{endpoints, tool_endpoint};

/// Checks the names of the experiments.
pub(super) fn names(plan: &Plan) -> Result<(), Error> {
    if plan.experiments.is_empty() {
        let words = "the plan has no experiment: add an [[experiment]] with a name and a pattern".to_owned();
        return Err(Error::Plan { place: plan.origin.clone(), words });
    }
    let mut seen = BTreeSet::new();
    let second = plan.experiments.iter().find(|experiment| !seen.insert(&experiment.name));
    let Some(Experiment { name, place, .. }) = second else { return Ok(()) };
    let words = format!("two experiments are named {name:?}: give each experiment a different name");
    Err(Error::Plan { place: place.clone(), words })
}

/// Checks an experiment with every default filled in.
pub(super) fn experiment(filled: &Filled) -> Result<(), Error> {
    let check = Check(filled);
    check.axes()?;
    check.length()?;
    check.counts()?;
    check.carried()?;
    check.sizes()?;
    check.intervals()?;
    check.directions()?;
    check.listed()?;
    check.bounded()?;
    check.multicast()?;
    (filled.pattern.row().check)(&check)?;
    check.endpoint()?;
    tool_endpoint::check::experiment(&check)
}

/// Checks the endpoints of an experiment, and that each of its axes applies to one of them.
pub(super) fn carriers(experiment: &Experiment) -> Result<(), Error> {
    let axes = &experiment.settings.axes;
    let place = |key: &str| experiment.settings.place(key).unwrap_or_else(|| experiment.place.clone());
    let endpoints = axes.find(axis::ENDPOINT.row.name);
    endpoints.map_or(Ok(()), |axis| values(axis, place(axis.row.name), &experiment.name))?;
    let carriers = carriers_of(experiment);
    let stray = axes.iter().find(|axis| !carriers.iter().any(|carrier| (axis.row.is_for)(*carrier)));
    let Some(axis) = stray else { return Ok(()) };
    let names: Vec<_> = carriers.iter().map(|carrier| carrier.name()).collect();
    let name = axis.row.name;
    let over = names.join(" and ");
    let words = format!(
        "experiment {:?} asks for {name} over {over}, which is not possible: this axis is for other endpoints; leave it out",
        experiment.name
    );
    Err(Error::Plan { place: place(name), words })
}

/// Checks that an axis has values, and each of them once.
fn values(axis: &Axis, place: String, experiment: &str) -> Result<(), Error> {
    let of = format!("the axis {} of experiment {experiment:?}", axis.row.name);
    if axis.values().is_empty() {
        let words = format!("{of} is empty: give it a value or leave it out");
        return Err(Error::Plan { place, words });
    }
    let mut seen = BTreeSet::new();
    let second = axis.values().iter().find(|value| !seen.insert(value.to_string()));
    let Some(twice) = second else { return Ok(()) };
    let words = format!("{of} has {twice} twice: use repetitions to measure a point again");
    Err(Error::Plan { place, words })
}

/// Bounds the number of points of the whole plan, before they are made.
pub(super) fn points(plan: &Plan, experiments: &[&Filled]) -> Result<(), Error> {
    let sum = experiments.iter().try_fold(0u64, |sum, filled| sum.checked_add(filled.points()?));
    let points = sum.unwrap_or(u64::MAX);
    if points <= POINTS_MAX {
        return Ok(());
    }
    let words = format!(
        "the plan asks for {points} points, more than {POINTS_MAX}: shorten an axis or split the plan"
    );
    Err(Error::Plan { place: plan.origin.clone(), words })
}

impl Check<'_> {
    fn axes(&self) -> Result<(), Error> {
        let mut axes = self.0.axes.iter();
        axes.try_for_each(|axis| values(axis, self.place(axis.row.name), &self.0.name))
    }

    fn length(&self) -> Result<(), Error> {
        let settings = &self.0.settings;
        if settings.iterations.is_some() && settings.duration_s.is_some() {
            let words = format!("{self} has both iterations and duration: keep one of them");
            return self.wrong("duration", words);
        }
        if self.0.length == Length::Iterations(0) {
            let words = format!("iterations of {self} is 0: measure at least 1 message");
            return self.wrong("iterations", words);
        }
        let iterations = self.0.length.iterations().map(|iterations| ("iterations", iterations));
        for (key, value) in iterations.into_iter().chain([("warmup", self.0.warmup)]) {
            if value > ITERATIONS_MAX {
                let words = format!(
                    "{key} of {self} is {value}, more than {ITERATIONS_MAX}: to measure for longer, give a duration"
                );
                return self.wrong(key, words);
            }
        }
        let timeout_s = self.0.timeout_s;
        let duration_s = self.0.length.duration_s();
        let duration = duration_s.map(|duration_s| ("duration", duration_s));
        for (key, value_s) in duration.into_iter().chain([("timeout", timeout_s)]) {
            // `<=` alone would accept a NaN from code.
            if !(value_s > 0.0 && value_s <= DURATION_S_MAX) {
                let is_short = value_s.abs() < 1e9;
                let value = if is_short { format!("{value_s} s") } else { format!("{value_s:e} s") };
                let words = format!("{key} of {self} is {value}: it must be above zero and at most 30 days");
                return self.wrong(key, words);
            }
        }
        let Some(duration_s) = duration_s.filter(|duration_s| *duration_s >= timeout_s) else {
            return Ok(());
        };
        let words = format!(
            "timeout of {self} is {timeout_s} s, but its duration is {duration_s} s: raise timeout or shorten duration"
        );
        self.wrong("timeout", words)
    }

    fn counts(&self) -> Result<(), Error> {
        for depth in [axis::TX_DEPTH, axis::RX_DEPTH] {
            if self.least_depth(depth) == 0 {
                let key = depth.row.name;
                return self.wrong(key, format!("{key} of {self} is 0: a queue holds at least 1 request"));
            }
        }
        let zero = |axis: &&Axis| axis.row.least == 1 && axis.numbers().any(|number| number == 0);
        let counts = [("repetitions", self.0.repetitions), ("launches", self.0.launches)];
        let none = counts.into_iter().find(|(_, count)| *count == 0).map(|(key, _)| key);
        if let Some(key) = none.or(self.0.axes.iter().find(zero).map(|axis| axis.row.name)) {
            return self.wrong(key, format!("{key} of {self} is 0: it must be at least 1"));
        }
        self.repeated()?;
        let pairs = self.largest_u32(axis::QUEUE_PAIRS.row);
        if pairs > QUEUE_PAIRS_MAX {
            let words = format!("queue_pairs of {self} is {pairs}: it must be at most {QUEUE_PAIRS_MAX}");
            return self.wrong("queue_pairs", words);
        }
        Ok(())
    }

    /// Checks the bounds of repetitions that end when the mean is known.
    fn repeated(&self) -> Result<(), Error> {
        let least = self.0.repetitions;
        match (self.0.within, self.0.settings.repetitions_max) {
            (None, Some(_)) => {
                let why = "add within, such as within = \"2.5 %\", or give repetitions only";
                self.refuse("repetitions_max", "repetitions_max without within", why)
            }
            (Some((_, most)), _) if most < least || most < 2 => {
                let what = format!("at least {least} and at most {most} repetitions");
                let why = "repetitions_max must be at least 2, and at least as large as repetitions";
                self.refuse("repetitions_max", &what, why)
            }
            (Some(_), _) if least < 2 => {
                let why = "one repetition has no confidence interval: give 2 or more";
                self.refuse("repetitions", "1 repetition with within", why)
            }
            (Some(_), _) if self.0.launches > 1 => {
                let why =
                    "within would add repetitions to the last launch only: give launches without within";
                self.refuse("launches", "several launches with within", why)
            }
            _ => Ok(()),
        }
    }

    fn sizes(&self) -> Result<(), Error> {
        let sizes = self.0.axes.get(axis::SIZE_BYTES);
        if sizes.contains(&0) && !self.0.carrier.is_verbs() && !self.0.carrier.is_mpi() {
            let words = format!(
                "size_bytes of {self} has 0: a message over {} has at least 1 byte",
                self.0.carrier.name()
            );
            return self.wrong("size_bytes", words);
        }
        let mtus: Vec<u32> = self.0.axes.get(axis::MTU_BYTES).into_iter().flatten().collect();
        if let Some(mtu) = mtus.iter().find(|mtu| !MTUS_BYTES.contains(mtu)) {
            let words = format!(
                "mtu_bytes {mtu} of {self} is not a path MTU: it must be 256, 512, 1024, 2048 or 4096"
            );
            return self.wrong("mtu_bytes", words);
        }
        // The MTU of the ports is not known yet, but no port has a larger one.
        let mtu_bytes = mtus.into_iter().min().unwrap_or(MTU_BYTES_MAX);
        let above = sizes.into_iter().find(|size| *size > u64::from(mtu_bytes));
        let Some(size) = above.filter(|_| self.has(axis::SERVICE, Service::Ud)) else { return Ok(()) };
        let words = format!(
            "size_bytes {size} of {self} is above its mtu_bytes {mtu_bytes}, and UD carries a message in one \
             packet: end the sizes at {mtu_bytes} or give UD a separate experiment"
        );
        self.wrong("size_bytes", words)
    }

    fn intervals(&self) -> Result<(), Error> {
        let tx_depth = self.least_depth(axis::TX_DEPTH);
        let interval = self.largest_u32(axis::SIGNAL_INTERVAL.row);
        if interval > tx_depth {
            let words = format!(
                "signal_interval {interval} of {self} is above its tx_depth {tx_depth}: the send queue \
                 would be full before a completion frees it, so lower signal_interval or raise tx_depth"
            );
            return self.wrong("signal_interval", words);
        }
        // If the queue is full and all but one request of a list are collected, a signalled request
        // must be outstanding.
        let list = self.largest_u32(axis::POST_LIST.row);
        if u64::from(interval) + u64::from(list) > u64::from(tx_depth) + 1 {
            let words = format!(
                "post_list {list} of {self} does not fit its signal_interval {interval} and tx_depth \
                 {tx_depth}: together they may be tx_depth + 1 at most, or the send queue would be full \
                 before a completion frees it"
            );
            return self.wrong("post_list", words);
        }
        if list > 1 && !self.0.pattern.row().floods {
            let words =
                format!("{self} times every message separately: post_list is for the pattern {}", floods());
            return self.wrong("post_list", words);
        }
        let fill = self.largest_u32(axis::RX_FILL.row);
        let rx_depth = self.least_depth(axis::RX_DEPTH);
        if fill > rx_depth {
            let words = format!(
                "rx_fill {fill} of {self} is above its rx_depth {rx_depth}: a queue cannot hold more \
                 receives than it is deep"
            );
            return self.wrong("rx_fill", words);
        }
        Ok(())
    }

    /// Refuses axes that the pattern does not have.
    fn listed(&self) -> Result<(), Error> {
        let stray = self.0.axes.iter().find(|axis| !self.0.pattern.has_axis(axis.row));
        let Some(Axis { row, .. }) = stray else { return Ok(()) };
        let named = patterns(|pattern| pattern.has_axis(row));
        let kind = if named.len() > 1 { "patterns" } else { "pattern" };
        let what = format!("{} with the pattern {:?}", row.name, self.0.pattern.name());
        self.refuse(row.name, &what, &format!("it is for the {kind} {}", named.join(" and ")))
    }

    /// Refuses numbers above the largest of an axis.
    fn bounded(&self) -> Result<(), Error> {
        for axis in self.0.axes.iter() {
            let Some(Most { most, why }) = axis.row.most else { continue };
            if axis.numbers().any(|number| number > most) {
                return self.refuse(axis.row.name, &format!("more than {most} {}", axis.row.name), why);
            }
        }
        Ok(())
    }

    /// Refuses operations that the service does not have, or not with these settings.
    fn carried(&self) -> Result<(), Error> {
        let services = self.0.axes.get(axis::SERVICE);
        let sizes = self.0.axes.get(axis::SIZE_BYTES);
        let inline = self.has(axis::INLINE, true);
        let sge = self.largest(axis::SGE.row);
        if let Some(size) = sizes.iter().find(|size| sge > 1 && **size < sge) {
            let what = format!("a message of {size} B in {sge} elements");
            return self.refuse("sge", &what, "an element has at least 1 byte");
        }
        if inline && sge > 1 {
            let why = "rdmascope copies inline data from one element only";
            return self.refuse("sge", "inline data in several elements", why);
        }
        if services.contains(&Service::Uc) && self.has(axis::SETUP, Setup::RdmaCm) {
            let why = "librdmacm has port spaces for RC and UD only";
            return self.refuse("setup", "UC through RDMA CM", why);
        }
        for operation in self.0.axes.get(axis::OPERATION) {
            let name = operation.name();
            if let Some(service) = services.iter().find(|service| !operation.exists_on(**service)) {
                let what = format!("{name} over {}", service.word());
                return self.refuse("operation", &what, operation.why_not(*service));
            }
            if operation.is_atomic() && (sizes.iter().any(|size| *size != 8) || sge > 1) {
                let what = format!("{name} of anything but 8 B");
                return self.refuse("size_bytes", &what, "an atomic operates on eight bytes");
            }
            if operation.is_fetch() && inline {
                return self.refuse("inline", &format!("{name} inline"), "it has no data to send");
            }
        }
        Ok(())
    }

    /// Checks an endpoint other than verbs.
    fn endpoint(&self) -> Result<(), Error> {
        let carrier = self.0.carrier;
        if carrier.is_verbs() || self.0.pattern.row().stands_in.is_some() {
            return Ok(());
        }
        let row = endpoints::row(carrier);
        let calls = Capabilities::VERBS_CALLS;
        if self.0.pattern.row().needs.contain(calls) && !row.capabilities.contain(calls) {
            let why = "the steps are verbs calls: use the endpoint \"verbs\"";
            return self.refuse("endpoint", &format!("the overheads of {}", carrier.name()), why);
        }
        let mut polls = self.0.axes.get(axis::POLL).into_iter();
        if let Some(poll) = polls.find(|poll| !matches!(poll, Poll::Busy | Poll::Event)) {
            let why = "only verbs has other ways to poll: use busy or event";
            return self.refuse("poll", &format!("poll {} over {}", poll.word(), carrier.name()), why);
        }
        (row.check)(self)
    }

    /// Refuses multicast in patterns without groups of ranks.
    fn multicast(&self) -> Result<(), Error> {
        if !self.has(axis::OPERATION, Operation::Multicast) || self.0.pattern.row().has_groups {
            return Ok(());
        }
        let names = patterns(|pattern| pattern.row().has_groups);
        let why = format!("it needs a group of ranks that answer: use the pattern {}", names.join(" or "));
        self.refuse("operation", "multicast between two ranks", &why)
    }

    fn directions(&self) -> Result<(), Error> {
        if self.goes_both_ways() && !self.0.pattern.row().floods {
            let pattern = self.0.pattern.name();
            let words = format!(
                "{self} has the pattern {pattern:?}, which has no direction \"bi\": use the pattern {}",
                floods()
            );
            return self.wrong("direction", words);
        }
        Ok(())
    }
}

/// The most points of a plan. More are a typo: at a second each, they would take more than a day.
const POINTS_MAX: u64 = 100_000;
/// The longest time of a point: 30 days. A longer one is a typo, and this one is far below the
/// limits of clocks.
const DURATION_S_MAX: f64 = 30.0 * 86_400.0;
/// The most iterations: ten times perftest's limit (`MAX_ITER`). At a microsecond each, they take
/// a quarter of an hour.
const ITERATIONS_MAX: u64 = 1_000_000_000;
/// The most queue pairs of a point, as in perftest.
const QUEUE_PAIRS_MAX: u32 = 16384;
/// The largest path MTU of InfiniBand, in bytes (Gamess 2016). Many ports have a smaller one.
pub const MTU_BYTES_MAX: u32 = 4096;
/// The five path MTUs of InfiniBand, in bytes (Gamess 2016).
const MTUS_BYTES: [u32; 5] = [256, 512, 1024, 2048, 4096];
