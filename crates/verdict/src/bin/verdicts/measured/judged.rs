//! What a fleet that was measured named, against what is true of it.

use std::collections::BTreeSet;
use std::path::Path;

use measure::store::RunReader;
use serde::Deserialize;
use verdict::fleet::{Examined, Place, Reason, Thresholds, Undecided, Way};

use crate::Answer;

#[cfg(test)]
mod tests;

/// A culprit has at least this multiple of the deficit that its run prints.
const STATED: f64 = 2.0;
/// The exit statuses of a healthy fleet, and of one with a culprit (docs/fleet.md).
const HEALTHY: i32 = 0;
const CULPRITS: i32 = 3;

/// What is slow in a fleet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Culprit {
    /// The quantity in which it is slow; in the others, nothing is.
    pub(super) quantity: &'static str,
    pub(super) kind: Kind,
    /// Whether it sends, and whether it receives slowly. Of a pair: from its first host to its
    /// second, and back.
    pub(super) ways: [bool; 2],
    /// The share below the others: no more than what the setting injects.
    pub(super) deficit: f64,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Kind {
    /// The first chosen host.
    Host,
    /// Both chosen hosts.
    Pair,
    /// The leaf switch of the first chosen host.
    Group,
}

/// A quantity, a place, and whether it sends and receives slowly.
type Named = (String, Place, [bool; 2]);

impl Culprit {
    /// What a right verdict names, if these hosts are chosen and a leaf switch has so many.
    fn named(&self, [a, b]: [usize; 2], leaf: usize) -> Named {
        let [there, back] = self.ways;
        let is_turned = matches!(self.kind, Kind::Pair) && a > b;
        let place = match self.kind {
            Kind::Host => Place::Host(a),
            Kind::Pair => Place::Pair { a: a.min(b), b: a.max(b) },
            Kind::Group => Place::Group { grouping: 0, group: a / leaf },
        };
        (self.quantity.to_owned(), place, if is_turned { [back, there] } else { [there, back] })
    }

    /// Whether the run prints that it finds a deficit of this size.
    fn is_promised(&self, examined: &Examined) -> bool {
        let quantity = examined.quantities.iter().find(|judged| judged.name == self.quantity);
        let printed = quantity.and_then(|judged| judged.thresholds.as_ref()).map(Thresholds::deficits);
        printed.is_some_and(|[host, pair]| {
            let printed = if matches!(self.kind, Kind::Pair) { pair } else { host };
            STATED * printed <= self.deficit
        })
    }
}

/// The verdict of a record.
///
/// # Errors
///
/// Why there is none.
pub(super) fn examined(record: &Path) -> Result<Examined, String> {
    let run = RunReader::open(record).map_err(|error| error.to_string())?;
    let examined = run.run().fleet.as_ref().and_then(|fleet| fleet.examined.as_ref());
    let examined = examined.ok_or("the examination has not ended")?;
    Examined::deserialize(examined).map_err(|error| error.to_string())
}

/// Compares a verdict and its exit status with the truth: a culprit, if there is one, with the
/// chosen hosts and the hosts of a leaf switch.
pub(super) fn judge(
    culprit: Option<&Culprit>,
    (chosen, leaf): ([usize; 2], usize),
    examined: &Examined,
    status: Option<i32>,
) -> Answer {
    let expected: BTreeSet<Named> = culprit.map(|culprit| culprit.named(chosen, leaf)).into_iter().collect();
    let found = named(examined);
    let is_promised = match culprit {
        Some(culprit) => culprit.is_promised(examined),
        None => !found.is_empty() || !is_too_noisy(examined),
    };
    if !is_promised {
        return Answer::NotPromised;
    }
    let is_agreed = status == Some(if culprit.is_some() { CULPRITS } else { HEALTHY });
    if found == expected && is_agreed {
        return Answer::Right;
    }
    let undecided = &examined.undecided;
    Answer::Wrong(format!("{expected:?}: {found:?}, exit status {status:?}, undecided {undecided:?}"))
}

fn named(examined: &Examined) -> BTreeSet<Named> {
    let culprits = examined.culprits.iter().map(|culprit| {
        let ways = [Way::Send, Way::Receive].map(|way| culprit.is_slow(way));
        (examined.quantities[culprit.quantity].name.clone(), culprit.place, ways)
    });
    culprits.collect()
}

/// Whether nothing but the noise of a quantity kept the run from an answer: it prints no deficit.
fn is_too_noisy(examined: &Examined) -> bool {
    let is_noise = |undecided: &Undecided| undecided.reason == Reason::TooNoisy;
    !examined.undecided.is_empty() && examined.undecided.iter().all(is_noise)
}
