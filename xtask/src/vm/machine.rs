//! A machine under QEMU, which ends with this process or at its deadline.
//!
//! QEMU's files are pipes of this process, and the guest starts from memory of this process: a
//! machine has no files on disk, so nothing is left behind, however the machine or this process
//! ends.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, PipeReader, PipeWriter, Read, Write};
use std::net::Ipv4Addr;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rustix::fs::{MemfdFlags, memfd_create};
use rustix::io::{FdFlags, fcntl_setfd};

use super::script::Report;

/// The name and the addresses of a machine.
#[derive(Debug)]
pub(super) struct Seat {
    /// The name for `ssh` between two machines.
    pub(super) name: &'static str,
    /// The address of eth0, in a network of 24 bits.
    pub(super) address: Ipv4Addr,
    mac: &'static str,
}

/// The machine in which the command runs.
pub(super) const FIRST: Seat =
    Seat { name: "vm", address: Ipv4Addr::new(10, 0, 2, 15), mac: "52:54:00:00:02:15" };
/// The second machine.
pub(super) const PEER: Seat =
    Seat { name: "peer", address: Ipv4Addr::new(10, 0, 2, 16), mac: "52:54:00:00:02:16" };

/// The parts of a machine.
#[derive(Debug)]
pub(super) struct Parts<'a> {
    pub(super) kernel: &'a Path,
    pub(super) seat: &'a Seat,
    /// The archive that the kernel unpacks as its first file system.
    pub(super) archive: &'a [u8],
    /// A directory of the host that the guest may write.
    pub(super) out: Option<&'a Path>,
    /// Whether the clock counts instructions.
    pub(super) is_counted: bool,
    /// The cable to another machine: a connected stream socket.
    pub(super) cable: Option<OwnedFd>,
    pub(super) is_verbose: bool,
}

/// A running machine. It ends when it is dropped.
#[derive(Debug)]
pub(super) struct Machine {
    qemu: Child,
    start: Instant,
    reports: Receiver<Report>,
    relays: Vec<JoinHandle<()>>,
    console: Tail,
    is_verbose: bool,
}

impl Machine {
    /// Starts a machine with `start` and waits until it is up. If it does not come up, a second
    /// machine is started: an emulated machine sometimes hangs before its kernel prints anything.
    ///
    /// # Errors
    ///
    /// If neither machine comes up.
    pub(super) fn up(start: impl Fn() -> Result<Self>) -> Result<Self> {
        for limit in BOOT_TIMEOUTS {
            let mut machine = start()?;
            if machine.is_up(limit)? {
                return Ok(machine);
            }
        }
        bail!("the virtual machine did not come up, twice")
    }

    /// Starts a machine.
    pub(super) fn start(parts: Parts<'_>) -> Result<Self> {
        let archive = File::from(memfd_create("initramfs", MemfdFlags::CLOEXEC)?);
        (&archive).write_all(parts.archive)?;
        let [console, output, errors, control] = [io::pipe()?, io::pipe()?, io::pipe()?, io::pipe()?];
        let writers = [&console.1, &output.1, &errors.1, &control.1];
        // No other program is started before these pipes are closed.
        for inherited in writers {
            fcntl_setfd(inherited, FdFlags::empty())?;
        }
        fcntl_setfd(&archive, FdFlags::empty())?;
        parts.cable.as_ref().map(|cable| fcntl_setfd(cable, FdFlags::empty())).transpose()?;
        let start = Instant::now();
        // setpriv: the kernel kills QEMU when this process ends, even by SIGKILL.
        let mut qemu = Command::new("setpriv")
            .args(["--pdeathsig", "KILL", "--", QEMU])
            .args(arguments(&parts, &archive, writers))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .with_context(|| format!("cannot start setpriv and {QEMU}"))?;
        let tail = Tail { lines: Arc::default(), is_verbose: parts.is_verbose };
        let (sender, reports) = mpsc::channel();
        let mut relays = vec![
            relay(output.0, io::stdout()),
            relay(errors.0, io::stderr()),
            listen(control.0, sender),
            tail.follow(console.0),
        ];
        relays.extend(qemu.stderr.take().map(|errors| tail.follow(errors)));
        Ok(Self { qemu, start, reports, relays, console: tail, is_verbose: parts.is_verbose })
    }

