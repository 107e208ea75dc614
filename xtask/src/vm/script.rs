//! The command as a shell script for the guest, and the guest's reports about it.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// A script that changes to `directory`, sets the variables, runs `before` and becomes the command.
/// If it fails before the command, it reports that on descriptor 9, as `inside.sh` does.
pub(super) fn command(
    directory: &Path,
    variables: &[(OsString, OsString)],
    before: &[OsString],
    words: &[OsString],
) -> Vec<u8> {
    let mut script = Vec::new();
    let mut line = |parts: &[&[u8]]| {
        script.extend(parts.concat());
        script.push(b'\n');
    };
    line(&[
        br#"trap 'echo "failed the shell ended with exit status $? before it reached the command" >&9' EXIT"#,
    ]);
    line(&[b"set -e"]);
    line(&[b"cd ", &quote(directory.as_os_str())]);
    // The words of `export` are not split, but an invalid name would end the script without a
    // message: `is_name` has checked it.
    for (name, value) in variables {
        line(&[b"export ", &quote(name), b"=", &quote(value)]);
    }
    for commands in before {
        line(&[b"eval ", &quote(commands)]);
    }
    line(&[b"set +e"]);
    line(&[b"trap - EXIT"]);
    let words: Vec<_> = words.iter().map(|word| quote(word)).collect();
    line(&[b"exec ", &words.join(&b' '), b" 9>&-"]);
    script
}

/// Assignments for a shell.
pub(super) fn settings(variables: &[(&str, &OsStr)]) -> Vec<u8> {
    let lines = variables.iter().map(|(name, value)| [name.as_bytes(), b"=", &quote(value), b"\n"].concat());
    lines.collect::<Vec<_>>().concat()
}

/// Quotes any word for a shell: in single quotes, only the quote itself is special.
fn quote(word: &OsStr) -> Vec<u8> {
    let mut quoted = vec![b'\''];
    for &byte in word.as_bytes() {
        match byte {
            b'\'' => quoted.extend(br"'\''"),
            _ => quoted.push(byte),
        }
    }
    quoted.push(b'\'');
    quoted
}

/// Whether this is the name of a shell variable.
pub(super) fn is_name(name: &OsStr) -> bool {
    let bytes = name.as_bytes();
    let is_start = |byte: &u8| byte.is_ascii_alphabetic() || *byte == b'_';
    bytes.first().is_some_and(is_start) && bytes.iter().all(|byte| is_start(byte) || byte.is_ascii_digit())
}

/// A report of the guest: one line on its control port.
#[derive(Debug, Eq, PartialEq)]
pub(super) enum Report {
    /// The command starts; the seconds since the start of the kernel.
    Ready(String),
    /// The command ended: its exit status, or 128 and the number of the signal that ended it.
    Exit(u8),
    /// The command could not be started, with the reason.
    Failed(String),
}

