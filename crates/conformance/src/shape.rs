//! What the cases speak of: completions, requests, queue pairs, connections.

use verbs::abi::*;

use crate::rig::Element;
use crate::subject::Origin;

/// A completion.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Wc {
    pub id: u64,
    pub status: u32,
    pub opcode: u32,
    pub byte_len: u32,
    pub imm: u32,
    pub qp: u32,
    pub src_qp: u32,
    pub flags: u32,
}

/// A send request.
#[derive(Clone, Debug)]
pub struct Send {
    pub id: u64,
    pub flags: u32,
    pub opcode: u32,
    pub imm: u32,
    /// Address handle, queue-pair number, Q_Key.
    pub to: Option<(usize, u32, u32)>,
    pub elements: Vec<Element>,
}

/// What a queue pair is made with.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    pub service: ibv_qp_type,
    pub sends: u32,
    pub receives: u32,
    pub elements: u32,
    pub inline: u32,
    pub all_signaled: bool,
    pub entries: u32,
    /// Bytes of the one region.
    pub bytes: usize,
    /// The region is of the program's memory, not of the device's.
    pub own_memory: bool,
}

impl Shape {
    /// The usual one.
    pub fn of(service: ibv_qp_type) -> Self {
        Self {
            service,
            sends: 16,
            receives: 16,
            elements: 4,
            inline: 64,
            all_signaled: false,
            entries: 256,
            bytes: 1 << 16,
            own_memory: false,
        }
    }
}

/// A queue pair with all that it needs, by number.
#[derive(Clone, Copy, Debug)]
pub struct Side {
    pub service: ibv_qp_type,
    pub pd: usize,
    pub send_cq: usize,
    pub receive_cq: usize,
    pub region: usize,
    pub qp: usize,
    pub number: u32,
    pub origin: Origin,
    pub gid: [u64; 2],
    /// Work requests that the device gave room for.
    pub sends: u32,
    pub receives: u32,
    pub inline: u32,
}

/// How two queue pairs are connected.
#[derive(Clone, Copy, Debug)]
pub struct Tuning {
    pub mtu: ibv_mtu,
    pub timeout: u8,
    pub retries: u8,
    pub rnr_retries: u8,
    pub rnr_timer: u8,
    /// First packet sequence number of both directions.
    pub psn: u32,
}

impl Default for Tuning {
    fn default() -> Self {
        Self { mtu: IBV_MTU_1024, timeout: 14, retries: 7, rnr_retries: 7, rnr_timer: 12, psn: 0x00ab_cdef }
    }
}

/// Q_Key of every datagram queue pair.
pub const QKEY: u32 = 0x1122_3344;

impl Side {
    /// An element of the region.
    pub fn at(&self, offset: usize, len: usize) -> Element {
        [self.region as u64, offset as u64, len as u64, 0]
    }
}

impl Send {
    /// A signalled Send.
    pub fn new(id: u64, elements: &[Element]) -> Self {
        let elements = elements.to_vec();
        Self { id, flags: IBV_SEND_SIGNALED, opcode: IBV_WR_SEND, imm: 0, to: None, elements }
    }

    /// Asks for no completion.
    pub fn unsignaled(mut self) -> Self {
        self.flags &= !IBV_SEND_SIGNALED;
        self
    }

    /// With a flag (`IBV_SEND_*`).
    pub fn flag(mut self, flag: u32) -> Self {
        self.flags |= flag;
        self
    }

    /// With immediate data.
    pub fn immediate(mut self, data: u32) -> Self {
        (self.opcode, self.imm) = (IBV_WR_SEND_WITH_IMM, data);
        self
    }

    /// Where a datagram goes: address handle, queue-pair number, Q_Key.
    pub fn to(mut self, handle: usize, number: u32, qkey: u32) -> Self {
        self.to = Some((handle, number, qkey));
        self
    }
}
