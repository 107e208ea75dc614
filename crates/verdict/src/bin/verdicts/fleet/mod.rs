//! Fleets with and without culprits.

mod large;
mod layout;
mod simulated;

use std::collections::BTreeSet;

use measure::random::Random;
use verdict::fleet::{
    Against, Examined, Hosts, Place, Quantity, Reason, Thresholds, Verdict, Way, examine, lasting,
};

pub(crate) use self::large::large;
use self::layout::{Compared, LAYOUTS, LEFT, Layout, USUAL};
use self::simulated::{Rhythm, Simulated, Truth};
use crate::noise::{NOISES, Noise, mixed};
use crate::settings::Settings;
use crate::{Answer, Row};

/// A culprit is injected with this multiple of the deficit that its run prints.
const STATED: f64 = 2.0;
/// The next attempt injects this much more than what was printed, and no more than this at all.
const MARGIN: f64 = 1.02;
const LARGEST: f64 = 0.95;
/// How often a fleet is simulated anew because it prints more than half of what was injected.
const ATTEMPTS: usize = 8;

/// What is wrong, by name, and from which number of hosts on it is simulated.
const CASES: [Case; 11] = [
    Case { name: "none", hosts: 4, culprits: |_, _| Vec::new() },
    Case {
        name: "one way",
        hosts: 4,
        culprits: |hosts, random| {
            let sends = draw(2, random) == 0;
            vec![Culprit::Host(draw(hosts.count, random), sends, !sends)]
        },
    },
    Case {
        name: "both",
        hosts: 4,
        culprits: |hosts, random| vec![Culprit::Host(draw(hosts.count, random), true, true)],
    },
    Case {
        name: "direction",
        hosts: 4,
        culprits: |hosts, random| vec![Culprit::Pair(two_of_one(hosts, random), false)],
    },
    Case {
        name: "pair",
        hosts: 4,
        culprits: |hosts, random| vec![Culprit::Pair(two_of_one(hosts, random), true)],
    },
    Case {
        name: "group",
        hosts: 8,
        culprits: |hosts, random| vec![Culprit::Group(draw(hosts.groupings[0].labels.len(), random))],
    },
    Case {
        name: "between",
        hosts: 32,
        culprits: |hosts, random| {
            let [a, b] = two(hosts.groupings[0].labels.len(), random);
            vec![Culprit::Between([a.min(b), a.max(b)])]
        },
    },
    Case {
        name: "two hosts",
        hosts: 8,
        culprits: |hosts, random| {
            let [a, b] = two(hosts.count, random);
            vec![Culprit::Host(a, true, false), Culprit::Host(b, false, true)]
        },
    },
    Case {
        name: "host + pair",
        hosts: 8,
        culprits: |hosts, random| {
            let hosts = distinct(hosts.count, 3, random);
            vec![Culprit::Host(hosts[0], true, true), Culprit::Pair([hosts[1], hosts[2]], true)]
        },
    },
    Case { name: "far none", hosts: 16, culprits: |_, _| Vec::new() },
    Case {
        name: "far send",
        hosts: 16,
        culprits: |hosts, random| vec![Culprit::Host(draw(hosts.count, random), true, false)],
    },
];

/// In these cases, a quarter of the hosts is on one leaf switch and the others on another one, and
/// the paths between the two are slower by this share.
const FAR: &str = "far ";
const ACROSS: f64 = 0.3;

/// The trials of a row: of healthy fleets, and of each case with culprits.
const TRIALS: [(usize, [u64; 2], [u64; 2]); 5] = [
    // hosts, quick, full
    (4, [1000, 300], [10_000, 3000]),
    (8, [1000, 300], [10_000, 3000]),
    (32, [300, 100], [6000, 1500]),
    (128, [0, 0], [2000, 500]),
    (512, [0, 0], [200, 100]),
];

/// The trials of a row of another layout: quick and full, of healthy fleets and of others.
const TRIALS_OF_LAYOUT: [[u64; 2]; 2] = [[50, 25], [4000, 1000]];
/// The same from this number of members on.
const LARGE: usize = 128;
const TRIALS_OF_LARGE: [[u64; 2]; 2] = [[0, 0], [500, 400]];

/// Flips that last for some seconds, and visits a minute apart.
const RHYTHM: Rhythm = Rhythm { dwell: 10.0, gap: 60 };
/// Flips that last for minutes: how often a healthy fleet has a culprit then, by the time between
/// visits. These are numbers to know: nothing is promised.
const LONG_DWELL: f64 = 100.0;
const GAPS: [u64; 3] = [0, 60, 300];

struct Case {
    name: &'static str,
    hosts: usize,
    culprits: fn(&Hosts, &mut Random) -> Vec<Culprit>,
}

impl Case {
    fn is_far(&self) -> bool {
        self.name.starts_with(FAR)
    }

