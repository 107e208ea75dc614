//! The axes of a transfer.

use crate::axis::{self, Axis, AxisRow};
use crate::patterns::transfer::choices::Place;
use crate::transfer::Checksum;

/// Axes that no other pattern has.
pub(super) const OWN: &[&AxisRow] = &[
    axis::BLOCK_BYTES.row,
    axis::CHECKSUM.row,
    axis::FILES.row,
    axis::FILE_SINK.row,
    axis::FILE_SOURCE.row,
    axis::PERSISTENT_SESSION.row,
    axis::REGISTRATION_CACHE.row,
    axis::SENDFILE.row,
];

/// All axes of its points.
pub(super) const ONLY: &[&AxisRow] = &[
    axis::BLOCK_BYTES.row,
    axis::CHECKSUM.row,
    axis::ENDPOINT.row,
    axis::ENVIRONMENT.row,
    axis::FAMILY.row,
    axis::FILES.row,
    axis::FILE_SINK.row,
    axis::FILE_SOURCE.row,
    axis::LINK.row,
    axis::PACING_RATE.row,
    axis::PERSISTENT_SESSION.row,
    axis::QUEUE_PAIRS.row,
    axis::REGISTRATION_CACHE.row,
    axis::SENDFILE.row,
    axis::SIZE_BYTES.row,
    axis::STREAMS.row,
    axis::TX_DEPTH.row,
];

/// The axes with their default values.
pub(super) fn usual() -> Vec<Axis> {
    vec![
        axis::BLOCK_BYTES.value(BLOCK_BYTES),
        axis::CHECKSUM.value(Checksum::Xxh3),
        axis::FILES.value(1),
        axis::FILE_SINK.value(Place::File),
        axis::FILE_SOURCE.value(Place::File),
        axis::PERSISTENT_SESSION.value(true),
        axis::REGISTRATION_CACHE.value(true),
        axis::SENDFILE.value(false),
    ]
}

/// Bytes of a block: eight blocks fit into the cache of a CPU.
const BLOCK_BYTES: u32 = 256 << 10;
/// Outstanding blocks.
pub(super) const DEPTH: u32 = 8;
/// Bytes of a file.
pub(super) const FILE_BYTES: u64 = 64 << 20;
