//! The verdict on a fleet as results of tests: a test for each member, which fails if the member is
//! slow, and one for the verdict. A pair or a group has a test only if it is slow. The points of a
//! fleet have no tests: they are too many, and none of them decides anything alone.

use std::collections::BTreeSet;

use measure::record::Fleet;
use verdict::fleet::{Hosts, Place};

use super::exported::Exported;
use crate::fleet::{self, Found, culprits, missed, open, outcome};
use crate::junit::{Outcome, Test};

/// The tests of a fleet; none for other runs.
pub(super) fn tests(run: &Exported<'_>) -> Option<Vec<Test>> {
    let fleet = run.run.fleet.as_ref()?;
    let found = Found::of(run.run, run.points)?;
    let found = match found {
        Ok(found) => found,
        Err(why) => return Some(vec![Test::new(VERDICT, EXAMINED, Outcome::Error(why))]),
    };
    let members = (0u32..)
        .zip(&fleet.members)
        .map(|(index, member)| Test::new("members", &member.name, result_of_member(&found, fleet, index)));
    let places = missed(&found.examined).map(|missed| missed.place).chain(culprits(&found.examined));
    let others: BTreeSet<Place> = places.filter(|place| !matches!(place, Place::Host(_))).collect();
    let others = others.into_iter().map(|place| {
        let name = found.words().names.place(place, None);
        Test::new("culprits", &name, Outcome::Failure(sentences(&found, place)))
    });
    Some([verdict(&found)].into_iter().chain(members).chain(others).collect())
}

/// The test that the verdict is complete.
fn verdict(found: &Found<'_>) -> Test {
    let words = found.words();
    let result = match outcome(found.fleet, &found.examined) {
        fleet::Outcome::Undecided => {
            // The verdict has the first reason.
            let reasons = open(found.fleet, &found.examined).skip(1);
            let reasons = reasons.map(|undecided| words.undecided(undecided));
            let all: Vec<String> = [words.verdict()].into_iter().chain(reasons).collect();
            Outcome::Skipped(all.join("; "))
        }
        fleet::Outcome::Healthy | fleet::Outcome::Culprits => Outcome::Passed,
    };
    Test { output: words.verdict(), ..Test::new(VERDICT, EXAMINED, result) }
}

fn result_of_member(found: &Found<'_>, fleet: &Fleet, index: u32) -> Outcome {
    let said = sentences(found, Place::Host(index as usize));
    match fleet.left.get(&index) {
        _ if !said.is_empty() => Outcome::Failure(said),
        Some(reason) => Outcome::Skipped(format!("left out: {reason}")),
        None => {
            let of_member = open(fleet, &found.examined)
                .filter(|undecided| concerns(&found.question.hosts, undecided.place, index as usize));
            let reasons: Vec<String> =
                of_member.map(|undecided| found.words().undecided(undecided)).collect();
            match reasons[..] {
                [] => Outcome::Passed,
                _ => Outcome::Skipped(format!("not decided: {}", reasons.join("; "))),
            }
        }
    }
}

/// Whether what is not decided of a place leaves a member undecided.
fn concerns(hosts: &Hosts, place: Option<Place>, member: usize) -> bool {
    let is_of = |grouping: usize, group: usize| {
        hosts.groupings.get(grouping).and_then(|grouping| grouping.of[member]) == Some(group)
    };
    match place {
        None | Some(Place::Fleet) => true,
        Some(Place::Network(network)) => hosts.network(member) == Some(network),
        Some(Place::Host(host)) => host == member,
        Some(Place::Pair { a, b }) => [a, b].contains(&member),
        Some(Place::Group { grouping, group }) => is_of(grouping, group),
        Some(Place::Between { grouping, a, b }) => is_of(grouping, a) || is_of(grouping, b),
    }
}

/// What is said of a place that is slow, in all quantities.
fn sentences(found: &Found<'_>, place: Place) -> String {
    let words = found.words();
    let of_place = found.examined.culprits.iter().filter(|culprit| culprit.place == place);
    let missed = missed(&found.examined).filter(|missed| missed.place == place);
    let all = of_place.map(|culprit| words.culprit(culprit));
    all.chain(missed.map(|missed| words.congestion(missed))).collect::<Vec<_>>().join("; ")
}

/// The class of the verdict.
const VERDICT: &str = "verdict";
/// The name of its test.
const EXAMINED: &str = "every member is examined";
