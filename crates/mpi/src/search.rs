//! Which MPI library to open: by the variables of the launcher that started this process, and by
//! the installed libraries.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use crate::abi::Abi;
use crate::elf::Symbols;

/// Open MPI's library; 40 since Open MPI 4.
const OPEN_MPI: &[&str] = &["libmpi.so.40"];
/// Libraries of MPICH's ABI: Debian's MPICH; MPICH, Intel MPI and MVAPICH elsewhere; Cray's.
const MPICH: &[&str] = &["libmpich.so.12", "libmpi.so.12", "libmpi_gnu.so.12", "libmpi_cray.so.12"];
/// Libraries of the standard ABI: MPICH 5's, and the name that MPI 5.0 suggests.
const STANDARD: &[&str] = &["libmpi_abi.so.1", "libmpi_abi.so.0"];
/// The variable by which users name a library.
const VARIABLE: &str = "RDMASCOPE_MPI_LIBRARY";
/// How deep files of `ld.so.conf` may include others.
const INCLUDES: usize = 8;

/// A library to try.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Candidate {
    /// Name or path, as [`Library::open`](crate::Library::open) takes it.
    pub name: String,
    /// Why it is a candidate, in words.
    pub why: String,
}

/// An installed library.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Found {
    /// Its file, with symbolic links resolved.
    pub path: PathBuf,
    /// The ABI that its symbols show.
    pub abi: Abi,
    /// The version, where the file has it as a constant (Open MPI 4, MPICH up to 4); otherwise only
    /// `MPI_Get_library_version` knows it.
    pub version: Option<String>,
}

/// Returns the libraries to try, the likeliest first, by the variables of an environment.
///
/// `RDMASCOPE_MPI_LIBRARY` leaves no other candidate. Then the launcher's variables decide; Open
/// MPI's come first, because ranks that `mpirun.mpich` starts inside of a job inherit those of
/// both. PMIx alone (`srun --mpi=pmix`) is Open MPI's more often than MPICH's.
#[must_use]
pub fn candidates(environment: impl Fn(&str) -> Option<String>) -> Vec<Candidate> {
    if let Some(name) = environment(VARIABLE).filter(|name| !name.is_empty()) {
        return vec![Candidate { name, why: format!("{VARIABLE} names it") }];
    }
    let is_set = |variable: &&str| environment(variable).is_some();
    let launcher = |variables: &[&'static str]| variables.iter().copied().find(|name| is_set(name));
    let (why, order) = if let Some(variable) = launcher(&["OMPI_COMM_WORLD_SIZE"]) {
        (format!("{variable} is set: the launcher is Open MPI's mpirun"), [OPEN_MPI, &[], &[]])
    } else if let Some(variable) = launcher(&["PMI_FD", "PMI_SIZE", "HYDI_CONTROL_FD"]) {
        (format!("{variable} is set: the launcher speaks MPICH's PMI"), [MPICH, STANDARD, &[]])
    } else if let Some(variable) = launcher(&["PMIX_RANK"]) {
        (format!("{variable} is set: the launcher speaks PMIx"), [OPEN_MPI, MPICH, STANDARD])
    } else {
        ("no launcher's variable is set".to_owned(), [OPEN_MPI, MPICH, STANDARD])
    };
    let names = order.into_iter().flatten();
    names.map(|&name| Candidate { name: name.to_owned(), why: why.clone() }).collect()
}

/// Returns the MPI libraries that are installed in the directories of the dynamic linker
/// (`LD_LIBRARY_PATH`, `/etc/ld.so.conf`, the default ones), and beside the directories of `PATH`
/// (`/opt/mpi/bin`: `/opt/mpi/lib`). Opens none: ABI and version are read from the files' symbols.
#[must_use]
pub fn installed() -> Vec<Found> {
    let mut directories = paths_of("LD_LIBRARY_PATH");
    configured(Path::new("/etc/ld.so.conf"), INCLUDES, &mut directories);
    directories.extend(["/lib64", "/usr/lib64", "/lib", "/usr/lib", "/usr/local/lib"].map(PathBuf::from));
    for bin in paths_of("PATH") {
        if let Some(prefix) = bin.parent().filter(|_| bin.ends_with("bin")) {
            directories.extend(["lib", "lib64"].map(|name| prefix.join(name)));
        }
    }
    installed_in(&directories)
}

/// The MPI libraries of some directories, each file once.
fn installed_in(directories: &[PathBuf]) -> Vec<Found> {
    let mut known = BTreeSet::new();
    let mut found = Vec::new();
    for directory in directories {
        for name in [OPEN_MPI, MPICH, STANDARD].into_iter().flatten() {
            let Ok(path) = directory.join(name).canonicalize() else { continue };
            if known.insert(path.clone()) {
                found.extend(inspect(path));
            }
        }
    }
    found
}

/// ABI and version of a file, if it is an MPI library.
fn inspect(path: PathBuf) -> Option<Found> {
    let symbols = Symbols::of(&path)?;
    if !symbols.defines("MPI_Init_thread") {
        return None;
    }
    // MPICH's ABI has MPI_UNWEIGHTED as a symbol; the standard has it as a number.
    let (abi, version) = if symbols.defines("ompi_mpi_comm_world") {
        (Abi::OpenMpi, symbols.text("ompi_version_string").map(|version| format!("Open MPI v{version}")))
    } else if symbols.defines("MPI_Abi_get_version") && !symbols.defines("MPI_UNWEIGHTED") {
        (Abi::Standard, None)
    } else {
        (Abi::Mpich, symbols.text("MPII_Version_string").map(|version| format!("MPICH {version}")))
    };
    Some(Found { path, abi, version })
}

/// The directories of a variable.
fn paths_of(variable: &str) -> Vec<PathBuf> {
    let value = std::env::var_os(variable).unwrap_or_default();
    std::env::split_paths(&value).filter(|path| path.is_absolute()).collect()
}

/// Adds the directories that a file of `ld.so.conf` (man ldconfig) names. Of an included pattern,
/// the last part may have one `*`.
fn configured(file: &Path, depth: usize, directories: &mut Vec<PathBuf>) {
    let Ok(text) = fs::read_to_string(file) else { return };
    for line in text.lines() {
        let line = line.split('#').next().unwrap_or_default().trim();
        let Some(pattern) = line.strip_prefix("include ") else {
            if line.starts_with('/') {
                directories.push(line.into());
            }
            continue;
        };
        let directory = file.parent().unwrap_or(Path::new("/"));
        for included in matching(&directory.join(pattern.trim())) {
            if depth > 0 {
                configured(&included, depth - 1, directories);
            }
        }
    }
}

/// The files of a pattern, sorted.
fn matching(pattern: &Path) -> Vec<PathBuf> {
    let name = pattern.file_name().and_then(OsStr::to_str).unwrap_or_default();
    let Some((start, end)) = name.split_once('*') else { return vec![pattern.into()] };
    let Some(Ok(entries)) = pattern.parent().map(fs::read_dir) else { return Vec::new() };
    let is_meant = |path: &PathBuf| {
        let name = path.file_name().and_then(OsStr::to_str).unwrap_or_default();
        name.len() >= start.len() + end.len() && name.starts_with(start) && name.ends_with(end)
    };
    let mut files: Vec<_> = entries.flatten().map(|entry| entry.path()).filter(is_meant).collect();
    files.sort_unstable();
    files
}

#[cfg(test)]
mod tests;
