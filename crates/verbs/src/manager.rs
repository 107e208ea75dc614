//! Connections by the communication manager of librdmacm (`rdma_cm(7)`).
//!
//! The manager finds the way to an address, tells the peers each other's queue-pair numbers and
//! sequence numbers, and knows when both are there. The queue pairs are made and driven like any
//! others (`rdma_connect(3)`: "if a QP is not created on the rdma_cm_id"), so that what is measured
//! differs in nothing but the set-up.

use std::ffi::{c_char, c_int, c_void};
use std::net::{IpAddr, SocketAddr};
use std::sync::OnceLock;
use std::time::Duration;

use crate::abi::rdma_cm::*;
use crate::abi::*;
use crate::address::AddressHandle;
use crate::context::Transport;
use crate::error::{Error, Result};
use crate::library::{Library, Missing};
use crate::memory::ProtectionDomain;
use crate::queue_pair::{Connection, Init, QueuePair, ReadyToSend, Service};
use crate::sockaddr::Sockaddr;

/// The functions of librdmacm that are used, with the contracts of their man pages.
pub struct Manager {
    create_event_channel: unsafe extern "C" fn() -> *mut rdma_event_channel,
    destroy_event_channel: unsafe extern "C" fn(*mut rdma_event_channel),
    create_id:
        unsafe extern "C" fn(*mut rdma_event_channel, *mut *mut rdma_cm_id, *mut c_void, c_int) -> c_int,
    destroy_id: unsafe extern "C" fn(*mut rdma_cm_id) -> c_int,
    bind_addr: unsafe extern "C" fn(*mut rdma_cm_id, *const libc::sockaddr) -> c_int,
    get_src_port: unsafe extern "C" fn(*mut rdma_cm_id) -> u16,
    listen: unsafe extern "C" fn(*mut rdma_cm_id, c_int) -> c_int,
    resolve_addr:
        unsafe extern "C" fn(*mut rdma_cm_id, *const libc::sockaddr, *const libc::sockaddr, c_int) -> c_int,
    resolve_route: unsafe extern "C" fn(*mut rdma_cm_id, c_int) -> c_int,
    connect: unsafe extern "C" fn(*mut rdma_cm_id, *mut rdma_conn_param) -> c_int,
    accept: unsafe extern "C" fn(*mut rdma_cm_id, *mut rdma_conn_param) -> c_int,
    establish: unsafe extern "C" fn(*mut rdma_cm_id) -> c_int,
    disconnect: unsafe extern "C" fn(*mut rdma_cm_id) -> c_int,
    init_qp_attr: unsafe extern "C" fn(*mut rdma_cm_id, *mut ibv_qp_attr, *mut c_int) -> c_int,
    get_cm_event: unsafe extern "C" fn(*mut rdma_event_channel, *mut *mut rdma_cm_event) -> c_int,
    ack_cm_event: unsafe extern "C" fn(*mut rdma_cm_event) -> c_int,
    event_str: unsafe extern "C" fn(u32) -> *const c_char,
    set_option: unsafe extern "C" fn(*mut rdma_cm_id, c_int, c_int, *mut c_void, usize) -> c_int,
}

/// The system's librdmacm, which stays open as long as the process.
///
/// # Errors
/// When the library or a function of it is missing; always the same answer.
pub fn manager() -> std::result::Result<&'static Manager, &'static Missing> {
    static MANAGER: OnceLock<std::result::Result<Manager, Missing>> = OnceLock::new();
    MANAGER.get_or_init(load).as_ref()
}

fn load() -> std::result::Result<Manager, Missing> {
    let library = Library::open("librdmacm.so.1", "rdma-core", "librdmacm1")?;
    // SAFETY: the types are those of the declarations in rdma-core, which keeps them stable.
    Ok(unsafe {
        Manager {
            create_event_channel: library.function(c"rdma_create_event_channel")?,
            destroy_event_channel: library.function(c"rdma_destroy_event_channel")?,
            create_id: library.function(c"rdma_create_id")?,
            destroy_id: library.function(c"rdma_destroy_id")?,
            bind_addr: library.function(c"rdma_bind_addr")?,
            get_src_port: library.function(c"rdma_get_src_port")?,
            listen: library.function(c"rdma_listen")?,
            resolve_addr: library.function(c"rdma_resolve_addr")?,
            resolve_route: library.function(c"rdma_resolve_route")?,
            connect: library.function(c"rdma_connect")?,
            accept: library.function(c"rdma_accept")?,
            establish: library.function(c"rdma_establish")?,
            disconnect: library.function(c"rdma_disconnect")?,
            init_qp_attr: library.function(c"rdma_init_qp_attr")?,
            get_cm_event: library.function(c"rdma_get_cm_event")?,
            ack_cm_event: library.function(c"rdma_ack_cm_event")?,
            event_str: library.function(c"rdma_event_str")?,
            set_option: library.function(c"rdma_set_option")?,
        }
    })
}

