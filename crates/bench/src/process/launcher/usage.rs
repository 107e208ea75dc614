//! The resources that an application has used, as its supervisor counts them.

use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

use serde::{Deserialize, Serialize};

/// How a program ended and the resources that it used: the program, its launcher and all their
/// descendants on this host (`RUSAGE_CHILDREN` of getrusage(2)).
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Usage {
    /// The exit status; absent where a signal ended the program.
    pub(crate) exit: Option<i32>,
    /// The signal that ended the program, if one did.
    pub(crate) signal: Option<i32>,
    /// The time from its start to its end, in ns.
    pub(crate) wall_ns: u64,
    /// The CPU time in user space, in ns; absent where the ranks are not counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) user_ns: Option<u64>,
    /// The CPU time in the kernel, in ns; absent where the ranks are not counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) system_ns: Option<u64>,
    /// The largest resident set of a single process, the launcher included, in bytes; absent where
    /// the ranks are not counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) max_rss_bytes: Option<u64>,
}

/// Returns the resources of the reaped children of this process.
pub(super) fn of_children() -> libc::rusage {
    // SAFETY: all bytes zero are a valid `rusage`.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: the pointer is to a local `rusage`, which the call fills in. The call fails only for
    // an invalid first argument.
    unsafe { libc::getrusage(libc::RUSAGE_CHILDREN, &raw mut usage) };
    usage
}

impl Usage {
    /// Returns the usage of a program with this exit status.
    pub(super) fn new(status: Option<ExitStatus>, wall_ns: u64, taken: libc::rusage) -> Self {
        let ns = |time: libc::timeval| {
            time.tv_sec.cast_unsigned() * 1_000_000_000 + time.tv_usec.cast_unsigned() * 1000
        };
        Self {
            exit: status.and_then(|status| status.code()),
            signal: status.and_then(|status| status.signal()),
            wall_ns,
            user_ns: Some(ns(taken.ru_utime)),
            system_ns: Some(ns(taken.ru_stime)),
            max_rss_bytes: Some(taken.ru_maxrss.cast_unsigned() * 1024),
        }
    }

    /// Returns the usage without the counts, which do not include the ranks.
    pub(crate) fn without_ranks(self) -> Self {
        Self { user_ns: None, system_ns: None, max_rss_bytes: None, ..self }
    }

    /// Returns how the program ended, in words, unless it ended with exit status 0.
    pub(crate) fn fault(&self) -> Option<String> {
        match (self.exit, self.signal) {
            (_, Some(signal)) => Some(format!("was killed by signal {signal}")),
            (Some(0), None) => None,
            (Some(exit), None) => Some(format!("ended with exit status {exit}")),
            (None, None) => Some("did not end".to_owned()),
        }
    }

    /// Returns the line that a supervisor prints after the output of a program. It begins with a
    /// newline, because that output may not end with one.
    pub(super) fn line(&self, token: &str) -> String {
        let json = serde_json::to_string(self).expect("numbers are JSON");
        format!("\n{}{json}\n", opening(token))
    }

    /// Removes such a line from the end of an output.
    pub(crate) fn take(output: &mut String, token: &str) -> Option<Self> {
        let (_, json) = output.rsplit_once(&opening(token))?;
        let usage = serde_json::from_str(json.lines().next()?).ok()?;
        let end = output.rfind(&opening(token))?;
        output.truncate(end);
        output.pop();
        Some(usage)
    }
}

/// Returns the start of the line. A program may print such a line, too: that of its supervisor is
/// the last one.
fn opening(token: &str) -> String {
    format!("rdmascope counts {token} ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_behind_an_output_is_taken_out() {
        let usage = Usage { exit: Some(3), wall_ns: 7, max_rss_bytes: Some(4096), ..Usage::default() };
        for output in ["", "a\n", "no end", "rdmascope counts other {}\n"] {
            let mut text = output.to_owned() + &usage.line("abc");
            assert_eq!(Usage::take(&mut text, "ab"), None);
            assert_eq!(Usage::take(&mut text, "abc"), Some(usage));
            assert_eq!(text, output);
        }
        assert_eq!(Usage::take(&mut "a\n".to_owned(), "abc"), None);
    }

    #[test]
    fn children_are_counted() {
        let busy = "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done";
        let status = std::process::Command::new("sh").args(["-c", busy]).status().unwrap();
        let usage = Usage::new(Some(status), 1, of_children());
        assert!(
            usage.user_ns.zip(usage.system_ns).is_some_and(|(user, system)| user + system > 0)
                && usage.max_rss_bytes > Some(100_000),
            "{usage:?}"
        );
        assert_eq!((usage.exit, usage.signal), (Some(0), None));
    }
}
