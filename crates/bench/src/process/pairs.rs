//! Several ranks together that do the same at the same time, pairs or a load: the latency of all their messages, what they carry
//! in the time that all were at it, and how evenly.

use measure::record::{Direction, Fairness, Latency, LatencyKind, Throughput};
use measure::samples::Samples;

use super::message::{Outcome, Passed};
use crate::pattern::{at, counts};
use crate::point::{Pattern, PointSpec};

/// What becomes of their outcomes.
#[derive(Debug, Default)]
pub(super) struct Together {
    pub(super) latency: Option<Latency>,
    pub(super) throughput: Option<Throughput>,
    pub(super) fairness: Option<Fairness>,
    pub(super) unstable: Option<String>,
    /// Why there is no number, if so.
    pub(super) missing: Option<String>,
}

/// Puts them together. Of a flood, each sender's own throughput becomes that of the common time.
pub(super) fn together(spec: &PointSpec, outcomes: &mut [Outcome]) -> Together {
    let latency = latency(spec, outcomes);
    let rates: Vec<f64> = outcomes
        .iter()
        .filter_map(|outcome| Some(1e9 / outcome.latency.as_ref()?.mean_ns).filter(|rate| rate.is_finite()))
        .collect();
    let fairness = Fairness::of(&rates);
    if outcomes.iter().all(|outcome| outcome.passed.is_none()) {
        return Together { latency, fairness, ..Together::default() };
    }
    let unstable = match in_common(spec, outcomes) {
        Ok(unstable) => unstable,
        Err(missing) => return Together { missing: Some(missing), ..Together::default() },
    };
    let floods = outcomes.iter().filter(|outcome| outcome.passed.is_some());
    let flows: Vec<f64> =
        floods.filter_map(|outcome| Some(outcome.throughput.as_ref()?.messages_per_s)).collect();
    if flows.is_empty() {
        return Together { latency, unstable, ..Together::default() };
    }
    let (bytes, direction) = carried(spec);
    Together {
        latency,
        throughput: Some(Throughput::of(flows.iter().sum(), bytes, direction)),
        fairness: Fairness::of(&flows),
        unstable,
        missing: None,
    }
}

/// The payload of a message of a flood, and what all floods together are.
fn carried(spec: &PointSpec) -> (u64, Direction) {
    match spec.pattern {
        Pattern::OpenLoop => (spec.load_bytes, Direction::Load),
        _ => (spec.message.size_bytes, Direction::Pairs),
    }
}

/// The latency of the messages of all pairs: exact where samples were kept, else that of the first pair.
fn latency(spec: &PointSpec, outcomes: &[Outcome]) -> Option<Latency> {
    let first = outcomes.iter().find_map(|outcome| outcome.latency.as_ref())?;
    let all: Vec<u64> = outcomes.iter().flat_map(|outcome| outcome.samples.iter().copied()).collect();
    Samples::from_ns(all).latency(first.kind, &spec.share_above_ns).or_else(|| Some(first.clone()))
}

/// Counts what each sender did from when the last began until the first was done, and where messages were timed beside them, no
/// longer than these were; says what is wrong with that, or why it cannot be.
fn in_common(spec: &PointSpec, outcomes: &mut [Outcome]) -> Result<Option<String>, String> {
    let passed: Vec<&Passed> = outcomes.iter().filter_map(|outcome| outcome.passed.as_deref()).collect();
    let Some((first, others)) = passed.split_first() else { return Ok(None) };
    if others.iter().any(|other| !other.clock.shares_with(&first.clock)) {
        let words =
            "the pairs are timed by several clocks: each counts in its own time, not in the common one";
        // All loaders begin and end when rank 0 says so.
        return Ok((spec.pattern == Pattern::Pairs).then(|| words.to_owned()));
    }
    let begin = passed.iter().map(|one| one.span[0]).max().unwrap_or(0);
    let end = passed.iter().map(|one| one.span[1]).min().unwrap_or(0);
    let shortest = passed.iter().map(|one| one.span[1].saturating_sub(one.span[0])).min().unwrap_or(0);
    if end.saturating_sub(begin) * 2 < shortest {
        let who = if spec.pattern == Pattern::OpenLoop { "loaders" } else { "pairs" };
        return Err(format!(
            "{} {who} were hardly ever at it at the same time, as each was done so soon: give a duration, or more iterations",
            passed.len()
        ));
    }
    let timed = outcomes.iter().find_map(|outcome| outcome.timed.as_deref());
    let timed = timed.filter(|timed| timed.clock.shares_with(&first.clock)).map(|timed| timed.span);
    let timed = timed.map(|span| [span[0].max(begin), span[1].min(end)]);
    // Where few were counted meanwhile, they are those of the whole load.
    let is_long = |span: &[u64; 2]| passed.iter().all(|one| counts(&one.seen, *span) >= COUNTS_MIN);
    let [begin, end] = timed.filter(is_long).unwrap_or([begin, end]);
    if passed.iter().any(|one| counts(&one.seen, [begin, end]) < COUNTS_FEWEST) {
        let words = "so little was done in the common time that it cannot be counted: give a longer duration";
        return match spec.pattern {
            Pattern::Pairs => Err(format!("{words}, or a smaller signal_interval")),
            _ => {
                outcomes.iter_mut().filter(|one| one.passed.is_some()).for_each(|one| one.throughput = None);
                Ok(Some(format!("the load: {words}")))
            }
        };
    }
    let ticks = end.saturating_sub(begin).max(1) as f64;
    let skew = skew(spec, &passed, first.tick_hz);
    let (bytes, _) = carried(spec);
    for outcome in outcomes.iter_mut() {
        let Some(passed) = &outcome.passed else { continue };
        let messages = at(&passed.seen, end) - at(&passed.seen, begin);
        let messages_per_s = messages as f64 / ticks * passed.tick_hz;
        outcome.throughput = Some(Throughput::of(messages_per_s, bytes, Direction::Uni));
    }
    if let (Some(skew), Some(first)) = (skew, outcomes.iter_mut().find(|outcome| outcome.passed.is_some())) {
        first.skew = Some(skew);
    }
    Ok(None)
}

