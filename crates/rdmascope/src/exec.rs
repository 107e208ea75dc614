//! `rdmascope exec`: runs a program on the software device, by a library that is preloaded in front
//! of its libibverbs.

use std::env;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context, bail};
use bench::process::launcher;
use clap::{Args, ValueEnum};
use softdev::{DEVICES_VARIABLE, LINK_LAYER_VARIABLE, LINK_VARIABLE, MAX_DEVICES, MTU_VARIABLE, PortMtu};
use verbs::LinkModel;

use crate::cli::count::count;
use crate::failure::{NO_SUCH_PROGRAM, NOT_STARTED, NotStarted};
use crate::{namespace, preload};

const EXAMPLES: &str = "\
Examples:
  rdmascope exec ibv_devinfo           shows the device as programs see it
  rdmascope exec ib_send_bw            a server; and its client, elsewhere:
  rdmascope exec ib_send_bw localhost
  rdmascope exec --devices 2 -- ib_write_lat -d softdev1
  rdmascope exec rping -s -a 127.0.0.1 # RDMA CM; on another terminal:
  rdmascope exec rping -c -a 127.0.0.1
  rdmascope exec --link-layer infiniband -- qperf localhost ud_lat
  rdmascope exec --link '4X FDR,latency=700ns' ib_send_lat localhost
  UCX_TLS=rc,self rdmascope exec --wrap mpirun -np 2 PROGRAM
                                       two ranks of MPI, over UCX
  rdmascope exec bash                  all programs that this shell starts

The program replaces rdmascope in this process, so that it keeps the terminal
and gets all signals. Programs that it starts find the device, too. Statically
linked programs do not find it.

Variables:
  RDMASCOPE_PRELOAD  the library that is preloaded [default: the one inside
                     rdmascope, extracted to XDG_CACHE_HOME or ~/.cache]
  LD_PRELOAD         kept, with the library in front of its value

Exit status:
  the exit status of the program, or
  1    the device cannot be given to the program
  2    wrong usage
  126  the system cannot start the program
  127  there is no such program";

/// The program to run, and its devices.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES, arg_required_else_help = true)]
pub(crate) struct ExecArguments {
    /// Link layer of the ports: Ethernet with RoCE v2, or InfiniBand with LIDs [default: ethernet].
    #[arg(long, value_name = "LAYER", ignore_case = true)]
    link_layer: Option<LinkLayer>,
    /// Number of devices: softdev0, softdev1 and so on [default: 1].
    #[arg(long, value_name = "N", value_parser = count(1..=u32::from(MAX_DEVICES)))]
    devices: Option<u32>,
    /// Link to model, such as `4X FDR` or `40Gb/s,latency=700ns`; more keys are back=, fetch=,
    /// gap=, mtu= and header= [default: as fast as memory].
    #[arg(long, value_name = "LINK")]
    link: Option<LinkModel>,
    /// MTU of the ports on Ethernet: 256, 512, 1024, 2048 or 4096 bytes, or `netdev`: the largest
    /// that fits the network interface [default: netdev].
    #[arg(long, value_name = "MTU")]
    mtu: Option<PortMtu>,
    /// Give the device to the ranks of a launcher (mpirun, mpiexec, srun) and not to the launcher
    /// itself, by its options -x, -genv or --export: ranks on all hosts find the device.
    #[arg(long)]
    wrap: bool,
    /// Also show the files of the devices to programs that bypass the C library: in a mount
    /// namespace and, without root, a user namespace. Programs that communicate must then all have
    /// this option.
    #[arg(long)]
    namespace: bool,
    /// Program to run, with its arguments.
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true, value_name = "PROGRAM")]
    program: Vec<OsString>,
}

/// Link layers of a port.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum LinkLayer {
    /// RoCE v2: every route is global, by GIDs.
    Ethernet,
    /// Routes by LIDs.
    Infiniband,
}

/// Replaces this process with the program; returns only on an error.
pub(crate) fn exec(arguments: &ExecArguments) -> anyhow::Result<ExitCode> {
    let mut variables = variables(arguments)?;
    if arguments.namespace {
        variables.push(enter_namespace(&variables)?);
    }
    if arguments.wrap {
        return wrap(&arguments.program, variables);
    }
    let (name, rest) = arguments.program.split_first().context("clap asks for a program")?;
    let path = find_program(name)?;
    check_program(&path)?;
    let mut command = Command::new(&path);
    command.arg0(name).args(rest).envs(variables);
    Err(not_started(&path, &command.exec()).into())
}