    /// Waits until the machine is up and its command starts. If this takes longer than `limit`,
    /// prints a message, ends the machine and returns false.
    ///
    /// # Errors
    ///
    /// If the machine ends or sends another report.
    fn is_up(&mut self, limit: Duration) -> Result<bool> {
        match self.next(self.start + limit)? {
            Some(Report::Ready(uptime)) => {
                if self.is_verbose {
                    let seconds = self.start.elapsed().as_secs_f64();
                    eprintln!("xtask: vm: ready after {seconds:.1} s ({uptime} s since the kernel's start)");
                }
                Ok(true)
            }
            Some(report) => bail!("the virtual machine reported {report:?} before its command started"),
            None => {
                self.end(Duration::ZERO);
                let limit = limit.as_secs();
                let console = &self.console;
                eprintln!("xtask: vm: the virtual machine did not come up within {limit} s{console}");
                Ok(false)
            }
        }
    }

    /// Waits until the command has ended, at most `timeout` from its start. Returns the command's
    /// exit status, or 124 after the time limit, as timeout(1) does.
    ///
    /// # Errors
    ///
    /// If the machine ends without reporting the command's exit status.
    pub(super) fn run(mut self, timeout: Duration) -> Result<u8> {
        let status = self.status(timeout)?;
        self.end(if status.is_some() { OFF_TIMEOUT } else { Duration::ZERO });
        Ok(status.unwrap_or_else(|| {
            let limit = timeout.as_secs();
            eprintln!(
                "xtask: vm: the command ran for {limit} s, its limit: the machine was ended (see --timeout)"
            );
            TIMED_OUT
        }))
    }

    /// The command's exit status; `None` after the time limit.
    fn status(&mut self, timeout: Duration) -> Result<Option<u8>> {
        match self.next(Instant::now() + timeout)? {
            Some(Report::Exit(status)) => Ok(Some(status)),
            Some(report) => bail!("the virtual machine reported {report:?} while its command ran"),
            None => Ok(None),
        }
    }

    /// The guest's next report; `None` at the deadline.
    fn next(&mut self, deadline: Instant) -> Result<Option<Report>> {
        match self.reports.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
            Ok(Report::Failed(why)) => {
                self.end(OFF_TIMEOUT);
                bail!("{why}")
            }
            Ok(report) => Ok(Some(report)),
            Err(RecvTimeoutError::Timeout) => Ok(None),
            Err(RecvTimeoutError::Disconnected) => {
                self.end(OFF_TIMEOUT);
                bail!("the virtual machine ended without an exit status{}", self.console)
            }
        }
    }

    /// Waits until QEMU ends, and kills it after `patience`. When this returns, all output has been
    /// relayed.
    fn end(&mut self, patience: Duration) {
        // The channel of reports closes when QEMU ends.
        let ended = self.reports.recv_timeout(patience);
        if !matches!(ended, Err(RecvTimeoutError::Disconnected)) {
            // `kill` fails only for a process that has been waited for.
            let _ = self.qemu.kill();
        }
        let _ = self.qemu.wait();
        for relay in self.relays.drain(..) {
            // If a relay panics, its message is on standard error.
            let _ = relay.join();
        }
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        self.end(Duration::ZERO);
    }
}

/// QEMU's command line.
fn arguments(parts: &Parts<'_>, archive: &File, writers: [&PipeWriter; 4]) -> Vec<OsString> {
    let is_steady = host_counter_is_steady();
    let mut words: Vec<OsString> = Vec::new();
    let mut add = |list: &str| words.extend(list.split(' ').map(OsString::from));
    add("-nodefaults -no-user-config -no-reboot -display none -M pc -m 2G");
    add(match (parts.is_counted, &parts.cable) {
        // An instruction takes 1 ns. Idle time takes none: the clock jumps to the next timer.
        (true, _) => "-accel tcg,thread=single -smp 1 -icount shift=0,sleep=off",
        (false, None) => "-accel tcg,thread=multi -smp 2",
        // Two machines that poll keep two CPUs of the host busy.
        (false, Some(_)) => "-accel tcg,thread=multi -smp 1",
    });
    // The emulated time stamp counter is the host's, but QEMU 7.2 reports a constant rate only if
    // it is forced to. Programs need the constant rate (`measure::clock`). tsc=reliable makes the
    // guest's kernel use the counter: reading the HPET would take 1 us.
    add(if is_steady { "-cpu max,+invtsc,x-force-features=on" } else { "-cpu max" });
    // No network but within the machine, or to the machine behind the cable.
    match &parts.cable {
        None => add("-netdev user,id=net,restrict=on,ipv6=off"),
        Some(cable) => add(&format!("-netdev socket,id=net,fd={}", cable.as_raw_fd())),
    }
    add(&format!("-device virtio-net-pci,netdev=net,romfile=,mac={}", parts.seat.mac));
    add("-device virtio-serial-pci");
    for (number, (name, pipe)) in ["console", "stdout", "stderr", "control"].iter().zip(writers).enumerate() {
        add(&format!("-chardev file,id={name},path=/dev/fd/{}", pipe.as_raw_fd()));
        match number {
            0 => add("-serial chardev:console"),
            _ => add(&format!("-device virtserialport,chardev={name},nr={number}")),
        }
    }
    add("-virtfs local,path=/,mount_tag=root,security_model=none,readonly=on,multidevs=remap");
    if let Some(out) = parts.out {
        words.push("-virtfs".into());
        // QEMU's options escape a comma by a second one.
        let path = out.to_string_lossy().replace(',', ",,");
        words.push(format!("local,path={path},mount_tag=out,security_model=none,multidevs=remap").into());
    }
    words.extend(["-initrd".into(), format!("/dev/fd/{}", archive.as_raw_fd()).into()]);
    words.extend(["-kernel".into(), parts.kernel.into()]);
    let clock = if is_steady { " tsc=reliable" } else { "" };
    // panic and oops: a guest whose kernel has failed reboots, and -no-reboot ends QEMU. The other
    // words save time: tests of the kernel's ciphers, watchdogs, and defences that are slow to
    // emulate.
    let line = format!(
        "console=ttyS0 quiet panic=-1 oops=panic mitigations=off nokaslr no_timer_check cryptomgr.notests \
         nowatchdog{clock}"
    );
    words.extend(["-append".into(), line.into()]);
    words
}

