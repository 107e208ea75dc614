//! The known launchers: a row each. An unknown launcher is started without additional options.

use std::io::{self, Read};
use std::time::Duration;

use measure::clock::Deadline;
use rustix::event::{PollFd, PollFlags};

use super::super::child::{Process, Streams};
use super::super::wait::wait;
use super::assigns::{self, Assigns};
use super::hosts;
use crate::Error;
use crate::point::MpiMap;

/// A kind of MPI launcher.
#[derive(Debug)]
pub(crate) struct Kind {
    /// The name.
    pub(crate) name: &'static str,
    /// Words of which the first line of its `--version` has one.
    version: &'static [&'static str],
    /// Options that allow each rank all CPUs, so that the rank can choose one by itself.
    unbound: &'static [&'static str],
    /// Options of the user that `unbound` would contradict.
    binds: &'static [&'static str],
    /// Options that allow more ranks on this host than it has cores.
    crowded: &'static [&'static str],
    /// Options of the user that say where ranks are placed or how many, besides `hosts`.
    places: &'static [&'static str],
    /// Options without which root cannot start it. The user has decided to be root by starting
    /// rdmascope as root.
    as_root: &'static [&'static str],
    /// The option that passes a variable on to ranks of other hosts; absent where all are passed.
    export: Option<&'static str>,
    /// How it sets variables for its ranks alone; absent for an unknown launcher.
    pub(super) assigns: Option<Assigns>,
    /// Options of the user that name hosts.
    hosts: &'static [&'static str],
    /// Whether ranks on this host are its children, and not those of a daemon.
    pub(super) forks: bool,
    /// Options that fill one host with ranks after the other.
    block: &'static [&'static str],
    /// Options that place ranks on the hosts in turn.
    cyclic: &'static [&'static str],
    /// Options of the user that say where ranks are placed.
    maps: &'static [&'static str],
}

/// All known launchers.
pub(crate) static KINDS: &[Kind] = &[
    Kind {
        name: "Open MPI",
        version: &["(Open MPI)", "OpenRTE", "PRRTE"],
        unbound: &["--bind-to", "none"],
        binds: &["--bind-to", "-bind-to", "--bind-to-core", "--cpu-set", "--cpu-list", "--rankfile", "-rf"],
        crowded: &["--oversubscribe"],
        places: &[
            "--oversubscribe",
            "-oversubscribe",
            "--nooversubscribe",
            "-nooversubscribe",
            "--use-hwthread-cpus",
            "--map-by",
            "-map-by",
            "--npernode",
            "-npernode",
            "-N",
        ],
        as_root: &["--allow-run-as-root"],
        export: Some("-x"),
        assigns: Some(assigns::OPEN_MPI),
        hosts: &[
            "--host",
            "-host",
            "-H",
            "--hostfile",
            "-hostfile",
            "--machinefile",
            "-machinefile",
            "--default-hostfile",
            "--rankfile",
            "-rankfile",
            "-rf",
        ],
        forks: true,
        block: &["--map-by", "slot"],
        cyclic: &["--map-by", "node"],
        maps: &[
            "--map-by",
            "-map-by",
            "--rankfile",
            "-rf",
            "--npernode",
            "-npernode",
            "--bynode",
            "--byslot",
        ],
    },
    Kind {
        name: "MPICH",
        version: &["HYDRA", "Intel(R) MPI Library"],
        unbound: &[],
        binds: &[],
        crowded: &[],
        places: &[],
        as_root: &[],
        export: None,
        assigns: Some(assigns::HYDRA),
        hosts: &["-hosts", "--hosts", "-host", "--host", "-f", "-hostfile", "--hostfile", "-machinefile"],
        forks: true,
        block: &[],
        cyclic: &["-ppn", "1"],
        maps: &["-ppn", "-perhost", "--map-by", "-map-by"],
    },
    Kind {
        name: "Slurm",
        version: &["slurm"],
        unbound: &["--cpu-bind=none"],
        binds: &["--cpu-bind", "--cpu_bind"],
        crowded: &[],
        places: &[],
        as_root: &[],
        export: None,
        assigns: Some(assigns::SLURM),
        hosts: &[],
        forks: false,
        block: &["--distribution=block"],
        cyclic: &["--distribution=cyclic"],
        maps: &["--distribution", "-m"],
    },
];

