//! The quantities that figures and findings can name: quantities of all patterns and of one.

use measure::units::Dimension;

use super::applications;
use super::model::Plan;
use super::names::hint_or_all;
use crate::patterns::PATTERNS;

/// Checks that a path leads to a number. The error has the nearest path that does, or all paths.
fn check(path: &str) -> Result<(), String> {
    if PATTERNS.find(path).is_some() {
        return Ok(());
    }
    let known = PATTERNS.examples(path);
    let known: Vec<&str> = known.iter().map(String::as_str).collect();
    Err(hint_or_all(path, &known))
}

/// Checks that a path leads to a number of the points of some experiments. The error continues a
/// sentence that ends in the path.
pub(super) fn check_of(plan: &Plan, experiments: &[String], path: &str) -> Result<(), String> {
    check(path)?;
    applications::metric(plan, experiments, path)
}

/// The dimension of the number at a path.
pub(super) fn dimension(path: &str) -> Option<Dimension> {
    PATTERNS.find(path).map(|found| found.unit())
}

/// Whether the dimension of a path, or the points, tell whether less or more is better.
pub(super) fn is_better_known(path: &str) -> bool {
    let found = PATTERNS.find(path);
    found.is_some_and(|found| found.unit().better().is_some() || found.quantity.counted.is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_of_a_point_has_a_path() {
        for name in [
            "latency.p50_ns",
            "one_way.p999_ns",
            "completion.share_above.10000",
            "one_way_send.spread_ns",
            "rtt_half.mavericks.count",
            "first.p50_ns",
            "with_first.max_ns",
            "completed_first_share",
            "cost.ns",
            "cpu_ns_per_byte",
            "cpu_ns_per_message",
            "half_mean_ns",
            "transactions_per_s",
            "cpu.1.voluntary_switches",
            "ends.0.latency.p10_ns",
            "per_message.mean_ns",
            "throughput_total.messages_per_s",
            "fairness.jain",
            "start_skew.p50_ns",
            "pipeline.lost_share",
            "counters.rnr_waits",
            "calibration.before_ns",
            "wall_ns",
        ] {
            assert_eq!(check(name), Ok(()), "{name}");
        }
    }

    #[test]
    fn what_leads_nowhere_is_refused_with_the_nearest() {
        for (name, near) in [
            ("one_way.p50", "one_way.p50_ns"),
            ("oneway.p50_ns", "one_way.p50_ns"),
            ("completion.share_above", "completion.share_above.10000"),
            ("cpu.0.usr_ns", "cpu.0.user_ns"),
            ("cpu.user_ns", "cpu.0.user_ns"),
            ("completed_first", "completed_first_share"),
            ("cost.n", "cost.ns"),
            ("throughput.direction", "throughput.bytes_per_s"),
            ("per_message.p50", "per_message.p50_ns"),
            ("per_message.stddev_ns", "per_message.mean_ns"),
            ("latency.p50_ci95_ns", "latency.p50_ns"),
        ] {
            assert_eq!(check(name), Err(format!(": did you mean {near:?}?")), "{name}");
        }
        for path in ["latency.share_above_bounds", "calibration.ns", "fairness.index"] {
            assert!(check(path).is_err(), "{path} leads to no number");
        }
        assert!(check("latency.kind").is_err() && check("counters").is_err() && check("").is_err());
    }
}
