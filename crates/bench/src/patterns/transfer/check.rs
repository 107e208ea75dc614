//! What a plan must not ask of a transfer.

use super::axes::ONLY;
use crate::Error;
use crate::axis;
use crate::pattern::check::Check;
use crate::point::Carrier;
use crate::transfer::{BLOCK_BYTES_MAX, BLOCK_BYTES_MIN, BLOCKS_MAX, RING_BYTES_MAX};

/// Bytes of all files of a point together.
const BYTES_MAX: u64 = 1 << 40;

/// Checks an experiment with transfers.
pub(super) fn experiment(check: &Check<'_>) -> Result<(), Error> {
    if !matches!(check.0.carrier, Carrier::Verbs | Carrier::Tcp) {
        let what = format!("a transfer over {}", check.0.carrier.name());
        return check.refuse("endpoint", &what, "files go over verbs or tcp");
    }
    let given = check.0.settings.axes.iter().map(|axis| axis.row);
    if let Some(row) = given.into_iter().find(|row| !ONLY.iter().any(|known| known.name == row.name)) {
        return check.refuse(
            row.name,
            &format!("{} of a transfer", row.name),
            "its blocks have no such thing",
        );
    }
    let settings = &check.0.settings;
    let messages = [
        ("iterations", settings.iterations.is_some()),
        ("duration", settings.duration_s.is_some()),
        ("warmup", settings.warmup.is_some()),
        ("bytes_max", settings.bytes_max.is_some()),
    ];
    if let Some((key, _)) = messages.into_iter().find(|(_, is_given)| *is_given) {
        let why = "a transfer ends when all files have arrived: give size_bytes and files";
        return check.refuse(key, &format!("{key} of a transfer"), why);
    }
    let sizes = check.0.axes.get(axis::BLOCK_BYTES);
    if let Some(bytes) = sizes.iter().find(|bytes| !(BLOCK_BYTES_MIN..=BLOCK_BYTES_MAX).contains(*bytes)) {
        let why = "a block has 64 KiB to 64 MiB";
        return check.refuse("block_bytes", &format!("blocks of {bytes} bytes"), why);
    }
    if let Some(bytes) = sizes.iter().find(|bytes| !bytes.is_multiple_of(4096)) {
        let why = "files are read past the page cache by multiples of 4096 bytes";
        return check.refuse("block_bytes", &format!("blocks of {bytes} bytes"), why);
    }
    let depth = u64::from(check.least_depth(axis::TX_DEPTH).max(check.largest_u32(axis::TX_DEPTH.row)));
    let connections = check.largest(axis::QUEUE_PAIRS.row);
    let blocks = depth.saturating_mul(connections);
    let ring = blocks.saturating_mul(u64::from(sizes.into_iter().max().unwrap_or(0)));
    if blocks > BLOCKS_MAX || ring > RING_BYTES_MAX {
        let what = format!("{depth} blocks under way on each of {connections} connections");
        let why = "65536 at most may be, with 4 GiB of memory together";
        return check.refuse("tx_depth", &what, why);
    }
    let bytes = check.largest(axis::FILES.row).saturating_mul(check.largest(axis::SIZE_BYTES.row));
    if bytes > BYTES_MAX {
        return check.refuse("files", &format!("{bytes} bytes of files"), "a point may send 1 TiB");
    }
    Ok(())
}
