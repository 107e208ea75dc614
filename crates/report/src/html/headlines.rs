//! The first screen of the report: the main results in words, what they were measured on, and
//! whether they are stable.

use maud::{Markup, html};
use measure::figure::Unit;
use measure::record::{Point, Run, Status};
use measure::text;
use serde_json::Value;

use super::findings;
use crate::findings::{Answer, is_of_paper, score};
use crate::folded::{Measured, fold};
use crate::list::{distinct, grouped};
use crate::settings::setting;
use crate::{Points, unit, value};

/// The largest number of results in words.
const RESULTS_MAX: usize = 6;

/// What a result is the best of.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
enum Best {
    Latency,
    Throughput,
}

impl Best {
    /// What a point is measured for: a latency, or else a throughput.
    fn of(point: &Point) -> Option<Self> {
        match (&point.latency, &point.throughput) {
            _ if point.status != Status::Measured => None,
            (Some(_), _) => Some(Self::Latency),
            (None, Some(_)) => Some(Self::Throughput),
            (None, None) => None,
        }
    }

    /// Its name; `is_of_stable` says that it is the best of the stable points and not of all.
    fn name(self, is_of_stable: bool) -> &'static str {
        match (self, is_of_stable) {
            (Self::Latency, false) => "Lowest latency",
            (Self::Latency, true) => "Lowest stable latency",
            (Self::Throughput, false) => "Highest throughput",
            (Self::Throughput, true) => "Highest stable throughput",
        }
    }
}

/// A result in words.
struct Headline {
    what: String,
    number: String,
    /// The interval of the number, if it has one.
    interval: Option<String>,
    id: u64,
    is_unstable: bool,
}

/// The results, what they were measured on, how stable they are, and how many findings hold.
pub(super) fn render(run: &Run, shown: Points<'_>, answers: &[Answer<'_>]) -> Markup {
    let headlines = headlines(shown);
    html! {
        @if let Some(on) = on(run) { p class="on" { (on) } }
        @if !headlines.is_empty() {
            ul class="results" {
                @for of in &headlines {
                    li {
                        (unbroken(&of.what)) ": "
                        a href={ "#histogram=" (of.id) } { (unbroken(&of.number)) }
                        @if let Some(interval) = &of.interval {
                            span class="interval" { "; " (unbroken(interval)) }
                        }
                        @if of.is_unstable { " " span class="doubt" { "(unstable)" } }
                    }
                }
            }
        }
        (trust(shown))
        (verdicts(run, answers))
    }
}

/// Replaces the space between a number and its unit by one at which no line is broken.
fn unbroken(text: &str) -> String {
    let mut before = None;
    let mut after = text.chars().skip(1);
    let kept = text.chars().map(|c| {
        let next = after.next();
        let is_inside = |digit: char, unit: char| digit.is_ascii_digit() && unit.is_alphabetic();
        let is_between = c == ' ' && before.zip(next).is_some_and(|(digit, unit)| is_inside(digit, unit));
        before = Some(c);
        if is_between { '\u{a0}' } else { c }
    });
    kept.collect()
}

/// The devices and hosts of the run.
fn on(run: &Run) -> Option<String> {
    // A provider may describe itself: `softdev (software device in user space)`.
    let devices = distinct(run.devices.iter().map(|device| {
        let described = device.provider.split_once(" (").and_then(|(_, about)| about.strip_suffix(')'));
        format!("{} ({})", device.name, described.unwrap_or(&device.provider))
    }));
    let hosts = distinct(run.environments.iter().map(|environment| environment.hostname.clone()));
    let hosts = match &hosts[..] {
        [] => return None,
        [only] => format!("on {only}"),
        [first, second] => format!("between {first} and {second}"),
        [first, .., last] => format!("between {} hosts, {first} to {last}", hosts.len()),
    };
    let limits = match run.is_of_softdev() {
        true => ": numbers of this host's memory and caches, not of a network",
        false => "",
    };
    Some(match devices.is_empty() {
        true => format!("Measured {hosts}"),
        false => format!("Measured with {} {hosts}{limits}", devices.join(", ")),
    })
}

