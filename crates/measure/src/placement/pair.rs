//! Two CPUs of a host, by what makes times of a cache line between them comparable.

use serde::{Deserialize, Serialize};

use crate::record::Environment;

/// Two CPUs of a host. Times between pairs that are equal are compared.
#[derive(Clone, Debug, Deserialize, Eq, Ord, PartialEq, PartialOrd, Serialize)]
pub struct Pair {
    /// Name of the host.
    pub host: String,
    /// Model of its CPUs; `unknown` where it does not tell.
    pub model: String,
    /// What both are in as far as the kernel says, e.g. `cache, package, node`; `core` where they
    /// are siblings. Empty where it is nothing, or not known.
    pub within: String,
    /// The CPUs, the smaller number first. Absent in a virtual machine: where a hypervisor places
    /// the CPUs, their numbers tell nothing of where they are. Elsewhere the same two stay where
    /// they are, and others are as far from each other as the chip's network has them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpus: Option<[u32; 2]>,
}

impl Pair {
    /// The pair of the first two ranks; `None` where they are on several hosts, or have no CPU each
    /// of its own.
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

/// What both CPUs are in.
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