/// Returns the error of a program that the system did not start, with the status of a shell.
fn not_started(path: &Path, error: &io::Error) -> NotStarted {
    let status = if error.kind() == io::ErrorKind::NotFound { NO_SUCH_PROGRAM } else { NOT_STARTED };
    NotStarted { why: format!("cannot start {}: {error}", path.display()), status }
}

/// Enters a namespace that shows the files of the devices in `variables`. Returns the variable by
/// which the program's children know that they are in it.
fn enter_namespace(variables: &[(&'static str, OsString)]) -> anyhow::Result<(&'static str, OsString)> {
    for (name, value) in variables.iter().filter(|(name, _)| *name != preload::VARIABLE) {
        // SAFETY: this process has no other thread yet that could read its environment.
        unsafe { env::set_var(name, value) };
    }
    let all = [DEVICES_VARIABLE, LINK_LAYER_VARIABLE, LINK_VARIABLE, MTU_VARIABLE];
    let said = all.map(|name| env::var_os(name).unwrap_or_default().to_string_lossy().into_owned());
    let devices = said.join("|");
    namespace::enter(&devices)?;
    Ok((namespace::VARIABLE, devices.into()))
}

/// Returns the environment variables that describe the devices to a process.
fn variables(arguments: &ExecArguments) -> anyhow::Result<Vec<(&'static str, OsString)>> {
    let mut variables = vec![(preload::VARIABLE, preload::value()?)];
    if let Some(layer) = arguments.link_layer {
        let value = layer.to_possible_value().context("clap has parsed this value")?;
        variables.push((LINK_LAYER_VARIABLE, value.get_name().into()));
    }
    if let Some(devices) = arguments.devices {
        variables.push((DEVICES_VARIABLE, devices.to_string().into()));
    }
    if let Some(link) = arguments.link {
        variables.push((LINK_VARIABLE, link.to_string().into()));
    }
    // By default, programs find the MTU that the kernel's software device would have.
    let usual = env::var_os(MTU_VARIABLE).is_none().then_some(PortMtu::Netdev);
    if let Some(mtu) = arguments.mtu.or(usual) {
        variables.push((MTU_VARIABLE, mtu.to_string().into()));
    }
    Ok(variables)
}

/// Replaces this process with a launcher whose ranks find the device.
fn wrap(program: &[OsString], variables: Vec<(&'static str, OsString)>) -> anyhow::Result<ExitCode> {
    let text = |word: &OsString| {
        let word = word.clone().into_string();
        word.map_err(|word| anyhow::anyhow!("--wrap: `{}` is not UTF-8", word.display()))
    };
    let words = program.iter().map(text).collect::<anyhow::Result<Vec<_>>>()?;
    let value = |(name, value): &(&'static str, OsString)| Ok((*name, text(value)?));
    let variables = variables.iter().map(value).collect::<anyhow::Result<Vec<_>>>()?;
    let words = launcher::wrapped(&words, &variables)?;
    let (name, rest) = words.split_first().context("clap asks for a program")?;
    let path = find_program(OsStr::new(name))?;
    let error = Command::new(&path).arg0(name).args(rest).exec();
    Err(not_started(&path, &error).into())
}

/// Finds a program as a shell does.
fn find_program(name: &OsStr) -> Result<PathBuf, NotStarted> {
    let none = |why: &str| {
        let why = format!("cannot start {}: {why}", name.display());
        NotStarted { why, status: NO_SUCH_PROGRAM }
    };
    if name.as_bytes().contains(&b'/') {
        return if Path::new(name).exists() { Ok(name.into()) } else { Err(none("there is no such file")) };
    }
    let paths = env::var_os("PATH").unwrap_or_default();
    let found = env::split_paths(&paths).map(|directory| directory.join(name)).find(|path| is_program(path));
    found.ok_or_else(|| none("PATH has no such program"))
}

fn is_program(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}

/// Refuses a program into which the dynamic linker preloads nothing.
fn check_program(path: &Path) -> anyhow::Result<()> {
    let shown = path.display();
    // If the file cannot be read, the error of starting it says more.
    let Ok(found) = fs::metadata(path) else { return Ok(()) };
    let user = rustix::process::geteuid().as_raw();
    let group = rustix::process::getegid().as_raw();
    let changes_user = found.mode() & 0o4000 != 0 && found.uid() != user;
    if changes_user || (found.mode() & 0o2010 == 0o2010 && found.gid() != group) {
        bail!(
            "{shown} runs with another user's rights (set-user-ID), so nothing may be preloaded: run a copy of it"
        );
    }
    let mut start = Vec::new();
    let read = File::open(path).and_then(|file| file.take(MOST_HEADERS).read_to_end(&mut start));
    match read.map(|_| Linkage::of(&start)) {
        Ok(Linkage::Static) => {
            bail!(
                "{shown} is linked statically, so nothing can be preloaded: it needs libibverbs as a shared library"
            )
        }
        Ok(Linkage::Foreign) => {
            bail!("{shown} is built for another architecture than rdmascope, so nothing can be preloaded")
        }
        Ok(Linkage::Dynamic | Linkage::Unknown) | Err(_) => Ok(()),
    }
}

/// Bytes of an ELF file that are searched for its headers: linkers put them at the start.
const MOST_HEADERS: u64 = 16 << 10;

/// How a program finds its libraries.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Linkage {
    Dynamic,
    Static,
    /// For another class or machine than this program.
    Foreign,
    /// A script, or no program at all.
    Unknown,
}

impl Linkage {
    /// Reads the linkage from the start of a file: an ELF program names its dynamic linker in a
    /// program header (elf(5), `PT_INTERP`).
    fn of(start: &[u8]) -> Self {
        const PT_INTERP: u32 = 3;
        let Some(own) = start.get(..64).filter(|start| start.starts_with(b"\x7fELF")) else {
            return Self::Unknown;
        };
        let half = |at: usize| u16::from_le_bytes([own[at], own[at + 1]]);
        let is_own_kind = own[4..6] == OWN_CLASS_AND_ORDER && half(18) == OWN_MACHINE;
        if !is_own_kind {
            return Self::Foreign;
        }
        let offset = u64::from_le_bytes(std::array::from_fn(|i| own[32 + i]));
        let size = u64::from(half(54));
        let count = u64::from(half(56));
        for i in 0..count {
            let at = offset.saturating_add(i * size);
            let word = usize::try_from(at).ok().and_then(|at| start.get(at..at.checked_add(4)?));
            match word.map(|word| u32::from_le_bytes([word[0], word[1], word[2], word[3]])) {
                Some(PT_INTERP) => return Self::Dynamic,
                Some(_) => {}
                None => return Self::Unknown,
            }
        }
        Self::Static
    }
}

/// `EI_CLASS` and `EI_DATA`: 64 bits, little-endian, as on all machines that the device supports.
const OWN_CLASS_AND_ORDER: [u8; 2] = [2, 1];
/// `e_machine` (elf.h: `EM_AARCH64`, `EM_RISCV`, `EM_X86_64`).
const OWN_MACHINE: u16 = if cfg!(target_arch = "aarch64") {
    183
} else if cfg!(target_arch = "riscv64") {
    243
} else {
    62
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn linkage_is_read_from_the_headers() {
        let own = fs::read(env::current_exe().unwrap()).unwrap();
        assert_eq!(Linkage::of(&own), Linkage::Dynamic);
        // Without the header that names the dynamic linker, the same program is a static one.
        let offset = usize::try_from(u64::from_le_bytes(own[32..40].try_into().unwrap())).unwrap();
        let size = usize::from(own[54]);
        let count = usize::from(own[56]);
        let mut without = own[..4096].to_vec();
        for at in (0..count).map(|i| offset + i * size).filter(|at| own[*at] == 3) {
            without[at] = 4;
        }
        assert_eq!(Linkage::of(&without), Linkage::Static);
        // If the headers are elsewhere, the linkage is unknown.
        without[38] = 0xff;
        assert_eq!(Linkage::of(&without), Linkage::Unknown);
        without[4] = 1;
        assert_eq!(Linkage::of(&without), Linkage::Foreign);
        assert_eq!(Linkage::of(b"#!/bin/sh\n"), Linkage::Unknown);
        assert_eq!(Linkage::of(b"\x7fELF"), Linkage::Unknown);
    }
}
