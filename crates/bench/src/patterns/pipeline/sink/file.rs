//! A file of whole lines, even if the disk is full.

use std::io::{Error, ErrorKind, Write};

use super::place::Place;

/// Bytes of lines that are written by one call.
const AT_ONCE: usize = 1 << 20;

/// What was written to a file.
#[derive(Debug, Default)]
pub(super) struct Written {
    /// Samples in the file.
    pub(super) samples: u64,
    pub(super) bytes: u64,
    /// Why the file does not have all samples.
    pub(super) error: Option<String>,
}

/// Writes a header and a line for each row to a file.
pub(super) fn write<R>(
    place: &Place,
    header: &str,
    rows: impl Iterator<Item = R>,
    line: impl FnMut(R, &mut Vec<u8>),
) -> Written {
    let mut written = Written::default();
    if let Err(error) = lines(&mut &place.file, header, rows, line, &mut written) {
        // An incomplete last line is removed.
        let cut = place.file.set_len(written.bytes);
        let cut = cut.map_or_else(
            |cut| format!("; cannot remove its incomplete last line: {cut}"),
            |()| String::new(),
        );
        written.error = Some(format!("cannot write all of {place}: {error}{cut}"));
    }
    written
}

/// Writes a header and a line for each row; records in `written` what the file has in whole lines.
fn lines<R>(
    file: &mut impl Write,
    header: &str,
    mut rows: impl Iterator<Item = R>,
    mut line: impl FnMut(R, &mut Vec<u8>),
    written: &mut Written,
) -> Result<(), Error> {
    let mut out = Vec::with_capacity(AT_ONCE + AT_ONCE / 4);
    out.extend_from_slice(header.as_bytes());
    // The header is no sample.
    let mut has_header = false;
    loop {
        let row = rows.next();
        let is_end = row.is_none();
        if let Some(row) = row {
            line(row, &mut out);
        }
        if !is_end && out.len() < AT_ONCE {
            continue;
        }
        let (whole, done) = write_whole(file, &out);
        written.bytes += whole as u64;
        written.samples += out[..whole].iter().filter(|byte| **byte == b'\n').count() as u64;
        if !has_header && whole > 0 {
            written.samples -= 1;
            has_header = true;
        }
        done?;
        if is_end {
            return Ok(());
        }
        out.clear();
    }
}

/// Writes bytes; returns how many of them are in the file as whole lines, and the error if any.
fn write_whole(file: &mut impl Write, bytes: &[u8]) -> (usize, Result<(), Error>) {
    let mut left = bytes;
    while !left.is_empty() {
        let error = match file.write(left) {
            Ok(0) => ErrorKind::WriteZero.into(),
            Ok(count) => {
                left = &left[count..];
                continue;
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(error) => error,
        };
        let there = &bytes[..bytes.len() - left.len()];
        return (there.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1), Err(error));
    }
    (bytes.len(), Ok(()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A disk with room for `room` bytes.
    struct Disk {
        bytes: Vec<u8>,
        room: usize,
        is_interrupted: bool,
    }

    impl Write for Disk {
        fn write(&mut self, bytes: &[u8]) -> Result<usize, Error> {
            if std::mem::replace(&mut self.is_interrupted, false) {
                return Err(ErrorKind::Interrupted.into());
            }
            let count = bytes.len().min(self.room - self.bytes.len()).min(100_000);
            if count == 0 {
                return Err(ErrorKind::StorageFull.into());
            }
            self.bytes.extend_from_slice(&bytes[..count]);
            Ok(count)
        }

        fn flush(&mut self) -> Result<(), Error> {
            Ok(())
        }
    }

    /// What does not fit is not in the file, and only whole lines count.
    #[test]
    fn a_full_disk_has_whole_lines_of_which_each_is_counted() {
        const ROWS: u64 = 300_000;
        let header = "# header\n";
        let all: usize = header.len() + (0..ROWS).map(|row| format!("line {row}\n").len()).sum::<usize>();
        for room in [0, 5, header.len(), header.len() + 10, 1_500_001, 3_000_000, all - 1, all] {
            let mut disk = Disk { bytes: Vec::new(), room, is_interrupted: true };
            let mut written = Written::default();
            let line =
                |row: u64, out: &mut Vec<u8>| out.extend_from_slice(format!("line {row}\n").as_bytes());
            let done = lines(&mut disk, header, 0..ROWS, line, &mut written);
            assert_eq!(done.is_ok(), room == all, "{room}");
            let there = std::str::from_utf8(&disk.bytes[..written.bytes as usize]).unwrap();
            let mut there = there.lines();
            assert_eq!(there.next().is_some(), room >= header.len(), "{room}");
            assert!((0..written.samples).map(|row| format!("line {row}")).eq(there), "{room}");
            assert!(room - (written.bytes as usize) < 20, "{room}: {written:?}");
        }
    }
}
