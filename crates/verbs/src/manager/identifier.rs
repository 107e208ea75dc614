//! Identifiers of librdmacm, their channels and events.

use std::sync::Arc;
use std::time::Duration;

use super::functions::{Manager, is_emulated};
use crate::abi::rdma_cm::*;
use crate::abi::*;
use crate::context::Transport;
use crate::error::{Error, Result};
use crate::queue_pair::{Connection, Init, QueuePair, ReadyToSend, Service};

/// An event channel. Each connecting identifier has its own, so that events need no sorting; the
/// identifiers that a listener accepts share the listener's.
pub struct Channel {
    pub(super) manager: &'static Manager,
    raw: *mut rdma_event_channel,
}

impl Channel {
    pub(super) fn new(manager: &'static Manager) -> Result<Self> {
        // SAFETY: the function has no preconditions.
        let raw = unsafe { (manager.create_event_channel)() };
        if raw.is_null() {
            return Err(Error::last("rdma_create_event_channel", "librdmacm"));
        }
        // SAFETY: the descriptor is open. `poll` waits instead, with a time limit.
        unsafe { libc::fcntl((*raw).fd, libc::F_SETFL, libc::O_NONBLOCK) };
        Ok(Self { manager, raw })
    }
}

impl Drop for Channel {
    fn drop(&mut self) {
        // SAFETY: the channel is alive; identifiers that report to it are dropped before it.
        unsafe { (self.manager.destroy_event_channel)(self.raw) };
    }
}

/// An identifier: the manager's handle of a connection.
pub(super) struct Id {
    pub(super) raw: *mut rdma_cm_id,
    /// A listener and its accepted identifiers share it.
    pub(super) channel: Arc<Channel>,
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
        // SAFETY: the identifier is alive and all of its events are acknowledged; its queue pair is
        // not the manager's.
        unsafe {
            (manager.disconnect)(self.raw);
            (manager.destroy_id)(self.raw);
        }
    }
}

/// The content of an event, which is acknowledged after it was read.
pub(super) struct Event {
    pub(super) kind: u32,
    /// The identifier of the event: for a connection request, a new one.
    pub(super) id: *mut rdma_cm_id,
    pub(super) param: rdma_cm_event_param,
    /// The first byte of the private data: the peer's number of the connection.
    pub(super) tag: Option<u8>,
}

impl Id {
    pub(super) fn new(channel: Channel, service: Service) -> Result<Self> {
        let manager = channel.manager;
        let space = if service == Service::Ud { RDMA_PS_UDP } else { RDMA_PS_TCP };
        let mut raw = std::ptr::null_mut();
        // SAFETY: the channel is alive and the result is writable.
        let returned = unsafe { (manager.create_id)(channel.raw, &raw mut raw, std::ptr::null_mut(), space) };
        Error::check("rdma_create_id", || "librdmacm".to_owned(), returned)?;
        Ok(Self { raw, channel: Arc::new(channel) })
    }

    pub(super) fn manager(&self) -> &'static Manager {
        self.channel.manager
    }

    /// Waits for the next event, which must be of this kind.
    pub(super) fn expect(&self, kind: u32, patience: Duration) -> Result<Event> {
        self.wanted(kind, self.event(kind, patience)?)
    }

    /// Returns an event if it is of this kind.
    pub(super) fn wanted(&self, kind: u32, event: Event) -> Result<Event> {
        if event.kind == kind {
            return Ok(event);
        }
        Err(Error::Manager { wanted: self.name(kind), got: self.name(event.kind) })
    }

    /// Waits for the next event of any kind. Errors name the wanted kind.
    pub(super) fn event(&self, wanted: u32, patience: Duration) -> Result<Event> {
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
        // SAFETY: both members of the union begin with the private data; every event has private
        // data or zeroes.
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
        // SAFETY: the function accepts any number and returns a static string.
        let text = unsafe { std::ffi::CStr::from_ptr((self.manager().event_str)(kind)) };
        text.to_string_lossy().into_owned()
    }

    /// Returns the manager's attributes of a queue pair for a state.
    fn attributes(&self, state: ibv_qp_state) -> Result<(ibv_qp_attr, u32)> {
        let mut attr = ibv_qp_attr { qp_state: state, ..ibv_qp_attr::default() };
        let mut mask = 0;
        // SAFETY: the identifier is alive and both results are writable.
        let returned = unsafe { (self.manager().init_qp_attr)(self.raw, &raw mut attr, &raw mut mask) };
        Error::check("rdma_init_qp_attr", || crate::transition::state_name(state).to_owned(), returned)?;
        Ok((attr, mask.cast_unsigned()))
    }

    /// Moves a queue pair to RTS with the manager's addresses and the timing of `tuning`. On iWARP
    /// the adapter does this.
    pub(super) fn ready(
        &self,
        pair: QueuePair<Init>,
        tuning: &Connection,
        transport: Transport,
    ) -> Result<QueuePair<ReadyToSend>> {
        if transport == Transport::Iwarp {
            return Ok(pair.assume_connected());
        }
        let (mut attr, mask) = self.attributes(IBV_QPS_RTR)?;
        set_own_gid(&mut attr.ah_attr, tuning);
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

    /// Returns the parameters of a connection; `tag` must live until the call that uses them
    /// returns.
    pub(super) fn parameters(qp_num: u32, tuning: &Connection, tag: &u8) -> rdma_conn_param {
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

    pub(super) fn sets_traffic_class(&self, class: u8) {
        if class == 0 {
            return;
        }
        let mut class = class;
        let value = (&raw mut class).cast();
        // A manager without the option works without it, like a network that ignores the class.
        // SAFETY: the identifier is alive and the option is one readable byte.
        unsafe { (self.manager().set_option)(self.raw, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, value, 1) };
    }
}

/// Sets the own GID of a route if the manager is emulated: the library has a table of its own, in
/// which the same GID may have another index.
pub(super) fn set_own_gid(route: &mut ibv_ah_attr, tuning: &Connection) {
    if let (true, Some(global)) = (is_emulated(), tuning.route.global) {
        route.grh.sgid_index = global.gid_index;
    }
}
