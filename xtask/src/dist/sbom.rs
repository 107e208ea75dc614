//! What is inside the program, for machines: a bill of materials in the format of CycloneDX 1.5.

use std::path::{Path, PathBuf};

use anyhow::Result;
use serde_json::{Value, json};

use super::build::Build;
use super::files::sha256;
use super::{notices, stage};

/// Makes `rdmascope-VERSION.cdx.json`.
pub(super) fn make(build: &Build, out: &Path) -> Result<PathBuf> {
    let parts = notices::parts(&build.checkout)?;
    let components: Vec<Value> = parts
        .iter()
        .map(|part| {
            json!({
                "type": "library",
                "bom-ref": part.url,
                "name": part.name,
                "version": part.version,
                "licenses": [{ "expression": part.license }],
                "purl": part.url,
            })
        })
        .collect();
    let own = format!("pkg:generic/rdmascope@{}", build.version);
    let bom = json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {
            "component": {
                "type": "application",
                "bom-ref": own,
                "name": "rdmascope",
                "version": build.version,
                "licenses": [{ "expression": "MIT OR Apache-2.0" }],
                "purl": own,
                "hashes": [{ "alg": "SHA-256", "content": sha256(&std::fs::read(build.program())?) }],
            },
        },
        "components": components,
        "dependencies": [{ "ref": own, "dependsOn": parts.iter().map(|part| &part.url).collect::<Vec<_>>() }],
    });
    let path = out.join(format!("rdmascope-{}.cdx.json", build.version));
    stage::write(&path, (serde_json::to_string_pretty(&bom)? + "\n").as_bytes())?;
    Ok(path)
}
