//! Two commands measured by turns: pairs in random order, each command in a process of its own.
//!
//! The directory has `turns.json` with the commands and the order, and the runs as `base/1`,
//! `new/1`, ... A run that did not finish is removed and measured again, so that a comparison goes
//! on after any kill.

use std::fs::{self, File};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use ::report::compare::questions;
use ::report::fleet::compared;
use anyhow::{Context, bail};
use bench::process::end_with_us;
use bench::process::interrupt::Interrupt;
use bench::process::template::split;
use measure::clock::Deadline;
use measure::files;
use measure::random::Random;
use measure::store::RunReader;
use measure::text::{counted, shell_word};
use measure::units::format_duration;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open};
use serde::{Deserialize, Serialize};
use verdict::compare::Design;

use crate::failure::{Interrupted, Usage, harmless};

/// The file with the commands and the order.
const FILE: &str = "turns.json";
/// The output of the running turn.
const LOG: &str = "turn.log";
/// The directories of the sides.
const SIDES: [&str; 2] = ["base", "new"];
/// The most pairs: the Walsh averages of a point are half of their square.
pub(super) const PAIRS_MAX: u32 = 1_000;

/// `turns.json`: what is measured by turns, and in which order.
#[derive(Debug, Deserialize, Serialize)]
struct Kept {
    /// The commands of the base and of the new side.
    commands: [String; 2],
    /// The seed of the order.
    seed: u64,
    /// Of each pair, whether the new side comes first.
    new_first: Vec<bool>,
    /// The working directory, for relative paths of programs; absent in older files.
    #[serde(default)]
    started_in: Option<PathBuf>,
}

/// Two commands, the order of their turns, and the directory of their runs.
pub(super) struct Turns {
    out: PathBuf,
    /// The commands, as they were given.
    pub(super) commands: [String; 2],
    words: [Vec<String>; 2],
    new_first: Vec<bool>,
    /// How long a turn may take.
    time: Duration,
    /// The lock of `turns.json`, without which another process could remove the running turn.
    _lock: File,
}

impl Turns {
    /// Opens the directory of a comparison, new or begun.
    ///
    /// # Errors
    ///
    /// If a command has no words or names a directory itself, or if the directory belongs to
    /// something else, or to another process.
    pub(super) fn open(
        out: &Path,
        pairs: u32,
        commands: [&String; 2],
        time: Duration,
    ) -> anyhow::Result<Self> {
        let words = [words(commands[0])?, words(commands[1])?];
        let commands = commands.map(Clone::clone);
        let file = out.join(FILE);
        let kept = if file.exists() { read(&file)? } else { begin(out, &file, pairs, &commands)? };
        if kept.commands != commands || kept.new_first.len() != pairs as usize {
            let again = repeated(kept.new_first.len(), &kept.commands);
            return Err(Usage(format!(
                "{} has the turns of another comparison, {again}: repeat these to go on with it, or choose \
                 another directory",
                out.display()
            ))
            .into());
        }
        let here = std::env::current_dir().ok();
        let is_relative = |words: &Vec<String>| words[0].contains('/') && !words[0].starts_with('/');
        if let Some(there) = kept.started_in.as_ref().filter(|there| Some(*there) != here.as_ref())
            && words.iter().any(is_relative)
        {
            let out = out.display();
            let there = there.display();
            let why =
                format!("{out} was begun in {there}, where the paths of its commands start: go on there");
            return Err(Usage(why).into());
        }
        let lock = locked(&file, out)?;
        let shown = counted(pairs.into(), "pair");
        eprintln!("rdmascope: {shown} in random order, seed {}{}", kept.seed, enough_for(pairs as usize));
        Ok(Self { out: out.to_owned(), commands, words, new_first: kept.new_first, time, _lock: lock })
    }

