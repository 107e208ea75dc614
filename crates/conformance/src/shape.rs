//! The vocabulary of the cases: completions, requests, queue pairs, connections.

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
    pub slid: u16,
}

impl Wc {
    /// Returns whether the request itself has failed: it neither succeeded nor was flushed after
    /// the failure of another request.
    pub fn has_failed(&self) -> bool {
        ![IBV_WC_SUCCESS, IBV_WC_WR_FLUSH_ERR].contains(&self.status)
    }
}

/// A completion of an extended completion queue, read member by member.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Read {
    pub wc: Wc,
    /// Ticks of the device's clock.
    pub stamp: u64,
    /// Nanoseconds since 1970.
    pub wallclock: u64,
}

/// Returns the identifiers of completions, in their order.
pub fn ids(found: &[Wc]) -> Vec<u64> {
    found.iter().map(|wc| wc.id).collect()
}

/// Attributes of a port.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct PortFacts {
    pub lid: u16,
    pub sm_lid: u16,
    pub link_layer: u8,
    pub state: ibv_port_state,
}

/// A place in the memory of the peer: address and remote key.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Remote {
    pub addr: u64,
    pub key: u32,
}

impl Remote {
    /// Returns the place `offset` bytes further on.
    pub fn at(self, offset: u64) -> Self {
        Self { addr: self.addr.wrapping_add(offset), ..self }
    }

    /// Returns the same address with another key.
    pub fn by(self, key: u32) -> Self {
        Self { key, ..self }
    }
}

/// A request for the send queue.
#[derive(Clone, Debug)]
pub struct Send {
    pub id: u64,
    pub flags: u32,
    pub opcode: u32,
    pub imm: u32,
    /// Address handle, queue-pair number, Q_Key.
    pub to: Option<(usize, u32, u32)>,
    /// The place that a one-sided operation accesses.
    pub remote: Remote,
    /// The operand that an atomic compares with or adds, and the operand that it swaps in.
    pub operands: [u64; 2],
    pub elements: Vec<Element>,
}

/// The services that every device supports.
pub const SERVICES: [ibv_qp_type; 3] = [IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD];

/// The options of a queue pair, its completion queues and its region.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    pub service: ibv_qp_type,
    pub sends: u32,
    pub receives: u32,
    pub elements: u32,
    pub inline: u32,
    pub all_signaled: bool,
    pub entries: u32,
    /// Bytes of the region.
    pub bytes: usize,
    /// Access flags of the region.
    pub access: u32,
    /// The region is memory of the program, not of the device.
    pub own_memory: bool,
    /// The shared receive queue of the queue pair.
    pub srq: Option<usize>,
}

impl Shape {
    /// Returns the usual shape with a region that allows peers to read, write and use atomics.
    pub fn open(service: ibv_qp_type) -> Self {
        Self { access: IBV_ACCESS_LOCAL_WRITE | REMOTE, ..Self::of(service) }
    }

    /// Returns the words of a command that creates a queue pair.
    pub fn words(&self, pd: usize, cqs: [usize; 2]) -> Vec<u64> {
        let caps = [self.service, self.sends, self.receives, self.elements, self.elements, self.inline];
        let objects = [pd, cqs[0], cqs[1]].map(|i| i as u64);
        let all_signaled = u64::from(self.all_signaled);
        let shared = self.srq.map(|srq| srq as u64);
        objects.into_iter().chain(caps.map(u64::from)).chain([all_signaled]).chain(shared).collect()
    }

    /// Returns the usual shape.
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
            access: IBV_ACCESS_LOCAL_WRITE,
            own_memory: false,
            srq: None,
        }
    }
}

/// A queue pair with its domain, queues and region, each by its number in the rig.
#[derive(Clone, Copy, Debug)]
pub struct Side {
    pub service: ibv_qp_type,
    pub pd: usize,
    pub send_cq: usize,
    pub receive_cq: usize,
    pub region: usize,
    /// The start of the region, for peers.
    pub remote: Remote,
    pub qp: usize,
    pub number: u32,
    pub origin: Origin,
    pub gid: [u64; 2],
    /// The capacity that the device granted, in work requests.
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
    /// Access flags of the queue pairs.
    pub access: u32,
    /// Outstanding reads and atomics as requester (`max_rd_atomic`), and as responder
    /// (`max_dest_rd_atomic`).
    pub depth: u8,
    pub resources: u8,
}

/// All flags of remote access.
pub const REMOTE: u32 = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;

impl Tuning {
    /// The usual attributes. The timeout is half a second, because an emulated machine may stand
    /// still as long.
    pub const USUAL: Self = Self {
        mtu: IBV_MTU_1024,
        timeout: 17,
        retries: 7,
        rnr_retries: 7,
        rnr_timer: 12,
        psn: 0x00ab_cdef,
        access: 0,
        depth: 1,
        resources: 1,
    };

    /// The usual attributes, with all remote access.
    pub const OPEN: Self = Self { access: REMOTE, ..Self::USUAL };
}

