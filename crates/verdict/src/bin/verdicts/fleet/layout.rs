//! Fleets other than the usual one: other schedules, rails, baselines and limits.

use verdict::fleet::{Cell, Hosts, Options, Quantity, Schedule, TimeLeft};

/// How a fleet is made and asked.
pub(super) struct Layout {
    /// Its name in rows.
    pub(super) name: &'static str,
    /// The number of members; 0 for any.
    pub(super) members: usize,
    /// What is wrong, by the names of cases.
    pub(super) cases: &'static [&'static str],
    pub(super) schedule: &'static str,
    /// The passes over the schedule, unless they are the usual ones.
    pub(super) passes: Option<usize>,
    /// The rounds of the schedule for which there is time; `None`: all.
    pub(super) rounds_in_time: Option<u64>,
    /// The most pairs at the same time; `None`: as many as the schedule has.
    parallel: Option<usize>,
    /// The devices of each host, which are members.
    devices: usize,
    /// Whether these are rails that do not reach each other.
    is_separate: bool,
    /// The members of a leaf switch; 0 without groups.
    leaf: usize,
    pub(super) compared: Compared,
    /// The limit of [`Compared::Limit`], as a share of what members reach alone.
    pub(super) limit: f64,
}

/// What members are compared with.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Compared {
    /// Each other.
    Others,
    /// An earlier fleet.
    Baseline,
    /// A stated limit as well.
    Limit,
}

/// Two hosts that flip at the same time are above this limit.
const FAR_LIMIT: f64 = 0.75;
/// Under load, the slowest of 1,000 healthy pairs is about 5 % above this limit: five times the
/// scale of the noise. Hosts that flip are below it.
const NEAR_LIMIT: f64 = 0.88;

/// The rounds of half a second for which a schedule has time with `--time 10min`.
const TEN_MINUTES: u64 = 440;
/// The time that such a fleet has after its schedule: 400 rounds, and the time before three visits.
pub(super) const LEFT: TimeLeft = TimeLeft { rounds: 580, before_visit: 60 };

/// The usual fleet, of any number of members.
pub(super) static USUAL: Layout = LIKE_USUAL;

const LIKE_USUAL: Layout = Layout {
    name: "",
    members: 0,
    cases: &[],
    schedule: "all-pairs",
    passes: None,
    rounds_in_time: None,
    parallel: None,
    devices: 1,
    is_separate: false,
    leaf: 0,
    compared: Compared::Others,
    limit: FAR_LIMIT,
};

