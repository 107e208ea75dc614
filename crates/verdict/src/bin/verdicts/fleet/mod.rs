//! Fleets with and without culprits.

mod large;
mod simulated;

use std::collections::BTreeSet;

use measure::random::Random;
use verdict::fleet::{
    Against, Examined, Hosts, Options, Place, Quantity, SCHEDULES, Thresholds, Verdict, Way, examine,
};

pub(crate) use self::large::large;
use self::simulated::{Rhythm, Simulated, Truth};
use crate::noise::{NOISES, Noise, mixed};
use crate::{Answer, Row, Settings};

/// A culprit is injected with this multiple of the deficit that its run prints.
const STATED: f64 = 2.0;
/// The next attempt injects this much more than what was printed, and no more than this at all.
const MARGIN: f64 = 1.02;
const LARGEST: f64 = 0.95;
/// How often a fleet is simulated anew because it prints more than half of what was injected.
const ATTEMPTS: usize = 8;

/// What is wrong, by name, and from which number of hosts on it is simulated.
const CASES: [Case; 10] = [
    Case { name: "none", hosts: 4, culprits: |_, _| Vec::new() },
    Case { name: "send", hosts: 4, culprits: |n, random| vec![Culprit::Host(draw(n, random), true, false)] },
    Case { name: "both", hosts: 4, culprits: |n, random| vec![Culprit::Host(draw(n, random), true, true)] },
    Case { name: "direction", hosts: 4, culprits: |n, random| vec![Culprit::Pair(two(n, random), false)] },
    Case { name: "pair", hosts: 4, culprits: |n, random| vec![Culprit::Pair(two(n, random), true)] },
    Case {
        name: "group",
        hosts: 8,
        culprits: |n, random| vec![Culprit::Group(draw(n / group_size(n), random))],
    },
    Case {
        name: "two hosts",
        hosts: 8,
        culprits: |n, random| {
            let [a, b] = two(n, random);
            vec![Culprit::Host(a, true, false), Culprit::Host(b, false, true)]
        },
    },
    Case {
        name: "host + pair",
        hosts: 8,
        culprits: |n, random| {
            let hosts = distinct(n, 3, random);
            vec![Culprit::Host(hosts[0], true, true), Culprit::Pair([hosts[1], hosts[2]], true)]
        },
    },
    Case { name: "far none", hosts: 16, culprits: |_, _| Vec::new() },
    Case {
        name: "far send",
        hosts: 16,
        culprits: |n, random| vec![Culprit::Host(draw(n, random), true, false)],
    },
];

/// In these cases, a quarter of the hosts is on one leaf switch and the others on another one, and
/// the paths between the two are slower by this share.
const FAR: &str = "far ";
const ACROSS: f64 = 0.3;

/// The trials of a row: of healthy fleets, and of each case with culprits.
const TRIALS: [(usize, [u64; 2], [u64; 2]); 5] = [
    // hosts, quick, full
    (4, [2000, 500], [10_000, 3000]),
    (8, [2000, 500], [10_000, 3000]),
    (32, [600, 200], [6000, 1500]),
    (128, [0, 0], [2000, 500]),
    (512, [0, 0], [500, 400]),
];

/// Flips that last for some seconds, and visits a minute apart.
const RHYTHM: Rhythm = Rhythm { dwell: 10.0, gap: 60 };
/// Flips that last for minutes: how often a healthy fleet has a culprit then, by the time between
/// visits. These are numbers to know: nothing is promised.
const LONG_DWELL: f64 = 100.0;
const GAPS: [u64; 3] = [0, 60, 300];

struct Case {
    name: &'static str,
    hosts: usize,
    culprits: fn(usize, &mut Random) -> Vec<Culprit>,
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
}

