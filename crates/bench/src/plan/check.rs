//! What a plan must not ask for, found before anything is started.

use std::collections::BTreeSet;

use super::defaults::carriers as carriers_of;
use super::model::{Experiment, Plan};
use crate::Error;
use crate::axis::{self, Axis, Most};
use crate::pattern::check::Check;
use crate::pattern::experiment::Filled;
use crate::point::{Length, Operation, Pattern, Service, Setup};

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
    check.listed()?;
    check.bounded()?;
    check.multicast()?;
    filled.pattern.entry().check(&check)?;
    check.sockets()?;
    check.libraries()?;
    check.tools()
}

/// Checks what carries the messages of an experiment, and that each of its axes is for some of that.
pub(super) fn carriers(experiment: &Experiment) -> Result<(), Error> {
    let axes = &experiment.settings.axes;
    let place = |key: &str| experiment.settings.place(key).unwrap_or_else(|| experiment.place.clone());
    let endpoints = axes.find(axis::ENDPOINT.row.name);
    endpoints.map_or(Ok(()), |axis| values(axis, place(axis.row.name), &experiment.name))?;
    let carriers = carriers_of(axes);
    let stray = axes.iter().find(|axis| !carriers.iter().any(|carrier| (axis.row.is_for)(*carrier)));
    let Some(axis) = stray else { return Ok(()) };
    let names: Vec<_> = carriers.iter().map(|carrier| carrier.name()).collect();
    let what = format!("{} over {}", axis.row.name, names.join(" and "));
    let place = place(axis.row.name);
    let experiment = experiment.name.clone();
    let why = "that is for other endpoints: leave it out".to_owned();
    Err(Error::Refused { place, experiment, what, why })
}

