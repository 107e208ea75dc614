//! Answers to commands, and events: structures written to a program's memory.

use std::net::SocketAddr;

use rustix::io::Errno;

use crate::abi::fields::put;
use crate::abi::sockaddr::{self, IN6_BYTES, STORAGE_BYTES};
use crate::abi::{EventKind, MAX_PRIVATE_DATA};

/// The bytes of an answer, and how many of them every program must have space for.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Answer {
    bytes: Vec<u8>,
    least: usize,
}

impl Answer {
    fn new(bytes: Vec<u8>, least: usize) -> Self {
        Self { bytes, least }
    }

    /// A single number: the number of an identifier, or how many of its events were reported.
    #[must_use]
    pub(crate) fn number(number: u32) -> Self {
        Self::new(number.to_ne_bytes().to_vec(), 4)
    }

    /// Returns as many bytes as fit.
    ///
    /// # Errors
    /// `ENOSPC` if the part that every program knows does not fit.
    pub(crate) fn fit(&self, room: usize) -> Result<&[u8], Errno> {
        if room < self.least {
            return Err(Errno::NOSPC);
        }
        Ok(&self.bytes[..self.bytes.len().min(room)])
    }
}

/// A path between two ports.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct Path {
    pub(crate) destination_gid: [u8; 16],
    pub(crate) source_gid: [u8; 16],
    pub(crate) destination_lid: u16,
    pub(crate) source_lid: u16,
    pub(crate) hop_limit: u8,
    pub(crate) traffic_class: u8,
    /// As `enum ibv_mtu`.
    pub(crate) mtu: u8,
    /// The exponent n of 4.096 us x 2^n.
    pub(crate) packet_lifetime: u8,
}

/// The key of the default partition.
pub(crate) const PKEY: u16 = 0xffff;

/// The value is exact (`IB_SA_EQ`).
const EXACTLY: u8 = 2;

impl Path {
    /// `struct ib_user_path_rec`, 64 bytes.
    fn record(&self, to: &mut [u8]) {
        put(to, 0, &self.destination_gid);
        put(to, 16, &self.source_gid);
        put(to, 32, &self.destination_lid.to_be_bytes());
        put(to, 34, &self.source_lid.to_be_bytes());
        put(to, 44, &1_u32.to_ne_bytes()); // Reversible.
        put(to, 48, &u32::from(self.mtu).to_ne_bytes());
        put(to, 52, &PKEY.to_be_bytes());
        to[54] = self.hop_limit;
        to[55] = self.traffic_class;
        to[56] = 1; // Paths.
        to[58] = EXACTLY;
        to[59] = EXACTLY;
        to[61] = EXACTLY;
        to[62] = self.packet_lifetime;
    }

    /// The record of the subnet administrator, as on the wire (IBTA vol. 1, section 15.2.5.16), 64
    /// bytes.
    fn packed(&self, to: &mut [u8]) {
        put(to, 8, &self.destination_gid);
        put(to, 24, &self.source_gid);
        put(to, 40, &self.destination_lid.to_be_bytes());
        put(to, 42, &self.source_lid.to_be_bytes());
        put(to, 44, &u32::from(self.hop_limit).to_be_bytes());
        to[48] = self.traffic_class;
        to[49] = 0x80 | 1; // Reversible; one path.
        put(to, 50, &PKEY.to_be_bytes());
        to[54] = EXACTLY << 6 | self.mtu;
        to[55] = EXACTLY << 6;
        to[56] = EXACTLY << 6 | self.packet_lifetime;
    }
}

/// The route of an identifier, for queries of a program.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct Route {
    pub(crate) source: Option<SocketAddr>,
    pub(crate) destination: Option<SocketAddr>,
    /// The node GUID and port of the device that the identifier is bound to.
    pub(crate) device: Option<(u64, u8)>,
    /// The path; before it is resolved, it contains only GIDs.
    pub(crate) path: Option<Path>,
    pub(crate) is_resolved: bool,
    /// The service IDs of both sides.
    pub(crate) services: [u64; 2],
}

/// No number of a device: programs find devices by their GUIDs (`UCMA_INVALID_IB_INDEX`), because
/// softdev has no number in the kernel.
const NO_INDEX: u32 = u32::MAX;

impl Route {
    /// Returns the part that a program asks for by its number (`RDMA_USER_CM_QUERY_*`).
    #[must_use]
    pub(crate) fn part(&self, number: u32, room: usize) -> Option<Answer> {
        Some(match number {
            0 => self.addresses(),
            1 => self.paths(room),
            2 => self.gids(),
            _ => return None,
        })
    }

