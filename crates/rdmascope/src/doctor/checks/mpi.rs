//! MPI libraries and the launchers that start ranks for them.

use std::path::{Path, PathBuf};

use bench::process::launcher::installed::{MpiLauncher, MpiLibrary};

use crate::doctor::facts::Facts;
use crate::doctor::finding::{Finding, Severity};

/// Reports libraries without a launcher and launchers without a library. A host without MPI is
/// fine.
pub(in crate::doctor) fn pairs(facts: &Facts) -> Vec<Finding> {
    let mpi = &facts.survey.mpi;
    let libraries = mpi.libraries.iter().map(|one| library(facts, one));
    let alone = mpi.launchers.iter().filter(|launcher| launcher.libraries.is_empty());
    libraries.chain(alone.map(|one| launcher(facts, one))).collect()
}

fn library(facts: &Facts, library: &MpiLibrary) -> Finding {
    let name = library.version.clone().unwrap_or_else(|| format!("MPI with the {} ABI", library.abi));
    let looked_at = library.path.display().to_string();
    if !library.launchers.is_empty() {
        let found = format!("{name} is started by {}", library.launchers.join(", "));
        return Finding::good("MPI", looked_at, found);
    }
    let why = "points over MPI cannot be measured with it: no program in PATH starts its ranks";
    let finding = Finding::good("MPI", looked_at, format!("{name} has no launcher")).but(Severity::Note, why);
    let directory = library.path.parent().unwrap_or(Path::new("/"));
    let prefix = directory.parent().filter(|_| directory.ends_with("lib") || directory.ends_with("lib64"));
    let programs = prefix.map(|prefix| prefix.join("bin"));
    let is_shared =
        |programs: &PathBuf| [Path::new("/bin"), Path::new("/usr/bin")].contains(&programs.as_path());
    match programs.filter(|programs| !is_shared(programs) && has_launcher(programs)) {
        // The launcher is installed, and a package would install another one.
        Some(programs) => finding.mended_by(format!("export PATH={}:$PATH", programs.display())),
        None if is_of_system(directory) => {
            let package = if library.abi == "Open MPI" { "openmpi-bin" } else { "mpich" };
            finding.mended_by(facts.as_root(&format!("apt-get install {package}")))
        }
        None => finding,
    }
}

/// Whether packages of the distribution install files there.
fn is_of_system(directory: &Path) -> bool {
    let is_in = |system: &str| directory.starts_with(system);
    ["/usr/lib", "/usr/lib64", "/lib", "/lib64"].iter().any(|system| is_in(system))
}

fn has_launcher(directory: &Path) -> bool {
    ["mpirun", "mpiexec"].iter().any(|name| directory.join(name).is_file())
}

fn launcher(facts: &Facts, launcher: &MpiLauncher) -> Finding {
    let found = format!("{} ({}) has no library", launcher.name, launcher.kind);
    let why = "points over MPI cannot be measured with it: no library in the directories of the dynamic linker fits it";
    let finding = Finding::good("MPI", launcher.path.display().to_string(), found).but(Severity::Note, why);
    let package = match launcher.kind.as_str() {
        "Open MPI" | "Slurm" => "libopenmpi3",
        "MPICH" => "libmpich12",
        _ => return finding,
    };
    finding.mended_by(facts.as_root(&format!("apt-get install {package}")))
}
