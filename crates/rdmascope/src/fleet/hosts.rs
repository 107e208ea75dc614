//! Lists of hosts: `node[001-064],gpu[1,3-5]`, as schedulers write them, and files with one host a
//! line.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use anyhow::Context;

use crate::failure::Usage;

/// A host of a fleet.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(super) struct Host {
    pub(super) name: String,
    /// What it has in common with other hosts, such as a leaf switch.
    pub(super) group: Option<String>,
    /// Devices that are members of their own; empty for the one that the host chooses.
    pub(super) devices: Vec<String>,
}

/// The most hosts of a list: a typing error such as `node[1-1000000000]` ends here.
const HOSTS_MAX: usize = 100_000;

/// Reads a list of hosts in the schedulers' form.
pub(super) fn list(text: &str) -> Result<Vec<Host>, String> {
    let names = names(text)?;
    distinct(names.into_iter().map(|name| Host { name, ..Host::default() }).collect())
}

/// Reads a file of hosts.
pub(super) fn file(path: &Path) -> anyhow::Result<Vec<Host>> {
    let shown = path.display();
    let text = std::fs::read_to_string(path).with_context(|| format!("cannot read the hosts in {shown}"))?;
    let hosts = lines(&text).map_err(|(line, why)| Usage(format!("{shown}, line {line}: {why}")))?;
    if hosts.is_empty() {
        return Err(Usage(format!("{shown} names no host: write a host on each line")).into());
    }
    Ok(hosts)
}

/// Reads the lines of a file of hosts: `name group=leaf3 devices=mlx5_0,mlx5_1`, with comments
/// after `#`. Returns the line of an error with it.
fn lines(text: &str) -> Result<Vec<Host>, (usize, String)> {
    let mut all = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        let line = line.split('#').next().unwrap_or_default();
        let mut words = line.split_whitespace();
        let Some(first) = words.next() else { continue };
        let bad = |why: String| (number, why);
        let mut given: BTreeMap<&str, &str> = BTreeMap::new();
        for word in words {
            let (key, value) = word
                .split_once('=')
                .filter(|(key, value)| ["group", "devices"].contains(key) && !value.is_empty())
                .ok_or_else(|| bad(format!("{word:?} is not group=NAME or devices=NAME,NAME")))?;
            if given.insert(key, value).is_some() {
                return Err(bad(format!("{key} is given twice")));
            }
        }
        let devices: Option<Vec<String>> =
            given.get("devices").map(|all| all.split(',').map(str::to_owned).collect());
        let mut known = BTreeSet::new();
        if let Some(bad_one) = devices.iter().flatten().find(|name| name.is_empty() || !known.insert(*name)) {
            let why = if bad_one.is_empty() { "an empty name" } else { "a name twice" };
            return Err(bad(format!("devices= has {why}")));
        }
        let host = Host {
            name: String::new(),
            group: given.get("group").map(|&group| group.to_owned()),
            devices: devices.unwrap_or_default(),
        };
        let names = names(first).map_err(bad)?;
        all.extend(names.into_iter().map(|name| (number, Host { name, ..host.clone() })));
    }
    let mut known = BTreeSet::new();
    for (number, host) in &all {
        if !known.insert(host.name.clone()) {
            return Err((*number, format!("the host {} is named twice", host.name)));
        }
    }
    Ok(all.into_iter().map(|(_, host)| host).collect())
}

fn distinct(hosts: Vec<Host>) -> Result<Vec<Host>, String> {
    let mut known = BTreeSet::new();
    match hosts.iter().find(|host| !known.insert(&host.name)) {
        Some(twice) => Err(format!("the host {} is named twice", twice.name)),
        None => Ok(hosts),
    }
}

/// Returns the names of a list.
fn names(text: &str) -> Result<Vec<String>, String> {
    let mut all = Vec::new();
    for part in parts(text)? {
        all.extend(expanded(part)?);
        if all.len() > HOSTS_MAX {
            return Err(format!("{text:?} names more than {HOSTS_MAX} hosts"));
        }
    }
    Ok(all)
}

/// Splits a list at the commas outside of brackets.
fn parts(text: &str) -> Result<Vec<&str>, String> {
    let mut parts = Vec::new();
    let mut is_open = false;
    let mut from = 0;
    for (at, c) in text.char_indices() {
        match c {
            '[' if is_open => return Err(format!("{text:?} has a [ inside of brackets")),
            '[' => is_open = true,
            ']' if !is_open => return Err(format!("{text:?} has a ] without its [")),
            ']' => is_open = false,
            ',' if !is_open => {
                parts.push(&text[from..at]);
                from = at + 1;
            }
            _ => {}
        }
    }
    if is_open {
        return Err(format!("{text:?} has a [ without its ]"));
    }
    parts.push(&text[from..]);
    let parts: Vec<&str> = parts.into_iter().map(str::trim).collect();
    if parts.contains(&"") {
        return Err(format!("{text:?} has an empty name"));
    }
    match parts.iter().find(|part| part.contains(char::is_whitespace)) {
        Some(part) => Err(format!("{part:?} has a space: put commas between names")),
        None => Ok(parts),
    }
}

