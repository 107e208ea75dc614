//! What CI runs, and anyone who wants to know whether all is well: nothing may be skipped.

use anyhow::Result;

use crate::packages::install;
use crate::{check, parity, programs, rooms, shell, vm, vm_tests};

/// Debian packages that tests need: a browser with fonts, the headers that the ABI is compared with, what drops packets
/// between network namespaces, message libraries, and those whose numbers ours are compared with.
const PACKAGES: [(&str, &str); 10] = [
    ("chromium", "/usr/bin/chromium"),
    ("fonts-dejavu-core", "/usr/share/fonts/truetype/dejavu"),
    ("iperf3", "/usr/bin/iperf3"),
    ("libibverbs-dev", "/usr/include/infiniband/verbs.h"),
    ("libnanomsg5", "/usr/share/doc/libnanomsg5"),
    ("libnng1", "/usr/share/doc/libnng1"),
    ("librdmacm-dev", "/usr/include/rdma/rdma_cma.h"),
    ("libzmq5", "/usr/share/doc/libzmq5"),
    ("nftables", "/usr/sbin/nft"),
    ("sockperf", "/usr/bin/sockperf"),
];

/// What must not be skipped: see the tests for what each word means.
const REQUIRED: &str = "browser,header,libraries,numpy,vm";
/// What must not be skipped where only root can do it.
const REQUIRED_OF_ROOT: &str = "namespaces";

/// Installs what is missing, then checks, tests and measures.
pub(crate) fn run() -> Result<()> {
    build_once();
    let packages: Vec<_> = PACKAGES.into_iter().chain(vm::PACKAGES).chain(programs::PACKAGES).collect();
    install(&packages)?;
    let python = python()?;
    deny()?;
    check::without_tests()?;
    let of_root = if shell::is_root() { REQUIRED_OF_ROOT } else { "" };
    let required = format!("{REQUIRED},{of_root}");
    check::test(&[("RDMASCOPE_REQUIRE", &required), ("RDMASCOPE_PYTHON", &python)])?;
    rooms::run()?;
    vm_tests::run([vm_tests::ONE_MACHINE.to_owned()].into_iter())?;
    parity::quick()?;
    programs::quick()?;
    quick_run()
}

/// Where nothing but this program has been built, nothing is kept for building it again: that takes a quarter of the time.
fn build_once() {
    let kept = std::fs::read_dir(shell::root().join("target/debug/incremental"));
    let is_own = |name: &std::ffi::OsStr| name.to_string_lossy().starts_with("xtask-");
    if kept.is_ok_and(|kept| kept.flatten().all(|kept| is_own(&kept.file_name()))) {
        // SAFETY: no other thread has been started that could read the environment.
        unsafe { std::env::set_var("CARGO_INCREMENTAL", "0") };
    }
}

/// Builds what checks licences, where it is not installed: for this project alone, and plainly, as it is used but once.
fn deny() -> Result<()> {
    let root = shell::root().join("target/tools");
    let own = [root.join("bin")];
    let path = std::env::var_os("PATH").unwrap_or_default();
    let path = std::env::join_paths(own.into_iter().chain(std::env::split_paths(&path)))?;
    // SAFETY: no other thread has been started that could read the environment.
    unsafe { std::env::set_var("PATH", path) };
    if shell::works(&["cargo", "deny", "--version"]) {
        return Ok(());
    }
    let root = root.to_string_lossy().into_owned();
    let install = ["cargo", "install", "--locked", "--quiet", "--debug", "--root", &root, "cargo-deny"];
    shell::run_with(&install, &[("CARGO_PROFILE_DEV_DEBUG", "false")])
}

/// A Python with numpy: the system's if it has it, else one in an environment of its own.
fn python() -> Result<String> {
    if shell::works(&["python3", "-c", "import numpy"]) {
        return Ok("python3".to_owned());
    }
    let environment = shell::root().join("target/python");
    let python = environment.join("bin/python3").to_string_lossy().into_owned();
    if !shell::works(&[&python, "-c", "import numpy"]) {
        let place = environment.to_string_lossy().into_owned();
        let made = shell::works(&["python3", "-m", "venv", &place]);
        if !made {
            // Debian keeps the module that makes environments in a package of its own.
            shell::run(&["apt-get", "install", "-y", "-qq", "python3-venv"])?;
            shell::run(&["python3", "-m", "venv", &place])?;
        }
        shell::run(&[&python, "-m", "pip", "install", "--quiet", "numpy"])?;
    }
    Ok(python)
}

/// The main job of the README, as a user types it.
fn quick_run() -> Result<()> {
    let out = shell::root().join("target/ci-run");
    if out.exists() {
        std::fs::remove_dir_all(&out)?;
    }
    let out = out.to_string_lossy().into_owned();
    shell::run(&["cargo", "run", "--release", "--quiet", "--", "run", "plans/quick.toml", "--out", &out])
}
