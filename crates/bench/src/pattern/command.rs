//! How the command line offers a pattern: `rdmascope COMMAND SUBJECT [flags]`.
//!
//! Each pattern has one [`Command`]. The program builds the parser, the help, the manual page and
//! the completions from it, from the rows of axes and from the pattern's defaults, and makes a plan
//! from the flags. The program knows no pattern by name.

use std::fmt;
use std::sync::LazyLock;

use measure::figure::Figure;

use crate::axis::{self, AxisList, AxisRow};
use crate::point::{Carrier, Choice as _, Operation};

/// The command of a pattern.
#[derive(Clone, Copy)]
pub struct Command {
    /// The command's name.
    pub name: &'static str,
    /// What it measures, in one sentence without a period.
    pub about: &'static str,
    /// Lines for the end of its help: each a command and what it does.
    pub examples: &'static str,
    /// The title of its records. `{subject}` stands for the operation or the carrier.
    pub title: fn(&AxisList) -> &'static str,
    /// What a point counts, such as messages.
    pub counts: &'static str,
    /// Which ranks the command starts.
    pub ranks: Ranks,
    /// What it can measure over verbs, and subjects with a name of their own. A command without
    /// subjects takes the flags itself.
    pub subjects: &'static [Subject],
    /// Whether it also measures this carrier of messages.
    pub over: fn(Carrier) -> bool,
    /// Settings and axes that have these values unless a flag says otherwise: `KEY`, `VALUE` as in
    /// `--set`.
    pub given: &'static [(&'static str, &'static str)],
    /// Axes that have a single value in this pattern, over a carrier or with an operation. Help
    /// does not list their flags.
    pub without: fn(Carrier, Option<Operation>) -> &'static [&'static AxisRow],
    /// Settings that are not axes and have flags.
    pub settings: &'static [SettingFlag],
    /// Whether a point may last for a given time. If not, help does not list `--duration`, which
    /// the plan refuses.
    pub takes_duration: bool,
    /// Figures of the report, over the experiments of these names.
    pub figures: fn(Vec<String>) -> Vec<Figure>,
    /// Whether the pattern is available only in plans, because flags cannot express what it needs.
    pub is_of_plans: bool,
}

/// Which ranks a command starts.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Ranks {
    /// All of them, because there may be more than two.
    All,
    /// Both, or the rank of this host: as with perftest, a user may start each rank by hand.
    Two,
}

/// What a command can measure: an operation of verbs or of MPI, or another carrier of messages.
#[derive(Clone, Copy, Debug)]
pub struct Subject {
    /// The subject's name.
    pub name: &'static str,
    /// Alternative names.
    pub aliases: &'static [&'static str],
    /// What it measures, in one sentence without a period.
    pub about: &'static str,
    /// What carries the messages.
    pub endpoint: Carrier,
    /// The operation; absent where a flag or the pattern chooses it.
    pub operation: Option<Operation>,
    /// How a flag chooses another operation.
    pub choice: Choice,
    /// Settings and axes that have these values, as [`Command::given`]. A subject that has some is
    /// titled by its own name.
    pub given: &'static [(&'static str, &'static str)],
}

/// How a flag chooses the operation of a subject.
#[derive(Clone, Copy, Debug)]
pub enum Choice {
    /// No flag does.
    Fixed,
    /// `--imm` chooses this operation, which carries immediate data.
    Immediate(Operation),
    /// `-A` names an atomic operation, as in perftest.
    Atomic,
}

/// A flag for a setting of the experiment that is not an axis.
#[derive(Clone, Copy, Debug)]
pub struct SettingFlag {
    /// The key of the setting in a plan.
    pub key: &'static str,
    /// The flag's name.
    pub long: &'static str,
    /// The name of its value in help.
    pub value_name: &'static str,
    /// The flag that this flag requires.
    pub requires: &'static str,
    /// One sentence of help without a period.
    pub help: &'static str,
}

impl Command {
    /// A command between two ranks, without subjects.
    pub const fn new(name: &'static str, about: &'static str) -> Self {
        Self {
            name,
            about,
            examples: "",
            title: |_| "{subject}",
            counts: "messages",
            ranks: Ranks::Two,
            subjects: &[],
            over: |_| false,
            given: &[],
            without: |_, _| &[],
            settings: &[],
            takes_duration: true,
            figures: |_| Vec::new(),
            is_of_plans: false,
        }
    }

