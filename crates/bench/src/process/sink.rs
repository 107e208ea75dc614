//! Where the results of a run go.

use measure::record::Point;

use super::message::Hello;
use crate::point::PointSpec;

/// What takes the results, as they come. Nothing else of a run prints or writes.
pub trait Sink {
    /// The agents are there for the first time: once, before any point.
    fn started(&mut self, agents: &[Hello]) -> Result<(), SinkError>;

    /// A point is about to be measured.
    fn point_started(&mut self, spec: &PointSpec);

    /// A point has ended. `samples` are the raw samples of the ranks that kept them; whoever stores them also fills in
    /// `ends[..].samples`.
    fn point(&mut self, point: Point, samples: &[(u32, Vec<u64>)]) -> Result<(), SinkError>;

    /// An agent wrote a line to its standard error. `host` is empty for a child of this process.
    fn agent_line(&mut self, rank: u32, host: &str, line: &str);

    /// Something that the user should know now and nobody later: that a server is waited for.
    fn notice(&mut self, text: &str);

    /// Something that the user should know and that stops nothing.
    fn warning(&mut self, text: &str);
}

/// What a sink may fail with.
pub type SinkError = Box<dyn std::error::Error + Send + Sync>;