/// Returns the names of one part, with all of its brackets expanded: the last one varies fastest.
fn expanded(part: &str) -> Result<Vec<String>, String> {
    let Some((before, rest)) = part.split_once('[') else {
        return Ok(vec![part.to_owned()]);
    };
    let (inside, after) = rest.split_once(']').unwrap_or((rest, ""));
    let behind = expanded(after)?;
    let mut all = Vec::new();
    for range in inside.split(',') {
        for number in numbers(range.trim(), part)? {
            if all.len() + behind.len() > HOSTS_MAX {
                return Err(format!("{part:?} names more than {HOSTS_MAX} hosts"));
            }
            all.extend(behind.iter().map(|behind| format!("{before}{number}{behind}")));
        }
    }
    Ok(all)
}

/// Returns the numbers of a range such as `001-064`, with as many digits as its first one.
fn numbers(range: &str, part: &str) -> Result<Vec<String>, String> {
    let bad = || format!("{range:?} in {part:?} is not a number or a range such as 001-064");
    let number = |text: &str| -> Result<u64, String> {
        let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        text.parse().ok().filter(|_| is_number).ok_or_else(bad)
    };
    let (first, last) = range.split_once('-').unwrap_or((range, range));
    let digits = first.len();
    let from = number(first)?;
    let to = number(last)?;
    if to < from {
        return Err(format!("the range {range:?} in {part:?} ends before it begins"));
    }
    if to - from >= HOSTS_MAX as u64 {
        return Err(format!("{part:?} names more than {HOSTS_MAX} hosts"));
    }
    Ok((from..=to).map(|number| format!("{number:0digits$}")).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names_of(text: &str) -> Vec<String> {
        list(text).unwrap().into_iter().map(|host| host.name).collect()
    }

    #[test]
    fn lists_are_read_as_schedulers_write_them() {
        assert_eq!(names_of("a, b"), ["a", "b"]);
        assert_eq!(
            names_of("node[009-011],gpu[1,3-4]"),
            ["node009", "node010", "node011", "gpu1", "gpu3", "gpu4"]
        );
        assert_eq!(
            names_of("r[1-2]n[1,3].example"),
            ["r1n1.example", "r1n3.example", "r2n1.example", "r2n3.example"]
        );
        assert_eq!(names_of("n[8-11]"), ["n8", "n9", "n10", "n11"]);
        assert_eq!(names_of("node[001-064]").len(), 64);
    }

    #[test]
    fn a_wrong_list_says_where_it_is_wrong() {
        let error = |text: &str| list(text).unwrap_err();
        assert_eq!(error("a,,b"), "\"a,,b\" has an empty name");
        assert_eq!(error(""), "\"\" has an empty name");
        assert_eq!(error("a b,c"), "\"a b\" has a space: put commas between names");
        assert_eq!(error("n[1-2"), "\"n[1-2\" has a [ without its ]");
        assert_eq!(error("n]"), "\"n]\" has a ] without its [");
        assert_eq!(error("n[[1]]"), "\"n[[1]]\" has a [ inside of brackets");
        assert_eq!(error("n[3-1]"), "the range \"3-1\" in \"n[3-1]\" ends before it begins");
        assert_eq!(error("n[a]"), "\"a\" in \"n[a]\" is not a number or a range such as 001-064");
        assert_eq!(error("n[]"), "\"\" in \"n[]\" is not a number or a range such as 001-064");
        assert_eq!(error("n[1-999999999]"), "\"n[1-999999999]\" names more than 100000 hosts");
        assert_eq!(error("n[1-999][1-999]"), "\"n[1-999][1-999]\" names more than 100000 hosts");
        assert_eq!(error("n[1-2],n2"), "the host n2 is named twice");
    }

    #[test]
    fn a_file_has_groups_and_devices() {
        let text = "# the first rack\nn[1-2] group=leaf1 devices=mlx5_0,mlx5_1 # two rails\n\nn3\n";
        let hosts = lines(text).unwrap();
        let names: Vec<_> = hosts.iter().map(|host| host.name.as_str()).collect();
        assert_eq!(names, ["n1", "n2", "n3"]);
        assert_eq!(hosts[1].group.as_deref(), Some("leaf1"));
        assert_eq!(hosts[0].devices, ["mlx5_0", "mlx5_1"]);
        for (text, why) in [("n1 devices=a,,b", "an empty name"), ("\nn1 devices=a,a", "a name twice")] {
            let line = text.lines().count();
            assert_eq!(lines(text), Err((line, format!("devices= has {why}"))));
        }
        assert_eq!(hosts[2], Host { name: "n3".to_owned(), ..Host::default() });
        let wrong = |text: &str| lines(text).unwrap_err();
        assert_eq!(wrong("a\nb leaf1"), (2, "\"leaf1\" is not group=NAME or devices=NAME,NAME".to_owned()));
        assert_eq!(wrong("a group=x group=y"), (1, "group is given twice".to_owned()));
        assert_eq!(wrong("a\n\na"), (3, "the host a is named twice".to_owned()));
    }
}
