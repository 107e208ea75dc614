//! Commands on identifiers of the connection manager: addresses, connections, options.

use std::ffi::{CString, c_int};
use std::net::SocketAddr;
use std::ptr::null_mut;

use verbs::Sockaddr;
use verbs::abi::rdma_cm::*;
use verbs::abi::*;

use super::librdmacm::{Librdmacm, librdmacm};
use super::words::{address, address_words, gid_words};
use super::{Rig, attribute_words, cm, errno};

/// Returns librdmacm; the runner runs these cases only where it is installed.
pub(super) fn library() -> &'static Librdmacm {
    librdmacm().expect("the runner skips the manager's cases without librdmacm")
}

/// Returns the answer for a function's result: `errno`, or 0 for success.
pub(super) fn said(returned: c_int) -> Vec<u64> {
    vec![if returned == 0 { 0 } else { errno() }]
}

impl Rig {
    pub(super) fn manage(&mut self, command: u64, w: &[u64]) -> Vec<u64> {
        let library = library();
        let id = || self.manager.id(w[0]);
        // SAFETY: identifiers are alive until they are destroyed, and then lose their number.
        unsafe {
            match command {
                cm::ID => self.create_id(w),
                cm::DESTROY_ID => self.destroy_id(w[0]),
                cm::BIND => {
                    let to = Sockaddr::new(address(&w[1..]).expect("an address"));
                    said((library.rdma_bind_addr)(id(), to.as_ptr()))
                }
                cm::RESOLVE_ADDR => self.resolve_address(w),
                cm::RESOLVE_ROUTE => said((library.rdma_resolve_route)(id(), w[1] as c_int)),
                cm::LISTEN => said((library.rdma_listen)(id(), w[1] as c_int)),
                cm::CONNECT => self.parametrised(library.rdma_connect, w),
                cm::ACCEPT => self.parametrised(library.rdma_accept, w),
                cm::REJECT => {
                    let data: Vec<u8> = w[1..].iter().map(|w| *w as u8).collect();
                    said((library.rdma_reject)(id(), data.as_ptr().cast(), data.len() as u8))
                }
                cm::DISCONNECT => said((library.rdma_disconnect)(id())),
                cm::ESTABLISH => said((library.rdma_establish)(id())),
                cm::NOTIFY => said((library.rdma_notify)(id(), w[1] as c_int)),
                cm::ATTRIBUTES => self.attributes_of(w),
                cm::OPTION => {
                    let mut value = w[4].to_ne_bytes();
                    let bytes = w[3] as usize;
                    let value = value.as_mut_ptr().cast();
                    said((library.rdma_set_option)(id(), w[1] as c_int, w[2] as c_int, value, bytes))
                }
                cm::PORTS => {
                    let ports = [(library.rdma_get_src_port)(id()), (library.rdma_get_dst_port)(id())];
                    std::iter::once(0).chain(ports.map(|port| u16::from_be(port).into())).collect()
                }
                cm::ADDRESSES => {
                    let to = &(*id()).route.addr;
                    let both =
                        [&to.src_storage, &to.dst_storage].map(|from| address_words(Sockaddr::read(from)));
                    std::iter::once(0).chain(both.into_iter().flatten()).collect()
                }
                cm::JOIN | cm::LEAVE => self.group(command, w),
                cm::ENDPOINT => self.endpoint(w),
                cm::REQUEST => {
                    let mut made = null_mut();
                    let returned = (library.rdma_get_request)(id(), &raw mut made);
                    if returned == 0 { vec![0, self.manager.number(made)] } else { said(returned) }
                }
                cm::OWN_ADDRESSES => self.own_gids(),
                other => self.manage_pairs(other, w),
            }
        }
    }

    fn create_id(&mut self, w: &[u64]) -> Vec<u64> {
        let channel = self.manager.channel_or_none(w[0]);
        let mut id = null_mut();
        // SAFETY: the channel is null or alive, and the result is writable.
        let returned = unsafe { (library().rdma_create_id)(channel, &raw mut id, null_mut(), w[1] as c_int) };
        if returned == 0 { vec![0, self.manager.number(id)] } else { said(returned) }
    }

    fn destroy_id(&mut self, i: u64) -> Vec<u64> {
        let id = std::mem::replace(&mut self.manager.ids[i as usize], null_mut());
        // SAFETY: the identifier is alive, and its events were acknowledged.
        said(unsafe { (library().rdma_destroy_id)(id) })
    }

    fn resolve_address(&mut self, w: &[u64]) -> Vec<u64> {
        let id = self.manager.id(w[0]);
        let to = Sockaddr::new(address(&w[2..7]).expect("a destination"));
        let from = address(&w[7..]).map(Sockaddr::new);
        let from = from.as_ref().map_or(std::ptr::null(), Sockaddr::as_ptr);
        // SAFETY: the identifier is alive, and the addresses are null or readable.
        said(unsafe { (library().rdma_resolve_addr)(id, from, to.as_ptr(), w[1] as c_int) })
    }

