//! A machine under QEMU: started, listened to, and ended with us or at its deadline.
//!
//! QEMU's files are pipes of ours, and what the guest starts from is memory of ours: nothing of a
//! machine is on disk, so nothing is left behind, however it or we end.

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

/// What tells one machine from the other.
#[derive(Debug)]
pub(super) struct Seat {
    /// Its name for `ssh`, where there are two.
    pub(super) name: &'static str,
    /// The address of its eth0, in a network of 24 bits.
    pub(super) address: Ipv4Addr,
    mac: &'static str,
}

/// The machine that the command runs in.
pub(super) const FIRST: Seat =
    Seat { name: "vm", address: Ipv4Addr::new(10, 0, 2, 15), mac: "52:54:00:00:02:15" };
/// The one beside it.
pub(super) const PEER: Seat =
    Seat { name: "peer", address: Ipv4Addr::new(10, 0, 2, 16), mac: "52:54:00:00:02:16" };

/// What a machine is made of.
#[derive(Debug)]
pub(super) struct Parts<'a> {
    pub(super) kernel: &'a Path,
    pub(super) seat: &'a Seat,
    /// The archive that the kernel unpacks as its first file system.
    pub(super) archive: &'a [u8],
    /// Writable inside.
    pub(super) out: Option<&'a Path>,
    /// Whether time is the number of instructions.
    pub(super) is_counted: bool,
    /// The end of a cable to another machine: a connected stream socket.
    pub(super) cable: Option<OwnedFd>,
    pub(super) is_verbose: bool,
}

/// A running machine. Dropping it ends it.
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
    /// One that is up: of those that `start` starts the first, or else another. An emulated machine
    /// hangs in its start now and then, before its kernel has said a word.
    ///
    /// # Errors
    ///
    /// If neither comes up.
    pub(super) fn up(start: impl Fn() -> Result<Self>) -> Result<Self> {
        for limit in BOOT_TIMEOUTS {
            let mut machine = start()?;
            if machine.is_up(limit)? {
                return Ok(machine);
            }
        }
        bail!("the virtual machine does not come up")
    }

    /// Starts one.
    pub(super) fn start(parts: Parts<'_>) -> Result<Self> {
        let archive = File::from(memfd_create("initramfs", MemfdFlags::CLOEXEC)?);
        (&archive).write_all(parts.archive)?;
        let [console, output, errors, control] = [io::pipe()?, io::pipe()?, io::pipe()?, io::pipe()?];
        let writers = [&console.1, &output.1, &errors.1, &control.1];
        // QEMU is the only program that is started until they are closed.
        for inherited in writers {
            fcntl_setfd(inherited, FdFlags::empty())?;
        }
        fcntl_setfd(&archive, FdFlags::empty())?;
        parts.cable.as_ref().map(|cable| fcntl_setfd(cable, FdFlags::empty())).transpose()?;
        let start = Instant::now();
        // setpriv: the kernel ends QEMU when we end, even by SIGKILL.
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

    /// Waits until the machine is up and its command starts; where it is not within `limit`, says
    /// so, and it is ended.
    ///
    /// # Errors
    ///
    /// If it ends, or says something else.
    fn is_up(&mut self, limit: Duration) -> Result<bool> {
        match self.next(self.start + limit)? {
            Some(Report::Ready(uptime)) => {
                if self.is_verbose {
                    let seconds = self.start.elapsed().as_secs_f64();
                    eprintln!("xtask: vm: ready after {seconds:.1} s ({uptime} s since the kernel's start)");
                }
                Ok(true)
            }
            Some(report) => bail!("the virtual machine said {report:?} before its command started"),
            None => {
                self.end(Duration::ZERO);
                let limit = limit.as_secs();
                let console = &self.console;
                eprintln!("xtask: vm: the virtual machine did not come up within {limit} s{console}");
                Ok(false)
            }
        }
    }

    /// Waits until the command has ended, for `timeout` from its start, and gives its exit status,
    /// or 124 after the time limit, as timeout(1) does.
    ///
    /// # Errors
    ///
    /// If the machine ends without saying how the command did.
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

    /// The command's exit status; `None` if it takes longer than it may.
    fn status(&mut self, timeout: Duration) -> Result<Option<u8>> {
        match self.next(Instant::now() + timeout)? {
            Some(Report::Exit(status)) => Ok(Some(status)),
            Some(report) => bail!("the virtual machine said {report:?} while its command ran"),
            None => Ok(None),
        }
    }

    /// What the guest says next; `None` at the deadline.
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

    /// Waits for QEMU's end and kills it if that takes longer than `patience`; then everything it
    /// wrote is relayed.
    fn end(&mut self, patience: Duration) {
        // The guest's port is closed when QEMU ends.
        let ended = self.reports.recv_timeout(patience);
        if !matches!(ended, Err(RecvTimeoutError::Disconnected)) {
            // It fails only for a process that has been waited for.
            let _ = self.qemu.kill();
        }
        let _ = self.qemu.wait();
        for relay in self.relays.drain(..) {
            // It panics nowhere, and if it did its message is on standard error.
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
        // A nanosecond for each instruction, and none for being idle: the clock goes on to the next
        // timer.
        (true, _) => "-accel tcg,thread=single -smp 1 -icount shift=0,sleep=off",
        (false, None) => "-accel tcg,thread=multi -smp 2",
        // Two machines that poll keep two CPUs busy.
        (false, Some(_)) => "-accel tcg,thread=multi -smp 1",
    });
    // The emulated counter is the host's, but QEMU 7.2 will not say that its rate is constant
    // unless it is forced to. Clocks of programs (`measure::clock`) ask for that; the guest's
    // kernel is told by tsc=reliable, or would read the HPET, which takes it a microsecond.
    add(if is_steady { "-cpu max,+invtsc,x-force-features=on" } else { "-cpu max" });
    // No network but within the machine, or to the one at the other end of the cable.
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
        // In QEMU's options a comma is written twice.
        let path = out.to_string_lossy().replace(',', ",,");
        words.push(format!("local,path={path},mount_tag=out,security_model=none,multidevs=remap").into());
    }
    words.extend(["-initrd".into(), format!("/dev/fd/{}", archive.as_raw_fd()).into()]);
    words.extend(["-kernel".into(), parts.kernel.into()]);
    let clock = if is_steady { " tsc=reliable" } else { "" };
    // panic and oops: a guest whose kernel has failed ends, and -no-reboot ends QEMU. The rest
    // saves time that is not ours: tests of the kernel's own ciphers, watchdogs, defences that are
    // slow to emulate.
    let line = format!(
        "console=ttyS0 quiet panic=-1 oops=panic mitigations=off nokaslr no_timer_check cryptomgr.notests \
         nowatchdog{clock}"
    );
    words.extend(["-append".into(), line.into()]);
    words
}

