//! Reads the tables of a page, and options as a page shows them.

/// Units that a number may have after a space. The parser has them without.
const UNITS: [&str; 2] = ["KiB", "MiB"];

/// A table of a page.
pub(super) struct Table {
    pub(super) heading: Vec<String>,
    pub(super) rows: Vec<Vec<String>>,
}

impl Table {
    /// Returns a row's cell in the column whose heading begins with a word.
    pub(super) fn cell<'a>(&self, row: &'a [String], column: &str) -> Option<&'a str> {
        let place = self.heading.iter().position(|heading| heading.starts_with(column))?;
        row.get(place).map(String::as_str)
    }
}

/// Returns the tables of a page.
pub(super) fn tables(page: &str) -> Vec<Table> {
    let paragraphs = page.split("\n```").step_by(2).flat_map(|text| text.split("\n\n"));
    let tables = paragraphs.map(str::trim).filter(|text| text.starts_with('|')).map(|text| {
        let mut lines = text.lines().map(cells);
        let heading = lines.next().unwrap_or_default();
        Table { heading, rows: lines.skip(1).collect() }
    });
    tables.collect()
}

/// Returns the cells of a row. `\|` is a bar within a cell.
fn cells(line: &str) -> Vec<String> {
    let line = line.replace("\\|", "\0");
    let line = line.trim().trim_start_matches('|').trim_end_matches('|');
    line.split('|').map(|cell| cell.trim().replace('\0', "|")).collect()
}

/// Returns the parts of a text that are code.
pub(super) fn codes(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

/// Returns the words of a cell, each with whether it is a value: code that is no option, or a
/// number.
pub(super) fn words(cell: &str) -> Vec<(String, bool)> {
    let mut all: Vec<(String, bool)> = Vec::new();
    for (index, part) in cell.split('`').enumerate() {
        if index % 2 == 1 {
            all.push((part.to_owned(), !part.starts_with('-')));
            continue;
        }
        for word in part.split_whitespace().map(|word| word.trim_matches([',', ';', ':', '(', ')'])) {
            let is_number = word.starts_with(|c: char| c.is_ascii_digit());
            match all.last_mut() {
                Some((number, true)) if UNITS.contains(&word) => number.push_str(word),
                _ if is_number => all.push((word.replace(',', ""), true)),
                _ => all.push((word.to_owned(), false)),
            }
        }
    }
    all
}

/// An option as a page shows it.
pub(super) struct Shown<'a> {
    /// Its names, with their dashes.
    pub(super) names: Vec<&'a str>,
    /// The name of its value, or values with bars between them.
    pub(super) value: Option<&'a str>,
}

/// Reads code as an option, if it is one.
pub(super) fn option(code: &str) -> Option<Shown<'_>> {
    let mut names = Vec::new();
    let mut rest = code;
    while rest.starts_with('-') {
        let end = rest.find([' ', ',', '=', '[']).unwrap_or(rest.len());
        names.push(&rest[..end]);
        rest = rest[end..].trim_start_matches([' ', ',', '=', '[']);
    }
    let value = Some(rest.trim_end_matches(']')).filter(|value| !value.is_empty());
    (!names.is_empty()).then_some(Shown { names, value })
}