impl Report {
    /// Reads a line; `None` if it is no report.
    pub(super) fn parse(line: &str) -> Option<Self> {
        let (kind, rest) = line.trim_end().split_once(' ')?;
        match kind {
            "ready" => Some(Self::Ready(rest.to_owned())),
            "exit" => rest.parse().ok().map(Self::Exit),
            "failed" => Some(Self::Failed(rest.to_owned())),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Output};

    use super::*;

    fn os(words: &[&str]) -> Vec<OsString> {
        words.iter().map(OsString::from).collect()
    }

    /// Runs a script in a shell with descriptor 9 as standard error.
    fn run(script: Vec<u8>) -> Output {
        let script = OsString::from(String::from_utf8(script).unwrap());
        let words = [OsStr::new("-c"), OsStr::new("exec 9>&2; exec /bin/sh -c \"$1\""), OsStr::new("sh")];
        Command::new("/bin/sh").args(words).arg(script).output().unwrap()
    }

    const AWKWARD: [&str; 9] =
        ["", " ", "it's", "''", "$HOME `id` $(id)", "a\nb", "\\", "\"*?[a]\"", "-n; exit 9 # ü"];

    #[test]
    fn words_arrive_as_they_were() {
        let words = [&["printf", "<%s>"], &AWKWARD[..]].concat();
        let output = run(command(Path::new("/"), &[], &[], &os(&words)));
        let expected: String = AWKWARD.iter().map(|word| format!("<{word}>")).collect();
        assert_eq!(String::from_utf8_lossy(&output.stdout), expected);
        assert_eq!(String::from_utf8_lossy(&output.stderr), "");
        assert!(output.status.success());
    }

    #[test]
    fn variables_arrive_as_they_were() {
        let variables: Vec<_> = AWKWARD.iter().map(|value| (OsString::from("V"), value.into())).collect();
        for (pair, value) in variables.iter().zip(AWKWARD) {
            let output =
                run(command(Path::new("/"), std::slice::from_ref(pair), &[], &os(&["printenv", "V"])));
            assert_eq!(String::from_utf8_lossy(&output.stdout), format!("{value}\n"));
        }
    }

    #[test]
    fn settings_are_read_as_they_were() {
        for value in AWKWARD {
            let mut script = settings(&[("A", OsStr::new("first")), ("B", OsStr::new(value))]);
            script.extend(b"printf '%s|%s' \"$A\" \"$B\"");
            assert_eq!(String::from_utf8_lossy(&run(script).stdout), format!("first|{value}"));
        }
    }

    #[test]
    fn the_command_runs_where_it_was_called_after_what_precedes_it() {
        let before = os(&["cd /usr; A='1 2'", "export A"]);
        let output =
            run(command(Path::new("/tmp"), &[], &before, &os(&["sh", "-c", "pwd; echo \"$A\"; exit 7"])));
        assert_eq!(String::from_utf8_lossy(&output.stdout), "/usr\n1 2\n");
        assert_eq!(output.status.code(), Some(7));
        assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    }

    #[test]
    fn what_fails_before_the_command_is_reported_and_the_command_not_run() {
        for (before, status) in [("false", 1), ("exit 5", 5), ("true; false; true", 1), ("echo '", 2)] {
            let output = run(command(Path::new("/"), &[], &os(&[before]), &os(&["echo", "run"])));
            let errors = String::from_utf8_lossy(&output.stderr).into_owned();
            let report = errors.lines().filter_map(Report::parse).collect::<Vec<_>>();
            let expected = format!("the shell ended with exit status {status} before it reached the command");
            assert_eq!(report, [Report::Failed(expected)], "{before}: {errors}");
            assert_eq!(output.stdout, b"", "{before}");
        }
        let output = run(command(Path::new("/nowhere"), &[], &[], &os(&["echo", "run"])));
        assert!(String::from_utf8_lossy(&output.stderr).contains("\nfailed the shell ended"), "{output:?}");
    }

    #[test]
    fn a_command_that_is_not_there_is_no_failure_of_what_precedes_it() {
        let output = run(command(Path::new("/"), &[], &[], &os(&["no-such-command"])));
        assert_eq!(output.status.code(), Some(127));
        assert!(!String::from_utf8_lossy(&output.stderr).contains("the shell ended"), "{output:?}");
    }

    #[test]
    fn names_of_variables_are_told_from_others() {
        assert!(["A", "_", "RDMASCOPE_X1"].iter().all(|name| is_name(OsStr::new(name))));
        assert!(!["", "1A", "A-B", "A B", "A=B", "Ä"].iter().any(|name| is_name(OsStr::new(name))));
    }

    #[test]
    fn reports_are_read() {
        assert_eq!(Report::parse("exit 7\n"), Some(Report::Exit(7)));
        assert_eq!(Report::parse("exit 137"), Some(Report::Exit(137)));
        assert_eq!(Report::parse("ready 2.96\n"), Some(Report::Ready("2.96".to_owned())));
        assert_eq!(Report::parse("failed no rxe0"), Some(Report::Failed("no rxe0".to_owned())));
        for line in ["", "exit", "exit x", "exit 256", "exit -1", "exit 1 2", "bye 1"] {
            assert_eq!(Report::parse(line), None, "{line:?}");
        }
    }
}
