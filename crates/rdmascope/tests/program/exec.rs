//! `rdmascope exec`: the program replaces the process and finds softdev; a program that cannot is
//! refused with a sentence.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::{Ended, PROGRAM, Scratch, copy_program, finish, is_installed, skip};

/// The file name of the library.
const LIBRARY: &str = "librdmascope_preload.so";

/// Returns the library that cargo has built with the program.
fn library() -> PathBuf {
    Path::new(*PROGRAM).parent().unwrap().join("deps").join(LIBRARY)
}

/// The linker would take such a function from any library of the program.
#[test]
fn the_program_itself_defines_no_function_of_the_library() {
    let output = Command::new("nm").args(["--defined-only", "-P", *PROGRAM]).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let names: Vec<_> = text.lines().filter_map(|line| line.split(' ').next()).collect();
    assert!(names.contains(&"main"), "{} symbols", names.len());
    for name in ["stat64", "access", "dlsym", "ibv_open_device"] {
        assert!(!names.contains(&name), "{name}");
    }
}

#[test]
fn the_program_becomes_the_process() {
    let scratch = Scratch::new();
    let ended = scratch.run(&["exec", "--", "sh", "-c", "echo out; echo err >&2; exit 7"]);
    assert_eq!((ended.status, ended.stdout.as_str(), ended.stderr.as_str()), (Some(7), "out\n", "err\n"));
    let ended = scratch.run(&["exec", "sh", "-c", "kill -TERM $$"]);
    assert_eq!(ended.status, None, "the program gets the signal: {ended:?}");
    // The shell that starts rdmascope and the program have the same process ID.
    let mut shell = scratch.command("sh");
    shell.args(["-c", "echo $$; exec \"$0\" exec -- sh -c 'echo $$; echo $0'", *PROGRAM]);
    let text = finish(shell).stdout;
    let lines: Vec<_> = text.lines().collect();
    assert!(lines.len() == 3 && lines[0] == lines[1] && lines[2] == "sh", "{text}");
}

#[test]
fn the_environment_says_what_was_asked_for() {
    let scratch = Scratch::new();
    let show = "echo \"$LD_PRELOAD|$RDMASCOPE_SOFTDEV_DEVICES|$RDMASCOPE_SOFTDEV_LINK_LAYER\"";
    let library = fs::canonicalize(library()).unwrap().display().to_string();
    assert_eq!(scratch.succeed(&["exec", "sh", "-c", show]), format!("{library}||\n"));
    let flags = ["exec", "--devices", "3", "--link-layer", "InfiniBand", "sh", "-c", show];
    assert_eq!(scratch.succeed(&flags), format!("{library}|3|infiniband\n"));
    let show_mtu = "echo $RDMASCOPE_SOFTDEV_MTU";
    assert_eq!(scratch.succeed(&["exec", "sh", "-c", show_mtu]), "netdev\n");
    assert_eq!(scratch.succeed(&["exec", "--mtu", "2048", "sh", "-c", show_mtu]), "2048\n");
    for (said, flags, mtu) in [("512", &[][..], "512\n"), ("512", &["--mtu", "netdev"], "netdev\n")] {
        let mut command = scratch.program([&["exec"], flags, &["sh", "-c", show_mtu]].concat());
        command.env("RDMASCOPE_SOFTDEV_MTU", said);
        assert_eq!(finish(command).stdout, mtu, "with {flags:?}");
    }
    // Alone, and with another preloaded library: the first one that the machine has.
    let nested = scratch.program(["exec", *PROGRAM, "exec", "sh", "-c", show]);
    assert_eq!(finish(nested).stdout, format!("{library}||\n"));
    let mut other = scratch.program(["exec", "sh", "-c", show]);
    other.env("LD_PRELOAD", "libc.so.6");
    assert_eq!(finish(other).stdout, format!("{library}:libc.so.6||\n"));
}

