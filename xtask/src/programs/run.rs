//! Runs the programs of a case. Each must end within a time limit.

use std::fs::{self, File};
use std::net::{IpAddr, Ipv4Addr, UdpSocket};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use super::plan::{Case, INTERFACE, Kind, Mpi, Pair, Ranks, Ready};
use super::verdict::Verdict;
use crate::process::{self, Start};
use crate::shell;

/// The directory of the C programs of this repository.
const SOURCES: &str = "xtask/src/programs";
/// An example that Debian's libucx-dev contains only as C code, its file, and its libraries.
const EXAMPLE: &str = "ucp_client_server";
const EXAMPLE_SOURCE: &str = "/usr/share/doc/libucx-dev/examples/ucp_client_server.c";
const EXAMPLE_LIBRARIES: [&str; 2] = ["-lucp", "-lucs"];
/// The longest time of a case: ping-pongs that poll are slow on two busy CPUs.
const LIMIT: Duration = Duration::from_secs(90);
/// How a program fails that does not end within it.
const HANGS: &str = "it hangs";
/// How long a program may continue after its peer has failed.
const GRACE: Duration = Duration::from_secs(10);

/// A running program, which `rdmascope exec` has become.
pub(super) struct Running {
    process: process::Running,
    printed: PathBuf,
}

impl Running {
    /// Starts a program under `rdmascope exec`; its output goes to a file.
    pub(super) fn start(program: &Path, device: &[&str], words: &[String], printed: PathBuf) -> Result<Self> {
        let out = File::create(&printed).with_context(|| format!("cannot write {}", printed.display()))?;
        let mut command = Command::new(program);
        command.arg("exec").args(device).arg("--").args(words);
        command.stdin(Stdio::null()).stdout(out.try_clone()?).stderr(out);
        let child = command.spawn().with_context(|| format!("cannot start {}", program.display()))?;
        Ok(Self { process: process::Running(child), printed })
    }

    /// Waits for the exit status until an instant.
    pub(super) fn ended_before(&mut self, end: Instant) -> Result<Option<ExitStatus>> {
        self.process.ended_before(end)
    }

    /// The output so far.
    pub(super) fn printed(&self) -> String {
        String::from_utf8_lossy(&fs::read(&self.printed).unwrap_or_default()).into_owned()
    }

    /// The verdict by the exit status and the output.
    fn verdict(&self, name: &str, status: Option<ExitStatus>) -> Verdict {
        match status {
            None => Verdict::Fails(HANGS.to_owned()),
            Some(status) if status.success() => Verdict::Passes,
            Some(status) => match status.signal() {
                Some(signal) => Verdict::Fails(format!("it crashes (signal {signal})")),
                None => Verdict::of_failure(name, &self.printed()),
            },
        }
    }

    /// As [`verdict`](Self::verdict), but a program passes only if it has printed a text.
    fn verdict_with(&self, name: &str, status: Option<ExitStatus>, text: &str) -> Verdict {
        let verdict = self.verdict(name, status);
        let is_missed = verdict == Verdict::Passes && !self.printed().contains(text);
        if is_missed { Verdict::Fails(format!("it does not print `{text}`")) } else { verdict }
    }
}

/// A race of a program itself, which no device can avoid.
struct Race {
    /// Words of the case's name.
    program: &'static str,
    /// How it fails.
    fails: &'static str,
    /// What happens.
    known: &'static str,
}

/// rping: until rdma-core's commit f3ae6534a of July 2025. Open MPI 4.1.4, in the file
/// `btl_openib_connect_udcm.c`: lines 2188 to 2194, and line 2306, which does not repeat the
/// datagram of a rank that is connected.
const RACES: [Race; 2] = [
    Race {
        program: "rping",
        fails: "rdma_get_cm_event: Bad file descriptor",
        known: "rping destroys its channel while its thread may be about to use it",
    },
    Race {
        program: "btl openib",
        fails: HANGS,
        known: "Open MPI asks for a completion event without polling once more, and loses a datagram",
    },
];

/// The paths that running cases needs.
pub(super) struct Places {
    /// `rdmascope`.
    pub(super) program: PathBuf,
    /// The directory of the programs' output.
    pub(super) scratch: PathBuf,
}

impl Places {
    /// Runs a case. If it fails by a known race of its program, it runs again, at most three times.
    pub(super) fn run(&self, case: &Case) -> Result<Verdict> {
        const ATTEMPTS: usize = 3;
        for _ in 1..ATTEMPTS {
            let verdict = self.run_once(case)?;
            let Verdict::Fails(why) = &verdict else { return Ok(verdict) };
            let is_it = |race: &&Race| case.name.contains(race.program) && why == race.fails;
            let Some(race) = RACES.iter().find(is_it) else { return Ok(verdict) };
            eprintln!("xtask: {}: {why}: {}; running it again", case.name, race.known);
        }
        self.run_once(case)
    }

