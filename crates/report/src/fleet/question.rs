//! What was asked of a fleet, as the procedure takes it.

use std::collections::{BTreeMap, BTreeSet};

use measure::record::{Fleet, FleetMember, FleetQuantity};
use verdict::fleet::{Amounts, Cell, Hosts, Options, Quantity, SCHEDULES, Schedule};

use super::value::{QUANTITIES, Row};

/// The question of a record, checked.
pub struct Question {
    /// The members and their groups.
    pub hosts: Hosts,
    /// The options of the procedure.
    pub options: Options,
    /// The quantities, in the order of the options.
    pub rows: Vec<&'static Row>,
}

impl Question {
    /// Returns the question of a record.
    ///
    /// # Errors
    ///
    /// A sentence, if the record asks for something that this program does not know.
    pub fn of(fleet: &Fleet) -> Result<Self, String> {
        let known = |names: Vec<&str>| names.join(", ");
        let schedule = Schedule::named(&fleet.schedule).ok_or_else(|| {
            let names = known(SCHEDULES.iter().map(|schedule| schedule.name).collect());
            format!("there is no schedule {:?}: the schedules are {names}", fleet.schedule)
        })?;
        let members = fleet.members.len();
        if members < 2 || fleet.left.keys().any(|left| *left as usize >= members) {
            return Err(
                "a fleet has at least two members, and those that are left out are among them".to_owned()
            );
        }
        if !(1..=PASSES_MAX).contains(&fleet.passes) || !(1..=ROUNDS_MAX).contains(&fleet.rounds) {
            return Err(format!("a fleet has 1 to {PASSES_MAX} passes and 1 to {ROUNDS_MAX} rounds"));
        }
        let rows: Result<Vec<&Row>, String> = fleet
            .quantities
            .iter()
            .map(|quantity| {
                Row::named(&quantity.name).ok_or_else(|| {
                    let names = known(QUANTITIES.iter().map(|row| row.name).collect());
                    format!("there is no quantity {:?}: the quantities are {names}", quantity.name)
                })
            })
            .collect();
        let rows = rows?;
        if rows.is_empty() {
            return Err("a fleet compares at least one quantity".to_owned());
        }
        let is_share = |share: f64| (0.0..1.0).contains(&share);
        if ![fleet.least, fleet.tolerance, fleet.alpha].into_iter().all(is_share) {
            return Err("least, tolerance and alpha are shares from 0 to 1".to_owned());
        }
        let quantities = rows.iter().zip(&fleet.quantities).map(|(row, asked)| {
            let cells = asked.baseline.iter().filter(|(from, to, value)| {
                (*from as usize) < members && (*to as usize) < members && *value > 0.0
            });
            let cells: Vec<Cell> =
                cells.map(|(from, to, value)| Cell::from((*from, *to, row.log(*value)))).collect();
            Ok(Quantity {
                name: row.name.to_owned(),
                directed: row.is_directed,
                floor: floor(row, asked, members)?,
                baseline: (!cells.is_empty()).then_some(cells),
            })
        });
        let quantities: Result<Vec<Quantity>, String> = quantities.collect();
        let amounts = Amounts {
            rounds: fleet.rounds as usize,
            parallel: fleet.parallel.map(|most| most as usize),
            ..Amounts::default()
        };
        let options = Options {
            amounts,
            passes: Some(fleet.passes as usize),
            least: fleet.least,
            tolerance: fleet.tolerance,
            alpha: fleet.alpha,
            seed: fleet.seed,
            ..Options::new(quantities?, schedule)
        };
        Ok(Self { hosts: hosts(fleet, schedule)?, options, rows })
    }
}

impl Question {
    /// Whether something can be suspect: a schedule without blame compares with stated limits
    /// alone.
    pub fn has_suspects(&self) -> bool {
        let has_limit = self.options.quantities.iter().any(|quantity| quantity.floor.is_some());
        self.options.schedule.no_blame.is_none() || has_limit
    }

    /// The rounds of the schedule, of all passes; suspects add some. All rails are measured in the
    /// same rounds.
    pub(crate) fn rounds(&self) -> u64 {
        let Options { schedule, amounts, passes, seed, .. } = &self.options;
        let of = |hosts: &Hosts| schedule.rounds(hosts, amounts, *seed).count();
        let longest = self.hosts.parts().iter().map(|(_, hosts)| of(hosts)).max().unwrap_or(0);
        longest as u64 * passes.unwrap_or(schedule.passes) as u64
    }

