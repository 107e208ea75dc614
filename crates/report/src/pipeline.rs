//! What became of the steps of samples at a fixed rate.

use measure::record::{self, Point};

/// The share of a point's steps that were missed.
pub(crate) fn missed_share(point: &Point) -> Option<f64> {
    let [steps, missed] = record::steps(&point.counters)?;
    Some(missed as f64 / steps.max(1) as f64)
}

/// The share of its steps that the timer misses alone.
pub(crate) fn alone_share(point: &Point) -> Option<f64> {
    let timer = &point.pipeline.as_ref()?.timer;
    Some(timer.missed as f64 / timer.steps.max(1) as f64)
}

/// The share of its steps that were missed while the generator had more to do than to wait: with values, its node and its sink.
fn busy_share(point: &Point) -> Option<f64> {
    let [steps, missed] = record::steps(&point.counters)?;
    let busy = missed.saturating_sub(point.pipeline.as_ref()?.missed_waiting);
    Some(busy as f64 / steps.max(1) as f64)
}

/// The number at a path behind `pipeline.`.
pub(crate) fn number(point: &Point, field: &str) -> Option<f64> {
    match field {
        "achieved_hz" => Some(point.pipeline.as_ref()?.achieved_hz),
        "alone_share" => alone_share(point),
        "busy_share" => busy_share(point),
        "lost_share" => {
            let [steps, _] = record::steps(&point.counters)?;
            Some(*point.counters.get("messages_lost")? as f64 / steps.max(1) as f64)
        }
        "missed_share" => missed_share(point),
        _ => None,
    }
}

/// How many steps a share is of, where a path leads to one.
pub(crate) fn steps(point: &Point, field: &str) -> Option<u64> {
    match field {
        "alone_share" => Some(point.pipeline.as_ref()?.timer.steps),
        "busy_share" | "lost_share" | "missed_share" => {
            record::steps(&point.counters).map(|[steps, _]| steps)
        }
        _ => None,
    }
}
