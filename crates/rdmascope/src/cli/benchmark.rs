//! The commands of patterns, such as `rdmascope lat send`, made from the rows of the patterns.

use std::path::PathBuf;
use std::time::Duration;

use bench::axis::SIZE_BYTES;
use bench::command::{Choice, Subject};
use bench::plan::offer::{Offer, Offered, carrier};
use bench::plan::{Plan, Settings};
use bench::point::{Length, Operation, Pattern};
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Arg, ArgAction, ArgMatches, Args, Command};
use measure::units;

use super::count::count;
use super::placement::{MpiPlacement, Placement, SocketPlacement};
use super::{axes, refused};
use crate::server_args::ServerArgs;

/// How much is measured.
#[derive(Args, Debug)]
pub(crate) struct Amount {
    #[arg(short = 'n', long, value_name = "N", value_parser = units::parse_count)]
    iters: Option<u64>,
    #[arg(
        short = 'D',
        long,
        value_name = "TIME",
        conflicts_with = "iters",
        allow_negative_numbers = true,
        value_parser = units::parse_duration
    )]
    duration: Option<Duration>,
    #[arg(long, value_name = "N", value_parser = units::parse_count)]
    warmup: Option<u64>,
    /// Repeat each point, at least 3 times, until the mean over its repetitions is known to within
    /// +- this share of it at 95 % confidence; 2.5% is netperf's -I 95,5.
    #[arg(long, value_name = "PERCENT", value_parser = units::parse_percent)]
    within: Option<f64>,
    /// Number of times to start the ranks anew and measure every point: numbers differ more between
    /// launches than within one. Medians over the launches follow the rows.
    #[arg(long, value_name = "N", conflicts_with = "within", value_parser = count(1_u32..))]
    launches: Option<u32>,
    /// Largest number of repetitions with --within [default: 30].
    #[arg(long, value_name = "N", requires = "within", value_parser = count(1_u32..))]
    repetitions_max: Option<u32>,
}

impl Amount {
    /// Adds these flags to the settings of a plan.
    pub(crate) fn settle(&self, settings: Settings) -> Settings {
        Settings {
            iterations: self.iters,
            duration_s: self.duration.map(|duration| duration.as_secs_f64()),
            warmup: self.warmup,
            within: self.within,
            repetitions_max: self.repetitions_max,
            launches: self.launches,
            ..settings
        }
    }
}

/// What becomes of the results of a run.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct Results {
    /// A bound on every point that has the number: 'p99 <= 5us', 'throughput >= 90% of link',
    /// 'missed <= 0.1%' or no_loss. The exit status is 3 if one is not met.
    #[arg(long, value_name = "BOUND")]
    pub(crate) expect: Vec<String>,
    /// Print each point as a line of JSON when it ends; all other text goes to standard error.
    #[arg(long)]
    pub(crate) json: bool,
}

impl Results {
    /// Adds the bounds to a plan.
    pub(crate) fn expected(&self, plan: Plan) -> Result<Plan, bench::Error> {
        self.expect.iter().try_fold(plan, |plan, text| plan.expect(text))
    }
}

/// What is printed and kept.
#[derive(Args, Debug)]
pub(crate) struct Output {
    /// Print throughput in 10^9 bit/s instead of 2^20 B/s.
    #[arg(long = "report_gbits", alias = "report-gbits")]
    pub(crate) report_gbits: bool,
    #[command(flatten)]
    pub(crate) results: Results,
    /// Write the results into perftest_out.json as well, with perftest's keys.
    #[arg(long = "out_json", alias = "out-json")]
    out_json: bool,
    /// Write the results into this file as well, with perftest's keys.
    #[arg(long = "out_json_file", alias = "out-json-file", value_name = "FILE")]
    out_json_file: Option<PathBuf>,
    /// Directory for the record and a report; it must not contain a run.
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
}

impl Output {
    /// Returns the file for all points as JSON, if one is asked for.
    pub(crate) fn json_file(&self) -> Option<PathBuf> {
        let usual = self.out_json.then(|| PathBuf::from(JSON_FILE));
        self.out_json_file.clone().or(usual)
    }
}

/// The file of `--out_json` in perftest.
const JSON_FILE: &str = "perftest_out.json";

/// Returns the commands of all patterns. The flags of a command are made only when it is used.
pub(crate) fn commands() -> impl Iterator<Item = Command> {
    Pattern::offered().map(|pattern| {
        let row = pattern.command();
        let command = Command::new(row.name).about(row.about).arg_required_else_help(true);
        command.after_help(format!("Examples:{}", row.examples)).defer(subjects)
    })
}

/// Returns the pattern of a command, if it has one.
pub(crate) fn pattern(command: &str) -> Option<Pattern> {
    Pattern::offered().find(|pattern| pattern.command().name == command)
}

/// Adds the subjects and their flags to a command.
fn subjects(command: Command) -> Command {
    let pattern = pattern(command.get_name()).expect("only patterns' commands are made so");
    let row = pattern.command();
    if row.subjects().next().is_none() {
        return flags(command, pattern, None).about(row.about);
    }
    let subject = |subject: &'static Subject| {
        let command = Command::new(subject.name).aliases(subject.aliases);
        let command = command.after_help(format!("Examples:{}", row.examples));
        // Last, because groups of flags set another text.
        flags(command, pattern, Some(subject)).about(subject.about)
    };
    command.subcommand_required(true).subcommands(row.subjects().map(subject))
}

