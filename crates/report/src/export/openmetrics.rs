//! The numbers of runs as metrics, in the text format that Prometheus, node_exporter's textfile
//! collector and OpenMetrics 1.0 share: gauges without time stamps, which that collector refuses.
//!
//! Prometheus wants base units: times are in seconds, shares are ratios. Repetitions of a point,
//! and the pairs of a fleet, make one number, because a series has one value: the largest count, or
//! the median of other quantities.
//!
//! # Invariants
//!
//! * No two series have the same name and labels: Prometheus refuses the whole file.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::time::UNIX_EPOCH;

use measure::presentation::Patterns;
use measure::quantity::{self, Reading};
use measure::record::Point;
use measure::units::Dimension;

use super::exported::Exported;
use super::rows::{asked, status, text, untaken};
use crate::Error;
use crate::escaped;
use crate::expectations::Judgement;
use crate::fleet::{Found, against, compared, congested, culprits, missed, open};
use crate::folded::fold_worst;
use crate::list::{distinct, grouped};
use crate::whole::lacking;

/// The metrics by name.
#[derive(Default)]
struct Families {
    by_name: BTreeMap<String, Family>,
    seen: BTreeSet<String>,
}

/// A metric with its series.
struct Family {
    help: String,
    series: Vec<(String, f64)>,
}

impl Families {
    /// Adds a series. The first of equal ones counts: a plan may state a bound twice.
    fn add(&mut self, name: &str, help: &str, labels: &Labels, value: f64) {
        let labels = labels.iter().map(|(name, value)| format!("{name}=\"{}\"", escaped::label(value)));
        let labels = labels.collect::<Vec<_>>().join(",");
        if self.seen.insert(format!("{name}{{{labels}}}")) {
            let family = || Family { help: help.to_owned(), series: Vec::new() };
            let family = self.by_name.entry(name.to_owned()).or_insert_with(family);
            family.series.push((labels, value));
        }
    }
}

/// The labels of a series: their names and values.
type Labels = [(String, String)];

fn label(name: &str, value: impl Into<String>) -> (String, String) {
    (name.to_owned(), value.into())
}

