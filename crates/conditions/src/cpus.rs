//! Lists of CPUs as the kernel writes them: `0-3,8` (cpuset(7), list format).

use std::collections::BTreeSet;

/// Parses a list. Parts that cannot be parsed are left out.
pub(crate) fn parse(text: &str) -> Vec<u32> {
    let parts = text.split(',').filter_map(|part| {
        let (first, last) = part.trim().split_once('-').unwrap_or((part.trim(), part.trim()));
        let first = first.parse::<u32>().ok()?;
        let last = last.parse::<u32>().ok()?;
        (last < CPUS_MAX).then_some(first..=last)
    });
    let numbers: BTreeSet<u32> = parts.flatten().collect();
    numbers.into_iter().collect()
}

/// Formats a sorted list.
pub(crate) fn text(cpus: &[u32]) -> String {
    let mut ranges: Vec<(u32, u32)> = Vec::new();
    for cpu in cpus {
        match ranges.last_mut() {
            Some((_, last)) if last.checked_add(1) == Some(*cpu) => *last = *cpu,
            _ => ranges.push((*cpu, *cpu)),
        }
    }
    let range = |(first, last): &(u32, u32)| match first == last {
        true => first.to_string(),
        false => format!("{first}-{last}"),
    };
    ranges.iter().map(range).collect::<Vec<_>>().join(",")
}

/// Returns the elements of `all` that are not in `some`.
pub(crate) fn without(all: &[u32], some: &[u32]) -> Vec<u32> {
    all.iter().copied().filter(|cpu| !some.contains(cpu)).collect()
}

/// Above the kernel's limit (`NR_CPUS` is 8192 at most).
const CPUS_MAX: u32 = 65536;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_read_and_written_as_the_kernel_does() {
        for (list, cpus) in [("", &[][..]), ("0", &[0]), ("0-3,8", &[0, 1, 2, 3, 8]), ("1,3,5", &[1, 3, 5])] {
            assert_eq!(parse(list), cpus);
            assert_eq!(text(cpus), list);
        }
        assert_eq!(parse(" 2 , 1-1,x,9-,0-4000000000\n"), [1, 2]);
        assert_eq!(without(&[0, 1, 2], &[1, 7]), [0, 2]);
    }
}