    fn run_once(&self, case: &Case) -> Result<Verdict> {
        match &case.kind {
            Kind::Alone(words) => {
                let mut program = self.start(case, words, "printed")?;
                let status = program.ended_before(Instant::now() + LIMIT)?;
                Ok(program.verdict(&case.name, status))
            }
            Kind::Prints(words, text) => {
                let mut program = self.start(case, words, "printed")?;
                let status = program.ended_before(Instant::now() + LIMIT)?;
                Ok(program.verdict_with(&case.name, status, text))
            }
            Kind::Compiled(source) => {
                let words = [self.compile("cc", &own_source(source), &["-ldl"])?];
                let mut program = self.start(case, &words, "printed")?;
                let status = program.ended_before(Instant::now() + LIMIT)?;
                Ok(program.verdict(&case.name, status))
            }
            Kind::Ranks(ranks) => {
                let mut launcher = self.start(case, &self.ranks(ranks)?, "printed")?;
                let status = launcher.ended_before(Instant::now() + LIMIT)?;
                Ok(launcher.verdict_with(&case.name, status, ranks.prints))
            }
            Kind::Pair(pair) => self.pair(case, pair),
        }
    }

    /// Starts a program of a case, with its placeholders replaced.
    fn start(&self, case: &Case, words: &[String], file: &str) -> Result<Running> {
        let mut words = words.to_vec();
        for word in &mut words {
            match word.as_str() {
                EXAMPLE => *word = self.compile("cc", Path::new(EXAMPLE_SOURCE), &EXAMPLE_LIBRARIES)?,
                INTERFACE => *word = address().to_string(),
                _ => {}
            }
        }
        Running::start(&self.program, case.device, &words, self.scratch.join(file))
    }

    /// Compiles a program and returns its path.
    fn compile(&self, compiler: &str, source: &Path, libraries: &[&str]) -> Result<String> {
        let name = source.file_name().unwrap_or_default().to_string_lossy();
        let program = self.scratch.join(format!("{name}.{compiler}")).to_string_lossy().into_owned();
        let source = source.to_string_lossy();
        let options = [compiler, "-O2", "-Wall", "-o", &program, &source];
        shell::output(&[&options[..], libraries].concat())?;
        Ok(program)
    }

    /// Compiles a program for an MPI and returns the command that starts its ranks.
    fn ranks(&self, ranks: &Ranks) -> Result<Vec<String>> {
        let suffix = ranks.mpi.suffix();
        let program = self.compile(&format!("mpicc.{suffix}"), &own_source(ranks.program), &[])?;
        let launcher = format!("mpirun.{suffix}");
        let mut words = vec!["env"];
        words.extend(&ranks.environment);
        if ranks.mpi == Mpi::OpenMpi {
            words.extend(["OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1"]);
            words.extend([&launcher, "--oversubscribe"]);
        } else {
            words.push(&launcher);
        }
        words.extend(["-np", ranks.count, &program]);
        words.extend(ranks.argument);
        Ok(words.into_iter().map(str::to_owned).collect())
    }

    fn pair(&self, case: &Case, pair: &Pair) -> Result<Verdict> {
        let mut server = self.start(case, &pair.server, "server")?;
        let since = Instant::now();
        let start = match pair.ready {
            Ready::Socket(port) => process::listens_or_ends(&mut server.process, port)?,
            Ready::Manager(port) => process::listens_by_manager_or_ends(&mut server.process, port)?,
            Ready::Started => Start::Listens,
        };
        match start {
            Start::Listens => {}
            Start::Ended(status) => {
                return Ok(match server.verdict(&case.name, Some(status)) {
                    Verdict::Passes => Verdict::Fails("the server ends before it listens".to_owned()),
                    other => other,
                });
            }
            Start::Neither => return Ok(Verdict::Fails("the server does not listen".to_owned())),
        }
        let mut client = self.start(case, &pair.client, "client")?;
        let mut status = client.ended_before(since + LIMIT)?;
        let mut other = None;
        if pair.ends {
            other = server.ended_before(Instant::now() + GRACE)?;
            if status.is_none() {
                status = client.ended_before(Instant::now() + GRACE)?;
            }
        }
        let verdicts = [
            client.verdict(&case.name, status),
            if pair.ends { server.verdict(&case.name, other) } else { Verdict::Passes },
        ];
        Ok(worse(verdicts))
    }
}

/// The path of a C program of this repository.
fn own_source(name: &str) -> PathBuf {
    shell::root().join(SOURCES).join(name)
}

/// The address of the network interface with the default route, or the loopback address if there is
/// none.
fn address() -> IpAddr {
    /// An address of no host (RFC 5737); nothing is sent there.
    const ELSEWHERE: (Ipv4Addr, u16) = (Ipv4Addr::new(203, 0, 113, 1), 9);
    let found = || -> std::io::Result<IpAddr> {
        let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
        socket.connect(ELSEWHERE)?;
        Ok(socket.local_addr()?.ip())
    };
    found().unwrap_or(IpAddr::V4(Ipv4Addr::LOCALHOST))
}

/// The more informative verdict: a refusal before a failure, the client's failure before the
/// server's.
fn worse(verdicts: [Verdict; 2]) -> Verdict {
    let [client, server] = verdicts;
    match (&client, &server) {
        (Verdict::Refused(_), _) | (_, Verdict::Passes) => client,
        (_, Verdict::Refused(_)) | (Verdict::Passes, _) => server,
        _ => client,
    }
}
