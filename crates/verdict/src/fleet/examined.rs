//! What an examination found.

use serde::{Deserialize, Serialize};

use super::cells::Cell;

/// The result of an examination: everything that a report needs.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct Examined {
    /// The answer.
    pub verdict: Verdict,
    /// Who is to blame, the largest deficit first.
    pub culprits: Vec<Culprit>,
    /// What is slow while all pairs of a round are measured, and not in isolation: slower than the
    /// others, or than the expectation.
    pub congestion: Vec<Congestion>,
    /// What was suspect and is not named.
    pub cleared: Vec<Cleared>,
    /// Why the verdict is not complete.
    pub undecided: Vec<Undecided>,
    /// Each quantity, in the order of the options.
    pub quantities: Vec<Judged>,
    /// How much was measured.
    pub measurements: Measurements,
}

/// The answer. A culprit outweighs what stays undecided.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// No culprit, and every rule could decide.
    Healthy,
    /// At least one culprit, or a place below the expectation under load.
    Culprits,
    /// No culprit, but something could not be decided.
    Undecided,
}

/// One quantity of all pairs.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct Judged {
    /// Its name.
    pub name: String,
    /// Whether the two directions of a pair differ.
    pub directed: bool,
    /// The measured cells, sorted by sender and receiver. Without direction, each pair has one
    /// cell, with `from < to`.
    pub cells: Vec<Cell>,
    /// The effects of hosts; `None` if the cells are too few.
    pub effects: Option<Effects>,
    /// What could have been found; `None` if nothing could.
    pub thresholds: Option<Thresholds>,
}

/// The two-way model of a quantity: `level + send[from] + receive[to] + residual`. All are
/// logarithms. With a baseline, they are differences from it.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct Effects {
    /// The level of the whole fleet; of several networks, the middle of their levels.
    pub level: f64,
    /// By how much a host sends better than the others; `None`: too few cells. Without direction,
    /// the host's only effect.
    pub send: Vec<Option<f64>>,
    /// By how much a host receives better than the others; the same as `send` without direction.
    pub receive: Vec<Option<f64>>,
}

/// From which deficit on a host and a pair are named.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Serialize)]
pub struct Thresholds {
    /// Of a host with the median number of cells, as a logarithm.
    pub host: f64,
    /// Of a pair, as a logarithm.
    pub pair: f64,
    /// The scale of a cell, as a logarithm: 1.4826 times the median absolute deviation.
    pub cell_scale: f64,
    /// The scale of hosts' effects, as a logarithm.
    pub host_scale: f64,
    /// The median number of cells of a host in one direction.
    pub cells: usize,
}

impl Thresholds {
    /// The deficit of a host that would have been seen, as a share.
    pub fn host_deficit(&self) -> f64 {
        deficit(-self.host)
    }

    /// The deficit of a pair that would have been seen, as a share.
    pub fn pair_deficit(&self) -> f64 {
        deficit(-self.pair)
    }

    /// Both deficits: of a host, of a pair.
    pub fn deficits(&self) -> [f64; 2] {
        [self.host_deficit(), self.pair_deficit()]
    }
}

/// The share below the others that a difference of logarithms means: 0.1 for 10 %.
pub fn deficit(log: f64) -> f64 {
    -log.exp_m1()
}

/// What can be to blame.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Place {
    /// The whole fleet.
    Fleet,
    /// All members of one of several networks: an index in the labels of
    /// [`Hosts::networks`](super::Hosts::networks).
    Network(usize),
    /// A group.
    Group {
        /// The grouping: an index in [`Hosts::groupings`](super::Hosts::groupings).
        grouping: usize,
        /// The group: an index in [`Grouping::labels`](super::Grouping::labels).
        group: usize,
    },
    /// The paths between two groups of a grouping, `a < b`.
    Between {
        /// The grouping.
        grouping: usize,
        /// A group.
        a: usize,
        /// The other.
        b: usize,
    },
    /// A host.
    Host(usize),
    /// One pair alone, `a < b`.
    Pair {
        /// A host.
        a: usize,
        /// The other.
        b: usize,
    },
}

/// What a place is compared with.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Against {
    /// The others of the fleet; with a baseline, the others' change.
    Others,
    /// The stated expectation.
    Floor,
}

/// A direction, as seen from a place. Of a pair or of two groups, `Send` is from a to b.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Way {
    /// It sends. Of a quantity without direction, the only way.
    Send,
    /// It receives.
    Receive,
}

/// Who is to blame.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct Culprit {
    /// The quantity: an index in [`Examined::quantities`].
    pub quantity: usize,
    /// Who.
    pub place: Place,
    /// What it is compared with.
    pub against: Against,
    /// The evidence when it sends, whether named or not; of a quantity without direction, all.
    pub send: Option<Evidence>,
    /// The evidence when it receives; `None` for a quantity without direction.
    pub receive: Option<Evidence>,
}

impl Culprit {
    /// The evidence of a way.
    pub fn evidence(&self, way: Way) -> Option<&Evidence> {
        match way {
            Way::Send => self.send.as_ref(),
            Way::Receive => self.receive.as_ref(),
        }
    }

