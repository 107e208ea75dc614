//! What differs between the sides besides the numbers: of some things a comparison must not be
//! made, others may explain it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use measure::record::{Device, Environment, Fleet, Run};
use measure::text::{counted, plain, value};
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
pub const MATTERING_SETTINGS: [&str; 7] =
    ["pattern", "iterations", "bytes_max", "duration_s", "warmup", "tx_depth", "rx_depth"];
/// Settings of experiments that are told where they differ.
const TOLD_SETTINGS: [&str; 3] = ["repetitions", "launches", "within"];
/// The keys of a plan that define what points name, and the word for one definition of each.
const DEFINITIONS: [(&str, &str); 5] = [
    ("applications", "application"),
    ("environments", "environment"),
    ("modes", "mode"),
    ("mpi", "mpi"),
    ("variables", "variable"),
];

/// The name of the difference between hosts. A change may have moved a job, so sides may differ in
/// it, and a history may not.
pub(super) const HOST: &str = "host";

/// The start of the name of the CPUs of a rank.
const CPUS: &str = "CPUs of rank";
/// The most values that a difference lists of those that both sides have, or that vary within a
/// side.
const COMMON_MAX: usize = 3;

/// What a fact is of. The first part is false if the fact matters, so that such facts come first.
type Key = (bool, String);
/// The values of a run or of a side, by what they are of.
type Facts = BTreeMap<Key, BTreeSet<String>>;

/// What a run says of its surroundings and its plan.
pub(super) struct Known {
    /// The program, the devices and the hosts.
    system: Facts,
    /// The settings of the experiments, by the experiment's name.
    experiments: BTreeMap<String, Facts>,
    /// What the plan defines.
    definitions: Facts,
}

impl Known {
    pub(super) fn of(run: &Run) -> Self {
        Self { system: system(run), experiments: experiments(run), definitions: definitions(run) }
    }
}

/// How the facts of a side's runs are combined.
#[derive(Clone, Copy)]
enum Of {
    /// All runs are counted: a fact differs if its values have other shares of the runs of the base
    /// than of the new side.
    All,
    /// Each fact has the value of most runs, because the place of a change may be off by a few
    /// runs.
    Most,
}

/// Returns what differs between the runs of two sides, what matters first. `contrasts` are the
/// axes in which all points of the sides differ.
pub(super) fn between(sides: [&[&Run]; 2], contrasts: &[Difference]) -> Vec<Difference> {
    let known = sides.map(|side| side.iter().map(|run| Known::of(run)).collect::<Vec<_>>());
    listed([&known[0], &known[1]].map(|side| side.iter().collect()), contrasts, Of::All)
}

/// Returns what most runs of one side have and most of the other do not, what matters first.
pub(super) fn changed(sides: [Vec<&Known>; 2]) -> Vec<Difference> {
    listed(sides, &[], Of::Most)
}

impl Of {
    /// Combines the facts of a side's runs.
    fn side(self, runs: &[&Facts]) -> Vec<Facts> {
        match self {
            Self::All => runs.iter().map(|facts| (*facts).clone()).collect(),
            Self::Most => vec![of_most(runs)],
        }
    }
}

/// Of each fact what most runs have; of two that are as frequent, the first.
fn of_most(runs: &[&Facts]) -> Facts {
    let keys: BTreeSet<&Key> = runs.iter().flat_map(|facts| facts.keys()).collect();
    let most = |key: &Key| {
        let found = || runs.iter().map(|facts| facts.get(key));
        let mut counts = BTreeMap::new();
        found().for_each(|values| *counts.entry(values).or_insert(0) += 1);
        // The last of equal ones is the result.
        found().rev().max_by_key(|values| counts[values])?.cloned()
    };
    keys.into_iter().filter_map(|key| Some((key.clone(), most(key)?))).collect()
}

fn listed(sides: [Vec<&Known>; 2], contrasts: &[Difference], of: Of) -> Vec<Difference> {
    let part = |part: fn(&Known) -> &Facts| {
        sides.each_ref().map(|side| of.side(&side.iter().map(|run| part(run)).collect::<Vec<_>>()))
    };
    let system = differing(&part(|run| &run.system), "not known");
    // Points of the other side do not use what one side alone defines.
    let [base, new] = part(|run| &run.definitions);
    let has = |side: &[Facts], key: &Key| side.iter().any(|facts| facts.contains_key(key));
    let shared = |side: &[Facts], other: &[Facts]| -> Vec<Facts> {
        let kept = |facts: &Facts| facts.clone().into_iter().filter(|(key, _)| has(other, key)).collect();
        side.iter().map(kept).collect()
    };
    let definitions = differing(&[shared(&base, &new), shared(&new, &base)], "not set");
    let settings = differing_settings(sides, of);
    let found = contrasts.iter().cloned().chain(settings).chain(definitions).chain(system);
    let mut all: Vec<Difference> = found.collect();
    all.sort_by_key(|difference| !difference.matters);
    all
}

