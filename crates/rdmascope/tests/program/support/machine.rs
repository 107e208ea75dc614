//! How the tests share the machine, so that two CPUs are enough for all of them.
//!
//! A test that waits for the whole machine gets it when no other test runs. It holds a thread
//! meanwhile: with as many threads as tests, all other tests run first, beside each other, and then
//! these, one at a time. With fewer threads, the CPUs idle while a test waits for a timeout.

use std::fs::File;
use std::path::Path;
use std::time::Duration;

use rustix::fs::{FlockOperation, flock};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// Takes the number of threads from a variable of these tests alone, which start all at once; tests
/// of other crates lock nothing.
extern "C" fn take_threads() {
    if let Some(threads) = std::env::var_os("RDMASCOPE_TEST_THREADS") {
        // SAFETY: constructors run before `main`, when the process has one thread.
        unsafe { std::env::set_var("RUST_TEST_THREADS", threads) };
    }
}

#[used]
// SAFETY: the section holds pointers to functions that take nothing and return.
#[unsafe(link_section = ".init_array")]
static TAKE_THREADS: extern "C" fn() = take_threads;

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
        Self::of_one_cpu(&["cpu"])
    }

    /// Waits for one CPU that tests of this kind use, two at a time because they mostly wait,
    /// beside tests of [`one_cpu`](Self::one_cpu), but not beside a test that has the whole
    /// machine.
    pub(crate) fn beside() -> Self {
        Self::of_one_cpu(&["beside", "also"])
    }

    /// Waits for one CPU, which one test at a time has for each of these purposes.
    fn of_one_cpu(purposes: &[&str]) -> Self {
        let machine = locked("machine", FlockOperation::LockShared);
        let before = sched_getaffinity(None).unwrap();
        let all: Vec<usize> = (0..CpuSet::MAX_CPU).filter(|cpu| before.is_set(*cpu)).collect();
        let (cpu, own) = loop {
            let mut places = purposes.iter().flat_map(|purpose| all.iter().map(move |cpu| (purpose, *cpu)));
            let free = places.find_map(|(purpose, cpu)| {
                let file = lock(&format!("{purpose}{cpu}"));
                flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok().then_some((cpu, file))
            });
            match free {
                Some(free) => break free,
                None => std::thread::sleep(Duration::from_millis(50)),
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
