//! The commands of patterns, from their rows: `rdmascope lat send` and the like.

use std::path::PathBuf;

use bench::axis::SIZE_BYTES;
use bench::command::{Choice, Subject};
use bench::plan::Settings;
use bench::plan::offer::{Offer, Offered, carrier};
use bench::point::{Length, Operation, Pattern};
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Arg, ArgAction, ArgMatches, Args, Command};
use measure::units;

use super::axes;
use super::placement::{MpiPlacement, Placement, SocketPlacement};
use crate::server_args::ServerArgs;

/// How much is measured.
#[derive(Args, Debug)]
pub(crate) struct Amount {
    #[arg(short = 'n', long, value_name = "N")]
    iters: Option<u64>,
    #[arg(
        short = 'D',
        long,
        value_name = "SECONDS",
        conflicts_with = "iters",
        allow_negative_numbers = true
    )]
    duration: Option<f64>,
    #[arg(long, value_name = "N")]
    warmup: Option<u64>,
    /// Measure again, 3 times at least, until the mean over the repetitions is known this closely
    /// at 95 % confidence: 2.5% is what netperf has as -I 95,5.
    #[arg(long, value_name = "PERCENT", value_parser = units::parse_percent)]
    within: Option<f64>,
    /// Start the ranks anew so often, and measure every point each time: numbers differ more from
    /// one launch to the next than within one. Medians over the launches follow the rows.
    #[arg(long, value_name = "N", conflicts_with = "within")]
    launches: Option<u32>,
    /// Most repetitions with --within [default: 30].
    #[arg(long, value_name = "N", requires = "within")]
    repetitions_max: Option<u32>,
}

impl Amount {
    /// Adds these to the settings of a plan.
    pub(crate) fn settle(&self, settings: Settings) -> Settings {
        Settings {
            iterations: self.iters,
            duration_s: self.duration,
            warmup: self.warmup,
            within: self.within,
            repetitions_max: self.repetitions_max,
            launches: self.launches,
            ..settings
        }
    }
}

/// What is printed and kept.
#[derive(Args, Debug)]
pub(crate) struct Output {
    /// Print 10^9 bit/s instead of 2^20 B/s.
    #[arg(long = "report_gbits", alias = "report-gbits")]
    pub(crate) report_gbits: bool,
    /// Keep the record and a report in this directory; it must not hold a run.
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
}

/// The commands of all patterns. Their flags are made when one of them is used.
pub(crate) fn commands() -> impl Iterator<Item = Command> {
    Pattern::offered().map(|pattern| {
        let row = pattern.command();
        let command = Command::new(row.name).about(row.about).arg_required_else_help(true);
        command.after_help(format!("Examples:{}", row.examples)).defer(subjects)
    })
}

/// The pattern of a command.
pub(crate) fn pattern(command: &str) -> Option<Pattern> {
    Pattern::offered().find(|pattern| pattern.command().name == command)
}

/// The command with its subjects and their flags.
fn subjects(command: Command) -> Command {
    let pattern = pattern(command.get_name()).expect("only patterns' commands are made so");
    let row = pattern.command();
    if row.subjects().next().is_none() {
        return flags(command, pattern, None).about(row.about);
    }
    let subject = |subject: &'static Subject| {
        let command = Command::new(subject.name).aliases(subject.aliases);
        let command = command.after_help(format!("Examples:{}", row.examples));
        // Groups of flags bring a sentence of their own.
        flags(command, pattern, Some(subject)).about(subject.about)
    };
    command.subcommand_required(true).subcommands(row.subjects().map(subject))
}

/// The flags of a subject: what the pattern's axes are, how much is measured, and where.
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
    let command = command.next_help_heading("Messages (several values with commas are measured in turn)");
    let command = command.args(shared.iter().flat_map(flags_of));
    let command = command.next_help_heading("Ranks, hosts and the record");
    let carrier = carrier(subject);
    let command = if row.has_ends(carrier) { with_ends(command) } else { command };
    let command = Output::augment_args(command);
    if carrier.is_verbs() {
        Placement::augment_args(command)
    } else if carrier.is_mpi() {
        MpiPlacement::augment_args(command)
    } else {
        SocketPlacement::augment_args(command)
    }
}

/// The flags of an axis. Where it says nothing, help does not list them.
fn flags_of(offered: &Offered) -> impl Iterator<Item = Arg> {
    let is_shown = offered.is_shown;
    axes::flags(offered.row, &offered.default).into_iter().map(move |flag| flag.hide(!is_shown))
}

/// The flags that say how much is measured, in the words and with the default of a pattern.
fn amount(command: Command, row: &bench::command::Command, length: Length) -> Command {
    let counts = row.counts;
    let (seconds, number) = match length {
        Length::Duration(seconds) => (format!(" [default: {seconds}]"), String::new()),
        Length::Iterations(number) => (String::new(), format!(" [default: {number}]")),
    };
    let helps = [
        ("iters", format!("Number of {counts} at each point{number}")),
        ("duration", format!("Seconds at each point, instead of a number of {counts}{seconds}")),
        ("warmup", format!("Number of {counts} before the first that counts [default: a tenth]")),
    ];
    let command = Amount::augment_args(command);
    helps.into_iter().fold(command, |command, (id, help)| command.mut_arg(id, |arg| arg.help(help)))
}

/// The flags of ends that are started by hand. The host stands where help lists it by itself.
fn with_ends(command: Command) -> Command {
    ServerArgs::augment_args(command).mut_arg("host", |host| host.help_heading("Arguments"))
}

fn all_sizes() -> Arg {
    let help = "All powers of two from 2 B to 8 MiB; of datagrams to the longest";
    Arg::new("all").short('a').long("all").help(help).conflicts_with("size").action(ArgAction::SetTrue)
}

/// The flag that chooses another operation.
fn choice(choice: Option<Choice>) -> Option<Arg> {
    match choice? {
        Choice::Fixed => None,
        Choice::Immediate(_) => {
            let help = "With immediate data, which consumes a receive at the target";
            Some(Arg::new("imm").long("imm").help(help).action(ArgAction::SetTrue))
        }
        Choice::Atomic => {
            let possible = ATOMICS.map(|(name, help, _)| PossibleValue::new(name).help(help));
            let parser = PossibleValuesParser::new(possible).map(|text| {
                let meant = |(name, ..): &&(&str, &str, Operation)| name.eq_ignore_ascii_case(&text);
                ATOMICS.iter().find(meant).map_or(Operation::FetchAdd, |(.., operation)| *operation)
            });
            let arg = Arg::new("atomic_type").short('A').long("atomic_type").value_name("TYPE");
            let arg = arg.help("Which atomic").default_value("FETCH_AND_ADD").ignore_case(true);
            Some(arg.value_parser(parser))
        }
    }
}

/// Atomics as perftest's `-A` names them.
const ATOMICS: [(&str, &str, Operation); 2] = [
    ("CMP_AND_SWAP", "Compare and swap", Operation::CompareSwap),
    ("FETCH_AND_ADD", "Fetch and add", Operation::FetchAdd),
];

/// The operation that the flags of a subject choose.
pub(crate) fn operation(subject: &Subject, matches: &ArgMatches) -> Option<Operation> {
    match subject.choice {
        Choice::Immediate(with) if matches.get_flag("imm") => Some(with),
        Choice::Atomic => matches.get_one("atomic_type").copied(),
        _ => subject.operation,
    }
}
