//! A Slurm whose nodes are all this host, with all of its files in one directory.

use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::{is_installed, skip};

/// The daemons of Slurm, which end with the value.
pub(crate) struct Cluster {
    dir: tempfile::TempDir,
    /// Number of nodes, which are `n1` and so on.
    nodes: usize,
    daemons: Vec<Child>,
}

/// The programs of Slurm, which are in packages of Debian.
const PROGRAMS: [&str; 5] = ["munged", "slurmctld", "slurmd", "srun", "setpriv"];
/// The plugins that tests need.
const PLUGINS: [&str; 2] = ["mpi_pmix.so", "mpi_pmi2.so"];
/// How long the daemons may take to start, and jobs to end.
const DEADLINE: Duration = Duration::from_secs(20);
const ATTEMPTS: usize = 5;
const LOOK_AGAIN: Duration = Duration::from_millis(20);

impl Cluster {
    /// Starts Slurm with one node; none if that is not possible, which is reported.
    pub(crate) fn new() -> Option<Self> {
        Self::with_nodes(1)
    }

    /// The same with several nodes: each has its own slurmd and its own name.
    pub(crate) fn with_nodes(nodes: usize) -> Option<Self> {
        let missing = PROGRAMS.iter().find(|program| !is_found(program));
        let why = match missing {
            Some(program) => format!("there is no {program}"),
            None if !rustix::process::geteuid().is_root() => "slurmd runs as root".to_owned(),
            None => match Self::start_on_free_ports(nodes) {
                Ok(cluster) => return Some(cluster),
                Err(why) => why,
            },
        };
        skip("slurm", &why);
        None
    }

    /// Returns the variable by which programs of Slurm find the daemons.
    pub(crate) fn variable(&self) -> (&'static str, PathBuf) {
        ("SLURM_CONF", self.dir.path().join("slurm.conf"))
    }

    /// Returns the jobs that have not ended, one line each.
    pub(crate) fn jobs(&self) -> String {
        let text = self.output(&["squeue", "--noheader", "--format", "%i %j %T"]);
        text.unwrap_or_else(|why| format!("squeue failed: {why}"))
    }

    /// Waits until there are no jobs; returns the jobs that stay.
    pub(crate) fn jobs_after(&self, patience: Duration) -> String {
        let start = Instant::now();
        loop {
            let jobs = self.jobs();
            if jobs.is_empty() || start.elapsed() > patience {
                return jobs;
            }
            std::thread::sleep(LOOK_AGAIN);
        }
    }

    /// Starts Slurm, again if a port that was free is not any more: other tests take ports, too.
    fn start_on_free_ports(nodes: usize) -> Result<Self, String> {
        let mut started = Self::start(nodes);
        for _ in 1..ATTEMPTS {
            match &started {
                Err(why) if why.contains("Address already in use") => started = Self::start(nodes),
                _ => break,
            }
        }
        started
    }

    fn start(nodes: usize) -> Result<Self, String> {
        let dir = tempfile::tempdir().map_err(|error| error.to_string())?;
        let mut cluster = Self { dir, nodes, daemons: Vec::new() };
        let path = cluster.dir.path().to_owned();
        let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
        cluster.write_files(&host).map_err(|error| error.to_string())?;
        let at = |name: &str| path.join(name).display().to_string();
        let key = format!("--key-file={}", at("munge/key"));
        let socket = format!("--socket={}", at("munge/socket"));
        let pid = format!("--pid-file={}", at("munge/pid"));
        let log = format!("--log-file={}", at("munge/log"));
        let seed = format!("--seed-file={}", at("munge/seed"));
        // --force: the modes of the directories above do not matter.
        cluster.daemon(&["munged", "--force", "--foreground", &key, &socket, &pid, &log, &seed])?;
        let configuration = at("slurm.conf");
        cluster.daemon(&["slurmctld", "-D", "-f", &configuration])?;
        for node in 1..=nodes {
            cluster.daemon(&["slurmd", "-D", "-f", &configuration, "-N", &format!("n{node}")])?;
        }
        cluster.is_idle_in_time()?;
        let known = cluster.output(&["srun", "--mpi=list"]).unwrap_or_default();
        let lacks = PLUGINS.iter().find(|name| !is_plugin(name));
        match lacks {
            Some(name) => Err(format!("Slurm has no {name}: {known}")),
            None => Ok(cluster),
        }
    }

