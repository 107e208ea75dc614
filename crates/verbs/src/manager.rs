//! Connections by the communication manager of librdmacm (`rdma_cm(7)`).
//!
//! The manager finds the route to an address, exchanges queue-pair numbers and sequence numbers
//! between the peers, and knows when both are connected. The queue pairs are made and used like all
//! others (`rdma_connect(3)`: "if a QP is not created on the rdma_cm_id"), so only the set-up
//! differs.

mod functions;
mod identifier;

use std::ffi::c_int;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

pub use functions::{Manager, is_emulated, manager};
pub use identifier::Channel;
use identifier::{Id, set_own_gid};

use crate::abi::rdma_cm::*;
use crate::address::AddressHandle;
use crate::context::Transport;
use crate::error::{Error, Result};
use crate::memory::ProtectionDomain;
use crate::queue_pair::{Connection, Init, QueuePair, ReadyToSend, Service};
use crate::sockaddr::Sockaddr;

/// A listener for connections to an address.
pub struct Listener {
    id: Id,
    service: Service,
    address: SocketAddr,
}

/// An established connection. Dropping it disconnects.
pub struct Link {
    id: Id,
    /// The address of the peer's datagrams, on the side that asked for the connection.
    datagram: Option<rdma_ud_param>,
}

impl Link {
    /// The address handle of the peer, as the manager found it. Only for datagrams, on the side
    /// that asked.
    ///
    /// # Errors
    /// The device refuses the route.
    pub fn address_handle(&self, domain: &ProtectionDomain) -> Result<Option<AddressHandle>> {
        self.datagram.map(|peer| domain.address_handle_of(&mut { peer.ah_attr })).transpose()
    }

    /// Ends the connection and waits for the peer's answer. For the side that asked for it.
    ///
    /// # Errors
    /// An error of the manager, or no answer of the peer within `patience`.
    pub fn disconnect(&self, patience: Duration) -> Result<()> {
        // SAFETY: the identifier is alive and connected; its queue pair is not the manager's.
        let returned = unsafe { (self.id.manager().disconnect)(self.id.raw) };
        Error::check("rdma_disconnect", || "a connection".to_owned(), returned)?;
        self.id.expect(RDMA_CM_EVENT_DISCONNECTED, patience).map(drop)
    }

    /// Answers the peer that has ended the connection.
    ///
    /// # Errors
    /// An error of the manager.
    pub fn answer_end(&self) -> Result<()> {
        // SAFETY: the identifier is alive; its queue pair is not the manager's.
        let returned = unsafe { (self.id.manager().disconnect)(self.id.raw) };
        Error::check("rdma_disconnect", || "a connection that its peer has ended".to_owned(), returned)
    }
}

impl Manager {
    /// Makes a channel for one connection.
    ///
    /// # Errors
    /// The kernel has no manager, or the process has no more descriptors.
    pub fn channel(&'static self) -> Result<Channel> {
        Channel::new(self)
    }

    /// Returns the name of the device that an address of this host belongs to; `None` if there is
    /// none.
    ///
    /// # Errors
    /// The manager does not work at all.
    pub fn device_of(&'static self, address: IpAddr) -> Result<Option<String>> {
        let id = Id::new(self.channel()?, Service::Rc)?;
        let socket = Sockaddr::new(SocketAddr::new(address, 0));
        // SAFETY: the identifier is alive and the address is readable.
        if unsafe { (self.bind_addr)(id.raw, socket.as_ptr()) } != 0 {
            return Ok(None);
        }
        // SAFETY: the identifier is alive. An identifier that is bound to a device's address has
        // the device's context, which librdmacm keeps open together with the device and its name.
        let name = unsafe {
            let context = (*id.raw).verbs.as_ref();
            context.map(|context| std::ffi::CStr::from_ptr((*context.device).name.as_ptr()))
        };
        Ok(name.map(|name| name.to_string_lossy().into_owned()))
    }

