//! What programs find that look up libibverbs at run time.

mod support;

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use support::library;

/// Runs a command with the library preloaded before others.
fn preloaded(command: &mut Command, others: &[&Path]) -> Output {
    let mut value = OsString::from(library());
    for other in others {
        value.push(":");
        value.push(other);
    }
    command.env("LD_PRELOAD", value).env_remove("RDMASCOPE_SOFTDEV_DEVICES");
    command.output().unwrap()
}

#[track_caller]
fn said(output: &Output) -> String {
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn python(program: &str) -> Option<Output> {
    let has_library =
        Command::new("python3").args(["-c", "import ctypes; ctypes.CDLL('libibverbs.so.1')"]).output();
    if !has_library.is_ok_and(|output| output.status.success()) {
        let required = std::env::var("RDMASCOPE_REQUIRE").unwrap_or_default();
        assert!(!required.contains("header"), "libibverbs is not installed, or python3 is not");
        eprintln!("SKIPPED: libibverbs is not installed, or python3 is not");
        return None;
    }
    Some(preloaded(Command::new("python3").args(["-c", program]), &[]))
}

const START: &str = "
from ctypes import *
verbs = CDLL('libibverbs.so.1')
c = CDLL(None)
c.dlvsym.restype, c.dlvsym.argtypes = c_void_p, [c_void_p, c_char_p, c_char_p]
c.dlmopen.restype, c.dlmopen.argtypes = c_void_p, [c_long, c_char_p, c_int]
c.dlerror.restype = c_char_p
def address(function): return cast(function, c_void_p).value
";

#[test]
fn a_library_that_is_opened_leads_to_the_device() {
    let program = "
count = c_int()
verbs.ibv_get_device_list.restype = POINTER(c_void_p)
devices = verbs.ibv_get_device_list(byref(count))
verbs.ibv_get_device_name.restype, verbs.ibv_get_device_name.argtypes = c_char_p, [c_void_p]
print(count.value, verbs.ibv_get_device_name(devices[0]).decode())
# What takes no object of the device is the real library's.
verbs.ibv_wc_status_str.restype = c_char_p
print(verbs.ibv_wc_status_str(0).decode())
";
    let Some(output) = python(&format!("{START}{program}")) else { return };
    assert_eq!(said(&output), "1 softdev0\nsuccess\n");
}

#[test]
fn every_version_of_a_function_is_ours() {
    let program = "
own = address(verbs.ibv_open_device)
find = lambda name, version: c.dlvsym(verbs._handle, name, version)
print(find(b'ibv_open_device', b'IBVERBS_1.1') == own, find(b'ibv_open_device', b'IBVERBS_1.0') == own)
print(find(b'ibv_open_device', b'IBVERBS_9.9'), find(b'ibv_no_such_function', b'IBVERBS_1.1'))
print(find(b'ibv_wc_status_str', b'IBVERBS_1.1') == address(verbs.ibv_wc_status_str))
print(address(c.ibv_open_device) == own, hasattr(verbs, 'ibv_no_such_function'), hasattr(c, 'getpid'))
";
    let Some(output) = python(&format!("{START}{program}")) else { return };
    assert_eq!(said(&output), "True True\nNone None\nTrue\nTrue False True\n");
}

#[test]
fn a_namespace_of_its_own_is_refused() {
    let program = "
print(c.dlmopen(-1, b'libibverbs.so.1', 2), c.dlerror().decode())
print(c.dlmopen(0, b'libibverbs.so.1', 2) is not None)
";
    let Some(output) = python(&format!("{START}{program}")) else { return };
    let text = said(&output);
    let mut lines = text.lines();
    let refused = lines.next().unwrap();
    assert!(refused.starts_with("None libibverbs in a namespace of its own (dlmopen), in which"), "{text}");
    assert_eq!(lines.next(), Some("True"));
    assert_eq!(output.stderr, b"");
}

#[test]
fn what_cannot_be_reached_is_said_once() {
    let program = "
c.dlopen.restype, c.dlopen.argtypes = c_void_p, [c_char_p, c_int]
print([c.dlopen(b'libm.so.6', 2 | 8) is not None for _ in range(2)])
";
    let Some(output) = python(&format!("{START}{program}")) else { return };
    assert_eq!(said(&output), "[True, True]\n");
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(text.starts_with("rdmascope exec: libm.so.6 is opened with RTLD_DEEPBIND: "), "{text}");
    assert_eq!(text.lines().count(), 1, "{text}");
}

/// Compiles C.
fn compile(directory: &Path, name: &str, source: &str, options: &[&str]) -> PathBuf {
    let file = directory.join(format!("{name}.c"));
    fs::write(&file, source).unwrap();
    let to = directory.join(name);
    fs::create_dir_all(to.parent().unwrap()).unwrap();
    let output = Command::new("cc").arg("-o").arg(&to).arg(&file).args(options).arg("-ldl").output().unwrap();
    assert!(output.status.success(), "{output:?}");
    to
}

#[test]
fn a_caller_stays_who_it_is() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    // Only the program's own RUNPATH leads to this directory.
    fs::create_dir(path.join("sub")).unwrap();
    compile(path, "libthere.so", "int there(void) { return 42; }", &["-shared", "-fPIC"]);
    fs::rename(path.join("libthere.so"), path.join("sub/libthere.so")).unwrap();
    let program = r#"
        #include <dlfcn.h>
        #include <stdio.h>
        #include <unistd.h>
        int main(void) {
            void *library = dlopen("libthere.so", RTLD_NOW);
            int (*there)(void) = library ? (int (*)(void))dlsym(library, "there") : 0;
            printf("%d %d\n", there ? there() : -1, getppid() == 1000000);
            return 0;
        }"#;
    let program = compile(path, "program", program, &["-Wl,--enable-new-dtags", "-Wl,-rpath,$ORIGIN/sub"]);
    // A library behind this one that looks up the next function after its own.
    let wrapper = r#"
        #define _GNU_SOURCE
        #include <dlfcn.h>
        #include <sys/types.h>
        pid_t getppid(void) {
            pid_t (*next)(void) = (pid_t (*)(void))dlsym(RTLD_NEXT, "getppid");
            return next == getppid || next() < 0 ? -1 : 1000000;
        }"#;
    let wrapper = compile(path, "libwrapper.so", wrapper, &["-shared", "-fPIC"]);
    assert_eq!(said(&preloaded(&mut Command::new(program), &[&wrapper])), "42 1\n");
}