impl Culprit {
    /// Which of the two deficits it has: that of hosts or that of pairs.
    fn size(self) -> usize {
        usize::from(matches!(self, Self::Pair(..)))
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

/// The rates of this procedure.
pub(crate) fn rows(settings: &Settings) -> Vec<Row> {
    let mut rows = Vec::new();
    for (n, quick, full) in TRIALS {
        let [healthy, wrong] = if settings.is_full { full } else { quick };
        for kind in [Kind::Directed, Kind::Symmetric, Kind::Both] {
            // The other kinds run the same code: 32 hosts stand for all. `--full` has time for 4
            // and 8.
            let others: &[usize] = if settings.is_full { &[4, 8, 32] } else { &[32] };
            if !matches!(kind, Kind::Directed) && !others.contains(&n) {
                continue;
            }
            for noise in NOISES {
                let cases = CASES.iter().filter(|case| n >= case.hosts && is_of(kind, case.name));
                rows.extend(cases.map(|case| {
                    row(case, n, (noise, RHYTHM), kind, if case.is_healthy() { healthy } else { wrong })
                }));
            }
        }
    }
    for (n, quick, full) in TRIALS.into_iter().filter(|(n, ..)| [8, 32].contains(n)) {
        let [healthy, _] = if settings.is_full { full } else { quick };
        rows.extend(GAPS.map(|gap| Row {
            bar: None,
            ..row(&CASES[0], n, (Noise::Flips, Rhythm { dwell: LONG_DWELL, gap }), Kind::Directed, healthy)
        }));
    }
    rows.retain(|row| row.trials > 0);
    rows
}

/// Whether a case makes sense for the quantities.
fn is_of(kind: Kind, case: &str) -> bool {
    match kind {
        Kind::Directed => true,
        Kind::Symmetric => ["none", "both", "pair", "group", "far none"].contains(&case),
        Kind::Both => ["none", "send", "pair"].contains(&case),
    }
}

fn row(case: &'static Case, n: usize, world: World, kind: Kind, trials: u64) -> Row {
    let (noise, Rhythm { dwell, gap }) = world;
    let rhythm =
        if dwell == LONG_DWELL { format!(", long flips, visits {gap} rounds apart") } else { String::new() };
    let quantities = match kind {
        Kind::Directed => "",
        Kind::Symmetric => " latency",
        Kind::Both => " both",
    };
    let bar = if n == 4 && !case.is_healthy() { 0.03 } else { 0.01 };
    Row {
        name: format!("n={n}, noise {}{quantities}: {}{rhythm}", noise.letter(), case.name),
        bar: Some(bar),
        trials,
        trial: Box::new(move |seed| trial(case, n, world, kind, seed)),
    }
}

/// Simulates one fleet. The deficit of its culprits is the stated multiple of what this very run
/// prints.
fn trial(case: &Case, n: usize, world: World, kind: Kind, seed: u64) -> Answer {
    let labels: Vec<String> = (0..n).map(|host| format!("leaf{}", case.group(n, host))).collect();
    let labels: Vec<Option<&str>> = labels.iter().map(|label| Some(label.as_str())).collect();
    let hosts = if n < 8 { Hosts::new(n) } else { Hosts::new(n).grouped("group", &labels) };
    let culprits = (case.culprits)(n, &mut Random(mixed(&[seed, 2])));
    let mut deficits = [2.0 * 0.05; 2];
    for _ in 0..ATTEMPTS {
        let across = if case.is_far() { (1.0 - ACROSS).ln() } else { 0.0 };
        let truth = Truth { across, ..truth(&culprits, deficits, !matches!(kind, Kind::Symmetric)) };
        let examined = run(&hosts, world, kind, truth, seed);
        let printed = examined.quantities[0].thresholds.as_ref().map(Thresholds::deficits);
        let Some(printed) = printed else { return Answer::Wrong("nothing could be decided".to_owned()) };
        let stated = printed.map(|deficit| STATED * deficit);
        let is_injected = |index: usize| {
            let is_used = culprits.iter().any(|culprit| culprit.size() == index);
            !is_used || deficits[index] >= stated[index] - 1e-9
        };
        if is_injected(0) && is_injected(1) {
            return judge(&culprits, deficits, &examined, !matches!(kind, Kind::Symmetric));
        }
        deficits = [0, 1].map(|index| deficits[index].max(MARGIN * stated[index]).min(LARGEST));
    }
    // Half of what the run prints is more than everything, or it grows with what is injected.
    Answer::NotPromised
}

fn run(hosts: &Hosts, world: World, kind: Kind, truth: Truth, seed: u64) -> Examined {
    let throughput = (true, Quantity::directed("throughput"));
    let latency = (false, Quantity::symmetric("latency"));
    let quantities = match kind {
        Kind::Directed => vec![throughput],
        Kind::Symmetric => vec![latency],
        Kind::Both => vec![throughput, latency],
    };
    let mut truths: Vec<(bool, Truth)> =
        quantities.iter().map(|(directed, _)| (*directed, Truth::default())).collect();
    truths[0].1 = truth;
    let mut fleet = Simulated::new(hosts, world, &truths, seed);
    let options = Options::new(quantities.into_iter().map(|(_, quantity)| quantity).collect(), &SCHEDULES[0]);
    match examine(hosts, &options, &mut fleet) {
        Ok(examined) => examined,
        Err(never) => match never {},
    }
}

/// The effects of culprits: of hosts and groups with the first deficit, of pairs with the second.
fn truth(culprits: &[Culprit], deficits: [f64; 2], is_directed: bool) -> Truth {
    let [host, pair] = deficits.map(|deficit| (1.0 - deficit).ln());
    let mut truth = Truth::default();
    for culprit in culprits {
        match *culprit {
            Culprit::Host(slow, sends, receives) => {
                truth.send.extend(sends.then_some((slow, host)));
                truth.receive.extend(receives.then_some((slow, host)));
            }
            Culprit::Pair([a, b], both) => {
                let pairs = if is_directed {
                    [Some([a, b]), both.then_some([b, a])]
                } else {
                    [Some([a.min(b), a.max(b)]), None]
                };
                truth.pairs.extend(pairs.into_iter().flatten().map(|ends| (ends, pair)));
            }
            Culprit::Group(group) => truth.group = Some((group, host)),
        }
    }
    truth
}

/// A place and the ways in which it is slow.
type Named = (Place, bool, bool);

fn judge(culprits: &[Culprit], deficits: [f64; 2], examined: &Examined, is_directed: bool) -> Answer {
    let expected: BTreeSet<(usize, Named)> =
        culprits.iter().map(|culprit| (0, named(*culprit, is_directed))).collect();
    let found = examined.culprits.iter().map(|culprit| {
        assert_eq!(culprit.against, Against::Others);
        (culprit.quantity, (culprit.place, culprit.is_slow(Way::Send), culprit.is_slow(Way::Receive)))
    });
    let found: BTreeSet<(usize, Named)> = found.collect();
    let is_decided = !culprits.is_empty() || examined.verdict == Verdict::Healthy;
    if found == expected && is_decided {
        return Answer::Right;
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
