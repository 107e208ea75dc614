//! How the tests share the machine, so that two CPUs are enough for all of them.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::time::Duration;

use measure::clock::Deadline;
use rustix::fs::{FlockOperation, flock};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// Names the file to which each test adds which part of the machine it has had, and for how many
/// seconds: what takes longest bounds the time of all tests.
const LOG_VARIABLE: &str = "RDMASCOPE_TEST_SHARES";

/// A part of the machine that no other test measures on, until the value is dropped.
pub(crate) struct Share {
    _locks: Vec<File>,
    /// Which part it is, and since when.
    part: &'static str,
    since: Deadline,
    /// The CPUs that the thread of the test may use again afterwards.
    before: Option<CpuSet>,
}

impl Share {
    /// Waits for the whole machine.
    pub(crate) fn all() -> Self {
        Self::new("machine", vec![locked("machine", FlockOperation::LockExclusive)], None)
    }

    /// Waits for one CPU, for this thread and the processes that it starts.
    pub(crate) fn one_cpu() -> Self {
        Self::of_one_cpu("cpu")
    }

    /// Waits until no other test has all CPUs. Tests of [`one_cpu`](Self::one_cpu) and
    /// [`beside`](Self::beside) run at the same time.
    pub(crate) fn all_cpus() -> Self {
        let cpus = locked("cpus", FlockOperation::LockExclusive);
        Self::new("cpus", vec![cpus, locked("machine", FlockOperation::LockShared)], None)
    }

    /// Waits for one CPU that tests of this kind use, beside tests of [`one_cpu`](Self::one_cpu),
    /// but not beside a test that has the whole machine.
    pub(crate) fn beside() -> Self {
        Self::of_one_cpu("beside")
    }

    /// Waits for one CPU, which one test at a time has for a purpose.
    fn of_one_cpu(purpose: &'static str) -> Self {
        let machine = locked("machine", FlockOperation::LockShared);
        let before = sched_getaffinity(None).unwrap();
        let all: Vec<usize> = (0..CpuSet::MAX_CPU).filter(|cpu| before.is_set(*cpu)).collect();
        let (cpu, own) = loop {
            let free = all.iter().find_map(|cpu| {
                let file = lock(&format!("{purpose}{cpu}"));
                flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok().then_some((*cpu, file))
            });
            match free {
                Some(free) => break free,
                None => std::thread::sleep(Duration::from_millis(10)),
            }
        };
        let mut only = CpuSet::new();
        only.set(cpu);
        sched_setaffinity(None, &only).unwrap();
        Self::new(purpose, vec![machine, own], Some(before))
    }

    fn new(part: &'static str, locks: Vec<File>, before: Option<CpuSet>) -> Self {
        Self { _locks: locks, part, since: Deadline::after(Duration::MAX), before }
    }

    /// Adds the time for which a test has had its part to the file that a variable names.
    fn log(&self) -> Option<()> {
        let path = std::env::var_os(LOG_VARIABLE)?;
        let mut file = File::options().create(true).append(true).open(path).ok()?;
        let thread = std::thread::current();
        let seconds = self.since.elapsed().as_secs_f64();
        let line = format!("{seconds:.1} {} {}\n", self.part, thread.name().unwrap_or_default());
        file.write_all(line.as_bytes()).ok()
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.log();
        if let Some(before) = &self.before {
            sched_setaffinity(None, before).unwrap();
        }
    }
}

fn locked(name: &str, operation: FlockOperation) -> File {
    let file = lock(name);
    flock(&file, operation).unwrap();
    file
}

/// Opens the file of a lock, which tests of other processes use, too.
fn lock(name: &str) -> File {
    File::create(Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}.lock"))).unwrap()
}
