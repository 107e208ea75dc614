//! Reading the logs of VILLASnode.

use crate::units;

/// A sample of a log.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Logged {
    /// Its number; that of the line before plus one if the log has none.
    pub sequence: u64,
    /// When it was generated, in ns since the epoch; absent where the log does not say.
    pub origin_ns: Option<u64>,
    /// The time until it was received, in ns; absent where the log does not say.
    pub offset_ns: Option<i64>,
    /// The number of its values.
    pub values: usize,
}

/// Reads a log of either format. Lines of `csv` have commas (or tabulators) behind the seconds,
/// lines of `villas.human` a point. Lines that begin with `#` hold no samples, nor does a last line
/// without a newline, as in a log that was cut off.
///
/// # Errors
/// The number of a line that has neither format, and the reason in words.
pub fn read(text: &str) -> Result<Vec<Logged>, (usize, String)> {
    let mut samples: Vec<Logged> = Vec::new();
    for (number, line) in (1..).zip(text.split_inclusive('\n')) {
        let Some(line) = line.strip_suffix('\n') else { break };
        let line = line.trim_end_matches('\r');
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let next = samples.last().map_or(0, |last| last.sequence.wrapping_add(1));
        let digits = line.find(|c: char| !c.is_ascii_digit()).unwrap_or(line.len());
        let read = match line[digits..].chars().next() {
            Some(separator @ (',' | '\t')) => csv(line, separator),
            _ if line.starts_with("nan,") => csv(line, ','),
            _ => human(line, next),
        };
        samples.push(read.map_err(|why| (number, why))?);
    }
    Ok(samples)
}

/// Reads a line of comma-separated values: seconds, nanoseconds, offset, number, values.
fn csv(line: &str, separator: char) -> Result<Logged, String> {
    let mut cells = line.split(separator).map(str::trim);
    let mut cell = |what: &str| cells.next().ok_or_else(|| format!("it ends before the {what}"));
    let mut count = |what: &str| match cell(what)? {
        "nan" => Ok(None),
        text => text.parse::<u64>().map(Some).map_err(|_| format!("{text:?} are no {what}")),
    };
    let seconds = count("seconds")?;
    let ns = count("nanoseconds")?;
    let origin_ns = seconds.zip(ns).and_then(|(seconds, ns)| seconds.checked_mul(NS_PER_S)?.checked_add(ns));
    let offset_ns = offset(cell("offset")?)?;
    let sequence = cell("sequence number")?;
    let sequence = sequence.parse().map_err(|_| format!("{sequence:?} is no sequence number"))?;
    Ok(Logged { sequence, origin_ns, offset_ns, values: values(cells)? })
}

/// Reads a line of `villas.human`: seconds, and nanoseconds, offset and number if it has them; then
/// values. `next` is the number of a line that has none.
fn human(line: &str, next: u64) -> Result<Logged, String> {
    let mut cells = line.split_ascii_whitespace();
    let head = cells.next().unwrap_or_default();
    let (time, sequence) = match head.split_once('(') {
        None => (head, next),
        Some((time, rest)) => {
            let digits =
                rest.strip_suffix(')').ok_or_else(|| format!("{head:?} has no end of its number"))?;
            (time, digits.parse().map_err(|_| format!("{digits:?} is no sequence number"))?)
        }
    };
    let sign = time.find(['+', '-']);
    let (origin, rest) = sign.map_or((time, None), |sign| (&time[..sign], Some(&time[sign..])));
    let (seconds, fraction) = origin.split_once('.').unwrap_or((origin, "0"));
    let (Ok(whole), Ok(part)) = (seconds.parse::<u64>(), fraction.parse::<u64>()) else {
        return Err(format!("{origin:?} is no time in seconds"));
    };
    let ns = part as f64 * 1e9 / 10_f64.powi(fraction.len() as i32);
    let origin_ns = whole.checked_mul(NS_PER_S).and_then(|whole| whole.checked_add(ns.round() as u64));
    let offset_ns = rest.map(offset).transpose()?.flatten();
    Ok(Logged { sequence, origin_ns, offset_ns, values: values(cells)? })
}

/// Converts seconds to ns; `None` where they are not known.
fn offset(text: &str) -> Result<Option<i64>, String> {
    /// Longer than any log: a hundred years.
    const MOST_S: f64 = 3.2e9;
    let seconds: f64 = text.parse().map_err(|_| format!("{text:?} is no offset in seconds"))?;
    if seconds.is_nan() {
        return Ok(None);
    }
    if seconds.abs() > MOST_S {
        return Err(format!("an offset of {text} s is not credible"));
    }
    Ok(Some((seconds * 1e9).round() as i64))
}

/// The number of values, all of which have to be numbers.
fn values<'a>(cells: impl Iterator<Item = &'a str>) -> Result<usize, String> {
    let mut count = 0;
    for text in cells {
        text.parse::<f64>().map_err(|_| format!("{text:?} is no value"))?;
        count += 1;
    }
    Ok(count)
}

const NS_PER_S: u64 = 1_000_000_000;

/// The parts of a log's name, as the benchmarks of VILLASnode write it:
/// `ID_MODE-VALUES-RATE-SAMPLES_input.csv`, or `_output`.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct LogName {
    /// The test that it belongs to.
    pub id: String,
    /// The transport service, or the type of the node.
    pub mode: String,
    /// The number of values of a sample.
    pub values: u32,
    /// Due samples per second.
    pub rate_hz: u64,
    /// All due samples.
    pub samples: u64,
    /// Whether it is the receiver's log.
    pub is_output: bool,
}