    fn is_healthy(&self) -> bool {
        self.name.ends_with("none")
    }

    /// The group of a host.
    fn group(&self, n: usize, host: usize) -> usize {
        if self.is_far() { usize::from(4 * host < n) } else { host / group_size(n) }
    }
}

#[derive(Clone, Copy, Debug)]
enum Culprit {
    /// It sends slowly, it receives slowly.
    Host(usize, bool, bool),
    /// From the first to the second, or both ways.
    Pair([usize; 2], bool),
    Group(usize),
    /// The paths between two groups, both ways.
    Between([usize; 2]),
}

impl Culprit {
    /// Which of the two deficits it has: that of hosts or that of pairs.
    fn size(self) -> usize {
        usize::from(matches!(self, Self::Pair(..) | Self::Between(_)))
    }
}

/// How measurements vary, and how time passes.
type World = (Noise, Rhythm);

/// The quantities of a fleet.
#[derive(Clone, Copy, Debug)]
enum Kind {
    /// A throughput.
    Directed,
    /// A latency.
    Symmetric,
    /// Both; only the throughput has culprits.
    Both,
}

/// One fleet of a row.
#[derive(Clone, Copy)]
struct Fleet {
    case: &'static Case,
    layout: &'static Layout,
    /// The number of members.
    n: usize,
    world: World,
    kind: Kind,
}

/// The rates of this procedure.
pub(crate) fn rows(settings: &Settings) -> Vec<Row> {
    let of = |[quick, full]: [[u64; 2]; 2], case: &Case| {
        let [healthy, wrong] = if settings.is_full { full } else { quick };
        if case.is_healthy() { healthy } else { wrong }
    };
    let mut rows = Vec::new();
    for (n, quick, full) in TRIALS {
        for kind in [Kind::Directed, Kind::Symmetric, Kind::Both] {
            // The other kinds run the same code: 4 hosts, of which most is asked, and 32 stand for
            // all. `--full` has time for 8.
            let others: &[usize] = if settings.is_full { &[4, 8, 32] } else { &[4, 32] };
            if !matches!(kind, Kind::Directed) && !others.contains(&n) {
                continue;
            }
            for noise in NOISES {
                let cases = CASES.iter().filter(|case| n >= case.hosts && is_of(kind, case.name));
                rows.extend(cases.map(|case| {
                    let fleet = Fleet { case, layout: &USUAL, n, world: (noise, RHYTHM), kind };
                    row(fleet, of([quick, full], case))
                }));
            }
        }
    }
    for layout in &LAYOUTS {
        for noise in NOISES {
            let cases = CASES.iter().filter(|case| layout.cases.contains(&case.name));
            rows.extend(cases.map(|case| {
                let n = layout.members;
                let fleet = Fleet { case, layout, n, world: (noise, RHYTHM), kind: Kind::Directed };
                row(fleet, of(if n < LARGE { TRIALS_OF_LAYOUT } else { TRIALS_OF_LARGE }, case))
            }));
        }
    }
    for (n, quick, full) in TRIALS.into_iter().filter(|(n, ..)| [8, 32].contains(n)) {
        let case = &CASES[0];
        rows.extend(GAPS.map(|gap| {
            let world = (Noise::Flips, Rhythm { dwell: LONG_DWELL, gap });
            let fleet = Fleet { case, layout: &USUAL, n, world, kind: Kind::Directed };
            Row { bar: None, ..row(fleet, of([quick, full], case)) }
        }));
    }
    rows.retain(|row| row.trials > 0);
    rows
}

/// Whether a case makes sense for the quantities.
fn is_of(kind: Kind, case: &str) -> bool {
    match kind {
        Kind::Directed => true,
        Kind::Symmetric => ["none", "both", "pair", "group", "between", "far none"].contains(&case),
        Kind::Both => ["none", "one way", "pair"].contains(&case),
    }
}

fn row(fleet: Fleet, trials: u64) -> Row {
    let Fleet { case, layout, n, world: (noise, Rhythm { dwell, gap }), kind } = fleet;
    let rhythm =
        if dwell == LONG_DWELL { format!(", long flips, visits {gap} rounds apart") } else { String::new() };
    let quantities = match kind {
        Kind::Directed => "",
        Kind::Symmetric => " latency",
        Kind::Both => " both",
    };
    let of_layout = if layout.name.is_empty() { String::new() } else { format!(", {}", layout.name) };
    // Of four hosts, one may flip while another is examined. Of eight, it may flip for as long as
    // an earlier fleet takes, which hides how slow it is later. In one pass, a pair has one value.
    // A slow leaf of three moves what is usual between leaves.
    let is_short = n == 4
        || (n == 8 && layout.compared == Compared::Baseline)
        || layout.passes == Some(1)
        || layout.is_of_three_leaves();
    let bar = if is_short && !case.is_healthy() { 0.03 } else { 0.01 };
    Row {
        name: format!("n={n}{of_layout}, noise {}{quantities}: {}{rhythm}", noise.letter(), case.name),
        bar: (!layout.is_near()).then_some(bar),
        trials,
        trial: Box::new(move |seed| trial(&fleet, seed)),
    }
}