/// Whether this machine's kernel trusts the time stamp counter (see `measure::clock`).
pub(super) fn host_counter_is_steady() -> bool {
    let sources = fs::read_to_string("/sys/devices/system/clocksource/clocksource0/available_clocksource");
    sources.is_ok_and(|names| names.split_whitespace().any(|name| name == "tsc"))
}

/// Copies what comes out of a pipe, as it comes.
fn relay(mut from: PipeReader, mut to: impl Write + Send + 'static) -> JoinHandle<()> {
    thread::spawn(move || {
        let mut buffer = [0; 1 << 16];
        let mut is_open = true;
        while let Ok(length @ 1..) = from.read(&mut buffer) {
            // Where nobody reads any longer, the rest is for nobody.
            is_open = is_open && to.write_all(&buffer[..length]).and_then(|()| to.flush()).is_ok();
        }
    })
}

/// Passes on the guest's lines; the channel closes with QEMU's end.
fn listen(from: PipeReader, to: Sender<Report>) -> JoinHandle<()> {
    thread::spawn(move || {
        for line in BufReader::new(from).lines().map_while(Result::ok) {
            let report = Report::parse(&line).unwrap_or_else(|| {
                Report::Failed(format!("the virtual machine said `{}`", line.escape_debug()))
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
                    // What comes after so many lines of a panic says less than how it begins.
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
/// A boot takes 4 s on a quiet machine; on one with other work it has been seen to take three times
/// as long.
const BOOT_TIMEOUTS: [Duration; 2] = [Duration::from_secs(30), Duration::from_secs(60)];
/// From the command's status to the end of QEMU it takes a tenth of a second.
const OFF_TIMEOUT: Duration = Duration::from_secs(10);
/// timeout(1) has the same.
const TIMED_OUT: u8 = 124;
/// A panic with its traces has about 40.
const TAIL_LINES: usize = 50;