    /// The points of the schedule, of all passes; suspects add some.
    pub fn points(&self) -> u64 {
        let Options { schedule, amounts, passes, seed, .. } = &self.options;
        let of =
            |hosts: &Hosts| schedule.rounds(hosts, amounts, *seed).map(|round| round.len()).sum::<usize>();
        let pairs: usize = self.hosts.parts().iter().map(|(_, hosts)| of(hosts)).sum();
        let is_two_way = |row: &Row| row.is_directed && !schedule.is_fan;
        let of_pair: u64 = self.rows.iter().map(|row| if is_two_way(row) { 2 } else { 1 }).sum();
        pairs as u64 * of_pair * passes.unwrap_or(schedule.passes) as u64
    }
}

/// The most separate rails: more are no devices of a host.
const RAILS_MAX: usize = 64;
/// The most passes and rounds of a fleet.
const PASSES_MAX: u32 = 3;
/// As many rounds have every pair of any fleet several times.
pub const ROUNDS_MAX: u32 = 100_000;

/// Returns the least value of each member, if one is expected.
fn floor(row: &Row, asked: &FleetQuantity, members: usize) -> Result<Option<Vec<f64>>, String> {
    let same = asked.expected.map(|value| vec![value; members]);
    let of = same.unwrap_or_else(|| asked.expected_of.clone());
    match () {
        () if of.is_empty() => Ok(None),
        () if of.len() == members && of.iter().all(|value| *value > 0.0) => {
            Ok(Some(of.into_iter().map(|value| row.log(value)).collect()))
        }
        () => Err("what is expected of members is a number above 0 for each of them".to_owned()),
    }
}

/// Returns the members with their groups, in the order of [`GROUPINGS`]. Separate rails are
/// networks in place of groups, and have groups of their own: each has its own switches.
fn hosts(fleet: &Fleet, schedule: &Schedule) -> Result<Hosts, String> {
    let hosts = Hosts::new(fleet.members.len());
    let label = |member: &FleetMember, kind: &str| member.groups.get(kind).cloned();
    if !fleet.separate_rails {
        let of = |kind: &str| fleet.members.iter().map(|member| label(member, kind)).collect();
        return Ok(GROUPINGS.iter().fold(hosts, |hosts, kind| grouped(hosts, kind, of(kind))));
    }
    let rails = separate_rails(&fleet.members, schedule)?;
    let of_rail = |(member, rail): (&FleetMember, &&str)| Some(format!("{}, {rail}", label(member, GROUP)?));
    let groups = fleet.members.iter().zip(&rails).map(of_rail).collect();
    Ok(grouped(hosts, GROUP, groups).apart(RAIL, &rails))
}

/// Returns the separate rail of each member.
///
/// # Errors
///
/// Why members cannot be measured rail by rail.
pub fn separate_rails<'m>(members: &'m [FleetMember], schedule: &Schedule) -> Result<Vec<&'m str>, String> {
    if schedule.is_fan {
        let name = schedule.name;
        return Err(format!("{name} has one centre, which has one rail: use another --schedule"));
    }
    let mut sizes: BTreeMap<&str, usize> = BTreeMap::new();
    let mut rails = Vec::new();
    for member in members {
        let rail = member.groups.get(RAIL);
        let rail =
            rail.ok_or_else(|| format!("name the devices of {} by devices= in --hosts-file", member.host))?;
        *sizes.entry(rail).or_default() += 1;
        rails.push(rail.as_str());
    }
    if sizes.len() > RAILS_MAX {
        return Err(format!("there are {} rails, and {RAILS_MAX} is the most", sizes.len()));
    }
    match sizes.into_iter().find(|(_, members)| *members == 1) {
        Some((rail, _)) => Err(format!("{rail} is the device of one host alone, and a rail has several")),
        None => Ok(rails),
    }
}

/// Adds a grouping. One group is no difference.
fn grouped(hosts: Hosts, kind: &str, labels: Vec<Option<String>>) -> Hosts {
    let labels: Vec<Option<&str>> = labels.iter().map(Option::as_deref).collect();
    let different: BTreeSet<&str> = labels.iter().copied().flatten().collect();
    if different.len() < 2 { hosts } else { hosts.grouped(kind, &labels) }
}

/// The kinds of groups, those first that are tested first.
const GROUPINGS: [&str; 2] = [GROUP, RAIL];
const GROUP: &str = "group";
const RAIL: &str = "rail";
