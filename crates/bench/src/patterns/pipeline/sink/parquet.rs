//! Files of Apache Parquet: a column for each field of a sample, for pandas, DuckDB and similar
//! programs.

use std::io::Write;
use std::sync::Arc;

use measure::villas::Head;
use parquet::basic::Encoding;
use parquet::data_type::{DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::parser::parse_message_type;
use parquet::schema::types::ColumnPath;

use super::file::Written;
use super::place::Place;

/// The number of samples of a row group.
const AT_ONCE: usize = 1 << 17;
/// Columns that mostly rise evenly: they take few bits as differences of differences.
const RISING: [&str; 3] = ["sequence", "origin", "offset_ns"];

/// Writes rows to a file. `head` splits a row into its first fields and its values, each the bits
/// of a float64.
///
/// The index of such a file is at its end: if it cannot be written, the file is unreadable.
pub(super) fn write<'a>(
    place: &Place,
    values: usize,
    rows: impl ExactSizeIterator<Item = &'a [u64]>,
    head: impl Fn(&'a [u64]) -> (Head, &'a [u64]),
) -> Written {
    let samples = rows.len() as u64;
    match groups(&place.file, values, rows, head) {
        Ok(()) => {
            let bytes = place.file.metadata().map_or(0, |metadata| metadata.len());
            Written { samples, bytes, error: None }
        }
        Err(error) => {
            let why = format!(
                "cannot write all of {place}; without its index, which is at its end, it is unreadable: {error}"
            );
            Written { error: Some(why), ..Written::default() }
        }
    }
}

fn groups<'a>(
    out: impl Write + Send,
    values: usize,
    rows: impl Iterator<Item = &'a [u64]>,
    head: impl Fn(&'a [u64]) -> (Head, &'a [u64]),
) -> Result<(), ParquetError> {
    let signals: String = (0..values).map(|index| format!("required double signal{index};\n")).collect();
    let schema = format!(
        "message samples {{\nrequired int64 sequence (INTEGER(64,false));\noptional int64 origin (TIMESTAMP(NANOS,true));\n\
         optional int64 offset_ns;\n{signals}}}"
    );
    let program = format!("rdmascope {}", env!("CARGO_PKG_VERSION"));
    let properties = WriterProperties::builder().set_created_by(program).set_dictionary_enabled(false);
    let properties = RISING.into_iter().fold(properties, |properties, column| {
        properties.set_column_encoding(ColumnPath::from(column), Encoding::DELTA_BINARY_PACKED)
    });
    let mut writer =
        SerializedFileWriter::new(out, Arc::new(parse_message_type(&schema)?), Arc::new(properties.build()))?;
    let mut rows = rows.peekable();
    while rows.peek().is_some() {
        let (heads, signals): (Vec<Head>, Vec<&[u64]>) = rows.by_ref().take(AT_ONCE).map(&head).unzip();
        let mut group = writer.next_row_group()?;
        required(&mut group, heads.iter().map(|head| head.sequence.cast_signed()).collect())?;
        optional(&mut group, heads.iter().map(|head| head.origin_ns.map(u64::cast_signed)).collect())?;
        optional(&mut group, heads.iter().map(|head| head.offset_ns).collect())?;
        for index in 0..values {
            let mut column = group.next_column()?.ok_or_else(lacks)?;
            let values: Vec<f64> = signals.iter().map(|values| f64::from_bits(values[index])).collect();
            column.typed::<DoubleType>().write_batch(&values, None, None)?;
            column.close()?;
        }
        group.close()?;
    }
    writer.close().map(drop)
}

fn required<W: Write + Send>(
    group: &mut SerializedRowGroupWriter<'_, W>,
    values: Vec<i64>,
) -> Result<(), ParquetError> {
    let mut column = group.next_column()?.ok_or_else(lacks)?;
    column.typed::<Int64Type>().write_batch(&values, None, None)?;
    column.close()
}

/// Writes a column in which values may be missing.
fn optional<W: Write + Send>(
    group: &mut SerializedRowGroupWriter<'_, W>,
    values: Vec<Option<i64>>,
) -> Result<(), ParquetError> {
    let mut column = group.next_column()?.ok_or_else(lacks)?;
    let there: Vec<i64> = values.iter().flatten().copied().collect();
    let levels: Vec<i16> = values.iter().map(|value| i16::from(value.is_some())).collect();
    column.typed::<Int64Type>().write_batch(&there, Some(&levels), None)?;
    column.close()
}

fn lacks() -> ParquetError {
    ParquetError::General("the schema has fewer columns than are written".to_owned())
}

#[cfg(test)]
mod tests {
    use parquet::file::reader::{FileReader, SerializedFileReader};
    use parquet::record::RowAccessor;

    use super::*;

    fn head(row: &[u64]) -> (Head, &[u64]) {
        let is_there = !row[0].is_multiple_of(3);
        let head = Head {
            sequence: row[0],
            origin_ns: is_there.then_some(1_700_000_000_000_000_000 + row[0]),
            offset_ns: is_there.then_some(-5),
        };
        (head, &row[1..])
    }

    /// Writes more samples than a row group has; each is read back as it was.
    #[test]
    fn every_sample_is_in_its_columns() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("samples.parquet");
        let count = AT_ONCE as u64 + 7;
        let rows: Vec<[u64; 3]> =
            (0..count).map(|step| [step, (step as f64).to_bits(), f64::to_bits(-0.25)]).collect();
        let rows = || rows.iter().map(|row| &row[..]);
        let file = crate::patterns::pipeline::sink::place::create(&path).unwrap();
        let place = Place { file, path: Some(path.clone()), is_written: true };
        let written = write(&place, 2, rows(), head);
        assert_eq!((written.samples, written.error), (count, None));
        let bytes = std::fs::read(&path).unwrap();
        assert_eq!(
            (&bytes[..4], &bytes[bytes.len() - 4..], bytes.len() as u64),
            (&b"PAR1"[..], &b"PAR1"[..], written.bytes)
        );
        let reader = SerializedFileReader::new(std::fs::File::open(&path).unwrap()).unwrap();
        assert_eq!(reader.metadata().num_row_groups(), 2);
        let mut seen = 0;
        for (step, row) in (0..).zip(reader.get_row_iter(None).unwrap()) {
            let row = row.unwrap();
            assert_eq!(
                (row.get_ulong(0).unwrap(), row.get_double(3).unwrap(), row.get_double(4).unwrap()),
                (step, step as f64, -0.25)
            );
            assert_eq!(row.get_long(2).ok(), (!step.is_multiple_of(3)).then_some(-5));
            seen += 1;
        }
        assert_eq!(seen, count);
    }

    /// A disk with room for this many bytes.
    struct Disk(usize);

    impl Write for Disk {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            let count = bytes.len().min(self.0);
            self.0 -= count;
            if count == 0 && !bytes.is_empty() {
                Err(std::io::ErrorKind::StorageFull.into())
            } else {
                Ok(count)
            }
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_full_disk_is_an_error_wherever_it_is_full() {
        let rows: Vec<[u64; 2]> = (0..5000).map(|step| [step, (step as f64).to_bits()]).collect();
        let done = |room| groups(Disk(room), 1, rows.iter().map(|row| &row[..]), head);
        for room in [0, 3, 100, 20_000, 40_000] {
            assert!(done(room).is_err(), "{room}");
        }
        assert!(done(1 << 20).is_ok());
    }
}
