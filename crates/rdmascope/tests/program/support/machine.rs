//! How the tests share the machine, so that two CPUs are enough for all of them.

use std::fs::File;
use std::path::Path;
use std::time::Duration;

use rustix::fs::{FlockOperation, flock};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// A part of the machine that no other test measures on, until the value is dropped.
pub(crate) struct Share {
    _locks: Vec<File>,
    /// The CPUs that the thread of the test may use again afterwards.
    before: Option<CpuSet>,
}

impl Share {
    /// Waits for the whole machine.
    pub(crate) fn all() -> Self {
        Self { _locks: vec![locked("machine", FlockOperation::LockExclusive)], before: None }
    }

    /// Waits for one CPU, for this thread and the processes that it starts.
    pub(crate) fn one_cpu() -> Self {
        Self::of_one_cpu("cpu")
    }

    /// Waits until no other test has all CPUs. Tests of [`one_cpu`](Self::one_cpu) and
    /// [`beside`](Self::beside) run at the same time.
    pub(crate) fn all_cpus() -> Self {
        let cpus = locked("cpus", FlockOperation::LockExclusive);
        Self { _locks: vec![cpus, locked("machine", FlockOperation::LockShared)], before: None }
    }

    /// Waits for one CPU that tests of this kind use, beside tests of [`one_cpu`](Self::one_cpu),
    /// but not beside a test that has the whole machine.
    pub(crate) fn beside() -> Self {
        Self::of_one_cpu("beside")
    }

    /// Waits for one CPU, which one test at a time has for a purpose.
    fn of_one_cpu(purpose: &str) -> Self {
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
        Self { _locks: vec![machine, own], before: Some(before) }
    }
}

impl Drop for Share {
    fn drop(&mut self) {
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