#[test]
fn ranks_have_what_their_launcher_has_not() {
    let scratch = Scratch::new();
    let library = fs::canonicalize(library()).unwrap().display().to_string();
    let show = "echo \"$LD_PRELOAD|$RDMASCOPE_SOFTDEV_LINK\"";
    let mut is_there = false;
    for launcher in ["mpirun.openmpi", "mpirun.mpich"].into_iter().filter(|name| is_installed(name)) {
        is_there = true;
        let device = ["exec", "--wrap", "--link", "4X FDR,latency=700ns"];
        // On a busy machine, SIGPIPE kills MPICH's launcher in one of 70 launches of ranks that end
        // at once, also without rdmascope.
        let show = format!("{show}; sleep 0.2");
        let ranks = [launcher, "-np", "2", "sh", "-c", &show];
        let mut command = scratch.program(device.into_iter().chain(ranks));
        command.env("OMPI_ALLOW_RUN_AS_ROOT", "1").env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
        command.env("OMPI_MCA_rmaps_base_oversubscribe", "1");
        let ended = finish(command);
        let line = format!("{library}|4X FDR,latency=700ns\n");
        assert_eq!((ended.status, ended.stdout), (Some(0), line.repeat(2)), "{launcher}: {}", ended.stderr);
    }
    if !is_there {
        skip("mpi", "no MPI launcher is installed");
    }
    let ended = scratch.run(&["exec", "--wrap", "sh", "-c", show]);
    let why = "rdmascope: sh is not a launcher such as mpirun, mpiexec or srun: leave --wrap out\n";
    assert_eq!((ended.status, ended.stderr.as_str()), (Some(2), why));
}

/// Without the library: the files that the kernel shows in the namespace.
#[test]
fn a_namespace_has_the_files_for_whoever_asks_the_system() {
    let scratch = Scratch::new();
    let script = "unset LD_PRELOAD
        find /sys/class/infiniband -name state -exec cat {} +
        cat /sys/class/infiniband_verbs/uverbs1/ibdev
        test -c /dev/infiniband/uverbs1 && test -w /dev/infiniband/uverbs1
        test -e /sys/class/net/lo/mtu && echo x > /dev/null && test -d /dev/shm && id -u";
    let ended = scratch.run(&["exec", "--namespace", "--devices", "2", "sh", "-ec", script]);
    if ended.status == Some(1) && ended.stderr.contains("does not allow user and mount") {
        return skip("namespaces", "this host does not allow user and mount namespaces");
    }
    let user = rustix::process::geteuid().as_raw();
    let expected = format!("4: ACTIVE\n4: ACTIVE\nsoftdev1\n{user}\n");
    assert_eq!((ended.status, ended.stdout), (Some(0), expected), "{}", ended.stderr);
    assert!(!Path::new("/sys/class/.covered").exists() && !Path::new("/dev/.covered").exists());
}

#[test]
fn programs_find_the_software_device() {
    if !is_installed("ibv_devinfo") {
        return skip("vm", "ibv_devinfo is not installed");
    }
    let scratch = Scratch::new();
    let list = scratch.succeed(&["exec", "ibv_devices"]);
    assert!(list.contains("softdev0"), "{list}");
    let text = scratch.succeed(&["exec", "ibv_devinfo", "-v"]);
    for word in ["softdev0", "PORT_ACTIVE", "RoCE v2", "fe80:"] {
        assert!(text.contains(word), "no {word} in {text}");
    }
}

#[test]
fn programs_find_the_files_of_the_devices() {
    let scratch = Scratch::new();
    let device = "test -c /dev/infiniband/uverbs1 && test -w /dev/infiniband/uverbs1";
    scratch.succeed(&["exec", "--devices", "2", "sh", "-c", device]);
    let ended = scratch.run(&["exec", "sh", "-c", device]);
    assert_eq!(ended.status, Some(1), "there is no such device: {ended:?}");
}

#[test]
fn ucx_offers_the_software_device() {
    if !is_installed("ucx_info") {
        return skip("vm", "ucx_info is not installed");
    }
    let scratch = Scratch::new();
    let text = scratch.succeed(&["exec", "ucx_info", "-d"]);
    for word in ["rc_verbs", "ud_verbs", "Device: softdev0:1"] {
        assert!(text.contains(word), "no {word} in {text}");
    }
}

