//! `cargo xtask vm` as its users see it, in real boots of some seconds each, by `cargo xtask ci
//! --full` and `cargo test -p xtask --test vm -- --ignored`. If the machine is not prepared
//! (packages, kernel), the tests are skipped, or run and prepare it if RDMASCOPE_REQUIRE contains
//! `vm`.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// One machine at a time: two would slow each other down and miss their deadlines.
static MACHINE: Mutex<()> = Mutex::new(());

/// Locks the machine for a test; `None` if the machine is not prepared.
fn turn() -> Option<MutexGuard<'static, ()>> {
    let required = std::env::var("RDMASCOPE_REQUIRE").unwrap_or_default();
    let is_required = required.split(',').any(|name| name.trim() == "vm");
    let is_ready = Path::new("/usr/bin/qemu-system-x86_64").exists() && has_kernel();
    if !is_required && !is_ready {
        eprintln!("SKIPPED: the virtual machine is not prepared (run `cargo xtask vm true` once)");
        return None;
    }
    Some(MACHINE.lock().unwrap_or_else(PoisonError::into_inner))
}

fn has_kernel() -> bool {
    let target = std::env::var_os("CARGO_TARGET_DIR")
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../target"), PathBuf::from);
    fs::read_dir(target.join("vm")).is_ok_and(|mut entries| entries.next().is_some())
}

fn vm(words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_xtask"));
    command.arg("vm").args(words).current_dir("/usr/share");
    command
}

fn run(words: &[&str]) -> (Option<i32>, String, String) {
    let Output { status, stdout, stderr } = vm(words).output().expect("xtask starts");
    let text = |bytes| String::from_utf8(bytes).expect("text");
    // The first machine prepares the kernel.
    let is_said_once = |line: &&str| line.starts_with("xtask: vm: preparing ");
    let errors = text(stderr).split_inclusive('\n').filter(|line| !is_said_once(line)).collect();
    (status.code(), text(stdout), errors)
}

#[test]
#[ignore = "boots several times: cargo xtask ci --full"]
fn a_command_finds_the_device_and_its_output_status_and_files_come_back() {
    let Some(_turn) = turn() else { return };
    let out = Path::new(env!("CARGO_TARGET_TMPDIR")).join("vm, out");
    let _ = fs::remove_dir_all(&out);
    let script = r#"
        pwd
        printf '%s\n' "$1" "$WORD" "$BEFORE"
        ulimit -l
        ibv_devinfo -d rxe0 | grep -o PORT_ACTIVE
        cat /sys/class/infiniband/rxe0/ports/1/gids/1
        cat /sys/devices/system/clocksource/clocksource0/current_clocksource
        [ -c /dev/infiniband/uverbs0 ] && echo uverbs0
        echo error >/dev/stderr
        echo file >"$RDMASCOPE_VM_OUT/file"
        echo "not on the host" >/usr/share/rdmascope-vm-test
        sleep 1000 &
        exit 7"#;
    let word = "it's a \"word\"\n$HOME";
    let variable = format!("WORD={word}");
    let options = ["--out", out.to_str().unwrap(), "--env", &variable, "--before", "export BEFORE='a  b'"];
    let start = Instant::now();
    let (status, output, errors) = run(&[&options[..], &["--", "sh", "-c", script, "sh", word]].concat());
    let expected = format!(
        "/usr/share\n{word}\n{word}\na  b\nunlimited\nPORT_ACTIVE\n\
         0000:0000:0000:0000:0000:ffff:0a00:020f\ntsc\nuverbs0\n"
    );
    assert_eq!((output, &*errors), (expected, "error\n"));
    assert_eq!(status, Some(7));
    assert_eq!(fs::read_to_string(out.join("file")).unwrap(), "file\n");
    assert!(!Path::new("/usr/share/rdmascope-vm-test").exists());
    assert!(start.elapsed() < Duration::from_secs(100), "the machine waited for a process left behind");
}

#[test]
#[ignore = "boots several times: cargo xtask ci --full"]
fn a_signal_is_a_status_and_without_rxe_there_is_no_rdma() {
    let Some(_turn) = turn() else { return };
    let script = "ls /sys/class/infiniband /dev/infiniband; modprobe ib_uverbs && ls /sys/class/infiniband; kill -9 $$";
    let (status, output, errors) = run(&["--no-rxe", "sh", "-c", script]);
    assert_eq!((status, &*output), (Some(128 + 9), ""), "{errors}");
    assert_eq!(errors.matches("cannot access").count(), 2, "{errors}");
}

#[test]
#[ignore = "boots several times: cargo xtask ci --full"]
fn what_cannot_be_run_or_takes_too_long_is_told_from_what_fails() {
    let Some(_turn) = turn() else { return };
    let (status, output, errors) = run(&["--before", "echo first; exit 3", "echo", "second"]);
    assert_eq!((status, &*output), (Some(125), "first\n"));
    assert_eq!(errors, "xtask: vm: the shell ended with exit status 3 before it reached the command\n");

    let (status, output, errors) = run(&["--timeout", "2", "sh", "-c", "echo out; sleep 1000"]);
    assert_eq!((status, &*output), (Some(124), "out\n"));
    assert!(errors.starts_with("xtask: vm: the command ran for 2 s, its limit"), "{errors}");

    // Output just before a crash may be lost.
    let crash = "echo out; sleep 1; echo c >/proc/sysrq-trigger; sleep 1000";
    let (status, output, errors) = run(&["sh", "-c", crash]);
    assert_eq!((status, &*output), (Some(125), "out\n"));
    assert!(errors.contains("ended without an exit status; the last lines of its console:\n"), "{errors}");
    assert!(errors.contains("Kernel panic - not syncing: sysrq triggered crash"), "{errors}");
}

#[test]
#[ignore = "boots several times: cargo xtask ci --full"]
fn the_machine_does_not_outlive_us() {
    let Some(_turn) = turn() else { return };
    let mut xtask = vm(&["sh", "-c", "echo up; sleep 1000"]).stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(xtask.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line, "up\n");
    let children = format!("/proc/{0}/task/{0}/children", xtask.id());
    let qemu = fs::read_to_string(children).unwrap().trim().to_owned();
    assert!(is_alive(&qemu), "{qemu}");
    xtask.kill().unwrap();
    xtask.wait().unwrap();
    let deadline = Instant::now() + Duration::from_secs(10);
    while is_alive(&qemu) {
        assert!(Instant::now() < deadline, "QEMU is still there");
        std::thread::yield_now();
    }
}

/// Whether a process exists, is QEMU and has not ended (`Z`: its parent has not yet read its
/// status).
fn is_alive(process: &str) -> bool {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    stat.contains("(qemu-system-x86") && !stat.contains(") Z ")
}