/// Any other launcher.
static OTHER: Kind = Kind {
    name: "an unknown launcher",
    version: &[],
    unbound: &[],
    binds: &[],
    crowded: &[],
    places: &[],
    as_root: &[],
    export: None,
    assigns: None,
    hosts: &[],
    forks: false,
    block: &[],
    cyclic: &[],
    maps: &[],
};

impl Kind {
    /// Returns the kind of a launcher, and the first line of its version.
    ///
    /// # Errors
    /// [`Error::NoLauncher`] if the program cannot be started.
    pub(crate) fn of(program: &str) -> Result<(&'static Self, String), Error> {
        let words = [program.to_owned(), "--version".to_owned()];
        let (mut process, mut streams) = Process::start(&words)
            .map_err(|cause| Error::NoLauncher { launcher: program.to_owned(), cause })?;
        let version = first_line(&mut streams, Deadline::after(VERSION_TIMEOUT)).unwrap_or_default();
        process.kill();
        // srun prints its version only where it finds the configuration of the site.
        let name = program.rsplit('/').next().unwrap_or_default();
        let known = if name == "srun" { "slurm" } else { &version };
        let is = |kind: &&Self| kind.version.iter().any(|words| known.contains(words));
        Ok((KINDS.iter().find(is).unwrap_or(&OTHER), version))
    }

    /// Returns the options to add before those of the user. The user's may end with a program that
    /// starts each rank, so nothing can follow them.
    pub(crate) fn options(
        &self,
        given: &[String],
        map: MpiMap,
        exported: &[&str],
        here: Circumstances,
    ) -> Vec<String> {
        let has = |options: &[&str]| has(given, options);
        let is_bound = has(self.binds) || here.binds_itself;
        let unbound = if is_bound { &[] } else { self.unbound };
        let is_placed = here.is_allocated || here.is_placed || has(self.hosts) || has(self.places);
        let crowded = if is_placed { &[] } else { self.crowded };
        let as_root = if here.is_root && !has(self.as_root) { self.as_root } else { &[] };
        let mapped = match map {
            _ if has(self.maps) => &[],
            MpiMap::Launcher => &[],
            MpiMap::Block => self.block,
            MpiMap::Cyclic => self.cyclic,
        };
        let exports = exported.iter().filter_map(|name| Some([self.export?, *name])).flatten();
        as_root
            .iter()
            .chain(unbound)
            .chain(crowded)
            .chain(mapped)
            .copied()
            .chain(exports)
            .map(str::to_owned)
            .collect()
    }

    /// Whether the launcher can place ranks by this map.
    pub(crate) fn maps(&self, map: MpiMap) -> bool {
        match map {
            MpiMap::Launcher => true,
            // MPICH places ranks so by default.
            MpiMap::Block => !std::ptr::eq(self, &OTHER),
            MpiMap::Cyclic => !self.cyclic.is_empty(),
        }
    }
}

/// Whether one of these options is among the words of a command.
fn has(given: &[String], options: &[&str]) -> bool {
    given.iter().any(|word| options.contains(&word.split('=').next().unwrap_or_default()))
}

/// The circumstances that a launcher is started in.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Circumstances {
    /// Whether a scheduler has allocated hosts and cores, which ranks must not exceed.
    is_allocated: bool,
    /// Whether variables or files of Open MPI say where ranks are placed or how many.
    is_placed: bool,
    is_root: bool,
    /// Whether the launcher binds ranks to CPUs by its own rules. It does for the ranks of an
    /// application, which do not choose a CPU by themselves.
    binds_itself: bool,
}

impl Circumstances {
    /// Returns the circumstances of this process, for a launcher.
    pub(crate) fn here(program: &str) -> Self {
        const JOBS: [&str; 5] = ["SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID", "PE_HOSTFILE", "FLUX_JOB_ID"];
        let is_allocated = JOBS.iter().any(|name| std::env::var_os(name).is_some());
        let is_told = std::env::vars_os().any(|(name, _)| name.to_str().is_some_and(hosts::is_told_by));
        let is_placed = is_told || hosts::are_in_files(program);
        let is_root = rustix::process::geteuid().is_root();
        Self { is_allocated, is_placed, is_root, binds_itself: false }
    }

    /// Returns the same circumstances, with ranks that the launcher binds to CPUs by its own rules.
    pub(super) fn bound_by_launcher(self) -> Self {
        Self { binds_itself: true, ..self }
    }

