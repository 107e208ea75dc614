//! Debian packages that checks and measurements need.

use anyhow::{Result, ensure};

use crate::shell;

/// Installs the missing packages, each known by one of its files; only root can.
pub(crate) fn install(packages: &[(&str, &str)]) -> Result<()> {
    let missing: Vec<_> = packages.iter().filter(|(_, path)| !std::path::Path::new(path).exists()).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let names: Vec<_> = missing.iter().map(|(name, _)| *name).collect();
    ensure!(
        shell::is_root(),
        "packages are missing: run `sudo apt-get install --no-install-recommends {}`",
        names.join(" ")
    );
    shell::run(&["apt-get", "update", "-qq"])?;
    let install = ["apt-get", "install", "-y", "-qq", "--no-install-recommends"];
    let words: Vec<_> = install.into_iter().chain(names).collect();
    shell::run_with(&words, &[("DEBIAN_FRONTEND", "noninteractive")])
}
