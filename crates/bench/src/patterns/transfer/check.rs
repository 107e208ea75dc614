//! What a plan must not ask of a transfer.

use crate::Error;
use crate::axis;
use crate::pattern::check::Check;
use crate::patterns::transfer::choices::Place;
use crate::point::Carrier;
use crate::transfer::{ALIGNMENT, BLOCK_BYTES_MAX, BLOCK_BYTES_MIN, Checksum, RENEWED_SLOTS_MAX, is_ring};

/// The most bytes of all files of a point together.
const BYTES_MAX: u64 = 1 << 40;

/// Checks an experiment of transfers.
pub(super) fn experiment(check: &Check<'_>) -> Result<(), Error> {
    if !matches!(check.0.carrier, Carrier::Verbs | Carrier::Tcp) {
        let what = format!("a transfer over {}", check.0.carrier.name());
        return check.refuse("endpoint", &what, "files are sent over verbs or tcp");
    }
    check.only_own_axes("a transfer", "a transfer does not have this axis: leave it out")?;
    check
        .no_length("a transfer", "a transfer ends when all files have arrived: give size_bytes and files")?;
    let sizes = check.0.axes.get(axis::BLOCK_BYTES);
    if let Some(bytes) = sizes.iter().find(|bytes| !(BLOCK_BYTES_MIN..=BLOCK_BYTES_MAX).contains(*bytes)) {
        let why = "a block has 64 KiB to 64 MiB";
        return check.refuse("block_bytes", &format!("blocks of {bytes} bytes"), why);
    }
    if let Some(bytes) = sizes.iter().find(|bytes| !u64::from(**bytes).is_multiple_of(ALIGNMENT)) {
        let why = "files are read past the page cache by multiples of 4096 bytes";
        return check.refuse("block_bytes", &format!("blocks of {bytes} bytes"), why);
    }
    let depth = u64::from(check.least_depth(axis::TX_DEPTH).max(check.largest_u32(axis::TX_DEPTH.row)));
    let connections = check.largest(axis::QUEUE_PAIRS.row);
    let blocks = depth.saturating_mul(connections);
    let ring = blocks.saturating_mul(u64::from(sizes.into_iter().max().unwrap_or(0)));
    if !is_ring(blocks, ring) {
        let what = format!("{depth} outstanding blocks on each of {connections} connections");
        let why = "there may be at most 4096 blocks, with 4 GiB of memory together";
        return check.refuse("tx_depth", &what, why);
    }
    let persists = check.0.axes.get(axis::PERSISTENT_SESSION);
    if blocks > RENEWED_SLOTS_MAX && persists.contains(&false) && check.0.carrier.is_verbs() {
        let what = format!("a connection for each file with {blocks} blocks");
        return check.refuse("persistent_session", &what, "such a connection has at most 512");
    }
    if check.0.axes.get(axis::SENDFILE).contains(&true) {
        if let Some(checksum) = check.0.axes.get(axis::CHECKSUM).iter().find(|one| **one != Checksum::None) {
            let what = format!("sendfile with the checksum {:?}", checksum.word());
            let why =
                "only the kernel sees the data, so no checksum can be computed: give checksum = \"none\"";
            return check.refuse("sendfile", &what, why);
        }
        if let Some(source) = check.0.axes.get(axis::FILE_SOURCE).iter().find(|one| **one != Place::File) {
            let what = format!("sendfile from file_source {:?}", source.word());
            return check.refuse("sendfile", &what, "the kernel sends only files that are in its page cache");
        }
    }
    let bytes = check.largest(axis::FILES.row).saturating_mul(check.largest(axis::SIZE_BYTES.row));
    if bytes > BYTES_MAX {
        return check.refuse("files", &format!("{bytes} bytes of files"), "a point may send at most 1 TiB");
    }
    Ok(())
}