pub(super) fn write(
    runs: &[Exported<'_>],
    patterns: Patterns,
    quantities: &[String],
    out: &mut dyn Write,
) -> Result<(), Error> {
    let mut families = Families::default();
    for run in runs {
        // One run is the current state, whose series continue with the next run.
        let of_run = (runs.len() > 1).then(|| label("run", run.name.clone()));
        let of_run: Vec<(String, String)> = of_run.into_iter().chain(run.labels.iter().cloned()).collect();
        numbers(run, patterns, quantities, &of_run, &mut families);
        expectations(run, patterns, &of_run, &mut families);
        states(run, &of_run, &mut families);
        about(run, &of_run, &mut families);
        fleet(run, &of_run, &mut families);
    }
    for (name, Family { help, series }) in &families.by_name {
        writeln!(out, "# HELP {name} {}\n# TYPE {name} gauge", escaped::help(help))?;
        for (labels, value) in series {
            let labels = if labels.is_empty() { String::new() } else { format!("{{{labels}}}") };
            writeln!(out, "{name}{labels} {value}")?;
        }
    }
    Ok(writeln!(out, "# EOF")?)
}

fn numbers(
    run: &Exported<'_>,
    patterns: Patterns,
    quantities: &[String],
    of_run: &Labels,
    families: &mut Families,
) {
    // A large fleet would have hundreds of thousands of series, one for each pair.
    let points = compared(run.run, run.points);
    let key = |point: &Point| (point.experiment.clone(), point.axes.clone());
    for (_, points) in grouped(points.iter().map(|point| (key(point), point))) {
        let labels = [of_run, &labels(points[0], of_run)[..]].concat();
        let paths = distinct(points.iter().flat_map(|point| asked(point, patterns, quantities)));
        for path in paths {
            let Ok(measured) = fold_worst(&points, patterns, &path, None, true) else { continue };
            let Some(found) = patterns.find_at(points[0], &path) else { continue };
            let Metric { name, parts } = metric(&path, found.unit());
            let help = format!("{} ({path} of rdmascope).", found.help().replace("{}", CARRIERS));
            // Several free names may make one name of a metric.
            let free = has_free_name(&found).then(|| label("quantity", path)).into_iter().collect::<Vec<_>>();
            families.add(&name, &help, &[&labels, &free[..]].concat(), measured.y.value / parts);
        }
    }
}

/// The labels of a point: its experiment, its pattern and its axes.
fn labels(point: &Point, of_run: &Labels) -> Vec<(String, String)> {
    let own = OWN.iter().map(|name| (*name).to_owned());
    let mut taken: Vec<String> = own.chain(of_run.iter().map(|(name, _)| name.clone())).collect();
    let own = [label("experiment", &*point.experiment), label("pattern", &*point.pattern)];
    let axes = point.axes.iter().map(|(axis, value)| (untaken(&legal(axis), &mut taken), text(value)));
    own.into_iter().chain(axes).collect()
}

/// The labels that metrics have besides the axes.
const OWN: [&str; 11] = [
    "culprit",
    "devices",
    "expectation",
    "experiment",
    "pattern",
    "place",
    "points",
    "quantity",
    "run",
    "status",
    "version",
];

/// Whether `--label` may add a label of this name: it has letters, digits and `_`, begins with a
/// letter, and is no label that metrics already have.
#[must_use]
pub fn can_be_label(name: &str) -> bool {
    legal(name) == name && !OWN.contains(&name)
}

/// An axis as the name of a label: letters, digits and `_`, of which a digit is not the first.
/// Names that begin with `__` are Prometheus' own.
fn legal(axis: &str) -> String {
    let name = axis.replace(|c: char| !c.is_ascii_alphanumeric(), "_");
    let is_legal = name.starts_with(|c: char| c.is_ascii_alphabetic());
    if is_legal { name } else { format!("axis_{name}") }
}

/// Whether a quantity has a name that the measured program or the device gives it.
fn has_free_name(found: &quantity::Found<'_>) -> bool {
    matches!(found.quantity.reading, Reading::Number { .. }) && found.quantity.path.ends_with('*')
}

/// What a throughput counts, which differs between the series of a metric.
const CARRIERS: &str = "one direction, or of all pairs or loaders together";

/// A metric for a quantity.
struct Metric {
    name: String,
    /// What a number of the record is divided by.
    parts: f64,
}

/// The name of a metric in base units, as promtool wants it.
fn metric(path: &str, dimension: Dimension) -> Metric {
    let words = path.replace(|c: char| !c.is_ascii_alphanumeric(), "_");
    let (words, parts) = match dimension {
        Dimension::Time | Dimension::Number if words.contains("_ns_per_") => {
            (words.replace("_ns_per_", "_seconds_per_"), 1e9)
        }
        Dimension::Time => (words.trim_end_matches("_ns").to_owned() + "_seconds", 1e9),
        Dimension::Share => (words.trim_end_matches("_share").to_owned() + "_ratio", 1.0),
        Dimension::Bandwidth | Dimension::MessageRate => (words.replace("_per_s", "_per_second"), 1.0),
        // Ends in `count` are those of histograms.
        Dimension::Number if words.ends_with("_count") => (words + "s", 1.0),
        Dimension::Number => (words, 1.0),
    };
    Metric { name: format!("rdmascope_{words}"), parts }
}

fn expectations(run: &Exported<'_>, patterns: Patterns, of_run: &Labels, families: &mut Families) {
    let help = "Whether an expectation is met (1) or not (0); absent where it is not decided.";
    for judged in run.judged(patterns) {
        for case in &judged.cases {
            let value = match case.judgement {
                Judgement::Met => 1.0,
                Judgement::NotMet => 0.0,
                Judgement::NotDecided(_) => continue,
            };
            let own = [label("expectation", judged.expectation.to_string()), label("points", &*case.label)];
            families.add("rdmascope_expectation_met", help, &[of_run, &own].concat(), value);
        }
    }
}

/// The devices and the version. If an adapter has failed, rdmascope measures the software device,
/// and only this metric tells.
fn about(run: &Exported<'_>, of_run: &Labels, families: &mut Families) {
    let own = [label("devices", run.devices()), label("version", &*run.run.program.version)];
    let help = "The devices that were measured, and the version of rdmascope. The value is 1.";
    families.add("rdmascope_run_info", help, &[of_run, &own].concat(), 1.0);
}

/// How many points ended how, and when the run began and ended, so that an alert can tell that none
/// came, or not all.
fn states(run: &Exported<'_>, of_run: &Labels, families: &mut Families) {
    let whole = || run.points.iter().filter(|point| !point.cut);
    let of_word = |word: &str| whole().filter(|point| status(point) == word).count() as u64;
    let counts = ["measured", "not_measured", "failed"].map(|word| (word, of_word(word)));
    let missing = ("missing", lacking(run.run, run.points));
    for (word, count) in counts.into_iter().chain([missing]) {
        let labels = [of_run, &[label("status", word)]].concat();
        let help = "Points of the run, by how they ended; missing if the run ended before or during them.";
        families.add("rdmascope_points", help, &labels, count as f64);
    }
    let unstable = run.points.iter().filter(|point| point.unstable.is_some()).count();
    families.add(
        "rdmascope_points_unstable",
        "Points of the run that are unstable.",
        of_run,
        unstable as f64,
    );
    for (word, time) in [("started", Some(&run.run.started)), ("ended", run.run.ended.as_ref())] {
        let time = time.and_then(|time| humantime::parse_rfc3339(time).ok());
        if let Some(since) = time.and_then(|time| time.duration_since(UNIX_EPOCH).ok()) {
            let name = format!("rdmascope_run_{word}_timestamp_seconds");
            let help = format!("When the run {word}, in seconds since 1970.");
            families.add(&name, &help, of_run, since.as_secs_f64());
        }
    }
}

/// The verdict on a fleet. Numbers that the examination gives are absent until it has ended.
fn fleet(run: &Exported<'_>, of_run: &Labels, families: &mut Families) {
    let Some(found) = Found::of(run.run, run.points) else { return };
    let mut add = |name: &str, help: &str, own: &Labels, value: f64| {
        families.add(&format!("rdmascope_fleet_{name}"), help, &[of_run, own].concat(), value);
    };
    if let Some(fleet) = &run.run.fleet {
        add("members", "Members of the fleet.", &[], fleet.members.len() as f64);
        add("members_left_out", "Members that could not be examined.", &[], fleet.left.len() as f64);
    }
    let Ok(found) = found else { return };
    let examined = &found.examined;
    let words = found.words();
    add("culprits", "Members, pairs and groups that are slow.", &[], culprits(examined).len() as f64);
    add(
        "congested",
        "Members, pairs and groups that are slower than the others under load alone.",
        &[],
        congested(examined).count() as f64,
    );
    let missed = missed(examined).count();
    add(
        "missed_under_load",
        "Members, pairs and groups that miss a stated limit under load alone.",
        &[],
        missed as f64,
    );
    let open = open(found.fleet, examined).count();
    add("undecided", "Reasons for which the verdict is not complete.", &[], open as f64);
    for culprit in &examined.culprits {
        let own = [
            label("culprit", words.name(culprit)),
            label("quantity", words.row(culprit.quantity).name),
            label("against", against(culprit.against)),
        ];
        add(
            "culprit_deficit_ratio",
            &format!("By how much a culprit is slower{OF}"),
            &own,
            culprit.deficit(),
        );
    }
    for judged in &examined.quantities {
        let Some(thresholds) = &judged.thresholds else { continue };
        for (place, deficit) in [("member", thresholds.host_deficit()), ("pair", thresholds.pair_deficit())] {
            let own = [label("quantity", &*judged.name), label("place", place)];
            let help = format!("From which deficit on a member or a pair would have been named{OF}");
            add("detectable_deficit_ratio", &help, &own, deficit);
        }
    }
}

/// What a deficit is a share of.
const OF: &str = ", as a share of the others' throughput, or of the inverse of their latency.";
