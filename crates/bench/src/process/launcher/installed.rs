//! The MPI installations of this host: the libraries, and the launchers that start ranks with them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use mpi::Abi;
use mpi::search::{self, Found};
use serde::Serialize;

use super::kind::Kind;

/// The installed libraries and launchers.
#[derive(Clone, Debug, Default, Serialize)]
pub struct InstalledMpi {
    /// The libraries, in the order of the dynamic linker.
    #[serde(rename = "mpi_libraries")]
    pub libraries: Vec<MpiLibrary>,
    /// The launchers, in the order of their names.
    #[serde(rename = "mpi_launchers")]
    pub launchers: Vec<MpiLauncher>,
}

/// A library of MPI.
#[derive(Clone, Debug, Serialize)]
pub struct MpiLibrary {
    /// The file.
    pub path: PathBuf,
    /// The ABI of its functions: `MPICH`, `Open MPI` or `MPI 5 standard`.
    pub abi: String,
    /// The name and version, where the file contains them.
    pub version: Option<String>,
    /// The names of the launchers that fit it.
    pub launchers: Vec<String>,
}

/// A launcher that is in `PATH`.
#[derive(Clone, Debug, Serialize)]
pub struct MpiLauncher {
    /// The name, as for `--mpi`.
    pub name: String,
    /// Other names of the same file.
    pub aliases: Vec<String>,
    /// The file.
    pub path: PathBuf,
    /// The kind: `Open MPI`, `MPICH`, `Slurm` or `an unknown launcher`.
    pub kind: String,
    /// The first line that `--version` prints; none where it prints nothing.
    pub version: Option<String>,
    /// The libraries that fit it.
    pub libraries: Vec<PathBuf>,
}

impl InstalledMpi {
    /// Searches the directories of libraries and of `PATH`. Opens no library, and starts each
    /// launcher with `--version`.
    #[must_use]
    pub fn here() -> Self {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let directories: Vec<PathBuf> = std::env::split_paths(&path).collect();
        let launchers =
            launchers_in(&directories).into_iter().filter_map(|(path, names)| launcher(path, names));
        Self::of(search::installed(), launchers.collect())
    }

    /// Finds out which libraries and launchers fit each other.
    fn of(found: Vec<Found>, mut launchers: Vec<MpiLauncher>) -> Self {
        launchers.sort_unstable_by(|a, b| a.name.cmp(&b.name));
        for launcher in &mut launchers {
            let fitting = found.iter().filter(|library| fits(&launcher.kind, library.abi));
            launcher.libraries = fitting.map(|library| library.path.clone()).collect();
        }
        let library = |found: Found| {
            let fitting = launchers.iter().filter(|launcher| fits(&launcher.kind, found.abi));
            let names = fitting.map(|launcher| launcher.name.clone()).collect();
            let Found { path, abi, version } = found;
            MpiLibrary { path, abi: abi.to_string(), version, launchers: names }
        };
        Self { libraries: found.into_iter().map(library).collect(), launchers }
    }
}

/// Whether the ranks of a launcher form one MPI_COMM_WORLD with a library of this ABI. Slurm fits
/// any library for which its `--mpi` has a plugin.
fn fits(kind: &str, abi: Abi) -> bool {
    match kind {
        "Open MPI" => abi == Abi::OpenMpi,
        "MPICH" => abi != Abi::OpenMpi,
        "Slurm" => true,
        _ => false,
    }
}

/// Returns the files of launchers, each with all of its names, in the order of `PATH`.
fn launchers_in(directories: &[PathBuf]) -> BTreeMap<PathBuf, Vec<PathBuf>> {
    let mut found: BTreeMap<PathBuf, Vec<PathBuf>> = BTreeMap::new();
    for directory in directories {
        let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
        let mut paths: Vec<PathBuf> =
            entries.map(|entry| entry.path()).filter(|path| is_launcher(path)).collect();
        paths.sort_unstable();
        for path in paths {
            let Ok(file) = path.canonicalize() else { continue };
            let names = found.entry(file).or_default();
            // The first file of a name hides later ones.
            if !names.iter().any(|name| name.file_name() == path.file_name()) {
                names.push(path);
            }
        }
    }
    found
}

