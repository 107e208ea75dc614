//! What a plan must not ask for, found before anything is started.

use std::collections::BTreeSet;

use super::defaults::{Filled, carriers as carriers_of, least_depth};
use super::{Axis, Experiment, Plan};
use crate::Error;
use crate::point::{Family, Flow, Length, Operation, Pattern, Poll, Service, Setup};

/// Checks the names of the experiments.
pub(super) fn names(plan: &Plan) -> Result<(), Error> {
    if plan.experiments.is_empty() {
        return Err(Error::NoExperiment { place: plan.origin.clone() });
    }
    let mut seen = BTreeSet::new();
    match plan.experiments.iter().find(|experiment| !seen.insert(&experiment.name)) {
        Some(second) => {
            Err(Error::DuplicateExperiment { place: second.place.clone(), name: second.name.clone() })
        }
        None => Ok(()),
    }
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
    check.fan_out()?;
    check.pairs()?;
    check.one_way()?;
    check.open_loop()?;
    check.overhead()?;
    check.pipeline()?;
    check.prtt()?;
    check.sockets()?;
    check.libraries()?;
    check.tools()
}

/// Checks what carries the messages of an experiment, and that each of its axes is for some of that.
pub(super) fn carriers(experiment: &Experiment) -> Result<(), Error> {
    let axes = &experiment.settings.axes;
    let place = |key: &str| experiment.settings.place(key).unwrap_or_else(|| experiment.place.clone());
    let endpoints = axes.iter().find(|axis| matches!(axis, Axis::Endpoint(_)));
    endpoints.map_or(Ok(()), |axis| values(axis, place(axis.name()), &experiment.name))?;
    let carriers = carriers_of(axes);
    let stray = axes.iter().find(|axis| !carriers.iter().any(|carrier| axis.is_for(*carrier)));
    let Some(axis) = stray else { return Ok(()) };
    let names: Vec<_> = carriers.iter().map(|carrier| carrier.name()).collect();
    let what = format!("{} over {}", axis.name(), names.join(" and "));
    let (place, experiment) = (place(axis.name()), experiment.name.clone());
    let why = "that is for other endpoints: leave it out".to_owned();
    Err(Error::Refused { place, experiment, what, why })
}

/// Checks that an axis has values, and each of them once.
fn values(axis: &Axis, place: String, experiment: &str) -> Result<(), Error> {
    let (values, axis, experiment) = (axis.values(), axis.name().to_owned(), experiment.to_owned());
    if values.is_empty() {
        return Err(Error::EmptyAxis { place, axis, experiment });
    }
    let mut seen = BTreeSet::new();
    match values.iter().find(|value| !seen.insert(value.to_string())) {
        Some(twice) => Err(Error::DuplicateValue { place, axis, experiment, value: twice.to_string() }),
        None => Ok(()),
    }
}

/// Bounds the number of points of the whole plan, before they are made.
pub(super) fn points(plan: &Plan, experiments: &[&Filled]) -> Result<(), Error> {
    let sum = experiments.iter().try_fold(0u64, |sum, filled| sum.checked_add(filled.points()?));
    match sum.unwrap_or(u64::MAX) {
        points if points > POINTS_MAX => {
            Err(Error::TooManyPoints { place: plan.origin.clone(), points, max: POINTS_MAX })
        }
        _ => Ok(()),
    }
}

/// An experiment that is checked.
pub(super) struct Check<'a>(pub(super) &'a Filled);

