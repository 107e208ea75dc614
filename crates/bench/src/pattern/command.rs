//! How the command line offers a pattern: `rdmascope COMMAND SUBJECT [flags]`.
//!
//! A pattern's room has one [`Command`]. The program builds the parser, the help, the manual page
//! and the completions from it, from the rows of axes and from the pattern's own defaults, and
//! makes the plan that the flags ask for. It knows no pattern by name.

use std::fmt;
use std::sync::LazyLock;

use measure::figure::Figure;

use crate::axis::{AxisList, AxisRow};
use crate::point::{Carrier, Choice as _, Operation};

/// The command of a pattern.
#[derive(Clone, Copy)]
pub struct Command {
    /// Its name.
    pub name: &'static str,
    /// What it measures, in one sentence without a period.
    pub about: &'static str,
    /// Lines for the end of its help: a command each, and what that does.
    pub examples: &'static str,
    /// Heading of its records. `{subject}` stands for the operation or the carrier.
    pub title: fn(&AxisList) -> &'static str,
    /// What a point has a number of.
    pub counts: &'static str,
    /// Which ranks it starts.
    pub ranks: Ranks,
    /// What it can measure over verbs, and what has a name of its own. A command without subjects
    /// takes its flags itself.
    pub subjects: &'static [Subject],
    /// What else it can measure: other carriers of messages.
    pub over: fn(Carrier) -> bool,
    /// Settings and axes that have these values unless a flag says otherwise: `KEY`, `VALUE` as in
    /// `--set`.
    pub given: &'static [(&'static str, &'static str)],
    /// Axes of which the pattern has one value only, so that a flag would serve nothing.
    pub without: &'static [&'static AxisRow],
    /// Settings that are no axes and have flags of their own.
    pub settings: &'static [SettingFlag],
    /// Figures of the report, over the experiments of these names.
    pub figures: fn(Vec<String>) -> Vec<Figure>,
    /// Whether only plans have the pattern, because flags cannot say what it needs.
    pub is_of_plans: bool,
}

/// Which ranks a command starts.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Ranks {
    /// All of them, because there may be more than two.
    All,
    /// Both, or the one at this end: as with perftest, each end may be started by hand.
    Two,
}

/// What a command can measure: an operation of verbs or of MPI, or another carrier of messages.
#[derive(Clone, Copy, Debug)]
pub struct Subject {
    /// Its name.
    pub name: &'static str,
    /// Other names that it has.
    pub aliases: &'static [&'static str],
    /// What it measures, in one sentence without a period.
    pub about: &'static str,
    /// What carries the messages.
    pub endpoint: Carrier,
    /// The operation; absent where a flag or the pattern says it.
    pub operation: Option<Operation>,
    /// How a flag chooses another operation.
    pub choice: Choice,
    /// Settings and axes that have these values, as [`Command::given`]. A subject that has some is
    /// called by its own name.
    pub given: &'static [(&'static str, &'static str)],
}

/// How a flag chooses the operation of a subject.
#[derive(Clone, Copy, Debug)]
pub enum Choice {
    /// None does.
    Fixed,
    /// `--imm` takes this one, which carries immediate data.
    Immediate(Operation),
    /// `-A` names an atomic, as perftest's does.
    Atomic,
}

/// A flag that gives a setting of the experiment which is no axis.
#[derive(Clone, Copy, Debug)]
pub struct SettingFlag {
    /// The key of the setting in a plan.
    pub key: &'static str,
    /// The flag's name.
    pub long: &'static str,
    /// What help calls its value.
    pub value_name: &'static str,
    /// The flag without which it has no effect.
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
            without: &[],
            settings: &[],
            figures: |_| Vec::new(),
            is_of_plans: false,
        }
    }

    /// Whether each of its ranks may be started by hand, with messages that are carried so: a
    /// launcher starts those of MPI.
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

    /// Send, with immediate data where a flag asks for that.
    pub const fn send(about: &'static str) -> Self {
        let choice = Choice::Immediate(Operation::SendImm);
        Self { choice, ..Self::verbs("send", Operation::Send, about) }
    }

    /// RDMA Write, with immediate data where a flag asks for that.
    pub const fn write(about: &'static str) -> Self {
        let choice = Choice::Immediate(Operation::WriteImm);
        Self { choice, ..Self::verbs("write", Operation::Write, about) }
    }

    /// RDMA Read.
    pub const fn read(about: &'static str) -> Self {
        Self::verbs("read", Operation::Read, about)
    }

    /// Either atomic.
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

    /// The same by other names too.
    #[must_use]
    pub const fn alias(self, aliases: &'static [&'static str]) -> Self {
        Self { aliases, ..self }
    }
}

/// A subject for each carrier but verbs, from what documents its word.
static CARRIERS: LazyLock<Vec<Subject>> = LazyLock::new(|| {
    let carriers = Carrier::VALUES.iter().copied().zip(Carrier::VARIANTS);
    let others = carriers.filter(|(carrier, _)| !carrier.is_verbs());
    others
        .map(|(carrier, variant)| {
            // As long as the program runs, which takes a name once.
            let name =
                if variant.word.contains('_') { variant.word.replace('_', "-").leak() } else { variant.word };
            Subject::over(carrier, name, variant.help()).alias(carrier.aliases())
        })
        .collect()
});

/// Sockets and shared memory, which nearly every pattern measures.
pub(crate) const NO_LIBRARY: fn(Carrier) -> bool = |carrier| !carrier.is_library() && !carrier.is_program();