/// The constructors of a library behind this one run before this one's.
#[test]
fn constructors_may_call_before_the_library_is_ready() {
    let directory = tempfile::tempdir().unwrap();
    let early = r#"
        #define _GNU_SOURCE
        #include <dirent.h>
        #include <dlfcn.h>
        #include <fcntl.h>
        #include <stdlib.h>
        #include <sys/stat.h>
        #include <unistd.h>
        static __attribute__((constructor)) void early(void) {
            struct stat file;
            DIR *directory = opendir("/");
            int fd = open("/dev/null", O_RDONLY);
            int is_well = !stat("/dev/null", &file) && S_ISCHR(file.st_mode) && !access("/", R_OK) && fd >= 0 && directory &&
                readdir(directory) && !closedir(directory) && dlsym(RTLD_DEFAULT, "getpid") && dlopen("libm.so.6", RTLD_NOW) &&
                stat("/dev/infiniband/uverbs0", &file);
            if (!is_well) {
                _exit(9);
            }
            close(fd);
        }"#;
    let early = compile(directory.path(), "libearly.so", early, &["-shared", "-fPIC"]);
    let mut late = Command::new("test");
    late.args(["-c", "/dev/infiniband/uverbs0"]);
    assert_eq!(said(&preloaded(&mut late, &[&early])), "");
}
