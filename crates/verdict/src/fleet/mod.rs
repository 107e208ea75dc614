//! Which host, pair or group of a fleet is slow.

mod again;
mod baseline;
mod cells;
mod claim;
mod claims;
mod confirm;
mod examine;
mod examined;
mod experiment;
mod fit;
mod ground;
mod hosts;
mod lanes;
mod load;
mod model;
mod options;
mod probe;
mod relation;
mod robust;
mod scales;
pub mod schedule;
mod screening;

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
