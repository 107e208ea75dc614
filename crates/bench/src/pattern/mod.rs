//! Patterns: what is done with two endpoints, and what is timed.
//!
//! A pattern allocates, formats and locks nothing, and knows no kind of endpoint and no kind of recorder: it is compiled
//! for each.

mod fan_out;
mod fetch;
pub mod one_way;
pub mod open_loop;
pub mod overhead;
pub(crate) mod pairs;
mod ping_pong;
pub(crate) mod pipeline;
mod progress;
pub mod prtt;
mod push;
mod stream;
#[cfg(test)]
pub(crate) mod times;
mod watch;

pub use fan_out::{fetching_hub, fetching_spoke, hub, spoke};
pub use fetch::fetch;
pub use overhead::Calls;
pub use ping_pong::ping_pong;
pub use progress::{Progress, at, counts};
pub use push::push;
pub use stream::{Flood, Flow, stream};
pub use watch::Watch;

use std::time::Duration;

use measure::clock::{Clock, Ticks};

/// How long a pattern measures.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Span {
    /// For a time; rank 0 says when it is over.
    For(Duration),
    /// For a number of messages in each direction.
    Messages(u64),
}

impl Span {
    /// The number of messages, and the stamp, at which what began then is over; the one that it does not limit is beyond
    /// reach.
    fn end(self, clock: Clock, begin: Ticks) -> (u64, u64) {
        match self {
            Self::Messages(messages) => (messages, u64::MAX),
            Self::For(time) => (u64::MAX, begin.0.saturating_add(clock.ticks(time))),
        }
    }
}
