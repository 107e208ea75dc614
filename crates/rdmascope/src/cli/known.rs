//! Names of the OSU benchmarks and the Intel MPI Benchmarks (IMB) as commands, with the flags that
//! their users know: `rdmascope osu_latency -m 8:4096 -i 1000`.
//!
//! Each name stands for a command of rdmascope. It has all flags of that command by their long
//! names, and the letters of the OSU benchmarks. An option that rdmascope does not have is refused
//! with a sentence that says what to do instead.

use std::ffi::OsString;

use bench::axis::{MPI_SYNC, SIZE_BYTES, TX_DEPTH};
use bench::command::Subject;
use bench::plan::Settings;
use bench::point::{MpiSync, Pattern};
use clap::builder::PossibleValuesParser;
use clap::{Arg, ArgMatches, Command};
use measure::units;

use super::benchmark;
use super::count::count;
use super::refused::{self, IMB_OF_ALL, IMB_OF_PAIRS, IMB_OF_TWO, IMB_REFUSED, NEAR, OSU_REFUSED, Refused};
use crate::failure::Usage;

/// A benchmark of another suite, and the command of rdmascope that measures the same.
#[derive(Debug)]
pub(crate) struct Known {
    pub(crate) name: &'static str,
    suite: Suite,
    /// The command of rdmascope and its subject.
    pub(crate) ours: [&'static str; 2],
    /// Settings of that command, as for `--set`.
    pub(crate) given: &'static [(&'static str, &'static str)],
    /// Whether an iteration is a window of messages.
    pub(crate) counts_windows: bool,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Suite {
    Imb,
    Osu,
}

const fn osu(name: &'static str, ours: [&'static str; 2]) -> Known {
    Known { name, suite: Suite::Osu, ours, given: &[], counts_windows: false }
}

const fn imb(name: &'static str, ours: [&'static str; 2]) -> Known {
    Known { suite: Suite::Imb, ..osu(name, ours) }
}

impl Known {
    const fn by_windows(self) -> Self {
        Self { counts_windows: true, ..self }
    }

    const fn with(self, given: &'static [(&'static str, &'static str)]) -> Self {
        Self { given, ..self }
    }
}

const BOTH_WAYS: &[(&str, &str)] = &[("direction", "bi")];
const ONE_PAIR: &[(&str, &str)] = &[("pairs", "1")];
const ONE_STREAM: &[(&str, &str)] = &[("pairs", "1"), ("traffic", "stream")];
/// The default window of IMB.
const LONG_WINDOW: &[(&str, &str)] = &[("pairs", "1"), ("traffic", "stream"), ("tx_depth", "256")];