impl Check<'_> {
    fn axes(&self) -> Result<(), Error> {
        let mut axes = self.0.axes.iter();
        axes.try_for_each(|axis| values(axis, self.names(axis.name()).0, &self.0.name))
    }

    fn length(&self) -> Result<(), Error> {
        let settings = &self.0.settings;
        if settings.iterations.is_some() && settings.duration_s.is_some() {
            let (place, _, experiment) = self.names("duration");
            return Err(Error::TwoLengths { place, experiment });
        }
        if self.0.length == Length::Iterations(0) {
            let (place, _, experiment) = self.names("iterations");
            return Err(Error::ZeroIterations { place, experiment });
        }
        let iterations = match self.0.length {
            Length::Iterations(iterations) => iterations,
            Length::Duration(_) => 0,
        };
        for (key, value) in [("iterations", iterations), ("warmup", self.0.warmup)] {
            if value > ITERATIONS_MAX {
                let (place, key, experiment) = self.names(key);
                return Err(Error::TooManyIterations { place, key, experiment, value, max: ITERATIONS_MAX });
            }
        }
        let duration_s = match self.0.length {
            Length::Duration(duration_s) => Some(("duration", duration_s)),
            Length::Iterations(_) => None,
        };
        for (key, value_s) in duration_s.into_iter().chain([("timeout", self.0.timeout_s)]) {
            // A NaN from code is as wrong as a negative number, hence no `<=`.
            if !(value_s > 0.0 && value_s <= DURATION_S_MAX) {
                let (place, key, experiment) = self.names(key);
                let value =
                    if value_s.abs() < 1e9 { format!("{value_s} s") } else { format!("{value_s:e} s") };
                return Err(Error::BadLength { place, key, experiment, value });
            }
        }
        if let Some((_, duration_s)) = duration_s.filter(|(_, duration_s)| *duration_s >= self.0.timeout_s) {
            let (place, _, experiment) = self.names("timeout");
            return Err(Error::ShortTimeout { place, experiment, timeout_s: self.0.timeout_s, duration_s });
        }
        Ok(())
    }

    fn counts(&self) -> Result<(), Error> {
        for key in ["tx_depth", "rx_depth"] {
            if self.least_depth(key) == 0 {
                let (place, key, experiment) = self.names(key);
                return Err(Error::ZeroDepth { place, key, experiment });
            }
        }
        let numbers = self.0.axes.iter().filter_map(|axis| match axis {
            Axis::Pairs(values)
            | Axis::Peers(values)
            | Axis::PostList(values)
            | Axis::QueuePairs(values)
            | Axis::Sge(values)
            | Axis::Values(values) => Some((axis.name(), values.iter().min().copied())),
            Axis::Batch(values)
            | Axis::Buffers(values)
            | Axis::Burst(values)
            | Axis::OutstandingReads(values)
            | Axis::RxFill(values)
            | Axis::SignalInterval(values) => Some((axis.name(), values.iter().copied().flatten().min())),
            _ => None,
        });
        for (key, count) in [("repetitions", Some(self.0.repetitions))].into_iter().chain(numbers) {
            if count == Some(0) {
                let (place, key, experiment) = self.names(key);
                return Err(Error::ZeroCount { place, key, experiment });
            }
        }
        self.repeated()?;
        let pairs = self.largest("queue_pairs");
        if pairs > QUEUE_PAIRS_MAX {
            let (place, _, experiment) = self.names("queue_pairs");
            return Err(Error::TooManyQueuePairs { place, experiment, pairs, max: QUEUE_PAIRS_MAX });
        }
        Ok(())
    }

    /// Repetitions until a mean is known.
    fn repeated(&self) -> Result<(), Error> {
        let (least, settings) = (self.0.repetitions, &self.0.settings);
        match (self.0.within, settings.repetitions_max) {
            (None, Some(_)) => {
                let why = "give how near their mean is to be known, such as within = \"2.5 %\", or repetitions alone";
                self.refuse("repetitions_max", "a most of repetitions without within", why)
            }
            (Some((_, most)), _) if most < least || most < 2 => {
                let what = format!("{least} repetitions at least and {most} at most");
                let why = "one alone has no interval, and the least is no more than the most";
                self.refuse("repetitions_max", &what, why)
            }
            (Some(_), _) if least < 2 => {
                let why = "one alone has no interval: give 2 or more";
                self.refuse("repetitions", "1 repetition at least with within", why)
            }
            _ => Ok(()),
        }
    }

    fn sizes(&self) -> Result<(), Error> {
        let (mut sizes, mut mtus, mut datagrams) = (&[][..], &[][..], false);
        for axis in &self.0.axes {
            match axis {
                Axis::SizeBytes(values) => sizes = values,
                Axis::MtuBytes(values) => mtus = values,
                Axis::Service(values) => datagrams = values.contains(&Service::Ud),
                _ => {}
            }
        }
        let (place, _, experiment) = self.names("size_bytes");
        if sizes.contains(&0) {
            return Err(Error::ZeroSize { place, experiment });
        }
        let mtus = || mtus.iter().copied().flatten();
        if let Some(mtu_bytes) = mtus().find(|mtu| !MTUS_BYTES.contains(mtu)) {
            let (place, _, experiment) = self.names("mtu_bytes");
            return Err(Error::BadMtu { place, experiment, mtu_bytes: u64::from(mtu_bytes) });
        }
        // What the ports have is not known yet, but no port has more.
        let mtu_bytes = mtus().min().unwrap_or(MTU_BYTES_MAX);
        match sizes.iter().copied().find(|size| *size > u64::from(mtu_bytes)) {
            Some(size_bytes) if datagrams => {
                Err(Error::DatagramTooLong { place, experiment, size_bytes, mtu_bytes })
            }
            _ => Ok(()),
        }
    }

    fn intervals(&self) -> Result<(), Error> {
        let tx_depth = self.least_depth("tx_depth");
        let interval = self.largest("signal_interval");
        if interval > tx_depth {
            let (place, _, experiment) = self.names("signal_interval");
            return Err(Error::IntervalAboveDepth { place, experiment, interval, tx_depth });
        }
        // With a full queue and all but one request of a list gathered, one that asks for its completion must be out.
        let list = self.largest("post_list");
        if u64::from(interval) + u64::from(list) > u64::from(tx_depth) + 1 {
            let (place, _, experiment) = self.names("post_list");
            return Err(Error::ListAboveDepth { place, experiment, list, interval, tx_depth });
        }
        if list > 1 && self.0.pattern != Pattern::Stream {
            let (place, _, experiment) = self.names("post_list");
            return Err(Error::NotAList { place, experiment });
        }
        let fill = self.largest("rx_fill");
        let rx_depth = self.least_depth("rx_depth");
        if fill > rx_depth {
            let (place, _, experiment) = self.names("rx_fill");
            return Err(Error::FillAboveDepth { place, experiment, fill, rx_depth });
        }
        Ok(())
    }

    /// The least depth of a queue: the axis, or else the setting.
    pub(super) fn least_depth(&self, key: &str) -> u32 {
        let setting = if key == "tx_depth" { self.0.tx_depth } else { self.0.rx_depth };
        least_depth(&self.0.axes, key).unwrap_or(setting)
    }

    /// The largest number of an axis of counts; 1 where it is not there.
    fn largest(&self, name: &str) -> u32 {
        u32::try_from(self.largest_number(name)).unwrap_or(u32::MAX)
    }

    /// The largest number of an axis; 1 where it is not there.
    pub(super) fn largest_number(&self, name: &str) -> u64 {
        let values = self.0.axes.iter().filter(|axis| axis.name() == name).flat_map(Axis::values);
        values.filter_map(|value| value.as_u64()).max().unwrap_or(1)
    }

    /// The values of an axis; none where it is not there.
    pub(super) fn values<T>(&self, of: impl Fn(&Axis) -> Option<&[T]>) -> &[T] {
        self.0.axes.iter().find_map(of).unwrap_or_default()
    }

    /// The operations that it names.
    pub(super) fn operations(&self) -> &[Operation] {
        self.values(|axis| match axis {
            Axis::Operation(values) => Some(values.as_slice()),
            _ => None,
        })
    }

    /// The services that it names.
    pub(super) fn services(&self) -> &[Service] {
        self.values(|axis| match axis {
            Axis::Service(values) => Some(values.as_slice()),
            _ => None,
        })
    }

    /// The ways to wait that it names.
    pub(super) fn polls(&self) -> &[Poll] {
        self.values(|axis| match axis {
            Axis::Poll(values) => Some(values.as_slice()),
            _ => None,
        })
    }

    /// The versions of IP that it names.
    pub(super) fn families(&self) -> &[Family] {
        self.values(|axis| match axis {
            Axis::Family(values) => Some(values.as_slice()),
            _ => None,
        })
    }

    /// The sizes that it names.
    pub(super) fn size_values(&self) -> &[u64] {
        self.values(|axis| match axis {
            Axis::SizeBytes(values) => Some(values.as_slice()),
            _ => None,
        })
    }

    /// Whether some sends do not ask for their completion.
    pub(super) fn signals_seldom(&self) -> bool {
        let seldom = |axis: &Axis| matches!(axis, Axis::SignalInterval(values) if values.iter().any(|every| *every != Some(1)));
        self.0.axes.iter().any(seldom)
    }

    /// Refuses axes that only other patterns have.
    pub(super) fn without(&self, own: &[&str], patterns: &[&str]) -> Result<(), Error> {
        match self.0.axes.iter().find(|axis| own.contains(&axis.name())) {
            Some(axis) => {
                let what = format!("{} with the pattern {:?}", axis.name(), self.0.pattern.name());
                let named: Vec<_> = patterns.iter().map(|name| format!("{name:?}")).collect();
                let kind = if named.len() > 1 { "patterns" } else { "pattern" };
                self.refuse(axis.name(), &what, &format!("it is for the {kind} {}", named.join(" and ")))
            }
            None => Ok(()),
        }
    }

    /// Refuses what cannot be, at the place of the key that asks for it.
    pub(super) fn refuse(&self, key: &str, what: &str, why: &str) -> Result<(), Error> {
        let (place, _, experiment) = self.names(key);
        Err(Error::Refused { place, experiment, what: what.to_owned(), why: why.to_owned() })
    }

    /// Refuses operations that cannot be had on the service, or not in the way that is asked for.
    fn carried(&self) -> Result<(), Error> {
        let (mut services, mut operations) = (&[][..], &[][..]);
        let (mut sizes, mut setups, mut events, mut inline) = (&[][..], &[][..], false, false);
        for axis in &self.0.axes {
            match axis {
                Axis::Service(values) => services = values,
                Axis::Operation(values) => operations = values,
                Axis::SizeBytes(values) => sizes = values,
                Axis::Setup(values) => setups = values,
                Axis::Poll(values) => events = values.iter().any(|poll| poll.queues().0.sleeps()),
                Axis::Inline(values) => inline = values.contains(&true),
                _ => {}
            }
        }
        let sge = u64::from(self.largest("sge"));
        if let Some(size) = sizes.iter().find(|size| sge > 1 && **size < sge) {
            return self.refuse(
                "sge",
                &format!("a message of {size} B in {sge} elements"),
                "an element has at least 1 byte",
            );
        }
        if inline && sge > 1 {
            return self.refuse(
                "sge",
                "inline data in several elements",
                "inline data is copied from one place here",
            );
        }
        if services.contains(&Service::Uc) && setups.contains(&Setup::RdmaCm) {
            return self.refuse(
                "setup",
                "UC through RDMA CM",
                "librdmacm has port spaces for RC and UD only",
            );
        }
        for operation in operations {
            let name = operation.name();
            if let Some(service) = services.iter().find(|service| !operation.exists_on(**service)) {
                return self.refuse(
                    "operation",
                    &format!("{name} over {}", service.name()),
                    operation.why_not(*service),
                );
            }
            if operation.is_atomic() && (sizes.iter().any(|size| *size != 8) || sge > 1) {
                return self.refuse(
                    "size_bytes",
                    &format!("{name} of anything but 8 B"),
                    "an atomic is of eight bytes",
                );
            }
            if operation.is_fetch() && inline {
                return self.refuse("inline", &format!("{name} inline"), "it has no data to send");
            }
            if *operation == Operation::Write && events && self.0.pattern == Pattern::PingPong {
                let why = "the target is told of nothing that it could sleep for: use write_imm";
                return self.refuse("poll", &format!("{name} with a receiver that sleeps"), why);
            }
        }
        Ok(())
    }

    fn directions(&self) -> Result<(), Error> {
        if self.goes_both_ways() && self.0.pattern != Pattern::Stream {
            let (place, _, experiment) = self.names("direction");
            let pattern = self.0.pattern.name().to_owned();
            return Err(Error::NotBidirectional { place, experiment, pattern });
        }
        Ok(())
    }

    /// Whether messages flow both ways at some points.
    pub(super) fn goes_both_ways(&self) -> bool {
        self.0.axes.iter().any(|axis| matches!(axis, Axis::Direction(flows) if flows.contains(&Flow::Bi)))
    }

    /// Where a key was set (or else the experiment), the key, and the experiment: what most errors say.
    fn names(&self, key: &str) -> (String, String, String) {
        let place = self.0.settings.place(key).unwrap_or_else(|| self.0.place.clone());
        (place, key.to_owned(), self.0.name.clone())
    }
}

/// Above this many points a plan is a slip of the pen: at a second each it would run for more than a day.
const POINTS_MAX: u64 = 100_000;
/// Above this a time is a slip of the pen too, and far from what a clock can hold: 30 days.
const DURATION_S_MAX: f64 = 30.0 * 86_400.0;
/// Ten times as many as perftest takes (`MAX_ITER`): at a microsecond each, a quarter of an hour.
const ITERATIONS_MAX: u64 = 1_000_000_000;
/// More than any adapter's tools offer (perftest: 16384).
const QUEUE_PAIRS_MAX: u32 = 16384;
/// The largest path MTU, in bytes (G1); many ports have less.
pub const MTU_BYTES_MAX: u32 = 4096;
/// The five path MTUs of InfiniBand (G1).
const MTUS_BYTES: [u32; 5] = [256, 512, 1024, 2048, 4096];