/// A place to wait for events; each identifier has one of its own, so that events need no sorting.
struct Channel {
    manager: &'static Manager,
    raw: *mut rdma_event_channel,
}

impl Drop for Channel {
    fn drop(&mut self) {
        // SAFETY: the channel is alive; identifiers that report to it are dropped before it.
        unsafe { (self.manager.destroy_event_channel)(self.raw) };
    }
}

/// An identifier: the manager's end of a connection.
struct Id {
    raw: *mut rdma_cm_id,
    /// Shared by a listener and what it accepts, hence counted.
    channel: std::sync::Arc<Channel>,
}

// SAFETY: librdmacm is thread-safe (rdma_cm(7)), and an identifier is used by one owner at a time.
unsafe impl Send for Id {}
// SAFETY: as for `Id`; a channel is only waited on by the owner of an identifier.
unsafe impl Send for Channel {}
// SAFETY: as above.
unsafe impl Sync for Channel {}

impl Drop for Id {
    fn drop(&mut self) {
        let manager = self.channel.manager;
        // SAFETY: the identifier is alive and every event of it was acknowledged; its queue pair is
        // not the manager's.
        unsafe {
            (manager.disconnect)(self.raw);
            (manager.destroy_id)(self.raw);
        }
    }
}

/// What an event said; it is acknowledged when it has been read.
struct Event {
    kind: u32,
    /// The identifier of a request for a connection.
    id: *mut rdma_cm_id,
    param: rdma_cm_event_param,
    /// First byte of the private data, the peer's number of the connection.
    tag: Option<u8>,
}

impl Id {
    fn new(manager: &'static Manager, service: Service) -> Result<Self> {
        // SAFETY: the function has no preconditions.
        let raw_channel = unsafe { (manager.create_event_channel)() };
        if raw_channel.is_null() {
            return Err(Error::last("rdma_create_event_channel", "librdmacm"));
        }
        let channel = std::sync::Arc::new(Channel { manager, raw: raw_channel });
        // SAFETY: the descriptor is open. Waiting is done by poll, with a limit.
        unsafe { libc::fcntl((*raw_channel).fd, libc::F_SETFL, libc::O_NONBLOCK) };
        let space = if service == Service::Ud { RDMA_PS_UDP } else { RDMA_PS_TCP };
        let mut raw = std::ptr::null_mut();
        // SAFETY: the channel is alive and the result is writable.
        let returned = unsafe { (manager.create_id)(raw_channel, &raw mut raw, std::ptr::null_mut(), space) };
        Error::check("rdma_create_id", || "librdmacm".to_owned(), returned)?;
        Ok(Self { raw, channel })
    }