/// All known benchmarks.
pub(crate) static KNOWN: [Known; 60] = [
    osu("osu_latency", ["lat", "mpi"]),
    osu("osu_multi_lat", ["pairs", "mpi"]).with(ONE_PAIR),
    osu("osu_bw", ["bw", "mpi"]).by_windows(),
    osu("osu_bibw", ["bw", "mpi"]).with(BOTH_WAYS).by_windows(),
    osu("osu_mbw_mr", ["pairs", "mpi"]).with(ONE_STREAM).by_windows(),
    osu("osu_put_latency", ["lat", "mpi-put"]),
    osu("osu_get_latency", ["lat", "mpi-get"]),
    osu("osu_put_bw", ["bw", "mpi-put"]).by_windows(),
    osu("osu_get_bw", ["bw", "mpi-get"]).by_windows(),
    osu("osu_allgather", ["collective", "allgather"]),
    osu("osu_allreduce", ["collective", "allreduce"]),
    osu("osu_alltoall", ["collective", "alltoall"]),
    osu("osu_barrier", ["collective", "barrier"]),
    osu("osu_bcast", ["collective", "bcast"]),
    osu("osu_gather", ["collective", "gather"]),
    osu("osu_reduce", ["collective", "reduce"]),
    osu("osu_reduce_scatter", ["collective", "reduce-scatter"]),
    osu("osu_reduce_scatter_block", ["collective", "reduce-scatter-block"]),
    osu("osu_scatter", ["collective", "scatter"]),
    osu("osu_allgatherv", ["collective", "allgatherv"]),
    osu("osu_alltoallv", ["collective", "alltoallv"]),
    osu("osu_gatherv", ["collective", "gatherv"]),
    osu("osu_scatterv", ["collective", "scatterv"]),
    osu("osu_iallgather", ["collective", "iallgather"]),
    osu("osu_iallreduce", ["collective", "iallreduce"]),
    osu("osu_ialltoall", ["collective", "ialltoall"]),
    osu("osu_ibarrier", ["collective", "ibarrier"]),
    osu("osu_ibcast", ["collective", "ibcast"]),
    osu("osu_igather", ["collective", "igather"]),
    osu("osu_ireduce", ["collective", "ireduce"]),
    osu("osu_ireduce_scatter", ["collective", "ireduce-scatter"]),
    osu("osu_ireduce_scatter_block", ["collective", "ireduce-scatter-block"]),
    osu("osu_iscatter", ["collective", "iscatter"]),
    imb("PingPong", ["lat", "mpi"]),
    imb("Uniband", ["pairs", "mpi"]).with(LONG_WINDOW).by_windows(),
    imb("Unidir_put", ["lat", "mpi-put"]),
    imb("Unidir_get", ["lat", "mpi-get"]),
    imb("Allgather", ["collective", "allgather"]),
    imb("Allreduce", ["collective", "allreduce"]),
    imb("Alltoall", ["collective", "alltoall"]),
    imb("Barrier", ["collective", "barrier"]),
    imb("Bcast", ["collective", "bcast"]),
    imb("Gather", ["collective", "gather"]),
    imb("Reduce", ["collective", "reduce"]),
    imb("Reduce_scatter", ["collective", "reduce-scatter"]),
    imb("Reduce_scatter_block", ["collective", "reduce-scatter-block"]),
    imb("Scatter", ["collective", "scatter"]),
    imb("Allgatherv", ["collective", "allgatherv"]),
    imb("Alltoallv", ["collective", "alltoallv"]),
    imb("Gatherv", ["collective", "gatherv"]),
    imb("Scatterv", ["collective", "scatterv"]),
    imb("Iallgather", ["collective", "iallgather"]),
    imb("Iallreduce", ["collective", "iallreduce"]),
    imb("Ialltoall", ["collective", "ialltoall"]),
    imb("Ibarrier", ["collective", "ibarrier"]),
    imb("Ibcast", ["collective", "ibcast"]),
    imb("Igather", ["collective", "igather"]),
    imb("Ireduce", ["collective", "ireduce"]),
    imb("Ireduce_scatter", ["collective", "ireduce-scatter"]),
    imb("Iscatter", ["collective", "iscatter"]),
];

