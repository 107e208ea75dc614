//! The commands of a rig, with the words of commands and answers.

/// Commands. The answer's first word is an error number, 0 for success.
pub mod op {
    pub const GID: u64 = 0;
    pub const PD: u64 = 1;
    pub const DEALLOC_PD: u64 = 2;
    pub const CHANNEL: u64 = 3;
    pub const DESTROY_CHANNEL: u64 = 4;
    pub const CQ: u64 = 5;
    pub const DESTROY_CQ: u64 = 6;
    pub const MR: u64 = 7;
    pub const DEREG: u64 = 8;
    pub const QP: u64 = 9;
    pub const DESTROY_QP: u64 = 10;
    pub const AH: u64 = 11;
    pub const DESTROY_AH: u64 = 12;
    pub const MODIFY: u64 = 13;
    pub const QUERY: u64 = 14;
    pub const SEND: u64 = 15;
    pub const RECEIVE: u64 = 16;
    pub const POLL: u64 = 17;
    pub const FILL: u64 = 18;
    pub const CHECK: u64 = 19;
    pub const READ: u64 = 20;
    pub const ARM: u64 = 21;
    pub const EVENT: u64 = 22;
    pub const ACK: u64 = 23;
    pub const NONBLOCK: u64 = 24;
    pub const READY: u64 = 25;
    pub const DESCRIPTORS: u64 = 26;
    pub const SHARED_KIB: u64 = 27;
    pub const CLOSE: u64 = 28;
    pub const EXCHANGE: u64 = 29;
    pub const RELEASE: u64 = 30;
    pub const REGION: u64 = 31;
    pub const DEVICE: u64 = 32;
    pub const AWAIT: u64 = 33;
    pub const VOLLEY: u64 = 34;
    pub const COUNT: u64 = 35;
    pub const INCREMENT: u64 = 36;
    pub const PUT: u64 = 37;
    pub const PORT: u64 = 38;
    pub const DEPTHS: u64 = 39;
    pub const ALARM: u64 = 40;
    pub const SRQ: u64 = 41;
    pub const MODIFY_SRQ: u64 = 42;
    pub const QUERY_SRQ: u64 = 43;
    pub const DESTROY_SRQ: u64 = 44;
    pub const RECEIVE_SHARED: u64 = 45;
    pub const DEVICE_EX: u64 = 60;
    pub const PORT_EX: u64 = 61;
    pub const CLOCK: u64 = 62;
    pub const CQ_EX: u64 = 63;
    pub const RESIZE: u64 = 64;
    pub const START_POLL: u64 = 65;
    pub const NEXT_POLL: u64 = 66;
    pub const END_POLL: u64 = 67;
    pub const QP_EX: u64 = 68;
    pub const WR: u64 = 69;
    pub const SRQ_EX: u64 = 70;
    pub const UNMAP: u64 = 71;
    pub const TRUNCATE: u64 = 72;
    pub const ASYNC: u64 = 80;
    pub const ASYNC_ACK: u64 = 81;
    pub const ASYNC_NONBLOCK: u64 = 82;
    pub const ATTACH: u64 = 83;
    pub const DETACH: u64 = 84;
    pub const LAST: u64 = DETACH;

    /// The LID of all groups on InfiniBand.
    pub const GROUP_LID: u16 = 0xc001;
}

/// Commands of the connection manager. `address_words` converts addresses to words.
pub mod cm {
    /// An event channel.
    pub const CHANNEL: u64 = 200;
    pub const DESTROY_CHANNEL: u64 = 201;
    /// Channel + 1, or 0 for none; port space.
    pub const ID: u64 = 202;
    pub const DESTROY_ID: u64 = 203;
    /// Identifier, address.
    pub const BIND: u64 = 204;
    /// Identifier, milliseconds, destination, source if there is one.
    pub const RESOLVE_ADDR: u64 = 205;
    pub const RESOLVE_ROUTE: u64 = 206;
    /// Identifier, backlog.
    pub const LISTEN: u64 = 207;
    /// Identifier, parameters.
    pub const CONNECT: u64 = 208;
    pub const ACCEPT: u64 = 209;
    /// Identifier, private data.
    pub const REJECT: u64 = 210;
    pub const DISCONNECT: u64 = 211;
    pub const ESTABLISH: u64 = 212;
    /// Identifier, asynchronous event.
    pub const NOTIFY: u64 = 213;
    /// Identifier, state. Returns a mask and attributes.
    pub const ATTRIBUTES: u64 = 214;
    /// Identifier, service, sends, receives.
    pub const CREATE_QP: u64 = 215;
    /// The queue pair of an identifier: domain, queues, queue pair, its number.
    pub const PAIR: u64 = 216;
    pub const DESTROY_QP: u64 = 217;
    /// Channel.
    pub const EVENT: u64 = 218;
    /// Channel, milliseconds.
    pub const READY: u64 = 219;
    pub const NONBLOCK: u64 = 220;
    /// Replaces a channel's descriptor by a duplicate.
    pub const DUPLICATE: u64 = 221;
    /// Identifier, channel + 1, or 0 for none.
    pub const MIGRATE: u64 = 222;
    /// Identifier, option, bytes, value.
    pub const OPTION: u64 = 223;
    /// The ports of an identifier.
    pub const PORTS: u64 = 224;
    /// The addresses in the structure of an identifier.
    pub const ADDRESSES: u64 = 225;
    /// Identifier, group.
    pub const JOIN: u64 = 226;
    pub const LEAVE: u64 = 227;
    /// Flags, port space, transport service, address: `rdma_create_ep` with a queue pair, for the
    /// result of `rdma_getaddrinfo`.
    pub const ENDPOINT: u64 = 228;
    /// The request that a synchronous listener takes.
    pub const REQUEST: u64 = 229;
    /// The last event of a synchronous identifier.
    pub const OWN_EVENT: u64 = 230;
    /// The addresses of the device's port.
    pub const OWN_ADDRESSES: u64 = 231;
    pub const LAST: u64 = OWN_ADDRESSES;
}

/// Steps of a work request builder.
pub mod wr {
    pub const START: u64 = 0;
    pub const COMPLETE: u64 = 1;
    pub const ABORT: u64 = 2;
    /// Identifier and flags of the following requests.
    pub const TAG: u64 = 3;
    pub const SEND: u64 = 4;
    pub const SEND_IMM: u64 = 5;
    pub const WRITE: u64 = 6;
    pub const WRITE_IMM: u64 = 7;
    pub const READ: u64 = 8;
    pub const CMP_SWP: u64 = 9;
    pub const FETCH_ADD: u64 = 10;
    pub const SEND_INV: u64 = 11;
    pub const BIND_MW: u64 = 12;
    pub const LOCAL_INV: u64 = 13;
    pub const TSO: u64 = 14;
    pub const ATOMIC_WRITE: u64 = 15;
    /// Address handle, queue-pair number, Q_Key.
    pub const UD_ADDR: u64 = 16;
    pub const XRC_SRQN: u64 = 17;
    /// An element.
    pub const SGE: u64 = 18;
    /// Elements.
    pub const SGES: u64 = 19;
    /// Region, offset, length.
    pub const INLINE: u64 = 20;
    /// The same, several times.
    pub const INLINES: u64 = 21;
}

/// The words of a gather or scatter element: region, offset, length, key (0 for the region's key).
pub type Element = [u64; 4];

/// The word for key 0 in an element.
pub const KEY_ZERO: u64 = 1 << 40;

/// The number of words of a completion in the answer of a poll.
pub const WC_WORDS: usize = 9;
