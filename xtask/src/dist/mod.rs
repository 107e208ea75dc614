//! `cargo xtask dist`: the packages of a release, made of one staged tree.

mod aarch64;
mod build;
mod check;
mod deb;
mod debian;
mod files;
mod image;
mod notices;
mod package_url;
mod parts;
mod sbom;
mod stage;
mod tarball;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};

use self::build::{Build, Target};
use self::files::{empty, sha256};
use crate::packages::install;
use crate::shell;

const USAGE: &str = "\
usage: cargo xtask dist [--deb] [--check] [--twice]
       cargo xtask dist --aarch64

Builds the packages of a release into target/dist/out: a Debian package, a tarball for systems with glibc 2.28 or later,
an OCI image, bills of materials of the program and of the image (CycloneDX), and the checksums of all.

  --deb      the Debian package alone
  --check    installs each in a clean root, and runs it there: --version, the quick plan, exec, manual pages (only as root)
  --twice    builds all again in another directory, and compares the bytes
  --aarch64  builds the program for aarch64, and runs it under user-mode emulation; makes no package";

/// What is made, and in which order.
const PACKAGES: [Package; 5] = [
    Package { name: "deb", target: Target::Native, needs: &[], make: deb::make, check: Some(check::deb) },
    Package {
        name: "tarball",
        target: Target::OldGlibc,
        needs: &[],
        make: tarball::make,
        check: Some(check::tarball),
    },
    Package {
        name: "image",
        target: Target::Native,
        needs: &image::PACKAGES,
        make: image::make,
        check: Some(check::image),
    },
    Package {
        name: "bill of the program",
        target: Target::Native,
        needs: &[],
        make: sbom::of_program,
        check: None,
    },
    // After the image, whose digest it has.
    Package {
        name: "bill of the image",
        target: Target::Native,
        needs: &image::PACKAGES,
        make: sbom::of_image,
        check: None,
    },
];

/// A kind of package.
struct Package {
    name: &'static str,
    /// Which build it is made of.
    target: Target,
    /// Debian packages whose files it has, each with one of its files.
    needs: &'static [(&'static str, &'static str)],
    /// Makes it in a directory and returns its path.
    make: fn(&Build, &Path) -> Result<PathBuf>,
    /// Installs and runs it in a clean root.
    check: Option<fn(&Path) -> Result<()>>,
}

/// What the command line asks for.
#[derive(Clone, Copy, Default)]
struct Asked {
    is_deb_alone: bool,
    is_check: bool,
    is_twice: bool,
}

/// `cargo xtask dist`.
pub(crate) fn with(arguments: impl Iterator<Item = String>) -> Result<()> {
    let mut asked = Asked::default();
    for argument in arguments {
        match argument.as_str() {
            "--deb" => asked.is_deb_alone = true,
            "--check" => asked.is_check = true,
            "--twice" => asked.is_twice = true,
            "--aarch64" => return aarch64(),
            "--help" => {
                println!("{USAGE}");
                return Ok(());
            }
            other => anyhow::bail!("dist has no option {other}\n{USAGE}"),
        }
    }
    run(asked)
}

/// The Debian package, installed and run in a clean root: what CI does of this.
pub(crate) fn deb_checked() -> Result<()> {
    run(Asked { is_deb_alone: true, is_check: true, is_twice: false })
}

/// Builds the program for aarch64 and runs it: no package is made of it.
pub(crate) fn aarch64() -> Result<()> {
    aarch64::run(&shell::root().join("target/dist"))
}

fn run(asked: Asked) -> Result<()> {
    let packages: Vec<_> =
        PACKAGES.iter().filter(|package| !asked.is_deb_alone || package.name == "deb").collect();
    // Before anything is built, which takes minutes.
    let needs: Vec<_> = packages.iter().flat_map(|package| package.needs).copied().collect();
    install(&needs)?;
    let dist = shell::root().join("target/dist");
    let made = make_all(&packages, &shell::root(), &dist)?;
    if asked.is_twice {
        let copy = dist.join("copy");
        build::copy_checkout(&copy)?;
        let again = make_all(&packages, &copy, &dist.join("again"))?;
        compare(&made, &again)?;
    }
    if asked.is_check {
        ensure!(shell::is_root(), "--check makes a root directory of its own, which only root can");
        for (package, path) in packages.iter().zip(&made) {
            if let Some(check) = package.check {
                check(path).with_context(|| format!("the clean root of {}", path.display()))?;
            }
        }
    }
    Ok(())
}

/// Makes the packages of a checkout in `dist/out`, and their checksums.
fn make_all(packages: &[&Package], checkout: &Path, dist: &Path) -> Result<Vec<PathBuf>> {
    let out = dist.join("out");
    empty(&out)?;
    let mut builds: Vec<Build> = Vec::new();
    let mut made = Vec::new();
    for package in packages {
        if !builds.iter().any(|build| build.target == package.target) {
            builds.push(Build::make(package.target, checkout, dist)?);
        }
        let build =
            builds.iter().find(|build| build.target == package.target).context("it was built above")?;
        made.push((package.make)(build, &out).with_context(|| format!("cannot make the {}", package.name))?);
    }
    let mut sums = String::new();
    for path in &made {
        let name = path.file_name().context("a package is a file")?.to_string_lossy();
        let bytes = fs::read(path)?;
        eprintln!("xtask: dist: {} ({} B)", path.display(), bytes.len());
        sums += &format!("{}  {name}\n", sha256(&bytes));
    }
    fs::write(out.join("SHA256SUMS"), sums)?;
    Ok(made)
}

/// Fails unless two builds made the same bytes.
fn compare(first: &[PathBuf], second: &[PathBuf]) -> Result<()> {
    let mut differ = Vec::new();
    for (one, other) in first.iter().zip(second) {
        if fs::read(one)? != fs::read(other)? {
            differ.push(format!("{} and {}", one.display(), other.display()));
        }
    }
    ensure!(differ.is_empty(), "two builds made different bytes: {}", differ.join("; "));
    eprintln!("xtask: dist: a second build in another directory made the same bytes");
    Ok(())
}
