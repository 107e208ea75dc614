//! The commands that a program writes.

use rustix::io::Errno;

use crate::abi::fields::Fields;
use crate::abi::sockaddr::{Address, IN6_BYTES};
use crate::abi::{MAX_PRIVATE_DATA, Space};

/// The size of a `struct rdma_ucm_cmd_hdr`.
pub(crate) const HEADER_BYTES: usize = 8;

/// A command, with the address for its answer if it has one.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum Command {
    CreateId {
        uid: u64,
        response: u64,
        space: Space,
        service: u8,
    },
    DestroyId {
        response: u64,
        id: u32,
    },
    Bind {
        id: u32,
        address: Address,
    },
    ResolveAddress {
        id: u32,
        source: Address,
        destination: Address,
    },
    ResolveRoute {
        id: u32,
    },
    QueryRoute {
        response: u64,
        id: u32,
    },
    Query {
        response: u64,
        id: u32,
        what: u32,
    },
    Connect {
        id: u32,
        parameters: Parameters,
    },
    Listen {
        id: u32,
        backlog: i32,
    },
    /// Without parameters: the program has received the response, and its queue pair is ready.
    Accept {
        uid: u64,
        id: u32,
        parameters: Option<Parameters>,
    },
    Reject {
        id: u32,
        reason: u8,
        private_data: PrivateData,
    },
    Disconnect {
        id: u32,
    },
    InitQpAttr {
        response: u64,
        id: u32,
        state: u32,
    },
    GetEvent {
        response: u64,
    },
    SetOption {
        id: u32,
        level: u32,
        name: u32,
        value: u64,
        length: u32,
    },
    Notify {
        id: u32,
        event: u32,
    },
    JoinMulticast {
        response: u64,
        uid: u64,
        id: u32,
        address: Address,
        flags: u16,
    },
    LeaveMulticast {
        response: u64,
        id: u32,
    },
    MigrateId {
        response: u64,
        id: u32,
        descriptor: i32,
    },
}

/// The parameters of a connection (`struct rdma_ucm_conn_param`; man rdma_connect).
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Parameters {
    pub(crate) qp_num: u32,
    pub(crate) private_data: PrivateData,
    pub(crate) srq: bool,
    pub(crate) responder_resources: u8,
    pub(crate) initiator_depth: u8,
    pub(crate) flow_control: bool,
    pub(crate) retry_count: u8,
    pub(crate) rnr_retry_count: u8,
}

/// The program's private data.
#[derive(Clone, Eq, PartialEq)]
pub(crate) struct PrivateData {
    bytes: [u8; MAX_PRIVATE_DATA],
    length: u8,
}

impl PrivateData {
    /// Returns the valid bytes.
    #[must_use]
    pub(crate) fn get(&self) -> &[u8] {
        &self.bytes[..self.length.into()]
    }
}

impl std::fmt::Debug for PrivateData {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.get().fmt(f)
    }
}

/// A command, and the space for its answer in bytes.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Written {
    pub(crate) command: Command,
    pub(crate) room: usize,
}

impl Written {
    /// Reads a written command.
    ///
    /// # Errors
    /// As the kernel (drivers/infiniband/core/ucma.c): `EINVAL` for a command that is too short or
    /// unknown or has invalid values, `ENOSYS` for a command that was removed.
    pub(crate) fn read(bytes: &[u8]) -> Result<Self, Errno> {
        let header = Fields(bytes);
        if bytes.len() < HEADER_BYTES {
            return Err(Errno::INVAL);
        }
        let body = bytes.get(HEADER_BYTES..HEADER_BYTES + usize::from(header.u16(4))).ok_or(Errno::INVAL)?;
        let command = Command::read(header.u32(0), body)?;
        Ok(Self { command, room: header.u16(6).into() })
    }
}

