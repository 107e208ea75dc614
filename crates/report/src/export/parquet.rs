//! A table as Apache Parquet: columns with types, for pandas, DuckDB and similar programs.

use std::io::{self, Write};
use std::sync::Arc;
use std::time::UNIX_EPOCH;

use parquet::basic::{LogicalType, Repetition, TimeUnit, Type as Physical};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DataType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use parquet::schema::types::Type;
use serde_json::Value;

use super::exported::Cell;
use super::rows::{COLUMNS, Column, Table, text};
use crate::Error;

/// The type of a column.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Kind {
    /// True or false.
    Flag,
    /// A whole number.
    Integer,
    /// Any number.
    Number,
    /// Anything, in words.
    Text,
    /// A moment.
    Time,
}

impl Kind {
    /// The narrowest type that all values have.
    fn of(values: &[&Value]) -> Self {
        let all: Vec<&&Value> = values.iter().filter(|value| !value.is_null()).collect();
        let are_all = |is_it: fn(&Value) -> bool| !all.is_empty() && all.iter().all(|value| is_it(value));
        if are_all(Value::is_boolean) {
            Self::Flag
        } else if are_all(Value::is_i64) {
            Self::Integer
        } else if are_all(Value::is_number) {
            Self::Number
        } else {
            Self::Text
        }
    }
}

/// A column with its type.
pub(super) fn typed<'a>(column: &Column) -> (&'a str, Kind) {
    let kind = match column.kind {
        "datetime" => Kind::Time,
        "integer" => Kind::Integer,
        "number" => Kind::Number,
        _ => Kind::Text,
    };
    (column.name, kind)
}

/// Writes the table of numbers.
pub(super) fn write(table: &Table<'_>, out: &mut dyn Write) -> Result<(), Error> {
    let axes = table.axes().map(|(column, values)| (column, Kind::of(&values)));
    let mut parquet = Parquet::new(&COLUMNS.iter().map(typed).chain(axes).collect::<Vec<_>>())?;
    table.rows().try_for_each(|cells| parquet.row(&cells))?;
    parquet.finish(out)
}

/// A table that is being written. Its index is at its end, so that it is kept in memory until all
/// rows are known; encoded columns take little.
pub(super) struct Parquet {
    kinds: Vec<Kind>,
    writer: SerializedFileWriter<Vec<u8>>,
    /// The rows of the next group.
    rows: Vec<Vec<Value>>,
}

impl Parquet {
    pub(super) fn new(columns: &[(&str, Kind)]) -> Result<Self, Error> {
        let field = |(name, kind): &(&str, Kind)| {
            let (physical, logical) = match kind {
                Kind::Flag => (Physical::BOOLEAN, None),
                Kind::Integer => (Physical::INT64, None),
                Kind::Number => (Physical::DOUBLE, None),
                Kind::Text => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
                Kind::Time => (Physical::INT64, Some(LogicalType::timestamp(true, TimeUnit::MILLIS))),
            };
            let field = Type::primitive_type_builder(name, physical).with_logical_type(logical);
            field.with_repetition(Repetition::OPTIONAL).build().map(Arc::new)
        };
        let fields: Vec<_> = columns.iter().map(field).collect::<Result<_, _>>().map_err(failed)?;
        let schema = Type::group_type_builder("table").with_fields(fields).build().map_err(failed)?;
        let program = format!("rdmascope {}", env!("CARGO_PKG_VERSION"));
        let properties = WriterProperties::builder().set_created_by(program).build();
        let writer = SerializedFileWriter::new(Vec::new(), Arc::new(schema), Arc::new(properties));
        let kinds = columns.iter().map(|(_, kind)| *kind).collect();
        Ok(Self { kinds, writer: writer.map_err(failed)?, rows: Vec::new() })
    }

