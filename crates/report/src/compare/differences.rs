//! What differs between the sides besides the numbers: of some things a comparison must not be
//! made, others may explain it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use measure::record::{Device, Environment, Fleet, Run};
use measure::text::{plain, value};
use serde::Serialize;
use serde_json::Value;

use crate::list::grouped;

/// Something that differs between the sides.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub struct Difference {
    /// What: `device`, `kernel release`.
    pub what: String,
    /// Its values of each side.
    pub values: [String; 2],
    /// Whether sides that differ in this are refused.
    pub matters: bool,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [base, new] = &self.values;
        write!(f, "{}: {base} -> {new}", self.what)
    }
}

/// The attributes of a device that a comparison must have in common.
const MATTERING_ATTRIBUTES: [&str; 4] = ["active_mtu_bytes", "kind", "link", "link_layer"];
/// The attributes of a device that are told where they differ.
const TOLD_ATTRIBUTES: [&str; 2] = ["driver", "firmware"];
/// The facts about a host that a comparison must have in common.
const MATTERING_FACTS: [(&str, &str); 2] = [("cpu", "model"), ("cpu", "count")];
/// The groups of facts that are told where they differ, and what of them changes all the time.
const TOLD_GROUPS: [&str; 7] = ["cpu", "infiniband", "isolation", "kernel", "mpi", "network", "power"];
const CHANGING: [&str; 3] = ["affinity", "mhz", "state"];
/// Settings of experiments that say what is measured. (Axes are matched point by point, and
/// repetitions are units.)
const MATTERING_SETTINGS: [&str; 6] =
    ["pattern", "iterations", "duration_s", "warmup", "tx_depth", "rx_depth"];

/// The name of the difference between hosts. A change may have moved a job, so sides may differ in
/// it, and a history may not.
pub(super) const HOST: &str = "host";

/// Of values that both sides have, more than this are not listed.
const COMMON_MAX: usize = 3;

/// The values of a run or of a side, by what they are of.
type Facts = BTreeMap<(bool, String), BTreeSet<String>>;

/// What a run says of its surroundings and its plan.
pub(super) struct Known {
    /// The program, the devices and the hosts.
    system: Facts,
    /// The settings of the experiments, by the experiment's name.
    experiments: BTreeMap<String, Facts>,
}

impl Known {
    pub(super) fn of(run: &Run) -> Self {
        Self { system: system(run), experiments: experiments(run) }
    }
}

/// Returns what differs between the runs of two sides, what matters first. `contrasts` are the axes
/// in which all points of the sides differ.
pub(super) fn between(sides: [&[&Run]; 2], contrasts: &[Difference]) -> Vec<Difference> {
    let known = sides.map(|side| side.iter().map(|run| Known::of(run)).collect::<Vec<_>>());
    listed([&known[0], &known[1]].map(|side| side.iter().collect()), contrasts, of_all)
}

/// Returns what most runs of one side have and most of the other do not, what matters first: the
/// place of a change between the sides may be off by a few runs.
pub(super) fn changed(sides: [Vec<&Known>; 2]) -> Vec<Difference> {
    listed(sides, &[], of_most)
}

/// Puts the facts of the runs of a side together.
type Together = fn(&[&Facts]) -> Facts;

/// The values of all runs.
fn of_all(runs: &[&Facts]) -> Facts {
    let mut all = Facts::new();
    for (key, values) in runs.iter().copied().flatten() {
        all.entry(key.clone()).or_default().extend(values.iter().cloned());
    }
    all
}

/// Of each fact what most runs have; of two that are as frequent, the first.
fn of_most(runs: &[&Facts]) -> Facts {
    let keys: BTreeSet<&(bool, String)> = runs.iter().flat_map(|facts| facts.keys()).collect();
    let most = |key: &(bool, String)| {
        let found = || runs.iter().map(|facts| facts.get(key));
        let mut counts = BTreeMap::new();
        found().for_each(|values| *counts.entry(values).or_insert(0) += 1);
        // The last of equal ones is the result.
        found().rev().max_by_key(|values| counts[values])?.cloned()
    };
    keys.into_iter().filter_map(|key| Some((key.clone(), most(key)?))).collect()
}

fn listed(sides: [Vec<&Known>; 2], contrasts: &[Difference], together: Together) -> Vec<Difference> {
    let systems = sides.each_ref().map(|side| side.iter().map(|run| &run.system).collect::<Vec<_>>());
    let [base, new] = systems.map(|systems| together(&systems));
    let system = differing(&base, &new, "not known");
    let settings = differing_settings(sides, together);
    let mut all: Vec<Difference> = contrasts.iter().cloned().chain(settings).chain(system).collect();
    all.sort_by_key(|difference| !difference.matters);
    all
}