    fn manager(&self) -> &'static Manager {
        self.channel.manager
    }

    /// The next event, which must be of this kind.
    fn expect(&self, kind: u32, patience: Duration) -> Result<Event> {
        let event = self.event(kind, patience)?;
        if event.kind == kind {
            return Ok(event);
        }
        Err(Error::Manager { wanted: self.name(kind), got: self.name(event.kind) })
    }

    fn event(&self, wanted: u32, patience: Duration) -> Result<Event> {
        let manager = self.manager();
        // SAFETY: the channel is alive.
        let fd = unsafe { (*self.channel.raw).fd };
        let mut polled = libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
        let timeout = i32::try_from(patience.as_millis()).unwrap_or(i32::MAX);
        // SAFETY: the one element is writable.
        let ready = unsafe { libc::poll(&raw mut polled, 1, timeout) };
        if ready == 0 {
            let waited = format!("nothing within {:.1} s", patience.as_secs_f64());
            return Err(Error::Manager { wanted: self.name(wanted), got: waited });
        }
        let mut raw = std::ptr::null_mut();
        // SAFETY: the channel is alive and the result is writable.
        let returned = unsafe { (manager.get_cm_event)(self.channel.raw, &raw mut raw) };
        Error::check("rdma_get_cm_event", || self.name(wanted), returned)?;
        // SAFETY: the event is valid until it is acknowledged, which is below.
        let (kind, id, status, param) = unsafe { ((*raw).event, (*raw).id, (*raw).status, (*raw).param) };
        // SAFETY: both members of the union begin with the private data; every event has one or
        // zeroes.
        let (data, len) = unsafe { (param.conn.private_data, param.conn.private_data_len) };
        let tag = (len > 0 && !data.is_null()).then(|| {
            // SAFETY: the private data has `len` bytes until the event is acknowledged.
            unsafe { *data.cast::<u8>() }
        });
        // SAFETY: the event was just taken and is not used any more.
        unsafe { (manager.ack_cm_event)(raw) };
        if status != 0 {
            let got = format!("{} ({})", self.name(kind), crate::error::describe(status.abs()));
            return Err(Error::Manager { wanted: self.name(wanted), got });
        }
        Ok(Event { kind, id, param, tag })
    }

    fn name(&self, kind: u32) -> String {
        // SAFETY: the function takes any number and gives a string that lives for ever.
        let text = unsafe { std::ffi::CStr::from_ptr((self.manager().event_str)(kind)) };
        text.to_string_lossy().into_owned()
    }

    /// What the manager wants a queue pair's attributes to be in a state.
    fn attributes(&self, state: ibv_qp_state) -> Result<(ibv_qp_attr, u32)> {
        let mut attr = ibv_qp_attr { qp_state: state, ..ibv_qp_attr::default() };
        let mut mask = 0;
        // SAFETY: the identifier is alive and both results are writable.
        let returned = unsafe { (self.manager().init_qp_attr)(self.raw, &raw mut attr, &raw mut mask) };
        Error::check("rdma_init_qp_attr", || crate::transition::state_name(state).to_owned(), returned)?;
        Ok((attr, mask.cast_unsigned()))
    }

    /// Takes a queue pair to RTS with the manager's addresses and our own timing. On iWARP the
    /// adapter does it.
    fn ready(
        &self,
        pair: QueuePair<Init>,
        tuning: &Connection,
        transport: Transport,
    ) -> Result<QueuePair<ReadyToSend>> {
        if transport == Transport::Iwarp {
            return Ok(pair.assume_connected());
        }
        let (mut attr, mask) = self.attributes(IBV_QPS_RTR)?;
        attr.path_mtu = tuning.mtu.code();
        attr.max_dest_rd_atomic = tuning.responder_reads;
        attr.min_rnr_timer = tuning.min_rnr_timer;
        let pair = pair.ready_to_receive_as(&mut attr, mask)?;
        let (mut attr, mask) = self.attributes(IBV_QPS_RTS)?;
        attr.timeout = tuning.timeout;
        attr.retry_cnt = tuning.retry_count;
        attr.rnr_retry = tuning.rnr_retry;
        attr.max_rd_atomic = tuning.initiator_reads;
        pair.ready_to_send_as(&mut attr, mask)
    }

    /// The parameters of a connection; `tag` must live until the call that takes them returns.
    fn parameters(qp_num: u32, tuning: &Connection, tag: &u8) -> rdma_conn_param {
        rdma_conn_param {
            private_data: (&raw const *tag).cast(),
            private_data_len: 1,
            responder_resources: tuning.responder_reads,
            initiator_depth: tuning.initiator_reads,
            flow_control: 1,
            retry_count: tuning.retry_count,
            rnr_retry_count: tuning.rnr_retry,
            srq: 0,
            qp_num,
        }
    }

    fn sets_traffic_class(&self, class: u8) {
        if class == 0 {
            return;
        }
        let mut class = class;
        let value = (&raw mut class).cast();
        // A manager that cannot do it goes on without, as a network does that does not look at it.
        // SAFETY: the identifier is alive and the option is one readable byte.
        unsafe { (self.manager().set_option)(self.raw, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, value, 1) };
    }
}

/// Waits for peers at an address.
pub struct Listener {
    id: Id,
    service: Service,
    address: SocketAddr,
}

/// A connection that is up. Dropping it takes it down.
pub struct Link {
    _id: Id,
    /// Where the peer's datagrams go, on the side that asked for the connection.
    datagram: Option<rdma_ud_param>,
}

impl Link {
    /// The peer's queue pair as the manager found it, for datagrams; only on the side that asked.
    ///
    /// # Errors
    /// When the device refuses the route.
    pub fn address_handle(&self, domain: &ProtectionDomain) -> Result<Option<AddressHandle>> {
        self.datagram.map(|peer| domain.address_handle_of(&mut { peer.ah_attr })).transpose()
    }
}

impl Manager {
    /// Waits at an address of a port of this host.
    ///
    /// # Errors
    /// When the address belongs to no RDMA device.
    pub fn listen(&'static self, service: Service, address: SocketAddr) -> Result<Listener> {
        /// Connections of one point that wait to be taken.
        const BACKLOG: c_int = 64;
        let id = Id::new(self, service)?;
        let socket = Sockaddr::new(address);
        // SAFETY: the identifier is alive and the address is readable.
        let returned = unsafe { (self.bind_addr)(id.raw, socket.as_ptr()) };
        Error::check("rdma_bind_addr", || address.ip().to_string(), returned)?;
        // SAFETY: the identifier is bound.
        let returned = unsafe { (self.listen)(id.raw, BACKLOG) };
        Error::check("rdma_listen", || address.ip().to_string(), returned)?;
        // SAFETY: the identifier is bound. The port is in network byte order.
        let port = u16::from_be(unsafe { (self.get_src_port)(id.raw) });
        Ok(Listener { id, service, address: SocketAddr::new(address.ip(), port) })
    }