/// The best result of each pattern and endpoint, and of each service, operation and way to poll as
/// long as these are few.
fn headlines(shown: Points<'_>) -> Vec<Headline> {
    let of = |keys: &[&str]| {
        let key = |point: &Point| {
            let axes: Vec<Option<Value>> = keys.iter().map(|key| point.axes.get(*key).cloned()).collect();
            Some((Best::of(point)?, point.pattern.clone(), axes))
        };
        grouped(shown.points.iter().filter_map(|point| Some((key(point)?, point))))
    };
    // As finely as few enough lines allow.
    let keys: [&[&str]; 5] = [
        &["endpoint", "service", "operation", "poll"],
        &["endpoint", "service", "operation"],
        &["endpoint", "operation"],
        &["endpoint", "service"],
        &["endpoint"],
    ];
    let mut coarser = keys.into_iter().map(of);
    let mut groups = coarser.next().unwrap_or_default();
    while groups.len() > RESULTS_MAX
        && let Some(next) = coarser.next()
    {
        groups = next;
    }
    let best = groups.iter().filter_map(|((best, pattern, axes), points)| {
        let beside =
            groups.iter().filter(|((of, name, beside), _)| (of, name) == (best, pattern) && beside != axes);
        let comparable = match best {
            Best::Latency => of_least_size(points, beside.map(|(_, points)| points.as_slice())),
            Best::Throughput => points.clone(),
        };
        headline(*best, pattern, &comparable, shown)
    });
    best.take(RESULTS_MAX).collect()
}

/// The points with the smallest message that the points beside them have, too: latencies of other
/// sizes would not be comparable. All points if there is no such size.
fn of_least_size<'p, 'b>(
    points: &[&'p Point],
    beside: impl Iterator<Item = &'b [&'b Point]> + Clone,
) -> Vec<&'p Point> {
    if beside.clone().next().is_none() {
        return points.to_vec();
    }
    let size = |point: &Point| point.axes.get("size_bytes").and_then(Value::as_u64);
    let has = |points: &[&Point], wanted: u64| points.iter().any(|point| size(point) == Some(wanted));
    let sizes = points.iter().filter_map(|point| size(point));
    let least = sizes.filter(|wanted| beside.clone().all(|points| has(points, *wanted))).min();
    points.iter().copied().filter(|point| least.is_none() || size(point) == least).collect()
}

/// The best of some points. Stable ones come before all others.
fn headline(best: Best, pattern: &str, points: &[&Point], shown: Points<'_>) -> Option<Headline> {
    let (path, unit) = match best {
        Best::Latency => ("latency.p50_ns", unit_of(points)),
        Best::Throughput => ("throughput.bytes_per_s", Unit::GbPerS),
    };
    let same = grouped(points.iter().map(|point| ((&point.experiment, &point.axes), *point)));
    let folded = |points: &Vec<&Point>| fold(points, shown.patterns, path, Some(unit)).ok();
    let all: Vec<_> = same.iter().filter_map(|(_, points)| Some((points, folded(points)?))).collect();
    let is_unstable = |measured: &Measured| measured.doubts.unstable > 0;
    let unstable = all.iter().filter(|(_, measured)| is_unstable(measured)).count();
    let is_of_stable = unstable > 0 && unstable < all.len();
    let rank = |measured: &Measured| match best {
        Best::Latency => measured.y.value,
        Best::Throughput => -measured.y.value,
    };
    let (points, measured) = all
        .into_iter()
        .min_by(|(_, a), (_, b)| is_unstable(a).cmp(&is_unstable(b)).then(rank(a).total_cmp(&rank(b))))?;
    let [low, high] = [measured.y.low, measured.y.high].map(|end| measured.in_its_unit(end));
    let interval_of = match best {
        Best::Latency => "interval of the median",
        Best::Throughput => "interval",
    };
    let interval = (low != high).then(|| format!("{interval_of}: {low} to {high}"));
    let number = measured.in_its_unit(measured.y.value);
    let number = match best {
        Best::Throughput => number,
        Best::Latency => {
            let tail = fold(points, shown.patterns, "latency.p99_ns", Some(unit)).ok();
            let tail =
                tail.map(|tail| format!(", {} at the 99th percentile", tail.in_its_unit(tail.y.value)));
            format!("{number} median{}", tail.unwrap_or_default())
        }
    };
    Some(Headline {
        what: format!("{} of {pattern}, {}", best.name(is_of_stable), words(points.first()?)),
        number,
        interval,
        id: measured.id,
        is_unstable: measured.doubts.unstable > 0,
    })
}

