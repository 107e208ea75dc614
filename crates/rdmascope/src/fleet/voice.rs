//! What a fleet says while it measures, on standard error.

use std::time::Duration;

use bench::point::PointSpec;
use bench::process::message::Hello;
use bench::process::sink::{KeptSamples, Sink, SinkError};
use measure::record::Point;

use crate::failure::harmless;
use crate::sink::progress::Progress;

/// Progress in a terminal, and warnings.
pub(super) struct Voice {
    progress: Progress,
}

impl Voice {
    pub(super) fn new(points: u64) -> Self {
        Self { progress: Progress::new(points) }
    }

    /// A round begins.
    pub(super) fn begins(&mut self, what: String) {
        self.progress.started(what, None);
    }

    /// So many points are expected; suspects add some.
    pub(super) fn expects(&self, points: u64) {
        self.progress.plan(points);
    }

    /// Points have ended.
    pub(super) fn ended(&mut self, points: usize) {
        (0..points).for_each(|_| self.progress.ended());
    }

    /// Ends the display.
    pub(super) fn clear(&self) {
        self.progress.clear();
    }
}

impl Sink for Voice {
    fn started(&mut self, _: &[Hello]) -> Result<(), SinkError> {
        Ok(())
    }

    fn point_started(&mut self, _: &PointSpec) {}

    fn tick(&mut self) -> Option<Duration> {
        self.progress.tick()
    }

    fn point(&mut self, _: Point, _: &[KeptSamples]) -> Result<(), SinkError> {
        Ok(())
    }

    fn agent_line(&mut self, who: &str, line: &str) {
        self.progress.suspend(|| eprintln!("[{who}] {line}"));
    }

    fn notice(&mut self, text: &str) {
        self.progress.suspend(|| eprintln!("rdmascope: {}", harmless(text)));
    }

    fn warning(&mut self, text: &str) {
        self.progress.suspend(|| eprintln!("rdmascope: warning: {}", harmless(text)));
    }
}
