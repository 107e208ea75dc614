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

impl Check<'_> {
    /// Checks a pipeline; of another pattern, that it asks for nothing that only this has.
    pub(crate) fn pipeline(&self) -> Result<(), Error> {
        for (key, why) in OTHERS {
            if self.0.axes.find(key).is_some() {
                return self.refuse(key, &format!("{key} of a pipeline"), why);
            }
        }
        if let Some(other) =
            self.0.axes.get(axis::OPERATION).iter().find(|operation| **operation != Operation::Send)
        {
            let why = "samples are sent to posted receives, as nodes do: use send";
            return self.refuse("operation", &format!("a pipeline over {}", other.name()), why);
        }
        for (row, what) in
            [(axis::QUEUE_PAIRS.row, "several queue pairs"), (axis::SGE.row, "several elements")]
        {
            if self.largest(row) > 1 {
                let why = "a sample is one element on one queue pair";
                return self.refuse(row.name, &format!("a pipeline over {what}"), why);
            }
        }
        let sinks = self.0.axes.get(axis::SINK);
        if let Some(lack) = sinks.iter().find_map(|sink| sink.lack()) {
            return self.refuse("sink", "samples kept as parquet", lack);
        }
        self.rates()?;
        self.stamped_steps()
    }

    /// Every step has its stamps in memory that is made before.
    fn stamped_steps(&self) -> Result<(), Error> {
        let rates = self.0.axes.get(axis::RATE_HZ);
        for rate_hz in rates {
            let (length, warmup) = self.0.length_at(1, Some(rate_hz));
            let Length::Iterations(steps) = length else { continue };
            if steps.saturating_add(warmup) > STEPS_MAX {
                let key = if self.0.settings.iterations.is_some() { "iterations" } else { "duration" };
                let what = format!("{steps} steps and {warmup} to warm up at {rate_hz}/s");
                let why = format!(
                    "each has stamps in memory, and there may be {STEPS_MAX}: measure fewer, several times"
                );
                return self.refuse(key, &what, &why);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