    /// Whether hosts and CPUs of the ranks are already chosen, or may be on another host. The
    /// number of this host's CPUs then does not limit the number of ranks.
    pub(super) fn are_elsewhere(self, kind: &Kind, words: &[String]) -> bool {
        self.is_allocated || self.is_placed || !kind.forks || has(words, kind.hosts)
    }

    /// Returns the circumstances of a launcher that these words start. Some such commands allocate
    /// hosts for it.
    pub(crate) fn behind(self, words: &[String]) -> Self {
        const ALLOCATE: [&str; 6] = ["salloc", "sbatch", "qsub", "qrsh", "bsub", "flux"];
        let allocates = |word: &String| ALLOCATE.contains(&word.rsplit('/').next().unwrap_or_default());
        let is_allocated = self.is_allocated || words.iter().any(allocates);
        let assigned = |word: &String| word.split_once('=').is_some_and(|(name, _)| hosts::is_told_by(name));
        let is_placed = self.is_placed || words.iter().any(assigned);
        Self { is_allocated, is_placed, ..self }
    }
}

/// Returns the index of the launcher among the words of a command. The words before it, such as
/// `env` or `nice`, start it.
pub(crate) fn place(words: &[String]) -> usize {
    words.iter().position(|word| is_launcher(word)).unwrap_or(0)
}

/// Whether a word is a launcher: its name, alone or with an ending (`.openmpi`, `-4.1`, `_rsh`). An
/// assignment for `env` or an option is not, whatever path it ends with.
pub(super) fn is_launcher(word: &str) -> bool {
    let name = word.rsplit('/').next().unwrap_or_default();
    let is = |known: &str| {
        name.strip_prefix(known).is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '-', '_']))
    };
    !word.contains('=') && ["mpirun", "mpiexec", "orterun", "prterun", "srun"].iter().any(|known| is(known))
}

/// Returns the launcher of a command.
pub(crate) fn program(words: &[String]) -> &str {
    words.get(place(words)).map_or("", String::as_str)
}

/// Returns the first line that a process prints before the deadline, and the second where the first
/// is a heading ("HYDRA build details:").
fn first_line(streams: &mut Streams, deadline: Deadline) -> Option<String> {
    let mut all = Vec::new();
    let mut bytes = [0; 1024];
    while !is_whole(&all) {
        match streams.output.read(&mut bytes) {
            Ok(0) => break,
            Ok(count) => all.extend_from_slice(&bytes[..count]),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock && !deadline.is_over() => {
                let output = PollFd::new(&streams.output, PollFlags::IN);
                wait(vec![output], deadline, None).ok()?;
            }
            Err(_) => break,
        }
    }
    let text = String::from_utf8_lossy(&all).into_owned();
    let mut lines = text.lines();
    let first = lines.next()?;
    let second = lines.next().filter(|_| is_heading(first)).unwrap_or_default();
    Some([first, second].join(" ").split_whitespace().collect::<Vec<_>>().join(" "))
}

fn is_heading(line: &str) -> bool {
    line.trim_end().ends_with(':')
}

/// Whether the lines of a version are complete.
fn is_whole(bytes: &[u8]) -> bool {
    let text = String::from_utf8_lossy(bytes);
    let wanted = if text.lines().next().is_some_and(is_heading) { 2 } else { 1 };
    text.matches('\n').count() >= wanted
}