/// Whether a file has the name of a launcher, alone or with the ending of an MPI, such as
/// `.openmpi`. Other files are not started: a script `mpirun.sh` of the user may do anything at
/// `--version`.
fn is_launcher(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let is_one = match name.split_once('.') {
        None => ["mpirun", "mpiexec", "srun"].contains(&name),
        Some(("mpirun" | "mpiexec", ending)) => {
            ENDINGS.contains(&ending.trim_end_matches(|c: char| c.is_ascii_digit() || ".-_".contains(c)))
        }
        Some(_) => false,
    };
    is_one && path.is_file()
}

/// The endings of launchers in distributions and libraries. A version may follow.
const ENDINGS: [&str; 8] = ["openmpi", "ompi", "mpich", "mvapich", "hydra", "intel", "prte", "slurm"];

/// Returns a launcher with its most specific name: `mpirun.openmpi` rather than `mpirun`.
fn launcher(path: PathBuf, mut names: Vec<PathBuf>) -> Option<MpiLauncher> {
    let name = |path: &PathBuf| path.file_name().map(|name| name.to_string_lossy().into_owned());
    names.sort_by_key(|path| {
        let name = name(path).unwrap_or_default();
        (!name.starts_with("mpirun."), !name.starts_with("mpirun"), name)
    });
    let (kind, version) = Kind::of(&names.first()?.to_string_lossy()).ok()?;
    let mut names: Vec<String> = names.iter().filter_map(name).collect();
    let aliases = names.split_off(1);
    let version = Some(version).filter(|version| !version.is_empty());
    let kind = kind.name.to_owned();
    Some(MpiLauncher { name: names.remove(0), aliases, path, kind, version, libraries: Vec::new() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn library(path: &str, abi: Abi) -> Found {
        Found { path: path.into(), abi, version: None }
    }

    fn of_kind(name: &str, kind: &str) -> MpiLauncher {
        MpiLauncher {
            name: name.to_owned(),
            aliases: Vec::new(),
            path: Path::new("/bin").join(name),
            kind: kind.to_owned(),
            version: None,
            libraries: Vec::new(),
        }
    }

    #[test]
    fn launchers_and_libraries_know_each_other() {
        let libraries =
            vec![library("/o", Abi::OpenMpi), library("/m", Abi::Mpich), library("/s", Abi::Standard)];
        let kinds = [
            ("srun", "Slurm"),
            ("mpirun.o", "Open MPI"),
            ("mpirun.m", "MPICH"),
            ("jsrun", "an unknown launcher"),
        ];
        let launchers = kinds.map(|(name, kind)| of_kind(name, kind)).into();
        let mpi = InstalledMpi::of(libraries, launchers);
        let of = |index: usize| mpi.libraries[index].launchers.join(" ");
        assert_eq!([of(0), of(1), of(2)], ["mpirun.o srun", "mpirun.m srun", "mpirun.m srun"]);
        let paths = |name: &str| {
            let launcher = mpi.launchers.iter().find(|launcher| launcher.name == name).unwrap();
            launcher.libraries.iter().map(|path| path.to_string_lossy()).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(paths("mpirun.o"), "/o");
        assert_eq!(paths("mpirun.m"), "/m /s");
        assert_eq!(paths("srun"), "/o /m /s");
        assert_eq!(paths("jsrun"), "");
    }

    #[test]
    fn a_launcher_has_the_ending_of_an_mpi_or_none() {
        let dir = tempfile::tempdir().unwrap();
        let names = ["srun", "mpirun", "mpiexec.hydra", "mpirun.mpich2", "mpirun.openmpi-4.1"];
        for name in names {
            std::fs::write(dir.path().join(name), "").unwrap();
            assert!(is_launcher(&dir.path().join(name)), "{name}");
        }
        assert!(!is_launcher(&dir.path().join("mpiexec")), "there is none");
    }

    #[test]
    fn each_file_is_one_launcher_with_its_best_name() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        std::fs::write(at("orterun"), "").unwrap();
        for name in ["mpirunner", "mpirun.sh", "mpiexec.py", "srun.old", "mpirun."] {
            std::fs::write(at(name), "").unwrap();
        }
        for name in ["mpiexec", "mpirun.openmpi", "mpirun"] {
            std::os::unix::fs::symlink("orterun", at(name)).unwrap();
        }
        let found = launchers_in(&[dir.path().to_owned(), dir.path().to_owned()]);
        assert_eq!(found.len(), 1, "{found:?}");
        let names = found.into_values().next().unwrap();
        assert_eq!(names, ["mpiexec", "mpirun", "mpirun.openmpi"].map(at));
        // A file that cannot be started is not a launcher.
        assert!(launcher(at("orterun"), names).is_none());
    }
}
