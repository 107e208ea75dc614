//! The lines above the tables of a run: its ranks, their devices, and the warnings.

use std::collections::BTreeSet;

use bench::choice::Reason;
use measure::record::{Device, Environment, Run};
use serde_json::Value;

/// Returns the lines above the tables of a run, which users also paste into tickets.
pub(crate) fn banner(run: &Run) -> String {
    let mut out = format!("# rdmascope {}: {}\n", run.program.version, run.title);
    for (name, choice) in choices(run) {
        out += &format!("# device: {name} ({choice})\n");
    }
    for ranks in alike(run) {
        let at = |rank: &usize| (run.devices.get(*rank), run.environments.get(*rank));
        let (device, environment) = at(&ranks[0]);
        if ranks.len() == 1 {
            out += &rank(ranks[0], device, environment);
            continue;
        }
        let pinned = ranks.iter().filter_map(|rank| at(rank).1?.pinned_cpus.clone());
        let cpus: BTreeSet<u32> = pinned.flatten().collect();
        let together = environment.map(|environment| Environment {
            pinned_cpus: (!cpus.is_empty()).then(|| cpus.into_iter().collect()),
            ..environment.clone()
        });
        let line = rank(ranks[0], device, together.as_ref());
        out += &line.replacen(
            &format!("rank {}:", ranks[0]),
            &format!("{} ranks ({}):", ranks.len(), runs(&ranks)),
            1,
        );
    }
    for warning in &run.warnings {
        out += &format!("# warning: {warning}\n");
    }
    out
}

/// Groups the ranks of a run: two ranks are separate groups; of more, ranks with the same device on
/// the same host are one group.
fn alike(run: &Run) -> Vec<Vec<usize>> {
    let mut groups: Vec<Vec<usize>> = Vec::new();
    let key = |rank: usize| {
        let device = run.devices.get(rank).map(|device| (&device.name, &device.provider, &device.attributes));
        (device, run.environments.get(rank).map(|environment| &environment.hostname))
    };
    let ranks = run.devices.len().max(run.environments.len());
    for rank in 0..ranks {
        match groups.iter_mut().find(|group| ranks > 2 && key(group[0]) == key(rank)) {
            Some(group) => group.push(rank),
            None => groups.push(vec![rank]),
        }
    }
    groups
}

/// Returns ascending numbers as ranges, e.g. `0-3,7`.
pub(crate) fn runs(numbers: &[usize]) -> String {
    let follows = |pair: &usize, next: &usize| *next == pair + 1;
    let run = |run: &[usize]| match run {
        [one] => one.to_string(),
        run => format!("{}-{}", run[0], run[run.len() - 1]),
    };
    numbers.chunk_by(follows).map(run).collect::<Vec<_>>().join(",")
}

/// Returns a rank's line of the banner: its device, its host and its CPU.
pub(crate) fn rank(rank: usize, device: Option<&Device>, environment: Option<&Environment>) -> String {
    let host = environment.map_or("?", |environment| environment.hostname.as_str());
    let cpus = environment.and_then(|environment| environment.pinned_cpus.as_ref());
    let cpus = cpus.map_or("not pinned".to_owned(), |cpus| format!("CPU {}", join(cpus)));
    let Some(device) = device else {
        let release = environment.and_then(|environment| environment.facts.get("kernel")?.get("release"));
        let kernel = release.map_or_else(|| "no device".to_owned(), |release| format!("Linux {release}"));
        return format!("# rank {rank}: {kernel} on {host}, {cpus}\n");
    };
    let attribute = |name: &str| device.attributes.get(name).map(plain).unwrap_or_default();
    format!(
        "# rank {rank}: {} on {host}, {cpus}; {}, {}, port {}, MTU {} B, GID {}\n",
        device.name,
        device.provider,
        attribute("link_layer"),
        attribute("port_state"),
        attribute("active_mtu_bytes"),
        attribute("gid"),
    )
}

/// Returns the devices that were chosen by default, each with the reason.
fn choices(run: &Run) -> BTreeSet<(&str, &str)> {
    let named = Reason::Named.to_string();
    let choices = run.devices.iter().filter_map(|device| {
        let choice = device.attributes.get("device_choice")?.as_str()?;
        Some((device.name.as_str(), choice))
    });
    choices.filter(|(_, choice)| *choice != named).collect()
}

fn join(cpus: &[u32]) -> String {
    cpus.iter().map(u32::to_string).collect::<Vec<_>>().join(",")
}

pub(crate) fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}