    fn guid_and_port(&self) -> ([u8; 8], u8) {
        self.device.map_or_else(Default::default, |(guid, port)| (guid.to_be_bytes(), port))
    }

    /// `struct rdma_ucm_query_route_resp`.
    #[must_use]
    pub(crate) fn whole(&self) -> Answer {
        let mut to = vec![0; 208];
        let (guid, port) = self.guid_and_port();
        put(&mut to, 0, &guid);
        if let Some(path) = self.path {
            path.record(&mut to[8..72]);
        }
        sockaddr::write(&mut to[136..136 + IN6_BYTES], self.source);
        sockaddr::write(&mut to[164..164 + IN6_BYTES], self.destination);
        put(&mut to, 192, &u32::from(self.is_resolved).to_ne_bytes());
        to[196] = port;
        put(&mut to, 200, &NO_INDEX.to_ne_bytes());
        Answer::new(to, 200)
    }

    /// `struct rdma_ucm_query_addr_resp` with the program's addresses.
    #[must_use]
    pub(crate) fn addresses(&self) -> Answer {
        let mut to = self.two_addresses(sockaddr::size(self.source), sockaddr::size(self.destination));
        sockaddr::write(&mut to[16..16 + STORAGE_BYTES], self.source);
        sockaddr::write(&mut to[144..144 + STORAGE_BYTES], self.destination);
        Answer::new(to, 272)
    }

    /// `struct rdma_ucm_query_addr_resp` with InfiniBand addresses.
    #[must_use]
    pub(crate) fn gids(&self) -> Answer {
        let mut to = self.two_addresses(sockaddr::ib_size(), sockaddr::ib_size());
        let path = self.path.unwrap_or_default();
        let pkey = if self.device.is_some() { PKEY } else { 0 };
        sockaddr::write_ib(&mut to[16..16 + STORAGE_BYTES], pkey, path.source_gid, self.services[0]);
        sockaddr::write_ib(&mut to[144..144 + STORAGE_BYTES], pkey, path.destination_gid, self.services[1]);
        Answer::new(to, 272)
    }

    fn two_addresses(&self, source: usize, destination: usize) -> Vec<u8> {
        let mut to = vec![0; 280];
        let (guid, port) = self.guid_and_port();
        put(&mut to, 0, &guid);
        to[8] = port;
        if self.device.is_some() {
            put(&mut to, 10, &PKEY.to_be_bytes());
        }
        put(&mut to, 12, &(source as u16).to_ne_bytes());
        put(&mut to, 14, &(destination as u16).to_ne_bytes());
        put(&mut to, 272, &NO_INDEX.to_ne_bytes());
        to
    }

    /// `struct rdma_ucm_query_path_resp`, with the path if there is one and it fits.
    #[must_use]
    pub(crate) fn paths(&self, room: usize) -> Answer {
        const HEAD: usize = 8;
        const EACH: usize = 72;
        /// `IB_PATH_GMP | IB_PATH_PRIMARY | IB_PATH_BIDIRECTIONAL`.
        const FLAGS: u32 = 1 | 2 | 0x10;
        let mut to = vec![0; HEAD];
        put(&mut to, 0, &u32::from(self.is_resolved).to_ne_bytes());
        if let Some(path) = self.path.filter(|_| self.is_resolved && room >= HEAD + EACH) {
            to.resize(HEAD + EACH, 0);
            put(&mut to, HEAD, &FLAGS.to_ne_bytes());
            path.packed(&mut to[HEAD + 8..]);
        }
        Answer::new(to, HEAD)
    }
}

/// The route of a packet (`struct ib_uverbs_ah_attr`).
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct AddressHandle {
    pub(crate) gid: [u8; 16],
    pub(crate) gid_index: u8,
    pub(crate) hop_limit: u8,
    pub(crate) traffic_class: u8,
    pub(crate) lid: u16,
    pub(crate) is_global: bool,
    pub(crate) port: u8,
}

impl AddressHandle {
    const BYTES: usize = 32;

    fn write(&self, to: &mut [u8]) {
        put(to, 0, &self.gid);
        to[20] = self.gid_index;
        to[21] = self.hop_limit;
        to[22] = self.traffic_class;
        put(to, 24, &self.lid.to_ne_bytes());
        to[29] = self.is_global.into();
        to[30] = self.port;
    }
}

