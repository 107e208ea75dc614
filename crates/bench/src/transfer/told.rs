//! What the ranks of a transfer tell of it.

use std::collections::BTreeMap;
use std::ops::Add;

use measure::text::plain;
use serde::{Deserialize, Serialize};

/// What a link has counted at one end.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct LinkTold {
    /// Blocks that were sent or received.
    pub(crate) blocks: u64,
    /// Bytes of a block.
    pub(crate) block_bytes: u64,
    /// Blocks that may be under way, of all queue pairs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) depth: Option<u64>,
    /// Blocks that went through memory that was registered already.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) registration_hits: Option<u64>,
    /// Times that memory was registered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) registration_misses: Option<u64>,
    /// How long that took, in ns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) registering_ns: Option<f64>,
    /// Blocks that the kernel handed from a file to a connection.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) sendfile_blocks: Option<u64>,
    /// Times that this end slept for the other.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) sleeps: Option<u64>,
    /// Connections that were made beside the first, where each file has its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) renewals: Option<u64>,
    /// How long that took, in ns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) renewing_ns: Option<f64>,
}

impl LinkTold {
    /// Adds what another link of this end has counted.
    pub(crate) fn add(&mut self, other: &Self) {
        /// What at least one of both has counted.
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

/// What became of files, directories and links.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Counts {
    /// Files whose bytes were sent or arrived.
    pub(crate) files: u64,
    /// Bytes of them; holes of sparse files are none.
    pub(crate) bytes: u64,
    /// Directories, those that were there among them.
    pub(crate) directories: u64,
    /// Symbolic links.
    pub(crate) links: u64,
    /// Files that the sink had.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub(crate) present: u64,
    /// Bytes of files of which the sink had a part.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub(crate) resumed_bytes: u64,
    /// What was not sent, or is not where it belongs, for each a sentence; the first hundred.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) failures: Vec<String>,
    /// How many there are.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub(crate) failed: u64,
    /// What was done otherwise than might be thought, for each a sentence; the first hundred.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) remarks: Vec<String>,
    /// Why the transfer ended before all was sent, if so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) stopped: Option<String>,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde's signature")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// Sentences of each sort that are kept.
const KEPT: usize = 100;

impl Counts {
    /// Something did not arrive.
    pub(crate) fn fail(&mut self, sentence: &str) {
        self.failed += 1;
        if self.failures.len() < KEPT {
            self.failures.push(plain(sentence));
        }
    }

    /// Something should be known.
    pub(crate) fn remark(&mut self, sentence: &str) {
        if self.remarks.len() < KEPT {
            self.remarks.push(plain(sentence));
        }
    }
}

/// The note of an end whose files go through the page cache although they were to pass it by.
pub(crate) const DIRECT: &str = "direct";

/// What a rank tells of its end.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct EndTold {
    /// What became of what it sent or received.
    pub(crate) counts: Counts,
    /// What its link has counted.
    pub(crate) link: LinkTold,
    /// From the first block to the sink's last answer, in ns.
    pub(crate) wall_ns: f64,
    /// From the first block until the first file was sent or had its name, in ns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) first_file_ns: Option<f64>,
    /// What preparing and connecting took, in ns.
    pub(crate) session_ns: f64,
    /// CPU time of the process meanwhile, in its own code and in the kernel, in ns.
    pub(crate) user_ns: f64,
    pub(crate) system_ns: f64,
    /// What else is to be known, such as what was asked for and could not be had.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) notes: BTreeMap<String, String>,
}

impl EndTold {
    /// Files were read or written through the page cache although they were to pass it by.
    pub(crate) fn not_direct(mut self, how: &str) -> Self {
        let words = format!("the file system has no O_DIRECT: files were {how} through the page cache");
        self.notes.insert(DIRECT.to_owned(), words);
        self
    }
}
