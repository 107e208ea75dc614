//! Functions of all tests of the program: start it with a deadline, find what it leaves behind,
//! read records.

pub(crate) mod failures;
pub(crate) mod hands;
mod machine;
pub(crate) mod moments;
pub(crate) mod namespaces;
pub(crate) mod processes;
pub(crate) mod python;
pub(crate) mod schema;
pub(crate) mod slurm;
pub(crate) mod switch;

use std::ffi::OsStr;
use std::fs;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::LazyLock;
use std::time::{Duration, Instant};

use measure::record::{Point, Run, Status};
use measure::store::RunReader;
use rustix::process::Signal;

use machine::Share;

/// The program under test: the program that is built with the tests, unless another one is named.
pub(crate) static PROGRAM: LazyLock<&str> = LazyLock::new(|| {
    let tested = std::env::var("RDMASCOPE_TESTED");
    tested.map_or(env!("CARGO_BIN_EXE_rdmascope"), |path| path.leak())
});

/// A program that runs longer than this has hung. The longest, a fleet in an emulated machine
/// ([`crate::kernel_fleet`]), takes about half of it.
pub(crate) const DEADLINE: Duration = Duration::from_secs(240);

/// Name of the variable by which the processes of a test are found.
pub(crate) const TOKEN: &str = "RDMASCOPE_TEST_TOKEN";

/// The scratch directory of a test, and the processes that have its name in their environment.
pub(crate) struct Scratch {
    dir: tempfile::TempDir,
    _share: Option<Share>,
}

/// The output of a program that has ended, and its exit status.
#[derive(Debug)]
pub(crate) struct Ended {
    /// The exit status; none after a signal.
    pub(crate) status: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Scratch {
    /// For a test that measures nothing.
    pub(crate) fn new() -> Self {
        Self::sharing(None)
    }

    /// For a test that measures: waits until no other test does.
    pub(crate) fn alone() -> Self {
        Self::sharing(Some(Share::all()))
    }

    /// For a test that measures with a CPU for each rank and asserts no times: beside tests that
    /// have one CPU.
    pub(crate) fn on_all_cpus() -> Self {
        Self::sharing(Some(Share::all_cpus()))
    }

    /// For a test that measures and asserts no times: on one CPU, beside other tests of this kind.
    pub(crate) fn on_one_cpu() -> Self {
        Self::sharing(Some(Share::one_cpu()))
    }

    /// For a test that measures little and waits for timeouts: beside all tests that assert no
    /// times.
    pub(crate) fn waiting() -> Self {
        Self::sharing(Some(Share::beside()))
    }

    fn sharing(share: Option<Share>) -> Self {
        Self { dir: tempfile::tempdir().unwrap(), _share: share }
    }

    pub(crate) fn path(&self) -> &Path {
        self.dir.path()
    }

    /// Returns a path in the directory.
    pub(crate) fn at(&self, name: &str) -> PathBuf {
        self.path().join(name)
    }

    /// Writes a file into the directory.
    pub(crate) fn write(&self, name: &str, text: impl AsRef<[u8]>) -> PathBuf {
        let path = self.at(name);
        fs::write(&path, text).unwrap();
        path
    }

    /// Writes a script that can be run, and returns its path.
    pub(crate) fn write_script(&self, name: &str, text: impl AsRef<[u8]>) -> PathBuf {
        let path = self.write(name, text);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        path
    }

    /// Returns a command that runs in the directory, with its name in the environment and the
    /// directory as `TMPDIR`. Its cache is also there, because the latencies of other runs could
    /// mark points as unstable.
    pub(crate) fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let tmp = self.at("tmp");
        fs::create_dir_all(&tmp).unwrap();
        let mut command = Command::new(program);
        command
            .current_dir(self.path())
            .env(TOKEN, self.token())
            .env("TMPDIR", tmp)
            .env("XDG_CACHE_HOME", self.at("cache"))
            .env_remove("COLUMNS")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    /// Returns the program under test with these arguments.
    pub(crate) fn program<A: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = A>) -> Command {
        let mut command = self.command(*PROGRAM);
        command.args(arguments);
        command
    }

