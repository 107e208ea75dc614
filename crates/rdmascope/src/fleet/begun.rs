//! The record of a fleet that begins.

use std::collections::BTreeMap;

use bench::process::fleet::Fleet;
use measure::record::{self, FleetMember, FleetQuantity, Run, SCHEMA_VERSION};
use report::fleet::{QUANTITIES, Row};

use super::arguments::FleetArguments;
use super::expected::{Baseline, Least, Limits};
use super::points::Asked;
use crate::failure::Usage;
use crate::sink;

/// Returns the record of a fleet that begins.
pub(super) fn begun(
    arguments: &FleetArguments,
    command: Vec<String>,
    members: Vec<FleetMember>,
    asked: &Asked,
    agents: &Fleet<'_>,
) -> Run {
    let hellos: Vec<_> = (0..members.len()).map(|member| agents.hello(member).ok()).collect();
    let known = |rank: u32, name: &str| record::Environment {
        rank,
        hostname: name.to_owned(),
        ..record::Environment::default()
    };
    let environments = (0u32..).zip(&members).zip(&hellos).map(|((rank, member), hello)| {
        hello.map_or_else(|| known(rank, &member.name), |hello| hello.description.environment.clone())
    });
    let environments = environments.collect();
    let here = || hellos.iter().flatten().map(|hello| &hello.description);
    let mut plan = asked.resolved.plan.clone();
    plan["fleet"] = asked.word.clone().into();
    let quantities =
        QUANTITIES.iter().map(|row| FleetQuantity { name: row.name.to_owned(), ..FleetQuantity::default() });
    let devices = match asked.is_verbs {
        true => here().filter_map(|description| description.device.clone()).collect(),
        false => Vec::new(),
    };
    let run = Run {
        schema_version: SCHEMA_VERSION,
        program: sink::program(),
        command,
        started: sink::now(),
        ended: None,
        title: format!("Fleet of {} members, {}", members.len(), asked.word),
        about: None,
        quick: false,
        plan,
        points_planned: 0,
        figures: Vec::new(),
        findings: Vec::new(),
        devices,
        environments,
        overheads: here().map(|description| description.overhead.clone()).collect(),
        launches: Vec::new(),
        expectations: Vec::new(),
        fleet: Some(record::Fleet {
            members,
            quantities: quantities.collect(),
            schedule: arguments.schedule.clone(),
            passes: arguments.passes(),
            rounds: arguments.rounds,
            separate_rails: arguments.separate_rails,
            parallel: arguments.parallel,
            time_s: arguments.time.map(|time| time.as_secs_f64()),
            rounds_in_time: None,
            time_left: None,
            least: arguments.least,
            tolerance: arguments.tolerance,
            alpha: ALPHA,
            seed: SEED,
            baseline: None,
            left: BTreeMap::new(),
            examined: None,
        }),
        warnings: Vec::new(),
    };
    Run { warnings: sink::warnings::of(&run), ..run }
}

/// Adds the stated limits and the baseline to the record. With `--at-least` in percent, the fleet
/// excludes every member whose link rate is unknown.
pub(super) fn expect(
    arguments: &FleetArguments,
    limits: &Limits,
    run: &mut Run,
    asked: &Asked,
    baseline: Option<&Baseline>,
    agents: &mut Fleet<'_>,
) -> Result<(), Usage> {
    let Some(fleet) = &mut run.fleet else { return Ok(()) };
    let new = baseline.map_or(Ok(Vec::new()), |baseline| baseline.check(&asked.word, fleet, &run.devices))?;
    if !new.is_empty() {
        let new = new.join(", ");
        run.warnings.push(format!("not compared with the baseline, which does not have them: {new}"));
    }
    if let Some(doubt) = baseline.and_then(|baseline| baseline.doubt) {
        run.warnings
            .push(format!("the baseline {doubt}: a host that was slow in it may be so without notice"));
    }
    fleet.baseline = arguments.baseline.as_ref().map(|directory| directory.display().to_string());
    for quantity in &mut fleet.quantities {
        let row = Row::named(&quantity.name);
        let is_rate = row.is_some_and(|row| row.is_rate);
        if !is_rate {
            quantity.expected = limits.at_most;
        } else if let Some(spec) = asked.spec(&quantity.name)
            && let Some(least) = limits.least(spec, &run.devices, fleet.members.len())?
        {
            for member in &least.unknown {
                let why = "--at-least asks for a part of its link, and what that carries is not known";
                agents.leave(*member, why.to_owned());
            }
            match least.is_same() {
                true => quantity.expected = least.of.first().copied(),
                false => {
                    run.warnings.extend(slower_links(&least, &fleet.members));
                    quantity.expected_of = least.of;
                }
            }
        }
        if let Some(baseline) = baseline {
            quantity.baseline = baseline.cells(&quantity.name, &fleet.members);
            if quantity.baseline.is_empty() {
                let words = "--baseline: the earlier fleet has no pair of these hosts";
                return Err(Usage(words.to_owned()));
            }
        }
    }
    Ok(())
}

/// Returns a warning that names the members with slower links than others: a fault may slow a link.
fn slower_links(least: &Least, members: &[FleetMember]) -> Option<String> {
    let most = least.of.iter().copied().fold(0.0, f64::max);
    let slower = least.of.iter().zip(members).filter(|(own, _)| **own < most);
    let names: Vec<&str> = slower.map(|(_, member)| member.name.as_str()).collect();
    let more = match names.len().saturating_sub(NAMED_MAX) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let named = names[..names.len().min(NAMED_MAX)].join(", ");
    (!names.is_empty()).then(|| {
        format!("some links are slower than others, so less is expected of these members: {named}{more}")
    })
}

/// A warning names at most this many members.
const NAMED_MAX: usize = 8;

/// The share of healthy fleets in which something may be named.
const ALPHA: f64 = 0.01;
/// Any seed does: the pairs that it draws are the same in every run.
const SEED: u64 = 1;