/// Whether the host's kernel uses the time stamp counter as a clock (see `measure::clock`).
pub(super) fn host_counter_is_steady() -> bool {
    let sources = fs::read_to_string("/sys/devices/system/clocksource/clocksource0/available_clocksource");
    sources.is_ok_and(|names| names.split_whitespace().any(|name| name == "tsc"))
}

/// Copies the bytes of a pipe as they arrive.
fn relay(mut from: PipeReader, mut to: impl Write + Send + 'static) -> JoinHandle<()> {
    thread::spawn(move || {
        let mut buffer = [0; 1 << 16];
        let mut is_open = true;
        while let Ok(length @ 1..) = from.read(&mut buffer) {
            // If the output is closed, the rest is read and dropped.
            is_open = is_open && to.write_all(&buffer[..length]).and_then(|()| to.flush()).is_ok();
        }
    })
}

/// Reads the guest's reports and sends them to a channel, which closes when QEMU ends.
fn listen(from: PipeReader, to: Sender<Report>) -> JoinHandle<()> {
    thread::spawn(move || {
        for line in BufReader::new(from).lines().map_while(Result::ok) {
            let report = Report::parse(&line).unwrap_or_else(|| {
                Report::Failed(format!(
                    "the virtual machine sent an unknown report `{}`",
                    line.escape_debug()
                ))
            });
            if to.send(report).is_err() {
                return;
            }
        }
    })
}

/// The last lines of the guest's console and of QEMU's messages.
#[derive(Debug)]
struct Tail {
    lines: Arc<Mutex<VecDeque<String>>>,
    is_verbose: bool,
}

impl Tail {
    fn follow(&self, from: impl Read + Send + 'static) -> JoinHandle<()> {
        let lines = Arc::clone(&self.lines);
        let is_verbose = self.is_verbose;
        thread::spawn(move || {
            for line in BufReader::new(from).split(b'\n').map_while(Result::ok) {
                let line: String =
                    String::from_utf8_lossy(&line).chars().filter(|c| !c.is_control()).collect();
                if is_verbose {
                    eprintln!("vm: {line}");
                }
                let mut lines = lines.lock().unwrap_or_else(PoisonError::into_inner);
                if lines.len() == TAIL_LINES {
                    // The first lines of a panic are more useful than its end.
                    if lines.front().is_some_and(|first| first.contains("Kernel panic")) {
                        continue;
                    }
                    lines.pop_front();
                }
                lines.push_back(line);
            }
        })
    }
}

impl std::fmt::Display for Tail {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.is_verbose {
            return Ok(());
        }
        let lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        if lines.is_empty() {
            return write!(f, "; its console shows nothing");
        }
        write!(f, "; the last lines of its console:")?;
        lines.iter().try_for_each(|line| write!(f, "\n  {line}"))
    }
}

const QEMU: &str = "qemu-system-x86_64";
/// A boot takes 4 s on a quiet host, and up to three times as long on a busy one.
const BOOT_TIMEOUTS: [Duration; 2] = [Duration::from_secs(30), Duration::from_secs(60)];
/// QEMU ends 0.1 s after it has reported the command's status.
const OFF_TIMEOUT: Duration = Duration::from_secs(10);
/// The exit status of timeout(1) after its limit.
const TIMED_OUT: u8 = 124;
/// A panic with its traces has about 40 lines.
const TAIL_LINES: usize = 50;
