//! What a program of somebody else has taken, as its supervisor counts it.

use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

use serde::{Deserialize, Serialize};

/// How a program ended and what it took: itself, its launcher and all that those have started and
/// waited for on this host (`RUSAGE_CHILDREN` of getrusage(2)).
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Usage {
    /// Its exit status; absent where a signal ended it.
    pub(crate) exit: Option<i32>,
    /// The signal that ended it, if one did.
    pub(crate) signal: Option<i32>,
    /// From its start to its end.
    pub(crate) wall_ns: u64,
    /// Time of CPUs in its own code.
    pub(crate) user_ns: u64,
    /// Time of CPUs in the kernel.
    pub(crate) system_ns: u64,
    /// The largest resident set of a single process.
    pub(crate) max_rss_bytes: u64,
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
            user_ns: ns(taken.ru_utime),
            system_ns: ns(taken.ru_stime),
            max_rss_bytes: taken.ru_maxrss.cast_unsigned() * 1024,
        }
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

    /// Whether an output ends with such a line.
    pub(crate) fn is_at_end(output: &[u8], token: &str) -> bool {
        let text = String::from_utf8_lossy(output);
        text.ends_with('\n') && text.contains(&opening(token))
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

/// How the line begins, which nobody else knows.
fn opening(token: &str) -> String {
    format!("rdmascope counts {token} ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_behind_an_output_is_taken_out() {
        let usage = Usage { exit: Some(3), wall_ns: 7, max_rss_bytes: 4096, ..Usage::default() };
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
        assert!(usage.user_ns + usage.system_ns > 0 && usage.max_rss_bytes > 100_000, "{usage:?}");
        assert_eq!((usage.exit, usage.signal), (Some(0), None));
    }
}
