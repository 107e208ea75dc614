//! The words for what pairs do.

use crate::point::choice::choice;

choice! {
    /// What several pairs do at the same time.
    pub enum Traffic {
        /// A message goes out and one comes back. All pairs of a host start each message together.
        PingPong = "ping_pong",
        /// Messages follow each other within a window, counted while all pairs send.
        Stream = "stream",
    }
}
