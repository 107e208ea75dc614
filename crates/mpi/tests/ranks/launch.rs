//! Starts programs under a launcher, with a time limit.

use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use mpi::Abi;

/// A program takes less than a second; one that hangs is killed.
const TIMEOUT: Duration = Duration::from_secs(60);

/// How to start programs of an MPI.
#[derive(Debug)]
pub(crate) struct Launcher {
    command: String,
    options: &'static [&'static str],
    pub(crate) library: String,
    pub(crate) version: &'static str,
    pub(crate) abi: Abi,
    /// The library is passed to the ranks by name, because the launcher's variables do not lead to
    /// it.
    is_named: bool,
}

impl Launcher {
    /// Returns the installed launchers. Reports missing ones, and fails if `mpi` is required.
    pub(crate) fn all() -> Vec<Self> {
        let required = std::env::var("RDMASCOPE_REQUIRE").unwrap_or_default();
        let mut launchers = Vec::new();
        for (command, package, launcher) in
            [("mpirun.openmpi", "openmpi-bin", Self::open_mpi()), ("mpirun.mpich", "mpich", Self::mpich())]
        {
            let works = Command::new(command).arg("--version").stdout(Stdio::null()).status();
            if works.is_ok_and(|status| status.success()) {
                launchers.push(launcher);
                continue;
            }
            assert!(!required.split(',').any(|word| word == "mpi"), "{command} is required here");
            println!("SKIPPED: {command} is not installed (apt-get install {package})");
        }
        if let Ok(prefix) = std::env::var("RDMASCOPE_MPI5_PREFIX") {
            launchers.extend(Self::mpich_5(&prefix));
        } else {
            println!("SKIPPED: no MPICH 5 for the standard ABI (RDMASCOPE_MPI5_PREFIX)");
        }
        launchers
    }

    fn open_mpi() -> Self {
        Self {
            command: "mpirun.openmpi".into(),
            options: &["--oversubscribe"],
            library: "libmpi.so.40".into(),
            version: "Open MPI v",
            abi: Abi::OpenMpi,
            is_named: false,
        }
    }

    fn mpich() -> Self {
        Self {
            command: "mpirun.mpich".into(),
            options: &[],
            library: "libmpich.so.12".into(),
            version: "MPICH ",
            abi: Abi::Mpich,
            is_named: false,
        }
    }

    /// MPICH 5 has a library of each ABI.
    fn mpich_5(prefix: &str) -> [Self; 2] {
        [("libmpi_abi.so.1", Abi::Standard), ("libmpi.so.12", Abi::Mpich)].map(|(name, abi)| Self {
            command: format!("{prefix}/bin/mpirun"),
            options: &[],
            library: format!("{prefix}/lib/{name}"),
            version: "MPICH 5",
            abi,
            is_named: true,
        })
    }

    /// A command with the variables that ranks need.
    fn command(&self, command: impl AsRef<std::ffi::OsStr>, program: &str) -> Command {
        let mut command = Command::new(command);
        command.env(crate::PROGRAM, program);
        // Open MPI's launcher refuses root without both.
        command.envs([("OMPI_ALLOW_RUN_AS_ROOT", "1"), ("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")]);
        if self.is_named {
            command.env("RDMASCOPE_MPI_LIBRARY", &self.library);
        }
        command
    }
}

/// Runs a program with a number of ranks, and returns what they printed.
pub(crate) fn run(launcher: &Launcher, ranks: usize, program: &str) -> String {
    let mut command = launcher.command(&launcher.command, program);
    command.arg("-np").arg(ranks.to_string()).args(launcher.options);
    finish(command.arg(own()), launcher)
}

/// Runs a program without the launcher.
pub(crate) fn run_alone(launcher: &Launcher, program: &str) -> String {
    let mut command = launcher.command(own(), program);
    finish(command.env("RDMASCOPE_MPI_LIBRARY", &launcher.library), launcher)
}

fn own() -> std::path::PathBuf {
    std::env::current_exe().expect("the test has a file")
}

/// Waits for a command that runs this binary's rank program, and kills it after the time limit.
fn finish(command: &mut Command, launcher: &Launcher) -> String {
    let file = tempfile(launcher);
    let output = std::fs::File::create(&file).expect("the directory is writable");
    let errors = output.try_clone().expect("it is open");
    command.args(["rank_program", "--exact", "--nocapture", "--test-threads=1"]);
    command.stdin(Stdio::null()).stdout(output).stderr(errors).process_group(0);
    let mut child = command.spawn().expect("the launcher starts");
    let start = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait().expect("it is our child") {
            break Some(status);
        }
        if start.elapsed() > TIMEOUT {
            // The launcher ends its ranks on SIGTERM; the process group is killed if it does not.
            signal(&child, "TERM");
            std::thread::sleep(Duration::from_secs(3));
            signal(&child, "KILL");
            let _ = child.wait();
            break None;
        }
        std::thread::sleep(Duration::from_millis(10));
    };
    let printed = String::from_utf8_lossy(&std::fs::read(&file).expect("it was written")).into_owned();
    std::fs::remove_file(&file).expect("it is there");
    let Some(status) = status else { panic!("{launcher:?} ran longer than {TIMEOUT:?}:\n{printed}") };
    assert!(status.success(), "{launcher:?}: {status}\n{printed}");
    printed
}

fn signal(child: &std::process::Child, signal: &str) {
    let group = format!("-{}", child.id());
    let _ = Command::new("kill").args([&format!("-{signal}"), "--", &group]).status();
}

/// A file that no other run writes.
fn tempfile(launcher: &Launcher) -> std::path::PathBuf {
    use std::sync::atomic::{AtomicU32, Ordering};
    static RUNS: AtomicU32 = AtomicU32::new(0);
    let run = RUNS.fetch_add(1, Ordering::Relaxed);
    let name =
        Path::new(&launcher.command).file_name().expect("it has a name").to_string_lossy().into_owned();
    std::env::temp_dir().join(format!("mpi-ranks-{}-{run}-{name}", std::process::id()))
}