/// Adds the flags of a subject: the pattern's axes, how much is measured, and where.
pub(super) fn flags(command: Command, pattern: Pattern, subject: Option<&'static Subject>) -> Command {
    let row = pattern.command();
    let Offer { axes, length } = Offer::of(pattern, subject);
    let has_sizes = axes.iter().any(|offered| offered.row.name == SIZE_BYTES.row.name);
    let (own, shared): (Vec<Offered>, Vec<Offered>) = axes.into_iter().partition(|offered| offered.is_own);
    let command = command.args(own.iter().flat_map(flags_of));
    let command = command.args(choice(subject.map(|subject| subject.choice)));
    let command = command.args(has_sizes.then(all_sizes));
    let command = amount(command, row, length).args(row.settings.iter().map(|of| {
        Arg::new(of.key).long(of.long).value_name(of.value_name).requires(of.requires).help(of.help)
    }));
    let command = command.next_help_heading("Messages (values separated by commas are measured in turn)");
    let command = command.args(shared.iter().flat_map(flags_of));
    let command = command.next_help_heading("Ranks, hosts and the record");
    let carrier = carrier(subject);
    let command = if row.has_ends(carrier) { with_ends(command) } else { command };
    let command = Output::augment_args(command);
    if carrier.is_verbs() {
        let command = Placement::augment_args(command);
        if has_perftest(pattern, subject) { refused::with_perftest(command) } else { command }
    } else if carrier.is_mpi() {
        MpiPlacement::augment_args(command)
    } else {
        SocketPlacement::augment_args(command)
    }
}

/// Whether perftest has a benchmark for what a command measures.
pub(crate) fn has_perftest(pattern: Pattern, subject: Option<&'static Subject>) -> bool {
    carrier(subject).is_verbs() && [Pattern::PING_PONG, Pattern::STREAM].contains(&pattern)
}

/// Returns the flags of an axis. Help lists them only where the axis has an effect.
fn flags_of(offered: &Offered) -> impl Iterator<Item = Arg> {
    let is_shown = offered.is_shown;
    axes::flags(offered.row, &offered.default).into_iter().map(move |flag| flag.hide(!is_shown))
}

/// Adds the flags that say how much is measured, with the terms and the default of a pattern.
fn amount(command: Command, row: &bench::command::Command, length: Length) -> Command {
    let counts = row.counts;
    let (seconds, number) = match length {
        Length::Duration(seconds) => (format!(" [default: {seconds}]"), String::new()),
        Length::Iterations(number) => (String::new(), format!(" [default: {number}]")),
    };
    let helps = [
        ("iters", format!("Number of {counts} at each point{number}")),
        (
            "duration",
            format!("Time at each point, such as 10 or 500ms, instead of a number of {counts}{seconds}"),
        ),
        ("warmup", format!("Number of warm-up {counts}, which are not measured [default: a tenth]")),
    ];
    let command = Amount::augment_args(command);
    let command =
        helps.into_iter().fold(command, |command, (id, help)| command.mut_arg(id, |arg| arg.help(help)));
    if row.takes_duration { command } else { command.mut_arg("duration", |arg| arg.hide(true)) }
}

/// Adds the flags of a server and its client. Help lists the host below `Arguments`, as usual.
fn with_ends(command: Command) -> Command {
    ServerArgs::augment_args(command).mut_arg("host", |host| host.help_heading("Arguments"))
}

fn all_sizes() -> Arg {
    let help = "All powers of two from 2 B to 8 MiB; for datagrams, up to the longest";
    Arg::new("all").short('a').long("all").help(help).conflicts_with("size").action(ArgAction::SetTrue)
}

/// Returns the flag that chooses between variants of the operation, if there is one.
fn choice(choice: Option<Choice>) -> Option<Arg> {
    match choice? {
        Choice::Fixed => None,
        Choice::Immediate(_) => {
            let help = "With immediate data, which consumes a posted receive of the other rank";
            Some(Arg::new("imm").long("imm").help(help).action(ArgAction::SetTrue))
        }
        Choice::Atomic => {
            let possible = ATOMICS.map(|(name, help, _)| PossibleValue::new(name).help(help));
            let parser = PossibleValuesParser::new(possible).map(|text| {
                let meant = |(name, ..): &&(&str, &str, Operation)| name.eq_ignore_ascii_case(&text);
                ATOMICS.iter().find(meant).map_or(Operation::FetchAdd, |(.., operation)| *operation)
            });
            let arg = Arg::new("atomic_type").short('A').long("atomic_type").value_name("TYPE");
            let arg = arg.help("Atomic operation").default_value("FETCH_AND_ADD").ignore_case(true);
            Some(arg.value_parser(parser))
        }
    }
}

/// Atomics as perftest's `-A` names them.
const ATOMICS: [(&str, &str, Operation); 2] = [
    ("CMP_AND_SWAP", "Compare and swap", Operation::CompareSwap),
    ("FETCH_AND_ADD", "Fetch and add", Operation::FetchAdd),
];

/// Returns the operation that the flags of a subject choose.
pub(crate) fn operation(subject: &Subject, matches: &ArgMatches) -> Option<Operation> {
    match subject.choice {
        Choice::Immediate(with) if matches.get_flag("imm") => Some(with),
        Choice::Atomic => matches.get_one("atomic_type").copied(),
        _ => subject.operation,
    }
}