    /// Whether this way is slow.
    pub fn is_slow(&self, way: Way) -> bool {
        self.evidence(way).is_some_and(|evidence| evidence.is_named)
    }

    /// The largest deficit of a slow way, as a share.
    pub fn deficit(&self) -> f64 {
        let slow = [&self.send, &self.receive].into_iter().flatten().filter(|evidence| evidence.is_named);
        slow.map(Evidence::deficit).fold(0.0, f64::max)
    }
}

/// What was measured of a suspect in isolation.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct Evidence {
    /// The effect in the screening, as a logarithm; negative is slower. Against a floor, the
    /// median value minus the floor.
    pub screened: Option<f64>,
    /// The effect in each visit; `None`: not measured.
    pub visits: Vec<Option<f64>>,
    /// The middle of three visits, the better one of two; `None` if less than two could be
    /// measured.
    pub confirmed: Option<f64>,
    /// The effect below which it is named.
    pub bound: f64,
    /// Whether it is named.
    pub is_named: bool,
    /// The number of its cells in the screening.
    pub peers: usize,
    /// The number of partners in isolation.
    pub partners: usize,
}

impl Evidence {
    /// The deficit, as a share; 0 if nothing was measured.
    pub fn deficit(&self) -> f64 {
        deficit(self.confirmed.unwrap_or(0.0))
    }
}

/// A suspect that is not named.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct Cleared {
    /// The quantity.
    pub quantity: usize,
    /// Who was suspect.
    pub place: Place,
    /// In which direction.
    pub way: Way,
    /// Compared with what.
    pub against: Against,
    /// Its effect in the screening, as a logarithm.
    pub screened: f64,
    /// Why it is not named.
    pub why: Why,
}

/// Why a suspect is not named.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Why {
    /// A second look at the pair was not slow: the median effect of its repetitions.
    Again(f64),
    /// In isolation it was not slow: the median effect over the visits.
    Isolation(f64),
    /// A culprit that it belongs to explains it.
    Explained(Place),
    /// More pairs were suspect than are looked at again. The threshold of pairs was raised
    /// accordingly.
    TooMany,
    /// It could not be measured in isolation.
    NotMeasured,
    /// No time was left to measure it again.
    NoTime,
}

impl Why {
    /// The effect in isolation, if it was measured there.
    pub(super) fn isolated(self) -> Option<f64> {
        match self {
            Self::Isolation(effect) => Some(effect),
            _ => None,
        }
    }
}

/// What is slow only while others are measured too.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct Congestion {
    /// The quantity.
    pub quantity: usize,
    /// What is slow.
    pub place: Place,
    /// In which direction.
    pub way: Way,
    /// Compared with what. Below the expectation, it outweighs what stays undecided.
    pub against: Against,
    /// The effect in the screening, as a logarithm.
    pub screened: f64,
    /// The effect when the same rounds were measured again.
    pub again: f64,
    /// The effect in isolation; `None`: a second look sufficed.
    pub isolated: Option<f64>,
}

/// What could not be decided.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct Undecided {
    /// The quantity; `None`: all.
    pub quantity: Option<usize>,
    /// What; `None`: the whole fleet.
    pub place: Option<Place>,
    /// Why.
    pub reason: Reason,
}

/// Why something could not be decided.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// The schedule cannot separate a slow host from its partners ([`Schedule::no_blame`]).
    ///
    /// [`Schedule::no_blame`]: super::Schedule::no_blame
    Schedule,
    /// Less than four hosts answered.
    TooFewHosts,
    /// One pass, and less than 16 hosts: nothing tells how much a cell varies.
    OnePass,
    /// The hosts have this number of cells; four are needed.
    TooFewCells(usize),
    /// Only a deficit of more than half could have been seen.
    TooNoisy,
    /// All hosts together are slower than in the baseline, by this logarithm: two sessions do not
    /// tell a change from drift.
    SlowerThanBaseline(f64),
    /// This host has less than half of the cells that the others have.
    HostWithoutCells,
    /// No round gave a value of this pair, nor did another measurement, for which time may have
    /// been too short.
    PairWithoutCells,
    /// Four hosts are too few to separate two culprits.
    TwoOfFour,
    /// More pairs were below the expectation than are measured again.
    TooManySuspects,
    /// No time was left to measure a suspect again.
    NoTime,
    /// A suspect had less than two good partners, or did not answer in isolation.
    NotConfirmable,
    /// It is nearer to the expectation than this logarithm, which noise may explain.
    WithinNoise(f64),
}

/// How much was measured. A measurement is one of a pair, with all its quantities.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct Measurements {
    /// Complete passes over the schedule.
    pub passes: usize,
    /// Rounds of the screening, of all passes.
    pub rounds: usize,
    /// Whether time ended the screening.
    pub is_cut: bool,
    /// Measurements in the screening.
    pub screening: usize,
    /// A second look at suspect pairs.
    pub again: usize,
    /// In isolation.
    pub confirmation: usize,
    /// Rounds measured again under load.
    pub under_load: usize,
    /// Measurements, of all kinds, that gave no value.
    pub missing: usize,
}
