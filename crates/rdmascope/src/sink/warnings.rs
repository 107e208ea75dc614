//! The warnings of a run, which limit all of its numbers.

use std::collections::{BTreeMap, BTreeSet};

use measure::record::{Device, Environment, Run};
use verbs::DeviceKind;

use crate::banner::{plain, runs};
use crate::job::Job;

/// Returns the warning about softdev if only MPI uses it, so that no rank describes it.
pub(super) fn of_mpi(job: &Job) -> Option<String> {
    let device = job.launch.launcher.as_ref()?.device.as_ref()?.as_ref().ok()?;
    let is_alone = device.name_and_port.starts_with("softdev") && !job.resolved.needs_device();
    is_alone.then(|| OF_MEMORY.to_owned())
}

/// Returns the warnings of a run, which limit all of its numbers.
pub(crate) fn of(run: &Run) -> Vec<String> {
    let mut warnings = Vec::new();
    if run.is_of_softdev() {
        warnings.push(OF_MEMORY.to_owned());
    }
    let is_kernel_software = |device: &&Device| {
        device.attributes.get("kind").is_some_and(|kind| *kind == DeviceKind::KernelSoftware.to_string())
    };
    warnings.extend(run.devices.iter().find(is_kernel_software).map(|device| {
        format!(
            "{} is a software device: its numbers show this host's CPUs and kernel, not an adapter",
            device.name
        )
    }));
    let passed_over = run.devices.iter().find_map(|device| device.attributes.get("passed_over"));
    warnings.extend(
        passed_over.map(|why| format!("{} is measured although {}", run.devices[0].name, plain(why))),
    );
    let shares = |(at, one): (usize, &Environment)| {
        let mut others = run.environments[..at].iter();
        others.any(|other| {
            one.hostname == other.hostname
                && (one.pinned_cpus.is_none() || one.pinned_cpus == other.pinned_cpus)
        })
    };
    warnings.extend(run.environments.iter().enumerate().any(shares).then(|| NOT_PINNED.to_owned()));
    let left_behind = |environment: &Environment| {
        let line = environment.facts.get(conditions::FACTS)?.get(conditions::LEFT_BEHIND)?;
        Some(format!("on {}, {line}: see `rdmascope doctor`", environment.hostname))
    };
    warnings.extend(run.environments.iter().filter_map(left_behind).collect::<BTreeSet<_>>());
    let mut not_locked: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for overhead in &run.overheads {
        if let Some(reason) = &overhead.not_locked {
            not_locked.entry(reason).or_default().push(overhead.rank as usize);
        }
    }
    warnings.extend(not_locked.iter().map(|(reason, ranks)| match &ranks[..] {
        [rank] => format!("rank {rank}: {reason}"),
        ranks => format!("ranks {}: {reason}", runs(ranks)),
    }));
    warnings
}

/// What ranks without a CPU of their own do to numbers.
pub(crate) const NOT_PINNED: &str =
    "the ranks are not pinned to separate CPUs: numbers may be several times too low or too high";
/// The warning about the numbers of softdev.
const OF_MEMORY: &str =
    "softdev is a software device: its numbers show this machine's memory and caches, not a network";
