//! Restarts this program with its own library preloaded, so that RDMA CM reaches the software
//! device.
//!
//! librdmacm asks the kernel for connections, and the kernel does not know the software device. The
//! library that `rdmascope exec` preloads into programs answers in the kernel's place. The dynamic
//! linker loads it only when a program starts. A process that connects by RDMA CM therefore
//! executes the same program with the same arguments again. It keeps its process ID, its
//! descriptors and its parent.
//!
//! # Invariants
//!
//! * A process that measures on another device is not restarted: the library would hide that
//!   device.
//! * Programs that the process starts later have the environment that it was first started with.

use std::convert::Infallible;
use std::env;
use std::os::unix::process::CommandExt;
use std::process::Command;

use anyhow::Context;
use bench::worker::{self, PortOptions};
use verbs::manager::{is_emulated, manager};

use crate::backends::{is_softdev, providers};
use crate::{failure, preload};

/// The variable in which a restarted process finds the earlier value of `LD_PRELOAD`.
const BEFORE_VARIABLE: &str = "RDMASCOPE_LD_PRELOAD";

/// Lets RDMA CM reach the device that this process measures on, if that is the software device.
/// Must be called before the process has threads or other state to keep, because it may restart the
/// program.
///
/// If that fails, standard error says why, and points that need RDMA CM are not measured.
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
    // A device or a library that is missing is reported later.
    let is_meant = || worker::find(providers(), device, options).is_ok_and(|(found, _)| is_softdev(&found));
    if is_emulated() || manager().is_err() || !is_meant() {
        return;
    }
    let Err(error) = again();
    tell(&format!("{error:#}"));
}

/// Restarts this program with the library; returns only on an error.
fn again() -> anyhow::Result<Infallible> {
    let value = preload::value()?;
    let program = env::current_exe().context("cannot find the executable of this program")?;
    let mut words = env::args_os();
    let mut command = Command::new(&program);
    command.arg0(words.next().unwrap_or_default()).args(words);
    command.env(BEFORE_VARIABLE, env::var_os(preload::VARIABLE).unwrap_or_default());
    let error = command.env(preload::VARIABLE, value).exec();
    Err(error).with_context(|| format!("cannot restart {}", program.display()))
}

fn tell(why: &str) {
    let why = failure::harmless(why);
    eprintln!("rdmascope: RDMA CM cannot reach the software device, as its library is not loaded: {why}");
}
