//! Packages in clean roots: installed as users install them, and run.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use tempfile::TempDir;

use super::image::DRIVERS;
use super::stage;
use crate::packages::install;
use crate::shell;

/// Debian packages that make and enter the roots, and judge what is installed there.
const PACKAGES: [(&str, &str); 5] = [
    ("iproute2", "/sbin/ip"),
    ("lintian", "/usr/bin/lintian"),
    ("mmdebstrap", "/usr/bin/mmdebstrap"),
    ("skopeo", "/usr/bin/skopeo"),
    ("umoci", "/usr/bin/umoci"),
];

/// The oldest Debian that its mirrors still have, with glibc 2.31.
const OLD_DEBIAN: &str = "bullseye";

/// Packages in a root beside Debian's essential ones: a verbs program, and what shows manual pages
/// and completions.
const INCLUDED: &str = "bash-completion,ibverbs-utils,man-db,python3-minimal";

/// The dynamic linker of a root.
const LINKER: &str = match cfg!(target_arch = "aarch64") {
    true => "/lib/ld-linux-aarch64.so.1",
    false => "/lib64/ld-linux-x86-64.so.2",
};

/// A directory that becomes the root of commands.
struct Root(TempDir);

impl Root {
    /// Debian as it is on this machine.
    fn own_debian() -> Result<Self> {
        let release = fs::read_to_string("/etc/os-release")?;
        let suite = release.lines().find_map(|line| line.strip_prefix("VERSION_CODENAME="));
        Self::debian(suite.context("/etc/os-release gives no VERSION_CODENAME")?)
    }

    /// The essential packages of a Debian and [`INCLUDED`], which are fetched once.
    fn debian(suite: &str) -> Result<Self> {
        install(&PACKAGES)?;
        let base = shell::root().join(format!("target/dist/{suite}.tar"));
        if !base.exists() {
            let made = base.with_extension("part.tar");
            let include = format!("--include={INCLUDED}");
            shell::run(&[
                "mmdebstrap",
                "--quiet",
                "--variant=essential",
                &include,
                suite,
                &made.to_string_lossy(),
            ])?;
            fs::rename(made, &base)?;
        }
        let root = Self::empty()?;
        root.unpack(&base)?;
        Ok(root)
    }

    fn empty() -> Result<Self> {
        let place = shell::root().join("target/dist/roots");
        fs::create_dir_all(&place)?;
        Ok(Self(tempfile::Builder::new().prefix("root-").tempdir_in(place)?))
    }

    fn path(&self, inside: &str) -> PathBuf {
        self.0.path().join(inside.trim_start_matches('/'))
    }

    fn unpack(&self, archive: &Path) -> Result<()> {
        let root = self.0.path().to_string_lossy();
        shell::run_quietly(&["tar", "--extract", "--file", &archive.to_string_lossy(), "--directory", &root])
    }

    /// Runs a command in the root, in namespaces of its own for mounts, processes and the network,
    /// and returns what it prints.
    fn run(&self, words: &[&str]) -> Result<String> {
        const ENTER: &str = "\
            ip link set lo up
            mkdir -p $0/proc $0/sys $0/dev
            mount --bind /dev $0/dev
            mount -t tmpfs tmpfs $0/dev/shm
            mount -t proc proc $0/proc
            mount -t sysfs -o ro sysfs $0/sys
            root=$0
            exec env --ignore-environment HOME=/root LANG=C.UTF-8 PATH=/usr/sbin:/usr/bin:/sbin:/bin \
                chroot $root \"$@\"";
        let mut command = Command::new("unshare");
        command
            .args(["--mount", "--pid", "--fork", "--net", "--", "sh", "-ec", ENTER])
            .arg(self.0.path())
            .args(words);
        let output = command.output().context("cannot start unshare")?;
        let printed = String::from_utf8_lossy(&output.stdout);
        let errors = String::from_utf8_lossy(&output.stderr);
        let shown = words.join(" ");
        ensure!(output.status.success(), "`{shown}` failed ({}): {printed}{errors}", output.status);
        Ok(printed.into_owned())
    }

    /// Returns the paths of the libraries that programs have extracted.
    fn extracted(&self) -> Result<String> {
        self.run(&["find", "/root", "/tmp", "-name", "librdmascope_preload*"])
    }

    /// Runs the program's main jobs. `python` is one whose children have their files closed.
    fn check_program(&self, program: &str, python: Option<&str>) -> Result<()> {
        let version = self.run(&[program, "--version"])?;
        let expected = format!("rdmascope {}", env!("CARGO_PKG_VERSION"));
        ensure!(version.contains(&expected), "--version prints {version:?} and not {expected}");
        self.run(&[program, "run", "quick", "--out", "/tmp/quick"])?;
        ensure!(self.path("/tmp/quick/report.html").is_file(), "the quick plan wrote no report");
        fs::remove_dir_all(self.path("/tmp/quick"))?;
        let devices = self.run(&[program, "exec", "ibv_devinfo"])?;
        ensure!(devices.contains("softdev0"), "exec ibv_devinfo prints {devices:?}");
        if let Some(python) = python {
            let script = "import subprocess; subprocess.run(['ibv_devinfo'], check=True, close_fds=True)";
            let devices = self.run(&[program, "exec", python, "-c", script])?;
            ensure!(devices.contains("softdev0"), "a child of exec's program prints {devices:?}");
        }
        Ok(())
    }