    /// Connects or accepts. Words: identifier, responder resources, initiator depth, flow control,
    /// retries, RNR retries, shared receive queue, queue pair, private data.
    fn parametrised(
        &mut self,
        function: unsafe extern "C" fn(*mut rdma_cm_id, *mut rdma_conn_param) -> c_int,
        w: &[u64],
    ) -> Vec<u64> {
        let data: Vec<u8> = w[8..].iter().map(|w| *w as u8).collect();
        let mut parameters = rdma_conn_param {
            private_data: data.as_ptr().cast(),
            private_data_len: data.len() as u8,
            responder_resources: w[1] as u8,
            initiator_depth: w[2] as u8,
            flow_control: w[3] as u8,
            retry_count: w[4] as u8,
            rnr_retry_count: w[5] as u8,
            srq: w[6] as u8,
            qp_num: w[7] as u32,
        };
        // SAFETY: the identifier is alive, and the parameters and their data are readable.
        said(unsafe { function(self.manager.id(w[0]), &raw mut parameters) })
    }

    fn attributes_of(&mut self, w: &[u64]) -> Vec<u64> {
        let mut attr = ibv_qp_attr { qp_state: w[1] as u32, ..ibv_qp_attr::default() };
        let mut mask = 0;
        // SAFETY: the identifier is alive, and both results are writable.
        let returned =
            unsafe { (library().rdma_init_qp_attr)(self.manager.id(w[0]), &raw mut attr, &raw mut mask) };
        if returned != 0 {
            return said(returned);
        }
        [0, mask as u64].into_iter().chain(attribute_words(&attr)).collect()
    }

    fn group(&mut self, command: u64, w: &[u64]) -> Vec<u64> {
        let id = self.manager.id(w[0]);
        let to = Sockaddr::new(address(&w[1..]).expect("a group"));
        let to = to.as_ptr().cast_mut();
        // SAFETY: the identifier is alive and the address is readable; librdmacm does not write to
        // it.
        said(unsafe {
            match command {
                cm::JOIN => (library().rdma_join_multicast)(id, to, null_mut()),
                _ => (library().rdma_leave_multicast)(id, to),
            }
        })
    }

    fn endpoint(&mut self, w: &[u64]) -> Vec<u64> {
        let to: SocketAddr = address(&w[3..]).expect("an address");
        let node = CString::new(to.ip().to_string()).expect("digits");
        let service = CString::new(to.port().to_string()).expect("digits");
        // SAFETY: all-zero bytes are a valid rdma_addrinfo: integers and null pointers.
        let mut hints: rdma_addrinfo = unsafe { std::mem::zeroed() };
        hints.ai_flags = w[0] as c_int;
        hints.ai_port_space = w[1] as c_int;
        hints.ai_qp_type = w[2] as c_int;
        // SAFETY: all-zero bytes are a valid ibv_qp_init_attr: integers and null pointers.
        let mut init: ibv_qp_init_attr = unsafe { std::mem::zeroed() };
        init.cap = Self::CAP;
        let mut found = null_mut();
        let mut id = null_mut();
        // SAFETY: all pointers are null or readable, and the results are writable; the address
        // information is freed once.
        let returned = unsafe {
            let name = node.as_ptr();
            let searched =
                (library().rdma_getaddrinfo)(name, service.as_ptr(), &raw const hints, &raw mut found);
            if searched != 0 {
                return said(searched);
            }
            let returned = (library().rdma_create_ep)(&raw mut id, found, null_mut(), &raw mut init);
            let error = errno();
            (library().rdma_freeaddrinfo)(found);
            if returned == 0 { 0 } else { error }
        };
        if returned == 0 { vec![0, self.manager.number(id)] } else { vec![returned] }
    }

    /// Returns the GIDs of the port, two words each.
    fn own_gids(&self) -> Vec<u64> {
        let mut port = ibv_port_attr::default();
        // SAFETY: the context is open and the attributes are writable.
        let returned = unsafe { (self.provider.query_port)(self.context, self.port, &raw mut port) };
        assert_eq!(returned, 0, "the port exists");
        let gid = |index: c_int| {
            let mut gid = ibv_gid::default();
            // SAFETY: the context is open and the GID is writable.
            let returned = unsafe { (self.provider.query_gid)(self.context, self.port, index, &raw mut gid) };
            (returned == 0 && gid.raw != [0; 16]).then(|| gid_words(gid.raw))
        };
        std::iter::once(0).chain((0..port.gid_tbl_len).filter_map(gid).flatten()).collect()
    }
}
