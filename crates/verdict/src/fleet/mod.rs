//! Which host, pair or group of a fleet is slow.

mod cells;
mod examine;
mod examined;
mod hosts;
mod options;
mod probe;
pub mod schedule;

pub use cells::Cell;
pub use examine::examine;
pub use examined::{
    Against, Cleared, Congestion, Culprit, Effects, Evidence, Examined, Judged, Measurements, Place, Reason,
    Thresholds, Undecided, Verdict, Way, Why, deficit,
};
pub use hosts::{Grouping, Hosts};
pub use options::{Options, Quantity};
pub use probe::{Measured, Probe, Purpose, Reading, Round};
pub use schedule::{Amounts, SCHEDULES, Schedule};
