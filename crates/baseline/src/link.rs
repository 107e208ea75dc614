//! Two processes on two CPUs, and the memory that they share.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Release};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use measure::clock::Clock;
use rustix::fs::MemfdFlags;
use rustix::mm::{MapFlags, ProtFlags};
use rustix::process::{Pid, Signal};
use rustix::thread::CpuSet;

/// The word before the descriptor and the ID of the process that started this one.
pub(crate) const JOIN: &str = "--join";

/// How long the other process may take for its next step: on a busy machine it may wait long for
/// its CPU.
const PATIENCE: Duration = Duration::from_secs(5);
/// Polls between readings of the clock.
const SPINS: u32 = 1024;
/// The interval of checks whether the second process has ended.
const PAUSE: Duration = Duration::from_millis(1);
/// The size of a message, in bytes.
pub(crate) const MESSAGE_BYTES: usize = 1 << 20;
/// Messages that may be outstanding: the sender writes one while the receiver reads another.
pub(crate) const WINDOW: u64 = 4;
/// The control words in front of the messages, in pages of their own.
const CONTROL_BYTES: usize = 1 << 16;
const PAGE: usize = 4096;
/// Pages behind the control words.
const PAGES: usize = WINDOW as usize * MESSAGE_BYTES / PAGE;
/// The words that a process can pass to the other.
pub(crate) const CARD_WORDS: usize = 8;

/// Which of the two processes this is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Side {
    /// It measures and receives, on the second CPU.
    First,
    /// It sends, on the first CPU.
    Second,
}

/// The arguments that the second process receives from the first.
pub(crate) struct Join {
    pub(crate) fd: u32,
    pub(crate) parent: u32,
}

/// A word in a pair of cache lines of its own: prefetchers fetch adjacent lines in pairs (Intel
/// optimisation manual, 2.1.5.4).
#[repr(C, align(128))]
pub(crate) struct Word(pub(crate) AtomicU64);

/// The words that a process passes to the other, once.
#[repr(C, align(128))]
struct Card {
    words: [AtomicU64; CARD_WORDS],
    told: AtomicU64,
}

/// The memory in front of the messages.
#[repr(C)]
pub(crate) struct Control {
    /// The number of messages that were written, and that the receiver has finished with.
    pub(crate) written: Word,
    pub(crate) taken: Word,
    cards: [Card; 2],
}

const _: () = assert!(size_of::<Control>() <= CONTROL_BYTES);

/// One process's view of the link.
pub(crate) struct Link {
    pub(crate) side: Side,
    pub(crate) clock: Clock,
    base: *mut u8,
    child: Option<Child>,
}

