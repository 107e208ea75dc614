//! The results that the ranks of a transfer report.

use std::collections::BTreeMap;
use std::ops::Add;

use measure::text::plain;
use serde::{Deserialize, Serialize};

/// The counts of one rank's link.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct LinkTold {
    /// The blocks that were sent or received.
    pub(crate) blocks: u64,
    /// The bytes of a block.
    pub(crate) block_bytes: u64,
    /// The most blocks under way, over all queue pairs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) depth: Option<u64>,
    /// The blocks whose memory was already registered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) registration_hits: Option<u64>,
    /// The number of registrations.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) registration_misses: Option<u64>,
    /// The time of all registrations, in ns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) registering_ns: Option<f64>,
    /// The blocks that the kernel sent from a file (sendfile(2)).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) sendfile_blocks: Option<u64>,
    /// How often this rank slept while it waited for its peer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) sleeps: Option<u64>,
    /// The connections after the first, where each file has its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) renewals: Option<u64>,
    /// The time to make them, in ns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) renewing_ns: Option<f64>,
}

impl LinkTold {
    /// Adds the counts of another link of this rank.
    pub(crate) fn add(&mut self, other: &Self) {
        /// Adds a count that only one of the links may have.
        fn add<N: Add<Output = N> + Copy>(own: &mut Option<N>, other: Option<N>) {
            *own = own.zip(other).map(|(own, other)| own + other).or(*own).or(other);
        }
        self.blocks += other.blocks;
        self.block_bytes = self.block_bytes.max(other.block_bytes);
        self.depth = self.depth.max(other.depth);
        add(&mut self.registration_hits, other.registration_hits);
        add(&mut self.registration_misses, other.registration_misses);
        add(&mut self.sendfile_blocks, other.sendfile_blocks);
        add(&mut self.sleeps, other.sleeps);
        add(&mut self.registering_ns, other.registering_ns);
    }
}

/// The counts of files, directories and links.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Counts {
    /// The files that were sent or have arrived.
    pub(crate) files: u64,
    /// Their bytes, without the holes of sparse files.
    pub(crate) bytes: u64,
    /// The directories, including those that the sink had.
    pub(crate) directories: u64,
    /// The symbolic links.
    pub(crate) links: u64,
    /// The files that the sink already had.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub(crate) present: u64,
    /// The bytes of partly received files that the sink already had.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub(crate) resumed_bytes: u64,
    /// The first hundred failures, a sentence each: a path was not sent or not written.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) failures: Vec<String>,
    /// The number of failures.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub(crate) failed: u64,
    /// The first hundred remarks, a sentence each: a path was skipped, or is not quite the same.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) remarks: Vec<String>,
    /// Why the transfer ended early, if so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) stopped: Option<String>,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde's signature")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// The most failures, and the most remarks, that are kept.
const KEPT: usize = 100;

impl Counts {
    /// Adds a failure.
    pub(crate) fn fail(&mut self, sentence: &str) {
        self.failed += 1;
        if self.failures.len() < KEPT {
            self.failures.push(plain(sentence));
        }
    }

    /// Adds a remark.
    pub(crate) fn remark(&mut self, sentence: &str) {
        if self.remarks.len() < KEPT {
            self.remarks.push(plain(sentence));
        }
    }
}

/// The name of the note of a rank whose file system does not allow O_DIRECT.
pub(crate) const DIRECT: &str = "direct";

/// The report of a rank.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct EndTold {
    /// The counts of files.
    pub(crate) counts: Counts,
    /// The counts of its link.
    pub(crate) link: LinkTold,
    /// The time from the first block to the sink's last answer, in ns.
    pub(crate) wall_ns: f64,
    /// The time from the first block until the first file was sent or had its name, in ns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) first_file_ns: Option<f64>,
    /// The time to prepare and connect, in ns.
    pub(crate) session_ns: f64,
    /// The CPU time of the process in user space during the transfer, in ns.
    pub(crate) user_ns: f64,
    /// The CPU time in the kernel, in ns.
    pub(crate) system_ns: f64,
    /// Notes, such as a setting that could not be honoured.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) notes: BTreeMap<String, String>,
}

impl EndTold {
    /// Adds the note that files were read or written through the page cache in spite of O_DIRECT.
    pub(crate) fn not_direct(mut self, how: &str) -> Self {
        let words = format!("the file system has no O_DIRECT: files were {how} through the page cache");
        self.notes.insert(DIRECT.to_owned(), words);
        self
    }
}
