//! Values in print: sizes, times, counts, and texts of a record.

use serde_json::Value;

use crate::record::Axes;

/// Prints a value of an axis: strings without quotes.
pub fn value(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// Removes characters of a record's text that a terminal would act on.
pub fn plain(text: &str) -> String {
    let visible: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    visible.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Quotes a word for a shell, if it needs quotes.
pub fn shell_word(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-./:,@%+=".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// Turns documentation of Rust into a sentence: `name` spells the target of each link of rustdoc.
pub fn sentence(help: &str, name: fn(&str) -> String) -> String {
    let mut text = String::new();
    let mut rest = help;
    while let Some((before, after)) = rest.split_once("[`") {
        let Some((path, behind)) = after.split_once("`]") else { break };
        text += before;
        text += &format!("`{}`", name(path));
        // The target of the link, if it has one.
        let target = behind.strip_prefix('(').and_then(|behind| behind.split_once(')'));
        rest = target.map_or(behind, |(_, behind)| behind);
    }
    text += rest;
    let end = if text.ends_with(['.', ':']) { "" } else { "." };
    text + end
}

/// Breaks a text into lines of at most 100 characters; `prefix` stands before all but the first.
pub fn wrapped(text: &str, prefix: &str) -> String {
    let mut lines = String::new();
    let mut line = String::new();
    for word in text.split(' ') {
        if line.chars().count() + word.chars().count() >= 100 {
            lines += &(line.trim_end().to_owned() + "\n");
            line = prefix.to_owned();
        }
        line += &format!("{word} ");
    }
    lines + line.trim_end() + "\n"
}

/// Prints the axes for which `is_shown` holds: `inline true, poll busy`.
pub fn axes_text(axes: &Axes, is_shown: impl Fn(&str) -> bool) -> String {
    let shown = axes.iter().filter(|(name, _)| is_shown(name));
    let texts: Vec<String> =
        shown.map(|(name, value)| plain(&format!("{name} {}", self::value(value)))).collect();
    texts.join(", ")
}

/// Prints a share in percent, to four decimals: one message of a million.
pub fn percent(share: f64) -> String {
    format!("{:.4} %", share * 100.0)
}

/// The number of decimals, 2 to 4, with which the smallest number that is not zero keeps three
/// significant digits.
pub fn digits(values: impl Iterator<Item = f64>) -> usize {
    let smallest = values.map(f64::abs).filter(|v| *v > 0.0).fold(f64::INFINITY, f64::min);
    match smallest {
        s if s < 0.1 => 4,
        s if s < 1.0 => 3,
        _ => 2,
    }
}

/// Prints a number of things: `1 member`, `2 members`.
pub fn counted(count: u64, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

/// Prints a number of points: `1 point`, `2 points`.
pub fn points(count: u64) -> String {
    counted(count, "point")
}

/// Prints a number of bytes: `4 B`, `32 KiB`, `8 MiB`.
pub fn size(bytes: u64) -> String {
    [("GiB", 30), ("MiB", 20), ("KiB", 10)]
        .into_iter()
        .find(|(_, shift)| bytes >= 1 << shift && bytes.is_multiple_of(1 << shift))
        .map_or_else(|| format!("{bytes} B"), |(unit, shift)| format!("{} {unit}", bytes >> shift))
}

/// Prints a count in groups of three digits.
pub fn grouped(count: u64) -> String {
    let digits = count.to_string();
    let cut = |(index, digit): (usize, char)| {
        let comma = index > 0 && (digits.len() - index).is_multiple_of(3);
        comma.then_some(',').into_iter().chain([digit])
    };
    digits.chars().enumerate().flat_map(cut).collect()
}

/// Prints a time in ns, in the unit that suits it.
pub fn time(ns: f64) -> String {
    match ns {
        n if n < 100.0 => format!("{n:.1} ns"),
        n if n < 1e3 => format!("{n:.0} ns"),
        n if n < 1e6 => format!("{:.2} us", n / 1e3),
        n if n < 1e9 => format!("{:.2} ms", n / 1e6),
        n if n < 120e9 => format!("{:.1} s", n / 1e9),
        n => format!("{:.0} min", n / 60e9),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_times_read_well() {
        let sizes: Vec<_> = [4, 1000, 1024, 1536, 32 << 10, 8 << 20, 1 << 30].map(size).into();
        assert_eq!(sizes, ["4 B", "1000 B", "1 KiB", "1536 B", "32 KiB", "8 MiB", "1 GiB"]);
        let times: Vec<_> = [12.0, 1234.0, 2.5e6, 90e9, 600e9].map(time).into();
        assert_eq!(times, ["12.0 ns", "1.23 us", "2.50 ms", "90.0 s", "10 min"]);
    }

    #[test]
    fn digits_keep_small_numbers_readable() {
        assert_eq!(digits([0.82, 1428.55].into_iter()), 3);
        assert_eq!(digits([1.04, 0.0].into_iter()), 2);
        assert_eq!(digits([0.0125].into_iter()), 4);
        let counts = [0, 999, 1000, 27_300, 1_234_567].map(grouped);
        assert_eq!(counts, ["0", "999", "1,000", "27,300", "1,234,567"]);
    }
}
