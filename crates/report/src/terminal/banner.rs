//! The banner above a table, which describes its rows, and the rows of points that failed.

use std::collections::BTreeSet;

use measure::presentation::{Patterns, Presentation};
use measure::record::{Axes, End, Point};
use measure::table::{Table, with_axes};
use measure::text::plain;

use super::findings::rule;
use crate::settings::settings;
use crate::{table, value};

/// What distinguishes one table from the next.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Key {
    pub(super) experiment: String,
    pub(super) pattern: String,
    pub(super) axes: Axes,
}

impl Key {
    pub(super) fn of(point: &Point, patterns: Patterns) -> Self {
        let shown = patterns.of(&point.pattern);
        let mut axes = point.axes.clone();
        axes.retain(|name, _| !shown.has_column(name));
        Self { experiment: point.experiment.clone(), pattern: point.pattern.clone(), axes }
    }

    /// The banner of a table whose first row is a point.
    pub(super) fn banner(&self, shown: Option<&Table>, point: &Point, patterns: Patterns) -> String {
        let axis = |name: &str| self.axes.get(name).map(|value| plain(&value::text(value)));
        let service =
            [axis("service"), axis("operation")].into_iter().flatten().collect::<Vec<_>>().join(" ");
        let mut what = format!(" {}: {}", plain(&self.experiment), plain(&self.pattern));
        if !service.is_empty() {
            what += &format!(", {service}");
        }
        let mut shown_apart = vec!["service", "operation"];
        if let Some(test) = self.test(patterns) {
            what += &format!(", {}", plain(&test));
            shown_apart.push("endpoint");
        }
        what += &carried(point).map_or_else(String::new, |by| format!(", {}", plain(&by)));
        if let Some(shown) = shown {
            what += &format!("; {}", table::title(shown, point));
            shown_apart.extend(shown.says_direction.then_some("direction"));
        }
        let settings = settings(self.axes.iter().filter(|(name, _)| !shown_apart.contains(&name.as_str())));
        let settings = if settings.is_empty() { String::new() } else { format!(" {settings}\n") };
        let rule = rule();
        format!("\n{rule}\n{what}\n{settings}{rule}\n")
    }

    /// The endpoint, by netperf's name for the test; `None` for verbs.
    fn test(&self, patterns: Patterns) -> Option<String> {
        let endpoint = self.axes.get("endpoint").filter(|endpoint| *endpoint != "verbs").map(value::text)?;
        let own = [
            ("iceoryx2", "iceoryx2"),
            ("nanomsg", "nanomsg"),
            ("nng", "NNG"),
            ("shmem", "shared memory"),
            ("zeromq", "ZeroMQ"),
        ];
        if let Some((_, name)) = own.iter().find(|(word, _)| endpoint == *word) {
            return Some((*name).to_owned());
        }
        let test = patterns.of(&self.pattern).test.map(|test| format!("_{test}")).unwrap_or_default();
        Some(endpoint.to_uppercase() + &test)
    }
}

/// The library that chose the transport of a point's messages, and its choice.
fn carried(point: &Point) -> Option<String> {
    let by = |end: &End| Some((end.library.clone()?, end.transport.clone()?));
    let all: BTreeSet<(String, String)> = point.ends.iter().filter_map(by).collect();
    let words = all.into_iter().map(|(library, transport)| match transport.starts_with("transport") {
        true => format!("{library}, {transport}"),
        false => format!("{library} over {transport}"),
    });
    words.reduce(|all, one| all + "; " + &one)
}

/// The row of a point that failed.
pub(super) fn failed(point: &Point, shown: &Presentation, error: &str) -> String {
    let label = shown.label.iter().map(|part| plain(&with_axes(part, &point.axes)));
    let label = label.collect::<Vec<_>>();
    let (first, rest) = label.split_first().map_or(("", &[][..]), |(first, rest)| (first.as_str(), rest));
    let rest: String = rest.iter().map(|part| format!("  {part}")).collect();
    format!(" {first:>10}{rest}  failed: {error}{}\n", repetition(point))
}

/// The marks behind the row of a point: unstable, from a histogram, cut, its repetition.
pub(super) fn marks(point: &Point) -> String {
    marks_of(&[point]) + &repetition(point)
}

/// The marks behind the row of several repetitions.
pub(super) fn marks_of(points: &[&Point]) -> String {
    let is_approximate = |point: &&Point| point.latency.as_ref().is_some_and(|l| l.resolution.is_some());
    let unstable = if points.iter().any(|point| point.disturbance().is_some()) { "  !" } else { "" };
    let approximate = if points.iter().any(is_approximate) { "  ~" } else { "" };
    let cut = if points.iter().any(|point| point.cut) { "  cut" } else { "" };
    format!("{unstable}{approximate}{cut}")
}

/// The repetition of a row, counted from 1, and its launch, unless it is the first of the run;
/// empty for the first.
pub(super) fn repetition(point: &Point) -> String {
    if point.repetition == 0 {
        return String::new();
    }
    let launch = point.launch.filter(|launch| *launch > 0);
    let launch = launch.map_or_else(String::new, |launch| format!(", launch {}", u64::from(launch) + 1));
    format!("  repetition {}{launch}", u64::from(point.repetition) + 1)
}
