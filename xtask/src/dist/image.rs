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
use super::{debian, stage, tarball};
use crate::shell;

/// Debian packages whose programs and libraries are in the image, each with one of its files.
pub(super) const PACKAGES: [(&str, &str); 3] = [
    ("ibverbs-utils", "/usr/bin/ibv_devinfo"),
    ("librdmacm1", "/usr/share/doc/librdmacm1/copyright"),
    (PROVIDERS, "/etc/libibverbs.d/mlx5.driver"),
];
/// The package with the drivers of adapters in user space, which libibverbs opens.
const PROVIDERS: &str = "ibverbs-providers";
/// The directory of these drivers, below that of the system's libraries.
pub(super) const DRIVERS: &str = "libibverbs";
/// Programs of other packages in the image: one for `exec`, and one for a pod that only waits.
const PROGRAMS: [&str; 2] = ["/usr/bin/ibv_devinfo", "/usr/bin/sleep"];
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
    let path = archive(build, out);
    tarball::archive(&layout, ".", &build.epoch, &path)?;
    Ok(path)
}

/// The files of the layer: the program, what it needs of this system, and its notices.
fn fill(build: &Build, root: &Path) -> Result<()> {
    stage::stage(build, &root.join("usr"), false)?;
    let files = files(build)?;
    for file in &files {
        stage::place(Path::new(file), &root.join(file.trim_start_matches('/')), 0o755)?;
    }
    for package in debian::owners(&files)? {
        let name = package.split(':').next().unwrap_or_default();
        let notice = format!("usr/share/doc/{name}/copyright");
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

/// The image in a directory of packages.
pub(super) fn archive(build: &Build, out: &Path) -> PathBuf {
    out.join(format!("rdmascope-{}-oci.tar", build.version))
}

/// The digest by which registries know the image: that of its manifest.
pub(super) fn digest(archive: &Path) -> Result<String> {
    let archive = archive.to_string_lossy();
    let index = shell::output(&["tar", "--extract", "--to-stdout", "--file", &archive, "./index.json"])?;
    let index: Value = serde_json::from_str(&index)?;
    let digest = index["manifests"][0]["digest"].as_str().map(str::to_owned);
    digest.with_context(|| format!("the index of {archive} has no digest of a manifest"))
}

/// The files of this system in the image.
pub(super) fn files(build: &Build) -> Result<BTreeSet<String>> {
    let mut files = files_of_program(build)?;
    files.extend(files_of_others()?);
    for file in files.clone().iter().filter(|file| !file.starts_with("/etc/")) {
        files.extend(linked(file)?);
    }
    Ok(files)
}

/// Programs of other packages, and the drivers of adapters with their lists.
pub(super) fn files_of_others() -> Result<BTreeSet<String>> {
    let listed = shell::output(&["dpkg-query", "--listfiles", PROVIDERS])?;
    let is_meant = |file: &&str| {
        let is_driver = file.ends_with(".so") && file.contains(&format!("/{DRIVERS}/"));
        file.ends_with(".driver") || is_driver
    };
    let drivers = listed.lines().filter(is_meant);
    Ok(drivers.chain(PROGRAMS).map(str::to_owned).collect())
}

/// Those that the program itself opens or is linked with.
pub(super) fn files_of_program(build: &Build) -> Result<BTreeSet<String>> {
    let mut files: BTreeSet<_> = LIBRARIES.iter().map(|name| path_of_library(name)).collect::<Result<_>>()?;
    files.extend(linked(&build.program().to_string_lossy())?);
    Ok(files)
}

/// The libraries that a program or a library is linked with, and the dynamic linker.
fn linked(file: &str) -> Result<Vec<String>> {
    let listed = shell::output(&["ldd", file])?;
    // NAME => PATH (ADDRESS), or PATH (ADDRESS) of the dynamic linker.
    Ok(listed.split_whitespace().filter(|word| word.starts_with('/')).map(str::to_owned).collect())
}

/// Where the dynamic linker finds a library.
fn path_of_library(name: &str) -> Result<String> {
    let listed = shell::output(&["/sbin/ldconfig", "-p"])?;
    let mut lines = listed.lines().filter(|line| line.trim_start().starts_with(name));
    let path = lines.next().and_then(|line| Some(line.rsplit_once(" => ")?.1.to_owned()));
    path.with_context(|| format!("{name} is not installed"))
}
