//! The numbers of runs as metrics, in the text format that Prometheus, node_exporter's textfile
//! collector and OpenMetrics 1.0 share: gauges without time stamps, which that collector refuses.
//!
//! Prometheus wants base units: times are in seconds, shares are ratios. Repetitions of a point
//! make one number, because a series has one value.

use std::collections::BTreeMap;
use std::io::Write;
use std::time::UNIX_EPOCH;

use measure::presentation::Patterns;
use measure::record::Point;
use measure::units::Dimension;

use super::exported::Exported;
use super::rows::asked;
use super::rows::{status, text};
use crate::Error;
use crate::escaped;
use crate::expectations::{Judgement, judge};
use crate::folded::fold;
use crate::list::{distinct, grouped};

/// The metrics by name.
#[derive(Default)]
struct Families(BTreeMap<String, Family>);

/// A metric with its series.
struct Family {
    help: String,
    series: Vec<(String, f64)>,
}

impl Families {
    fn add(&mut self, name: &str, help: &str, labels: &[(&str, String)], value: f64) {
        let family = || Family { help: help.to_owned(), series: Vec::new() };
        let family = self.0.entry(name.to_owned()).or_insert_with(family);
        let labels = labels.iter().map(|(name, value)| format!("{name}=\"{}\"", escaped::label(value)));
        family.series.push((labels.collect::<Vec<_>>().join(","), value));
    }
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
        let of_run = (runs.len() > 1).then(|| ("run", run.name.clone()));
        let of_run: Vec<(&str, String)> = of_run.into_iter().collect();
        numbers(run, patterns, quantities, &of_run, &mut families);
        expectations(run, patterns, &of_run, &mut families);
        states(run, &of_run, &mut families);
    }
    for (name, Family { help, series }) in &families.0 {
        writeln!(out, "# HELP {name} {}\n# TYPE {name} gauge", help.replace('\n', " "))?;
        for (labels, value) in series {
            let labels = if labels.is_empty() { String::new() } else { format!("{{{labels}}}") };
            writeln!(out, "{name}{labels} {value}")?;
        }
    }
    Ok(writeln!(out, "# EOF")?)
}

type Labels<'a> = [(&'a str, String)];

fn numbers(
    run: &Exported<'_>,
    patterns: Patterns,
    quantities: &[String],
    of_run: &Labels<'_>,
    families: &mut Families,
) {
    let key = |point: &Point| (point.experiment.clone(), point.axes.clone());
    for (_, points) in grouped(run.points.iter().map(|point| (key(point), point))) {
        let labels = [of_run, &labels(points[0])[..]].concat();
        let paths = distinct(points.iter().flat_map(|point| asked(point, patterns, quantities)));
        for path in paths {
            let Ok(measured) = fold(&points, patterns, &path, None) else { continue };
            let Some(found) = patterns.find_at(points[0], &path) else { continue };
            let Metric { name, parts } = metric(&path, found.unit());
            let help = format!("{} ({path} of rdmascope).", found.help());
            families.add(&name, &help, &labels, measured.y.value / parts);
        }
    }
}

/// The labels of a point: its experiment, its pattern and its axes.
fn labels(point: &Point) -> Vec<(&str, String)> {
    let own = [("experiment", point.experiment.clone()), ("pattern", point.pattern.clone())];
    own.into_iter().chain(point.axes.iter().map(|(axis, value)| (axis.as_str(), text(value)))).collect()
}

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
        Dimension::Time => (words.trim_end_matches("_ns").to_owned() + "_seconds", 1e9),
        Dimension::Share => (words.trim_end_matches("_share").to_owned() + "_ratio", 1.0),
        Dimension::Bandwidth | Dimension::MessageRate => (words.replace("_per_s", "_per_second"), 1.0),
        Dimension::Number if words.contains("_ns_per_") => (words.replace("_ns_per_", "_seconds_per_"), 1e9),
        // Ends in `count` are those of histograms.
        Dimension::Number if words.ends_with("_count") => (words + "s", 1.0),
        Dimension::Number => (words, 1.0),
    };
    Metric { name: format!("rdmascope_{words}"), parts }
}

fn expectations(run: &Exported<'_>, patterns: Patterns, of_run: &Labels<'_>, families: &mut Families) {
    let help = "Whether an expectation is met (1) or not (0); absent where it is not decided.";
    for judged in judge(&run.run.expectations, run.points(patterns)) {
        for case in &judged.cases {
            let value = match case.judgement {
                Judgement::Met => 1.0,
                Judgement::NotMet => 0.0,
                Judgement::NotDecided(_) => continue,
            };
            let own = [("expectation", judged.expectation.to_string()), ("points", case.label.clone())];
            families.add("rdmascope_expectation_met", help, &[of_run, &own].concat(), value);
        }
    }
}

/// How many points ended how, and when the run began, so that an alert can tell that none came.
fn states(run: &Exported<'_>, of_run: &Labels<'_>, families: &mut Families) {
    for word in ["measured", "not_measured", "failed"] {
        let count = run.points.iter().filter(|point| status(point) == word).count();
        let labels = [of_run, &[("status", word.to_owned())]].concat();
        families.add("rdmascope_points", "Points of the run, by how they ended.", &labels, count as f64);
    }
    let unstable = run.points.iter().filter(|point| point.unstable.is_some()).count();
    families.add(
        "rdmascope_points_unstable",
        "Points of the run that are unstable.",
        of_run,
        unstable as f64,
    );
    let started = humantime::parse_rfc3339(&run.run.started).ok();
    if let Some(since) = started.and_then(|started| started.duration_since(UNIX_EPOCH).ok()) {
        let help = "When the run started, in seconds since 1970.";
        families.add("rdmascope_run_started_timestamp_seconds", help, of_run, since.as_secs_f64());
    }
}
