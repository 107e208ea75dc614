//! What is done with endpoints, and what is timed: a room for each pattern.

pub(crate) mod fan_out;
pub(crate) mod one_way;
pub(crate) mod open_loop;
pub(crate) mod overhead;
pub(crate) mod pairs;
pub(crate) mod ping_pong;
pub(crate) mod pipeline;
pub(crate) mod prtt;
pub(crate) mod stream;
