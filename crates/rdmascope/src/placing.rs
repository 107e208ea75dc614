//! Compares the core-to-core latency of the ranks with the best that this host has had: warns
//! before the first point, marks points, and sums up when the run has ended.

mod cache;
mod known;

use bench::point::PointSpec;
use measure::conditions::Wanted;
use measure::placement::{Far, Pair, Placed, Verdict};
use measure::record::{Environment, Point};

use cache::Cache;
use known::{Key, Known};

/// The placement of a run.
pub(crate) struct Placing {
    cache: Option<Cache>,
    known: Known,
    pair: Option<Pair>,
    has_begun: bool,
    placed: Vec<Placed>,
}

impl Placing {
    /// Starts with the latencies that earlier runs of this user have seen.
    pub(crate) fn new() -> Self {
        let cache = Cache::of_user();
        let known = Known::new(cache.as_ref().and_then(Cache::read).unwrap_or_default(), now_s());
        Self { cache, known, pair: None, has_begun: false, placed: Vec::new() }
    }

    /// Returns the best core-to-core latency known of two CPUs that are `ns` apart now, and keeps
    /// this latency for later runs. Each environment is that of a rank on one of the CPUs.
    pub(crate) fn best_of(environments: &[Environment; 2], ns: f64) -> Option<f64> {
        let mut placing = Self::new();
        let key = key(Pair::of(environments)?, &Wanted::default())?;
        let best_ns = placing.known.see(key, ns);
        placing.keep();
        Some(best_ns)
    }

    /// Sets the CPUs on which the ranks run.
    pub(crate) fn started(&mut self, environments: &[Environment]) {
        self.pair = Pair::of(environments);
    }

    /// Compares a core-to-core latency. Returns the best one known, if any, and a warning before
    /// the first point.
    pub(crate) fn calibrated(&mut self, spec: &PointSpec, ns: f64) -> (Option<f64>, Option<String>) {
        let Some(key) = self.pair.clone().and_then(|pair| key(pair, &spec.conditions)) else {
            return (None, None);
        };
        let best_ns = self.known.see(key, ns);
        let is_first = !std::mem::replace(&mut self.has_begun, true);
        let far = Far::of(ns, best_ns).filter(|_| is_first);
        (Some(best_ns), far.map(|far| self.warning(far)))
    }

    fn warning(&self, far: Far) -> String {
        let place = self.cache.as_ref().map(|cache| cache.path().display().to_string()).unwrap_or_default();
        format!(
            "{far}; as long as that lasts, points are unstable, and this host can do better: measure again later, or remove \
             {place} if the host itself has changed"
        )
    }

    /// Adds a point that has ended.
    pub(crate) fn ended(&mut self, point: &Point) {
        self.placed.extend(Placed::of(point));
    }

    /// Returns the text that stands below the tables. A single point needs none: its mark says
    /// everything. `has_early_rows` tells whether rows were printed before the run had ended: such
    /// a row may lack its mark.
    pub(crate) fn rest(&self, has_early_rows: bool) -> String {
        let Some(verdict) = Verdict::of(&self.placed).filter(|verdict| verdict.compared > 1) else {
            return String::new();
        };
        let headline = verdict.headline().map(|headline| format!("\n ! {headline}\n")).unwrap_or_default();
        if verdict.late == 0 || !has_early_rows {
            return headline;
        }
        let points = if verdict.late == 1 { "point above is" } else { "points above are" };
        let late = verdict.late;
        format!(
            "{headline}\n ! {late} {points} unstable without a mark: the core-to-core latency became much better later in the \
             run\n"
        )
    }

    /// Writes the latencies for later runs. If that fails, later runs know less, which harms no
    /// number of this run.
    pub(crate) fn keep(&self) {
        let Some(cache) = self.cache.as_ref().filter(|_| self.known.has_seen()) else { return };
        // Another run may have ended meanwhile, so that the file is read again. A foreign file is
        // not replaced.
        if let Some(kept) = cache.read() {
            _ = cache.write(&self.known.merged(kept, now_s()));
        }
    }
}

/// Returns what makes latencies comparable; none if the environment loads the host, so that ranks
/// are preempted.
fn key(pair: Pair, conditions: &Wanted) -> Option<Key> {
    // The mode of IPoIB has no effect on CPUs.
    let conditions = Wanted { ipoib_mode: None, ..conditions.clone() };
    conditions.stress.is_none().then_some(Key { pair, conditions })
}

