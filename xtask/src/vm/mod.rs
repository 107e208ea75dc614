//! `cargo xtask vm`: a command in a virtual machine that has a real kernel device, rxe0.
//!
//! Machines that test us have no RDMA adapter, often no RDMA in their kernel, and no nested
//! virtualisation. QEMU's emulator needs none of it: it boots Debian's kernel in a few seconds.
//! Guests see this machine's files, so they run the very programs that were built here. Emulated
//! times mean nothing; ratios of two programs in one boot do.

mod archive;
mod kernel;
mod machine;
mod options;
mod script;

use std::ffi::{OsStr, OsString};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::{env, fs};

use anyhow::{Context, Result, ensure};

use self::archive::Archive;
use self::kernel::{BOOT_MODULES, Kernel, NET_MODULES, RDMA_MODULES};
use self::machine::{FIRST, Machine, PEER, Parts, Seat};
use self::options::{Options, USAGE};
use crate::packages::install;
use crate::shell;

/// Debian packages that the machine needs, and those whose programs tests use inside or compare
/// with ours.
pub(crate) const PACKAGES: [(&str, &str); 12] = [
    // The package `busybox` has the same file, but needs libraries.
    ("busybox-static", "/var/lib/dpkg/info/busybox-static.list"),
    // The server alone: `dropbear` and `openssh-server` would run one on this machine.
    ("dropbear-bin", "/usr/sbin/dropbear"),
    ("ibverbs-providers", "/etc/libibverbs.d/rxe.driver"),
    ("ibverbs-utils", "/usr/bin/ibv_devinfo"),
    ("iproute2", "/usr/bin/rdma"),
    ("kmod", "/sbin/modprobe"),
    ("nftables", "/usr/sbin/nft"),
    ("openssh-client", "/usr/bin/ssh"),
    ("perftest", "/usr/bin/ib_send_lat"),
    ("qemu-system-x86", "/usr/bin/qemu-system-x86_64"),
    ("qperf", "/usr/bin/qperf"),
    ("xz-utils", "/usr/bin/xz"),
];

/// Runs a command in a machine of its own.
pub(crate) fn run(words: impl Iterator<Item = OsString>) -> ExitCode {
    let options = match Options::parse(words) {
        Ok(Some(options)) => options,
        Ok(None) => {
            println!("{USAGE}");
            return ExitCode::SUCCESS;
        }
        Err(error) => {
            eprintln!("xtask: vm: {error:#}");
            return ExitCode::from(2);
        }
    };
    match boot(&options) {
        Ok(status) => ExitCode::from(status),
        Err(error) => {
            eprintln!("xtask: vm: {error:#}");
            ExitCode::from(NOT_RUN)
        }
    }
}

/// The same for callers that go on: the exit status of the command.
pub(crate) fn status(words: impl Iterator<Item = OsString>) -> Result<u8> {
    let options = Options::parse(words)?.context("there is no command to run")?;
    boot(&options)
}

fn boot(options: &Options) -> Result<u8> {
    ensure!(
        cfg!(target_arch = "x86_64"),
        "the guest runs this machine's programs, which must be those of x86_64"
    );
    install(&PACKAGES)?;
    let kernel = Kernel::find(&target()?.join("vm"))?;
    let out = options.out.as_deref().map(out).transpose()?;
    let image = kernel.image();
    let up = |seat: &Seat, command: &[u8], out: Option<&Path>, cable: Option<OwnedFd>| {
        let archive = archive(options, seat, &kernel, command, out)?;
        let is_counted = options.is_counted;
        let is_verbose = options.is_verbose;
        Machine::up(|| {
            let cable = cable.as_ref().map(OwnedFd::try_clone).transpose()?;
            let archive = &archive;
            Machine::start(Parts { kernel: &image, seat, archive, out, is_counted, cable, is_verbose })
        })
    };
    let command = command(options, out.as_deref())?;
    if !options.has_peer {
        return up(&FIRST, &command, out.as_deref(), None)?.run(options.timeout);
    }
    let (one, other) = UnixStream::pair()?;
    let _peer = up(&PEER, PEERS_COMMAND, None, Some(other.into())).context("the second machine")?;
    up(&FIRST, &command, out.as_deref(), Some(one.into()))?.run(options.timeout)
}