    /// Returns a shell in which the program under test is `"$0"`.
    pub(crate) fn shell(&self, script: &str) -> Command {
        let mut command = self.command("sh");
        command.args(["-c", script, *PROGRAM]);
        command
    }

    /// Runs the program to its end.
    pub(crate) fn run(&self, arguments: &[&str]) -> Ended {
        finish(self.program(arguments))
    }

    /// Runs the program to its end, which must be exit status 0 with nothing on standard error.
    pub(crate) fn succeed(&self, arguments: &[&str]) -> String {
        let ended = self.run(arguments);
        assert_eq!((ended.status, ended.stderr.as_str()), (Some(0), ""), "{arguments:?}: {ended:?}");
        ended.stdout
    }

    /// Runs the program, which must refuse with one line on standard error that has these words.
    #[track_caller]
    pub(crate) fn refused(&self, arguments: &[&str], status: i32, words: &[&str]) -> String {
        let ended = self.run(arguments);
        assert_eq!(ended.status, Some(status), "{arguments:?}: {ended:?}");
        let message = ended.stderr.trim_end().to_owned();
        assert_eq!(message.lines().count(), 1, "{arguments:?}: one sentence, not {message}");
        assert!(message.starts_with("rdmascope: "), "{message}");
        for word in words {
            assert!(message.contains(word), "{arguments:?}: no {word:?} in {message}");
        }
        assert_eq!(ended.stdout, "", "{arguments:?} printed results");
        message
    }

    /// Returns the name by which the processes of this test are found.
    pub(crate) fn token(&self) -> String {
        self.path().display().to_string()
    }

    /// Reads a record in the directory.
    pub(crate) fn record(&self, name: &str) -> (Run, Vec<Point>) {
        RunReader::open(&self.at(name)).unwrap().into_parts()
    }

    /// Returns flags that place ranks on two hosts with different clocks: `skew` is the error of
    /// the second clock.
    pub(crate) fn skewed(&self, skew: &str) -> [String; 4] {
        let script =
            format!("host=$1; shift\n[ $host = a ] && exec \"$@\"\nexec \"$@\" --clock-skew {skew}\n");
        let script = self.write("skewed.sh", script);
        [
            "--hosts".to_owned(),
            "a,b".to_owned(),
            "--via".to_owned(),
            format!("sh {} {{host}}", script.display()),
        ]
    }

    /// Fails if a process of this test is still there some seconds from now, or a temporary file.
    #[track_caller]
    pub(crate) fn assert_nothing_left(&self) {
        let left = processes::gone_within(&self.token(), Duration::from_secs(20));
        assert!(left.is_empty(), "left behind: {left:?}");
        let files = files_below(&self.at("tmp"));
        assert!(files.is_empty(), "left in TMPDIR: {files:?}");
    }
}

/// Returns all files in a directory, at any depth.
fn files_below(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let with_own = |entry: fs::DirEntry| {
        let below = files_below(&entry.path());
        std::iter::once(entry.path()).chain(below)
    };
    entries.flat_map(with_own).collect()
}

impl Drop for Scratch {
    /// Kills the processes of a test that fails, because they would disturb later tests.
    fn drop(&mut self) {
        if std::thread::panicking() {
            for process in processes::with_token(&self.token()) {
                processes::signal(process.pid, Signal::KILL);
            }
        }
    }
}

/// Waits until the record of a run that was just started says what its ranks have found: they have
/// connected, and measure.
#[track_caller]
pub(crate) fn until_measuring(mut child: Child, record: &Path) -> Child {
    let start = Instant::now();
    while !fs::read_to_string(record.join("run.json")).is_ok_and(|run| run.contains("tick_hz")) {
        assert!(child.try_wait().unwrap().is_none(), "it has ended: {:?}", collect(child));
        assert!(start.elapsed() < DEADLINE, "the ranks did not start");
        std::thread::sleep(Duration::from_millis(5));
    }
    child
}

