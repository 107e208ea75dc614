//! The options of `cargo xtask vm`.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};

use super::script;

pub(super) const USAGE: &str = "\
usage: cargo xtask vm [OPTIONS] [--] COMMAND [ARGUMENT...]

Boots Debian's kernel in an emulated machine, with the software device rxe0 on eth0 (10.0.2.15), and runs COMMAND there in the
current directory, as root. COMMAND sees the files of this host; its changes are lost, except in the directory of --out. Its
output is relayed. The exit status is that of COMMAND (128 and the signal's number if a signal ended it), 124 after the time
limit, or 125 if COMMAND could not be run. COMMAND inherits PATH, HOME, LANG, RUST_BACKTRACE, RUST_LOG and RDMASCOPE_*.

  --out DIR            a directory of this host that COMMAND may write, at the same path; created if it is missing. Its path
                       is in RDMASCOPE_VM_OUT
  --env NAME=VALUE     sets a variable of COMMAND's environment
  --counted            one CPU whose clock counts instructions, 1 ns each, so that other work on this host does not affect
                       times in the machine (the default is two CPUs with this host's clock)
  --before COMMANDS    runs shell commands first, in the shell that becomes COMMAND: `ip link set eth0 down`, `ulimit -l 64`
  --no-rxe             creates no device and loads no RDMA module. `modprobe` in --before can load them, and veth, nf_tables,
                       nft_numgen, bridge, sch_netem, sch_tbf and sctp
  --peer               boots a second machine first, and connects eth0 of both by a cable; each has its own rxe0. The machines
                       are vm (10.0.2.15) and peer (10.0.2.16), have one CPU each, and are reached by `ssh vm` and `ssh peer`
  --timeout SECONDS    ends the machine if COMMAND takes longer (default 300)
  --verbose            prints the kernel's console and the time of the boot";

/// The command and its options.
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

/// The default time limit: five minutes are acceptable for a job of CI.
const TIMEOUT: Duration = Duration::from_secs(300);

impl Options {
    /// Reads the options; `None` for help.
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
                    bail!("unknown option `{unknown}` (--help lists the options)")
                }
                _ => {
                    options.command.push(word);
                    options.command.extend(words);
                    break;
                }
            }
        }
        ensure!(!options.command.is_empty(), "no COMMAND to run (see --help)");
        ensure!(
            !(options.is_counted && options.has_peer),
            "--counted --peer: two machines that count their instructions have no common clock"
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
            (&[][..], "no COMMAND to run (see --help)"),
            (&["--no-rxe"], "no COMMAND to run (see --help)"),
            (&["--cpus", "2", "true"], "unknown option `--cpus` (--help lists the options)"),
            (&["--out"], "--out needs a value"),
            (&["--env", "A", "true"], "--env A: expected NAME=VALUE"),
            (&["--env", "A B=1", "true"], "--env A B=1: expected NAME=VALUE"),
            (
                &["--counted", "--peer", "true"],
                "--counted --peer: two machines that count their instructions have no common clock",
            ),
            (&["--timeout", "0", "true"], "--timeout 0: expected a whole number of seconds, at least 1"),
            (&["--timeout", "1m", "true"], "--timeout 1m: expected a whole number of seconds, at least 1"),
        ] {
            assert_eq!(parse(words).unwrap_err().to_string(), sentence);
        }
    }
}
