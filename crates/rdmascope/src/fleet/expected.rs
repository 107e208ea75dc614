//! What a fleet is compared with, beside its own members: stated limits, and an earlier fleet.

use std::collections::BTreeMap;
use std::path::Path;

use bench::PATTERNS;
use bench::point::PointSpec;
use measure::expectation::{Bound, Limit};
use measure::record::{Device, Fleet, FleetMember, Point};
use measure::store::RunReader;
use measure::text::value;
use measure::units::Dimension;
use report::compare::MATTERING_SETTINGS;
use report::fleet::{Question, Row, lasting, link_limit};
use serde_json::{Value, json};
use verdict::fleet::Cell;

use super::arguments::FleetArguments;
use super::points::Asked;
use crate::failure::Usage;
use crate::resume;

/// What the user states of every pair.
#[derive(Default)]
pub(super) struct Limits {
    /// The words and the limit of the least throughput.
    at_least: Option<(String, Limit)>,
    /// The largest latency, in ns.
    pub(super) at_most: Option<f64>,
}

impl Limits {
    /// Reads what the user states.
    pub(super) fn of(arguments: &FleetArguments) -> Result<Self, Usage> {
        let at_least = arguments.at_least.as_ref().map(|text| {
            // A share alone is one of the link.
            let of_link = if text.trim_end().ends_with('%') { " of link" } else { "" };
            let bound = format!(">= {text}{of_link}");
            let limit = limit(
                "--at-least",
                text,
                &bound,
                Dimension::Bandwidth,
                "a bandwidth such as 10Gb/s, or 90%",
            )?;
            Ok((text.clone(), limit))
        });
        let at_most = arguments.at_most.as_ref().map(|text| {
            let example = "a time such as 5us";
            match limit("--at-most", text, &format!("<= {text}"), Dimension::Time, example)? {
                Limit::Number { at, .. } => Ok(at),
                Limit::OfLink(_) => Err(Usage(format!("--at-most {text}: give {example}"))),
            }
        });
        Ok(Self { at_least: at_least.transpose()?, at_most: at_most.transpose()? })
    }

    /// Returns the least throughput of each member's pairs, if one is stated: what the member's own
    /// link carries decides where a part of the link is asked for.
    pub(super) fn least(
        &self,
        spec: &PointSpec,
        devices: &[Device],
        members: usize,
    ) -> Result<Option<Least>, Usage> {
        match &self.at_least {
            None => Ok(None),
            Some((_, Limit::Number { at, .. })) => {
                Ok(Some(Least { of: vec![*at; members], unknown: Vec::new() }))
            }
            Some((text, Limit::OfLink(share))) => {
                let mut of = vec![None; members];
                let mut unknown = Vec::new();
                for device in devices {
                    let limit = link_of_pair(spec, device).map(|limit| share * limit);
                    let member = device.rank as usize;
                    unknown.extend(limit.is_none().then_some(member));
                    if let Some(own) = of.get_mut(member) {
                        *own = limit;
                    }
                }
                // The fleet excludes every member whose link rate is unknown.
                let any = of.iter().copied().flatten().next().ok_or_else(|| {
                    let unknown = "what the link carries is not known here";
                    Usage(format!("--at-least {text}: {unknown}: give a bandwidth such as 10Gb/s"))
                })?;
                Ok(Some(Least { of: of.into_iter().map(|own| own.unwrap_or(any)).collect(), unknown }))
            }
        }
    }
}

/// The least throughput of the pairs of members.
#[derive(Debug)]
pub(super) struct Least {
    /// That of each member, in bytes/s. Of a pair, the lesser one is expected.
    pub(super) of: Vec<f64>,
    /// The members whose link rate is unknown.
    pub(super) unknown: Vec<usize>,
}

impl Least {
    /// Whether it is the same of all members.
    pub(super) fn is_same(&self) -> bool {
        self.of.iter().all(|value| *value == self.of[0])
    }
}

/// Reads a bound of a dimension.
fn limit(option: &str, text: &str, bound: &str, dimension: Dimension, example: &str) -> Result<Limit, Usage> {
    let refused = |why: &str| Usage(format!("{option} {text}: {why}"));
    let bound = Bound::parse(bound).map_err(|_| refused(&format!("give {example}")))?;
    bound.check(dimension).map_err(|why| refused(&why))?;
    Ok(bound.limit)
}