/// The unit in which the lowest latency has at most four digits before the point.
fn unit_of(points: &[&Point]) -> Unit {
    let latencies = points.iter().filter_map(|point| point.latency.as_ref());
    match latencies.map(|latency| latency.p50_ns).min() {
        Some(10_000_000..10_000_000_000) => Unit::Ms,
        Some(10_000_000_000..) => Unit::S,
        _ => Unit::Us,
    }
}

/// What was measured at a point, in a few words: `RC send, busy polling, 8 B`.
fn words(point: &Point) -> String {
    let axis = |name: &str| point.axes.get(name).map(value::text);
    let endpoint = axis("endpoint").filter(|endpoint| endpoint != "verbs");
    let parts = [endpoint, axis("service"), axis("operation")];
    let way = parts.into_iter().flatten().collect::<Vec<_>>().join(" ");
    let poll = point.axes.get("poll").and_then(|poll| setting("poll", poll));
    let size = point.axes.get("size_bytes").and_then(Value::as_u64).map(unit::size);
    [Some(way).filter(|way| !way.is_empty()), poll, size].into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// How many numbers are stable, as a badge that leads to the reasons.
fn trust(shown: Points<'_>) -> Markup {
    let measured = shown.points.iter().filter(|point| point.status == Status::Measured);
    let all = measured.clone().count();
    let unstable = measured.filter(|point| point.unstable.is_some()).count();
    let (class, text) = match (unstable, all) {
        (_, 0) => ("bad", "No point was measured".to_owned()),
        (0, _) => ("good", format!("All {} are stable", text::points(all as u64))),
        (unstable, all) if unstable * 2 < all => {
            ("warn", format!("{unstable} of {} are unstable", text::points(all as u64)))
        }
        (unstable, all) => ("bad", format!("{unstable} of {} are unstable", text::points(all as u64))),
    };
    html! { p { a class={ "badge " (class) } href="#trust" { (text) } } }
}

/// How many findings of the plan hold.
fn verdicts(run: &Run, answers: &[Answer<'_>]) -> Markup {
    if run.findings.is_empty() {
        return html! {};
    }
    let score = score(answers, is_of_paper(&run.findings));
    let counts: Vec<_> =
        score.iter().filter(|(_, count)| *count > 0).map(|(word, n)| format!("{n} {word}")).collect();
    html! { p { a href={ "#" (findings::ID) } { (findings::title(run)) } ": " (counts.join(", ")) } }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::known;

    fn point(id: u64, service: &str, size: u64, p50_ns: u64, unstable: bool) -> Point {
        let samples: Vec<u64> = (0..101).map(|i| p50_ns - 50 + i).collect();
        let mut point: Point = serde_json::from_value(json!({
            "id": id, "experiment": "latency", "pattern": "ping-pong", "status": "measured", "repetition": 0, "wall_ns": 1,
            "axes": { "endpoint": "verbs", "service": service, "operation": "send", "size_bytes": size },
        }))
        .unwrap();
        point.latency = measure::stats::latency(measure::record::LatencyKind::RttHalf, &samples, &[]);
        point.unstable = unstable.then(|| "it moved".to_owned());
        point
    }

    #[test]
    fn the_best_stable_result_of_each_service_comes_first() {
        let points = [
            point(0, "RC", 8, 1000, false),
            point(1, "RC", 64, 900, true),
            point(2, "RC", 4096, 2000, false),
            point(3, "UD", 8, 1100, false),
        ];
        let found = headlines(known(&points));
        let said: Vec<_> = found.iter().map(|of| (of.what.as_str(), of.id, of.is_unstable)).collect();
        assert_eq!(
            said,
            [
                ("Lowest latency of ping-pong, RC send, 8 B", 0, false),
                ("Lowest latency of ping-pong, UD send, 8 B", 3, false)
            ]
        );
        assert_eq!(found[0].number, "1 us median, 1.049 us at the 99th percentile");
        assert!(found[0].interval.as_ref().unwrap().starts_with("interval of the median: 0.99"));
        let found = headlines(known(&points[..3]));
        assert_eq!(found[0].what, "Lowest stable latency of ping-pong, RC send, 8 B");
        // Where none is stable, the best of all is said so.
        let found = headlines(known(&points[1..2]));
        assert!(found[0].is_unstable);
    }

    #[test]
    fn a_number_stays_beside_its_unit() {
        let text = unbroken("Lowest of ping-pong, 8 B: 1.2 us, at the 99th percentile");
        assert_eq!(text, "Lowest of ping-pong, 8\u{a0}B: 1.2\u{a0}us, at the 99th percentile");
        assert_eq!(unbroken(""), "");
        assert_eq!(unbroken("\u{b5}s 1 2 s"), "\u{b5}s 1 2\u{a0}s");
    }

    #[test]
    fn long_times_have_long_units() {
        let number = |p50_ns: u64| {
            let points = [point(0, "RC", 8, p50_ns, false)];
            headlines(known(&points)).remove(0).number
        };
        assert!(number(9_999_000).starts_with("9999 us median"), "{}", number(9_999_000));
        assert!(number(330_000_000).starts_with("330 ms median"), "{}", number(330_000_000));
        assert!(number(12_500_000_000).starts_with("12.5 s median"), "{}", number(12_500_000_000));
    }

    #[test]
    fn latencies_are_those_of_one_size_where_all_have_it() {
        let mut points = [
            point(0, "RC", 8, 1000, false),
            point(1, "RC", 64, 1200, false),
            point(2, "UD", 64, 1100, false),
        ];
        points[2].axes.insert("poll".to_owned(), json!("event"));
        let said =
            |points: &[Point]| headlines(known(points)).into_iter().map(|of| of.what).collect::<Vec<_>>();
        let of = |what: &str| format!("Lowest latency of ping-pong, {what}");
        assert_eq!(said(&points), [of("RC send, 64 B"), of("UD send, poll event, 64 B")]);
        // Without a common size, each has its own.
        let apart = [point(0, "RC", 8, 1000, false), point(1, "UD", 64, 1100, false)];
        assert_eq!(said(&apart), [of("RC send, 8 B"), of("UD send, 64 B")]);
    }

    #[test]
    fn the_badge_counts_unstable_points() {
        let badge = |unstable: [bool; 4]| {
            let points: Vec<_> = (0..4).map(|id| point(id, "RC", 8, 1000, unstable[id as usize])).collect();
            trust(known(&points)).into_string()
        };
        assert!(
            badge([false; 4]).contains("badge good") && badge([false; 4]).contains("All 4 points are stable")
        );
        let one = badge([true, false, false, false]);
        assert!(one.contains("badge warn") && one.contains("1 of 4 points are unstable"), "{one}");
        assert!(badge([true; 4]).contains("badge bad"));
    }
}