/// Attributes for a queue pair (`struct ib_uverbs_qp_attr`).
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct QpAttributes {
    /// `IBV_QP_*`: the valid attributes.
    pub(crate) mask: u32,
    pub(crate) state: u32,
    pub(crate) path_mtu: u32,
    pub(crate) qkey: u32,
    pub(crate) rq_psn: u32,
    pub(crate) sq_psn: u32,
    pub(crate) dest_qp_num: u32,
    pub(crate) access: u32,
    pub(crate) address: AddressHandle,
    pub(crate) max_rd_atomic: u8,
    pub(crate) max_dest_rd_atomic: u8,
    pub(crate) min_rnr_timer: u8,
    pub(crate) port: u8,
    pub(crate) timeout: u8,
    pub(crate) retry_count: u8,
    pub(crate) rnr_retry: u8,
}

impl QpAttributes {
    /// The structure.
    #[must_use]
    pub(crate) fn answer(&self) -> Answer {
        let mut to = vec![0; 144];
        let words = [
            (0, self.mask),
            (4, self.state),
            (12, self.path_mtu),
            (20, self.qkey),
            (24, self.rq_psn),
            (28, self.sq_psn),
            (32, self.dest_qp_num),
            (36, self.access),
        ];
        words.iter().for_each(|(at, word)| put(&mut to, *at, &word.to_ne_bytes()));
        self.address.write(&mut to[40..40 + AddressHandle::BYTES]);
        to[130] = self.max_rd_atomic;
        to[131] = self.max_dest_rd_atomic;
        to[132] = self.min_rnr_timer;
        to[133] = self.port;
        to[134] = self.timeout;
        to[135] = self.retry_count;
        to[136] = self.rnr_retry;
        Answer::new(to, 144)
    }
}

/// An event (`struct rdma_ucm_event_resp`).
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Event {
    /// The program's name for the identifier, or for the group.
    pub(crate) uid: u64,
    pub(crate) id: u32,
    pub(crate) kind: EventKind,
    /// 0, a negative error number, or the peer's reason.
    pub(crate) status: i32,
    pub(crate) told: Told,
}

/// The further content of an event.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum Told {
    /// For a connection.
    Connection(ConnectionTold),
    /// For datagrams.
    Datagram { qp_num: u32, qkey: u32, address: AddressHandle, private_data: Vec<u8> },
}

/// The event's parameters of a connection (`struct rdma_ucm_conn_param`).
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(crate) struct ConnectionTold {
    pub(crate) qp_num: u32,
    /// The whole field of the message: bytes that the peer has not filled are zero.
    pub(crate) private_data: Vec<u8>,
    pub(crate) srq: bool,
    pub(crate) responder_resources: u8,
    pub(crate) initiator_depth: u8,
    pub(crate) flow_control: bool,
    pub(crate) retry_count: u8,
    pub(crate) rnr_retry_count: u8,
}

impl Default for Told {
    fn default() -> Self {
        Self::Connection(ConnectionTold::default())
    }
}

impl Event {
    /// The structure.
    #[must_use]
    pub(crate) fn answer(&self) -> Answer {
        const PARAMETERS: usize = 20;
        let mut to = vec![0; 336];
        put(&mut to, 0, &self.uid.to_ne_bytes());
        put(&mut to, 8, &self.id.to_ne_bytes());
        put(&mut to, 12, &(self.kind as u32).to_ne_bytes());
        put(&mut to, 16, &self.status.to_ne_bytes());
        let to_parameters = &mut to[PARAMETERS..];
        match &self.told {
            Told::Connection(told) => {
                let length = told.private_data.len().min(MAX_PRIVATE_DATA - 1);
                put(to_parameters, 0, &told.qp_num.to_ne_bytes());
                put(to_parameters, 8, &told.private_data[..length]);
                to_parameters[264] = length as u8;
                to_parameters[265] = told.srq.into();
                to_parameters[266] = told.responder_resources;
                to_parameters[267] = told.initiator_depth;
                to_parameters[268] = told.flow_control.into();
                to_parameters[269] = told.retry_count;
                to_parameters[270] = told.rnr_retry_count;
            }
            Told::Datagram { qp_num, qkey, address, private_data } => {
                let length = private_data.len().min(MAX_PRIVATE_DATA - 1);
                put(to_parameters, 0, &qp_num.to_ne_bytes());
                put(to_parameters, 4, &qkey.to_ne_bytes());
                address.write(&mut to_parameters[8..8 + AddressHandle::BYTES]);
                put(to_parameters, 40, &private_data[..length]);
                to_parameters[296] = length as u8;
            }
        }
        // Older programs, which do not know `reserved` and `ece`, have space only for the part
        // before them.
        Answer::new(to, 324)
    }
}
