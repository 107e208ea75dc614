//! The settings of the pattern `overhead`.

use crate::pattern::settings::settings;
use crate::point::{PointSpec, Step};

settings! {
    asked {
        step: Step = STEP or Step::OF_VERBS[0],
        batch: Option<u32> = BATCH or None,
    }
}

impl Settings {
    /// The number of calls between two stamps.
    pub(super) fn batch(&self, spec: &PointSpec) -> u32 {
        let room = spec.message.tx_depth.min(spec.message.rx_fill);
        self.batch.unwrap_or_else(|| self.step.batch(room))
    }
}