    /// Adds a row.
    pub(super) fn row(&mut self, cells: &[Cell<'_>]) -> Result<(), Error> {
        self.rows.push(cells.iter().map(|(_, cell)| cell.clone()).collect());
        if self.rows.len() == GROUP { self.group().map_err(failed) } else { Ok(()) }
    }

    /// Ends the table and writes it.
    pub(super) fn finish(mut self, out: &mut dyn Write) -> Result<(), Error> {
        self.group().map_err(failed)?;
        Ok(out.write_all(&self.writer.into_inner().map_err(failed)?)?)
    }

    fn group(&mut self) -> Result<(), ParquetError> {
        if self.rows.is_empty() {
            return Ok(());
        }
        let rows = std::mem::take(&mut self.rows);
        let mut group = self.writer.next_row_group()?;
        for (index, kind) in self.kinds.iter().enumerate() {
            let lacks = || ParquetError::General("the schema has fewer columns than a row".to_owned());
            let mut column = group.next_column()?.ok_or_else(lacks)?;
            let cells = rows.iter().map(|row| &row[index]);
            match kind {
                Kind::Flag => column_of::<BoolType>(&mut column, cells.map(Value::as_bool)),
                Kind::Integer => column_of::<Int64Type>(&mut column, cells.map(Value::as_i64)),
                Kind::Number => column_of::<DoubleType>(&mut column, cells.map(Value::as_f64)),
                Kind::Text => column_of::<ByteArrayType>(&mut column, cells.map(bytes)),
                Kind::Time => column_of::<Int64Type>(&mut column, cells.map(milliseconds)),
            }?;
            column.close()?;
        }
        group.close().map(drop)
    }
}

/// Writes the values of a column, some of which may be missing.
fn column_of<T: DataType>(
    column: &mut SerializedColumnWriter<'_>,
    values: impl Iterator<Item = Option<T::T>>,
) -> Result<(), ParquetError> {
    let values: Vec<Option<T::T>> = values.collect();
    let levels: Vec<i16> = values.iter().map(|value| i16::from(value.is_some())).collect();
    let values: Vec<T::T> = values.into_iter().flatten().collect();
    column.typed::<T>().write_batch(&values, Some(&levels), None).map(drop)
}

fn bytes(cell: &Value) -> Option<ByteArray> {
    (!cell.is_null()).then(|| ByteArray::from(text(cell).into_bytes()))
}

/// A time as milliseconds since 1970.
fn milliseconds(cell: &Value) -> Option<i64> {
    let since = humantime::parse_rfc3339(cell.as_str()?).ok()?.duration_since(UNIX_EPOCH).ok()?;
    i64::try_from(since.as_millis()).ok()
}

fn failed(error: ParquetError) -> Error {
    io::Error::other(error).into()
}

/// Rows of a group.
const GROUP: usize = 1 << 15;

#[cfg(test)]
mod tests {
    use parquet::file::reader::{FileReader, SerializedFileReader};
    use parquet::record::Field;
    use serde_json::json;

    use super::*;

    #[test]
    fn a_column_has_the_narrowest_type_of_its_values() {
        let of = |values: &Value| Kind::of(&values.as_array().unwrap().iter().collect::<Vec<_>>());
        assert_eq!(of(&json!([8, null, -1])), Kind::Integer);
        assert_eq!(of(&json!([8, 0.5])), Kind::Number);
        assert_eq!(of(&json!([true, null])), Kind::Flag);
        assert_eq!(of(&json!([8, "usual"])), Kind::Text);
        assert_eq!(of(&json!([null])), Kind::Text);
    }

    /// Writes more rows than a group has; each is read back as it was.
    #[test]
    fn every_cell_is_in_its_column() {
        let columns = [
            ("flag", Kind::Flag),
            ("whole", Kind::Integer),
            ("number", Kind::Number),
            ("text", Kind::Text),
            ("time", Kind::Time),
        ];
        let mut parquet = Parquet::new(&columns).unwrap();
        let time = "2026-11-28T02:33:57Z";
        for step in 0..GROUP + 2 {
            let cells = match step % 2 {
                0 => [json!(true), json!(step), json!(0.5), json!([1, "a"]), json!(time)],
                _ => [Value::Null, Value::Null, Value::Null, Value::Null, Value::Null],
            };
            parquet.row(&columns.iter().map(|(name, _)| *name).zip(cells).collect::<Vec<_>>()).unwrap();
        }
        let mut out = Vec::new();
        parquet.finish(&mut out).unwrap();
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), out).unwrap();
        let reader = SerializedFileReader::new(file.reopen().unwrap()).unwrap();
        assert_eq!(reader.metadata().num_row_groups(), 2);
        let rows: Vec<Vec<Field>> = (reader.get_row_iter(None).unwrap())
            .map(|row| row.unwrap().into_columns().into_iter().map(|(_, field)| field).collect())
            .collect();
        assert_eq!(rows.len(), GROUP + 2);
        let last = &rows[GROUP];
        let text = Field::Str(text(&json!([1, "a"])));
        let expected = [Field::Bool(true), Field::Long(GROUP as i64), Field::Double(0.5), text];
        assert_eq!(last[..4], expected);
        assert_eq!(last[4], Field::TimestampMillis(1_795_833_237_000));
        assert_eq!(rows[1], vec![Field::Null; 5]);
    }
}