impl Default for Tuning {
    fn default() -> Self {
        Self::USUAL
    }
}

/// The Q_Key of every datagram queue pair.
pub const QKEY: u32 = 0x1122_3344;

impl Side {
    /// Returns an element in the region.
    pub fn at(&self, offset: usize, len: usize) -> Element {
        [self.region as u64, offset as u64, len as u64, 0]
    }

    /// Returns a place in the region, for peers.
    pub fn spot(&self, offset: usize) -> Remote {
        self.remote.at(offset as u64)
    }
}

impl Send {
    /// Returns a signalled Send.
    pub fn new(id: u64, elements: &[Element]) -> Self {
        Self {
            id,
            flags: IBV_SEND_SIGNALED,
            opcode: IBV_WR_SEND,
            imm: 0,
            to: None,
            remote: Remote::default(),
            operands: [0; 2],
            elements: elements.to_vec(),
        }
    }

    /// Returns a signalled RDMA write.
    pub fn write(id: u64, elements: &[Element], remote: Remote) -> Self {
        Self { opcode: IBV_WR_RDMA_WRITE, remote, ..Self::new(id, elements) }
    }

    /// Returns a signalled RDMA read.
    pub fn read(id: u64, elements: &[Element], remote: Remote) -> Self {
        Self { opcode: IBV_WR_RDMA_READ, remote, ..Self::new(id, elements) }
    }

    /// Returns a signalled compare-and-swap.
    pub fn compare_swap(id: u64, element: Element, remote: Remote, compare: u64, swap: u64) -> Self {
        let operands = [compare, swap];
        Self { opcode: IBV_WR_ATOMIC_CMP_AND_SWP, remote, operands, ..Self::new(id, &[element]) }
    }

    /// Returns a signalled fetch-and-add.
    pub fn fetch_add(id: u64, element: Element, remote: Remote, addend: u64) -> Self {
        let operands = [addend, 0];
        Self { opcode: IBV_WR_ATOMIC_FETCH_AND_ADD, remote, operands, ..Self::new(id, &[element]) }
    }

    /// Makes the request unsignalled.
    pub fn unsignaled(mut self) -> Self {
        self.flags &= !IBV_SEND_SIGNALED;
        self
    }

    /// Adds a flag (`IBV_SEND_*`).
    pub fn flag(mut self, flag: u32) -> Self {
        self.flags |= flag;
        self
    }

    /// Adds immediate data.
    pub fn immediate(mut self, data: u32) -> Self {
        let writes = self.opcode == IBV_WR_RDMA_WRITE;
        self.opcode = if writes { IBV_WR_RDMA_WRITE_WITH_IMM } else { IBV_WR_SEND_WITH_IMM };
        self.imm = data;
        self
    }

    /// Sets the destination of a datagram: address handle, queue-pair number, Q_Key.
    pub fn to(mut self, handle: usize, number: u32, qkey: u32) -> Self {
        self.to = Some((handle, number, qkey));
        self
    }
}

/// The parameters of a connection: set by a program, and reported by an event of the peer.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Parameters {
    pub data: Vec<u8>,
    pub responder_resources: u8,
    pub initiator_depth: u8,
    pub flow_control: u8,
    pub retries: u8,
    pub rnr_retries: u8,
    pub srq: u8,
    pub qp_num: u32,
}

impl Default for Parameters {
    /// Returns the usual parameters, for a queue pair that librdmacm has created.
    fn default() -> Self {
        Self {
            data: Vec::new(),
            responder_resources: 1,
            initiator_depth: 1,
            flow_control: 1,
            retries: 7,
            rnr_retries: 7,
            srq: 0,
            qp_num: 0,
        }
    }
}

impl Parameters {
    /// Returns the usual parameters with private data.
    pub fn with(data: &[u8]) -> Self {
        Self { data: data.to_vec(), ..Self::default() }
    }

    /// Returns the usual parameters for a queue pair that the program has created.
    pub fn of(qp_num: u32) -> Self {
        Self { qp_num, ..Self::default() }
    }
}

impl Parameters {
    /// Returns the words of a command on an identifier.
    pub fn words(&self, id: usize) -> Vec<u64> {
        let limits = [self.responder_resources, self.initiator_depth, self.flow_control];
        let counts = [self.retries, self.rnr_retries, self.srq];
        let mut words = vec![id as u64];
        words.extend(limits.into_iter().chain(counts).map(u64::from));
        words.push(self.qp_num.into());
        words.extend(self.data.iter().map(|byte| u64::from(*byte)));
        words
    }
}

/// An event of the connection manager.
#[derive(Clone, Debug)]
pub struct CmEvent {
    pub kind: u32,
    pub status: i32,
    pub id: usize,
    /// The listener of a request.
    pub listener: Option<usize>,
    /// The parameters of a connection. For datagrams only the private data is set.
    pub parameters: Parameters,
    /// The destination, for datagrams only: queue-pair number, Q_Key and route.
    pub qp_num: u32,
    pub qkey: u32,
    pub route: ibv_ah_attr,
}
