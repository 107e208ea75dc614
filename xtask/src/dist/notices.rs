//! The parts of the program that other authors wrote, and the texts that must travel with them.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde_json::Value;

use crate::shell;

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
}

/// All parts that are not of this project, sorted by name.
pub(super) fn parts(checkout: &Path) -> Result<Vec<Part>> {
    let manifest = checkout.join("Cargo.toml");
    let host = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
    let manifest = manifest.to_string_lossy();
    let words = [
        "cargo",
        "metadata",
        "--format-version",
        "1",
        "--locked",
        "--filter-platform",
        &host,
        "--manifest-path",
        &manifest,
    ];
    let metadata: Value = serde_json::from_str(&shell::output(&words)?)?;
    let mut parts: Vec<_> = compiled(&metadata)?;
    let version = plotly_version(checkout)?;
    parts.push(Part {
        name: "plotly.js-cartesian-dist-min".to_owned(),
        license: "MIT".to_owned(),
        url: format!("pkg:npm/plotly.js-cartesian-dist-min@{version}"),
        version,
        directory: checkout.join("crates/report/assets"),
    });
    parts.sort();
    Ok(parts)
}

/// The crates that the program is linked from, by the arrows of normal dependencies.
fn compiled(metadata: &Value) -> Result<Vec<Part>> {
    let text = |value: &Value, key: &str| value[key].as_str().unwrap_or_default().to_owned();
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let packages: BTreeMap<_, _> =
        list(&metadata["packages"]).into_iter().map(|p| (text(&p, "id"), p)).collect();
    let nodes: BTreeMap<_, _> =
        list(&metadata["resolve"]["nodes"]).into_iter().map(|node| (text(&node, "id"), node)).collect();
    let program = packages.values().find(|package| package["name"] == "rdmascope");
    let mut next = vec![text(program.context("cargo metadata lists no package rdmascope")?, "id")];
    let mut seen = BTreeSet::new();
    while let Some(id) = next.pop() {
        let Some(node) = nodes.get(&id).filter(|_| seen.insert(id.clone())) else { continue };
        for dependency in list(&node["deps"]) {
            if list(&dependency["dep_kinds"]).iter().any(|kind| kind["kind"].is_null()) {
                next.push(text(&dependency, "pkg"));
            }
        }
    }
    let of_others =
        seen.iter().filter_map(|id| packages.get(id)).filter(|package| !package["source"].is_null());
    let part = |package: &Value| {
        let name = text(package, "name");
        let version = text(package, "version");
        let manifest = PathBuf::from(text(package, "manifest_path"));
        Part {
            url: format!("pkg:cargo/{name}@{version}"),
            // An older form of manifests has a slash for `OR`.
            license: text(package, "license").replace('/', " OR "),
            directory: manifest.parent().map(PathBuf::from).unwrap_or_default(),
            name,
            version,
        }
    };
    Ok(of_others.map(part).collect())
}

/// The version of the charts' library, from the table of vendored files.
fn plotly_version(checkout: &Path) -> Result<String> {
    let provenance = fs::read_to_string(checkout.join("crates/report/assets/PROVENANCE.md"))?;
    let row = provenance.lines().find(|line| line.starts_with("| `plotly-cartesian"));
    let version = row.and_then(|row| row.split('|').nth(3));
    Ok(version.context("PROVENANCE.md has no row of plotly")?.trim().to_owned())
}

/// The file `copyright` of packages: the project's licence, each part with its own, and the texts
/// of the licences, each once. A Debian package names the terms of Apache-2.0 only by their file.
pub(super) fn copyright(checkout: &Path, is_debian: bool) -> Result<String> {
    let mut texts: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut out = String::from(
        "Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/\n\
         Upstream-Name: rdmascope\n\
         \n\
         Files: *\n\
         Copyright: the rdmascope developers\n\
         License: MIT or Apache-2.0\n \
         The texts are below.\n\
         \n\
         Comment: The program contains these parts of other authors. Each is under the licence\n \
         beside its name; where there is a choice, the program takes MIT or Apache-2.0. The texts,\n \
         with the notices of their authors, follow.\n",
    );
    for part in parts(checkout)? {
        out += &format!(" .\n {} {}: {}\n", part.name, part.version, part.license);
        for text in licence_texts(&part.directory)? {
            texts.entry(text).or_default().push(format!("{} {}", part.name, part.version));
        }
    }
    for text in licence_texts(checkout)? {
        texts.entry(text).or_default().insert(0, "rdmascope".to_owned());
    }
    for (text, of) in texts {
        let text = if is_debian { without_apache(&text) } else { text };
        out += &format!("\n{}\n{}\n\n{}\n", "-".repeat(80), of.join(", "), text.trim_end());
    }
    Ok(out)
}

/// Replaces the terms of Apache-2.0 by the name of their file in Debian. What stands before and
/// after them, such as a notice of copyright, stays.
fn without_apache(text: &str) -> String {
    const FIRST: &str = "TERMS AND CONDITIONS FOR USE, REPRODUCTION, AND DISTRIBUTION";
    const LAST: &str = "END OF TERMS AND CONDITIONS";
    let Some((head, terms)) = text.split_once(FIRST) else { return text.to_owned() };
    let Some((_, rest)) = terms.split_once(LAST) else { return text.to_owned() };
    let head = head.rsplit_once("Apache License").map_or(head, |(before, _)| before).trim_end();
    format!("{head}\nApache License, Version 2.0: /usr/share/common-licenses/Apache-2.0\n{rest}")
}

/// The texts of licences and notices in the directory of a part or of this project.
fn licence_texts(directory: &Path) -> Result<Vec<String>> {
    let mut texts = Vec::new();
    let mut entries: Vec<_> = fs::read_dir(directory)?.collect::<std::io::Result<_>>()?;
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let name = entry.file_name().to_string_lossy().to_ascii_uppercase();
        let is_licence = ["LICENSE", "LICENCE", "COPYING", "NOTICE", "UNLICENSE"];
        let is_licence = is_licence.iter().any(|start| name.starts_with(start)) || name.ends_with(".LICENSE");
        if is_licence && entry.file_type()?.is_file() {
            let text = fs::read(entry.path())?;
            texts.push(String::from_utf8_lossy(&text).replace("\r\n", "\n"));
        }
    }
    Ok(texts)
}