    /// Lets the dynamic linker of the root find the libraries of each driver of an adapter. Without
    /// an adapter, nothing opens the drivers.
    fn check_drivers(&self) -> Result<()> {
        let libraries = format!("/usr/lib/{}-linux-gnu", std::env::consts::ARCH);
        let drivers = self.path(&format!("{libraries}/{DRIVERS}"));
        let mut count = 0;
        for driver in fs::read_dir(&drivers).with_context(|| format!("cannot read {}", drivers.display()))? {
            let name = driver?.file_name();
            let driver = format!("{libraries}/{DRIVERS}/{}", name.to_string_lossy());
            let listed = self.run(&[LINKER, "--list", &driver])?;
            ensure!(!listed.contains("not found"), "{driver} lacks a library: {listed}");
            count += 1;
        }
        ensure!(count > 10, "the image has {count} drivers of adapters");
        Ok(())
    }
}

/// Installs the Debian package in a clean root.
pub(super) fn deb(package: &Path) -> Result<()> {
    let root = Root::own_debian()?;
    fs::copy(package, root.path("/tmp/rdmascope.deb"))?;
    root.run(&["dpkg", "--install", "/tmp/rdmascope.deb"])?;
    root.check_program("/usr/bin/rdmascope", Some("python3"))?;
    let extracted = root.extracted()?;
    ensure!(extracted.is_empty(), "exec uses {extracted} and not the package's library");
    let pages = root.run(&["sh", "-c", "ls /usr/share/man/man1/rdmascope*.1.gz"])?;
    ensure!(pages.lines().count() > 10, "there are no manual pages of commands: {pages}");
    for page in pages.lines() {
        let script = "man --warnings -l \"$0\" 2>&1 >/dev/null";
        let warnings = root.run(&["sh", "-c", script, page])?;
        ensure!(warnings.is_empty(), "{page}: {warnings}");
    }
    let complete = ". /usr/share/bash-completion/completions/rdmascope && complete -p rdmascope";
    root.run(&["bash", "-c", complete])?;
    // The program alone, copied: it extracts its library.
    root.run(&["cp", "/usr/bin/rdmascope", "/tmp/rdmascope"])?;
    root.run(&["dpkg", "--remove", "rdmascope"])?;
    root.check_program("/tmp/rdmascope", Some("python3"))?;
    ensure!(!root.extracted()?.is_empty(), "exec of a copied program has no library");
    let judged = ["lintian", "--fail-on", "error", "--allow-root", &package.to_string_lossy()];
    shell::run(&judged)?;
    eprintln!("xtask: dist: the Debian package works in a clean root, and its program as a single file");
    Ok(())
}

/// Unpacks the tarball in a clean root of an old system.
pub(super) fn tarball(package: &Path) -> Result<()> {
    let root = Root::debian(OLD_DEBIAN)?;
    let name = package.file_name().unwrap_or_default().to_string_lossy();
    let name = name.trim_end_matches(".tar.gz");
    fs::create_dir_all(root.path("/opt"))?;
    let to = root.path("/opt").to_string_lossy().into_owned();
    shell::run_quietly(&["tar", "--extract", "--file", &package.to_string_lossy(), "--directory", &to])?;
    root.check_program(&format!("/opt/{name}/bin/rdmascope"), Some("python3"))?;
    eprintln!("xtask: dist: the tarball works in a clean root of {OLD_DEBIAN}");
    Ok(())
}

/// Unpacks the image, as a container's runtime does.
pub(super) fn image(package: &Path) -> Result<()> {
    install(&PACKAGES)?;
    let archive = format!("oci-archive:{}", package.display());
    shell::run_quietly(&["skopeo", "inspect", &archive])?;
    let copy = tempfile::tempdir()?;
    let layout = copy.path().join("layout").to_string_lossy().into_owned();
    shell::run_quietly(&["skopeo", "copy", "--quiet", &archive, &format!("oci:{layout}:latest")])?;
    let root = Root::empty()?;
    let place = root.path("").to_string_lossy().into_owned();
    fs::remove_dir(&place)?;
    shell::run_quietly(&["umoci", "raw", "unpack", "--image", &format!("{layout}:latest"), &place])?;
    // What a runtime makes for its containers.
    stage::write(&root.path("/etc/hosts"), b"127.0.0.1 localhost\n")?;
    root.check_program("/usr/bin/rdmascope", None)?;
    root.run(&["sleep", "0"])?;
    root.check_drivers()?;
    eprintln!("xtask: dist: the image works in a root of its own");
    Ok(())
}
