//! The words of one-way messages: which stamp a message carries.

use crate::point::choice::choice;

choice! {
    /// Which stamp a message carries in its first eight bytes.
    pub enum Stamp {
        /// When the device fetched the message. The sender writes the time into the message
        /// repeatedly until it knows that the message was sent.
        Sent = "sent",
        /// When the message was posted. The sender keeps this stamp, and the message carries none.
        Submitted = "submitted",
    }
}
