//! `rdmascope lat`, `bw` and the commands of all other patterns: make a plan of the flags and
//! measure it.

use std::process::ExitCode;

use bench::axis::{self, Axis, AxisRow};
use bench::command::Subject;
use bench::plan::offer::{Offer, Offered, carrier, start};
use bench::plan::{IN_CODE, MTU_BYTES_MAX, Options, Plan, Settings, resolve};
use bench::point::{Operation, Pattern, Service};
use clap::{ArgMatches, FromArgMatches};
use measure::figure::Unit;

use crate::cli::known::Known;
use crate::cli::{
    Amount, MpiPlacement, Output, Placement, Results, SocketPlacement, axes, benchmark, refused,
};
use crate::execute::execute;
use crate::failure::Usage;
use crate::job::{Job, Shows};
use crate::launch::launch;
use crate::server_args::ServerArgs;

/// Largest size of `-a`: perftest's 2^23.
const ALL_MAX: u64 = 8 << 20;
/// Largest size of `-a` for datagrams over sockets: the power of two below their limit.
const ALL_MAX_DATAGRAM: u64 = 32 << 10;
/// Smallest size of `-a`: perftest's.
const ALL_MIN: u64 = 2;

/// The benchmark of a command line.
pub(crate) struct Benchmark<'a> {
    pattern: Pattern,
    subject: Option<&'static Subject>,
    /// The benchmark of another suite, if the command has its name.
    known: Option<&'static Known>,
    /// The operation that the subject and its flags choose.
    operation: Option<Operation>,
    /// The axes that flags can set.
    rows: Vec<&'static AxisRow>,
    flags: &'a ArgMatches,
}

impl<'a> Benchmark<'a> {
    /// Returns the benchmark of a command line, if its command has a pattern.
    pub(crate) fn asked_for(matches: &'a ArgMatches) -> Option<Self> {
        let (command, mut flags) = matches.subcommand()?;
        let known = Known::named(command);
        let (pattern, mut subject) = match known {
            Some(known) => {
                let (pattern, subject) = known.of_ours();
                (pattern, Some(subject))
            }
            None => (benchmark::pattern(command)?, None),
        };
        if let Some((name, below)) = flags.subcommand() {
            subject = pattern.command().subjects().find(|subject| subject.name == name);
            flags = below;
        }
        let operation = subject.and_then(|subject| benchmark::operation(subject, flags));
        let rows = Offer::of(pattern, subject).axes.iter().map(|offered| offered.row).collect();
        Some(Self { pattern, subject, known, operation, rows, flags })
    }

    /// Measures the benchmark.
    pub(crate) fn measure(&self, command: Vec<String>) -> anyhow::Result<ExitCode> {
        let resolved = resolve(&self.plan()?, &Options::default()).map_err(|error| self.in_flags(error))?;
        let carrier = carrier(self.subject);
        let peer = match self.pattern.command().has_ends(carrier) {
            true => ServerArgs::from_arg_matches(self.flags)?.peer()?,
            false => None,
        };
        let launch = if carrier.is_verbs() {
            launch(&Placement::from_arg_matches(self.flags)?, peer, &resolved)?
        } else if carrier.is_mpi() {
            launch(&MpiPlacement::from_arg_matches(self.flags)?, peer, &resolved)?
        } else {
            launch(&SocketPlacement::from_arg_matches(self.flags)?, peer, &resolved)?
        };
        let output = Output::from_arg_matches(self.flags)?;
        let bandwidth = if output.report_gbits { Unit::GbPerS } else { Unit::MiBPerS };
        execute(Job {
            resolved,
            quick: false,
            command,
            launch,
            json_file: output.json_file(),
            out: output.out.into(),
            bandwidth,
            shows: if output.results.json { Shows::Json } else { Shows::Points },
        })
    }

    /// Returns an error about the plan of the flags in the words of the command line.
    fn in_flags(&self, error: bench::Error) -> anyhow::Error {
        let bench::Error::Plan { place, words } = &error else { return error.into() };
        if place != IN_CODE {
            return error.into();
        }
        let subject = self.subject.map(|subject| subject.name);
        let command = ["rdmascope", self.pattern.command().name].into_iter().chain(subject);
        let command = self.known.map_or_else(|| command.collect::<Vec<_>>().join(" "), Known::command);
        Usage(axes::in_flags(words, &self.rows, &command)).into()
    }

    /// Returns the axes that flags can set, with their defaults.
    pub(crate) fn offered(&self) -> Vec<Offered> {
        Offer::of(self.pattern, self.subject).axes
    }

