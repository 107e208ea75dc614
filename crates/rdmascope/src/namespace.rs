//! A private mount namespace that shows the files of the software devices at the paths that the
//! kernel uses for RDMA devices, for programs that read them by system calls and not by the C
//! library.
//!
//! `/sys` and `/dev` cannot get new directories, so the directories above the files are covered by
//! a tmpfs. Its entries are links to the covered files, which are mounted within it. The mounts end
//! with the last process of the namespace.

use std::env;
use std::ffi::OsString;
use std::fs::{self, DirBuilder};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::{DirBuilderExt, symlink};
use std::path::Path;

use anyhow::{Context, bail};
use bench::process::launcher;
use rustix::fs::CWD;
use rustix::mount::{
    MountFlags, MountPropagationFlags, MoveMountFlags, OpenTreeFlags, mount, mount_bind, mount_change,
    move_mount, open_tree,
};
use rustix::process::PidfdFlags;
use rustix::thread::{ThreadNameSpaceType, UnshareFlags, move_into_thread_name_spaces, unshare_unsafe};
use softdev::tree::{self, Node};

/// The variable by which processes of a namespace are found. Its value describes the devices there.
pub(crate) const VARIABLE: &str = "RDMASCOPE_NAMESPACE";

/// Enters this user's namespace with the same devices, or a new one if there is none. Programs that
/// access each other's memory must share a namespace: the kernel lets no process access memory
/// outside of its user namespace. The user keeps their ID, and gains no rights in the namespace
/// once another program runs.
///
/// # Errors
/// If the host allows no such namespace.
pub(crate) fn enter(devices: &str) -> anyhow::Result<()> {
    if env::var(VARIABLE).as_deref() == Ok(devices) {
        return Ok(());
    }
    let directory = env::current_dir().context("--namespace: there is no current directory")?;
    if !join(devices) {
        create()?;
    }
    // Fails if the directory is covered now.
    env::set_current_dir(&directory)
        .with_context(|| format!("--namespace: cannot enter {}", directory.display()))
}

/// Joins a namespace of this user with these devices, if there is one.
fn join(devices: &str) -> bool {
    let kinds = if is_privileged() {
        ThreadNameSpaceType::MOUNT
    } else {
        ThreadNameSpaceType::USER | ThreadNameSpaceType::MOUNT
    };
    launcher::processes_with(VARIABLE, devices).into_iter().any(|(pid, _)| {
        let process = rustix::process::pidfd_open(pid, PidfdFlags::empty());
        process.is_ok_and(|process| move_into_thread_name_spaces(process.as_fd(), kinds).is_ok())
    })
}

/// Root needs no user namespace, which would separate its processes from processes outside.
fn is_privileged() -> bool {
    rustix::process::geteuid().is_root()
}

fn create() -> anyhow::Result<()> {
    let user = rustix::process::geteuid().as_raw();
    let group = rustix::process::getegid().as_raw();
    let kinds =
        if is_privileged() { UnshareFlags::NEWNS } else { UnshareFlags::NEWUSER | UnshareFlags::NEWNS };
    // SAFETY: nothing of this process depends on sharing its mounts with other threads.
    if let Err(error) = unsafe { unshare_unsafe(kinds) } {
        bail!(
            "--namespace: this host does not allow user and mount namespaces ({error}): a container forbids them, or \
             kernel.unprivileged_userns_clone or kernel.apparmor_restrict_unprivileged_userns does; leave --namespace out: \
             programs that use the C library find the files without it"
        );
    }
    let maps = [
        ("setgroups", "deny".to_owned()),
        ("uid_map", format!("{user} {user} 1")),
        ("gid_map", format!("{group} {group} 1")),
    ];
    for (file, text) in maps.into_iter().filter(|_| !is_privileged()) {
        let path = format!("/proc/self/{file}");
        fs::write(&path, text).with_context(|| format!("--namespace: cannot write {path}"))?;
    }
    show().context("--namespace: cannot show the files of the devices")
}

fn show() -> io::Result<()> {
    // Keeps the mounts out of all other namespaces.
    mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC)?;
    let system = clone("/sys")?;
    let devices = clone("/dev")?;
    cover(Path::new("/sys/class"), &system, "class")?;
    cover(Path::new("/dev"), &devices, "")?;
    tree::PLACES.iter().map(Path::new).try_for_each(|place| {
        fs::create_dir_all(place.parent().unwrap_or(place))?;
        write(place)
    })
}

/// Returns a copy of the mounts at a path and below it, to be mounted elsewhere.
fn clone(path: &str) -> io::Result<OwnedFd> {
    let flags =
        OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC | OpenTreeFlags::AT_RECURSIVE;
    Ok(open_tree(CWD, path, flags)?)
}

/// The directory at which the covered files are mounted.
const COVERED: &str = ".covered";

/// Covers a directory by a tmpfs with the same entries, except for RDMA devices. Each entry is a
/// link to the same name in `directory` of the clone.
fn cover(path: &Path, clone: &OwnedFd, directory: &str) -> io::Result<()> {
    let names = fs::read_dir(path)?.map(|entry| Ok(entry?.file_name())).collect::<io::Result<Vec<_>>>()?;
    mount("tmpfs", path, "tmpfs", MountFlags::NOSUID | MountFlags::NODEV, Some(c"mode=755"))?;
    let covered = path.join(COVERED);
    fs::create_dir(&covered)?;
    move_mount(clone, "", CWD, &covered, MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH)?;
    let covered = Path::new(COVERED).join(directory);
    link(path, &names, &covered)
}

/// Makes links in a directory to the entries of another one, except for RDMA devices. A directory
/// that contains RDMA devices is made anew, with links as entries.
fn link(path: &Path, names: &[OsString], covered: &Path) -> io::Result<()> {
    let places = || tree::PLACES.iter().map(Path::new);
    for name in names {
        let own = path.join(name);
        if places().any(|place| place.parent() == Some(&own)) {
            let entries = fs::read_dir(path.join(covered).join(name))?;
            let inner = entries.map(|entry| Ok(entry?.file_name())).collect::<io::Result<Vec<_>>>()?;
            fs::create_dir(&own)?;
            link(&own, &inner, &Path::new("..").join(covered).join(name))?;
        } else if places().all(|place| place != own) {
            symlink(covered.join(name), own)?;
        }
    }
    Ok(())
}

/// Writes the files that the tree has at a path and below it.
fn write(path: &Path) -> io::Result<()> {
    let Some(node) = path.to_str().and_then(|path| tree::node(path.as_bytes())) else { return Ok(()) };
    match node {
        Node::Directory(names) => {
            DirBuilder::new().mode(0o755).create(path)?;
            // The directory of a device's parent names the device again.
            let is_again = |name: &str| {
                let again = path.join(name);
                again.components().filter(|part| part.as_os_str() == name).count() > 1
            };
            names.iter().filter(|name| !is_again(name)).try_for_each(|name| write(&path.join(name)))
        }
        Node::File(text) => fs::write(path, text),
        // A character device that every user may open, for programs that check that it exists.
        Node::Device(_) | Node::Manager => {
            fs::write(path, "")?;
            Ok(mount_bind("/dev/null", path)?)
        }
    }
}