impl Known {
    /// Returns the benchmark with a name.
    pub(crate) fn named(name: &str) -> Option<&'static Self> {
        KNOWN.iter().find(|known| known.name == name)
    }

    /// Returns the pattern and the subject that measure the same.
    pub(crate) fn of_ours(&self) -> (Pattern, &'static Subject) {
        let [command, subject] = self.ours;
        let pattern = benchmark::pattern(command).expect("a test finds the command of each name");
        let found = pattern.command().subjects().find(|known| known.name == subject);
        (pattern, found.expect("a test finds the subject of each name"))
    }

    /// Returns the command of the benchmark.
    pub(crate) fn command(&self) -> String {
        format!("rdmascope {}", self.name)
    }

    /// Adds the settings of the suite's flags to the settings of rdmascope's flags.
    pub(crate) fn settle(&self, flags: &ArgMatches, settings: Settings) -> anyhow::Result<Settings> {
        if let Some((letter, long, _, instead)) = refused::given(self.refused(), flags) {
            let instead = self.instead(long).unwrap_or(instead);
            let flag = match (letter, self.suite) {
                (Some(letter), _) => format!("-{letter} (--{long})"),
                (None, _) => format!("-{long}"),
            };
            return Err(Usage(format!("{flag} of {} is not supported: {instead}", self.name)).into());
        }
        let mut settings = settings;
        if let Some(text) = flags.get_one::<String>(self.range()) {
            let has_0 = self.suite == Suite::Imb
                && !flags.get_one::<String>(ZERO_SIZE).is_some_and(|word| OFF.contains(&word.as_str()));
            let sizes = self.sizes(text)?;
            settings = settings.axis(SIZE_BYTES.values(has_0.then_some(0).into_iter().chain(sizes)));
        }
        if self.has_window()
            && let Some(window) = flags.get_one::<u32>(WINDOW)
        {
            // Replaces the window that the name sets, if it sets one.
            if settings.axes.get(TX_DEPTH).is_empty() {
                settings.tx_depth = Some(*window);
            } else {
                settings = settings.axis(TX_DEPTH.value(*window));
            }
        }
        if self.has_sync() {
            if let Some(sync) = flags.get_one::<String>(SYNC) {
                settings = settings.axis(MPI_SYNC.value(self.sync(sync)?));
            }
            if let Some(other) = flags.get_one::<String>(WINDOWS).filter(|window| *window != "allocate") {
                let words =
                    format!("-w {other}: rdmascope makes windows with MPI_Win_allocate: leave -w out");
                return Err(Usage(words).into());
            }
        }
        let window = self.counted_window(flags, &settings)?;
        let messages =
            |count: u64| if self.counts_windows { count.saturating_mul(window.into()) } else { count };
        if let Some(count) = flags.get_one::<u64>(ITERATIONS) {
            settings.iterations = Some(messages(*count));
        }
        if let Some(count) = self.has_warmup().then(|| flags.get_one::<u64>(WARMUP)).flatten() {
            settings.warmup = Some(messages(*count));
        }
        Ok(settings)
    }

    /// Returns the messages of a window: the suites count windows, rdmascope counts messages.
    fn counted_window(&self, flags: &ArgMatches, settings: &Settings) -> Result<u32, Usage> {
        let windows = settings.axes.get(TX_DEPTH);
        let window = windows.first().copied().or(settings.tx_depth).unwrap_or(WINDOW_MESSAGES);
        let counts = flags.get_one::<u64>(ITERATIONS).is_some()
            || self.has_warmup() && flags.get_one::<u64>(WARMUP).is_some();
        if self.counts_windows && counts && windows.iter().any(|other| *other != window) {
            let flag = if self.suite == Suite::Imb { "-iter counts" } else { "-i and -x count" };
            return Err(Usage(format!(
                "{flag} windows, and --tx-depth gives windows of several lengths: use --iters and --warmup, which \
                 count messages"
            )));
        }
        Ok(window)
    }

    /// Adds the settings that the name stands for. Flags come later and replace them.
    pub(crate) fn start(&self, settings: Settings) -> anyhow::Result<Settings> {
        let given = |settings: Settings, (key, value): &(&str, &str)| settings.set(key, value);
        Ok(self.given.iter().try_fold(settings, given)?)
    }

    fn has_sync(&self) -> bool {
        self.suite == Suite::Osu && matches!(self.ours[1], "mpi-put" | "mpi-get")
    }

    fn has_window(&self) -> bool {
        self.counts_windows
    }

    fn has_warmup(&self) -> bool {
        self.suite == Suite::Osu
    }

    fn refused(&self) -> impl Iterator<Item = &'static Refused> + use<> {
        let all = match self.suite {
            Suite::Imb => &IMB_REFUSED[..],
            Suite::Osu => &OSU_REFUSED,
        };
        let own = self.has_window().then(|| self.window().0);
        all.iter().filter(move |(_, long, ..)| Some(*long) != own)
    }

    /// Returns what to do instead of a flag, where that differs for this kind of benchmark.
    fn instead(&self, long: &str) -> Option<&'static str> {
        let of: &[(&str, &str)] = match (self.suite, self.ours[0]) {
            (Suite::Osu, _) => &[],
            (Suite::Imb, "collective") => &IMB_OF_ALL,
            (Suite::Imb, "pairs") => &IMB_OF_PAIRS,
            (Suite::Imb, _) => &IMB_OF_TWO,
        };
        of.iter().find(|(flag, _)| *flag == long).map(|(_, instead)| *instead)
    }

    /// Returns the name of the window's flag, and the messages of a window by default.
    fn window(&self) -> (&'static str, u32) {
        match self.suite {
            Suite::Imb => ("window_size", 256),
            Suite::Osu => (WINDOW, WINDOW_MESSAGES),
        }
    }

    fn range(&self) -> &'static str {
        match self.suite {
            Suite::Imb => MSGLOG,
            Suite::Osu => MESSAGE_SIZE,
        }
    }

    /// Returns the smallest size by default. Reductions need an element for each of two ranks.
    /// OSU's latencies between two ranks start with size 0; IMB measures size 0 before all others.
    fn least(&self) -> u64 {
        match (self.suite, self.ours[1]) {
            (_, name) if name.contains("reduce-scatter") => 8,
            (_, name) if name.contains("reduce") => 4,
            (Suite::Osu, "mpi") if !self.counts_windows => 0,
            _ => 1,
        }
    }

    /// Returns the largest size by default.
    fn largest(&self) -> u64 {
        if self.suite == Suite::Osu && self.ours[0] == "collective" { 1 << 20 } else { 4 << 20 }
    }

    /// Returns the sizes of `MIN:MAX`, `MIN:` or `MAX`: bytes for OSU, exponents of two for IMB.
    fn sizes(&self, text: &str) -> Result<Vec<u64>, Usage> {
        let wrong = || {
            let of = if self.suite == Suite::Imb { "exponents of two" } else { "bytes" };
            let example = if self.suite == Suite::Imb { "3:12" } else { "8:4096" };
            Usage(format!(
                "{}{} {text}: give the smallest and the largest size in {of}, such as {example}",
                if self.suite == Suite::Imb { "-" } else { "--" },
                self.range()
            ))
        };
        let (least, most) = text.split_once(':').unwrap_or(("", text));
        let number = |text: &str, other: u64| match (text, self.suite) {
            ("", _) => Ok(other),
            (_, Suite::Osu) => text.parse().map_err(|_| wrong()),
            (_, Suite::Imb) => {
                let exponent = text.parse::<u32>().ok().filter(|exponent| *exponent < 31);
                exponent.map(|exponent| 1 << exponent).ok_or_else(wrong)
            }
        };
        let mut least = number(least, self.least())?;
        if self.suite == Suite::Imb {
            // IMB's `-msglog 0:4` starts with one element, too.
            least = least.max(self.least());
        }
        let most = number(most, self.largest())?;
        let next = |size: &u64| if *size == 0 { Some(1) } else { size.checked_mul(2) };
        let sizes: Vec<u64> =
            std::iter::successors(Some(least), next).take_while(|size| *size <= most).collect();
        if sizes.is_empty() { Err(wrong()) } else { Ok(sizes) }
    }

    fn sync(&self, word: &str) -> Result<MpiSync, Usage> {
        match word {
            "fence" => Ok(MpiSync::Fence),
            "flush" => Ok(MpiSync::Flush),
            "flush_local" => Ok(MpiSync::FlushLocal),
            "lock" => Ok(MpiSync::Lock),
            "lock_all" => Ok(MpiSync::LockAll),
            _ => {
                let instead =
                    "rdmascope does not measure MPI_Win_post, start, complete and wait: give fence or flush";
                Err(Usage(format!("-s {word} of {}: {instead}", self.name)))
            }
        }
    }

    /// Returns the flags that the suite has.
    fn flags(&self) -> Vec<Arg> {
        let kind = if self.counts_windows { "windows" } else { "iterations" };
        let number = |id: &'static str, long: &'static str| {
            Arg::new(id).long(long).value_name("N").value_parser(units::parse_count)
        };
        let mut flags = match self.suite {
            Suite::Osu => vec![
                Arg::new(MESSAGE_SIZE).short('m').long(MESSAGE_SIZE).value_name("[MIN:]MAX").help(format!(
                    "Message sizes in bytes: MIN, then doubled up to MAX [default of MIN: {}; of MAX: {} MiB]",
                    self.least(),
                    self.largest() >> 20
                )),
                number(ITERATIONS, "iterations")
                    .short('i')
                    .help(format!("Number of {kind} at each point (in rdmascope: --iters, in messages)")),
                number(WARMUP, "skip")
                    .short('x')
                    .help(format!("Number of warm-up {kind} (in rdmascope: --warmup)")),
            ],
            Suite::Imb => vec![
                Arg::new(MSGLOG).long(MSGLOG).value_name("[MIN:]MAX").help(
                    "Message sizes: 0, and 2^MIN, then doubled up to 2^MAX bytes; also as -msglog [default of MIN: 0]",
                ),
                Arg::new(ZERO_SIZE)
                    .long(ZERO_SIZE)
                    .value_name("on|off")
                    .value_parser(PossibleValuesParser::new(ON.into_iter().chain(OFF)))
                    .hide_possible_values(true)
                    .help("Whether size 0 comes before the sizes of -msglog; also as -zero_size [default: on]"),
                number(ITERATIONS, "iter").help(format!("Number of {kind} at each point; also as -iter")),
            ],
        };
        if self.has_window() {
            let of = self.window();
            let window = Arg::new(WINDOW).long(of.0).value_name("N");
            let window = window.short((self.suite == Suite::Osu).then_some('W'));
            let window = window.value_parser(count(1_u32..)).conflicts_with("tx-depth");
            flags.push(
                window.help(format!("Messages of a window (in rdmascope: --tx-depth) [default: {}]", of.1)),
            );
        }
        if self.has_sync() {
            let sync = PossibleValuesParser::new(SYNCS);
            let sync = Arg::new(SYNC).short('s').long(SYNC).value_name("SYNC").value_parser(sync);
            let help = "Call that completes a put or a get (in rdmascope: --mpi-sync) [default: flush]";
            flags.push(sync.conflicts_with("mpi-sync").help(help));
            let windows = PossibleValuesParser::new(["allocate", "create", "dynamic"]);
            let windows =
                Arg::new(WINDOWS).short('w').long(WINDOWS).value_name("WINDOW").value_parser(windows);
            flags.push(windows.help("How the window is made: only allocate is supported"));
        }
        flags
    }
}

