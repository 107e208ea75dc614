//! What a plan must not ask of a pipeline, and what only that has.

use crate::Error;
use crate::axis;
use crate::pattern::check::Check;
use crate::point::{Length, Operation, RAW_SAMPLES_MAX};

/// Axes that it has not: samples are as long as their values make them, and inline up to a length.
const OTHERS: [(&str, &str); 2] = [
    ("inline", "samples are inline up to a length: give inline_max_bytes, such as 128, or 0 for never"),
    ("size_bytes", "a sample has 24 B and 8 for each value: give values"),
];
/// Steps of a point, warm-up included: each has two stamps at an end, which travel in one frame
/// with those of gaps.
const STEPS_MAX: u64 = 2_000_000;
const _: () = assert!(2 * STEPS_MAX + 100_000 < RAW_SAMPLES_MAX);

/// Checks a pipeline; of another pattern, that it asks for nothing that only this has.
pub(super) fn experiment(check: &Check<'_>) -> Result<(), Error> {
    for (key, why) in OTHERS {
        if check.0.axes.find(key).is_some() {
            return check.refuse(key, &format!("{key} of a pipeline"), why);
        }
    }
    if let Some(other) = check.operation(|operation| *operation != Operation::Send) {
        let why = "samples are sent to posted receives, as nodes do: use send";
        return check.refuse("operation", &format!("a pipeline over {}", other.name()), why);
    }
    let why = "a sample is one element on one queue pair";
    check.one(axis::QUEUE_PAIRS.row, "a pipeline over several queue pairs", why)?;
    check.one(axis::SGE.row, "a pipeline over several elements", why)?;
    let sinks = check.0.axes.get(axis::SINK);
    if let Some(lack) = sinks.iter().find_map(|sink| sink.lack()) {
        return check.refuse("sink", "samples kept as parquet", lack);
    }
    check.rates()?;
    stamped_steps(check)
}

/// Every step has its stamps in memory that is made before.
fn stamped_steps(check: &Check<'_>) -> Result<(), Error> {
    let rates = check.0.axes.get(axis::RATE_HZ);
    for rate_hz in rates {
        let (length, warmup) = check.0.length_at(1, Some(rate_hz));
        let Length::Iterations(steps) = length else { continue };
        if steps.saturating_add(warmup) > STEPS_MAX {
            let key = if check.0.settings.iterations.is_some() { "iterations" } else { "duration" };
            let what = format!("{steps} steps and {warmup} to warm up at {rate_hz}/s");
            let why = format!(
                "each has stamps in memory, and there may be {STEPS_MAX}: measure fewer, several times"
            );
            return check.refuse(key, &what, &why);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
