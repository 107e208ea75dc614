//! Sizes in bytes and ranges of them.
//!
//! `KiB`, `MiB`, `GiB`, `TiB` are powers of 2^10 and `kB`, `MB`, `GB`, `TB` powers of 10^3 (IEC
//! 80000-13). A bare `K`, `M`, `G` or `T`, in either case, is a power of 2^10, as users of perftest
//! and nccl-tests expect. `KB` is refused, because it is used for both.

use crate::{Error, Result};

/// Reads a size: `4`, `4B`, `64KiB`, `8 MiB`, `2K`, `100MB`. Whole numbers only.
pub fn parse_size(text: &str) -> Result<u64> {
    read_size(text).map_err(|why| Error::Size { text: text.to_owned(), why })
}

/// Writes a size in the largest binary unit that divides it: `4`, `1000`, `64KiB`. [`parse_size`]
/// reads it back.
pub fn format_size(bytes: u64) -> String {
    let unit = BINARY.iter().find(|(_, factor)| bytes != 0 && bytes.is_multiple_of(*factor));
    unit.map_or_else(|| bytes.to_string(), |(suffix, factor)| format!("{}{suffix}", bytes / factor))
}

/// Reads a size or a range of sizes. `4..8MiB` is 4 bytes and every doubling of it up to 8 MiB,
/// both bounds included. The upper bound has to be one of the doublings, so that no range ends
/// where its reader does not expect it.
pub fn parse_sizes(text: &str) -> Result<Vec<u64>> {
    let Some((start, end)) = text.split_once("..") else {
        return Ok(vec![parse_size(text)?]);
    };
    let refuse = |why: String| Error::SizeRange { text: text.to_owned(), why };
    let start = read_size(start).map_err(refuse)?;
    let end = read_size(end).map_err(refuse)?;
    doublings(start, end).map_err(refuse)
}

fn doublings(start: u64, end: u64) -> std::result::Result<Vec<u64>, String> {
    if start == 0 {
        return Err("0 cannot be doubled; start at 1 or more".to_owned());
    }
    if end < start {
        return Err(format!("it ends before it starts; write {}..{}", format_size(end), format_size(start)));
    }
    let double = |&size: &u64| size.checked_mul(2).filter(|&next| next <= end);
    let sizes: Vec<u64> = std::iter::successors(Some(start), double).collect();
    let last = sizes[sizes.len() - 1];
    if last == end {
        return Ok(sizes);
    }
    let next = last.checked_mul(2).map(|next| format!(" or {}", format_size(next))).unwrap_or_default();
    let from = format_size(start);
    let to = format_size(end);
    let last = format_size(last);
    Err(format!("doubling {from} does not reach {to}; end at {last}{next}, or write the sizes as a list"))
}

fn read_size(text: &str) -> std::result::Result<u64, String> {
    let text = text.trim();
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let number = &text[..digits];
    let suffix = text[digits..].trim_start();
    if number.is_empty() {
        return Err("it does not start with a digit; write bytes as 4, 64KiB or 8MiB".to_owned());
    }
    if let Some(rest) = suffix.strip_prefix('.') {
        return Err(in_parts(number, rest));
    }
    let factor = factor(suffix)?;
    let number: Option<u64> = number.parse().ok();
    number
        .and_then(|number| number.checked_mul(factor))
        .ok_or_else(|| format!("it is more than the largest size, {} bytes", u64::MAX))
}

/// What to write instead of a size that is no whole number of its unit, such as `1.5KiB`; `rest`
/// follows the point.
fn in_parts(number: &str, rest: &str) -> String {
    let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    let parts = &rest[..digits];
    let unit = rest[digits..].trim_start();
    let bytes = || {
        let tenths = 10_u64.checked_pow(u32::try_from(parts.len()).ok()?)?;
        let all = format!("{number}{parts}").parse::<u64>().ok()?.checked_mul(factor(unit).ok()?)?;
        (all % tenths == 0).then(|| all / tenths)
    };
    let Some(bytes) = bytes() else { return "a size is a whole number of bytes".to_owned() };
    let units = BINARY.iter().chain(&[("B", 1)]);
    let (name, factor) = units.copied().find(|(_, factor)| bytes % factor == 0).unwrap_or(("B", 1));
    format!("a size is a whole number of its unit; write {}{name}", bytes / factor)
}

fn factor(suffix: &str) -> std::result::Result<u64, String> {
    if suffix.is_empty() || suffix == "B" {
        return Ok(1);
    }
    let named = BINARY.iter().chain(&DECIMAL).find(|(name, _)| *name == suffix);
    let bare = || BINARY.iter().find(|(name, _)| suffix.len() == 1 && name[..1].eq_ignore_ascii_case(suffix));
    match named.or_else(bare) {
        Some(&(_, factor)) => Ok(factor),
        None if suffix == "KB" => Err("KB may mean 1024 or 1000; write KiB or kB".to_owned()),
        None => Err(format!(
            "{suffix:?} is no unit of size; write B, KiB, MiB, GiB or TiB (or K, M, G, T), kB, MB, GB or TB"
        )),
    }
}

/// Largest first.
const BINARY: [(&str, u64); 4] = [("TiB", 1 << 40), ("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)];
const DECIMAL: [(&str, u64); 4] =
    [("TB", 1_000_000_000_000), ("GB", 1_000_000_000), ("MB", 1_000_000), ("kB", 1_000)];
