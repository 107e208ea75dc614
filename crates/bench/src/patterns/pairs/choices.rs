//! The words of several pairs: what they do.

use crate::point::choice::choice;

choice! {
    /// What several pairs do at the same time.
    pub enum Traffic {
        /// A message goes forth and one comes back, each begun by all pairs of a host together.
        PingPong = "ping_pong",
        /// A flood with a bounded outstanding window, counted in the time that all pairs are at it.
        Stream = "stream",
    }
}
