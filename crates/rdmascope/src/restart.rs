//! Starts this program again behind its own library, so that RDMA CM reaches the software device.
//!
//! librdmacm asks the kernel for connections, and the kernel does not know the software device. The
//! library that `rdmascope exec` puts in front of other programs answers in the kernel's place, and
//! the dynamic linker takes a library only when a program starts. So a process that is to connect
//! through RDMA CM becomes the same program with the same arguments once more. Its number, its
//! descriptors and its parent stay.
//!
//! # Invariants
//!
//! * A process that measures on another device is left alone: the library would hide that device.
//! * What the process starts later has the environment that the process was started with.

use std::convert::Infallible;
use std::env;
use std::os::unix::process::CommandExt;
use std::process::Command;

use anyhow::Context;
use bench::worker::{self, PortOptions};
use verbs::manager::{is_emulated, manager};

use crate::backends::{is_softdev, providers};
use crate::{failure, preload};

/// The variable in which a process that has started itself again finds what `LD_PRELOAD` was
/// before.
const BEFORE_VARIABLE: &str = "RDMASCOPE_LD_PRELOAD";

/// Lets RDMA CM reach the device that this process is to measure on, if that is the software
/// device. Called before the process has threads or anything else that is to stay: it may start
/// again from its beginning.
///
/// Where that cannot be, standard error says why, and points that need it are not measured.
pub(crate) fn reach_manager(device: Option<&str>, options: PortOptions) {
    if let Some(before) = env::var_os(BEFORE_VARIABLE) {
        // SAFETY: this process has no other thread yet, which could read the environment.
        unsafe {
            env::remove_var(BEFORE_VARIABLE);
            if before.is_empty() {
                env::remove_var(preload::VARIABLE);
            } else {
                env::set_var(preload::VARIABLE, before);
            }
        }
        if !is_emulated() {
            tell("the dynamic linker has not preloaded it (ld.so(8), secure-execution mode)");
        }
        return;
    }
    // A device that is not there, and a library that is not installed, are told of later.
    let is_meant = || worker::find(providers(), device, options).is_ok_and(|(found, _)| is_softdev(&found));
    if is_emulated() || manager().is_err() || !is_meant() {
        return;
    }
    let Err(error) = again();
    tell(&format!("{error:#}"));
}

/// Starts this program again with the library; returns only if that cannot be.
fn again() -> anyhow::Result<Infallible> {
    let value = preload::value()?;
    let program = env::current_exe().context("cannot find the executable of this program")?;
    let mut words = env::args_os();
    let mut command = Command::new(&program);
    command.arg0(words.next().unwrap_or_default()).args(words);
    command.env(BEFORE_VARIABLE, env::var_os(preload::VARIABLE).unwrap_or_default());
    let error = command.env(preload::VARIABLE, value).exec();
    Err(error).with_context(|| format!("cannot start {} again", program.display()))
}

fn tell(why: &str) {
    let why = failure::harmless(why);
    eprintln!("rdmascope: RDMA CM does not reach the software device without the library: {why}");
}
