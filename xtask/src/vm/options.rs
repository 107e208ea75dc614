//! The words after `cargo xtask vm`.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};

use super::script;

pub(super) const USAGE: &str = "\
usage: cargo xtask vm [OPTIONS] [--] COMMAND [ARGUMENT...]

Boots Debian's kernel in an emulated machine, with the software device rxe0 over eth0 (10.0.2.15), and runs COMMAND there
in the current directory, as root. It sees this machine's files; what it writes is forgotten, save for what is under DIR.
Its output is relayed and its exit status returned (128 and the signal's number if a signal ended it; 124 after the
time limit; 125 if it could not be run). PATH, HOME, LANG, RUST_BACKTRACE, RUST_LOG and
RDMASCOPE_* are passed on.

  --out DIR            a directory of this machine that is writable inside, at the same place; created if it is missing;
                       its path is in RDMASCOPE_VM_OUT
  --env NAME=VALUE     sets a variable of the command's environment
  --counted            one CPU, whose time is the number of instructions that it has executed, a nanosecond each: what this
                       machine does beside it changes nothing (otherwise two CPUs, in this machine's time)
  --before COMMANDS    runs shell commands first, in the shell that becomes COMMAND: `ip link set eth0 down`, `ulimit -l 64`
  --no-rxe             makes no device and loads no module of RDMA (`modprobe` does, in --before; what is there as well are
                       veth, nf_tables, nft_numgen, sch_netem, sch_tbf and sctp)
  --peer               boots a second machine first, and joins the two by a cable: eth0 of each, with its own rxe0. They are
                       called vm (10.0.2.15) and peer (10.0.2.16), have one CPU each, and answer `ssh vm` and `ssh peer`
  --timeout SECONDS    ends the machine when COMMAND takes longer (300)
  --verbose            shows the kernel's console, and how long the boot took";

/// What to run, and how.
#[derive(Debug, Eq, PartialEq)]
pub(super) struct Options {
    pub(super) command: Vec<OsString>,
    pub(super) out: Option<PathBuf>,
    pub(super) variables: Vec<(OsString, OsString)>,
    pub(super) before: Vec<OsString>,
    pub(super) has_rxe: bool,
    pub(super) is_counted: bool,
    pub(super) has_peer: bool,
    pub(super) timeout: Duration,
    pub(super) is_verbose: bool,
}

/// Five minutes: what a job of CI can spare.
const TIMEOUT: Duration = Duration::from_secs(300);

impl Options {
    /// `None` if help was asked for.
    pub(super) fn parse(words: impl IntoIterator<Item = OsString>) -> Result<Option<Self>> {
        let mut options = Self {
            command: Vec::new(),
            out: None,
            variables: Vec::new(),
            before: Vec::new(),
            has_rxe: true,
            is_counted: false,
            has_peer: false,
            timeout: TIMEOUT,
            is_verbose: false,
        };
        let mut words = words.into_iter();
        while let Some(word) = words.next() {
            let mut value =
                || words.next().with_context(|| format!("{} needs a value", word.to_string_lossy()));
            match word.to_str() {
                Some("--help" | "-h") => return Ok(None),
                Some("--before") => options.before.push(value()?),
                Some("--env") => options.variables.push(variable(&value()?)?),
                Some("--counted") => options.is_counted = true,
                Some("--no-rxe") => options.has_rxe = false,
                Some("--out") => options.out = Some(value()?.into()),
                Some("--peer") => options.has_peer = true,
                Some("--timeout") => options.timeout = seconds(&value()?)?,
                Some("--verbose") => options.is_verbose = true,
                Some("--") => {
                    options.command.extend(words);
                    break;
                }
                Some(unknown) if unknown.starts_with('-') => {
                    bail!("`{unknown}` is no option of vm (--help lists them)")
                }
                _ => {
                    options.command.push(word);
                    options.command.extend(words);
                    break;
                }
            }
        }
        ensure!(!options.command.is_empty(), "there is no command to run (--help shows how)");
        ensure!(
            !(options.is_counted && options.has_peer),
            "--counted --peer: two machines that count for themselves have no time in common"
        );
        Ok(Some(options))
    }
}

fn variable(word: &OsStr) -> Result<(OsString, OsString)> {
    let mut parts = word.as_bytes().splitn(2, |byte| *byte == b'=');
    let pair = parts.next().zip(parts.next()).map(|(name, value)| (os(name), os(value)));
    pair.filter(|(name, _)| script::is_name(name))
        .with_context(|| format!("--env {}: expected NAME=VALUE", word.to_string_lossy()))
}

fn os(bytes: &[u8]) -> OsString {
    OsString::from_vec(bytes.to_vec())
}

fn seconds(word: &OsStr) -> Result<Duration> {
    let number = word.to_str().and_then(|word| word.parse::<u32>().ok()).filter(|seconds| *seconds > 0);
    let number = number.with_context(|| {
        format!("--timeout {}: expected a whole number of seconds, at least 1", word.to_string_lossy())
    })?;
    Ok(Duration::from_secs(number.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(words: &[&str]) -> Result<Option<Options>> {
        Options::parse(words.iter().map(OsString::from))
    }

    fn parsed(words: &[&str]) -> Options {
        parse(words).unwrap().unwrap()
    }

    #[test]
    fn options_end_at_the_command() {
        let options = parsed(&["--no-rxe", "ls", "--timeout", "--", "-l"]);
        assert_eq!(options.command, ["ls", "--timeout", "--", "-l"]);
        assert!(!options.has_rxe);
        assert_eq!(options.timeout, TIMEOUT);
        let options = parsed(&["--", "--no-rxe"]);
        assert_eq!(options.command, ["--no-rxe"]);
        assert!(options.has_rxe);
    }

    #[test]
    fn every_option_is_read() {
        let words = [
            "--out",
            "d",
            "--env",
            "A=b=c",
            "--before",
            "x; y",
            "--before",
            "z",
            "--timeout",
            "7",
            "--counted",
            "--verbose",
        ];
        let options = parsed(&[&words[..], &["true"]].concat());
        assert_eq!(options.out, Some("d".into()));
        assert_eq!(options.variables, [("A".into(), "b=c".into())]);
        assert_eq!(options.before, ["x; y", "z"]);
        assert_eq!(options.timeout, Duration::from_secs(7));
        assert!(options.is_counted && options.is_verbose && !options.has_peer);
        assert!(parsed(&["--peer", "true"]).has_peer);
        assert_eq!(parse(&["--help", "true"]).unwrap(), None);
    }

    #[test]
    fn bad_words_get_a_sentence() {
        for (words, sentence) in [
            (&[][..], "there is no command to run (--help shows how)"),
            (&["--no-rxe"], "there is no command to run (--help shows how)"),
            (&["--cpus", "2", "true"], "`--cpus` is no option of vm (--help lists them)"),
            (&["--out"], "--out needs a value"),
            (&["--env", "A", "true"], "--env A: expected NAME=VALUE"),
            (&["--env", "A B=1", "true"], "--env A B=1: expected NAME=VALUE"),
            (
                &["--counted", "--peer", "true"],
                "--counted --peer: two machines that count for themselves have no time in common",
            ),
            (&["--timeout", "0", "true"], "--timeout 0: expected a whole number of seconds, at least 1"),
            (&["--timeout", "1m", "true"], "--timeout 1m: expected a whole number of seconds, at least 1"),
        ] {
            assert_eq!(parse(words).unwrap_err().to_string(), sentence);
        }
    }
}
