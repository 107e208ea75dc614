//! Finds processes by a variable of their environments, such as the processes of a launch.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::process::Pid;

/// The variable that identifies the processes of one launch.
pub const TOKEN_VARIABLE: &str = "RDMASCOPE_LAUNCH";

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
        let environment = std::fs::read(Path::new("/proc").join(pid.to_string()).join("environ")).ok()?;
        (variable(&environment, name).as_deref() == Some(value)).then_some((pid, environment))
    };
    pids.filter(|pid| *pid != own).filter_map(with_environment).collect()
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
    fn nothing_is_found_without_a_token() {
        assert!(processes("").is_empty());
        assert!(processes("no process has this one").is_empty());
    }
}
