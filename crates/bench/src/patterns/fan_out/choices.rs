//! Choices of a fan-out: which ranks are connected, and how a rank learns that bytes have arrived.

use crate::point::choice::choice;

choice! {
    /// Which ranks of a point are connected.
    pub enum Mesh {
        /// Every rank with every other, although few of them talk: what a device must know costs it
        /// its caches.
        Full = "full",
        /// Those that talk to each other.
        Star = "star",
    }
}

choice! {
    /// How it is learnt that bytes have come.
    pub enum Notify {
        /// By a completion: of the receive, or of the operation that fetches them.
        Completion = "completion",
        /// By the last byte of the memory that they come to, which is polled: devices are relied on
        /// to write it last.
        Memory = "memory",
    }
}