    /// Writes the key of munge and the configuration.
    fn write_files(&self, host: &str) -> std::io::Result<()> {
        let path = self.dir.path();
        for name in ["log", "state", "spool", "tmp", "munge"] {
            fs::create_dir(path.join(name))?;
        }
        let key =
            fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path.join("munge/key"));
        let mut random = std::io::Read::take(fs::File::open("/dev/urandom")?, 1024);
        std::io::copy(&mut random, &mut key?)?;
        // slurmd looks for cgroups, although no plugin uses them. Without this line it ends on
        // hosts without cgroups, and on hosts with versions 1 and 2.
        fs::write(path.join("cgroup.conf"), "CgroupPlugin=cgroup/v1\n")?;
        let ports = free_ports(1 + self.nodes)?;
        let mut text = CONFIGURATION
            .replace("{dir}", &path.display().to_string())
            .replace("{host}", host)
            .replace("{controller}", &ports[0].to_string());
        for (node, port) in (1..).zip(&ports[1..]) {
            let line = NODE.replace("{node}", &format!("n{node}")).replace("{host}", host);
            text += &line.replace("{port}", &port.to_string());
        }
        fs::write(path.join("slurm.conf"), text)
    }

    /// Starts a daemon that stays a child of this process and ends with the thread that started it.
    fn daemon(&mut self, words: &[&str]) -> Result<(), String> {
        let log = format!("{}-{}.out", words[0], self.daemons.len());
        let log = fs::File::create(self.dir.path().join("log").join(log));
        let log = log.map_err(|error| error.to_string())?;
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL", "--"]).args(words).current_dir(self.dir.path());
        command.env("PATH", path()).stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        let child = command.spawn().map_err(|error| format!("{}: {error}", words[0]))?;
        self.daemons.push(child);
        let socket = self.dir.path().join("munge/socket");
        let start = Instant::now();
        // The other daemons need the socket of the first one.
        while !socket.exists() && start.elapsed() < DEADLINE {
            std::thread::sleep(LOOK_AGAIN);
        }
        Ok(())
    }

    fn is_idle_in_time(&mut self) -> Result<(), String> {
        let start = Instant::now();
        let idle = ["sinfo", "--noheader", "--states=idle", "--format=%D"];
        while self.output(&idle) != Ok(self.nodes.to_string()) {
            let has_ended = self.daemons.iter_mut().any(|daemon| !matches!(daemon.try_wait(), Ok(None)));
            if has_ended || start.elapsed() > DEADLINE {
                return Err(format!("its daemons do not start: {}", self.last_words()));
            }
            std::thread::sleep(LOOK_AGAIN);
        }
        Ok(())
    }

    /// Returns the last lines that the daemons wrote.
    fn last_words(&self) -> String {
        let logs = fs::read_dir(self.dir.path().join("log")).into_iter().flatten().flatten();
        let last = logs.filter_map(|entry| {
            let text = fs::read_to_string(entry.path()).ok()?;
            text.lines().last().map(str::to_owned)
        });
        last.collect::<Vec<_>>().join("; ")
    }

    /// Runs a program of Slurm; returns what it prints.
    fn output(&self, words: &[&str]) -> Result<String, String> {
        let (name, value) = self.variable();
        let mut command = Command::new(words[0]);
        command.args(&words[1..]).env(name, value).stdin(Stdio::null());
        let ended = command.output().map_err(|error| error.to_string())?;
        match ended.status.success() {
            true => Ok(String::from_utf8_lossy(&ended.stdout).trim().to_owned()),
            false => Err(String::from_utf8_lossy(&ended.stderr).trim().to_owned()),
        }
    }
}

impl Drop for Cluster {
    /// Ends jobs first: their steps are no children of the daemons.
    fn drop(&mut self) {
        if self.daemons.len() == 2 + self.nodes && !self.jobs().is_empty() {
            let _ = self.output(&["scancel", "--signal=KILL", "--full", "--user=root"]);
            let _ = self.output(&["scancel", "--user=root"]);
            self.jobs_after(DEADLINE);
        }
        let start = Instant::now();
        while is_stepped_in(self.dir.path()) && start.elapsed() < DEADLINE {
            std::thread::sleep(LOOK_AGAIN);
        }
        for daemon in self.daemons.iter_mut().rev() {
            let _ = daemon.kill();
            let _ = daemon.wait();
        }
    }
}

/// Whether a step with files in a directory still runs.
fn is_stepped_in(dir: &Path) -> bool {
    let is_step = |process: &Path| {
        let command = fs::read(process.join("cmdline")).unwrap_or_default();
        let files = || fs::read_dir(process.join("fd")).into_iter().flatten().flatten();
        command.starts_with(b"slurmstepd: [")
            && files().any(|file| fs::read_link(file.path()).is_ok_and(|path| path.starts_with(dir)))
    };
    fs::read_dir("/proc").into_iter().flatten().flatten().any(|entry| is_step(&entry.path()))
}

/// Returns ports that are free now. Other tests may have other clusters.
fn free_ports(count: usize) -> std::io::Result<Vec<u16>> {
    let listeners: Vec<_> = (0..count).map(|_| TcpListener::bind("127.0.0.1:0")).collect();
    listeners.into_iter().map(|listener| Ok(listener?.local_addr()?.port())).collect()
}

/// Returns the search path of root, which has the daemons.
fn path() -> String {
    format!("{}:/usr/sbin:/sbin", std::env::var("PATH").unwrap_or_default())
}

fn is_found(program: &str) -> bool {
    is_installed(program) || ["/usr/sbin", "/sbin"].iter().any(|dir| Path::new(dir).join(program).is_file())
}

/// Whether a plugin is installed, by Debian or elsewhere below /usr.
fn is_plugin(name: &str) -> bool {
    let below = |dir: &str| Path::new(dir).join(name).exists();
    let architecture = format!("/usr/lib/{}-linux-gnu/slurm-wlm", std::env::consts::ARCH);
    below(&architecture) || below("/usr/lib/slurm") || below("/usr/lib64/slurm")
}

/// Steps are tracked by the parents of processes and bound to no CPUs, so that neither cgroups nor
/// more rights than those of root are needed. A node of two CPUs accepts all jobs.
const CONFIGURATION: &str = "\
ClusterName=one
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={controller}
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket={dir}/munge/socket
CredType=cred/munge
SlurmctldPidFile={dir}/slurmctld.pid
SlurmctldLogFile={dir}/log/slurmctld.log
StateSaveLocation={dir}/state
SlurmdPidFile={dir}/slurmd-%n.pid
SlurmdLogFile={dir}/log/slurmd-%n.log
SlurmdSpoolDir={dir}/spool/%n
TmpFS={dir}/tmp
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SlurmdParameters=config_overrides
ReturnToService=2
SchedulerType=sched/builtin
KillWait=2
CommunicationParameters=NoCtldInAddrAny,NoInAddrAny
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
";
/// A node. All of them are this host, so that the same CPUs belong to each.
const NODE: &str = "NodeName={node} NodeHostname={host} NodeAddr=127.0.0.1 Port={port} CPUs=2 RealMemory=500 State=UNKNOWN\n";
