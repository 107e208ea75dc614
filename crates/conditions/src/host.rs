//! The host as a tree of files: `/`, or a tree made by a test. It is read and changed.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use measure::environment::Root;
use rustix::fs::{Access, MemfdFlags, access, memfd_create};

use crate::cpus;

/// A host, by the path of its root.
#[derive(Clone, Debug)]
pub struct Host {
    root: Root,
    path: PathBuf,
}

impl Host {
    /// Returns the host below a path; `/` is this host.
    pub fn new(path: &Path) -> Self {
        Self { root: Root::new(path), path: path.to_owned() }
    }

    /// This host.
    pub fn here() -> Self {
        Self::new(Path::new("/"))
    }

    /// The path of its root.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether this process runs on it.
    pub(crate) fn is_here(&self) -> bool {
        self.path == Path::new("/")
    }

    pub(crate) fn root(&self) -> &Root {
        &self.root
    }

    pub(crate) fn at(&self, path: &str) -> PathBuf {
        self.root.path(path)
    }

    /// Returns the first line of a file.
    pub(crate) fn line(&self, path: &str) -> io::Result<String> {
        let text = fs::read_to_string(self.at(path))?;
        Ok(text.lines().next().unwrap_or_default().trim().to_owned())
    }

    /// Writes a line into an existing file, as `echo` does.
    pub(crate) fn write(&self, path: &str, line: &str) -> io::Result<()> {
        let mut file = OpenOptions::new().write(true).truncate(true).open(self.at(path))?;
        // In one write(2): the kernel takes each write as one value.
        file.write_all(format!("{line}\n").as_bytes())
    }

    /// Returns why a file cannot be written, or `None` if it can.
    pub(crate) fn refuses(&self, path: &str) -> Option<io::Error> {
        access(self.at(path), Access::WRITE_OK).err().map(Into::into)
    }

    /// Makes a control group. The kernel makes its files; in a test's tree this function does.
    pub(crate) fn make(&self, path: &str) -> io::Result<()> {
        match fs::create_dir(self.at(path)) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            Ok(()) if !self.is_here() => {
                GROUP_FILES.iter().try_for_each(|file| fs::write(self.at(path).join(file), ""))
            }
            other => other,
        }
    }

    /// Removes a control group. In a test's tree, its files are removed first.
    pub(crate) fn unmake(&self, path: &str) -> io::Result<()> {
        let path = self.at(path);
        let removed = if self.is_here() { fs::remove_dir(path) } else { fs::remove_dir_all(path) };
        match removed {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            other => other,
        }
    }

    /// The CPUs that are online.
    pub(crate) fn online(&self) -> Vec<u32> {
        cpus::parse(&self.line("sys/devices/system/cpu/online").unwrap_or_default())
    }

    /// Returns a field of the status of a process, or of `self`.
    pub(crate) fn status(&self, process: &str, field: &str) -> Option<String> {
        let status = self.root.text(&format!("proc/{process}/status"))?;
        let line = status.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':'))?;
        Some(line.trim().to_owned())
    }

    /// Whether a process of this name runs.
    pub(crate) fn is_running(&self, name: &str) -> bool {
        let processes = self.root.numbered("proc", "");
        processes.iter().any(|id| self.line(&format!("proc/{id}/comm")).is_ok_and(|comm| comm == name))
    }

    /// Runs a command with a time limit. The error of a command that fails contains its last line
    /// of output.
    pub(crate) fn run(&self, words: &[&str]) -> io::Result<()> {
        let path = std::env::var("PATH").unwrap_or_default();
        // Root's tools are not in the path of every login.
        let path = format!("{path}:/usr/sbin:/sbin");
        // A file, not a pipe: a daemon that the command starts keeps a pipe open, and the reader
        // would wait for it.
        let mut output = File::from(memfd_create("output", MemfdFlags::CLOEXEC)?);
        let status = Command::new("timeout")
            .args(["-k", KILL_AFTER_S, RUN_TIMEOUT_S])
            .args(words)
            .env("PATH", path)
            .stdin(Stdio::null())
            .stdout(output.try_clone()?)
            .stderr(output.try_clone()?)
            .status()?;
        let mut said = Vec::new();
        output.rewind()?;
        // A daemon may go on writing without end.
        output.take(OUTPUT_MAX_BYTES).read_to_end(&mut said)?;
        let said = String::from_utf8_lossy(&said);
        let last = said.lines().rfind(|line| !line.trim().is_empty()).unwrap_or_default().trim();
        match status.code() {
            Some(0) => Ok(()),
            // timeout(1): 127 if the command is not found, 124 after the time limit, 137 if it had
            // to kill.
            Some(127) => {
                Err(io::Error::new(io::ErrorKind::NotFound, format!("{} is not installed here", words[0])))
            }
            Some(124 | 137) => Err(io::Error::new(
                io::ErrorKind::TimedOut,
                format!("`{}` took longer than {RUN_TIMEOUT_S} s", words.join(" ")),
            )),
            _ => Err(io::Error::other(format!("`{}` failed: {last}", words.join(" ")))),
        }
    }
}

/// The files that the kernel makes in a control group, as far as they are used here.
const GROUP_FILES: [&str; 5] =
    ["cgroup.procs", "cpuset.cpus", "cpuset.cpus.partition", "cpuset.mems", "tasks"];
/// tuned takes a second or two to load a profile.
const RUN_TIMEOUT_S: &str = "20";
/// The guard ignores SIGTERM, and what it starts inherits that.
const KILL_AFTER_S: &str = "5";
/// Only the last line is used; tuned-adm never prints this much.
const OUTPUT_MAX_BYTES: u64 = 1 << 20;
