//! The Debian packages of files on this system.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use anyhow::{Context, Result, bail};

use super::package_url::{encoded, package_url};
use crate::shell;

/// What a line of [`packages`] has, in the words of dpkg-query(1).
const FORMAT: &str = "${Package}\t${Version}\t${Architecture}\t${Pre-Depends}, ${Depends}\n";

/// A package that is installed.
#[derive(Debug, Eq, PartialEq)]
pub(super) struct Package {
    pub(super) name: String,
    pub(super) version: String,
    /// The package URL (purl).
    pub(super) url: String,
    /// The package URLs of the packages that it depends on, of those that were asked for.
    pub(super) uses: BTreeSet<String>,
}

/// The packages that files are of, as dpkg(1) names them: `libc6:amd64`, `ibverbs-utils`.
pub(super) fn owners(files: &BTreeSet<String>) -> Result<BTreeSet<String>> {
    files.iter().map(|file| owner(file)).collect()
}

/// The package of a file, which is known by its path before or after the merge of /usr.
fn owner(file: &str) -> Result<String> {
    for path in [file.to_owned(), format!("/usr{file}"), file.replacen("/usr", "", 1)] {
        if shell::works(&["dpkg", "-S", &path]) {
            let found = shell::output(&["dpkg", "-S", &path])?;
            // NAME: PATH, NAME:ARCHITECTURE: PATH, or several with a comma between them.
            let name = found.split([' ', ',']).next().unwrap_or_default();
            return Ok(name.trim_end_matches(':').to_owned());
        }
    }
    bail!("{file} is of no Debian package, so its licence is not known")
}

/// What dpkg knows of packages, sorted by name.
pub(super) fn packages(names: &BTreeSet<String>) -> Result<Vec<Package>> {
    let release = fs::read_to_string("/etc/os-release")?;
    let vendor = release.lines().find_map(|line| line.strip_prefix("ID="));
    let vendor = vendor.context("/etc/os-release gives no ID")?.trim_matches('"');
    let words = ["dpkg-query", "--show", "--showformat", FORMAT];
    let words: Vec<_> = words.into_iter().chain(names.iter().map(String::as_str)).collect();
    parsed(&shell::output(&words)?, vendor)
}

/// Reads lines of [`FORMAT`].
fn parsed(lines: &str, vendor: &str) -> Result<Vec<Package>> {
    let mut urls = BTreeMap::new();
    let mut needs = Vec::new();
    for line in lines.lines() {
        let columns: Vec<_> = line.split('\t').collect();
        let [name, version, architecture, depends] = columns[..] else {
            bail!("dpkg-query prints {line:?}, which has not four columns")
        };
        let url = package_url(&format!("deb/{vendor}"), name, version);
        urls.insert(name, format!("{url}?arch={}", encoded(architecture)));
        needs.push((name, version, depends));
    }
    let mut packages = Vec::new();
    for (name, version, depends) in needs {
        // NAME, NAME:any (>= VERSION), or alternatives: NAME | NAME.
        let depends = depends.split([',', '|']).filter_map(|one| one.trim().split([' ', ':', '(']).next());
        packages.push(Package {
            name: name.to_owned(),
            version: version.to_owned(),
            url: urls[name].clone(),
            uses: depends.filter_map(|name| urls.get(name)).cloned().collect(),
        });
    }
    Ok(packages)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packages_depend_on_packages_of_the_same_list() {
        let lines = "\
libc6\t2.36-9+deb12u14\tamd64\t, libgcc-s1
libgcc-s1\t12.2.0-14+deb12u1\tamd64\t, gcc-12-base (= 12.2.0-14+deb12u1), libc6 (>= 2.35)
libibverbs1\t1:44.0~rc1-2\tamd64\tlibc6:any (>= 2.34) | libc6.1, adduser|libgcc-s1
";
        let packages = parsed(lines, "debian").unwrap();
        let libc = "pkg:deb/debian/libc6@2.36-9%2Bdeb12u14?arch=amd64";
        let libgcc = "pkg:deb/debian/libgcc-s1@12.2.0-14%2Bdeb12u1?arch=amd64";
        let libibverbs = "pkg:deb/debian/libibverbs1@1:44.0~rc1-2?arch=amd64";
        let found: Vec<_> = packages.iter().map(|package| package.url.as_str()).collect();
        assert_eq!(found, [libc, libgcc, libibverbs]);
        let uses = |index: usize| packages[index].uses.iter().map(String::as_str).collect::<Vec<_>>();
        assert_eq!([uses(0), uses(1), uses(2)], [vec![libgcc], vec![libc], vec![libc, libgcc]]);
        assert_eq!(packages[2].name, "libibverbs1");
        assert_eq!(packages[2].version, "1:44.0~rc1-2");
    }

    #[test]
    fn a_line_with_other_columns_is_refused() {
        let error = parsed("libc6\t2.36", "debian").unwrap_err().to_string();
        assert_eq!(error, "dpkg-query prints \"libc6\\t2.36\", which has not four columns");
    }
}