/// The settings that differ of experiments that both sides have. An experiment of one side alone
/// has no partner, and its settings matter to no other. Sides of one experiment each are compared
/// whatever its name.
fn differing_settings(sides: [Vec<&Known>; 2], of: Of) -> Vec<Difference> {
    let [base, new] = sides.map(|side| {
        let experiments = grouped(side.into_iter().flat_map(|run| &run.experiments));
        let side = experiments.into_iter().map(|(name, runs)| (name.clone(), of.side(&runs)));
        side.collect::<BTreeMap<String, Vec<Facts>>>()
    });
    let both: Vec<(String, [Vec<Facts>; 2])> = match (base.len(), new.len()) {
        (1, 1) => base.into_values().zip(new.into_values()).map(|(a, b)| (String::new(), [a, b])).collect(),
        _ => {
            let partner = |(name, base): (String, Vec<Facts>)| {
                let new = new.get(&name)?.clone();
                Some((format!(" of {name}"), [base, new]))
            };
            base.into_iter().filter_map(partner).collect()
        }
    };
    let settings = |(of, sides): (String, [Vec<Facts>; 2])| {
        let named = move |found: Difference| Difference { what: found.what + &of, ..found };
        differing(&sides, "not set").into_iter().map(named)
    };
    both.into_iter().flat_map(settings).collect()
}

/// Returns the facts whose values have different shares of the runs of the two sides. Runs without
/// a fact are ignored. `absent` is printed for a side without such a run.
fn differing(sides: &[Vec<Facts>; 2], absent: &str) -> Vec<Difference> {
    let keys: BTreeSet<&Key> = sides.iter().flatten().flat_map(BTreeMap::keys).collect();
    keys.into_iter().filter_map(|key| difference(key, sides, absent)).collect()
}

/// The values of a fact, and how many runs have each.
type Counts<'a> = BTreeMap<&'a BTreeSet<String>, usize>;

fn difference(key: &Key, sides: &[Vec<Facts>; 2], absent: &str) -> Option<Difference> {
    let counts = sides.each_ref().map(|side| {
        let mut counts = Counts::new();
        side.iter()
            .filter_map(|facts| facts.get(key))
            .for_each(|values| *counts.entry(values).or_default() += 1);
        counts
    });
    let [base, new] = &counts;
    let [of_base, of_new] = [base, new].map(|counts| counts.values().sum::<usize>());
    let has_same_values = base.keys().eq(new.keys());
    // Each value has the same share of the runs on both sides.
    let is_even = base.values().zip(new.values()).all(|(base, new)| base * of_new == new * of_base);
    // The CPUs of ranks may change from run to run.
    let may_vary = key.1.starts_with(CPUS);
    if has_same_values && (is_even || may_vary) {
        return None;
    }
    let text = |side: usize| match (counts[side].first_key_value(), counts[side].len()) {
        (None, _) => absent.to_owned(),
        (Some((values, _)), 1) => {
            let other = counts[1 - side].first_key_value().map(|(values, _)| *values);
            listed_beside(values, other)
        }
        (_, several) => {
            let one = |(values, count): (&&BTreeSet<String>, &usize)| {
                let known = values.iter().map(String::as_str).collect::<Vec<_>>().join(" and ");
                format!("{known} ({})", counted(*count as u64, "run"))
            };
            let more = several.saturating_sub(COMMON_MAX);
            let more = (more > 0).then(|| format!("{more} others"));
            let all: Vec<String> = counts[side].iter().take(COMMON_MAX).map(one).chain(more).collect();
            all.join(" and ")
        }
    };
    Some(Difference { what: key.1.clone(), values: [text(0), text(1)], matters: !key.0 })
}

/// Lists the values of a side. If the other side has many of them too, their number is printed.
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

/// Adds a fact.
fn add(facts: &mut Facts, matters: bool, what: String, text: &str) {
    facts.entry((!matters, what)).or_default().insert(plain(text));
}