/// The settings that differ of experiments that both sides have. An experiment of one side alone
/// has no partner, and its settings matter to no other. Sides of one experiment each are compared
/// whatever its name.
fn differing_settings(sides: [Vec<&Known>; 2], together: Together) -> Vec<Difference> {
    let [base, new] = sides.map(|side| {
        let experiments = grouped(side.into_iter().flat_map(|run| &run.experiments));
        let side = experiments.into_iter().map(|(name, runs)| (name.clone(), together(&runs)));
        side.collect::<BTreeMap<String, Facts>>()
    });
    let both: Vec<(String, &Facts, &Facts)> = match (base.len(), new.len()) {
        (1, 1) => base.values().zip(new.values()).map(|(base, new)| (String::new(), base, new)).collect(),
        _ => {
            let partner =
                |(name, base): (&String, _)| Some((format!(" of {name}"), base, new.get(name.as_str())?));
            base.iter().filter_map(partner).collect()
        }
    };
    let settings = |(of, base, new): (String, &Facts, &Facts)| {
        let named = move |found: Difference| Difference { what: found.what + &of, ..found };
        differing(base, new, "not set").into_iter().map(named)
    };
    both.into_iter().flat_map(settings).collect()
}

/// The facts that differ. `absent` is printed where one side does not have a fact.
fn differing(base: &Facts, new: &Facts, absent: &str) -> Vec<Difference> {
    let keys: BTreeSet<&(bool, String)> = base.keys().chain(new.keys()).collect();
    let differing = keys.into_iter().filter(|key| base.get(*key) != new.get(*key));
    let difference = |key: &(bool, String)| {
        let sides = [base.get(key), new.get(key)];
        let text = |side: usize| match sides[side] {
            Some(values) => listed_beside(values, sides[1 - side]),
            None => absent.to_owned(),
        };
        Difference { what: key.1.clone(), values: [text(0), text(1)], matters: !key.0 }
    };
    differing.map(difference).collect()
}

/// The values of a side in print. Of many that the other side has too, the number.
fn listed_beside(values: &BTreeSet<String>, other: Option<&BTreeSet<String>>) -> String {
    let is_common = |value: &&String| other.is_some_and(|other| other.contains(*value));
    let (common, own): (Vec<&String>, Vec<&String>) = values.iter().partition(is_common);
    let words: Vec<&str> = match common.len() > COMMON_MAX {
        true => own.into_iter().map(String::as_str).collect(),
        false => values.iter().map(String::as_str).collect(),
    };
    let number = (common.len() > COMMON_MAX).then(|| format!("{} in common", common.len()));
    words.into_iter().chain(number.as_deref()).collect::<Vec<_>>().join(" and ")
}

/// Adds a fact. The first part of its key is false if it matters, so that such facts come first.
fn add(facts: &mut Facts, matters: bool, what: String, text: &str) {
    facts.entry((!matters, what)).or_default().insert(plain(text));
}

/// The settings of the experiments of a run's plan, by the experiment's name.
fn experiments(run: &Run) -> BTreeMap<String, Facts> {
    let mut all: BTreeMap<String, Facts> = BTreeMap::new();
    for experiment in run.plan["experiments"].as_array().into_iter().flatten() {
        let facts = all.entry(plain(experiment["name"].as_str().unwrap_or_default())).or_default();
        for setting in MATTERING_SETTINGS {
            let found = &experiment[setting];
            if *found != Value::Null {
                add(facts, true, setting.to_owned(), &value(found));
            }
        }
    }
    all
}

/// The program, the devices and the hosts of a run.
fn system(run: &Run) -> Facts {
    let mut facts = Facts::new();
    add(&mut facts, false, "program".to_owned(), &format!("{} {}", run.program.name, run.program.version));
    run.devices.iter().for_each(|device| see_device(device, &mut facts));
    run.environments.iter().for_each(|host| see_host(host, &mut facts));
    run.fleet.iter().for_each(|fleet| see_fleet(fleet, &mut facts));
    facts
}

/// What decides which pairs of a fleet are measured at the same time, and over which paths.
fn see_fleet(fleet: &Fleet, facts: &mut Facts) {
    let at_once = fleet.parallel.map_or_else(|| "all of a round".to_owned(), |most| most.to_string());
    add(facts, true, "pairs at the same time".to_owned(), &at_once);
    add(facts, true, "schedule".to_owned(), &fleet.schedule);
    add(facts, true, "rails".to_owned(), if fleet.separate_rails { "separate" } else { "together" });
    let members = fleet.members.iter().zip(0..);
    for (member, _) in members.filter(|(_, index)| !fleet.left.contains_key(index)) {
        add(facts, true, "members".to_owned(), &member.name);
    }
}

fn see_device(device: &Device, facts: &mut Facts) {
    add(facts, true, "device".to_owned(), &device.name);
    add(facts, true, "provider".to_owned(), &device.provider);
    let mattering = MATTERING_ATTRIBUTES.map(|name| (true, name));
    for (matters, name) in mattering.into_iter().chain(TOLD_ATTRIBUTES.map(|name| (false, name))) {
        // The firmware of the software device is the version of the program.
        if let Some(found) = device.attributes.get(name) {
            add(facts, matters, format!("device {name}"), &value(found));
        }
    }
}

fn see_host(host: &Environment, facts: &mut Facts) {
    add(facts, false, HOST.to_owned(), &host.hostname);
    if let Some(cpus) = &host.pinned_cpus {
        add(facts, false, format!("CPUs of rank {}", host.rank), &format!("{cpus:?}"));
    }
    for group in TOLD_GROUPS {
        for (name, found) in host.facts.get(group).into_iter().flatten() {
            let is_changing = CHANGING.iter().any(|end| name.ends_with(end));
            if !is_changing {
                let matters = MATTERING_FACTS.contains(&(group, name.as_str()));
                add(facts, matters, format!("{group} {name}"), found);
            }
        }
    }
}
