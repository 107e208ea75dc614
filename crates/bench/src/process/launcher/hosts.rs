//! Other places than its command that tell Open MPI on which hosts to place ranks, and how many:
//! variables, and files of the site or the user.

use std::fs;
use std::path::{Path, PathBuf};

/// Whether an environment variable places ranks. Open MPI takes its parameters from variables, too.
pub(super) fn is_told_by(variable: &str) -> bool {
    let parameter = variable.strip_prefix("OMPI_MCA_").or_else(|| variable.strip_prefix("PRTE_MCA_"));
    parameter.is_some_and(places)
}

/// Whether a file that this launcher reads places ranks.
pub(super) fn are_in_files(program: &str) -> bool {
    let prefix = file_of(program).and_then(|file| Some(file.parent()?.parent()?.to_owned()));
    let mut directories: Vec<PathBuf> = prefix.iter().map(|prefix| prefix.join("etc")).collect();
    if prefix.is_some_and(|prefix| prefix.starts_with("/usr")) {
        directories.extend(["/etc/openmpi", "/etc/openmpi-x86_64"].map(PathBuf::from));
    }
    let home = std::env::var_os("HOME").map(PathBuf::from);
    let of_user = home.is_some_and(|home| sets_places(&home.join(".openmpi/mca-params.conf")));
    of_user || directories.iter().any(|directory| are_in(directory))
}

/// Whether a file of a directory places ranks.
fn are_in(directory: &Path) -> bool {
    let names = |name: &str| lines(&directory.join(name)).next().is_some();
    ["openmpi-default-hostfile", "prte-default-hostfile"].into_iter().any(names)
        || sets_places(&directory.join("openmpi-mca-params.conf"))
}

/// Whether a file of parameters sets one that places ranks.
fn sets_places(file: &Path) -> bool {
    lines(file).any(|line| places(line.split('=').next().unwrap_or_default().trim()))
}

/// Whether a parameter says where ranks are placed, or how many.
fn places(parameter: &str) -> bool {
    ["rmaps_", "ras_", "orte_default_hostfile", "prte_default_hostfile"]
        .iter()
        .any(|begin| parameter.starts_with(begin))
}

/// Returns the lines of a file without comments and empty lines; none if the file is missing.
fn lines(file: &Path) -> impl Iterator<Item = String> {
    let text = fs::read_to_string(file).unwrap_or_default();
    let lines: Vec<String> = text.lines().map(|line| line.trim().to_owned()).collect();
    lines.into_iter().filter(|line| !line.is_empty() && !line.starts_with('#'))
}

/// Returns the file of a program that is in `PATH` or named by its path.
fn file_of(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let directories = std::env::split_paths(&path).filter(|_| !program.contains('/'));
    let found = directories.map(|directory| directory.join(program)).find(|file| file.is_file());
    found.unwrap_or_else(|| program.into()).canonicalize().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_that_place_ranks_are_told_from_others() {
        for name in ["OMPI_MCA_rmaps_base_mapping_policy", "PRTE_MCA_prte_default_hostfile"] {
            assert!(is_told_by(name), "{name}");
        }
        assert!(!is_told_by("OMPI_MCA_btl") && !is_told_by("X_OMPI_MCA_rmaps_x"));
    }

    #[test]
    fn files_of_the_prefix_of_a_launcher_tell_its_hosts() {
        let prefix = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            let file = prefix.path().join(name);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, text).unwrap();
        };
        write("bin/mpirun", "");
        let program = prefix.path().join("bin/mpirun").to_string_lossy().into_owned();
        write("etc/openmpi-default-hostfile", "# a comment\n\n");
        write("etc/openmpi-mca-params.conf", "# rmaps_base_oversubscribe = 1\nbtl = self,tcp\n");
        let etc = prefix.path().join("etc");
        assert!(!are_in(&etc));
        write("etc/openmpi-default-hostfile", "# a comment\nnode1 slots=2\n");
        assert!(are_in_files(&program));
        write("etc/openmpi-default-hostfile", "");
        assert!(!are_in(&etc));
        write("etc/openmpi-mca-params.conf", "btl = self\n rmaps_base_oversubscribe = 0\n");
        assert!(are_in_files(&program));
    }
}
