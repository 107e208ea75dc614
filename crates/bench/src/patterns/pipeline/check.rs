//! What a plan must not ask of a pipeline.

use crate::Error;
use crate::axis;
use crate::pattern::check::Check;
use crate::point::{Length, Operation, RAW_SAMPLES_MAX};

/// Axes that a pipeline does not have, because the values determine the length of a sample.
const OTHERS: [(&str, &str); 2] = [
    ("inline", "samples are inline up to a length: give inline_max_bytes, such as 128, or 0 for never"),
    ("size_bytes", "a sample has 24 B, and 8 B for each value: give values"),
];
/// The most steps of a point, warm-up included: a rank has up to two stamps for each, which it
/// sends in one frame with the stamps of preemptions.
const STEPS_MAX: u64 = 2_000_000;
const _: () = assert!(2 * STEPS_MAX + 100_000 < RAW_SAMPLES_MAX);

/// Checks an experiment of pipelines.
pub(super) fn experiment(check: &Check<'_>) -> Result<(), Error> {
    for (key, why) in OTHERS {
        if check.0.axes.find(key).is_some() {
            return check.refuse(key, &format!("{key} of a pipeline"), why);
        }
    }
    if let Some(other) = check.operation(|operation| *operation != Operation::Send) {
        let why = "samples are sent to posted receives, as in VILLASnode: use send";
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

/// Checks that the stamps of all steps fit into memory, which is allocated before the first step.
fn stamped_steps(check: &Check<'_>) -> Result<(), Error> {
    let rates = check.0.axes.get(axis::RATE_HZ);
    for rate_hz in rates {
        let (length, warmup) = check.0.length_at(1, Some(rate_hz));
        let Length::Iterations(steps) = length else { continue };
        if steps.saturating_add(warmup) > STEPS_MAX {
            let key = if check.0.settings.iterations.is_some() { "iterations" } else { "duration" };
            let what = format!("{steps} steps and {warmup} warm-up steps at {rate_hz}/s");
            let why = format!(
                "each step has stamps in memory, and there is room for {STEPS_MAX} steps: measure fewer, several times"
            );
            return check.refuse(key, &what, &why);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