/// Runs a command to its end, and returns everything that it prints.
pub(crate) fn finish(mut command: Command) -> Ended {
    collect(command.spawn().unwrap())
}

/// Waits for a child and returns what it prints.
pub(crate) fn collect(mut child: Child) -> Ended {
    let out = child.stdout.take().map(reader);
    let err = child.stderr.take().map(reader);
    let status = wait(&mut child);
    let join = |thread: Option<std::thread::JoinHandle<String>>| {
        thread.map_or_else(String::new, |thread| thread.join().unwrap())
    };
    Ended { status: status.code(), stdout: join(out), stderr: join(err) }
}

/// Waits for a child, which must end within the deadline.
pub(crate) fn wait(child: &mut Child) -> std::process::ExitStatus {
    let start = Instant::now();
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return status;
        }
        if start.elapsed() > DEADLINE {
            child.kill().unwrap();
            child.wait().unwrap();
            panic!("the program did not end within {DEADLINE:?}");
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

fn reader(mut from: impl Read + Send + 'static) -> std::thread::JoinHandle<String> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        from.read_to_end(&mut bytes).unwrap();
        String::from_utf8(bytes).expect("what the program prints is text")
    })
}

/// Reports that a test is skipped and why, or fails if `RDMASCOPE_REQUIRE` names what is missing.
pub(crate) fn skip(what: &str, why: &str) {
    let required = std::env::var("RDMASCOPE_REQUIRE").unwrap_or_default();
    assert!(!required.split(',').any(|name| name.trim() == what), "{what} is required: {why}");
    eprintln!("SKIPPED ({what}): {why}");
}

/// Copies the program under test, by another process. A file that this process has open for writing
/// cannot be executed as long as children of other tests have inherited the descriptor.
pub(crate) fn copy_program(to: &Path) {
    let copied = Command::new("cp").arg(*PROGRAM).arg(to).status().unwrap();
    assert!(copied.success(), "{}", to.display());
}

/// Whether a program can be started.
pub(crate) fn is_installed(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|dir| dir.join(program).is_file())
}

/// Whether librdmacm is installed; reports that the test is skipped if not.
pub(crate) fn has_librdmacm() -> bool {
    let found = verbs::manager::manager();
    if let Err(why) = &found {
        skip("librdmacm", &why.to_string());
    }
    found.is_ok()
}

/// Whether every point was measured.
pub(crate) fn all_measured(points: &[Point]) -> bool {
    points.iter().all(|point| point.status == Status::Measured)
}

/// A plan of a few points: two patterns, three services, well under a second.
pub(crate) const SMALL: &str = r#"
name = "small"
title = "A small plan"
[[experiment]]
name = "latency"
pattern = "ping-pong"
iterations = 200
[experiment.axes]
service = ["RC", "UC", "UD"]
size_bytes = [4, 1024]
[[experiment]]
name = "throughput"
pattern = "stream"
iterations = 500
[experiment.axes]
service = ["RC", "UD"]
direction = ["uni", "bi"]
size_bytes = 256
[[figure]]
kind = "lines"
title = "Latency"
experiments = ["latency"]
x = "size_bytes"
y = "latency.p50_ns"
series = ["service"]
"#;

/// A plan that takes seconds, with many short points.
pub(crate) const LONG: &str = r#"
name = "long"
title = "A long plan"
[[experiment]]
name = "latency"
pattern = "ping-pong"
iterations = 20000
timeout = "2s"
[experiment.axes]
service = ["RC", "UC", "UD"]
size_bytes = "2..1024"
[[experiment]]
name = "throughput"
pattern = "stream"
iterations = 20000
repetitions = 3
timeout = "2s"
[experiment.axes]
service = ["RC"]
direction = ["uni", "bi"]
size_bytes = "2..1024"
"#;
