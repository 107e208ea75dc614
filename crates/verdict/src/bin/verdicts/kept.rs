//! Rates that a file keeps: a line for each row, in the order of their names.

use std::collections::BTreeMap;
use std::fs;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use measure::files::replace;

use crate::rates::Rate;

/// The first line of a file, which names the columns. [`line()`] writes the others.
const HEAD: &str = "row,wrong,trials,not_promised,first_wrong_trial,bar";

/// The rates of a file, by the names of their rows.
#[derive(Clone, Debug)]
pub(crate) struct Kept {
    file: PathBuf,
    pub(crate) rates: BTreeMap<String, Rate>,
}

impl Kept {
    /// The rates of a file, which need not exist yet.
    pub(crate) fn read(file: &Path) -> Result<Self, String> {
        let text = match fs::read_to_string(file) {
            Err(error) if error.kind() == ErrorKind::NotFound => String::new(),
            read => read.map_err(|error| format!("cannot read {}: {error}", file.display()))?,
        };
        if !text.is_empty() && text.lines().next() != Some(HEAD) {
            return Err(format!("{} does not begin with the titles of its columns", file.display()));
        }
        let mut rates = BTreeMap::new();
        for (line, number) in text.lines().zip(1..).skip(1) {
            let rate = rate(line).ok_or_else(|| {
                format!(
                    "{}:{number}: this line is not the rate of a row, whose columns the first line names",
                    file.display()
                )
            })?;
            rates.insert(rate.name.clone(), rate);
        }
        Ok(Self { file: file.to_owned(), rates })
    }

    /// Keeps the rate of a row, unless it could not be measured.
    pub(crate) fn keep(&mut self, rate: Rate) -> Result<(), String> {
        if rate.not_measured.is_some() {
            return Ok(());
        }
        self.rates.insert(rate.name.clone(), rate);
        let rates = &self.rates;
        let file = &self.file;
        let written = replace(file, |out: &mut dyn Write| {
            writeln!(out, "{HEAD}")?;
            rates.values().try_for_each(|rate| writeln!(out, "{}", line(rate)))
        });
        written.map_err(|error| format!("cannot write {}: {error}", file.display()))
    }
}

/// A line of the file: the name in quotation marks, because names have commas. What a row does not
/// have is empty.
fn line(rate: &Rate) -> String {
    let Rate { name, errors, trials, not_promised, .. } = rate;
    let first = rate.first_error.map_or(String::new(), |trial| trial.to_string());
    let bar = rate.bar.map_or(String::new(), |bar| bar.to_string());
    format!("\"{name}\",{errors},{trials},{not_promised},{first},{bar}")
}

fn rate(line: &str) -> Option<Rate> {
    let (name, numbers) = line.strip_prefix('"')?.split_once("\",")?;
    let numbers: Vec<&str> = numbers.split(',').collect();
    let &[errors, trials, not_promised, first, bar] = numbers.as_slice() else { return None };
    let bar = if bar.is_empty() { None } else { Some(bar.parse().ok()?) };
    let rate = Rate {
        errors: errors.parse().ok()?,
        trials: trials.parse().ok()?,
        not_promised: not_promised.parse().ok()?,
        first_error: if first.is_empty() { None } else { Some(first.parse().ok()?) },
        ..Rate::none(name, bar)
    };
    (rate.errors <= rate.trials && (rate.errors > 0) == rate.first_error.is_some()).then_some(rate)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A file of this test, which does not exist.
    fn file(name: &str) -> PathBuf {
        std::env::temp_dir().join(format!("{name}-{}.csv", std::process::id()))
    }

    #[test]
    fn a_kept_rate_is_read_as_it_was() {
        let file = file("kept");
        let mut kept = Kept::read(&file).unwrap();
        assert!(kept.rates.is_empty());
        let rate =
            Rate { errors: 2, trials: 9, not_promised: 1, first_error: Some(4), ..Rate::none("a", None) };
        let other = Rate { trials: 3, ..Rate::none("b, c", Some(0.01)) };
        let not_measured = Rate { not_measured: Some("no tc".to_owned()), ..Rate::none("d", None) };
        for rate in [&other, &not_measured, &rate] {
            kept.keep(rate.clone()).unwrap();
        }
        let text = fs::read_to_string(&file).unwrap();
        assert_eq!(text, format!("{HEAD}\n\"a\",2,9,1,4,\n\"b, c\",0,3,0,,0.01\n"));
        let read = Kept::read(&file).unwrap();
        fs::remove_file(&file).unwrap();
        let lines = |kept: &Kept| kept.rates.values().map(Rate::line).collect::<Vec<String>>();
        assert_eq!(lines(&read), [rate.line(), other.line()]);
        assert_eq!(read.rates["a"].first_error, Some(4));
    }

    #[test]
    fn what_is_no_rate_is_refused() {
        let file = file("refused");
        for (text, why) in [
            ("\"a\",0,1,0,,\n".to_owned(), " does not begin with the titles of its columns"),
            (format!("{HEAD}\n\"a\",0,1,0,\n"), ":2: this line is not the rate of a row"),
            (format!("{HEAD}\n\"a\",2,1,0,0,\n"), ":2: this line is not the rate of a row"),
            (format!("{HEAD}\n\"a\",1,1,0,,\n"), ":2: this line is not the rate of a row"),
        ] {
            fs::write(&file, text).unwrap();
            let refused = Kept::read(&file).unwrap_err();
            assert!(refused.contains(why), "{refused}");
        }
        fs::remove_file(&file).unwrap();
    }
}