/// Returns what the link of a device carries between two of its kind, in bytes/s, in a point as it
/// will be measured.
fn link_of_pair(spec: &PointSpec, device: &Device) -> Option<f64> {
    // Nothing says that both are one port, whose messages would need no link.
    let mut attributes = device.attributes.clone();
    attributes.remove("node_guid");
    let devices = [0, 1].map(|rank| Device { rank, attributes: attributes.clone(), ..device.clone() });
    // What a point resolves when it is measured.
    let mut axes = json!(spec.axes);
    if let Some(active) = device.attributes.get("active_mtu_bytes").filter(|_| axes["mtu_bytes"] == "active")
    {
        axes["mtu_bytes"] = active.clone();
    }
    let shape = json!({
        "id": 0, "experiment": spec.experiment, "pattern": spec.pattern.name(), "axes": axes,
        "status": "measured", "repetition": 0, "wall_ns": 0, "fleet": {"round": 0, "members": [0, 1]},
        "throughput": {"bytes_per_s": 0.0, "messages_per_s": 0.0, "direction": "uni"},
    });
    let point = Point::of_json(&shape).ok()?;
    link_limit(&point, &devices, PATTERNS)
}

/// Senders, receivers and values.
type Cells = Vec<(u32, u32, f64)>;

/// The cells of an earlier fleet, by quantity, with the members of this one.
pub(super) struct Baseline {
    plan: Value,
    fleet: Fleet,
    devices: Vec<Device>,
    /// The options of its command line.
    arguments: FleetArguments,
    /// The passes that it had time for.
    passes: usize,
    /// Why a slow host may be in it.
    pub(super) doubt: Option<&'static str>,
    cells: Vec<(String, Cells)>,
}

/// What two fleets measured, in words: of the earlier one, and of this one.
type Kind = (String, String, String);

impl Baseline {
    /// Reads the record of an earlier fleet.
    pub(super) fn read(directory: &Path) -> anyhow::Result<Self> {
        let (run, points) = RunReader::open(directory)?.into_parts();
        let refused = |why: &str| Usage(format!("--baseline {}: {why}", directory.display()));
        let no_fleet = || refused("it is no run of `rdmascope fleet`");
        let arguments = resume::arguments_of(&run, "fleet");
        let fleet = run.fleet.ok_or_else(no_fleet)?;
        let arguments = arguments.ok_or_else(no_fleet)?;
        let question = Question::of(&fleet).map_err(|why| refused(&why))?;
        let (found, passes) =
            lasting(&question, &fleet, &points).map_err(|_| refused("its schedule is not complete"))?;
        if passes == 0 {
            let words = "--time ended its schedule in the first pass: make a baseline with more time";
            return Err(refused(words).into());
        }
        let values = |(row, cells): (&&Row, Vec<Cell>)| {
            let cells = cells.iter().map(|cell| (cell.from, cell.to, row.of_log(cell.value)));
            (row.name.to_owned(), cells.collect())
        };
        let cells = question.rows.iter().zip(found).map(values).collect();
        let has_culprits = |said: &Value| said["culprits"].as_array().is_some_and(|all| !all.is_empty());
        let doubt = match fleet.examined.as_ref() {
            None => Some("has not ended"),
            Some(said) if has_culprits(said) => Some("has culprits"),
            Some(said) if said["verdict"] == "undecided" => Some("is not decided"),
            Some(_) => None,
        };
        Ok(Self { plan: run.plan, fleet, devices: run.devices, arguments, passes, doubt, cells })
    }

    /// Refuses an earlier fleet that was asked for other measurements, before an agent starts.
    pub(super) fn check_asked(&self, arguments: &FleetArguments) -> anyhow::Result<()> {
        let rails = |given: bool| if given { "given" } else { "not given" }.to_owned();
        let net =
            |of: &FleetArguments| of.net.net.as_ref().map_or("not given".to_owned(), ToString::to_string);
        let port = |of: &FleetArguments| match of.port.arguments().join(" ") {
            none if none.is_empty() => "the usual one".to_owned(),
            words => words,
        };
        // Which word fits without one, only the agents tell.
        let word = value(&self.plan["fleet"]);
        let asked = Asked::of(arguments.subject.as_ref().unwrap_or(&word), arguments)?;
        let kinds = [
            ("the schedule", self.fleet.schedule.clone(), arguments.schedule.clone()),
            // Of two passes the better value counts, and of three the middle one.
            ("the number of whole passes", self.passes.to_string(), arguments.passes().to_string()),
            ("--separate-rails", rails(self.fleet.separate_rails), rails(arguments.separate_rails)),
            ("--net", net(&self.arguments), net(arguments)),
            ("the port", port(&self.arguments), port(arguments)),
        ];
        let kinds = kinds.into_iter().map(|(what, earlier, now)| (what.to_owned(), earlier, now));
        Ok(same(kinds.chain(self.measured(&asked.word, &asked.resolved.plan)))?)
    }