/// The settings of the experiments of a run's plan, by the experiment's name.
fn experiments(run: &Run) -> BTreeMap<String, Facts> {
    let mut all: BTreeMap<String, Facts> = BTreeMap::new();
    for experiment in run.plan["experiments"].as_array().into_iter().flatten() {
        let facts = all.entry(plain(experiment["name"].as_str().unwrap_or_default())).or_default();
        let mattering = MATTERING_SETTINGS.into_iter().map(|setting| (true, setting));
        for (matters, setting) in mattering.chain(TOLD_SETTINGS.into_iter().map(|setting| (false, setting))) {
            let found = &experiment[setting];
            if *found != Value::Null {
                add(facts, matters, setting.to_owned(), &value(found));
            }
        }
    }
    all
}

/// The definitions of a run's plan: each value, by its path.
fn definitions(run: &Run) -> Facts {
    let mut facts = Facts::new();
    for (key, what) in DEFINITIONS {
        match &run.plan[key] {
            Value::Array(all) => {
                all.iter().for_each(|one| see(&format!("{what} {}", value(&one["name"])), one, &mut facts));
            }
            Value::Null => {}
            one => see(what, one, &mut facts),
        }
    }
    facts
}

/// Adds the values of a definition.
fn see(place: &str, one: &Value, facts: &mut Facts) {
    match one {
        Value::Object(parts) => {
            parts.iter().for_each(|(key, part)| see(&format!("{place} {key}"), part, facts));
        }
        part => add(facts, true, plain(place), &value(part)),
    }
}

/// The program, the devices and the hosts of a run.
fn system(run: &Run) -> Facts {
    let mut facts = Facts::new();
    add(&mut facts, false, "program".to_owned(), &format!("{} {}", run.program.name, run.program.version));
    run.devices.iter().for_each(|device| see_device(device, &mut facts));
    let is_by_socket = is_by_socket(run);
    run.environments.iter().for_each(|host| see_host(host, is_by_socket, &mut facts));
    run.fleet.iter().for_each(|fleet| see_fleet(fleet, &mut facts));
    facts
}

/// The schedule of fleets that draws pairs.
const RANDOM: &str = "random";

/// What decides which pairs of a fleet are measured at the same time, and over which paths.
fn see_fleet(fleet: &Fleet, facts: &mut Facts) {
    let at_once = fleet.parallel.map_or_else(|| "all of a round".to_owned(), |most| most.to_string());
    add(facts, true, "pairs at the same time".to_owned(), &at_once);
    add(facts, true, "schedule".to_owned(), &fleet.schedule);
    add(facts, true, "rails".to_owned(), if fleet.separate_rails { "separate" } else { "together" });
    if fleet.schedule == RANDOM {
        // Another seed draws other pairs.
        add(facts, true, "rounds".to_owned(), &format!("{}, seed {}", fleet.rounds, fleet.seed));
    }
    if let Some(rounds) = fleet.rounds_in_time {
        add(facts, false, "rounds in --time".to_owned(), &rounds.to_string());
    }
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

fn see_host(host: &Environment, is_by_socket: bool, facts: &mut Facts) {
    add(facts, false, HOST.to_owned(), &host.hostname);
    if let Some(cpus) = &host.pinned_cpus {
        add(facts, false, format!("{CPUS} {}", host.rank), &format!("{cpus:?}"));
    }
    for group in TOLD_GROUPS {
        for (name, found) in host.facts.get(group).into_iter().flatten() {
            let is_changing = CHANGING.iter().any(|end| name.ends_with(end));
            if !is_changing {
                let is_link = is_by_socket && group == "network" && is_of_link(host, name);
                let matters = is_link || MATTERING_FACTS.contains(&(group, name.as_str()));
                add(facts, matters, format!("{group} {name}"), found);
            }
        }
    }
}

/// Whether messages may pass the network interfaces of hosts: a run without a device, between
/// hosts. What passes through an RDMA device depends on that device alone.
fn is_by_socket(run: &Run) -> bool {
    let hosts: BTreeSet<&String> = run.environments.iter().map(|host| &host.hostname).collect();
    run.devices.is_empty() && hosts.len() > 1
}

/// Whether a fact is the speed or the MTU of an interface with a link. Virtual interfaces come and
/// go, and have none.
fn is_of_link(host: &Environment, name: &str) -> bool {
    let Some((interface, fact)) = name.rsplit_once('.') else { return false };
    let has_speed = || host.facts["network"].contains_key(&format!("{interface}.{SPEED}"));
    matches!(fact, SPEED | "mtu_bytes") && has_speed()
}

/// The fact that only an interface with a link has.
const SPEED: &str = "speed_mbps";