    /// Measures the turns that are missing, and reads all. The comparison that follows asks about
    /// `quantities`, and about experiments instead of points if `by_experiment` is set.
    pub(super) fn measure(
        &self,
        quantities: &[String],
        by_experiment: bool,
    ) -> anyhow::Result<[Vec<RunReader>; 2]> {
        let interrupt = Interrupt::install()?;
        let total = 2 * self.new_first.len();
        let mut all: [Vec<RunReader>; 2] = [Vec::new(), Vec::new()];
        for (pair, new_first) in (1..).zip(&self.new_first) {
            for side in if *new_first { [1, 0] } else { [0, 1] } {
                let directory = self.out.join(SIDES[side]).join(pair.to_string());
                let run = match finished(&directory) {
                    Some(run) => run,
                    None => {
                        let turn = all[0].len() + all[1].len() + 1;
                        eprintln!("rdmascope: turn {turn} of {total}: {}", SIDES[side]);
                        self.turn(side, &directory, &interrupt)?
                    }
                };
                all[side].push(run);
            }
            if pair == 1 {
                let first = &all[0][0];
                let points = compared(first.run(), first.points());
                self.tell_least(questions(&points, quantities, by_experiment), by_experiment);
            }
        }
        Ok(all)
    }

    /// Says how many pairs the questions need, if there are too few: only now is known how many
    /// points a command measures.
    fn tell_least(&self, questions: usize, by_experiment: bool) {
        let pairs = self.new_first.len();
        let least = Design::of_turns(pairs).least(questions);
        if pairs < least {
            let fewer = if by_experiment { "" } else { ", or ask fewer questions with --by experiment" };
            let questions = counted(questions as u64, "question");
            eprintln!("rdmascope: too few pairs for {questions}: measure at least {least}{fewer}");
        }
    }

    /// Measures one turn.
    fn turn(&self, side: usize, directory: &Path, interrupt: &Interrupt) -> anyhow::Result<RunReader> {
        if directory.exists() {
            let cannot_remove = || format!("cannot remove {}, which did not finish", directory.display());
            fs::remove_dir_all(directory).with_context(cannot_remove)?;
        }
        let log = self.out.join(LOG);
        let output = File::create(&log).with_context(|| format!("cannot write {}", log.display()))?;
        let mut command = self.command(side, directory)?;
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(output);
        let name = &self.commands[side];
        // A turn that outlives a killed comparison would write into a run of the resumed one.
        end_with_us(&mut command);
        let mut child = command.spawn().with_context(|| format!("cannot start '{name}'"))?;
        let waited = wait(&mut child, interrupt, self.time);
        let waited = waited.with_context(|| format!("cannot wait for '{name}'"))?;
        if let Some(signal) = interrupt.received() {
            let why = "finished turns are kept, and the same command goes on with the others".to_owned();
            return Err(Interrupted { signal: signal.to_owned(), why }.into());
        }
        // A complete record can be compared even if points failed, which the exit status says.
        if let Some(run) = finished(directory) {
            return Ok(run);
        }
        let said = fs::read_to_string(&log).unwrap_or_default();
        match waited {
            Waited::TooLong => bail!(
                "'{name}' did not end within {} and was stopped: give more with --turn-timeout",
                format_duration(self.time)
            ),
            Waited::Ended(status) if status.success() => {
                bail!("'{name}' left no complete record in {}", directory.display())
            }
            Waited::Ended(status) => bail!("'{name}' {}: {}", how(status), reason(&said)),
        }
    }

    /// The command of a side. It runs this program, or the program that its first word names.
    fn command(&self, side: usize, directory: &Path) -> anyhow::Result<Command> {
        let words = &self.words[side];
        let mut command = match words.first() {
            Some(program) if program.contains('/') => {
                let mut command = Command::new(program);
                command.args(&words[1..]);
                command
            }
            _ => {
                let own = std::env::current_exe().context("cannot find the executable of this program")?;
                let mut command = Command::new(own);
                command.args(words);
                command
            }
        };
        command.arg("--out").arg(directory);
        Ok(command)
    }
}