/// The time of day, in seconds since 1970.
fn now_s() -> u64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    now.map_or(0, |now| now.as_secs())
}

#[cfg(test)]
mod tests {
    use bench::plan::{Options, Plan, Settings, resolve};
    use bench::point::Pattern;
    use serde_json::json;

    use super::*;

    fn spec(environment: &str) -> PointSpec {
        let plan = Plan::new("p", "P").experiment("e", Pattern::PING_PONG, Settings::default());
        let spec = resolve(&plan, &Options::default()).unwrap().points.remove(0);
        PointSpec { conditions: Wanted::built_in(environment).unwrap(), ..spec }
    }

    fn environments() -> [Environment; 2] {
        [0, 1].map(|cpu| Environment { pinned_cpus: Some(vec![cpu]), ..Environment::default() })
    }

    /// Returns the placement of a run on a host with this best latency.
    fn placing(best_ns: Option<f64>) -> Placing {
        let pair = Pair::of(&environments()).unwrap();
        let key = key(pair.clone(), &Wanted::default()).unwrap();
        let kept = best_ns.map(|best_ns| known::Best { key, best_ns, near_s: now_s() });
        let known = Known::new(kept.into_iter().collect(), now_s());
        Placing { cache: None, known, pair: Some(pair), has_begun: false, placed: Vec::new() }
    }

    fn ended(placing: &mut Placing, ns: f64, best_ns: f64) {
        let calibration = json!({"before_ns": ns, "after_ns": ns, "best_ns": best_ns});
        let point = json!({
            "id": 0, "experiment": "e", "pattern": "ping-pong", "axes": {}, "status": "measured", "repetition": 0,
            "calibration": calibration, "wall_ns": 1,
        });
        placing.ended(&serde_json::from_value(point).unwrap());
    }

    #[test]
    fn what_is_far_is_said_once_and_before_the_first_point() {
        let mut far = placing(Some(28.3));
        let (best_ns, warning) = far.calibrated(&spec("as_is"), 188.4);
        assert_eq!(best_ns, Some(28.3));
        let warning = warning.unwrap();
        assert!(warning.starts_with("core-to-core latency was 188 ns, 6.7 times the best seen"), "{warning}");
        assert_eq!(far.calibrated(&spec("as_is"), 190.0), (Some(28.3), None));
        let mut near = placing(Some(28.3));
        assert_eq!(near.calibrated(&spec("as_is"), 30.0), (Some(28.3), None));
        assert_eq!(near.calibrated(&spec("as_is"), 188.4), (Some(28.3), None), "its points say it");
        assert_eq!(placing(None).calibrated(&spec("as_is"), 188.4), (Some(188.4), None));
    }

    #[test]
    fn what_is_not_comparable_is_not_compared() {
        let mut loaded = placing(Some(28.3));
        assert_eq!(loaded.calibrated(&spec("loaded"), 5000.0), (None, None));
        assert_eq!(loaded.calibrated(&spec("optimised"), 188.4), (Some(188.4), None), "other conditions");
        let mut apart = placing(Some(28.3));
        apart.started(&environments().map(|rank| Environment { pinned_cpus: Some(vec![0]), ..rank }));
        assert_eq!(apart.calibrated(&spec("as_is"), 188.4), (None, None));
    }

    #[test]
    fn below_the_tables_stands_what_their_rows_could_not_know() {
        let mut run = placing(None);
        ended(&mut run, 188.4, 188.4);
        assert_eq!(run.rest(true), "", "nothing is known");
        ended(&mut run, 28.3, 28.3);
        let rest = run.rest(true);
        assert!(rest.starts_with("\n ! 1 point above is unstable without a mark: "), "{rest}");
        assert_eq!(run.rest(false), "", "rows that are printed at the end have their marks");
        ended(&mut run, 188.4, 28.3);
        let rest = run.rest(true);
        assert!(rest.starts_with("\n ! The whole run is unstable: "), "{rest}");
        let mut one = placing(None);
        ended(&mut one, 188.4, 28.3);
        assert_eq!(one.rest(true), "", "its mark says it");
    }
}
