//! What unmodified programs find out of the devices' files when the library is preloaded.

use std::path::PathBuf;
use std::process::{Command, Output};

use rdmascope_preload::LIBRARY;

fn library() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    test.parent().unwrap().join(LIBRARY)
}

/// Runs a line of the shell with the library, and so many devices where that is said.
fn shell(line: &str, devices: Option<&str>) -> Output {
    let mut shell = Command::new("sh");
    shell.args(["-c", line]).env("LD_PRELOAD", library()).env_remove("RDMASCOPE_SOFTDEV_DEVICES");
    if let Some(devices) = devices {
        shell.env("RDMASCOPE_SOFTDEV_DEVICES", devices);
    }
    shell.output().unwrap()
}

#[track_caller]
fn succeeds(line: &str, devices: Option<&str>) -> String {
    let output = shell(line, devices);
    assert!(output.status.success(), "{line}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

const CHECK: &str = "test -c $0 && test -r $0 && test -w $0 && ! test -x $0";

#[test]
fn programs_find_a_character_device_that_they_may_use() {
    let check = |name: &str| CHECK.replace("$0", &format!("/dev/infiniband/{name}"));
    succeeds(&check("softdev0"), None);
    succeeds("! test -e /dev/infiniband/softdev1", None);
    succeeds(&check("softdev1"), Some("2"));
    succeeds("! test -e /dev/infiniband/softdev2", Some("2"));
    // With settings that mean nothing no device can be listed, and none has a file.
    succeeds("! test -e /dev/infiniband/softdev0", Some("many"));
    let text = succeeds("stat -c '%F %t %T' /dev/infiniband/softdev0 /dev/null", None);
    assert_eq!(text, "character special file e7 c0\ncharacter special file 1 3\n");
}

#[test]
fn what_the_system_says_of_other_files_is_passed_on() {
    let line =
        "stat -c '%n %F %a %s' /dev/null /bin/sh /etc/passwd; stat /no/such/file; test -w /proc/version";
    let with = shell(line, None);
    let mut without = Command::new("sh");
    let without = without.args(["-c", line]).output().unwrap();
    assert_eq!(with, without);
    assert!(String::from_utf8_lossy(&with.stderr).contains("No such file"), "{with:?}");
}