impl Command {
    fn read(number: u32, body: &[u8]) -> Result<Self, Errno> {
        let least = *LEAST_BYTES.get(number as usize).ok_or(Errno::INVAL)?;
        if body.len() < least {
            return Err(Errno::INVAL);
        }
        let f = Fields(body);
        let address = |at: usize, bytes: usize| Address::read(&body[at..at + bytes]);
        let sized = |at: usize, bytes: u16| sized(&body[at..], bytes);
        Ok(match number {
            0 => {
                let space = Space::of(f.u16(16)).ok_or(Errno::INVAL)?;
                Self::CreateId { uid: f.u64(0), response: f.u64(8), space, service: f.u8(18) }
            }
            1 => Self::DestroyId { response: f.u64(0), id: f.u32(8) },
            2 => Self::Bind { id: f.u32(36), address: address(8, IN6_BYTES) },
            3 => Self::ResolveAddress {
                id: f.u32(56),
                source: address(0, IN6_BYTES),
                destination: address(28, IN6_BYTES),
            },
            4 => Self::ResolveRoute { id: f.u32(0) },
            5 => Self::QueryRoute { response: f.u64(0), id: f.u32(8) },
            6 => {
                let parameters = Parameters::read(&body[..PARAMETERS_BYTES]).ok_or(Errno::INVAL)?;
                Self::Connect { id: f.u32(272), parameters }
            }
            7 => Self::Listen { id: f.u32(0), backlog: f.u32(4).cast_signed() },
            8 => Self::Accept {
                uid: f.u64(0),
                id: f.u32(280),
                parameters: Parameters::read(&body[8..8 + PARAMETERS_BYTES]),
            },
            9 => Self::Reject { id: f.u32(0), reason: f.u8(5), private_data: private_data(f, 8, 4) },
            10 => Self::Disconnect { id: f.u32(0) },
            11 => Self::InitQpAttr { response: f.u64(0), id: f.u32(8), state: f.u32(12) },
            12 => Self::GetEvent { response: f.u64(0) },
            14 => Self::SetOption {
                id: f.u32(8),
                level: f.u32(12),
                name: f.u32(16),
                value: f.u64(0),
                length: f.u32(20),
            },
            15 => Self::Notify { id: f.u32(0), event: f.u32(4) },
            16 => Self::JoinMulticast {
                response: f.u64(0),
                uid: f.u64(8),
                id: f.u32(44),
                address: address(16, IN6_BYTES),
                flags: 0,
            },
            17 => Self::LeaveMulticast { response: f.u64(0), id: f.u32(8) },
            18 => Self::MigrateId { response: f.u64(0), id: f.u32(8), descriptor: f.u32(12).cast_signed() },
            19 => Self::Query { response: f.u64(0), id: f.u32(8), what: f.u32(12) },
            20 => Self::Bind { id: f.u32(0), address: sized(8, f.u16(4))? },
            21 => {
                let source = if f.u16(8) == 0 { Address::None } else { sized(16, f.u16(8))? };
                Self::ResolveAddress { id: f.u32(0), source, destination: sized(144, f.u16(10))? }
            }
            22 => Self::JoinMulticast {
                response: f.u64(0),
                uid: f.u64(8),
                id: f.u32(16),
                address: sized(24, f.u16(20))?,
                flags: f.u16(22),
            },
            _ => return Err(Errno::NOSYS),
        })
    }
}

/// The minimum size of each command, by its number. Newer programs send more; bytes behind the last
/// field that all programs send are ignored.
const LEAST_BYTES: [usize; 23] =
    [19, 12, 40, 64, 8, 12, 276, 8, 284, 264, 4, 16, 8, 0, 24, 8, 48, 12, 16, 16, 136, 272, 152];

/// The size of a `struct rdma_ucm_conn_param`.
const PARAMETERS_BYTES: usize = 272;

/// Reads an address of a stated size, which must be that of its family.
fn sized(bytes: &[u8], size: u16) -> Result<Address, Errno> {
    let address = Address::read(bytes);
    if size != 0 && address.bytes() == usize::from(size) { Ok(address) } else { Err(Errno::INVAL) }
}

fn private_data(f: Fields<'_>, at: usize, length_at: usize) -> PrivateData {
    PrivateData { bytes: f.array(at), length: f.u8(length_at) }
}

impl Parameters {
    /// Reads the parameters of a structure, unless it is marked as empty.
    fn read(bytes: &[u8]) -> Option<Self> {
        let f = Fields(bytes);
        (f.u8(271) != 0).then(|| Self {
            qp_num: f.u32(0) & 0xff_ffff,
            private_data: private_data(f, 8, 264),
            srq: f.u8(265) != 0,
            responder_resources: f.u8(266),
            initiator_depth: f.u8(267),
            flow_control: f.u8(268) != 0,
            retry_count: f.u8(269),
            rnr_retry_count: f.u8(270),
        })
    }
}