    /// Connects a queue pair from an address of this host to a listener. `tag` tells it which of
    /// several connections this is.
    ///
    /// # Errors
    /// What the manager says, or that it says nothing within `patience` a step.
    pub fn connect(
        &'static self,
        pair: QueuePair<Init>,
        from: IpAddr,
        to: SocketAddr,
        tuning: &Connection,
        tag: u8,
        patience: Duration,
    ) -> Result<(QueuePair<ReadyToSend>, Link)> {
        let service = pair.service();
        let transport = pair.transport();
        let id = Id::new(self, service)?;
        id.sets_traffic_class(tuning.route.global.map_or(0, |global| global.traffic_class));
        let limit = c_int::try_from(patience.as_millis()).unwrap_or(c_int::MAX);
        let from = Sockaddr::new(SocketAddr::new(from, 0));
        let there = Sockaddr::new(to);
        // SAFETY: the identifier is alive and both addresses are readable.
        let returned = unsafe { (self.resolve_addr)(id.raw, from.as_ptr(), there.as_ptr(), limit) };
        Error::check("rdma_resolve_addr", || to.to_string(), returned)?;
        id.expect(RDMA_CM_EVENT_ADDR_RESOLVED, patience)?;
        // SAFETY: the address is resolved.
        let returned = unsafe { (self.resolve_route)(id.raw, limit) };
        Error::check("rdma_resolve_route", || to.to_string(), returned)?;
        id.expect(RDMA_CM_EVENT_ROUTE_RESOLVED, patience)?;
        let mut parameters = Id::parameters(pair.number(), tuning, &tag);
        // SAFETY: the route is resolved; the parameters and the tag that they point to are
        // readable.
        let returned = unsafe { (self.connect)(id.raw, &raw mut parameters) };
        Error::check("rdma_connect", || to.to_string(), returned)?;
        if service == Service::Ud {
            let event = id.expect(RDMA_CM_EVENT_ESTABLISHED, patience)?;
            // SAFETY: an established datagram identifier's event has the datagram parameters.
            let datagram = Some(unsafe { event.param.ud });
            let pair = pair.ready_to_receive(tuning)?.ready_to_send(tuning)?;
            return Ok((pair, Link { _id: id, datagram }));
        }
        let answer = if transport == Transport::Iwarp {
            RDMA_CM_EVENT_ESTABLISHED
        } else {
            RDMA_CM_EVENT_CONNECT_RESPONSE
        };
        id.expect(answer, patience)?;
        let pair = id.ready(pair, tuning, transport)?;
        if transport != Transport::Iwarp {
            // SAFETY: the queue pair is ready, which is what this tells the peer.
            let returned = unsafe { (self.establish)(id.raw) };
            Error::check("rdma_establish", || to.to_string(), returned)?;
        }
        Ok((pair, Link { _id: id, datagram: None }))
    }
}

impl Listener {
    /// Where peers find it.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Takes the next connection, which must have this tag, and connects the queue pair with it.
    ///
    /// # Errors
    /// What the manager says, or that it says nothing within `patience` a step.
    pub fn accept(
        &self,
        pair: QueuePair<Init>,
        tuning: &Connection,
        tag: u8,
        patience: Duration,
    ) -> Result<(QueuePair<ReadyToSend>, Link)> {
        let manager = self.id.manager();
        let request = self.id.expect(RDMA_CM_EVENT_CONNECT_REQUEST, patience)?;
        let id = Id { raw: request.id, channel: std::sync::Arc::clone(&self.id.channel) };
        if self.service != Service::Ud && request.tag != Some(tag) {
            let got = format!("one with the number {:?}", request.tag);
            return Err(Error::Manager { wanted: format!("a request for connection {tag}"), got });
        }
        let transport = pair.transport();
        let mut parameters = Id::parameters(pair.number(), tuning, &tag);
        let pair = match (self.service, transport) {
            (Service::Ud, _) => pair.ready_to_receive(tuning)?.ready_to_send(tuning)?,
            _ => id.ready(pair, tuning, transport)?,
        };
        // SAFETY: the identifier is that of a request that nobody has answered; the parameters are
        // readable.
        let returned = unsafe { (manager.accept)(id.raw, &raw mut parameters) };
        Error::check("rdma_accept", || self.address.to_string(), returned)?;
        if self.service != Service::Ud {
            id.expect(RDMA_CM_EVENT_ESTABLISHED, patience)?;
        }
        Ok((pair, Link { _id: id, datagram: None }))
    }
}