impl Link {
    /// Starts the second process.
    pub(crate) fn start(what: &str, cpus: [usize; 2]) -> Result<Self> {
        ensure!(cpus[0] != cpus[1], "both CPUs are {}: name two different CPUs", cpus[0]);
        // Without CLOEXEC: the second process inherits it.
        let memory = rustix::fs::memfd_create("baseline", MemfdFlags::empty())?;
        rustix::fs::ftruncate(&memory, length() as u64)?;
        let mut link = Self::map(Side::First, memory.as_fd(), cpus[1])?;
        let mut command = Command::new(std::env::current_exe()?);
        command.args([what, &cpus[0].to_string(), &cpus[1].to_string(), JOIN]);
        command.args([memory.as_raw_fd().to_string(), std::process::id().to_string()]);
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).spawn();
        link.child = Some(child.context("cannot start the second process")?);
        Ok(link)
    }

    /// Attaches the second process.
    pub(crate) fn join(join: &Join, cpus: [usize; 2]) -> Result<Self> {
        rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
        let parent = rustix::process::getppid().map(Pid::as_raw_nonzero).map(|pid| pid.get());
        ensure!(
            parent.and_then(|pid| u32::try_from(pid).ok()) == Some(join.parent),
            "the first process has ended"
        );
        let fd = i32::try_from(join.fd)?;
        // SAFETY: the process that started this one has left the descriptor open for it and passes
        // its number; nothing else here owns it.
        let memory: OwnedFd = unsafe { std::os::fd::FromRawFd::from_raw_fd(fd) };
        Self::map(Side::Second, memory.as_fd(), cpus[0])
    }

    fn map(side: Side, memory: BorrowedFd<'_>, cpu: usize) -> Result<Self> {
        let mut only = CpuSet::new();
        ensure!(cpu < CpuSet::MAX_CPU, "there is no CPU {cpu}");
        only.set(cpu);
        let pinned = rustix::thread::sched_setaffinity(None, &only);
        pinned.with_context(|| {
            format!("cannot pin to CPU {cpu}: is it online, and in the cpuset of this process?")
        })?;
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        let flags = MapFlags::SHARED | MapFlags::POPULATE;
        // SAFETY: a new mapping at an address that the kernel chooses does not change existing
        // memory. It is never unmapped.
        let base = unsafe { rustix::mm::mmap(std::ptr::null_mut(), length(), protection, flags, memory, 0)? };
        Ok(Self { side, clock: Clock::monotonic(), base: base.cast(), child: None })
    }

    pub(crate) fn control(&self) -> &Control {
        // SAFETY: the mapping is long enough, page-aligned and lives as long as the process; the
        // structure contains only atomics, for which all bytes are valid.
        unsafe { &*self.base.cast() }
    }

    /// The address of message `n`: `WINDOW` places are used in turn.
    pub(crate) fn place(&self, n: u64) -> *mut u8 {
        let place = (n % WINDOW) as usize;
        // SAFETY: the mapping has space for that many messages behind the control words.
        unsafe { self.base.add(CONTROL_BYTES + place * MESSAGE_BYTES) }
    }

    /// A word of a cache line in a page of its own, in the memory that otherwise holds messages.
    pub(crate) fn line(&self, page: usize) -> &AtomicU64 {
        // SAFETY: the page lies behind the control words; the mapping lives as long as the process,
        // is zeroed at first, and contains only atomics when lines are measured.
        unsafe { AtomicU64::from_ptr(self.base.add(CONTROL_BYTES + page % PAGES * PAGE).cast()) }
    }

    /// Passes some words to the other process and returns its words.
    pub(crate) fn exchange(&self, own: &[u64; CARD_WORDS]) -> Result<[u64; CARD_WORDS]> {
        let [first, second] = &self.control().cards;
        let (ours, theirs) = if self.side == Side::First { (first, second) } else { (second, first) };
        for (to, word) in ours.words.iter().zip(own) {
            to.store(*word, Release);
        }
        ours.told.store(1, Release);
        self.wait(|| theirs.told.load(Acquire) == 1)?;
        Ok(std::array::from_fn(|i| theirs.words[i].load(Acquire)))
    }

    /// Polls until a condition is true.
    ///
    /// # Errors
    /// If the condition is not true in time.
    #[inline]
    pub(crate) fn wait(&self, mut is_so: impl FnMut() -> bool) -> Result<()> {
        let mut spins = 0;
        let mut end = None;
        while !is_so() {
            std::hint::spin_loop();
            spins += 1;
            if spins == SPINS {
                spins = 0;
                let now = self.clock.now().0;
                let end = *end.get_or_insert(now.saturating_add(self.clock.ticks(PATIENCE)));
                ensure!(now < end, "the other process does not answer within {} s", PATIENCE.as_secs());
            }
        }
        Ok(())
    }

    /// Waits until the second process has ended successfully.
    pub(crate) fn finish(&mut self) -> Result<()> {
        let Some(child) = &mut self.child else { return Ok(()) };
        let end = self.clock.now().0.saturating_add(self.clock.ticks(PATIENCE));
        while self.clock.now().0 < end {
            if let Some(status) = child.try_wait()? {
                ensure!(status.success(), "the second process failed ({status})");
                return Ok(());
            }
            std::thread::sleep(PAUSE);
        }
        bail!("the second process does not end within {} s", PATIENCE.as_secs())
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn length() -> usize {
    CONTROL_BYTES + WINDOW as usize * MESSAGE_BYTES
}
