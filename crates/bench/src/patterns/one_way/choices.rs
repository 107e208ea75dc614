//! The words of messages that are timed one way: which instant they carry.

use crate::point::choice::choice;

choice! {
    /// Which instant a message carries in its first eight bytes.
    pub enum Stamp {
        /// When the device fetched the message. The sender writes the time into the message again
        /// and again until it is known to be sent (V24).
        Sent = "sent",
        /// When it was posted. The sender keeps that, and the message carries none.
        Submitted = "submitted",
    }
}
