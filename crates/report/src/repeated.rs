//! Combinations of axes that are measured until the mean over their repetitions is known well
//! enough.

use std::collections::BTreeMap;

use measure::quantity::{self, COST};
use measure::record::{Axes, Point, Status};
use measure::stats::MeanInterval;
use serde_json::Value;

use crate::unit;

/// The state of one combination.
#[derive(Clone, Debug)]
pub struct Repeated {
    /// Its experiment.
    pub experiment: String,
    /// The numbers of its points, in the order in which they were measured.
    pub ids: Vec<u64>,
    /// The axes of its first point.
    axes: Axes,
    /// The path of the number that is repeated.
    path: &'static str,
    numbers: Vec<f64>,
    within: f64,
    most: usize,
    has_failed: bool,
}

/// Every combination of the experiments that ask for it (`within` of the resolved plan), in the
/// order of the points.
pub fn repeated(plan: &Value, points: &[Point]) -> Vec<Repeated> {
    let mut all: Vec<Repeated> = Vec::new();
    for point in points {
        let Some((within, most)) = asked(plan, &point.experiment) else { continue };
        let is_it = |known: &Repeated| known.experiment == point.experiment && known.axes == point.axes;
        let at = all.iter().position(is_it).unwrap_or_else(|| {
            let experiment = point.experiment.clone();
            let axes = point.axes.clone();
            // The first number decides the path.
            let ids = Vec::new();
            let path = "";
            let numbers = Vec::new();
            all.push(Repeated { experiment, ids, axes, path, numbers, within, most, has_failed: false });
            all.len() - 1
        });
        all[at].see(point);
    }
    all
}

/// How precisely an experiment of a resolved plan wants to know its means, and the largest number
/// of repetitions for that; `None` if it does not ask for it.
pub fn asked(plan: &Value, experiment: &str) -> Option<(f64, usize)> {
    let settings = plan["experiments"].as_array()?.iter().find(|settings| settings["name"] == experiment)?;
    Some((settings["within"].as_f64()?, settings["repetitions_max"].as_u64()? as usize))
}

/// The path of a point's main number: a throughput for streams.
pub(crate) fn path(point: &Point) -> &'static str {
    match point.latency {
        _ if point.cost.is_some() => COST,
        Some(_) => "latency.p50_ns",
        None if point.throughput_total.is_some() => "throughput_total.bytes_per_s",
        None => "throughput.bytes_per_s",
    }
}

/// Prints a number at the path of a point's main number ([`path`]).
pub(crate) fn printed(path: &str, number: f64) -> String {
    match path.ends_with("_ns") || path == COST {
        true => unit::time(number),
        false => format!("{:.3} Gb/s", number * 8.0 / 1e9),
    }
}

impl Repeated {
    fn see(&mut self, point: &Point) {
        if self.numbers.is_empty() {
            self.path = path(point);
        }
        self.ids.push(point.id);
        match quantity::find(self.path)
            .and_then(|found| found.number(point))
            .filter(|_| point.status == Status::Measured)
        {
            Some(number) => self.numbers.push(number),
            None => self.has_failed = true,
        }
    }

    /// Whether it is to be measured once more; not if it failed or cannot be measured.
    pub fn wants_more(&self) -> bool {
        !self.has_failed && !self.is_known() && self.numbers.len() < self.most
    }

    fn interval(&self) -> Option<MeanInterval> {
        MeanInterval::of(&self.numbers)
    }

    fn is_known(&self) -> bool {
        self.interval().is_some_and(|interval| interval.relative() <= self.within)
    }

    /// The axes in which it differs from other combinations, and its mean.
    fn line(&self, varying: impl Fn(&str) -> bool) -> Option<String> {
        let interval = self.interval()?;
        let axes = measure::text::axes_text(&self.axes, varying);
        let mean = printed(self.path, interval.mean);
        let known =
            if self.is_known() { String::new() } else { format!(", not within {}", percent(self.within)) };
        let off = percent(interval.relative());
        let count = self.numbers.len();
        let experiment = measure::text::plain(&self.experiment);
        Some(format!("{experiment} ({axes}): {mean} +- {off} of {count} repetitions{known}"))
    }
}

/// The means of all combinations, a line each; empty without any.
pub fn text(all: &[Repeated]) -> String {
    let axes: Vec<&Axes> = all.iter().map(|one| &one.axes).collect();
    let lines: Vec<String> = all
        .iter()
        .filter_map(|one| one.line(|name| varies(&axes, name)))
        .map(|line| format!("   {line}\n"))
        .collect();
    match lines.is_empty() {
        true => String::new(),
        false => {
            format!("\n means over the repetitions, with their 95 % confidence interval:\n{}", lines.concat())
        }
    }
}

