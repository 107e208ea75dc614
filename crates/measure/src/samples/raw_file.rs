//! The file of raw samples: nanoseconds, 8 bytes little-endian each, in the order in which the
//! messages were sent, and nothing else (see [`crate::record`]).

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::Path;

use crate::{Error, Result, files};

/// Writes samples into a new file and syncs it. An existing file is not overwritten; a file that
/// could not be written completely is removed.
pub fn write_raw(path: &Path, samples_ns: &[u64]) -> Result<()> {
    let file = File::create_new(path).map_err(Error::io("create", path))?;
    write(&file, samples_ns).map_err(|cause| {
        // The error of the write is the one to report.
        let _ = fs::remove_file(path);
        Error::io("write samples to", path)(cause)
    })
}

fn write(file: &File, samples_ns: &[u64]) -> io::Result<()> {
    let mut writer = BufWriter::with_capacity(BUFFER_BYTES, file);
    for ns in samples_ns {
        writer.write_all(&ns.to_le_bytes())?;
    }
    writer.flush()?;
    file.sync_all()
}

/// Reads a file of samples.
pub fn read_raw(path: &Path) -> Result<Vec<u64>> {
    let bytes = files::read(path).map_err(Error::io("read samples from", path))?;
    let (samples, rest) = bytes.as_chunks();
    if rest.is_empty() {
        return Ok(samples.iter().map(|&ns| u64::from_le_bytes(ns)).collect());
    }
    let why = format!("its {} bytes are not a multiple of the 8 bytes of a sample", bytes.len());
    Err(Error::BadSamples { path: path.to_owned(), why })
}

/// Large, so that a large file takes few system calls.
const BUFFER_BYTES: usize = 1 << 18;
