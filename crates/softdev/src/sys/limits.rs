//! The limits of the device: named constants, each with its reason or its reference.

/// The prefix of the devices' names; a number follows.
pub(crate) const DEVICE_PREFIX: &str = "softdev";

/// The prefix of the kernel's names for the files of such devices; a number follows.
pub(crate) const UVERBS: &str = "uverbs";
/// The only port; ports count from 1.
pub(crate) const PORT: u8 = 1;
/// Entries of the GID table on Ethernet: the default entry, and addresses of network interfaces.
pub(crate) const GIDS: u8 = 64;
/// Default partition, full member (IBTA vol. 1, section 10.9.1.2).
pub(crate) const PKEY: u16 = 0xffff;
/// Longest message of a connected service (IBTA vol. 1, section 9.7.7: 0 to 2^31 bytes).
pub(crate) const MAX_MESSAGE_BYTES: u64 = 1 << 31;
/// Largest path MTU in bytes; a datagram is one packet (IBTA vol. 1, section 9.8.3).
pub(crate) const MTU_BYTES: u64 = 4096;
/// Queue pairs of one process, counted by the low bits of a queue-pair number.
pub(crate) const QPS: usize = 1 << QP_INDEX_BITS;
/// The number of low bits of a queue-pair number, which count within a process; the high bits name
/// the process.
pub(crate) const QP_INDEX_BITS: u32 = 12;
/// Processes of one host that can have the device open at once: the high bits of a 24-bit number,
/// without 0, so that the management queue pairs 0 and 1 stay free.
pub(crate) const BLOCKS: u32 = 1 << (24 - QP_INDEX_BITS);
/// Contexts that one process can have open at once. Each has a pipe, so descriptors run out first.
pub(crate) const CONTEXTS: usize = 1024;
/// Memberships of one process in multicast groups: half of Soft-RoCE's number of groups.
pub(crate) const MEMBERS: usize = 4096;
/// Completion queues of one process.
pub(crate) const CQS: usize = 4096;
/// Memory regions of one process.
pub(crate) const MRS: usize = 1 << 16;
/// Shared receive queues of one process.
pub(crate) const MAX_SRQS: usize = 4096;
/// Work requests of one queue: what ConnectX adapters report.
pub(crate) const MAX_WR: u32 = 32768;
/// Scatter-gather elements of a request: what Soft-RoCE reports.
pub(crate) const MAX_SGE: usize = 32;
/// Bytes of an inline send: enough for perftest's defaults (236 B at most).
pub(crate) const MAX_INLINE: u32 = 512;
/// Entries of a completion queue: what ConnectX adapters report.
pub(crate) const MAX_CQE: i32 = (1 << 22) - 1;
/// Outstanding Reads and atomics of a queue pair, in either role: what ConnectX adapters report.
pub(crate) const MAX_RD_ATOMIC: u8 = 16;
/// The longest message that goes through a lane's own memory if its receive is in memory that only
/// its owner has mapped: two copies of it are faster than a system call. It is 8 KiB and the header
/// of a message library (UCX sends at most 8256 bytes before it has the receiver fetch the
/// message).
pub(crate) const BOUNCE_BYTES: usize = 8192 + 128;
/// Messages that a lane's own memory holds at a time.
pub(crate) const BOUNCES: u32 = 32;
/// Global route header in front of every datagram (IBTA vol. 1, section 8.3).
pub(crate) const GRH_BYTES: u64 = 40;
/// `vendor_id`: what Soft-RoCE reports, since the device has no vendor.
pub(crate) const VENDOR: u32 = 0xff_ffff;
/// `vendor_part_id`: it is in no list of adapters that programs treat specially.
pub(crate) const PART: u32 = 0x50f7;
