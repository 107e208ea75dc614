//! The parts of the program that other authors wrote, and which of them uses which.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde_json::Value;

use super::package_url::package_url;
use crate::shell;

/// All parts that are not of this project.
pub(super) struct Parts {
    /// Sorted by name.
    pub(super) all: Vec<Part>,
    /// The package URLs of those that this project's own code uses.
    pub(super) direct: BTreeSet<String>,
}

/// A crate that is compiled into the program, or a script that is embedded in it.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(super) struct Part {
    pub(super) name: String,
    pub(super) version: String,
    /// An SPDX expression.
    pub(super) license: String,
    /// The package URL (purl).
    pub(super) url: String,
    /// The directory that has its licence's text.
    pub(super) directory: PathBuf,
    /// The package URLs of the parts that it uses itself.
    pub(super) uses: BTreeSet<String>,
}

impl Parts {
    /// Finds the parts of a checkout's program.
    pub(super) fn of(checkout: &Path) -> Result<Self> {
        let manifest = checkout.join("Cargo.toml").to_string_lossy().into_owned();
        let host = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
        let cargo = |words: &str| {
            let words = words.split(' ').chain(["--locked", "--manifest-path", &manifest]);
            shell::output(&["cargo"].into_iter().chain(words).collect::<Vec<_>>())
        };
        let metadata = cargo(&format!("metadata --format-version 1 --filter-platform {host}"))?;
        // The graph of `cargo metadata` has optional crates, too, that no feature turns on.
        let tree = cargo(&format!(
            "tree --package rdmascope --edges normal --target {host} --prefix depth --color never"
        ))?;
        let mut parts = Self::compiled(&serde_json::from_str(&metadata)?, &tree)?;
        let charts = plotly(checkout)?;
        parts.direct.insert(charts.url.clone());
        parts.all.push(charts);
        parts.all.sort();
        Ok(parts)
    }

    /// The crates that `cargo tree --prefix depth` prints, as `cargo metadata` describes them.
    /// Those of this project are no parts: they are the program.
    fn compiled(metadata: &Value, tree: &str) -> Result<Self> {
        let text = |package: &Value, key: &str| package[key].as_str().unwrap_or_default().to_owned();
        let url = |package: &Value| package_url("cargo", &text(package, "name"), &text(package, "version"));
        let packages = metadata["packages"].as_array().context("cargo metadata lists no packages")?;
        let packages: BTreeMap<_, _> = packages.iter().map(|package| (url(package), package)).collect();
        let is_part = |url: &String| packages.get(url).is_some_and(|package| !package["source"].is_null());
        let mut parts = Self { all: Vec::new(), direct: BTreeSet::new() };
        for (url, mut uses) in uses(tree)? {
            uses.retain(is_part);
            let package = packages.get(&url);
            let package =
                package.with_context(|| format!("cargo metadata does not list {url} of cargo tree"))?;
            if !is_part(&url) {
                parts.direct.append(&mut uses);
                continue;
            }
            parts.all.push(Part {
                name: text(package, "name"),
                version: text(package, "version"),
                // An older form of manifests has a slash for `OR`.
                license: text(package, "license").replace('/', " OR "),
                directory: PathBuf::from(text(package, "manifest_path"))
                    .parent()
                    .map(PathBuf::from)
                    .unwrap_or_default(),
                url,
                uses,
            });
        }
        Ok(parts)
    }
}

/// What each crate in the output of `cargo tree --prefix depth` uses itself, by package URLs. A
/// line is `DEPTHNAME vVERSION ...`; what a crate uses follows where the crate stands first.
fn uses(tree: &str) -> Result<BTreeMap<String, BTreeSet<String>>> {
    let mut uses = BTreeMap::<_, BTreeSet<_>>::new();
    // From the root to the line before.
    let mut path: Vec<String> = Vec::new();
    for line in tree.lines() {
        let crate_of = || {
            let (depth, rest) = line.split_at(line.find(|letter: char| !letter.is_ascii_digit())?);
            let (name, rest) = rest.split_once(" v")?;
            Some((depth.parse().ok()?, package_url("cargo", name, rest.split(' ').next()?)))
        };
        let (depth, url): (usize, _) =
            crate_of().with_context(|| format!("cargo tree prints {line:?}, which names no crate"))?;
        path.truncate(depth);
        if let Some(user) = path.last() {
            uses.entry(user.clone()).or_default().insert(url.clone());
        }
        uses.entry(url.clone()).or_default();
        path.push(url);
    }
    Ok(uses)
}