/// Fewer counts than this of a load are too few for the rate of a part of it.
const COUNTS_MIN: usize = 16;
/// Fewer than this are none of a flood at all.
const COUNTS_FEWEST: usize = 2;

/// How far apart floods began that were told to, each in its turn; those that meet at a barrier know themselves.
fn skew(spec: &PointSpec, passed: &[&Passed], tick_hz: f64) -> Option<Latency> {
    let begun = || passed.iter().map(|one| one.span[0]);
    let ticks = begun().max()? - begun().min()?;
    let ns = (ticks as f64 * 1e9 / tick_hz) as u64;
    (spec.pattern == Pattern::OpenLoop && passed.len() > 1)
        .then(|| Samples::from_ns(vec![ns]).latency(LatencyKind::StartSkew, &spec.share_above_ns))?
}

#[cfg(test)]
mod tests {
    use measure::clock::{Clock, Domain};

    use super::super::message::Window;
    use super::*;
    use crate::plan::{Axis, Options, Plan, Settings, resolve};
    use crate::point::{Pattern, Traffic};

    fn spec() -> PointSpec {
        let settings = Settings::default().axis(Axis::Traffic(vec![Traffic::Stream]));
        let plan = Plan::new("pairs", "Pairs").experiment("e", Pattern::Pairs, settings);
        resolve(&plan, &Options::default()).unwrap().points.remove(0)
    }

    fn passed() -> Passed {
        Passed { clock: Domain::of(&Clock::monotonic()), tick_hz: 1e9, span: [0; 2], seen: Vec::new() }
    }

    /// A flood of a message in so many ticks of a nanosecond.
    fn flood(span: [u64; 2], ticks: u64) -> Outcome {
        let seen = (0..=(span[1] - span[0]) / ticks).map(|count| (span[0] + count * ticks, count)).collect();
        let own = Throughput { bytes_per_s: 1.0, messages_per_s: 1.0, direction: Direction::Uni };
        let passed = Some(Box::new(Passed { span, seen, ..passed() }));
        Outcome { throughput: Some(own), passed, ..Outcome::default() }
    }

    #[test]
    fn what_pairs_carry_is_counted_in_the_time_that_all_were_at_it() {
        // The second is three times as slow, begins late and ends late.
        let mut outcomes =
            [flood([1000, 11_000], 10), Outcome::default(), flood([3000, 33_000], 30), Outcome::default()];
        let mut spec = spec();
        spec.message.size_bytes = 2;
        let together = together(&spec, &mut outcomes);
        let total = together.throughput.unwrap();
        assert_eq!(total.direction, Direction::Pairs);
        assert!((total.messages_per_s / (1e8 + 1e8 / 3.0) - 1.0).abs() < 1e-2, "{total:?}");
        assert_eq!(total.bytes_per_s, 2.0 * total.messages_per_s);
        assert!((outcomes[0].throughput.as_ref().unwrap().messages_per_s / 1e8 - 1.0).abs() < 1e-2);
        let fairness = together.fairness.unwrap();
        // Rates of 3 and 1: (3 + 1)^2 / 2 (9 + 1), and 1 of 3.
        assert!(
            (fairness.jain - 0.8).abs() < 1e-2 && (fairness.least_share - 1.0 / 3.0).abs() < 1e-2,
            "{fairness:?}"
        );
        assert_eq!(together.unstable, None);
    }

