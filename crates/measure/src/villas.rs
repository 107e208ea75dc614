//! The text formats in which VILLASnode logs samples: `csv` and `villas.human` (VILLASnode,
//! lib/formats).
//!
//! ```text
//! csv           # secs,nsecs,offset,sequence,signal0,signal1
//!               1553857456,105018123,0.000001524,7,0.25,-1.0
//! villas.human  # seconds.nanoseconds+offset(sequence)  signal0  signal1
//!               1553857456.105018123+1.524000e-06(7)  0.25  -1.0
//! ```
//!
//! The origin is when a sample was generated, by `CLOCK_REALTIME`. The offset is the time from then
//! until it was received, in seconds.

mod read;
mod write;

pub use read::{LogName, Logged, read};
pub use write::{Format, Head};