    /// Whether a user may start each rank by hand, with this carrier of messages. A launcher starts
    /// the ranks of MPI.
    pub fn has_ends(&self, carrier: Carrier) -> bool {
        self.ranks == Ranks::Two && !carrier.is_mpi()
    }

    /// All its subjects.
    pub fn subjects(&self) -> impl Iterator<Item = &'static Subject> {
        let others = CARRIERS.iter().filter(|subject| (self.over)(subject.endpoint));
        self.subjects.iter().chain(others)
    }
}

impl fmt::Debug for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Command").field(&self.name).finish()
    }
}

impl Subject {
    /// An operation of verbs.
    pub const fn verbs(name: &'static str, operation: Operation, about: &'static str) -> Self {
        Self { operation: Some(operation), ..Self::over(Carrier::Verbs, name, about) }
    }

    /// Another carrier of messages.
    pub const fn over(endpoint: Carrier, name: &'static str, about: &'static str) -> Self {
        let choice = Choice::Fixed;
        Self { name, aliases: &[], about, endpoint, operation: None, choice, given: &[] }
    }

    /// Send, with immediate data where a flag requests it.
    pub const fn send(about: &'static str) -> Self {
        let choice = Choice::Immediate(Operation::SendImm);
        Self { choice, ..Self::verbs("send", Operation::Send, about) }
    }

    /// RDMA Write, with immediate data where a flag requests it.
    pub const fn write(about: &'static str) -> Self {
        let choice = Choice::Immediate(Operation::WriteImm);
        Self { choice, ..Self::verbs("write", Operation::Write, about) }
    }

    /// RDMA Read.
    pub const fn read(about: &'static str) -> Self {
        Self::verbs("read", Operation::Read, about)
    }

    /// Fetch-and-add or compare-and-swap.
    pub const fn atomic(about: &'static str) -> Self {
        Self { choice: Choice::Atomic, ..Self::verbs("atomic", Operation::FetchAdd, about) }
    }

    /// MPI_Put to a window of the other rank.
    pub const fn mpi_put(about: &'static str) -> Self {
        let given = &[("mpi_operation", "put")];
        Self { given, ..Self::over(Carrier::Mpi, "mpi-put", about).alias(&["mpi_put"]) }
    }

    /// MPI_Get from a window of the other rank.
    pub const fn mpi_get(about: &'static str) -> Self {
        let given = &[("mpi_operation", "get")];
        Self { given, ..Self::over(Carrier::Mpi, "mpi-get", about).alias(&["mpi_get"]) }
    }

    /// The same subject with alternative names.
    #[must_use]
    pub const fn alias(self, aliases: &'static [&'static str]) -> Self {
        Self { aliases, ..self }
    }
}

/// A subject for each carrier except verbs, with the carrier's documentation as help.
static CARRIERS: LazyLock<Vec<Subject>> = LazyLock::new(|| {
    let carriers = Carrier::VALUES.iter().copied().zip(Carrier::VARIANTS);
    let others = carriers.filter(|(carrier, _)| !carrier.is_verbs());
    others
        .map(|(carrier, variant)| {
            // Leaked once for each carrier: the name lives as long as the program.
            let name =
                if variant.word.contains('_') { variant.word.replace('_', "-").leak() } else { variant.word };
            Subject::over(carrier, name, variant.help()).alias(carrier.aliases())
        })
        .collect()
});

/// The axes of verbs that have a single value where all ranks together make one call: RDMA Writes
/// over RC, and polling.
pub(crate) const JOINT: fn(Carrier, Option<Operation>) -> &'static [&'static AxisRow] = |carrier, _| {
    if carrier.is_verbs() { &[axis::OPERATION.row, axis::POLL.row, axis::SERVICE.row] } else { &[] }
};

/// Sockets and shared memory, which nearly all patterns measure.
pub(crate) const NO_LIBRARY: fn(Carrier) -> bool = |carrier| !carrier.is_library() && !carrier.is_program();
