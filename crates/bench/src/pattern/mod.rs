//! Patterns: what is done with two endpoints, and what is timed.
//!
//! A pattern allocates, formats and locks nothing, and knows no kind of endpoint and no kind of recorder: it is compiled
//! for each.

mod fetch;
mod ping_pong;
mod push;
mod stream;

pub use fetch::fetch;
pub use ping_pong::ping_pong;
pub use push::push;
pub use stream::{Flood, Flow, stream};

use std::time::Duration;

/// How long a pattern measures.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Span {
    /// For a time; rank 0 says when it is over.
    For(Duration),
    /// For a number of messages in each direction.
    Messages(u64),
}
