//! The result of a case, and the file of expected results.

use std::collections::BTreeMap;
use std::fmt;

use anyhow::{Result, ensure};

/// The result of a case.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) enum Verdict {
    Passes,
    /// The program or the device reported that it lacks a feature, as on an adapter without it.
    Refused(String),
    /// A Python test skipped itself.
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
    /// The verdict on a program with this output that exited with a status other than 0.
    pub(super) fn of_failure(name: &str, printed: &str) -> Self {
        let of_name = SERVICES.iter().find(|(words, _)| name.contains(words));
        let refusal = of_name.or_else(|| REFUSALS.iter().find(|(words, _)| printed.contains(words)));
        match refusal {
            Some((_, what)) => Self::Refused((*what).to_owned()),
            None => Self::Fails(last_words(printed)),
        }
    }

    /// The verdict on a Python test that skipped itself. The reason may be a missing prerequisite;
    /// then the test's name says what it tests.
    pub(super) fn of_skip(test: &str, reason: &str) -> Self {
        let of_name = NAMED.iter().find(|(words, _)| test.contains(words));
        let known = of_name.or_else(|| SKIPS.iter().find(|(words, _)| reason.contains(words)));
        Self::Skipped(known.map_or_else(|| short(reason), |(_, what)| (*what).to_owned()))
    }
}

/// Services of one vendor: perftest fails without printing the reason.
const SERVICES: [(&str, &str); 2] = [("-c DC", "DC, of mlx5"), ("-c SRD", "SRD, of EFA")];

/// Texts that programs print on a device without a feature, and the feature.
const REFUSALS: [(&str, &str); 18] = [
    // qperf connects by LIDs, unless it uses RDMA CM.
    ("failed to modify QP to RTR", "LIDs, on Ethernet"),
    ("failed to create address handle", "LIDs, on Ethernet"),
    ("rdma_create_event_channel failed", "RDMA CM"),
    ("RDMA_CM_EVENT_REJECTED, error 8", "a connection without a listener"),
    // librdmacm creates their address handles without a global route.
    ("rconnect: No such file or directory", "datagrams of rsockets, on Ethernet"),
    // perftest's multicast groups are IPv6, but it uses an IPv4 GID if there is one.
    ("Found Incompatibility issue with GID types", "multicast in perftest, with an IPv4 GID"),
    ("doesn't support Multicast with rdma_cm", "multicast in perftest, over RDMA CM"),
    ("UC is not supported in librdmacm", "UC over RDMA CM"),
    // Debian's Open MPI can connect `openib` on InfiniBand only: it is built without RDMA CM.
    ("init of component openib returned failure", "btl openib, on Ethernet"),
    ("rdma_create_ep: Operation not supported", "XRC"),
    ("does not support required 64-bit atomic", "an atomic operation that verbs do not have"),
    ("does not support operation", "one-sided operations over UD"),
    ("Error opening XRC domain", "XRC"),
    ("Couldn't Open the XRC Domain", "XRC"),
    ("Couldn't open XRC domain", "XRC"),
    ("failed to open XRC domain", "XRC"),
    ("Device doesn't support dm", "device memory"),
    ("dm allocation failed", "device memory"),
];

/// Reasons for which Python tests skip themselves, and the missing feature.
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

/// Python tests whose reason names a prerequisite, and the feature that they test.
const NAMED: [(&str, &str); 3] =
    [("test_tag_matching", "tag matching"), ("atomic_write", "atomic writes"), ("bind_mw", "memory windows")];

/// The last line with a letter in it.
fn last_words(printed: &str) -> String {
    let says = |line: &&str| line.chars().any(char::is_alphabetic);
    short(printed.lines().rev().find(says).unwrap_or("it printed nothing"))
}

/// The first characters of a text, as many as fit into the table.
fn short(text: &str) -> String {
    const MOST: usize = 72;
    let words: Vec<_> = text.split_whitespace().collect();
    words.join(" ").chars().take(MOST).collect()
}

/// Reads the expected results: a case and its verdict on each line, separated by two or more
/// spaces. A line that starts with `#` is a comment.
pub(super) fn parse(text: &str) -> Result<BTreeMap<String, String>> {
    let mut expected = BTreeMap::new();
    for (number, line) in (1..).zip(text.lines()) {
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let parts = line.split_once("  ").map(|(name, verdict)| (name.to_owned(), verdict.trim().to_owned()));
        let Some((name, verdict)) = parts else {
            anyhow::bail!("expected.txt, line {number}: no two spaces between case and verdict: {line}");
        };
        ensure!(
            expected.insert(name, verdict).is_none(),
            "expected.txt, line {number}: the case is there twice"
        );
    }
    Ok(expected)
}

/// A line in the format that [`parse`] reads.
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
        let no_listener = of("cma event RDMA_CM_EVENT_REJECTED, error 8\n");
        assert_eq!(no_listener, "refused: a connection without a listener");
        assert_eq!(of(""), "fails: it printed nothing");
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