/// Whether an axis distinguishes combinations that have it; the size is always shown.
pub(crate) fn varies(all: &[&Axes], name: &str) -> bool {
    let mut values = all.iter().filter_map(|axes| axes.get(name));
    let first = values.next();
    name == "size_bytes" || values.any(|value| Some(value) != first)
}

/// A sentence for each experiment with means that are not known as precisely as asked for.
pub fn unknown(all: &[Repeated]) -> Vec<String> {
    let mut experiments: BTreeMap<&str, Vec<&Repeated>> = BTreeMap::new();
    for one in all.iter().filter(|one| !one.has_failed) {
        experiments.entry(&one.experiment).or_default().push(one);
    }
    let sentence = |(name, all): (&str, Vec<&Repeated>)| {
        let missed: Vec<f64> = all
            .iter()
            .filter(|one| !one.is_known() && one.numbers.len() >= one.most)
            .filter_map(|one| Some(one.interval()?.relative()))
            .collect();
        let worst = missed.iter().copied().reduce(f64::max)?;
        let Repeated { within, most, .. } = all.first()?;
        Some(format!(
            "{name}: {} of {} means are not known to within {} after {most} repetitions; the worst is known to within {}",
            missed.len(),
            all.len(),
            percent(*within),
            percent(worst)
        ))
    };
    experiments.into_iter().filter_map(sentence).collect()
}

/// Prints a percentage with one decimal, or as many as show two digits.
fn percent(share: f64) -> String {
    let percent = share * 100.0;
    let decimals = if percent > 0.0 && percent < 1.0 { 1.0 - percent.log10().floor() } else { 1.0 };
    format!("{percent:.*} %", decimals as usize)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// A point of a size with a median in ns, or one that was not measured.
    fn point(id: u64, size: u64, median: Option<u64>) -> Point {
        let latency = median.map(|median| {
            json!({
                "kind": "rtt_half", "count": 9, "min_ns": 1, "p10_ns": 1, "p50_ns": median, "p90_ns": median, "p99_ns": median,
                "p999_ns": median, "max_ns": median, "mean_ns": 1.0, "mavericks": { "rule": "> 2 x mean", "count": 0 },
            })
        });
        let status = match median {
            Some(_) => json!({ "status": "measured" }),
            None => json!({ "status": "not_measured", "reason": "no" }),
        };
        let mut point = json!({
            "id": id, "experiment": "e", "pattern": "ping-pong", "axes": { "size_bytes": size, "endpoint": "tcp" },
            "repetition": 0, "iterations": 9, "latency": latency, "wall_ns": 1,
        });
        point.as_object_mut().unwrap().extend(status.as_object().unwrap().clone());
        serde_json::from_value(point).unwrap()
    }

    fn plan() -> Value {
        json!({ "experiments": [{ "name": "other" }, { "name": "e", "within": 0.05, "repetitions_max": 4 }] })
    }

    #[test]
    fn what_is_not_known_well_enough_is_wanted_again_up_to_the_most() {
        let steady = [1000, 1010, 1005].map(Some);
        let wild = [1000, 2000, 1500, 1700].map(Some);
        let mut points: Vec<Point> = Vec::new();
        let mut add = |size: u64, medians: &[Option<u64>]| {
            for median in medians {
                points.push(point(points.len() as u64, size, *median));
            }
        };
        add(4, &steady);
        add(8, &wild[..3]);
        add(16, &[Some(1000), None]);
        add(32, &wild);
        let all = repeated(&plan(), &points);
        let wanted: Vec<bool> = all.iter().map(Repeated::wants_more).collect();
        assert_eq!(wanted, [false, true, false, false], "known; not known; not measured; often enough");
        assert_eq!(all[1].ids, [3, 4, 5]);
        let text = text(&all);
        assert!(text.contains("   e (size_bytes 4): 1.00 us +- 1.2 % of 3 repetitions\n"), "{text}");
        assert!(
            text.contains("   e (size_bytes 32): 1.55 us +- 43.1 % of 4 repetitions, not within 5.0 %\n"),
            "{text}"
        );
        assert_eq!(
            unknown(&all),
            [
                "e: 1 of 3 means are not known to within 5.0 % after 4 repetitions; the worst is known to within 43.1 %"
            ]
        );
        assert!(repeated(&json!({ "experiments": [{ "name": "e" }] }), &points).is_empty());
        assert_eq!(super::text(&[]), "");
    }
}