/// Reads the runs of an earlier comparison, and its commands.
///
/// # Errors
///
/// If the directory has no turns, or if a run is missing.
pub(super) fn recorded(out: &Path) -> anyhow::Result<([Vec<RunReader>; 2], [String; 2])> {
    let shown = out.display();
    let file = out.join(FILE);
    if !file.exists() {
        let why = format!("{shown} has no {FILE}, as the directory of an --interleave has: name two sides");
        return Err(Usage(why).into());
    }
    let Kept { commands, new_first, .. } = read(&file)?;
    let pairs = new_first.len();
    let run = |side: &str, pair: usize| {
        finished(&out.join(side).join(pair.to_string())).ok_or_else(|| {
            let again = repeated(pairs, &commands);
            Usage(format!(
                "{shown}/{side}/{pair} is missing or incomplete: go on with `rdmascope compare {again} --out {shown}`"
            ))
        })
    };
    let side = |side: &str| (1..=pairs).map(|pair| run(side, pair)).collect::<Result<Vec<_>, _>>();
    Ok(([side(SIDES[0])?, side(SIDES[1])?], commands))
}

/// How many questions so many pairs can decide, unless it is any number.
fn enough_for(pairs: usize) -> String {
    let design = Design::of_turns(pairs);
    match design.most(pairs) {
        0 => format!("; too few to decide anything: measure at least {}", design.least(1)),
        usize::MAX => String::new(),
        most => format!("; enough for {}", counted(most as u64, "question")),
    }
}

/// The option and the commands of a comparison, for a shell.
fn repeated(pairs: usize, commands: &[String; 2]) -> String {
    let [base, new] = commands.each_ref().map(|command| shell_word(&harmless(command)));
    format!("--interleave {pairs} {base} {new}")
}

/// Locks the file of the turns.
fn locked(file: &Path, out: &Path) -> anyhow::Result<File> {
    let cannot_lock = || format!("cannot lock {}", file.display());
    let lock = File::options().read(true).write(true).open(file).with_context(cannot_lock)?;
    // A process that began at the same time may have replaced the file.
    let [own, there] =
        [lock.metadata().with_context(cannot_lock)?, fs::metadata(file).with_context(cannot_lock)?];
    match files::lock(&lock) && own.ino() == there.ino() {
        true => Ok(lock),
        false => Err(Usage(format!("{} is being measured by another process", out.display())).into()),
    }
}

/// Splits a command into words.
fn words(command: &str) -> anyhow::Result<Vec<String>> {
    let refuse = |why: &str| Usage(format!("the command '{command}' cannot be measured by turns: {why}"));
    let mut words = split(command).map_err(refuse)?;
    // A user may give the whole command line, with the name of the program.
    if words.first().is_some_and(|word| word == env!("CARGO_PKG_NAME")) {
        words.remove(0);
    }
    if words.is_empty() {
        return Err(refuse("it is empty; an example is 'lat send --local'").into());
    }
    if words.iter().any(|word| word == "--out" || word.starts_with("--out=")) {
        return Err(refuse("--out is set for each turn; leave it out").into());
    }
    Ok(words)
}

/// Reads the turns of a comparison that was begun.
fn read(file: &Path) -> anyhow::Result<Kept> {
    let cannot_read = || format!("cannot read {}", file.display());
    let text = files::read(file).with_context(cannot_read)?;
    serde_json::from_slice(&text).map_err(|error| {
        let file = file.display();
        Usage(format!("{file} is not that of a comparison: {error}: choose another directory")).into()
    })
}

/// Draws an order and keeps it.
fn begin(out: &Path, file: &Path, pairs: u32, commands: &[String; 2]) -> anyhow::Result<Kept> {
    if fs::read_dir(out).is_ok_and(|mut entries| entries.next().is_some()) {
        let out = out.display();
        return Err(Usage(format!("{out} is not empty and has no {FILE}: choose another directory")).into());
    }
    fs::create_dir_all(out).with_context(|| format!("cannot create the directory {}", out.display()))?;
    let seed = seed();
    let mut random = Random(seed);
    let new_first = (0..pairs).map(|_| random.bits() >> 63 == 1).collect();
    let started_in = std::env::current_dir().ok();
    let kept = Kept { commands: commands.clone(), seed, new_first, started_in };
    let text = serde_json::to_vec_pretty(&kept).context("cannot encode the order of the turns")?;
    let written: io::Result<()> = files::replace(file, |file| file.write_all(&text));
    written.with_context(|| format!("cannot write {}", file.display()))?;
    Ok(kept)
}