/// Simulates one fleet. The deficit of its culprits is the stated multiple of what this very run
/// prints.
fn trial(fleet: &Fleet, seed: u64) -> Answer {
    let Fleet { case, layout, n, kind, .. } = *fleet;
    let hosts = match layout.members {
        0 if n < 8 => Hosts::new(n),
        0 => {
            let labels: Vec<String> = (0..n).map(|host| format!("leaf{}", case.group(n, host))).collect();
            let labels: Vec<Option<&str>> = labels.iter().map(|label| Some(label.as_str())).collect();
            Hosts::new(n).grouped("group", &labels)
        }
        _ => layout.hosts(),
    };
    let culprits = (case.culprits)(&hosts, &mut Random(mixed(&[seed, 2])));
    let least = 1.0 - STATED * 0.05;
    // Of what is below a limit, the same share is missing.
    let first = if layout.compared == Compared::Limit { 1.0 - layout.limit * least } else { 1.0 - least };
    let mut deficits = [first; 2];
    for _ in 0..ATTEMPTS {
        let across = if case.is_far() { (1.0 - ACROSS).ln() } else { 0.0 };
        let truth = Truth { across, ..truth(&hosts, &culprits, deficits, !matches!(kind, Kind::Symmetric)) };
        let examined = run(fleet, &hosts, truth, seed);
        let printed = examined.quantities[0].thresholds.as_ref().map(Thresholds::deficits);
        let Some(printed) = printed else { return Answer::Wrong("nothing could be decided".to_owned()) };
        let stated = printed.map(|deficit| STATED * deficit);
        let is_injected = |index: usize| {
            let is_used = culprits.iter().any(|culprit| culprit.size() == index);
            !is_used || deficits[index] >= stated[index] - 1e-9
        };
        if is_injected(0) && is_injected(1) {
            return judge(&culprits, deficits, &examined, fleet);
        }
        deficits = [0, 1].map(|index| deficits[index].max(MARGIN * stated[index]).min(LARGEST));
    }
    // Half of what the run prints is more than everything, or it grows with what is injected.
    Answer::NotPromised
}

fn run(fleet: &Fleet, hosts: &Hosts, truth: Truth, seed: u64) -> Examined {
    let throughput = (true, Quantity::directed("throughput"));
    let latency = (false, Quantity::symmetric("latency"));
    let quantities = match fleet.kind {
        Kind::Directed => vec![throughput],
        Kind::Symmetric => vec![latency],
        Kind::Both => vec![throughput, latency],
    };
    let asked = || quantities.iter().map(|(_, quantity)| quantity.clone()).collect();
    let simulated = |truth: Truth, session: u64| {
        let mut truths: Vec<(bool, Truth)> =
            quantities.iter().map(|(directed, _)| (*directed, Truth::default())).collect();
        truths[0].1 = truth;
        let limit = fleet.layout.rounds_in_time.map(|rounds| (rounds, LEFT));
        Simulated::new(hosts, fleet.world, &truths, seed, session).limited(limit)
    };
    let layout = fleet.layout;
    let earlier = (layout.compared == Compared::Baseline).then(|| {
        match lasting(hosts, &layout.options(asked(), None), &mut simulated(Truth::default(), 0)) {
            Ok((mut cells, _)) => cells.swap_remove(0),
            Err(never) => match never {},
        }
    });
    let session = u64::from(earlier.is_some());
    match examine(hosts, &layout.options(asked(), earlier), &mut simulated(truth, session)) {
        Ok(examined) => examined,
        Err(never) => match never {},
    }
}

/// The effects of culprits: of hosts and groups with the first deficit, of pairs and of the paths
/// between groups with the second.
fn truth(hosts: &Hosts, culprits: &[Culprit], deficits: [f64; 2], is_directed: bool) -> Truth {
    let [host, pair] = deficits.map(|deficit| (1.0 - deficit).ln());
    // A pair without direction has the order of its numbers.
    let paths = |[a, b]: [usize; 2], both: bool| {
        let ends = match is_directed {
            true => [Some([a, b]), both.then_some([b, a])],
            false => [Some([a.min(b), a.max(b)]), None],
        };
        ends.into_iter().flatten().map(move |ends| (ends, pair))
    };
    let mut truth = Truth::default();
    for culprit in culprits {
        match *culprit {
            Culprit::Host(slow, sends, receives) => {
                truth.send.extend(sends.then_some((slow, host)));
                truth.receive.extend(receives.then_some((slow, host)));
            }
            Culprit::Pair(ends, both) => truth.pairs.extend(paths(ends, both)),
            Culprit::Group(group) => truth.group = Some((group, host)),
            Culprit::Between(groups) => {
                let [firsts, seconds] = groups.map(|group| hosts.groupings[0].members(group));
                let all = firsts.iter().flat_map(|&a| seconds.iter().map(move |&b| [a, b]));
                truth.pairs.extend(all.flat_map(|ends| paths(ends, true)));
            }
        }
    }
    truth
}

