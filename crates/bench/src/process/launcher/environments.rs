//! Finds processes by a variable of their environments, such as the processes of a launch.

use std::os::unix::ffi::OsStrExt;
use std::time::Duration;

use measure::clock::Deadline;
use measure::environment::stat_field;
use rustix::process::Pid;

/// The variable that identifies the processes of one launch.
pub const TOKEN_VARIABLE: &str = "RDMASCOPE_LAUNCH";

/// The longest that the kernel takes to give a process its environment.
const START: Duration = Duration::from_secs(1);

/// Returns the processes of this user that have a token in their environment, except this one, with
/// their environments.
pub(super) fn processes(token: &str) -> Vec<(Pid, Vec<u8>)> {
    if token.is_empty() { Vec::new() } else { processes_with(TOKEN_VARIABLE, token) }
}

/// Returns the processes in whose environments a variable has this value, except this one, with
/// their environments. Only environments that this user may read are searched.
pub fn processes_with(name: &str, value: &str) -> Vec<(Pid, Vec<u8>)> {
    let own = rustix::process::getpid();
    let all = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = all.filter_map(|entry| Pid::from_raw(entry.file_name().to_str()?.parse().ok()?));
    let with_environment = |pid: Pid| {
        let environment = environment(pid)?;
        (variable(&environment, name).as_deref() == Some(value)).then_some((pid, environment))
    };
    pids.filter(|pid| *pid != own).filter_map(with_environment).collect()
}

/// Returns the environment of a process in the format of `/proc/PID/environ`; `None` if the process
/// has ended or belongs to another user. A process that is starting a program has an empty
/// environment for a moment after `spawn` has returned: this function waits until it is filled.
fn environment(pid: Pid) -> Option<Vec<u8>> {
    let deadline = Deadline::after(START);
    let read = || std::fs::read(format!("/proc/{pid}/environ")).ok();
    loop {
        let environment = read()?;
        if !environment.is_empty() || deadline.is_over() {
            return Some(environment);
        }
        if !is_starting(pid) {
            // It may have been filled between the two looks.
            return read();
        }
        std::thread::yield_now();
    }
}

/// Whether the kernel is still to put an environment into the memory of a process. (An ended
/// process and a thread of the kernel have no memory.)
fn is_starting(pid: Pid) -> bool {
    let read = |name: &str| std::fs::read_to_string(format!("/proc/{pid}/{name}")).unwrap_or_default();
    starts(&read("statm"), &read("stat"))
}

/// The same, from the contents of `/proc/PID/statm` and `/proc/PID/stat`: whether there are pages,
/// and no end of the environment (`env_end`, the field 51).
fn starts(statm: &str, stat: &str) -> bool {
    let has_memory = statm.split(' ').next().is_some_and(|pages| !["", "0"].contains(&pages));
    has_memory && stat_field(stat, 51) == Some("0")
}

/// Returns the value of a variable of an environment. `environment` has the format of
/// `/proc/PID/environ`.
pub(super) fn variable(environment: &[u8], name: &str) -> Option<String> {
    let named = environment
        .split(|byte| *byte == 0)
        .find_map(|variable| variable.strip_prefix(name.as_bytes())?.strip_prefix(b"="))?;
    Some(std::ffi::OsStr::from_bytes(named).to_string_lossy().into_owned())
}

/// Returns the first line that a supervisor prints: the process ID of its launcher.
pub(super) fn announcement(token: &str, launcher: Pid) -> String {
    announcing(token) + &launcher.to_string()
}

/// Returns the start of that line.
pub(super) fn announcing(token: &str) -> String {
    format!("rdmascope supervises {token} ")
}

/// Returns the process ID in that line, which may follow other text.
pub(super) fn announced(line: &str, token: &str) -> Option<Pid> {
    let (_, pid) = line.split_once(&announcing(token))?;
    Pid::from_raw(pid.parse().ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_process_of_a_launcher_is_announced() {
        let pid = Pid::from_raw(4711).unwrap();
        let said = announcement("abc", pid);
        assert_eq!(announced(&said, "abc"), Some(pid));
        assert_eq!(announced(&format!("no newline yet: {said}"), "abc"), Some(pid));
        assert_eq!(announced(&said, "ab"), None, "of another launch");
        assert_eq!(announced(&format!("{said}x"), "abc"), None);
    }

    #[test]
    fn a_variable_is_found_by_its_whole_name() {
        let environment = b"RDMASCOPE_LAUNCHER=x\0RDMASCOPE_LAUNCH=abc\0OTHER=RDMASCOPE_LAUNCH=y\0";
        assert_eq!(variable(environment, TOKEN_VARIABLE).as_deref(), Some("abc"));
        assert_eq!(variable(environment, "RDMASCOPE_LAUNC"), None);
        assert_eq!(variable(b"", TOKEN_VARIABLE), None);
    }

    #[test]
    fn a_process_that_starts_a_program_has_memory_and_no_environment_yet() {
        let stat = |env_end: &str| format!("7 (a ) b) R {}{env_end} 0\n", "1 ".repeat(51 - 4));
        assert!(starts("210 0 0 1 0 1 0\n", &stat("0")));
        assert!(!starts("210 0 0 1 0 1 0\n", &stat("140720")), "it has been started without variables");
        assert!(!starts("0 0 0 0 0 0 0\n", &stat("0")), "it has ended, or is a thread of the kernel");
        assert!(!starts("", ""), "it is gone");
        assert_eq!(stat_field(&stat("0"), 3), Some("R"));
        assert!(!is_starting(rustix::process::getpid()));
    }

    /// `spawn` returns before the environment of the child can be read.
    #[test]
    fn a_child_is_found_from_its_first_moment() {
        for round in 0..200 {
            let value = format!("{}-{round}", std::process::id());
            let mut child = std::process::Command::new("sleep")
                .arg("100")
                .env("RDMASCOPE_MOMENT", &value)
                .spawn()
                .unwrap();
            let found = processes_with("RDMASCOPE_MOMENT", &value);
            child.kill().unwrap();
            child.wait().unwrap();
            assert_eq!(found.len(), 1, "round {round}");
        }
    }

    #[test]
    fn nothing_is_found_without_a_token() {
        assert!(processes("").is_empty());
        assert!(processes("no process has this one").is_empty());
    }
}
