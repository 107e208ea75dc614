//! Which host, pair or group of a fleet is slow.
//!
//! ```text
//! schedule ─► screening ─► model (fit, scales) ─► claims ─► confirm (again, experiment) ─► examined
//!                                                                      └─► load: congestion
//! ```
//!
//! [`examine()`] asks a [`Probe`] for measurements: the program, or the simulation that proves the
//! rates (`src/bin/verdicts`). Both run the same function. It has two stages:
//!
//! 1. *Screening*: the passes over a [`Schedule`]. Each round's median is taken out, the middle of
//!    the passes is a cell, and median polish separates distances, senders, receivers and pairs. A
//!    distance is what groups tell: of one group, or of two. Thresholds are those of the largest of
//!    all effects. What lies beyond three quarters of a threshold (half of it, of fewer than eight
//!    hosts) is suspect. The screening names nobody: alone it would accuse somebody in most healthy
//!    fleets. A pair that gave no value in any pass is measured once more.
//! 2. *Confirmation*: a second look at suspect pairs; then three visits, a minute apart
//!    ([`VISITS_APART`]) and with agents started anew, in which a suspect is measured in isolation,
//!    with good partners and beside a control. It is named if the median over the visits is beyond
//!    the whole threshold. Of two visits both have to be.
//!
//! A group is suspect if most of its members are: as hosts, or beside the paths of the same
//! distance that do not touch the group, since a slow group moves the effect of its own distance.
//! Where time is short, hosts and groups come before pairs, which are looked at more often, and no
//! part of a suspect is examined without it.
//!
//! A group is tested before its members, and a host before its pairs. What a culprit explains is
//! not named: a pair of a named host never is, so a pair that is slow for another reason is found
//! when the host is repaired. What is slow again under load and not in isolation is congestion.
//!
//! Members of several networks ([`Hosts::networks`]), such as rails that do not reach each other,
//! have an examination for each network, all of them at the same time.
//!
//! With a baseline, the question is which host or pair changed. It has what lasts of an earlier
//! examination ([`lasting()`]).
//!
//! A stated expectation is a question of its own, of every measured cell. The host with the largest
//! share of cells below it is suspect first, and its cells accuse nobody else. What reaches the
//! expectation in isolation is measured under load again, in three visits, and missed if it is
//! below it there. Neither is said of what noise may explain: it stays undecided.
//!
//! # What the simulations showed
//!
//! - Rounds are compared by how far their cells are from a first fit, of values as they are. The
//!   median of a round's own values lies between two levels where half of its cells have a slow
//!   host or a long way, and moves with each outlier: the printed deficits then grew with the
//!   injected one, and hosts beside distant ones seemed fast.
//! - Pairs across leaf switches that are 30 % slower by design made culprits of all hosts of the
//!   smaller leaf, until pairs were compared with those of the same distance. The level of each
//!   distance in isolation is measured there, and a host's control has the host's distance to the
//!   partner.
//! - A group has few members in a small fleet. Measured once with each partner, 1.1 % of slow
//!   groups of two were named wrongly; measured three times, 0.3 %.
//! - Visits that follow directly on each other tell flips of ten rounds from defects (0.2 % of
//!   healthy fleets accused) and not flips of a hundred rounds (10 to 14 %; with visits 60 rounds
//!   apart 5 %, with 300 rounds 0.1 to 2 %).
//! - A suspect pair and its two hosts with a good partner are measured directly one after the
//!   other, and their difference counts. With separate medians of each, hosts that are slow for
//!   some seconds made false culprits of pairs in a tenth of the fleets of 32 hosts.
//! - The level in isolation comes from disjoint pairs of up to 16 good hosts. With six hosts, two
//!   that were slow for a while moved it, and with it every suspect pair.
//! - If one way of a culprit is named, the other one needs only the least deficit worth saying,
//!   but it must have been slow by half of that in the screening too.
//! - A group needs 70 % of its members slow in isolation. By their median, one slow host of two
//!   made a group.
//! - Where more pairs are suspect than are looked at again (four for each host), the threshold of
//!   pairs rises until the others are no suspects. Without that, hundreds of hosts that flip hid
//!   slow pairs that the printed deficit promised to find.
//! - In a second look, a host's own slowness excuses its pair by no more than the tolerance.
//! - The error of a baseline's cell is in all later comparisons of the pair, so that no visit
//!   clears it. Compared with the cells as they were, 28 % of healthy fleets of 32 hosts had a
//!   culprit; if a pair had to be as fast as in the slowest of three passes, 12 %. The noise of a
//!   pair lasts longer than a pass.
//! - Without a margin and visits, a limit that is 2 % below the slowest of 992 healthy pairs under
//!   load was missed in 22 % of the fleets (noise of 1 %), and with them in 3 %.
//! - A healthy host can truly be slower than the others by the least deficit. It is named then:
//!   no statistics can tell it from a culprit, only `least` and `tolerance`.
//!
//! # Invariants
//!
//! - The rounds that a probe is asked for are a function of its earlier answers and of the options.
//! - A value that was not measured takes nothing else with it: the fit is over the cells that
//!   exist.
//! - Memory grows with the number of measurements, not with the square of the number of hosts.

mod again;
mod baseline;
mod budget;
mod cells;
mod claim;
mod claims;
mod confirm;
mod distance;
mod examine;
mod examined;
mod experiment;
mod fit;
mod floors;
mod ground;
mod hosts;
mod lanes;
mod load;
mod model;
mod networks;
mod options;
mod probe;
mod relation;
mod robust;
mod scales;
pub mod schedule;
mod screening;
#[cfg(test)]
mod tests;

pub use cells::Cell;
pub use examined::{
    Against, Cleared, Congestion, Culprit, Effects, Evidence, Examined, Judged, Measurements, Place, Reason,
    Thresholds, Undecided, Verdict, Way, Why, deficit,
};
pub use hosts::{Grouping, Hosts};
pub use options::{Options, Quantity};
pub use probe::{Measured, Probe, Purpose, Reading, Round, TimeLeft, VISITS_APART};
pub use schedule::{Amounts, SCHEDULES, Schedule};

/// Examines a fleet: asks the probe for measurements, and names the members, pairs and groups that
/// are slow.
///
/// # Errors
///
/// An error of the probe ends the examination, and is returned.
pub fn examine<P: Probe>(hosts: &Hosts, options: &Options, probe: &mut P) -> Result<Examined, P::Error> {
    probe::with(probe, |probe| match hosts.networks {
        None => examine::examine(hosts, options, probe),
        Some(_) => networks::examine(hosts, options, probe),
    })
}

/// Measures what a later examination compares with ([`Quantity::baseline`]): the cells of each
/// quantity, and how many passes they are of. A pair is as fast as the effects of its hosts lead to
/// expect, or as slow as its best pass. What a pair gains by chance would be a loss later.
///
/// # Errors
///
/// An error of the probe ends the measurements, and is returned.
pub fn lasting<P: Probe>(
    hosts: &Hosts,
    options: &Options,
    probe: &mut P,
) -> Result<(Vec<Vec<Cell>>, usize), P::Error> {
    probe::with(probe, |probe| match hosts.networks {
        None => examine::lasting(hosts, options, probe),
        Some(_) => networks::lasting(hosts, options, probe),
    })
}
