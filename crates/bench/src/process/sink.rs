//! The receiver of the results of a run.

use std::time::Duration;

use measure::record::{Launch, Point};

use super::message::Hello;
pub use crate::pattern::outcome::{KeptSamples, Source};
use crate::point::PointSpec;

/// Receives the results, as they arrive. No other code of a run prints or writes.
pub trait Sink {
    /// The first agents have started. Called once, before any point.
    fn started(&mut self, agents: &[Hello]) -> Result<(), SinkError>;

    /// New agents have started. `agents` are all of them, in the order of their ranks.
    fn joined(&mut self, _agents: &[Hello]) -> Result<(), SinkError> {
        Ok(())
    }

    /// Ranks were started in a launch that the record keeps. Their points refer to it.
    fn launched(&mut self, _launch: &Launch) -> Result<(), SinkError> {
        Ok(())
    }

    /// A point is about to be measured.
    fn point_started(&mut self, spec: &PointSpec);

    /// The coordinator is about to wait for the ranks. Returns after which time it should call this
    /// again while it waits; none if it need not wake up.
    fn tick(&mut self) -> Option<Duration> {
        None
    }

    /// The core-to-core latency was measured before or after a point. Returns the lowest known
    /// latency of the same two CPUs under the point's conditions, in ns, this one included; none
    /// where there is nothing to compare with.
    fn calibrated(&mut self, _: &PointSpec, _one_way_ns: f64) -> Option<f64> {
        None
    }

    /// A point has ended. `samples` are its raw samples, where they are kept. An implementation
    /// that stores them also fills in their paths.
    fn point(&mut self, point: Point, samples: &[KeptSamples]) -> Result<(), SinkError>;

    /// All planned points have ended. Returns further points, where these depend on the results.
    /// If there are none, the run is over.
    fn more(&mut self) -> Result<Vec<PointSpec>, SinkError> {
        Ok(Vec::new())
    }

    /// An agent or a launcher printed a line. `who` is `rank 1`, with its host if it is on another
    /// one, or the name of the launcher.
    fn agent_line(&mut self, who: &str, line: &str);

    /// The user should know this now, such as the wait for a server. The record does not keep it.
    fn notice(&mut self, text: &str);

    /// The user should know this. The run goes on.
    fn warning(&mut self, text: &str);
}

/// The error of a [`Sink`].
pub type SinkError = Box<dyn std::error::Error + Send + Sync>;