/// The layouts of further rows. Where random rounds, or a part of a pass, measure a part of the
/// pairs, no pair is promised to be named.
pub(super) static LAYOUTS: [Layout; 17] = [
    Layout {
        name: "random",
        members: 64,
        cases: &["none", "one way", "both", "group", "between"],
        schedule: "random",
        leaf: 8,
        ..LIKE_USUAL
    },
    Layout {
        name: "three leaves",
        members: 12,
        cases: &["none", "one way", "both", "pair", "group"],
        leaf: 4,
        ..LIKE_USUAL
    },
    Layout {
        name: "isolated",
        members: 8,
        cases: &["none", "one way", "both", "pair"],
        schedule: "isolated",
        ..LIKE_USUAL
    },
    Layout {
        name: "two passes",
        members: 8,
        cases: &["none", "one way", "both", "pair"],
        passes: Some(2),
        ..LIKE_USUAL
    },
    Layout {
        name: "one pass",
        members: 32,
        cases: &["none", "one way", "both", "pair", "group"],
        passes: Some(1),
        leaf: 4,
        ..LIKE_USUAL
    },
    Layout {
        name: "cut in pass 3",
        members: 8,
        cases: &["none", "one way", "both", "pair"],
        rounds_in_time: Some(18),
        ..LIKE_USUAL
    },
    Layout {
        name: "cut in pass 3",
        members: 160,
        cases: &["none", "one way", "both", "pair", "group"],
        rounds_in_time: Some(TEN_MINUTES),
        leaf: 8,
        ..LIKE_USUAL
    },
    Layout {
        name: "cut in pass 2",
        members: 256,
        cases: &["none", "one way", "both", "pair", "group"],
        rounds_in_time: Some(TEN_MINUTES),
        leaf: 8,
        ..LIKE_USUAL
    },
    Layout {
        name: "cut in pass 1",
        members: 512,
        cases: &["none", "one way", "both", "group"],
        rounds_in_time: Some(TEN_MINUTES),
        leaf: 16,
        ..LIKE_USUAL
    },
    Layout {
        name: "2 pairs at a time",
        members: 8,
        cases: &["none", "one way", "both", "pair"],
        parallel: Some(2),
        ..LIKE_USUAL
    },
    Layout {
        name: "5 pairs at a time",
        members: 32,
        cases: &["none", "one way", "both", "pair", "group"],
        parallel: Some(5),
        leaf: 4,
        ..LIKE_USUAL
    },
    Layout {
        name: "two rails",
        members: 32,
        cases: &["none", "one way", "both", "pair", "group"],
        devices: 2,
        leaf: 8,
        ..LIKE_USUAL
    },
    Layout {
        name: "separate rails",
        members: 32,
        cases: &["none", "one way", "both", "pair", "group"],
        devices: 4,
        is_separate: true,
        leaf: 8,
        ..LIKE_USUAL
    },
    Layout {
        name: "baseline",
        members: 8,
        cases: &["none", "one way", "both", "pair"],
        compared: Compared::Baseline,
        ..LIKE_USUAL
    },
    Layout {
        name: "baseline",
        members: 32,
        cases: &["none", "one way", "both", "pair", "group"],
        leaf: 4,
        compared: Compared::Baseline,
        ..LIKE_USUAL
    },
    Layout {
        name: "limit",
        members: 32,
        cases: &["none", "one way", "both", "pair"],
        compared: Compared::Limit,
        ..LIKE_USUAL
    },
    Layout {
        name: "near limit",
        members: 32,
        cases: &["none"],
        compared: Compared::Limit,
        limit: NEAR_LIMIT,
        ..LIKE_USUAL
    },
];

impl Layout {
    /// Whether a slow leaf switch touches most paths between leaf switches.
    pub(super) fn is_of_three_leaves(&self) -> bool {
        self.leaf > 0 && self.members == 3 * self.leaf
    }

    /// Whether a limit is so near that noise hides whether it is met: how often a healthy fleet is
    /// said to miss it is stated, and has no bar.
    pub(super) fn is_near(&self) -> bool {
        self.compared == Compared::Limit && self.limit > FAR_LIMIT
    }

    /// The members: the devices of a host follow each other.
    pub(super) fn hosts(&self) -> Hosts {
        let n = self.members;
        let names = |of: &dyn Fn(usize) -> usize| (0..n).map(|member| of(member).to_string()).collect();
        let rails: Vec<String> = names(&|member| member % self.devices);
        let mut hosts = Hosts::new(n);
        if self.leaf > 0 {
            let leaves: Vec<String> = names(&|member| member / self.leaf);
            hosts =
                hosts.grouped("group", &leaves.iter().map(|leaf| Some(leaf.as_str())).collect::<Vec<_>>());
        }
        let rails: Vec<&str> = rails.iter().map(String::as_str).collect();
        match (self.devices, self.is_separate) {
            (1, _) => hosts,
            (_, true) => hosts.apart("rail", &rails),
            (_, false) => hosts.grouped("rail", &rails.into_iter().map(Some).collect::<Vec<_>>()),
        }
    }

    /// What is asked of it, with the cells of an earlier fleet if it has one.
    pub(super) fn options(&self, quantities: Vec<Quantity>, earlier: Option<Vec<Cell>>) -> Options {
        let mut options = Options::new(quantities, Schedule::named(self.schedule).expect("a schedule"));
        options.quantities[0].baseline = earlier;
        options.passes = self.passes.or(options.passes);
        options.amounts.parallel = self.parallel;
        if self.compared == Compared::Limit {
            options.quantities[0].floor = Some(vec![self.limit.ln(); self.members]);
        }
        options
    }
}
