//! The search, in environments and directories that the tests make.

use super::*;

fn names(variables: &[(&str, &str)]) -> Vec<(String, String)> {
    let value = |name: &str| {
        variables.iter().find(|(variable, _)| *variable == name).map(|(_, value)| (*value).to_owned())
    };
    candidates(value).into_iter().map(|candidate| (candidate.name, candidate.why)).collect()
}

#[test]
fn the_launchers_variables_decide() {
    let open_mpi = names(&[("OMPI_COMM_WORLD_SIZE", "2"), ("PMI_SIZE", "2"), ("PMIX_RANK", "0")]);
    let why = "OMPI_COMM_WORLD_SIZE is set: the launcher is Open MPI's mpirun";
    assert_eq!(open_mpi, [("libmpi.so.40".to_owned(), why.to_owned())]);
    for variable in ["PMI_FD", "PMI_SIZE", "HYDI_CONTROL_FD"] {
        let mpich = names(&[(variable, "7")]);
        assert_eq!(mpich[0].0, "libmpich.so.12");
        assert_eq!(mpich[0].1, format!("{variable} is set: the launcher speaks MPICH's PMI"));
        assert!(mpich.iter().any(|(name, _)| name == "libmpi_abi.so.1"));
        assert!(mpich.iter().all(|(name, _)| name != "libmpi.so.40"));
    }
    assert_eq!(names(&[("PMIX_RANK", "0")])[0].0, "libmpi.so.40");
    assert_eq!(names(&[])[0].1, "no launcher's variable is set");
}

#[test]
fn the_users_variable_leaves_no_other() {
    let named = names(&[("RDMASCOPE_MPI_LIBRARY", "/opt/libmpi.so"), ("OMPI_COMM_WORLD_SIZE", "2")]);
    assert_eq!(named, [("/opt/libmpi.so".to_owned(), "RDMASCOPE_MPI_LIBRARY names it".to_owned())]);
    assert_eq!(names(&[("RDMASCOPE_MPI_LIBRARY", "")])[0].0, "libmpi.so.40");
}

#[test]
fn included_files_of_ld_so_conf_are_read() {
    let root = std::env::temp_dir().join(format!("mpi-search-{}", std::process::id()));
    fs::create_dir_all(root.join("conf.d")).unwrap();
    let write = |name: &str, text: &str| fs::write(root.join(name), text).unwrap();
    write("ld.so.conf", "# comment\n/first  # more\ninclude conf.d/*.conf\ninclude ld.so.conf\n/last\n");
    write("conf.d/b.conf", "/b\n");
    write("conf.d/a.conf", "/a\nrelative\n");
    write("conf.d/a.conf.old", "/old\n");
    let mut directories = Vec::new();
    configured(&root.join("ld.so.conf"), 0, &mut directories);
    assert_eq!(directories, ["/first", "/last"].map(PathBuf::from));
    directories.clear();
    configured(&root.join("ld.so.conf"), 1, &mut directories);
    // The inclusion of the file by itself ends at the maximum depth.
    assert_eq!(directories, ["/first", "/a", "/b", "/first", "/last", "/last"].map(PathBuf::from));
    fs::remove_dir_all(root).unwrap();
}

#[test]
fn a_file_that_is_no_library_is_not_found() {
    let root = std::env::temp_dir().join(format!("mpi-search-file-{}", std::process::id()));
    fs::create_dir_all(&root).unwrap();
    fs::write(root.join("libmpi.so.40"), "INPUT(libmpi_real.so)").unwrap();
    // An ELF library, but not of MPI.
    let libc = ["/lib/x86_64-linux-gnu/libc.so.6", "/lib64/libc.so.6", "/lib/aarch64-linux-gnu/libc.so.6"];
    if let Some(libc) = libc.iter().find(|path| Path::new(path).exists()) {
        std::os::unix::fs::symlink(libc, root.join("libmpi.so.12")).unwrap();
        assert!(Symbols::of(Path::new(libc)).is_some_and(|symbols| symbols.defines("getpid")));
    }
    assert_eq!(installed_in(std::slice::from_ref(&root)), []);
    fs::remove_dir_all(root).unwrap();
}

/// The installed libraries, compared with the compiler wrappers that are installed.
#[test]
fn the_installed_libraries_are_found() {
    let found = installed();
    println!("{found:?}");
    for (compiler, abi) in [("mpicc.openmpi", Abi::OpenMpi), ("mpicc.mpich", Abi::Mpich)] {
        let required = std::env::var("RDMASCOPE_REQUIRE").unwrap_or_default();
        if !paths_of("PATH").iter().any(|path| path.join(compiler).exists()) {
            assert!(!required.split(',').any(|word| word == "mpi"), "{compiler} is required here");
            println!("SKIPPED: {compiler} is not installed (apt-get install libopenmpi-dev libmpich-dev)");
            continue;
        }
        let of = found.iter().find(|found| found.abi == abi).expect("it is installed");
        assert!(of.version.is_some(), "{of:?}");
    }
}
