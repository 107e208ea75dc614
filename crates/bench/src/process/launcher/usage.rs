//! What a program of somebody else has taken, as its supervisor counts it.

use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

use serde::{Deserialize, Serialize};

/// How a program ended and what it took: itself, its launcher and all that those have started on
/// this host (`RUSAGE_CHILDREN` of getrusage(2)).
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Usage {
    /// Its exit status; absent where a signal ended it.
    pub(crate) exit: Option<i32>,
    /// The signal that ended it, if one did.
    pub(crate) signal: Option<i32>,
    /// From its start to its end.
    pub(crate) wall_ns: u64,
    /// Time of CPUs in its own code; absent where its ranks are not counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) user_ns: Option<u64>,
    /// Time of CPUs in the kernel, or absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) system_ns: Option<u64>,
    /// The largest resident set of a single process, that of the launcher included, or absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) max_rss_bytes: Option<u64>,
}

/// What the children of this process that have been waited for have taken.
pub(super) fn of_children() -> libc::rusage {
    // SAFETY: a `rusage` of zero bytes is one.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: the pointer is to a `rusage` of this frame, which the call fills in. It fails for
    // other numbers than this one only.
    unsafe { libc::getrusage(libc::RUSAGE_CHILDREN, &raw mut usage) };
    usage
}

impl Usage {
    /// What a program took that ended so.
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

    /// The same without what was counted of others than its ranks.
    pub(crate) fn without_ranks(self) -> Self {
        Self { user_ns: None, system_ns: None, max_rss_bytes: None, ..self }
    }

    /// How it ended, in words, where it did not end well.
    pub(crate) fn fault(&self) -> Option<String> {
        match (self.exit, self.signal) {
            (_, Some(signal)) => Some(format!("was killed by signal {signal}")),
            (Some(0), None) => None,
            (Some(exit), None) => Some(format!("ended with exit status {exit}")),
            (None, None) => Some("did not end".to_owned()),
        }
    }

    /// The line that a supervisor prints behind the output of a program. It begins one, for that
    /// output may not end with one.
    pub(super) fn line(&self, token: &str) -> String {
        let json = serde_json::to_string(self).expect("numbers are JSON");
        format!("\n{}{json}\n", opening(token))
    }

    /// Takes such a line out of the end of an output.
    pub(crate) fn take(output: &mut String, token: &str) -> Option<Self> {
        let (_, json) = output.rsplit_once(&opening(token))?;
        let usage = serde_json::from_str(json.lines().next()?).ok()?;
        let end = output.rfind(&opening(token))?;
        output.truncate(end);
        output.pop();
        Some(usage)
    }
}

/// How the line begins. A program may know it: what its supervisor prints is the last one.
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
