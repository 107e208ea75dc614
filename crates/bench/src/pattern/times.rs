//! A recorder for tests.

use measure::samples::Recorder;

/// Keeps the times that it is given.
#[derive(Default)]
pub(crate) struct Times(pub(crate) Vec<u64>);

impl Recorder for Times {
    fn record(&mut self, ticks: u64) {
        self.0.push(ticks);
    }

    fn is_full(&self) -> bool {
        false
    }
}