    /// Two floods take turns on one link, with messages of a tick each: now one has it for long, now the other.
    #[test]
    fn what_shares_a_link_carries_no_more_than_that() {
        let mut seen = [vec![(0, 0)], vec![(0, 0)]];
        let mut now = 0;
        for turn in 0..40 {
            let flood = &mut seen[turn % 2];
            for _ in 0..100 + 7 * turn as u64 {
                now += 1;
                flood.push((now, flood.len() as u64));
            }
        }
        let ends = [now - 1, now - 500];
        let mut outcomes = [0, 1].map(|one: usize| {
            let passed = Passed { span: [one as u64, ends[one]], seen: seen[one].clone(), ..passed() };
            Outcome { passed: Some(Box::new(passed)), ..Outcome::default() }
        });
        let total = together(&spec(), &mut outcomes).throughput.unwrap().messages_per_s;
        assert!((total / 1e9 - 1.0).abs() < 1e-9, "{total}");
    }

    /// What a load carries counts while messages are timed, and not before.
    #[test]
    fn a_load_counts_beside_what_is_timed() {
        let slow = (0..=100).map(|done| (10 * done, done));
        let seen = slow.chain((1..=100).map(|done| (1000 + 5 * done, 100 + done)));
        let passed = Passed { span: [0, 1500], seen: seen.collect(), ..passed() };
        let settings = Settings::default().axis(Axis::Loaders(vec![1])).axis(Axis::LoadBytes(vec![100]));
        let plan = Plan::new("load", "Load").experiment("e", Pattern::OpenLoop, settings);
        let spec = resolve(&plan, &Options::default()).unwrap().points.remove(0);
        let timed = |span: [u64; 2]| {
            let window = Window { clock: passed.clock.clone(), span };
            let asks = Outcome { timed: Some(Box::new(window)), ..Outcome::default() };
            let loads = Outcome { passed: Some(Box::new(passed.clone())), ..Outcome::default() };
            together(&spec, &mut [asks, Outcome::default(), loads]).throughput.unwrap()
        };
        assert_eq!(timed([100, 900]).messages_per_s, 1e8);
        let fast = timed([1100, 1400]);
        assert_eq!((fast.messages_per_s, fast.bytes_per_s, fast.direction), (2e8, 2e10, Direction::Load));
        let whole = 200.0 / 1500.0 * 1e9;
        assert!(
            (timed([1100, 1120]).messages_per_s / whole - 1.0).abs() < 1e-9,
            "too short for a rate of its own"
        );
    }

    #[test]
    fn what_is_hardly_counted_is_no_number() {
        let passed = Passed { span: [0, 1500], seen: vec![(0, 0), (1400, 16)], ..passed() };
        let own = Throughput { bytes_per_s: 1.0, messages_per_s: 1.0, direction: Direction::Uni };
        let flood = || Outcome {
            passed: Some(Box::new(passed.clone())),
            throughput: Some(own.clone()),
            ..Outcome::default()
        };
        let missing = together(&spec(), &mut [flood(), flood()]).missing.unwrap();
        assert!(missing.contains("cannot be counted"), "{missing}");
        let settings = Settings::default().axis(Axis::Loaders(vec![1]));
        let plan = Plan::new("load", "Load").experiment("e", Pattern::OpenLoop, settings);
        let spec = resolve(&plan, &Options::default()).unwrap().points.remove(0);
        let mut outcomes = [Outcome::default(), Outcome::default(), flood()];
        let load = together(&spec, &mut outcomes);
        assert!(load.unstable.unwrap().starts_with("the load: so little was done"));
        assert_eq!((load.throughput, &outcomes[2].throughput, load.missing), (None, &None, None));
    }

    #[test]
    fn without_a_common_time_that_is_said() {
        for second in [[200, 300], [60, 160]] {
            let together = together(&spec(), &mut [flood([0, 100], 1), flood(second, 1)]);
            assert!(together.missing.unwrap().starts_with("2 pairs were hardly ever at it at the same time"));
            assert_eq!((together.throughput, together.fairness), (None, None));
        }
        let mut other = flood([0, 100], 1);
        other.passed.as_mut().unwrap().clock.boot_id = Some("another".to_owned());
        let apart = together(&spec(), &mut [flood([0, 100], 1), other]);
        assert!(apart.unstable.unwrap().contains("several clocks") && apart.throughput.is_some());
    }
}