impl LogName {
    /// Reads the name of a file; `None` if it is not the name of a log.
    pub fn of(file: &str) -> Option<Self> {
        let (stem, ending) = file.rsplit_once('.')?;
        if !["csv", "log", "tsv", "villas"].contains(&ending) {
            return None;
        }
        let (rest, way) = stem.rsplit_once('_')?;
        let is_output = match way {
            "input" => false,
            "output" => true,
            _ => return None,
        };
        let mut numbers = rest.rsplitn(4, '-');
        let samples = units::parse_rate(numbers.next()?).ok()?;
        let rate_hz = units::parse_rate(numbers.next()?).ok()?;
        let values = numbers.next()?.parse().ok()?;
        let (id, mode) = numbers.next()?.split_once('_')?;
        let is_named = !id.is_empty() && !mode.is_empty();
        let name = Self { id: id.to_owned(), mode: mode.to_owned(), values, rate_hz, samples, is_output };
        is_named.then_some(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::villas::{Format, Head};

    #[test]
    fn what_is_written_is_read() {
        let heads = [
            Head { origin_ns: Some(1_553_857_456_005_018_123), offset_ns: Some(1524), sequence: 7 },
            Head { origin_ns: Some(1), offset_ns: Some(-2_500_000_001), sequence: 9 },
            Head { origin_ns: None, offset_ns: None, sequence: 10 },
        ];
        for format in [Format::Csv, Format::Human] {
            let mut text = format.header(2).into_bytes();
            heads.iter().for_each(|head| format.write(head, [0.25, -1e300].into_iter(), &mut text));
            let read = read(std::str::from_utf8(&text).unwrap()).unwrap();
            for (logged, head) in read.iter().zip(heads) {
                assert_eq!((logged.sequence, logged.values), (head.sequence, 2), "{format:?}");
                // villas.human has seven digits of an offset.
                let near = |(one, other): (i64, i64)| one.abs_diff(other) <= other.unsigned_abs() / 1_000_000;
                assert!(logged.offset_ns.zip(head.offset_ns).is_none_or(near), "{format:?} {logged:?}");
                assert_eq!(logged.offset_ns.is_some(), head.offset_ns.is_some(), "{format:?}");
                // villas.human writes a sample without an origin with that of the epoch.
                assert_eq!(logged.origin_ns.unwrap_or(0), head.origin_ns.unwrap_or(0), "{format:?}");
            }
            assert_eq!(read.len(), 3);
        }
    }

    /// Lines from VILLASnode's documentation and its releases.
    #[test]
    fn what_villasnode_writes_is_read() {
        let text = "# secs,nsecs,offset,sequence,signal0\n1541,123456789,0.000002500,0,1.000000\r\n\
                    1541,123466789,nan,2,-0.5\n1541,1234";
        let samples = read(text).unwrap();
        let found: Vec<_> = samples.iter().map(|one| (one.sequence, one.offset_ns, one.values)).collect();
        assert_eq!(found, [(0, Some(2500), 1), (2, None, 1)]);
        let text = "# seconds.nanoseconds(sequence_no)\n1438959964.162102394(6)\t3.489760\t-1.882725\n\
                    1438959964.261677582+1.5e-06 3.4\n1438959965 1\n";
        let samples = read(text).unwrap();
        let found: Vec<_> = samples.iter().map(|one| (one.sequence, one.offset_ns, one.values)).collect();
        assert_eq!(found, [(6, None, 2), (7, Some(1500), 1), (8, None, 1)]);
    }

    #[test]
    fn what_is_no_log_is_told_with_its_line() {
        for (text, line, words) in [
            ("1,2,3\n", 1, "it ends before the sequence number"),
            ("# x\n1,2,0.1,9,abc\n", 2, "\"abc\" is no value"),
            ("1,x,0.1,9\n", 1, "no nanoseconds"),
            ("1,2,1e30,9\n", 1, "an offset of 1e30 s is not credible"),
            ("hello world\n", 1, "is no time in seconds"),
            ("1.5(7 2\n", 1, "no end of its number"),
            ("1.5+x(7) 2\n", 1, "is no offset"),
        ] {
            let (number, why) = read(text).unwrap_err();
            assert!(number == line && why.contains(words), "{text}: {number}: {why}");
        }
        assert_eq!(read(""), Ok(Vec::new()));
    }

    #[test]
    fn names_say_what_was_measured() {
        let name = LogName::of("0_RC-8-100000-250000_output.csv").unwrap();
        assert_eq!((name.id.as_str(), name.mode.as_str(), name.values), ("0", "RC", 8));
        assert_eq!((name.rate_hz, name.samples, name.is_output), (100_000, 250_000, true));
        let name = LogName::of("000003_unix_stream-64-25000-1000_input.villas").unwrap();
        assert_eq!((name.mode.as_str(), name.is_output), ("unix_stream", false));
        for other in
            ["notes.csv", "0_RC-8-100_output.csv", "0_RC-8-1-2_middle.csv", "_-1-2-3_input.csv", "x.png"]
        {
            assert_eq!(LogName::of(other), None, "{other}");
        }
    }
}
