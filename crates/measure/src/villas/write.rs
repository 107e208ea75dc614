//! Writing samples in the formats of VILLASnode's logs.

use std::io::Write;

/// The format of a log.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Format {
    /// Comma-separated values.
    Csv,
    /// VILLASnode's own format for people.
    Human,
}

/// A sample without its values.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Head {
    /// When it was generated, in ns since 1970; absent where that is not known.
    pub origin_ns: Option<u64>,
    /// The time until it was received, in ns; absent where it was not received or that is not
    /// known.
    pub offset_ns: Option<i64>,
    /// Its number.
    pub sequence: u64,
}

const NS: u64 = 1_000_000_000;

impl Format {
    /// The first line of a file whose samples have `values` values.
    pub fn header(self, values: usize) -> String {
        let signals = (0..values).map(|value| format!("{}signal{value}", self.separator()));
        let first = match self {
            Self::Csv => "# secs,nsecs,offset,sequence",
            Self::Human => "# seconds.nanoseconds+offset(sequence)",
        };
        [first.to_owned()].into_iter().chain(signals).chain(["\n".to_owned()]).collect()
    }

    fn separator(self) -> char {
        match self {
            Self::Csv => ',',
            Self::Human => '\t',
        }
    }

    /// Appends the line of a sample. A value has as many digits as it takes to read the same value
    /// back.
    pub fn write(self, head: &Head, values: impl Iterator<Item = f64>, out: &mut Vec<u8>) {
        match self {
            Self::Csv => csv(head, out),
            Self::Human => human(head, out),
        }
        for value in values {
            out.push(self.separator() as u8);
            out.extend_from_slice(zmij::Buffer::new().format(value).as_bytes());
        }
        out.push(b'\n');
    }
}

fn csv(head: &Head, out: &mut Vec<u8>) {
    match head.origin_ns {
        Some(origin_ns) => {
            whole(origin_ns / NS, out);
            out.push(b',');
            nine_digits(origin_ns % NS, out);
        }
        None => out.extend_from_slice(b"nan,nan"),
    }
    out.push(b',');
    match head.offset_ns {
        Some(offset_ns) => {
            if offset_ns < 0 {
                out.push(b'-');
            }
            whole(offset_ns.unsigned_abs() / NS, out);
            out.push(b'.');
            nine_digits(offset_ns.unsigned_abs() % NS, out);
        }
        None => out.extend_from_slice(b"nan"),
    }
    out.push(b',');
    whole(head.sequence, out);
}

fn human(head: &Head, out: &mut Vec<u8>) {
    match head.origin_ns {
        Some(origin_ns) => {
            whole(origin_ns / NS, out);
            out.push(b'.');
            nine_digits(origin_ns % NS, out);
        }
        None => out.extend_from_slice(b"0.0"),
    }
    if let Some(offset_ns) = head.offset_ns {
        let start = out.len();
        // Writing into memory does not fail.
        let _ = write!(out, "{:+.6e}", offset_ns as f64 / NS as f64);
        // C prints at least two digits of an exponent, and always its sign.
        let exponent = out.iter().rposition(|byte| *byte == b'e').map_or(start, |e| e + 1);
        if out[exponent] != b'-' {
            out.insert(exponent, b'+');
        }
        if out.len() - exponent < 3 {
            out.insert(exponent + 1, b'0');
        }
    }
    out.push(b'(');
    whole(head.sequence, out);
    out.push(b')');
}

fn whole(number: u64, out: &mut Vec<u8>) {
    out.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
}

/// A number below 10^9, with leading zeros.
fn nine_digits(number: u64, out: &mut Vec<u8>) {
    let mut buffer = itoa::Buffer::new();
    let digits = buffer.format(number + NS).as_bytes();
    // Without the leading 1 of ten digits.
    out.extend_from_slice(&digits[1..]);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(format: Format, head: &Head, values: &[f64]) -> String {
        let mut out = Vec::new();
        format.write(head, values.iter().copied(), &mut out);
        String::from_utf8(out).unwrap()
    }

    const HEAD: Head =
        Head { origin_ns: Some(1_553_857_456_005_018_123), offset_ns: Some(1524), sequence: 7 };

    #[test]
    fn samples_are_written_as_villasnode_does() {
        assert_eq!(
            line(Format::Csv, &HEAD, &[0.25, -1.0, 1e300]),
            "1553857456,005018123,0.000001524,7,0.25,-1.0,1e+300\n"
        );
        assert_eq!(line(Format::Human, &HEAD, &[0.25]), "1553857456.005018123+1.524000e-06(7)\t0.25\n");
        let late = Head { offset_ns: Some(-2_500_000_001), ..HEAD };
        assert_eq!(line(Format::Csv, &late, &[]), "1553857456,005018123,-2.500000001,7\n");
        assert_eq!(line(Format::Human, &late, &[]), "1553857456.005018123-2.500000e+00(7)\n");
        let unknown = Head { origin_ns: None, offset_ns: None, sequence: u64::MAX };
        assert_eq!(line(Format::Csv, &unknown, &[]), "nan,nan,nan,18446744073709551615\n");
        assert_eq!(line(Format::Human, &unknown, &[]), "0.0(18446744073709551615)\n");
        assert_eq!(Format::Csv.header(2), "# secs,nsecs,offset,sequence,signal0,signal1\n");
        assert_eq!(Format::Human.header(1), "# seconds.nanoseconds+offset(sequence)\tsignal0\n");
    }

    #[test]
    fn a_value_is_read_as_it_was() {
        let mut random = crate::random::Random(7);
        let values: Vec<f64> =
            (0..10_000).map(|_| f64::from_bits(random.bits())).filter(|v| v.is_finite()).collect();
        let text = line(Format::Csv, &HEAD, &values);
        let read = text.trim_end().split(',').skip(4).map(|value| value.parse::<f64>().unwrap());
        assert!(read.map(f64::to_bits).eq(values.iter().map(|value| value.to_bits())));
    }
}
