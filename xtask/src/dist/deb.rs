//! The Debian package: `dpkg-deb` over the staged tree.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::build::Build;
use super::stage;
use crate::shell;

/// Who is asked about the package, unless DEBFULLNAME and DEBEMAIL say so (deb-control(5) has no
/// packages without an address; this domain never exists, RFC 2606).
const MAINTAINER: [&str; 2] = ["The rdmascope developers", "rdmascope@packages.invalid"];

/// Makes `rdmascope_VERSION-1_ARCH.deb`.
pub(super) fn make(build: &Build, out: &Path) -> Result<PathBuf> {
    let root = build.scratch("deb")?;
    stage::stage(build, &root.join("usr"), true)?;
    stage::compress(&root.join("usr/share/man/man1"))?;
    let docs = root.join("usr/share/doc/rdmascope");
    let log = build.scratch("changelogs")?;
    stage::place(&build.checkout.join("CHANGELOG.md"), &log.join("changelog"), 0o644)?;
    stage::write(&log.join("changelog.Debian"), changelog(build)?.as_bytes())?;
    stage::compress(&log)?;
    for name in ["changelog.gz", "changelog.Debian.gz"] {
        stage::place(&log.join(name), &docs.join(name), 0o644)?;
    }
    let architecture = shell::output(&["dpkg", "--print-architecture"])?.trim().to_owned();
    let words =
        ["sh", "-c", "cd \"$0\" && find usr -type f | sort | xargs -d '\\n' md5sum", &root.to_string_lossy()];
    stage::write(&root.join("DEBIAN/md5sums"), shell::output(&words)?.as_bytes())?;
    stage::write(&root.join("DEBIAN/control"), control(build, &root, &architecture)?.as_bytes())?;
    let path = out.join(format!("rdmascope_{}-1_{architecture}.deb", build.version));
    let words = [
        "dpkg-deb",
        "--root-owner-group",
        "-Zxz",
        "--build",
        &root.to_string_lossy(),
        &path.to_string_lossy(),
    ];
    let epoch = format!("SOURCE_DATE_EPOCH={}", build.epoch);
    shell::run_quietly(&[&["env", &epoch], &words[..]].concat())?;
    Ok(path)
}

fn maintainer() -> String {
    let given = |variable: &str| std::env::var(variable).ok().filter(|text| !text.trim().is_empty());
    let [name, address] = MAINTAINER;
    let name = given("DEBFULLNAME").unwrap_or_else(|| name.to_owned());
    let address = given("DEBEMAIL").unwrap_or_else(|| address.to_owned());
    // DEBEMAIL may have both, as devscripts allows.
    if address.contains('<') { address } else { format!("{name} <{address}>") }
}

fn control(build: &Build, root: &Path, architecture: &str) -> Result<String> {
    Ok(format!(
        "Package: rdmascope\n\
         Version: {}-1\n\
         Architecture: {architecture}\n\
         Maintainer: {}\n\
         Installed-Size: {}\n\
         Depends: libc6 (>= {})\n\
         Recommends: libibverbs1, ibverbs-providers\n\
         Suggests: librdmacm1, ibverbs-utils, perftest, qperf, iperf3, sockperf\n\
         Section: net\n\
         Priority: optional\n\
         Description: measure RDMA, socket and MPI networks, with every message timed\n \
         rdmascope measures latency and bandwidth over RDMA verbs, sockets and MPI\n \
         between processes and hosts, and what applications make of them. It prints\n \
         tables like those of perftest, keeps every sample, and writes a report that\n \
         a browser shows without a network. Plans repeat published evaluations of\n \
         InfiniBand, RoCE and IPoIB beside their numbers.\n \
         .\n \
         Where there is no adapter, its own software RDMA device runs without a kernel\n \
         module or root, for rdmascope and (rdmascope exec) for other programs.\n",
        build.version,
        maintainer(),
        kibibytes(&root.join("usr"))?,
        newest_glibc(&build.program())?,
    ))
}

/// What the files of a tree have together.
fn kibibytes(directory: &Path) -> Result<u64> {
    let mut sum = 0;
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let found = entry.metadata()?;
        sum += if found.is_dir() { kibibytes(&entry.path())? } else { found.len().div_ceil(1024) };
    }
    Ok(sum)
}

/// Debian's own log, of the one version that there is of this packaging.
fn changelog(build: &Build) -> Result<String> {
    let date = shell::output(&["date", "--utc", "--rfc-email", &format!("--date=@{}", build.epoch)])?;
    let date = date.trim();
    Ok(format!(
        "rdmascope ({}-1) unstable; urgency=medium\n\n  * Release of this version: see changelog.gz.\n\n \
         -- {}  {date}\n",
        build.version,
        maintainer()
    ))
}

/// The newest version of glibc of which a program uses a function.
pub(super) fn newest_glibc(program: &Path) -> Result<String> {
    let symbols = shell::output(&["objdump", "-T", &program.to_string_lossy()])?;
    let versions = symbols.split(['(', ')', ' ']).filter_map(|word| word.strip_prefix("GLIBC_"));
    let newest = versions.filter_map(|version| Some((parsed(version)?, version))).max();
    Ok(newest.context("the program uses no function of glibc")?.1.to_owned())
}

/// A version as numbers, which compare as versions do.
pub(super) fn parsed(version: &str) -> Option<Vec<u32>> {
    version.split('.').map(|part| part.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_compare_as_numbers() {
        assert!(parsed("2.9") < parsed("2.28"));
        assert!(parsed("2.2.5") < parsed("2.28"));
        assert_eq!(parsed("PRIVATE"), None);
    }
}