/// Checks that an axis has values, and each of them once.
fn values(axis: &Axis, place: String, experiment: &str) -> Result<(), Error> {
    let values = axis.values();
    let axis = axis.row.name.to_owned();
    let experiment = experiment.to_owned();
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

impl Check<'_> {
    fn axes(&self) -> Result<(), Error> {
        let mut axes = self.0.axes.iter();
        axes.try_for_each(|axis| values(axis, self.place(axis.row.name), &self.0.name))
    }

    fn length(&self) -> Result<(), Error> {
        let settings = &self.0.settings;
        if settings.iterations.is_some() && settings.duration_s.is_some() {
            return Err(Error::TwoLengths { place: self.place("duration"), experiment: self.name() });
        }
        if self.0.length == Length::Iterations(0) {
            return Err(Error::ZeroIterations { place: self.place("iterations"), experiment: self.name() });
        }
        let iterations = match self.0.length {
            Length::Iterations(iterations) => iterations,
            Length::Duration(_) => 0,
        };
        for (key, value) in [("iterations", iterations), ("warmup", self.0.warmup)] {
            if value > ITERATIONS_MAX {
                return Err(Error::TooManyIterations {
                    place: self.place(key),
                    key: key.to_owned(),
                    experiment: self.name(),
                    value,
                    max: ITERATIONS_MAX,
                });
            }
        }
        let duration_s = match self.0.length {
            Length::Duration(duration_s) => Some(("duration", duration_s)),
            Length::Iterations(_) => None,
        };
        for (key, value_s) in duration_s.into_iter().chain([("timeout", self.0.timeout_s)]) {
            // A NaN from code is as wrong as a negative number, hence no `<=`.
            if !(value_s > 0.0 && value_s <= DURATION_S_MAX) {
                let value =
                    if value_s.abs() < 1e9 { format!("{value_s} s") } else { format!("{value_s:e} s") };
                return Err(Error::BadLength {
                    place: self.place(key),
                    key: key.to_owned(),
                    experiment: self.name(),
                    value,
                });
            }
        }
        if let Some((_, duration_s)) = duration_s.filter(|(_, duration_s)| *duration_s >= self.0.timeout_s) {
            return Err(Error::ShortTimeout {
                place: self.place("timeout"),
                experiment: self.name(),
                timeout_s: self.0.timeout_s,
                duration_s,
            });
        }
        Ok(())
    }

    fn counts(&self) -> Result<(), Error> {
        for depth in [axis::TX_DEPTH, axis::RX_DEPTH] {
            if self.least_depth(depth) == 0 {
                return Err(Error::ZeroDepth {
                    place: self.place(depth.row.name),
                    key: depth.row.name.to_owned(),
                    experiment: self.name(),
                });
            }
        }
        let zero = |axis: &&Axis| axis.row.least == 1 && axis.numbers().any(|number| number == 0);
        let repetitions = (self.0.repetitions == 0).then_some("repetitions");
        if let Some(key) = repetitions.or(self.0.axes.iter().find(zero).map(|axis| axis.row.name)) {
            return Err(Error::ZeroCount {
                place: self.place(key),
                key: key.to_owned(),
                experiment: self.name(),
            });
        }
        self.repeated()?;
        let pairs = self.largest_u32(axis::QUEUE_PAIRS.row);
        if pairs > QUEUE_PAIRS_MAX {
            return Err(Error::TooManyQueuePairs {
                place: self.place("queue_pairs"),
                experiment: self.name(),
                pairs,
                max: QUEUE_PAIRS_MAX,
            });
        }
        Ok(())
    }

    /// Repetitions until a mean is known.
    fn repeated(&self) -> Result<(), Error> {
        let least = self.0.repetitions;
        match (self.0.within, self.0.settings.repetitions_max) {
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
        let sizes = self.0.axes.get(axis::SIZE_BYTES);
        let datagrams = self.0.axes.get(axis::SERVICE).contains(&Service::Ud);
        let place = self.place("size_bytes");
        let experiment = self.name();
        if sizes.contains(&0) {
            return Err(Error::ZeroSize { place, experiment });
        }
        let mtus: Vec<u32> = self.0.axes.get(axis::MTU_BYTES).into_iter().flatten().collect();
        if let Some(mtu_bytes) = mtus.iter().copied().find(|mtu| !MTUS_BYTES.contains(mtu)) {
            return Err(Error::BadMtu {
                place: self.place("mtu_bytes"),
                experiment: self.name(),
                mtu_bytes: u64::from(mtu_bytes),
            });
        }
        // What the ports have is not known yet, but no port has more.
        let mtu_bytes = mtus.into_iter().min().unwrap_or(MTU_BYTES_MAX);
        match sizes.into_iter().find(|size| *size > u64::from(mtu_bytes)) {
            Some(size_bytes) if datagrams => {
                Err(Error::DatagramTooLong { place, experiment, size_bytes, mtu_bytes })
            }
            _ => Ok(()),
        }
    }

    fn intervals(&self) -> Result<(), Error> {
        let tx_depth = self.least_depth(axis::TX_DEPTH);
        let interval = self.largest_u32(axis::SIGNAL_INTERVAL.row);
        if interval > tx_depth {
            return Err(Error::IntervalAboveDepth {
                place: self.place("signal_interval"),
                experiment: self.name(),
                interval,
                tx_depth,
            });
        }
        // With a full queue and all but one request of a list gathered, one that asks for its completion must be out.
        let list = self.largest_u32(axis::POST_LIST.row);
        if u64::from(interval) + u64::from(list) > u64::from(tx_depth) + 1 {
            return Err(Error::ListAboveDepth {
                place: self.place("post_list"),
                experiment: self.name(),
                list,
                interval,
                tx_depth,
            });
        }
        if list > 1 && !self.0.pattern.row().floods {
            return Err(Error::NotAList { place: self.place("post_list"), experiment: self.name() });
        }
        let fill = self.largest_u32(axis::RX_FILL.row);
        let rx_depth = self.least_depth(axis::RX_DEPTH);
        if fill > rx_depth {
            return Err(Error::FillAboveDepth {
                place: self.place("rx_fill"),
                experiment: self.name(),
                fill,
                rx_depth,
            });
        }
        Ok(())
    }

    /// Refuses numbers that are larger than an axis has.
    fn bounded(&self) -> Result<(), Error> {
        for axis in self.0.axes.iter() {
            let Some(Most { most, why }) = axis.row.most else { continue };
            if axis.numbers().any(|number| number > most) {
                return self.refuse(axis.row.name, &format!("more than {most} {}", axis.row.name), why);
            }
        }
        Ok(())
    }

    /// Refuses operations that cannot be had on the service, or not in the way that is asked for.
    fn carried(&self) -> Result<(), Error> {
        let axes = &self.0.axes;
        let services = axes.get(axis::SERVICE);
        let operations = axes.get(axis::OPERATION);
        let sizes = axes.get(axis::SIZE_BYTES);
        let setups = axes.get(axis::SETUP);
        let inline = axes.get(axis::INLINE).contains(&true);
        let sge = self.largest(axis::SGE.row);
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
                    &format!("{name} over {}", service.word()),
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
        }
        Ok(())
    }

    /// A group answers in rounds alone.
    fn multicast(&self) -> Result<(), Error> {
        let is_group = self.0.axes.get(axis::OPERATION).contains(&Operation::Multicast);
        if !is_group || self.0.pattern.row().has_groups {
            return Ok(());
        }
        let patterns = Pattern::all().filter(|pattern| pattern.row().has_groups);
        let names: Vec<_> = patterns.map(|pattern| format!("{:?}", pattern.name())).collect();
        let why = format!("only a group of ranks answers one: use the pattern {}", names.join(" or "));
        self.refuse("operation", "multicast between two ranks", &why)
    }

    fn directions(&self) -> Result<(), Error> {
        if self.goes_both_ways() && !self.0.pattern.row().floods {
            let pattern = self.0.pattern.name().to_owned();
            return Err(Error::NotBidirectional {
                place: self.place("direction"),
                experiment: self.name(),
                pattern,
            });
        }
        Ok(())
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
