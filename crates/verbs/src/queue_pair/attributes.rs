//! The attributes of queue pairs.

use crate::abi::*;
use crate::address::Route;
use crate::port::Mtu;

/// Transport service (IBTA vol. 1, section 9.2).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Service {
    /// Reliable connection.
    Rc,
    /// Unreliable connection.
    Uc,
    /// Unreliable datagram.
    Ud,
}

impl Service {
    pub(super) fn raw(self) -> ibv_qp_type {
        match self {
            Self::Rc => IBV_QPT_RC,
            Self::Uc => IBV_QPT_UC,
            Self::Ud => IBV_QPT_UD,
        }
    }
}

/// The attributes for making a queue pair (`ibv_qp_cap`).
#[derive(Clone, Copy, Debug)]
pub struct QueuePairOptions {
    /// Transport service.
    pub service: Service,
    /// Depth of the send queue.
    pub max_send_wr: u32,
    /// Depth of the receive queue.
    pub max_recv_wr: u32,
    /// Elements of a send request.
    pub max_send_sge: u32,
    /// Elements of a receive request.
    pub max_recv_sge: u32,
    /// Bytes that may be sent inline.
    pub max_inline_data: u32,
}

/// The attributes for initialising a queue pair.
#[derive(Clone, Copy, Debug)]
pub struct Initialisation {
    /// Local port, from 1.
    pub port: u8,
    /// Index of the partition key.
    pub pkey_index: u16,
    /// The key that protects datagrams; unused by connected services.
    pub qkey: u32,
    /// The access of peers (`IBV_ACCESS_REMOTE_*`); unused by datagrams.
    pub access: u32,
}

/// The attributes for connecting a queue pair with its peer.
#[derive(Clone, Copy, Debug)]
pub struct Connection {
    /// The number of the peer's queue pair.
    pub qp_num: u32,
    /// The first packet sequence number that the peer sends.
    pub peer_psn: u32,
    /// The first packet sequence number that this queue pair sends.
    pub own_psn: u32,
    /// Path MTU.
    pub mtu: Mtu,
    /// The route to the peer.
    pub route: Route,
    /// The local ACK timeout, as the exponent n of 4.096 us x 2^n; 0 waits for ever. RC only.
    pub timeout: u8,
    /// How often a request is repeated without an answer. RC only.
    pub retry_count: u8,
    /// How often a request is repeated if the peer has no posted receive; 7 repeats for ever. RC
    /// only.
    pub rnr_retry: u8,
    /// The code of the time that the peer must wait if no receive is posted (IBTA vol. 1, table
    /// 45). RC only.
    pub min_rnr_timer: u8,
    /// The RDMA Reads and atomics of the peer that are answered at the same time. RC only.
    pub responder_reads: u8,
    /// The outstanding RDMA Reads and atomics of this queue pair. RC only.
    pub initiator_reads: u8,
}