/// Cargo's directory for what is built.
fn target() -> Result<PathBuf> {
    let set = env::var_os("CARGO_TARGET_DIR").map(std::path::absolute).transpose()?;
    Ok(set.unwrap_or_else(|| shell::root().join("target")))
}

/// The directory of --out as an absolute path, which is its place inside as well.
fn out(directory: &Path) -> Result<PathBuf> {
    let made = fs::create_dir_all(directory).and_then(|()| fs::canonicalize(directory));
    made.with_context(|| format!("--out {}: cannot be made", directory.display()))
}

/// The command as a script for the guest.
fn command(options: &Options, out: Option<&Path>) -> Result<Vec<u8>> {
    let mut variables = passed_on();
    variables.extend(out.map(|out| (OUT.into(), out.into())));
    variables.extend(options.variables.iter().cloned());
    let directory = env::current_dir().context("there is no current directory")?;
    Ok(script::command(&directory, &variables, &options.before, &options.command))
}

/// A guest's first file system.
fn archive(
    options: &Options,
    seat: &Seat,
    kernel: &Kernel,
    command: &[u8],
    out: Option<&Path>,
) -> Result<Vec<u8>> {
    let mut archive = Archive::default();
    for directory in ["dev", "proc", "sys"] {
        archive.directory(directory);
    }
    archive.file("bin/busybox", true, &fs::read("/bin/busybox").context("cannot read /bin/busybox")?);
    archive.file("init", true, include_bytes!("init.sh"));
    archive.file("vm/inside.sh", false, include_bytes!("inside.sh"));
    kernel.add_modules(&mut archive)?;

    let out = out.map_or(OsStr::new(""), Path::as_os_str);
    let yes = |is: bool| OsStr::new(if is { "yes" } else { "no" });
    let address = seat.address.to_string();
    let [a, b, c, d] = seat.address.octets();
    let gid = format!("ffff:{a:02x}{b:02x}:{c:02x}{d:02x}");
    let [first, peer] = [&FIRST, &PEER].map(|seat| format!("{} {}", seat.address, seat.name));
    let settings = script::settings(&[
        ("BOOT_MODULES", OsStr::new(BOOT_MODULES)),
        ("NET_MODULES", OsStr::new(NET_MODULES)),
        ("RDMA_MODULES", OsStr::new(RDMA_MODULES)),
        ("ADDRESS", OsStr::new(&address)),
        ("GID", OsStr::new(&gid)),
        ("NAME", OsStr::new(seat.name)),
        ("HOSTS", OsStr::new(&format!("{first}\n{peer}"))),
        ("HAS_PEER", yes(options.has_peer)),
        ("HAS_RXE", yes(options.has_rxe)),
        ("HAS_TSC", yes(machine::host_counter_is_steady())),
        (OUT, out),
    ]);
    archive.file("vm/settings", false, &settings);

    archive.file("vm/command", false, command);
    Ok(archive.finish())
}

/// The variables of our environment that the command sees: where programs are, and what programs of
/// ours read.
fn passed_on() -> Vec<(OsString, OsString)> {
    let is_passed = |name: &OsStr| {
        let Some(name) = name.to_str() else { return false };
        let is_ours = name.starts_with("RDMASCOPE_") && script::is_name(OsStr::new(name));
        is_ours || ["PATH", "HOME", "LANG", "RUST_BACKTRACE", "RUST_LOG"].contains(&name)
    };
    env::vars_os().filter(|(name, _)| is_passed(name)).collect()
}

/// The directory of --out, for the command; unset without it.
const OUT: &str = "RDMASCOPE_VM_OUT";
/// What the second machine does.
const PEERS_COMMAND: &[u8] = b"exec sleep infinity\n";
/// What timeout(1) and chroot(1) return when it is they that failed.
const NOT_RUN: u8 = 125;
