//! What is inside the program and inside the image, for machines: bills of materials in the format
//! of CycloneDX 1.5.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use anyhow::{Result, bail, ensure};
use serde_json::{Value, json};

use super::build::Build;
use super::debian::{self, Package};
use super::files::sha256;
use super::package_url::package_url;
use super::parts::{Part, Parts};
use super::{image, stage};
use crate::shell;

/// What a bill lists, or what it is of.
struct Component {
    /// A type of CycloneDX.
    kind: &'static str,
    name: String,
    version: String,
    /// The package URL (purl), by which other components refer to it.
    url: String,
    /// An SPDX expression, if it is known.
    license: Option<String>,
    /// Of the component's file, if it is one.
    sha256: Option<String>,
    /// The package URLs of the components that it uses itself.
    uses: BTreeSet<String>,
}

impl Component {
    fn json(&self) -> Value {
        let mut json = json!({
            "type": self.kind,
            "bom-ref": self.url,
            "name": self.name,
            "version": self.version,
            "purl": self.url,
        });
        if let Some(license) = &self.license {
            json["licenses"] = json!([{ "expression": license }]);
        }
        if let Some(sha256) = &self.sha256 {
            json["hashes"] = json!([{ "alg": "SHA-256", "content": sha256 }]);
        }
        json
    }
}

impl From<Part> for Component {
    fn from(part: Part) -> Self {
        Self {
            kind: "library",
            name: part.name,
            version: part.version,
            url: part.url,
            license: Some(part.license),
            sha256: None,
            uses: part.uses,
        }
    }
}

impl From<Package> for Component {
    /// Debian's packages have no licence as an SPDX expression.
    fn from(package: Package) -> Self {
        Self {
            kind: "library",
            name: package.name,
            version: package.version,
            url: package.url,
            license: None,
            sha256: None,
            uses: package.uses,
        }
    }
}

/// Makes `rdmascope-VERSION.cdx.json`: the program with its parts.
pub(super) fn of_program(build: &Build, out: &Path) -> Result<PathBuf> {
    let parts = Parts::of(&build.checkout)?;
    let program = program(build, parts.direct)?;
    let components = parts.all.into_iter().map(Component::from).collect();
    write(out.join(format!("rdmascope-{}.cdx.json", build.version)), &program, components)
}

/// Makes `rdmascope-VERSION-oci.cdx.json`: the image, with the same and with Debian's packages.
pub(super) fn of_image(build: &Build, out: &Path) -> Result<PathBuf> {
    let packages = debian::packages(&debian::owners(&image::files(build)?)?)?;
    let urls_of = |files: &BTreeSet<String>| -> Result<Vec<String>> {
        let packages = debian::packages(&debian::owners(files)?)?;
        Ok(packages.into_iter().map(|package| package.url).collect())
    };
    let parts = Parts::of(&build.checkout)?;
    let mut program = program(build, parts.direct)?;
    program.uses.extend(urls_of(&image::files_of_program(build)?)?);
    let mut uses = BTreeSet::from([program.url.clone()]);
    uses.extend(urls_of(&image::files_of_others()?)?);
    let architecture = shell::output(&["dpkg", "--print-architecture"])?;
    let url = package_url("oci", "rdmascope", &image::digest(&image::archive(build, out))?);
    let image = Component {
        kind: "container",
        name: "rdmascope".to_owned(),
        version: build.version.to_owned(),
        url: format!("{url}?arch={}&tag={}", architecture.trim(), build.version),
        license: None,
        sha256: None,
        uses,
    };
    let mut components: Vec<_> = parts.all.into_iter().map(Component::from).collect();
    components.extend(packages.into_iter().map(Component::from));
    components.push(program);
    write(out.join(format!("rdmascope-{}-oci.cdx.json", build.version)), &image, components)
}

/// The program, which uses these components itself.
fn program(build: &Build, uses: BTreeSet<String>) -> Result<Component> {
    Ok(Component {
        kind: "application",
        name: "rdmascope".to_owned(),
        version: build.version.to_owned(),
        url: package_url("generic", "rdmascope", build.version),
        license: Some("MIT OR Apache-2.0".to_owned()),
        sha256: Some(sha256(&std::fs::read(build.program())?)),
        uses,
    })
}

fn write(path: PathBuf, subject: &Component, components: Vec<Component>) -> Result<PathBuf> {
    let bill = bill(subject, components)?;
    stage::write(&path, (serde_json::to_string_pretty(&bill)? + "\n").as_bytes())?;
    Ok(path)
}

/// The bill of a subject, with its components and what each uses, sorted by package URL.
fn bill(subject: &Component, mut components: Vec<Component>) -> Result<Value> {
    components.sort_by(|one, other| one.url.cmp(&other.url));
    let uses: BTreeMap<_, _> =
        components.iter().chain([subject]).map(|component| (&component.url, &component.uses)).collect();
    for (url, used) in &uses {
        if let Some(missing) = used.iter().find(|used| !uses.contains_key(used)) {
            bail!("{url} uses {missing}, which the bill does not list");
        }
    }
    ensure!(uses.len() == components.len() + 1, "the bill of {} lists a component twice", subject.url);
    let dependencies: Vec<_> =
        uses.iter().map(|(url, uses)| json!({ "ref": url, "dependsOn": uses })).collect();
    Ok(json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": { "component": subject.json() },
        "components": components.iter().map(Component::json).collect::<Vec<_>>(),
        "dependencies": dependencies,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn component(name: &str, uses: &[&str]) -> Component {
        Component {
            kind: "library",
            name: name.to_owned(),
            version: "1.0.0".to_owned(),
            url: format!("pkg:cargo/{name}@1.0.0"),
            license: (name != "unknown").then(|| "MIT".to_owned()),
            sha256: None,
            uses: uses.iter().map(|name| format!("pkg:cargo/{name}@1.0.0")).collect(),
        }
    }

    #[test]
    fn each_component_is_listed_with_what_it_uses() {
        let components = vec![component("unknown", &["alone"]), component("alone", &[])];
        let bill = bill(&component("program", &["unknown", "alone"]), components).unwrap();
        let dependencies = json!([
            { "ref": "pkg:cargo/alone@1.0.0", "dependsOn": [] },
            { "ref": "pkg:cargo/program@1.0.0", "dependsOn": ["pkg:cargo/alone@1.0.0", "pkg:cargo/unknown@1.0.0"] },
            { "ref": "pkg:cargo/unknown@1.0.0", "dependsOn": ["pkg:cargo/alone@1.0.0"] },
        ]);
        assert_eq!(bill["dependencies"], dependencies);
        assert_eq!(bill["metadata"]["component"]["name"], "program");
        let [alone, unknown] = &bill["components"].as_array().unwrap()[..] else { panic!("{bill}") };
        assert_eq!(alone["bom-ref"], "pkg:cargo/alone@1.0.0");
        assert_eq!(alone["licenses"], json!([{ "expression": "MIT" }]));
        assert_eq!(unknown.get("licenses"), None);
    }

    #[test]
    fn a_bill_without_a_used_component_is_refused() {
        let refused = |components| bill(&component("program", &["b"]), components).unwrap_err().to_string();
        assert_eq!(
            refused(vec![component("a", &[])]),
            "pkg:cargo/program@1.0.0 uses pkg:cargo/b@1.0.0, which the bill does not list"
        );
        assert_eq!(
            refused(vec![component("b", &[]), component("b", &[])]),
            "the bill of pkg:cargo/program@1.0.0 lists a component twice"
        );
    }
}