    /// Refuses an earlier fleet that differs in what only the agents tell: the word that fits, the
    /// pairs at a time and the devices. Returns the members of this fleet that it does not have.
    pub(super) fn check(&self, word: &str, fleet: &Fleet, devices: &[Device]) -> Result<Vec<String>, Usage> {
        let parallel = |fleet: &Fleet| fleet.parallel.map_or("all".to_owned(), |most| most.to_string());
        let parallel = ("--parallel".to_owned(), parallel(&self.fleet), parallel(fleet));
        let places = self.places();
        let devices = devices.iter().filter_map(|device| {
            let name = &fleet.members.get(device.rank as usize)?.name;
            let earlier = self.devices.iter().find(|one| Some(&one.rank) == places.get(name.as_str()))?;
            Some((format!("the device of {name}"), earlier.name.clone(), device.name.clone()))
        });
        same([self.subject(word), parallel].into_iter().chain(devices))?;
        let names = fleet.members.iter().map(|member| &member.name);
        Ok(names.filter(|name| !places.contains_key(name.as_str())).cloned().collect())
    }

    fn subject(&self, word: &str) -> Kind {
        ("the subject".to_owned(), value(&self.plan["fleet"]), word.to_owned())
    }

    /// What is measured, by its word, and the settings and axes of its points.
    fn measured(&self, word: &str, plan: &Value) -> Vec<Kind> {
        let mut kinds = vec![self.subject(word)];
        for (index, experiment) in plan["experiments"].as_array().into_iter().flatten().enumerate() {
            let earlier = &self.plan["experiments"][index];
            let of = |what: &str| format!("{what} of {}", value(&experiment["name"]));
            for (axis, now) in experiment["axes"].as_object().into_iter().flatten() {
                kinds.push((of(axis), value(&earlier["axes"][axis]), value(now)));
            }
            for setting in MATTERING_SETTINGS {
                kinds.push((of(setting), value(&earlier[setting]), value(&experiment[setting])));
            }
        }
        kinds
    }

    /// The members of the earlier fleet, by their names.
    fn places(&self) -> BTreeMap<&str, u32> {
        self.fleet.members.iter().map(|member| member.name.as_str()).zip(0..).collect()
    }

    /// The cells of a quantity between members that both fleets have.
    pub(super) fn cells(&self, quantity: &str, members: &[FleetMember]) -> Cells {
        let places: BTreeMap<&str, u32> =
            members.iter().map(|member| member.name.as_str()).zip(0..).collect();
        let here = |member: u32| {
            let name = &self.fleet.members.get(member as usize)?.name;
            places.get(name.as_str()).copied()
        };
        let of = self.cells.iter().filter(|(name, _)| name == quantity).flat_map(|(_, cells)| cells);
        of.filter_map(|(from, to, value)| Some((here(*from)?, here(*to)?, *value))).collect()
    }
}

/// Refuses the first difference.
fn same(mut kinds: impl Iterator<Item = Kind>) -> Result<(), Usage> {
    match kinds.find(|(_, earlier, now)| earlier != now) {
        None => Ok(()),
        Some((what, earlier, now)) => {
            Err(Usage(format!("--baseline: {what} is {earlier} in the earlier fleet, and {now} now")))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Adapters with these links, of the members 1 and more.
    fn adapters(links: &[&str]) -> Vec<Device> {
        let device = |(link, rank): (&&str, u32)| {
            let shape = json!({
                "rank": rank, "name": "mlx5_0", "provider": "mlx5",
                "attributes": {
                    "kind": "hardware", "link_layer": "InfiniBand", "gid_type": "IB", "link": link, "port": 1,
                    "node_guid": "248a070300000001", "active_mtu_bytes": 4096,
                },
            });
            serde_json::from_value(shape).unwrap()
        };
        links.iter().zip(1..).map(device).collect()
    }

    #[test]
    fn a_part_of_the_link_is_one_of_the_link_of_each_member() {
        let arguments = FleetArguments::parsed("send --local 4 --at-least 50%");
        let limits = Limits::of(&arguments).unwrap();
        let asked = Asked::of("send", &arguments).unwrap();
        let spec = asked.spec("throughput").unwrap();
        let least = |links: &[&str]| limits.least(spec, &adapters(links), 4);
        let Least { of: mixed, unknown } = least(&["4X EDR", "4X FDR", "4X EDR"]).unwrap().unwrap();
        assert!(unknown.is_empty(), "{unknown:?}");
        // Half of 100 Gb/s without the headers of packets. The first member is left out.
        assert!((5.9e9..6.25e9).contains(&mixed[1]), "{mixed:?}");
        assert_eq!([mixed[0], mixed[3]], [mixed[1]; 2]);
        assert!((mixed[2] / mixed[1] - 0.5454).abs() < 1e-3, "{mixed:?}");
        assert_eq!(least(&["4X EDR", "unknown"]).unwrap().unwrap().unknown, [2]);
        let Err(Usage(why)) = least(&["unknown"]) else { panic!("no link is known") };
        assert!(why.starts_with("--at-least 50%: what the link carries is not known"), "{why}");
    }
}
