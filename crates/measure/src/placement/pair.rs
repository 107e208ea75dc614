//! Pairs of CPUs of a host whose core-to-core latencies may be compared.

use serde::{Deserialize, Serialize};

use crate::record::Environment;

/// Two CPUs of a host. Latencies of equal pairs are compared.
#[derive(Clone, Debug, Deserialize, Eq, Ord, PartialEq, PartialOrd, Serialize)]
pub struct Pair {
    /// Name of the host.
    pub host: String,
    /// Model of its CPUs; `unknown` where the host does not say.
    pub model: String,
    /// What both CPUs share by the kernel's topology, e.g. `cache, package, node`; `core` where
    /// they are threads of one core. Empty where they share nothing, or where it is not known.
    pub within: String,
    /// The CPUs, the smaller number first. Absent in a virtual machine, where CPU numbers say
    /// nothing about physical places. Elsewhere a CPU stays where it is, and the distance between
    /// two CPUs depends on the chip's network.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpus: Option<[u32; 2]>,
}

impl Pair {
    /// The pair of the first two ranks; `None` where they are on several hosts, or are not each
    /// pinned to one CPU, or share it.
    pub fn of(environments: &[Environment]) -> Option<Self> {
        let [first, second, ..] = environments else { return None };
        let own = |rank: &Environment| match rank.pinned_cpus.as_deref() {
            Some(&[cpu]) => Some(cpu),
            _ => None,
        };
        let mut cpus = [own(first)?, own(second)?];
        cpus.sort_unstable();
        let fact = |name: &str| first.facts.get("cpu").and_then(|facts| facts.get(name));
        let is_one_host = first.hostname == second.hostname;
        (is_one_host && cpus[0] != cpus[1]).then(|| Self {
            host: first.hostname.clone(),
            model: fact("model").map_or("unknown", String::as_str).to_owned(),
            within: within(first, cpus),
            cpus: fact("hypervisor").is_none().then_some(cpus),
        })
    }
}

/// Lists what both CPUs share.
fn within(rank: &Environment, cpus: [u32; 2]) -> String {
    let has_both = |list: &str| cpus.iter().all(|cpu| contains(list, *cpu));
    let pinned = |name: &str| rank.facts.get("pinned_cpu")?.get(name);
    let mut numa = rank.facts.get("numa").into_iter().flatten();
    let is_one_node = numa.any(|(name, list)| name.ends_with(".cpus") && has_both(list));
    let shared = ["core", "cache", "package"].into_iter();
    let shared = shared.filter(|name| pinned(name).is_some_and(|list| has_both(list)));
    shared.chain(is_one_node.then_some("node")).collect::<Vec<_>>().join(", ")
}

/// Whether a CPU is in a list of the kernel's (cpuset(7), "List format"): `0-3,8`.
fn contains(list: &str, cpu: u32) -> bool {
    list.split(',').any(|range| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let bounds = first.trim().parse::<u32>().ok().zip(last.trim().parse::<u32>().ok());
        bounds.is_some_and(|(first, last)| (first..=last).contains(&cpu))
    })
}
