//! The OCI image: a layer of files and three JSON texts, which need no daemon to be written.
//!
//! Source: OCI Image Format Specification 1.1, chapters "Image Layout", "Image Manifest" and
//! "Image Configuration".

use std::collections::BTreeSet;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde_json::{Value, json};

use super::build::Build;
use super::files::sha256;
use super::{stage, tarball};
use crate::shell;

/// Debian packages whose programs and libraries are in the image, each with one of its files.
pub(super) const PACKAGES: [(&str, &str); 2] =
    [("ibverbs-utils", "/usr/bin/ibv_devinfo"), ("librdmacm1", "/usr/share/doc/librdmacm1/copyright")];
/// Programs of other packages in the image, so that there is something for `exec`.
const PROGRAMS: [&str; 1] = ["/usr/bin/ibv_devinfo"];
/// Libraries that the program opens by name.
const LIBRARIES: [&str; 2] = ["libibverbs.so.1", "librdmacm.so.1"];

/// Makes `rdmascope-VERSION-oci.tar`, an image layout for `skopeo copy oci-archive:` and
/// `podman load`.
pub(super) fn make(build: &Build, out: &Path) -> Result<PathBuf> {
    let scratch = build.scratch("image")?;
    let root = scratch.join("root");
    fill(build, &root)?;
    let layer = scratch.join("layer.tar");
    tarball::archive(&root, ".", &build.epoch, &layer)?;
    let layer_bytes = fs::read(&layer)?;
    let compressed = scratch.join("layer.tar.gz");
    tarball::gzip(&layer, &compressed)?;
    let layout = scratch.join("layout");
    let blob = |bytes: &[u8], kind: &str| -> Result<Value> {
        let digest = sha256(bytes);
        stage::write(&layout.join("blobs/sha256").join(&digest), bytes)?;
        Ok(json!({
            "mediaType": format!("application/vnd.oci.image.{kind}"),
            "digest": format!("sha256:{digest}"),
            "size": bytes.len(),
        }))
    };
    let compressed = blob(&fs::read(compressed)?, "layer.v1.tar+gzip")?;
    let created =
        shell::output(&["date", "--utc", "+%Y-%m-%dT%H:%M:%SZ", &format!("--date=@{}", build.epoch)])?;
    let architecture = shell::output(&["dpkg", "--print-architecture"])?;
    let config = json!({
        "created": created.trim(),
        "architecture": architecture.trim(),
        "os": "linux",
        "config": {
            "Entrypoint": ["/usr/bin/rdmascope"],
            "Env": ["PATH=/usr/bin:/bin", "HOME=/root"],
            "WorkingDir": "/data",
            "Labels": {
                "org.opencontainers.image.title": "rdmascope",
                "org.opencontainers.image.version": build.version,
                "org.opencontainers.image.licenses": "MIT OR Apache-2.0",
            },
        },
        "rootfs": { "type": "layers", "diff_ids": [format!("sha256:{}", sha256(&layer_bytes))] },
        "history": [{ "created": created.trim(), "created_by": "cargo xtask dist" }],
    });
    let config = blob(&serde_json::to_vec(&config)?, "config.v1+json")?;
    let manifest = json!({
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.manifest.v1+json",
        "config": config,
        "layers": [compressed],
    });
    let mut manifest = blob(&serde_json::to_vec(&manifest)?, "manifest.v1+json")?;
    manifest["annotations"] = json!({ "org.opencontainers.image.ref.name": build.version });
    let index = json!({
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.index.v1+json",
        "manifests": [manifest],
    });
    stage::write(&layout.join("index.json"), &serde_json::to_vec(&index)?)?;
    stage::write(&layout.join("oci-layout"), br#"{"imageLayoutVersion":"1.0.0"}"#)?;
    let path = out.join(format!("rdmascope-{}-oci.tar", build.version));
    tarball::archive(&layout, ".", &build.epoch, &path)?;
    Ok(path)
}

/// The files of the layer: the program, what it needs of this system, and its notices.
fn fill(build: &Build, root: &Path) -> Result<()> {
    stage::stage(build, &root.join("usr"), false)?;
    let mut files = BTreeSet::new();
    for library in LIBRARIES {
        files.insert(path_of_library(library)?);
    }
    files.extend(PROGRAMS.map(str::to_owned));
    let mut needed = BTreeSet::new();
    for file in files.iter().chain([&build.program().to_string_lossy().into_owned()]) {
        let listed = shell::output(&["ldd", file])?;
        // NAME => PATH (ADDRESS), or PATH (ADDRESS) of the dynamic linker.
        needed.extend(listed.split_whitespace().filter(|word| word.starts_with('/')).map(str::to_owned));
    }
    files.extend(needed);
    let mut packages = BTreeSet::new();
    for file in &files {
        stage::place(Path::new(file), &root.join(file.trim_start_matches('/')), 0o755)?;
        packages.insert(package_of(file)?);
    }
    for package in packages {
        let notice = format!("usr/share/doc/{package}/copyright");
        stage::place(&Path::new("/").join(&notice), &root.join(&notice), 0o644)?;
    }
    stage::write(&root.join("etc/passwd"), b"root:x:0:0:root:/root:/usr/bin/rdmascope\n")?;
    stage::write(&root.join("etc/group"), b"root:x:0:\n")?;
    for (directory, mode) in [("tmp", 0o1777), ("data", 0o1777), ("root", 0o700)] {
        fs::create_dir_all(root.join(directory))?;
        fs::set_permissions(root.join(directory), Permissions::from_mode(mode))?;
    }
    Ok(())
}

/// Where the dynamic linker finds a library.
fn path_of_library(name: &str) -> Result<String> {
    let listed = shell::output(&["/sbin/ldconfig", "-p"])?;
    let mut lines = listed.lines().filter(|line| line.trim_start().starts_with(name));
    let path = lines.next().and_then(|line| Some(line.rsplit_once(" => ")?.1.to_owned()));
    path.with_context(|| format!("{name} is not installed"))
}

/// The Debian package of a file, which is known by its path before or after the merge of /usr.
fn package_of(file: &str) -> Result<String> {
    for path in [file.to_owned(), format!("/usr{file}"), file.replacen("/usr", "", 1)] {
        if shell::works(&["dpkg", "-S", &path]) {
            let found = shell::output(&["dpkg", "-S", &path])?;
            return Ok(found.split([':', ',']).next().unwrap_or_default().to_owned());
        }
    }
    anyhow::bail!("{file} is of no Debian package, so its licence is not known")
}