    /// Returns the plan that the flags describe.
    pub(crate) fn plan(&self) -> anyhow::Result<Plan> {
        let command = self.pattern.command();
        let settings = self.settings()?;
        let name = match self.word() {
            Some(word) => format!("{}-{}", command.name, word.replace('_', "-")),
            None => command.name.to_owned(),
        };
        let title = (command.title)(&settings.axes).replace("{subject}", self.words());
        let mut plan = Plan::new(&name, title);
        let mut names = Vec::new();
        for (name, settings) in self.split(&name, settings) {
            plan = plan.experiment(&name, self.pattern, settings);
            names.push(name);
        }
        let plan = (command.figures)(names).into_iter().fold(plan, Plan::figure);
        Ok(Results::from_arg_matches(self.flags)?.expected(plan)?)
    }

    /// Returns the settings of the flags, with all sizes in one experiment.
    fn settings(&self) -> anyhow::Result<Settings> {
        if benchmark::has_perftest(self.pattern, self.subject)
            && let Some(refusal) = refused::perftest_refusal(self.flags)
        {
            return Err(refusal.into());
        }
        let settings = start(self.pattern, self.subject, self.operation);
        let settings = self.known.map_or(Ok(settings.clone()), |known| known.start(settings))?;
        let mut settings = Amount::from_arg_matches(self.flags)?.settle(settings);
        for flag in self.pattern.command().settings {
            if let Some(value) = self.flags.get_one::<String>(flag.key) {
                settings = settings.set(flag.key, value)?;
            }
        }
        let given = axes::given(self.flags, &self.rows)?;
        // Sockets have no queues, so that their depth stays an axis, which the plan refuses.
        let carrier = carrier(self.subject);
        let settle = if carrier.is_verbs() || carrier.is_mpi() { axes::settle } else { Settings::axis };
        settings = given.into_iter().fold(settings, settle);
        if let Some(known) = self.known {
            settings = known.settle(self.flags, settings)?;
        }
        let has_sizes = self.rows.iter().any(|row| row.name == axis::SIZE_BYTES.row.name);
        let is_all = has_sizes && self.flags.get_flag("all");
        // Atomics have only one size.
        if is_all && !self.operation.is_some_and(Operation::is_atomic) {
            let all = std::iter::successors(Some(ALL_MIN), |size| Some(size * 2));
            let most = self.longest(&settings);
            settings = settings.axis(axis::SIZE_BYTES.values(all.take_while(|size| *size <= most)));
        }
        Ok(settings)
    }

    /// Returns the largest size of `-a`.
    fn longest(&self, settings: &Settings) -> u64 {
        let carrier = carrier(self.subject);
        if !carrier.is_verbs() {
            return if carrier.is_datagram() { ALL_MAX_DATAGRAM } else { ALL_MAX };
        }
        let services = settings.axes.get(axis::SERVICE);
        let is_group = services.is_empty() && self.operation == Some(Operation::Multicast);
        if !is_group && !services.contains(&Service::Ud) {
            return ALL_MAX;
        }
        // If the ports have a smaller MTU, longer datagrams are not measured.
        let mtu = settings.axes.get(axis::MTU_BYTES).into_iter().flatten().min();
        mtu.unwrap_or(MTU_BYTES_MAX).into()
    }

    /// Splits sizes at the limit of a flag such as `-I`: an axis differs below and above the limit,
    /// so that there are two experiments.
    fn split(&self, name: &str, settings: Settings) -> Vec<(String, Settings)> {
        // With a limit of 0, no size is inline, not even 0 bytes.
        let Some((row, limit)) = axes::up_to(self.flags, &self.rows).filter(|(_, n)| *n > 0) else {
            return vec![(name.to_owned(), settings)];
        };
        let below = settings.clone().axis(Axis::read(row, vec![true.into()]));
        let sizes = settings.axes.get(axis::SIZE_BYTES);
        if sizes.is_empty() {
            return vec![(name.to_owned(), below)];
        }
        let (small, large): (Vec<u64>, Vec<u64>) = sizes.into_iter().partition(|size| *size <= limit);
        let name_below = if large.is_empty() { name.to_owned() } else { format!("{name}-{}", row.name) };
        [(name_below, below, small), (name.to_owned(), settings, large)]
            .into_iter()
            .filter(|(.., sizes)| !sizes.is_empty())
            .map(|(name, of, sizes)| (name, of.axis(axis::SIZE_BYTES.values(sizes))))
            .collect()
    }

    /// Returns what is measured, for the name of the plan.
    fn word(&self) -> Option<&'static str> {
        let subject = self.subject?;
        Some(match self.operation {
            Some(operation) => operation.word(),
            None if subject.endpoint.is_verbs() || !subject.given.is_empty() => subject.name,
            None => subject.endpoint.word(),
        })
    }

    /// Returns what is measured, for the title of the plan.
    fn words(&self) -> &'static str {
        match (self.operation, self.subject) {
            (Some(operation), _) => operation.name(),
            (None, Some(subject)) if subject.endpoint.is_verbs() || !subject.given.is_empty() => subject.name,
            (None, Some(subject)) => subject.endpoint.name(),
            (None, None) => self.pattern.command().name,
        }
    }
}
