//! What unmodified programs see of the devices' files when the library is preloaded.

mod support;

use std::process::{Command, Output};

use support::library;

/// Runs a shell command line with the library, with a number of devices if it is given.
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
    succeeds(&check("uverbs0"), None);
    succeeds("! test -e /dev/infiniband/uverbs1", None);
    succeeds(&check("uverbs1"), Some("2"));
    succeeds("! test -e /dev/infiniband/uverbs2", Some("2"));
    // With invalid settings, no device can be listed, and none has a file.
    succeeds("! test -e /dev/infiniband/uverbs0", Some("many"));
    let text = succeeds("stat -c '%F %t %T' /dev/infiniband/uverbs0 /dev/null", None);
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

#[test]
fn programs_list_and_read_what_the_kernel_would_show() {
    let text =
        succeeds("ls /sys/class/infiniband /sys/class/infiniband/softdev1/ports/1/gid_attrs", Some("2"));
    let lists = "/sys/class/infiniband:\nsoftdev0\nsoftdev1\n\n/sys/class/infiniband/softdev1/ports/1/gid_attrs:\nndevs\ntypes\n";
    assert_eq!(text, lists);
    let text = succeeds(
        "cat /sys/class/infiniband/softdev0/ports/1/state /sys/class/infiniband_verbs/uverbs0/ibdev",
        None,
    );
    assert_eq!(text, "4: ACTIVE\nsoftdev0\n");
    succeeds("! cat /sys/class/infiniband/softdev1/node_type && ! ls /sys/class/infiniband/softdev1", None);
    succeeds(
        "read state < /sys/class/infiniband/softdev0/ports/1/state && test \"$state\" = '4: ACTIVE'",
        None,
    );
    succeeds("! echo x > /sys/class/infiniband/softdev0/node_desc && ! (: > /dev/infiniband/uverbs0)", None);
    assert_eq!(
        succeeds("readlink -f /sys/class/infiniband//softdev0/device/../node_guid", None),
        "/sys/class/infiniband/softdev0/node_guid\n"
    );
}

/// Through the functions that programs use: those of libc, called from Python.
#[test]
fn every_way_to_look_gives_the_same() {
    let program = r#"
import ctypes, glob, os
top = '/sys/class/infiniband'
print(sorted(os.listdir(top)), [entry.is_dir() for entry in os.scandir(top)])
gids = sorted(glob.glob(top + '/*/ports/*/gids/*'))
print(len(gids), gids[0], open(top + '/softdev0/ports/1/gids/63').read().count('0'))
print(os.path.realpath(top + '/softdev0/./device'), os.path.isdir(top + '/softdev0/device'))
print(repr(open(top + '/softdev0/ports/1/link_layer').read()), os.stat(top + '/softdev0/node_type').st_size)
c = ctypes.CDLL(None)
entries = ctypes.POINTER(ctypes.c_void_p)()
count = c.scandir(top.encode(), ctypes.byref(entries), None, c.alphasort)
print(count, [ctypes.string_at(entries[i] + 19) for i in range(count)])
c.opendir.restype = c.readdir.restype = c.readdir64.restype = ctypes.c_void_p
c.opendir.argtypes, c.telldir.restype = [ctypes.c_char_p], ctypes.c_long
for function in [c.readdir, c.readdir64, c.rewinddir, c.telldir, c.closedir]:
    function.argtypes = [ctypes.c_void_p]
c.seekdir.argtypes = [ctypes.c_void_p, ctypes.c_long]
for path in [top.encode(), b'/']:
    stream = c.opendir(path)
    first = ctypes.string_at(c.readdir(stream) + 19)
    place = c.telldir(stream)
    second = ctypes.string_at(c.readdir64(stream) + 19)
    c.seekdir(stream, place)
    again = ctypes.string_at(c.readdir(stream) + 19)
    c.rewinddir(stream)
    entry, found = ctypes.create_string_buffer(280), ctypes.c_void_p()
    assert c.readdir_r(ctypes.c_void_p(stream), entry, ctypes.byref(found)) == 0 and found.value, path
    c.rewinddir(stream)
    print(again == second, ctypes.string_at(c.readdir(stream) + 19) == first, c.closedir(stream))
"#;
    let output = Command::new("python3").args(["-c", program]).env("LD_PRELOAD", library()).output().unwrap();
    let text = String::from_utf8(output.stdout.clone()).unwrap();
    assert!(output.status.success(), "{output:?}");
    assert_eq!(
        text,
        "['softdev0'] [True]\n\
         64 /sys/class/infiniband/softdev0/ports/1/gids/0 32\n\
         /sys/class/infiniband/softdev0/device True\n\
         'Ethernet\\n' 4096\n\
         3 [b'.', b'..', b'softdev0']\n\
         True True 0\n\
         True True 0\n"
    );
}
