//! How a case ended, and how it was expected to.

use std::collections::BTreeMap;
use std::fmt;

use anyhow::{Result, ensure};

/// How a case ended.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) enum Verdict {
    Passes,
    /// The program, or the device, said that it has no such thing, as on an adapter without it.
    Refused(String),
    /// A test of pyverbs skipped itself.
    Skipped(String),
    Fails(String),
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Passes => f.write_str("passes"),
            Self::Refused(what) => write!(f, "refused: {what}"),
            Self::Skipped(what) => write!(f, "skipped: {what}"),
            Self::Fails(what) => write!(f, "fails: {what}"),
        }
    }
}

impl Verdict {
    /// Of a case whose program printed this and ended itself with an exit status other than 0.
    pub(super) fn of_failure(name: &str, printed: &str) -> Self {
        let of_name = SERVICES.iter().find(|(words, _)| name.contains(words));
        let refusal = of_name.or_else(|| REFUSALS.iter().find(|(words, _)| printed.contains(words)));
        match refusal {
            Some((_, what)) => Self::Refused((*what).to_owned()),
            None => Self::Fails(last_words(printed)),
        }
    }

    /// Of a test of pyverbs that skipped itself: its own name says more where the reason is what it
    /// was made with.
    pub(super) fn of_skip(test: &str, reason: &str) -> Self {
        let of_name = NAMED.iter().find(|(words, _)| test.contains(words));
        let known = of_name.or_else(|| SKIPS.iter().find(|(words, _)| reason.contains(words)));
        Self::Skipped(known.map_or_else(|| short(reason), |(_, what)| (*what).to_owned()))
    }
}

/// Services of one vendor, which perftest asks for without saying what it missed.
const SERVICES: [(&str, &str); 2] = [("-c DC", "DC, of mlx5"), ("-c SRD", "SRD, of EFA")];

/// What programs print when they meet a device without something, and what it is.
const REFUSALS: [(&str, &str); 18] = [
    // qperf knows LIDs only, unless RDMA CM connects for it.
    ("failed to modify QP to RTR", "LIDs, on Ethernet"),
    ("failed to create address handle", "LIDs, on Ethernet"),
    ("rdma_create_event_channel failed", "RDMA CM"),
    ("RDMA_CM_EVENT_REJECTED, error 8", "a connection to nobody"),
    // librdmacm makes their address handles without a global route.
    ("rconnect: No such file or directory", "datagrams of rsockets, on Ethernet"),
    // Its groups are of IPv6, and it takes the GID of IPv4 where there is one.
    ("Found Incompatibility issue with GID types", "groups, in perftest from an address of IPv4"),
    ("doesn't support Multicast with rdma_cm", "groups, in perftest over RDMA CM"),
    ("UC is not supported in librdmacm", "UC over RDMA CM"),
    // What Debian's Open MPI connects by is for InfiniBand; RDMA CM is left out of it.
    ("init of component openib returned failure", "btl openib, on Ethernet"),
    ("rdma_create_ep: Operation not supported", "XRC"),
    ("does not support required 64-bit atomic", "an atomic operation that verbs have not"),
    ("does not support operation", "one-sided operations over UD"),
    ("Error opening XRC domain", "XRC"),
    ("Couldn't Open the XRC Domain", "XRC"),
    ("Couldn't open XRC domain", "XRC"),
    ("failed to open XRC domain", "XRC"),
    ("Device doesn't support dm", "device memory"),
    ("dm allocation failed", "device memory"),
];

/// Why tests of pyverbs skip themselves, and what they miss.
const SKIPS: [(&str, &str); 12] = [
    ("Importing a device", "devices shared by a descriptor"),
    ("XRCD", "XRC"),
    ("XRC", "XRC"),
    ("Device memory", "device memory"),
    ("Create MW", "memory windows"),
    ("memory window", "memory windows"),
    ("dmabuf", "DMA buffers of a GPU"),
    ("cuda", "CUDA"),
    ("QP type 8", "raw packets"),
    ("Raw Packet", "raw packets"),
    ("net interface", "RDMA CM: no network interface"),
    ("huge pages", "huge pages on this machine"),
];

/// Tests of pyverbs that need one thing and miss another first, and what they need.
const NAMED: [(&str, &str); 3] =
    [("test_tag_matching", "tag matching"), ("atomic_write", "atomic writes"), ("bind_mw", "memory windows")];

/// The last line that says something.
fn last_words(printed: &str) -> String {
    let says = |line: &&str| line.chars().any(char::is_alphabetic);
    short(printed.lines().rev().find(says).unwrap_or("it said nothing"))
}

/// So much of a text as fits a table.
fn short(text: &str) -> String {
    const MOST: usize = 72;
    let words: Vec<_> = text.split_whitespace().collect();
    words.join(" ").chars().take(MOST).collect()
}

/// What is expected: a case and its verdict on each line, with two spaces or more in between; `#`
/// begins a comment.
pub(super) fn parse(text: &str) -> Result<BTreeMap<String, String>> {
    let mut expected = BTreeMap::new();
    for (number, line) in (1..).zip(text.lines()) {
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let parts = line.split_once("  ").map(|(name, verdict)| (name.to_owned(), verdict.trim().to_owned()));
        let Some((name, verdict)) = parts else {
            anyhow::bail!("line {number} of what is expected has no two spaces: {line}");
        };
        ensure!(expected.insert(name, verdict).is_none(), "line {number} of what is expected is there twice");
    }
    Ok(expected)
}

/// A line as [`parse`] reads it.
pub(super) fn line(name: &str, verdict: &str) -> String {
    format!("{name:<56}  {verdict}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_are_told_from_failures() {
        let of = |text: &str| Verdict::of_failure("a case", text).to_string();
        assert_eq!(Verdict::of_failure("x -c DC", "Failed").to_string(), "refused: DC, of mlx5");
        assert_eq!(of("Error opening XRC domain\nCouldn't create IB resources"), "refused: XRC");
        assert_eq!(of("---\n Failed to modify QP to RTR\n---------\n"), "fails: Failed to modify QP to RTR");
        assert_eq!(of("cma event RDMA_CM_EVENT_REJECTED, error 8\n"), "refused: a connection to nobody");
        assert_eq!(of(""), "fails: it said nothing");
        let skip = |test, why| Verdict::of_skip(test, why).to_string();
        assert_eq!(skip("test_qp.X.y", "Create XRCD is not supported"), "skipped: XRC");
        assert_eq!(skip("test_qp.X.y", "the moon  is full"), "skipped: the moon is full");
        assert_eq!(skip("test_qpex.X.bind_mw", "Extended QP is not supported"), "skipped: memory windows");
    }

    #[test]
    fn what_is_written_is_read_again() {
        let text = format!(
            "# a comment\n\n{}\n{}\n",
            line("a b -c", "passes"),
            line(&"x".repeat(80), "refused: XRC")
        );
        let expected = parse(&text).unwrap();
        assert_eq!(expected["a b -c"], "passes");
        assert_eq!(expected[&"x".repeat(80)], "refused: XRC");
        assert!(parse("one two").unwrap_err().to_string().contains("line 1"));
        assert!(parse("a  passes\na  passes").unwrap_err().to_string().contains("twice"));
    }

    #[test]
    fn the_file_of_expectations_can_be_read() {
        assert!(parse(include_str!("expected.txt")).is_ok());
    }
}