/// Returns a seed for the order of the turns: the time, in ns.
fn seed() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    since.as_nanos() as u64
}

/// Reads a run if it is complete.
fn finished(directory: &Path) -> Option<RunReader> {
    let run = RunReader::open(directory).ok()?;
    let is_whole = run.points().len() as u64 >= run.run().points_planned;
    let is_cut = run.points().iter().any(|point| point.cut);
    (run.run().ended.is_some() && is_whole && !is_cut).then_some(run)
}

/// Waits for a child. If its time is over or a signal arrives, it is told to end, and killed if it
/// does not. Nothing wakes up while it measures.
fn wait(child: &mut Child, interrupt: &Interrupt, time: Duration) -> io::Result<Waited> {
    let pid = Pid::from_child(child);
    let pidfd = pidfd_open(pid, PidfdFlags::empty())?;
    if let Some(status) = ended(child, &pidfd, Some(interrupt), time)? {
        return Ok(Waited::Ended(status));
    }
    let received = interrupt.received();
    let signal = if received == Some("SIGINT") { Signal::INT } else { Signal::TERM };
    // A child that has ended meanwhile needs no signal.
    let _ = kill_process(pid, signal);
    let status = match ended(child, &pidfd, None, GRACE)? {
        Some(status) => status,
        None => {
            child.kill()?;
            child.wait()?
        }
    };
    Ok(if received.is_some() { Waited::Ended(status) } else { Waited::TooLong })
}

/// Waits until a child has ended; none if its time is over first, or a signal arrives.
fn ended(
    child: &mut Child,
    pidfd: &OwnedFd,
    interrupt: Option<&Interrupt>,
    time: Duration,
) -> io::Result<Option<ExitStatus>> {
    let until = Deadline::after(time);
    loop {
        let status = child.try_wait()?;
        let is_told = interrupt.is_some_and(|interrupt| interrupt.received().is_some());
        if status.is_some() || is_told || until.is_over() {
            return Ok(status);
        }
        let mut watched = vec![PollFd::new(pidfd, PollFlags::IN)];
        watched.extend(interrupt.map(|interrupt| PollFd::new(interrupt, PollFlags::IN)));
        match poll(&mut watched, Some(&until.timespec())) {
            Err(Errno::INTR) => {}
            polled => drop(polled?),
        }
    }
}

/// How the wait for a child ended.
enum Waited {
    Ended(ExitStatus),
    TooLong,
}

/// The time in which a child that is told to end keeps what it has.
const GRACE: Duration = Duration::from_secs(30);

/// The line of a program's messages that says why it has ended: that of an error, or the last.
fn reason(said: &str) -> &str {
    let mut lines = said.lines().filter(|line| !line.trim().is_empty());
    let error = lines.clone().find_map(|line| line.strip_prefix("error: "));
    error.or_else(|| lines.next_back()).unwrap_or("it printed no reason")
}

/// How a process ended, in words.
fn how(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("ended with status {code}"),
        (None, Some(signal)) => format!("was killed by signal {signal}"),
        (None, None) => "ended".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_a_whole_command_line_or_its_words() {
        let of = |command: &str| words(command).map_err(|error| error.to_string());
        let expected = Ok(["lat", "send", "-n", "10"].map(str::to_owned).to_vec());
        assert_eq!(of("lat send -n 10"), expected);
        assert_eq!(of("rdmascope lat send -n 10"), expected);
        assert_eq!(of("./rdmascope lat").map(|words| words[0].clone()), Ok("./rdmascope".to_owned()));
        let commands = ["lat --link '4X FDR'".to_owned(), "lat send".to_owned()];
        let expected = r"--interleave 9 'lat --link '\''4X FDR'\''' 'lat send'";
        assert_eq!(repeated(9, &commands), expected);
        assert!(of("rdmascope").is_err_and(|why| why.contains("it is empty")));
        assert!(of("lat send --out there").is_err_and(|why| why.contains("--out is set for each turn")));
    }
}
