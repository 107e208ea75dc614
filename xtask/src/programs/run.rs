//! Running the programs of a case, each of which must end within a limit.

use std::fs::{self, File};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use super::plan::{Case, Kind, Mpi};
use super::verdict::Verdict;
use crate::process::{self, Start};
use crate::shell;

/// Where programs of ours are, and what the ranks of an MPI run.
const SOURCES: &str = "xtask/src/programs";
const PINGPONG: &str = "pingpong.c";
/// How long a case may take: ping-pongs that poll take turns where two CPUs have other work.
const LIMIT: Duration = Duration::from_secs(90);
/// How long the other end may go on when one has failed.
const GRACE: Duration = Duration::from_secs(10);

/// A program that runs: `exec` has become it.
pub(super) struct Running {
    process: process::Running,
    printed: PathBuf,
}

impl Running {
    /// Starts words under `rdmascope exec`; what they print goes to a file.
    pub(super) fn start(program: &Path, device: &[&str], words: &[String], printed: PathBuf) -> Result<Self> {
        let out = File::create(&printed).with_context(|| format!("cannot write {}", printed.display()))?;
        let mut command = Command::new(program);
        command.arg("exec").args(device).arg("--").args(words);
        command.stdin(Stdio::null()).stdout(out.try_clone()?).stderr(out);
        let child = command.spawn().with_context(|| format!("cannot start {}", program.display()))?;
        Ok(Self { process: process::Running(child), printed })
    }

    /// Its exit status, if it ends before a time.
    pub(super) fn ended_before(&mut self, end: Instant) -> Result<Option<ExitStatus>> {
        self.process.ended_before(end)
    }

    /// What it has printed.
    pub(super) fn printed(&self) -> String {
        String::from_utf8_lossy(&fs::read(&self.printed).unwrap_or_default()).into_owned()
    }

    /// Its verdict, from how it ended.
    fn verdict(&self, name: &str, status: Option<ExitStatus>) -> Verdict {
        match status {
            None => Verdict::Fails("it hangs".to_owned()),
            Some(status) if status.success() => Verdict::Passes,
            Some(status) => match status.signal() {
                Some(signal) => Verdict::Fails(format!("it crashes (signal {signal})")),
                None => Verdict::of_failure(name, &self.printed()),
            },
        }
    }
}

/// Where things are.
pub(super) struct Places {
    /// `rdmascope`.
    pub(super) program: PathBuf,
    /// What the programs print.
    pub(super) scratch: PathBuf,
}

impl Places {
    /// Runs a case to its end.
    pub(super) fn run(&self, case: &Case) -> Result<Verdict> {
        match &case.kind {
            Kind::Alone(words) => {
                let mut program = self.start(case, words, "printed")?;
                let status = program.ended_before(Instant::now() + LIMIT)?;
                Ok(program.verdict(&case.name, status))
            }
            Kind::Prints(words, text) => {
                let mut program = self.start(case, words, "printed")?;
                let status = program.ended_before(Instant::now() + LIMIT)?;
                let verdict = program.verdict(&case.name, status);
                let is_missed = verdict == Verdict::Passes && !program.printed().contains(text);
                Ok(if is_missed { Verdict::Fails(format!("it does not print `{text}`")) } else { verdict })
            }
            Kind::Compiled(source) => {
                let words = [self.compile("cc", source, &["-ldl"])?];
                let mut program = self.start(case, &words, "printed")?;
                let status = program.ended_before(Instant::now() + LIMIT)?;
                Ok(program.verdict(&case.name, status))
            }
            Kind::Ranks { mpi, transports, least_ns } => {
                let words = self.ranks(*mpi, transports, *least_ns)?;
                let mut launcher = self.start(case, &words, "printed")?;
                let status = launcher.ended_before(Instant::now() + LIMIT)?;
                Ok(launcher.verdict(&case.name, status))
            }
            Kind::Pair { server, client, port, ends } => self.pair(case, server, client, *port, *ends),
        }
    }

    fn start(&self, case: &Case, words: &[String], file: &str) -> Result<Running> {
        Running::start(&self.program, case.device, words, self.scratch.join(file))
    }

    /// Compiles a program of ours: its path.
    fn compile(&self, compiler: &str, source: &str, libraries: &[&str]) -> Result<String> {
        let program = self.scratch.join(format!("{source}.{compiler}")).to_string_lossy().into_owned();
        let source = shell::root().join(SOURCES).join(source).to_string_lossy().into_owned();
        let options = [compiler, "-O2", "-Wall", "-Werror", "-o", &program, &source];
        shell::output(&[&options[..], libraries].concat())?;
        Ok(program)
    }

    /// Compiles the ping-pong for an MPI: what starts its ranks.
    fn ranks(&self, mpi: Mpi, transports: &str, least_ns: u32) -> Result<Vec<String>> {
        let program = self.compile(&format!("mpicc.{}", mpi.suffix()), PINGPONG, &[])?;
        let transports = format!("UCX_TLS={transports}");
        let launcher = format!("mpirun.{}", mpi.suffix());
        let mut words = vec!["env", &transports];
        if mpi == Mpi::OpenMpi {
            words.extend(["OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1"]);
            // Open MPI leaves UCX out unless it knows the transports and the devices.
            words.extend(["OMPI_MCA_pml=ucx", "OMPI_MCA_pml_ucx_tls=any", "OMPI_MCA_pml_ucx_devices=any"]);
            words.extend([&launcher, "--oversubscribe"]);
        } else {
            words.push(&launcher);
        }
        let least_ns = least_ns.to_string();
        words.extend(["-np", "2", &program, &least_ns]);
        Ok(words.into_iter().map(str::to_owned).collect())
    }

    fn pair(
        &self,
        case: &Case,
        server: &[String],
        client: &[String],
        port: u16,
        ends: bool,
    ) -> Result<Verdict> {
        let mut server = self.start(case, server, "server")?;
        let since = Instant::now();
        match process::listens_or_ends(&mut server.process, port)? {
            Start::Listens => {}
            Start::Ended(status) => {
                return Ok(match server.verdict(&case.name, Some(status)) {
                    Verdict::Passes => Verdict::Fails("the server ends before it listens".to_owned()),
                    other => other,
                });
            }
            Start::Neither => return Ok(Verdict::Fails("the server does not listen".to_owned())),
        }
        let mut client = self.start(case, client, "client")?;
        let mut status = client.ended_before(since + LIMIT)?;
        let mut other = None;
        if ends {
            other = server.ended_before(Instant::now() + GRACE)?;
            if status.is_none() {
                status = client.ended_before(Instant::now() + GRACE)?;
            }
        }
        let verdicts = [
            client.verdict(&case.name, status),
            if ends { server.verdict(&case.name, other) } else { Verdict::Passes },
        ];
        Ok(worse(verdicts))
    }
}

/// The one that says more: what is refused, then what fails; of two that fail the client's.
fn worse(verdicts: [Verdict; 2]) -> Verdict {
    let [client, server] = verdicts;
    match (&client, &server) {
        (Verdict::Refused(_), _) | (_, Verdict::Passes) => client,
        (_, Verdict::Refused(_)) | (Verdict::Passes, _) => server,
        _ => client,
    }
}