/// The time for a launcher to print its version. It may have to be read from a file system of the
/// site.
const VERSION_TIMEOUT: Duration = Duration::from_secs(10);

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        text.split(' ').map(str::to_owned).collect()
    }

    fn kind(version: &str) -> &'static Kind {
        KINDS.iter().find(|kind| kind.version.iter().any(|words| version.contains(words))).unwrap_or(&OTHER)
    }

    #[test]
    fn launchers_are_told_apart_by_what_they_call_themselves() {
        assert_eq!(kind("mpirun.openmpi (OpenRTE) 4.1.4").name, "Open MPI");
        assert_eq!(kind("mpirun (Open MPI) 5.0.3").name, "Open MPI");
        assert_eq!(kind("HYDRA build details:").name, "MPICH");
        assert_eq!(kind("slurm 22.05.8").name, "Slurm");
        assert_eq!(kind("jsrun 1.0").name, "an unknown launcher");
    }

    #[test]
    fn what_the_user_says_of_binding_and_maps_is_not_contradicted() {
        let open_mpi = kind("mpirun (Open MPI) 4.1.4");
        let options = |given: &str, map| open_mpi.options(&words(given), map, &["K"], ALLOCATED).join(" ");
        assert_eq!(options("mpirun -np 2", MpiMap::Launcher), "--bind-to none -x K");
        assert_eq!(options("mpirun --bind-to core -np 2", MpiMap::Launcher), "-x K");
        assert_eq!(options("mpirun -np 2", MpiMap::Cyclic), "--bind-to none --map-by node -x K");
        assert_eq!(options("mpirun --map-by=socket", MpiMap::Cyclic), "--bind-to none -x K");
        let mpich = kind("HYDRA build details:");
        assert_eq!(
            mpich.options(&words("mpirun -np 2"), MpiMap::Cyclic, &["K"], ALLOCATED).join(" "),
            "-ppn 1"
        );
        assert!(!OTHER.maps(MpiMap::Cyclic) && open_mpi.maps(MpiMap::Cyclic));
    }

    const ALLOCATED: Circumstances =
        Circumstances { is_allocated: true, is_placed: false, is_root: false, binds_itself: false };

    #[test]
    fn more_ranks_than_cores_are_started_where_nobody_says_how_many() {
        let open_mpi = kind("mpirun (Open MPI) 4.1.4");
        let options =
            |given: &str, here| open_mpi.options(&words(given), MpiMap::Launcher, &[], here).join(" ");
        let alone = Circumstances::default();
        assert_eq!(options("mpirun -np 2", alone), "--bind-to none --oversubscribe");
        for given in [
            "mpirun --host a:2,b:2",
            "mpirun --hostfile=hosts",
            "mpirun --nooversubscribe",
            "mpirun --npernode 1",
            "mpirun -N 1",
        ] {
            assert_eq!(options(given, alone), "--bind-to none", "{given}");
        }
        assert_eq!(options("mpirun -rf ranks", alone), "", "which says the CPUs, too");
        assert_eq!(options("mpirun -np 2", ALLOCATED), "--bind-to none");
        let root = Circumstances { is_root: true, ..ALLOCATED };
        assert_eq!(options("mpirun -np 2", root), "--allow-run-as-root --bind-to none");
        assert_eq!(options("mpirun --allow-run-as-root -np 2", root), "--bind-to none");
    }

    #[test]
    fn the_launcher_of_a_command_is_found_behind_what_starts_it() {
        assert_eq!(program(&words("env A=1 /opt/mpi/bin/mpirun -np 2")), "/opt/mpi/bin/mpirun");
        assert_eq!(program(&words("srun --mpi=pmix -n 2")), "srun");
        assert_eq!(program(&words("jsrun -n 2")), "jsrun");
        for (command, launcher) in [
            ("env MPI=/opt/mpirun-4 mpirun -np 2", "mpirun"),
            ("ssh srun01 mpirun -np 2", "mpirun"),
            ("nice mpirun.openmpi -np 2", "mpirun.openmpi"),
            ("nice /opt/mpiexec-4.1 -np 2", "/opt/mpiexec-4.1"),
            ("nice mpirun_rsh -np 2", "mpirun_rsh"),
            ("mpirunner -np 2", "mpirunner"),
        ] {
            assert_eq!(program(&words(command)), launcher, "{command}");
        }
    }

    #[test]
    fn what_starts_the_launcher_may_allocate_what_it_runs_on_or_say_it() {
        let open_mpi = kind("mpirun (Open MPI) 4.1.4");
        for (before, crowded) in [
            ("nice", " --oversubscribe"),
            ("salloc -n 2", ""),
            ("/opt/lsf/bin/bsub -I -n 2", ""),
            ("env OMPI_MCA_btl=tcp,self", " --oversubscribe"),
            ("env OMPI_MCA_rmaps_base_mapping_policy=node", ""),
            ("env OMPI_MCA_orte_default_hostfile=hosts", ""),
        ] {
            let here = Circumstances::default().behind(&words(before));
            let options = open_mpi.options(&words("mpirun"), MpiMap::Launcher, &[], here).join(" ");
            assert_eq!(options, format!("--bind-to none{crowded}"), "{before}");
        }
    }
}
