//! What the tests of the program share: starting it under a deadline, finding what it leaves
//! behind, reading records.

pub(crate) mod failures;
pub(crate) mod hands;
mod machine;
pub(crate) mod moments;
pub(crate) mod namespaces;
pub(crate) mod processes;
pub(crate) mod schema;
pub(crate) mod slurm;

use std::ffi::OsStr;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::LazyLock;
use std::time::{Duration, Instant};

use measure::record::{Point, Run, Status};
use measure::store::RunReader;
use rustix::process::Signal;

use machine::Share;

/// The program under test: the one that is built with the tests, unless another is named.
pub(crate) static PROGRAM: LazyLock<&str> = LazyLock::new(|| {
    let tested = std::env::var("RDMASCOPE_TESTED");
    tested.map_or(env!("CARGO_BIN_EXE_rdmascope"), |path| path.leak())
});

/// A program that runs longer than this has hung.
pub(crate) const DEADLINE: Duration = Duration::from_secs(120);

/// Name of the variable by which the processes of a test are found.
pub(crate) const TOKEN: &str = "RDMASCOPE_TEST_TOKEN";

/// A scratch directory of one test, and the processes that carry its name.
pub(crate) struct Scratch {
    dir: tempfile::TempDir,
    _share: Option<Share>,
}

/// What a program that has ended printed and how it ended.
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

    /// For a test that measures and asks nothing of the times: on one CPU, beside others that do
    /// the same.
    pub(crate) fn on_one_cpu() -> Self {
        Self::sharing(Some(Share::one_cpu()))
    }

    /// For a test that measures next to nothing and waits for what does not come: beside any that
    /// asks nothing of the times.
    pub(crate) fn waiting() -> Self {
        Self::sharing(Some(Share::beside()))
    }

    fn sharing(share: Option<Share>) -> Self {
        Self { dir: tempfile::tempdir().unwrap(), _share: share }
    }

    pub(crate) fn path(&self) -> &Path {
        self.dir.path()
    }

    /// A path in the directory.
    pub(crate) fn at(&self, name: &str) -> PathBuf {
        self.path().join(name)
    }

    /// Writes a file into the directory.
    pub(crate) fn write(&self, name: &str, text: impl AsRef<[u8]>) -> PathBuf {
        let path = self.at(name);
        fs::write(&path, text).unwrap();
        path
    }

    /// A command that runs in the directory, is known by its name and has the directory as its
    /// `TMPDIR`. What it remembers of the host is below that, too: what other runs have seen would
    /// mark points of this one.
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

    /// The program under test with these arguments.
    pub(crate) fn program<A: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = A>) -> Command {
        let mut command = self.command(*PROGRAM);
        command.args(arguments);
        command
    }

    /// A shell in which the program under test is `"$0"`.
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

    /// What marks the processes of this test.
    pub(crate) fn token(&self) -> String {
        self.path().display().to_string()
    }

    /// A record in the directory.
    pub(crate) fn record(&self, name: &str) -> (Run, Vec<Point>) {
        RunReader::open(&self.at(name)).unwrap().into_parts()
    }

    /// What places a run's ranks on two hosts whose clocks are apart: that of the second is wrong
    /// by so much.
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

/// All that a directory has in it, at any depth.
fn files_below(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let with_own = |entry: fs::DirEntry| {
        let below = files_below(&entry.path());
        std::iter::once(entry.path()).chain(below)
    };
    entries.flat_map(with_own).collect()
}

impl Drop for Scratch {
    /// A test that fails takes its processes with it, which would disturb the tests after it.
    fn drop(&mut self) {
        if std::thread::panicking() {
            for process in processes::with_token(&self.token()) {
                processes::signal(process.pid, Signal::KILL);
            }
        }
    }
}

/// Runs a command to its end, and everything that it prints into memory.
pub(crate) fn finish(mut command: Command) -> Ended {
    collect(command.spawn().unwrap())
}

/// Waits for a child and takes in what it prints.
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

/// Says that a test is skipped and why, or fails where `RDMASCOPE_REQUIRE` names what is missing.
pub(crate) fn skip(what: &str, why: &str) {
    let required = std::env::var("RDMASCOPE_REQUIRE").unwrap_or_default();
    assert!(!required.split(',').any(|name| name.trim() == what), "{what} is required: {why}");
    eprintln!("SKIPPED ({what}): {why}");
}

/// Copies the program under test. Another process does that: what this one has open to write is
/// busy, and cannot be run, as long as children that other tests start meanwhile have the
/// descriptor, too.
pub(crate) fn copy_program(to: &Path) {
    let copied = Command::new("cp").arg(*PROGRAM).arg(to).status().unwrap();
    assert!(copied.success(), "{}", to.display());
}

/// Whether a program can be started.
pub(crate) fn is_installed(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|dir| dir.join(program).is_file())
}

/// Whether librdmacm is installed, which a test is skipped without.
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

/// A plan of a few points: both patterns, three services, done in well under a second.
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

/// A plan that takes seconds, with points that end all the while.
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
