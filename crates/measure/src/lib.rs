//! What a measurement is: units, clocks, samples, statistics and the record. Knows no network.
//!
//! * [`clock`]: the tick counter of the hot loops, calibrated, and what a stamp costs;
//! * [`samples`]: where every message's time goes while it is hot, and what becomes of it
//!   afterwards;
//! * [`stats`]: exact statistics of a set of latencies;
//! * [`step`]: whether the level of a series shifted while it was taken;
//! * [`placement`]: whether two CPUs were as near to each other as they are known to be;
//! * [`random`]: seeded numbers for synthetic data;
//! * [`units`]: sizes, ranges, durations and rates as people write and read them; [`text`]: what
//!   reports print of a record;
//! * [`environment`]: the machine, read from its files; [`conditions`]: the tuning that a point
//!   asks of it;
//! * [`files`]: reading and writing in directories that others may have laid out;
//! * [`quantity`]: the numbers of a point, a row each; [`table`]: the columns that show them;
//! * [`presentation`]: what a report shows of each pattern;
//! * [`expectation`], [`figure`], [`finding`] and [`record`]: what is stored; [`schema`]: the
//!   same as JSON Schema; [`store`]: how it is stored.
//!
//! Functions return [`Error`] for faults of a user, a file or the system. They panic only for
//! defects of this program.

pub mod clock;
pub mod conditions;
pub mod environment;
mod error;
pub mod expectation;
pub mod figure;
pub mod files;
pub mod finding;
pub mod placement;
pub mod presentation;
pub mod quantity;
pub mod random;
pub mod record;
pub mod samples;
pub mod schema;
pub mod selection;
pub mod stats;
pub mod step;
pub mod store;
pub mod table;
pub mod text;
pub mod units;
pub mod villas;

pub use error::{Error, Result};