/// The charts' library, from the table of vendored files. It is one file, which uses no other.
fn plotly(checkout: &Path) -> Result<Part> {
    let directory = checkout.join("crates/report/assets");
    let provenance = fs::read_to_string(directory.join("PROVENANCE.md"))?;
    let row = provenance.lines().find(|line| line.starts_with("| `plotly-cartesian"));
    let version =
        row.and_then(|row| row.split('|').nth(3)).context("PROVENANCE.md has no row of plotly")?.trim();
    let name = "plotly.js-cartesian-dist-min";
    Ok(Part {
        name: name.to_owned(),
        version: version.to_owned(),
        license: "MIT".to_owned(),
        url: package_url("npm", name, version),
        directory,
        uses: BTreeSet::new(),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// The program, whose own crate `report` uses others, and `syn` in two versions.
    const TREE: &str = "\
0rdmascope v0.2.0 (/checkout/crates/rdmascope)
1anyhow v1.0.104
1report v0.2.0 (/checkout/crates/report)
2anyhow v1.0.104
2maud v0.27.0+a
3maud_macros v0.27.0 (proc-macro)
4syn v2.0.1
5unicode-ident v1.0.27
3syn v3.0.9
4unicode-ident v1.0.27
1syn v3.0.9 (*)
";

    fn metadata() -> Value {
        let own = ["rdmascope 0.2.0", "report 0.2.0", "xtask 0.2.0"];
        let others = [
            "anyhow 1.0.104",
            "maud 0.27.0+a",
            "maud_macros 0.27.0",
            "syn 2.0.1",
            "syn 3.0.9",
            "unicode-ident 1.0.27",
            "zlib-rs 0.6.8",
        ];
        let package = |words: &str, source: Value| {
            let (name, version) = words.split_once(' ').unwrap();
            let manifest_path = format!("/registry/{name}/Cargo.toml");
            json!({
                "name": name,
                "version": version,
                "source": source,
                "license": "MIT/Apache-2.0",
                "manifest_path": manifest_path,
            })
        };
        let own = own.iter().map(|words| package(words, Value::Null));
        let others = others.iter().map(|words| package(words, json!("registry")));
        json!({ "packages": own.chain(others).collect::<Vec<_>>() })
    }

    #[test]
    fn parts_have_what_they_use_themselves() {
        let parts = Parts::compiled(&metadata(), TREE).unwrap();
        let line = |part: &Part| {
            let uses: Vec<_> = part.uses.iter().map(|url| url.trim_start_matches("pkg:cargo/")).collect();
            format!("{}: {}", part.url.trim_start_matches("pkg:cargo/"), uses.join(", "))
        };
        assert_eq!(
            parts.all.iter().map(line).collect::<Vec<_>>(),
            [
                "anyhow@1.0.104: ",
                "maud@0.27.0%2Ba: maud_macros@0.27.0, syn@3.0.9",
                "maud_macros@0.27.0: syn@2.0.1",
                "syn@2.0.1: unicode-ident@1.0.27",
                "syn@3.0.9: unicode-ident@1.0.27",
                "unicode-ident@1.0.27: ",
            ]
        );
        // Also what `report` uses, but neither a crate that no line names nor this project's own.
        let direct = ["pkg:cargo/anyhow@1.0.104", "pkg:cargo/maud@0.27.0%2Ba", "pkg:cargo/syn@3.0.9"];
        assert_eq!(Vec::from_iter(&parts.direct), Vec::from_iter(&direct));
        assert_eq!(parts.all[0].license, "MIT OR Apache-2.0");
        assert_eq!(parts.all[0].directory, Path::new("/registry/anyhow/"));
    }

    #[test]
    fn a_crate_without_metadata_is_refused() {
        let refused = |tree| Parts::compiled(&metadata(), tree).map(drop).unwrap_err().to_string();
        assert_eq!(
            refused("0rdmascope v0.2.0\n1itoa v1.0.18"),
            "cargo metadata does not list pkg:cargo/itoa@1.0.18 of cargo tree"
        );
        assert_eq!(
            refused("0rdmascope v0.2.0\n[build-dependencies]"),
            "cargo tree prints \"[build-dependencies]\", which names no crate"
        );
    }
}
