//! Where the results of a run go.

use measure::record::{Launch, Point};

use super::message::Hello;
pub use crate::pattern::outcome::{KeptSamples, Source};
use crate::point::PointSpec;

/// What takes the results, as they come. Nothing else of a run prints or writes.
pub trait Sink {
    /// The agents are there for the first time: once, before any point.
    fn started(&mut self, agents: &[Hello]) -> Result<(), SinkError>;

    /// Other agents are there than those before: all of them, in the order of their ranks.
    fn joined(&mut self, _agents: &[Hello]) -> Result<(), SinkError> {
        Ok(())
    }

    /// Ranks were started of which the record says how; their points refer to it.
    fn launched(&mut self, _launch: &Launch) -> Result<(), SinkError> {
        Ok(())
    }

    /// A point is about to be measured.
    fn point_started(&mut self, spec: &PointSpec);

    /// The core-to-core latency was measured beside a point, before or after it. Gives the best one
    /// known of the same two CPUs under the point's conditions, in ns, this one included; none
    /// where it is compared with nothing.
    fn calibrated(&mut self, _: &PointSpec, _one_way_ns: f64) -> Option<f64> {
        None
    }

    /// A point has ended. `samples` are its raw samples where they are kept; whoever stores them
    /// also fills in the paths.
    fn point(&mut self, point: Point, samples: &[KeptSamples]) -> Result<(), SinkError>;

    /// All points that were planned have ended: which are to be measured next, where that depends
    /// on them. Without any the run is over.
    fn more(&mut self) -> Result<Vec<PointSpec>, SinkError> {
        Ok(Vec::new())
    }

    /// An agent or a launcher wrote a line beside its messages. `who` is `rank 1`, with its host
    /// where that is another one, or the launcher's name.
    fn agent_line(&mut self, who: &str, line: &str);

    /// Something that the user should know now and nobody later: that a server is waited for.
    fn notice(&mut self, text: &str);

    /// Something that the user should know and that stops nothing.
    fn warning(&mut self, text: &str);
}

/// What a sink may fail with.
pub type SinkError = Box<dyn std::error::Error + Send + Sync>;