    /// Listens at an address of this host.
    ///
    /// # Errors
    /// The address belongs to no RDMA device.
    pub fn listen(&'static self, service: Service, address: SocketAddr) -> Result<Listener> {
        /// The connections of one point that may wait to be accepted.
        const BACKLOG: c_int = 64;
        let id = Id::new(self.channel()?, service)?;
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
}

impl Channel {
    /// Connects a queue pair from an address of this host to a listener. `tag` is the number of the
    /// connection, for the listener.
    ///
    /// # Errors
    /// An error of the manager, or no answer within `patience` in one of the steps.
    pub fn connect(
        self,
        pair: QueuePair<Init>,
        from: IpAddr,
        to: SocketAddr,
        tuning: &Connection,
        tag: u8,
        patience: Duration,
    ) -> Result<(QueuePair<ReadyToSend>, Link)> {
        let service = pair.service();
        let transport = pair.transport();
        let manager = self.manager;
        let id = Id::new(self, service)?;
        id.sets_traffic_class(tuning.route.global.map_or(0, |global| global.traffic_class));
        let limit = c_int::try_from(patience.as_millis()).unwrap_or(c_int::MAX);
        let from = Sockaddr::new(SocketAddr::new(from, 0));
        let there = Sockaddr::new(to);
        // SAFETY: the identifier is alive and both addresses are readable.
        let returned = unsafe { (manager.resolve_addr)(id.raw, from.as_ptr(), there.as_ptr(), limit) };
        Error::check("rdma_resolve_addr", || to.to_string(), returned)?;
        id.expect(RDMA_CM_EVENT_ADDR_RESOLVED, patience)?;
        // SAFETY: the address is resolved.
        let returned = unsafe { (manager.resolve_route)(id.raw, limit) };
        Error::check("rdma_resolve_route", || to.to_string(), returned)?;
        id.expect(RDMA_CM_EVENT_ROUTE_RESOLVED, patience)?;
        let mut parameters = Id::parameters(pair.number(), tuning, &tag);
        // SAFETY: the route is resolved; the parameters and the tag that they point to are
        // readable.
        let returned = unsafe { (manager.connect)(id.raw, &raw mut parameters) };
        Error::check("rdma_connect", || to.to_string(), returned)?;
        if service == Service::Ud {
            let event = id.expect(RDMA_CM_EVENT_ESTABLISHED, patience)?;
            // SAFETY: the event of an established datagram identifier has datagram parameters.
            let mut datagram = unsafe { event.param.ud };
            set_own_gid(&mut datagram.ah_attr, tuning);
            let datagram = Some(datagram);
            let pair = pair.ready_to_receive(tuning)?.ready_to_send(tuning)?;
            return Ok((pair, Link { id, datagram }));
        }
        let answer = if transport == Transport::Iwarp {
            RDMA_CM_EVENT_ESTABLISHED
        } else {
            RDMA_CM_EVENT_CONNECT_RESPONSE
        };
        id.expect(answer, patience)?;
        let pair = id.ready(pair, tuning, transport)?;
        if transport != Transport::Iwarp {
            // SAFETY: the queue pair is ready, and this call tells the peer so.
            let returned = unsafe { (manager.establish)(id.raw) };
            Error::check("rdma_establish", || to.to_string(), returned)?;
        }
        Ok((pair, Link { id, datagram: None }))
    }
}

impl Listener {
    /// The address for peers.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Accepts the next connection, which must have this tag, and connects the queue pair with it.
    ///
    /// # Errors
    /// An error of the manager, or no answer within `patience` in one of the steps.
    pub fn accept(
        &self,
        pair: QueuePair<Init>,
        tuning: &Connection,
        tag: u8,
        patience: Duration,
    ) -> Result<(QueuePair<ReadyToSend>, Link)> {
        let manager = self.id.manager();
        let request = self.id.expect(RDMA_CM_EVENT_CONNECT_REQUEST, patience)?;
        let id = Id { raw: request.id, channel: Arc::clone(&self.id.channel) };
        if self.service != Service::Ud && request.tag != Some(tag) {
            let got = format!("a request for connection {:?}", request.tag);
            return Err(Error::Manager { wanted: format!("a request for connection {tag}"), got });
        }
        let transport = pair.transport();
        let mut parameters = Id::parameters(pair.number(), tuning, &tag);
        let pair = match (self.service, transport) {
            (Service::Ud, _) => pair.ready_to_receive(tuning)?.ready_to_send(tuning)?,
            _ => id.ready(pair, tuning, transport)?,
        };
        // SAFETY: the identifier belongs to an unanswered request, and the parameters are readable.
        let returned = unsafe { (manager.accept)(id.raw, &raw mut parameters) };
        Error::check("rdma_accept", || self.address.to_string(), returned)?;
        if self.service != Service::Ud {
            id.expect(RDMA_CM_EVENT_ESTABLISHED, patience)?;
        }
        Ok((pair, Link { id, datagram: None }))
    }
    /// Waits until the peer of one of these connections ends it, and removes that connection from
    /// `links`, to be [answered](Link::answer_end). Dropping it answers the peer, too.
    ///
    /// # Errors
    /// An error of the manager, or no event within `patience`.
    pub fn ended(&self, links: &mut Vec<Link>, patience: Duration) -> Result<Link> {
        let event = loop {
            // Connections that were answered before may leave the state TIMEWAIT in the meantime.
            let event = self.id.event(RDMA_CM_EVENT_DISCONNECTED, patience)?;
            if event.kind != RDMA_CM_EVENT_TIMEWAIT_EXIT {
                break self.id.wanted(RDMA_CM_EVENT_DISCONNECTED, event)?;
            }
        };
        let found = links.iter().position(|link| link.id.raw == event.id);
        let got = || "the end of another connection".to_owned();
        let unknown = || Error::Manager { wanted: "the end of a connection".to_owned(), got: got() };
        found.map(|place| links.swap_remove(place)).ok_or_else(unknown)
    }
}
