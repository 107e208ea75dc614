//! What a fleet is compared with, beside its own members: stated limits, and an earlier fleet.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use bench::PATTERNS;
use bench::point::PointSpec;
use measure::expectation::{Bound, Limit};
use measure::record::{Device, Fleet, FleetMember, Point};
use measure::store::RunReader;
use measure::text::value;
use measure::units::Dimension;
use report::fleet::{Question, Row, examined, link_limit};
use serde_json::{Value, json};

use super::arguments::FleetArguments;
use crate::failure::Usage;

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

    /// Returns the least throughput of a pair, in bytes/s, if one is stated.
    pub(super) fn least(&self, spec: &PointSpec, devices: &[Device]) -> Result<Option<f64>, Usage> {
        match &self.at_least {
            None => Ok(None),
            Some((_, Limit::Number { at, .. })) => Ok(Some(*at)),
            Some((text, Limit::OfLink(share))) => {
                let link = |device: &Device| device.attributes.get("link").cloned();
                if let Some([a, b]) = devices.windows(2).find(|pair| link(&pair[0]) != link(&pair[1])) {
                    let names = [a, b].map(|device| format!("{} of member {}", device.name, device.rank + 1));
                    return Err(Usage(format!(
                        "--at-least {text}: the links of {} differ: give a bandwidth such as 10Gb/s",
                        names.join(" and ")
                    )));
                }
                let limit = shape(spec, devices).and_then(|point| link_limit(&point, devices, PATTERNS));
                let unknown = "what the link carries is not known here: give a bandwidth such as 10Gb/s";
                let limit = limit.ok_or_else(|| Usage(format!("--at-least {text}: {unknown}")))?;
                Ok(Some(share * limit))
            }
        }
    }
}

/// Reads a bound of a dimension.
fn limit(option: &str, text: &str, bound: &str, dimension: Dimension, example: &str) -> Result<Limit, Usage> {
    let refused = |why: &str| Usage(format!("{option} {text}: {why}"));
    let bound = Bound::parse(bound).map_err(|_| refused(&format!("give {example}")))?;
    bound.check(dimension).map_err(|why| refused(&why))?;
    Ok(bound.limit)
}

/// Returns a point of the first two devices as it will be measured, without numbers.
fn shape(spec: &PointSpec, devices: &[Device]) -> Option<Point> {
    let members: Vec<u32> = devices.iter().map(|device| device.rank).take(2).collect();
    let shape = json!({
        "id": 0, "experiment": spec.experiment, "pattern": spec.pattern.name(), "axes": spec.axes,
        "status": "measured", "repetition": 0, "wall_ns": 0, "fleet": {"round": 0, "members": members},
        "throughput": {"bytes_per_s": 0.0, "messages_per_s": 0.0, "direction": "uni"},
    });
    serde_json::from_value(shape).ok()
}

/// Senders, receivers and values.
type Cells = Vec<(u32, u32, f64)>;

/// The cells of an earlier fleet, by quantity, with the members of this one.
pub(super) struct Baseline {
    plan: Value,
    fleet: Fleet,
    cells: Vec<(String, Cells)>,
}

impl Baseline {
    /// Reads the record of an earlier fleet.
    pub(super) fn read(directory: &Path) -> anyhow::Result<Self> {
        let (run, points) = RunReader::open(directory)?.into_parts();
        let refused = |why: &str| Usage(format!("--baseline {}: {why}", directory.display()));
        let fleet = run.fleet.ok_or_else(|| refused("it is no run of `rdmascope fleet`"))?;
        let question = Question::of(&fleet).map_err(|why| refused(&why))?;
        let found =
            examined(&question, &fleet, &points).map_err(|_| refused("its examination is not complete"))?;
        let values = |row: &Row, judged: &verdict::fleet::Judged| {
            judged.cells.iter().map(|cell| (cell.from, cell.to, row.of_log(cell.value))).collect()
        };
        let cells = question.rows.iter().zip(&found.quantities);
        let cells = cells.map(|(row, judged)| (row.name.to_owned(), values(row, judged))).collect();
        Ok(Self { plan: run.plan, fleet, cells })
    }

    /// Refuses an earlier fleet whose numbers are of other measurements. Returns the members of
    /// this fleet that it does not have.
    pub(super) fn check(&self, plan: &Value, fleet: &Fleet) -> Result<Vec<String>, Usage> {
        let parallel = |fleet: &Fleet| fleet.parallel.map_or("all".to_owned(), |most| most.to_string());
        let mut kinds = vec![
            ("the subject".to_owned(), value(&self.plan["fleet"]), value(&plan["fleet"])),
            ("the schedule".to_owned(), self.fleet.schedule.clone(), fleet.schedule.clone()),
            ("--parallel".to_owned(), parallel(&self.fleet), parallel(fleet)),
        ];
        let experiments = plan["experiments"].as_array().into_iter().flatten().enumerate();
        for (index, experiment) in experiments {
            for (axis, now) in experiment["axes"].as_object().into_iter().flatten() {
                let earlier = value(&self.plan["experiments"][index]["axes"][axis]);
                kinds.push((format!("{axis} of {}", value(&experiment["name"])), earlier, value(now)));
            }
        }
        if let Some((what, earlier, now)) = kinds.into_iter().find(|(_, earlier, now)| earlier != now) {
            let words = format!("--baseline: {what} is {earlier} in the earlier fleet, and {now} now");
            return Err(Usage(words));
        }
        let known: BTreeSet<&str> = self.fleet.members.iter().map(|member| member.name.as_str()).collect();
        let names = fleet.members.iter().map(|member| &member.name);
        Ok(names.filter(|name| !known.contains(name.as_str())).cloned().collect())
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