#[test]
fn programs_that_cannot_be_reached_are_refused() {
    let scratch = Scratch::new();
    let refused = |words: &[&str], status, expected: &[&str]| {
        scratch.refused(&[&["exec"][..], words].concat(), status, expected);
    };
    refused(&["no-such-program"], 127, &["cannot start no-such-program", "PATH"]);
    refused(&["./none"], 127, &["cannot start ./none", "no such file"]);
    scratch.write("text", "no program");
    refused(&["./text"], 126, &["cannot start ./text", "Permission denied"]);
    if Path::new("/sbin/ldconfig").exists() {
        refused(&["/sbin/ldconfig", "-p"], 1, &["/sbin/ldconfig is linked statically", "shared library"]);
    }
    let mut foreign = fs::read(*PROGRAM).unwrap()[..4096].to_vec();
    foreign[18] ^= 1;
    scratch.write("foreign", foreign);
    refused(&["./foreign"], 1, &["./foreign is built for another architecture"]);
}

#[test]
fn wrong_usage_is_told() {
    let scratch = Scratch::new();
    for (words, expected) in [
        (&["--devices", "0", "ls"][..], "give a number from 1 to 16"),
        (&["--devices", "17", "ls"], "give a number from 1 to 16"),
        (&["--mtu", "1500", "ls"], "a port's MTU is 256, 512, 1024, 2048 or 4096 bytes, or `netdev`"),
        (&["--link-layer", "omnipath", "ls"], "possible values: ethernet, infiniband"),
        (&["--"], "Usage: rdmascope exec"),
    ] {
        let ended = scratch.run(&[&["exec"][..], words].concat());
        assert_eq!((ended.status, ended.stdout.as_str()), (Some(2), ""), "{words:?}: {ended:?}");
        assert!(ended.stderr.contains(expected), "{words:?}: {}", ended.stderr);
    }
    let mut wrong = scratch.program(["exec", "ls"]);
    wrong.env("RDMASCOPE_PRELOAD", "/nowhere/x.so");
    let ended = finish(wrong);
    assert_eq!(ended.status, Some(2));
    assert!(ended.stderr.contains("RDMASCOPE_PRELOAD: /nowhere/x.so is not a file"), "{}", ended.stderr);
}

#[test]
fn the_library_inside_the_program_is_extracted_where_no_file_is_it() {
    let scratch = Scratch::new();
    let place = |directory: &str| {
        fs::create_dir_all(scratch.at(directory)).unwrap();
        scratch.at(directory)
    };
    copy_program(&place("usr/bin").join("rdmascope"));
    let cache = place("cache");
    let run = || {
        let mut command = scratch.command(scratch.at("usr/bin/rdmascope"));
        command.env("XDG_CACHE_HOME", &cache).args(["exec", "sh", "-c", "echo $LD_PRELOAD"]);
        finish(command)
    };
    let extracted = |ended: &Ended| {
        assert_eq!((ended.status, ended.stderr.as_str()), (Some(0), ""));
        let path = PathBuf::from(ended.stdout.trim());
        assert!(path.starts_with(cache.join("rdmascope")), "{}", path.display());
        assert_eq!(fs::read(path).unwrap(), fs::read(library()).unwrap());
    };
    extracted(&run());
    extracted(&run());
    // A file of another version, where a package would put the library, is not this program's.
    let link = place("usr/lib/rdmascope").join(LIBRARY);
    fs::write(&link, b"another").unwrap();
    extracted(&run());
    for directory in ["usr/lib/rdmascope", "usr/bin"] {
        let link = place(directory).join(LIBRARY);
        fs::copy(library(), &link).unwrap();
        let expected = fs::canonicalize(&link).unwrap();
        assert_eq!(run().stdout, format!("{}\n", expected.display()));
    }
    // A path that cannot be in LD_PRELOAD.
    let spaced = place("with space").join(LIBRARY);
    fs::copy(library(), &spaced).unwrap();
    let mut command = scratch.program(["exec", "ls"]);
    command.env("RDMASCOPE_PRELOAD", &spaced);
    let ended = finish(command);
    assert!(ended.status == Some(1) && ended.stderr.contains("a space or a colon"), "{ended:?}");
}
