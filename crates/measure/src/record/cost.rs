//! The cost of a call.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Latency;

/// The CPU time of one call of a program, from the time of batches of such calls.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
pub struct Cost {
    /// The call, as the axis `step` names it, e.g. `post_send`, `poll_empty`, `register_cold`.
    pub step: String,
    /// Calls in a batch, which is one sample of the point's latency (kind `call`).
    pub calls: u32,
    /// Median time of a batch divided by its calls, in ns. It includes the time stamp of the batch:
    /// `stamp_ns` / `calls`.
    pub ns: f64,
    /// 95 % confidence interval of `ns` from order statistics, in ns; within this run only. Absent
    /// with fewer than 6 batches.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ci95_ns: Option<[f64; 2]>,
    /// Cost of one stamp at the rank that timed, in ns. The two stamps around a batch add the cost
    /// of one to it.
    pub stamp_ns: f64,
}

impl Cost {
    /// Computes the cost of a step from the latencies of batches of `calls` calls, where a stamp
    /// costs `stamp_ns`.
    #[must_use]
    pub fn new(step: &str, calls: u32, batches: &Latency, stamp_ns: f64) -> Self {
        let each = |batch_ns: u64| batch_ns as f64 / f64::from(calls);
        Self {
            step: step.to_owned(),
            calls,
            ns: each(batches.p50_ns),
            ci95_ns: batches.p50_ci95_ns.map(|interval| interval.map(each)),
            stamp_ns,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::LatencyKind;
    use crate::stats::latency;

    #[test]
    fn a_call_costs_its_share_of_the_median_batch() {
        let of = |samples: &[u64]| {
            Cost::new("poll_empty", 64, &latency(LatencyKind::Call, samples, &[]).unwrap(), 14.5)
        };
        let cost = of(&[224, 160, 256, 192, 9000, 128]);
        assert_eq!((cost.step.as_str(), cost.calls, cost.ns, cost.stamp_ns), ("poll_empty", 64, 3.0, 14.5));
        assert_eq!(cost.ci95_ns, Some([2.0, 140.625]));
        assert_eq!(of(&[160]).ci95_ns, None);
    }
}
