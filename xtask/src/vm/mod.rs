//! `cargo xtask vm`: runs a command in a virtual machine with a kernel device, rxe0.
//!
//! Test machines have no RDMA adapter, often no RDMA in their kernel, and no nested virtualisation.
//! QEMU's emulator needs none of these: it boots Debian's kernel in a few seconds. Guests see the
//! host's files, so they run the programs that were built on the host. Emulated times are
//! meaningless, but ratios of two programs in one boot are meaningful.

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

/// Debian packages that the machine needs, and packages with programs that tests use in it or
/// compare with rdmascope. Each has one of its files.
pub(crate) const PACKAGES: [(&str, &str); 12] = [
    // The package `busybox` has the same file, but needs libraries.
    ("busybox-static", "/var/lib/dpkg/info/busybox-static.list"),
    // Only the program: `dropbear` and `openssh-server` would start a server on this host.
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

/// `cargo xtask vm`: runs a command in a virtual machine.
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

/// Runs a command in a virtual machine and returns its exit status.
pub(crate) fn status(words: impl Iterator<Item = OsString>) -> Result<u8> {
    let options = Options::parse(words)?.context("--help is not a command to run")?;
    boot(&options)
}

fn boot(options: &Options) -> Result<u8> {
    ensure!(
        cfg!(target_arch = "x86_64"),
        "the guest runs this host's programs, which must be built for x86_64"
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

/// Cargo's target directory.
fn target() -> Result<PathBuf> {
    let set = env::var_os("CARGO_TARGET_DIR").map(std::path::absolute).transpose()?;
    Ok(set.unwrap_or_else(|| shell::root().join("target")))
}

/// Creates the directory of --out and returns its absolute path, which is also its path in the
/// guest.
fn out(directory: &Path) -> Result<PathBuf> {
    let made = fs::create_dir_all(directory).and_then(|()| fs::canonicalize(directory));
    made.with_context(|| format!("--out {}: cannot create the directory", directory.display()))
}

/// The command as a script for the guest.
fn command(options: &Options, out: Option<&Path>) -> Result<Vec<u8>> {
    let mut variables = passed_on();
    variables.extend(out.map(|out| (OUT.into(), out.into())));
    variables.extend(options.variables.iter().cloned());
    let directory = env::current_dir().context("cannot find the current directory")?;
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

/// The environment variables that the command inherits: for programs in general, and for this
/// project's programs.
fn passed_on() -> Vec<(OsString, OsString)> {
    let is_passed = |name: &OsStr| {
        let Some(name) = name.to_str() else { return false };
        let is_ours = name.starts_with("RDMASCOPE_") && script::is_name(OsStr::new(name));
        is_ours || ["PATH", "HOME", "LANG", "RUST_BACKTRACE", "RUST_LOG"].contains(&name)
    };
    env::vars_os().filter(|(name, _)| is_passed(name)).collect()
}

/// The command's variable with the directory of --out; unset without --out.
const OUT: &str = "RDMASCOPE_VM_OUT";
/// The command of the second machine.
const PEERS_COMMAND: &[u8] = b"exec sleep infinity\n";
/// The exit status of timeout(1) and chroot(1) when they fail themselves.
const NOT_RUN: u8 = 125;
