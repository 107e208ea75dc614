//! What a fleet is compared with, beside its own members: stated limits, and an earlier fleet.

use std::path::Path;

use bench::PATTERNS;
use bench::point::PointSpec;
use measure::expectation::{Bound, Limit};
use measure::record::{Device, Fleet, FleetMember, Point};
use measure::store::RunReader;
use measure::units::Dimension;
use report::fleet::{Question, Row, examined, link_limit};
use serde_json::json;

use crate::failure::Usage;

/// Returns the least throughput of a pair, in bytes/s.
pub(super) fn at_least(text: &str, spec: &PointSpec, devices: &[Device]) -> Result<f64, Usage> {
    let refused = |why: &str| Usage(format!("--at-least {text}: {why}"));
    // A share alone is one of the link.
    let is_share = text.trim_end().ends_with('%');
    let bound = format!(">= {text}{}", if is_share { " of link" } else { "" });
    let bound = Bound::parse(&bound).map_err(|_| refused("give a bandwidth such as 10Gb/s, or 90%"))?;
    bound.check(Dimension::Bandwidth).map_err(|why| refused(&why))?;
    match bound.limit {
        Limit::Number { at, .. } => Ok(at),
        Limit::OfLink(share) => {
            let limit = shape(spec).and_then(|point| link_limit(&point, devices, PATTERNS));
            let unknown = "what the link carries is not known here: give a bandwidth such as 10Gb/s";
            Ok(share * limit.ok_or_else(|| refused(unknown))?)
        }
    }
}

/// Returns the largest latency of a pair, in ns.
pub(super) fn at_most(text: &str) -> Result<f64, Usage> {
    let refused = |why: &str| Usage(format!("--at-most {text}: {why}"));
    let bound = Bound::parse(&format!("<= {text}")).map_err(|_| refused("give a time such as 5us"))?;
    bound.check(Dimension::Time).map_err(|why| refused(&why))?;
    match bound.limit {
        Limit::Number { at, .. } => Ok(at),
        Limit::OfLink(_) => Err(refused("give a time such as 5us")),
    }
}

/// Returns a point as it will be measured, without numbers.
fn shape(spec: &PointSpec) -> Option<Point> {
    let shape = json!({
        "id": 0, "experiment": spec.experiment, "pattern": spec.pattern.name(), "axes": spec.axes,
        "status": "measured", "repetition": 0, "wall_ns": 0,
        "throughput": {"bytes_per_s": 0.0, "messages_per_s": 0.0, "direction": "uni"},
    });
    serde_json::from_value(shape).ok()
}

/// Senders, receivers and values.
type Cells = Vec<(u32, u32, f64)>;

/// The cells of an earlier fleet, by quantity, with the members of this one.
pub(super) struct Baseline {
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
        Ok(Self { fleet, cells })
    }

    /// The cells of a quantity between members that both fleets have.
    pub(super) fn cells(&self, quantity: &str, members: &[FleetMember]) -> Vec<(u32, u32, f64)> {
        let here = |member: u32| {
            let name = &self.fleet.members.get(member as usize)?.name;
            u32::try_from(members.iter().position(|known| known.name == *name)?).ok()
        };
        let of = self.cells.iter().filter(|(name, _)| name == quantity).flat_map(|(_, cells)| cells);
        of.filter_map(|(from, to, value)| Some((here(*from)?, here(*to)?, *value))).collect()
    }
}
