//! Memory of other processes where the kernel's Yama module restricts it, as on Ubuntu.
//!
//! The virtual machine's kernel has the module.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use crate::support::hands::Server;
use crate::support::{PROGRAM, Scratch, finish, skip};

const SCOPE: &str = "/proc/sys/kernel/yama/ptrace_scope";

/// Sets the restriction, and puts back what it was.
struct Restricted(String);

impl Restricted {
    /// What Ubuntu sets; `None` where there is no such module, or this process may not set it.
    fn to_relatives() -> Option<Self> {
        let Ok(before) = fs::read_to_string(SCOPE) else {
            skip("yama", "this kernel has no Yama");
            return None;
        };
        if let Err(error) = fs::write(SCOPE, "1") {
            skip("yama", &format!("{SCOPE} cannot be set: {error}"));
            return None;
        }
        Some(Self(before))
    }
}

impl Drop for Restricted {
    fn drop(&mut self) {
        let _ = fs::write(SCOPE, &self.0);
    }
}

/// The ranks of a server and of its client are no relatives, and of a user without rights.
#[test]
fn a_device_writes_to_memory_of_a_process_that_is_no_relative() {
    let Some(_restricted) = Restricted::to_relatives() else { return };
    let scratch = Scratch::new();
    let all_may = |path| fs::set_permissions(path, Permissions::from_mode(0o777)).unwrap();
    all_may(scratch.path().to_owned());
    let as_nobody = |words: &[&str]| -> Command {
        let mut command = scratch.command("setpriv");
        all_may(scratch.at("tmp"));
        command.args(["--reuid=65534", "--regid=65534", "--clear-groups", *PROGRAM]).args(words);
        command
    };
    let words = ["lat", "write", "-d", "softdev0"];
    let server = Server::of(as_nobody(&[&words[..], &["-p", "0"]].concat()));
    let of_client = server.words();
    let more = ["-d", "softdev0", "--memory", "process", "-s", "65536", "-n", "50"];
    let of_client: Vec<_> = of_client.iter().map(String::as_str).chain(more).collect();
    let client = finish(as_nobody(&of_client));
    assert_eq!(client.status, Some(0), "{client:?}");
    // On a busy host the emulated CPUs may be preempted while the placement is measured.
    let mut told =
        client.stderr.lines().filter(|line| !line.contains("the core-to-core latency was not measured"));
    assert_eq!(told.next(), None, "{client:?}");
    assert!(client.stdout.contains(" 65536 "), "{client:?}");
    let ended = server.end();
    assert_eq!(ended.status, Some(0), "{ended:?}");
}
