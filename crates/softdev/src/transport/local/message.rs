//! The line of a message in a lane.

use std::sync::atomic::Ordering::Relaxed;

use verbs::abi::*;

use crate::memory::copy::store_payload;
use crate::memory::layout::SharedQp;
use crate::memory::slots::{
    FLAG_BOUNCED, FLAG_GLOBAL, FLAG_IMM, FLAG_IN_SLOT, FLAG_SOLICITED, FLAG_WRITE, Slot,
};
use crate::sys::clock;
use crate::transport::message::Message;

impl Message<'_> {
    /// Writes the content of the completion, and a payload that fits. `sender` is the number of
    /// this queue pair; for a datagram, with the number of its GIDs.
    #[inline(always)]
    pub(crate) fn describe(
        &self,
        shared: &SharedQp,
        slot: &Slot,
        bytes: u64,
        status: ibv_wc_status,
        payload: Payload,
        sender: u32,
    ) {
        let message = self;
        let in_slot = payload == Payload::InSlot;
        if in_slot {
            // SAFETY: the pieces are readable: the requester located them for this message.
            unsafe { store_payload(message.pieces, &slot.payload) };
        }
        let flag = |on: bool, flag: u8| if on { flag } else { 0 };
        slot.byte_len.store(bytes as u32, Relaxed);
        slot.imm.store(message.imm.unwrap_or(0), Relaxed);
        slot.sender.store(sender, Relaxed);
        slot.status.store(status as u8, Relaxed);
        slot.flags.store(
            flag(in_slot, FLAG_IN_SLOT)
                | flag(payload == Payload::Bounced, FLAG_BOUNCED)
                | flag(message.imm.is_some(), FLAG_IMM)
                | flag(message.solicited, FLAG_SOLICITED)
                | flag(message.written, FLAG_WRITE)
                | flag(message.datagram.is_some_and(|d| d.ends.is_some()), FLAG_GLOBAL),
            Relaxed,
        );
        if shared.stamped.load(Relaxed) != 0 {
            slot.set_stamp(clock::now());
        }
        if let Some(datagram) = message.datagram {
            slot.service_level.store(datagram.service_level | datagram.device << 4, Relaxed);
            slot.traffic_class.store(datagram.traffic_class, Relaxed);
        }
    }
}

/// The place of a payload when its message is shown.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Payload {
    /// In the message's own cache line.
    InSlot,
    /// In the lane's own memory.
    Bounced,
    /// In the receive's memory, or nowhere.
    Placed,
}
