//! Addresses: GIDs, routes and address handles.

use std::fmt;
use std::sync::Arc;

use crate::abi::*;
use crate::error::{Error, Result};
use crate::memory::{PdInner, ProtectionDomain};

/// A global identifier: 128 bits, written as an IPv6 address (IBTA vol. 1, section 4.1).
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct Gid(pub [u8; 16]);

impl fmt::Display for Gid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        std::net::Ipv6Addr::from(self.0).fmt(f)
    }
}

/// The route to a remote port.
#[derive(Clone, Copy, Debug)]
pub struct Route {
    /// The local port, from 1.
    pub port: u8,
    /// LID of the remote port; 0 on Ethernet.
    pub lid: u16,
    /// Service level.
    pub service_level: u8,
    /// The global route header; without one, a packet stays in its InfiniBand subnet. RoCE always
    /// has one.
    pub global: Option<GlobalRoute>,
}

/// The content of a global route header (IBTA vol. 1, section 8.3).
#[derive(Clone, Copy, Debug)]
pub struct GlobalRoute {
    /// The index of the local GID.
    pub gid_index: u8,
    /// The GID of the remote port.
    pub gid: Gid,
    /// Traffic class; for RoCE v2 the type of service of the IP header.
    pub traffic_class: u8,
}

/// The hop limit; the default of the kernel's RDMA CM for RoCE v2.
const HOP_LIMIT: u8 = 64;

impl Route {
    pub(crate) fn raw(&self) -> ibv_ah_attr {
        let grh = self.global.map_or_else(ibv_global_route::default, |global| ibv_global_route {
            dgid: ibv_gid { raw: global.gid.0 },
            flow_label: 0,
            sgid_index: global.gid_index,
            hop_limit: HOP_LIMIT,
            traffic_class: global.traffic_class,
        });
        ibv_ah_attr {
            grh,
            dlid: self.lid,
            sl: self.service_level,
            is_global: u8::from(self.global.is_some()),
            port_num: self.port,
            ..ibv_ah_attr::default()
        }
    }
}

impl fmt::Display for Route {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.global {
            Some(global) => global.gid.fmt(f),
            None => write!(f, "LID {}", self.lid),
        }
    }
}

/// An address handle: the route to the peer of a datagram. Clones share it.
#[derive(Clone, Debug)]
pub struct AddressHandle {
    pub(crate) inner: Arc<AhInner>,
}

#[derive(Debug)]
pub(crate) struct AhInner {
    pub(crate) raw: *mut ibv_ah,
    pd: Arc<PdInner>,
}

// SAFETY: verbs are thread-safe; the handle is never changed after its creation.
unsafe impl Send for AhInner {}
// SAFETY: as above.
unsafe impl Sync for AhInner {}

impl ProtectionDomain {
    /// Makes an address handle (`ibv_create_ah`).
    ///
    /// # Errors
    /// The device refuses the route.
    pub fn address_handle(&self, route: &Route) -> Result<AddressHandle> {
        self.address_handle_of(&mut route.raw())
    }

    /// Makes an address handle from attributes of the connection manager.
    pub(crate) fn address_handle_of(&self, attr: &mut ibv_ah_attr) -> Result<AddressHandle> {
        // SAFETY: the domain is alive and the attributes are readable.
        let raw = unsafe { (self.inner.context.provider().create_ah)(self.inner.raw, attr) };
        if raw.is_null() {
            return Err(Error::last("create_ah", format!("the route to {}", Gid(attr.grh.dgid.raw))));
        }
        Ok(AddressHandle { inner: Arc::new(AhInner { raw, pd: Arc::clone(&self.inner) }) })
    }
}

impl Drop for AhInner {
    fn drop(&mut self) {
        // SAFETY: the handle is destroyed once, before its domain.
        unsafe { (self.pd.context.provider().destroy_ah)(self.raw) };
    }
}
