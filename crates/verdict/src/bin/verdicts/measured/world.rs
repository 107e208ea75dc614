//! How the hosts of a fleet are made on this machine, and one fleet of them.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::{fs, io};

/// A way to make hosts.
pub(super) struct World {
    pub(super) name: &'static str,
    /// The words before the shell that makes them.
    within: &'static [&'static str],
    /// Shell commands that make them and what is slow. They set `$via`, by which an agent starts
    /// on a host, and `$measured`, what the program measures.
    script: &'static str,
}

/// Agents over the software device, each with a link model.
pub(super) static SOFTDEV: World = World { name: "softdev", within: &[], script: include_str!("softdev.sh") };

/// Network namespaces behind switches. The mount namespace makes their names private.
pub(super) static NAMESPACES: World =
    World { name: "namespaces", within: &["unshare", "--mount"], script: include_str!("namespaces.sh") };

/// The end of the script. The file `made` says that the hosts are there.
const START: &str = "\
touch made
exec \"$PROGRAM\" fleet $measured --hosts-file hosts --via \"$via\" -n 100 -D 10ms --visits-apart 0 --out record
";

/// The time of a fleet, in s: some times what one takes on a busy machine. After it, the program
/// has a while to end its agents before it is killed.
const TIME_LIMIT: &str = "180";
const GRACE: &str = "--kill-after=20";

/// A fleet to measure.
pub(super) struct Fleet {
    pub(super) world: &'static World,
    pub(super) hosts: usize,
    /// The number of hosts of a leaf switch, which are a group.
    pub(super) leaf: usize,
    /// Shell commands that make something slow, in which `$A` and `$B` are the numbers of the
    /// chosen hosts, from 1.
    pub(super) slow: &'static str,
    pub(super) chosen: [usize; 2],
}

/// A fleet that was measured.
pub(super) struct Ended {
    pub(super) status: ExitStatus,
    /// The directory of its record.
    pub(super) record: PathBuf,
    /// The last line on standard error.
    pub(super) last_line: String,
}

impl Fleet {
    /// Measures the fleet with this program, in a directory that is made anew.
    ///
    /// # Errors
    ///
    /// Why the hosts could not be made.
    pub(super) fn measure(&self, program: &Path, directory: &Path) -> Result<Ended, String> {
        let status = self.run(program, directory).map_err(|error| error.to_string())?;
        let errors = fs::read_to_string(directory.join("stderr")).unwrap_or_default();
        let last_line = errors.lines().last().unwrap_or_default().to_owned();
        if !directory.join("made").exists() {
            return Err(if last_line.is_empty() { format!("{status}") } else { last_line });
        }
        Ok(Ended { status, record: directory.join("record"), last_line })
    }

    fn run(&self, program: &Path, directory: &Path) -> io::Result<ExitStatus> {
        if directory.exists() {
            fs::remove_dir_all(directory)?;
        }
        fs::create_dir_all(directory)?;
        fs::write(directory.join("fleet.sh"), format!("{}\n{START}", self.world.script))?;
        fs::write(directory.join("hosts"), self.list())?;
        let [a, b] = self.chosen.map(|host| (host + 1).to_string());
        // In the foreground, Ctrl-C also ends the program and its agents.
        Command::new("timeout")
            .args(["--foreground", GRACE, TIME_LIMIT])
            .args(self.world.within)
            .args(["sh", "-eu", "fleet.sh"])
            .current_dir(directory)
            .env("PROGRAM", program)
            .env("HOSTS", self.hosts.to_string())
            .env("LEAF", self.leaf.to_string())
            .env("SLOW", self.slow)
            .envs([("A", a), ("B", b)])
            // Latencies of other runs could mark points as unstable.
            .env("XDG_CACHE_HOME", "cache")
            .stdin(Stdio::null())
            .stdout(fs::File::create(directory.join("stdout"))?)
            .stderr(fs::File::create(directory.join("stderr"))?)
            .status()
    }

    /// The file of hosts.
    fn list(&self) -> String {
        let line = |host: usize| format!("h{} group=leaf{}\n", host + 1, host / self.leaf + 1);
        (0..self.hosts).map(line).collect()
    }
}