/// A place and the ways in which it is slow.
type Named = (Place, bool, bool);

fn judge(culprits: &[Culprit], deficits: [f64; 2], examined: &Examined, fleet: &Fleet) -> Answer {
    let is_directed = !matches!(fleet.kind, Kind::Symmetric);
    let has_limit = fleet.layout.compared == Compared::Limit;
    let expected: BTreeSet<(usize, Named)> =
        culprits.iter().map(|culprit| (0, named(*culprit, is_directed))).collect();
    let found = examined.culprits.iter().map(|culprit| {
        assert!(culprit.against == Against::Others || has_limit);
        (culprit.quantity, (culprit.place, culprit.is_slow(Way::Send), culprit.is_slow(Way::Receive)))
    });
    let found: BTreeSet<(usize, Named)> = found.collect();
    let is_decided = match (culprits.is_empty(), fleet.layout.is_near()) {
        (true, false) => examined.verdict == Verdict::Healthy,
        // What is so near to the limit need not be decided.
        (true, true) => examined.verdict != Verdict::Culprits,
        (false, _) => true,
    };
    let is_missed = examined.culprits.iter().any(|culprit| culprit.against == Against::Floor);
    if found == expected && is_decided && is_missed == (has_limit && !culprits.is_empty()) {
        return Answer::Right;
    }
    let has_no_time = examined.undecided.iter().any(|undecided| undecided.reason == Reason::NoTime);
    if has_no_time && found.is_subset(&expected) {
        return Answer::NotPromised;
    }
    let is_expected = |place: Place| expected.iter().any(|(_, (other, ..))| *other == place);
    let cleared: Vec<String> = examined
        .cleared
        .iter()
        .filter(|cleared| is_expected(cleared.place))
        .map(|cleared| {
            format!("{:?} {:?} {:.3} {:.3?}", cleared.place, cleared.way, cleared.screened, cleared.why)
        })
        .collect();
    let evidence = |culprit: &verdict::fleet::Culprit| {
        let of = |way| {
            culprit.evidence(way).map(|evidence| (evidence.screened, evidence.visits.clone(), evidence.bound))
        };
        format!("{:?} {:.3?} {:.3?}", culprit.place, of(Way::Send), of(Way::Receive))
    };
    let wrong = examined.culprits.iter().filter(|culprit| !is_expected(culprit.place)).take(2).map(evidence);
    Answer::Wrong(format!(
        "{expected:?} at {deficits:.3?}: {found:?}; cleared {cleared:?}; not expected {:?}; undecided {:?}",
        wrong.collect::<Vec<String>>(),
        examined.undecided
    ))
}

fn named(culprit: Culprit, is_directed: bool) -> Named {
    match culprit {
        Culprit::Host(host, sends, receives) => (Place::Host(host), sends, receives && is_directed),
        Culprit::Pair([a, b], both) => {
            let place = Place::Pair { a: a.min(b), b: a.max(b) };
            (place, both || a < b || !is_directed, is_directed && (both || a > b))
        }
        Culprit::Group(group) => (Place::Group { grouping: 0, group }, true, is_directed),
        Culprit::Between([a, b]) => (Place::Between { grouping: 0, a, b }, true, is_directed),
    }
}

/// The hosts of a leaf switch.
fn group_size(n: usize) -> usize {
    match n {
        ..16 => 2,
        16..64 => 4,
        64..256 => 8,
        _ => 32,
    }
}

fn draw(n: usize, random: &mut Random) -> usize {
    ((random.fraction() * n as f64) as usize).min(n - 1)
}

/// Two different hosts that reach each other.
fn two_of_one(hosts: &Hosts, random: &mut Random) -> [usize; 2] {
    loop {
        let pair = two(hosts.count, random);
        if hosts.network(pair[0]) == hosts.network(pair[1]) {
            return pair;
        }
    }
}

/// Two different hosts.
pub(crate) fn two(n: usize, random: &mut Random) -> [usize; 2] {
    let hosts = distinct(n, 2, random);
    [hosts[0], hosts[1]]
}

fn distinct(n: usize, count: usize, random: &mut Random) -> Vec<usize> {
    let mut hosts = Vec::new();
    while hosts.len() < count {
        let host = draw(n, random);
        if !hosts.contains(&host) {
            hosts.push(host);
        }
    }
    hosts
}