/// Returns the commands with these names. The flags of a command are made only when it is used.
pub(crate) fn commands() -> impl Iterator<Item = Command> {
    let known = KNOWN.iter().map(|known| {
        let suite = match known.suite {
            Suite::Imb => "the Intel MPI Benchmarks",
            Suite::Osu => "the OSU benchmarks",
        };
        let [command, subject] = known.ours;
        let about = format!("{} of {suite}: another name of rdmascope {command} {subject}", known.name);
        Command::new(known.name).about(about).hide(true).defer(flags)
    });
    let near = NEAR.iter().map(|(name, _)| {
        let words = Arg::new("words").num_args(0..).trailing_var_arg(true).allow_hyphen_values(true);
        Command::new(*name).hide(true).disable_help_flag(true).arg(words)
    });
    known.chain(near)
}

/// Returns the error for a benchmark of another suite that rdmascope does not have.
pub(crate) fn lacks(command: &str) -> Option<Usage> {
    let (name, near) = NEAR.iter().find(|(name, _)| *name == command)?;
    Some(Usage(format!("{name} is not supported: {near}")))
}

/// Adds rdmascope's flags by their long names, and the letters of the suite.
fn flags(command: Command) -> Command {
    let known = Known::named(command.get_name()).expect("only known names' commands are made so");
    let (pattern, subject) = known.of_ours();
    let about = command.get_about().cloned().unwrap_or_default();
    let is_pairs = |arg: &Arg| arg.get_long() == Some("pairs");
    let own = known.flags();
    let is_own: Vec<_> = own.iter().map(|arg| arg.get_id().clone()).collect();
    let command = benchmark::flags(command.args(own), pattern, Some(subject)).about(about);
    let command = command.mut_args(|arg| {
        if is_own.contains(arg.get_id()) {
            return arg;
        }
        let letter = match arg.get_short() {
            Some('T') if known.suite == Suite::Osu => Some('T'),
            _ if is_pairs(&arg) && known.suite == Suite::Osu => Some('p'),
            _ => None,
        };
        // The default is what the name sets.
        let arg = if is_pairs(&arg) { arg.help("Pairs of ranks [default: 1]") } else { arg };
        arg.short(letter)
    });
    let command = ["size", "all"].into_iter().fold(command, |command, long| {
        let is_there = command.get_arguments().any(|arg| arg.get_id() == long);
        if is_there { command.mut_arg(long, |arg| arg.conflicts_with(known.range())) } else { command }
    });
    let command = ["iters", "duration"]
        .into_iter()
        .fold(command, |command, long| command.mut_arg(long, |arg| arg.conflicts_with(ITERATIONS)));
    let command = match known.has_warmup() {
        true => command.mut_arg("warmup", |arg| arg.conflicts_with(WARMUP)),
        false => command,
    };
    command.args(refused::args(known.refused()))
}

