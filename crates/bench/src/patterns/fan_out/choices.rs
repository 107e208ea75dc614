//! The words of a fan-out: which ranks are connected, and how a rank learns that bytes have
//! arrived.

use crate::point::choice::choice;

choice! {
    /// Which ranks of a point are connected.
    pub enum Mesh {
        /// Every rank with every other, although few of them exchange messages: the state of many
        /// queue pairs may exceed a device's caches.
        Full = "full",
        /// Only ranks that exchange messages.
        Star = "star",
    }
}

choice! {
    /// How a rank learns that bytes have arrived.
    pub enum Notify {
        /// By a completion: of the receive, or of the operation that fetches the bytes.
        Completion = "completion",
        /// By polling the last byte of the memory that receives them. This relies on the device to
        /// write that byte last.
        Memory = "memory",
    }
}