/// Returns the words of a command line as clap reads them: the Intel MPI Benchmarks write `-msglog`
/// and not `--msglog`.
pub(crate) fn spelled(words: impl IntoIterator<Item = OsString>) -> Vec<OsString> {
    let mut words: Vec<OsString> = words.into_iter().collect();
    let name = words.get(1).and_then(|word| word.to_str()).and_then(Known::named);
    if name.is_none_or(|known| known.suite != Suite::Imb) {
        return words;
    }
    let is_long = |text: &str| {
        let name = text.strip_prefix('-').unwrap_or_default();
        name.len() > 1 && name.starts_with(|first: char| first.is_ascii_alphabetic())
    };
    for word in words.iter_mut().skip(2) {
        if word.to_str().is_some_and(is_long) {
            let long = [OsString::from("-"), word.clone()].into_iter().collect();
            *word = long;
        }
    }
    words
}

/// Names of the suites' flags.
const MESSAGE_SIZE: &str = "message-size";
const MSGLOG: &str = "msglog";
const ITERATIONS: &str = "known-iterations";
const WARMUP: &str = "known-warmup";
const WINDOW: &str = "window-size";
const SYNC: &str = "sync-option";
const WINDOWS: &str = "win-options";
const SYNCS: [&str; 6] = ["flush", "flush_local", "lock", "lock_all", "fence", "pscw"];
const ZERO_SIZE: &str = "zero_size";
/// IMB's words for on and off.
const ON: [&str; 4] = ["on", "1", "enable", "yes"];
const OFF: [&str; 4] = ["off", "0", "disable", "no"];
/// The default window of OSU and of rdmascope, in messages.
const WINDOW_MESSAGES: u32 = 64;
