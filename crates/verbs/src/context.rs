//! Devices and contexts.

use std::ffi::{CStr, c_char, c_int};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;

use crate::abi::*;
use crate::error::{Error, Result};
use crate::link::LinkModel;
use crate::port::Port;
use crate::provider::{LIBIBVERBS, Provider};

/// A device that a provider has found. Opening it returns a [`Context`].
#[derive(Clone, Debug)]
pub struct Device {
    provider: &'static Provider,
    name: String,
    transport: Transport,
    path: String,
}

/// The transport of a device (`ibv_transport_type`).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Transport {
    /// InfiniBand or RoCE.
    InfiniBand,
    /// iWARP: connections are made through RDMA CM only.
    Iwarp,
    /// Any other value that the device reports.
    Other(u32),
}

/// Returns the devices of a provider.
///
/// # Errors
/// The provider cannot list them, e.g. because the kernel has no RDMA support.
pub fn devices(provider: &'static Provider) -> Result<Vec<Device>> {
    let list = DeviceList::new(provider)?;
    // A device of libibverbs without a path in sysfs is softdev (under `rdmascope exec`), which is
    // a separate provider here.
    let is_of_provider = |device: &Device| provider.name != LIBIBVERBS || !device.path.is_empty();
    Ok(list.iter().map(|(_, device)| device).filter(is_of_provider).collect())
}

impl Device {
    /// Its name, e.g. `softdev0`.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The provider that drives it.
    #[must_use]
    pub fn provider(&self) -> &'static Provider {
        self.provider
    }

    /// Its transport.
    #[must_use]
    pub fn transport(&self) -> Transport {
        self.transport
    }

    /// Its directory under `/sys/class/infiniband`; empty if the kernel does not know the device.
    #[must_use]
    pub fn sysfs_path(&self) -> &str {
        &self.path
    }

    /// Opens the device.
    ///
    /// # Errors
    /// The device is gone, or the provider refuses to open it.
    pub fn open(&self) -> Result<Context> {
        let list = DeviceList::new(self.provider)?;
        let Some((device, _)) = list.iter().find(|(_, device)| device.name == self.name) else {
            let known = list.iter().map(|(_, device)| device.name).collect::<Vec<_>>().join(", ");
            return Err(Error::NoSuchDevice { name: self.name.clone(), known });
        };
        // SAFETY: the device is in the list, which is still held.
        let raw = unsafe { (self.provider.open_device)(device) };
        if raw.is_null() {
            return Err(Error::last("open_device", &self.name));
        }
        Ok(Context {
            inner: Arc::new(ContextInner {
                raw,
                device: self.clone(),
                imitates_link: AtomicBool::new(false),
            }),
        })
    }
}

/// An `ibv_get_device_list` that is freed when dropped.
struct DeviceList {
    provider: &'static Provider,
    list: *mut *mut ibv_device,
    len: usize,
}

impl DeviceList {
    fn new(provider: &'static Provider) -> Result<Self> {
        let mut len: c_int = 0;
        // SAFETY: the provider writes the length into a valid integer.
        let list = unsafe { (provider.get_device_list)(&raw mut len) };
        if list.is_null() {
            return Err(Error::last("get_device_list", provider.name));
        }
        Ok(Self { provider, list, len: usize::try_from(len).unwrap_or(0) })
    }

    fn iter(&self) -> impl Iterator<Item = (*mut ibv_device, Device)> + '_ {
        (0..self.len).map(|i| {
            // SAFETY: the list has `len` entries, and each is a device until the list is freed.
            let raw = unsafe { *self.list.add(i) };
            // SAFETY: a device's name is a string that lives as long as the device.
            let name = unsafe { CStr::from_ptr((self.provider.get_device_name)(raw)) };
            // SAFETY: as above; libibverbs fills these members before it lists a device, and does
            // not change them.
            let (transport, path) = unsafe { ((*raw).transport_type, (*raw).ibdev_path) };
            let device = Device {
                provider: self.provider,
                name: name.to_string_lossy().into_owned(),
                transport: match transport {
                    IBV_TRANSPORT_IB => Transport::InfiniBand,
                    IBV_TRANSPORT_IWARP => Transport::Iwarp,
                    other => Transport::Other(other),
                },
                path: text(&path),
            };
            (raw, device)
        })
    }
}

/// The characters before the first zero byte.
fn text(field: &[c_char]) -> String {
    field.iter().take_while(|c| **c != 0).map(|c| char::from(c.to_ne_bytes()[0])).collect()
}

impl Drop for DeviceList {
    fn drop(&mut self) {
        // SAFETY: the list came from this provider and is freed once.
        unsafe { (self.provider.free_device_list)(self.list) }
    }
}

/// An open device. Clones share it; it is closed with the last object that was made in it.
#[derive(Clone, Debug)]
pub struct Context {
    pub(crate) inner: Arc<ContextInner>,
}

#[derive(Debug)]
pub(crate) struct ContextInner {
    pub(crate) raw: *mut ibv_context,
    pub(crate) device: Device,
    /// Whether its links follow a model.
    pub(crate) imitates_link: AtomicBool,
}

// SAFETY: verbs are thread-safe (ibv_open_device(3) and the specification, volume 1, section 10.2):
// a context may be used from any thread and from several at once.
unsafe impl Send for ContextInner {}
// SAFETY: as above.
unsafe impl Sync for ContextInner {}

impl ContextInner {
    pub(crate) fn provider(&self) -> &'static Provider {
        self.device.provider
    }
}

impl Drop for ContextInner {
    fn drop(&mut self) {
        // SAFETY: the context is open, and all objects made in it are gone, because they held it.
        unsafe { (self.provider().close_device)(self.raw) };
    }
}

/// The limits of a device (`ibv_query_device`).
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct DeviceLimits {
    /// Firmware (or software) version.
    pub firmware: String,
    /// EUI-64 of the node.
    pub node_guid: u64,
    /// EUI-64 of the system that contains the node.
    pub system_guid: u64,
    /// Vendor and part.
    pub vendor: (u32, u32),
    /// The most queue pairs.
    pub max_qp: u32,
    /// The most work requests of a queue.
    pub max_qp_wr: u32,
    /// The most scatter/gather elements of a work request.
    pub max_sge: u32,
    /// The most entries of a completion queue.
    pub max_cqe: u32,
    /// The most bytes of a memory region.
    pub max_mr_bytes: u64,
    /// The most RDMA Reads and atomics that a queue pair answers at the same time.
    pub max_responder_reads: u8,
    /// The most outstanding RDMA Reads and atomics of a queue pair.
    pub max_initiator_reads: u8,
    /// Whether it supports atomic operations.
    pub has_atomics: bool,
    /// The number of ports.
    pub ports: u8,
}

impl Context {
    /// The device.
    #[must_use]
    pub fn device(&self) -> &Device {
        &self.inner.device
    }

    /// Returns the limits of the device.
    ///
    /// # Errors
    /// The device does not answer.
    pub fn limits(&self) -> Result<DeviceLimits> {
        // SAFETY: all-zero bytes are a valid ibv_device_attr: it has only integers.
        let mut attr: ibv_device_attr = unsafe { std::mem::zeroed() };
        // SAFETY: the context is open and the attributes are writable.
        let returned = unsafe { (self.inner.provider().query_device)(self.inner.raw, &raw mut attr) };
        Error::check("query_device", || self.device().name.clone(), returned)?;
        let count = |value: c_int| u32::try_from(value).unwrap_or(0);
        Ok(DeviceLimits {
            firmware: text(&attr.fw_ver),
            node_guid: u64::from_be(attr.node_guid),
            system_guid: u64::from_be(attr.sys_image_guid),
            vendor: (attr.vendor_id, attr.vendor_part_id),
            max_qp: count(attr.max_qp),
            max_qp_wr: count(attr.max_qp_wr),
            max_sge: count(attr.max_sge),
            max_cqe: count(attr.max_cqe),
            max_mr_bytes: attr.max_mr_size,
            max_responder_reads: u8::try_from(attr.max_qp_rd_atom).unwrap_or(u8::MAX),
            max_initiator_reads: u8::try_from(attr.max_qp_init_rd_atom).unwrap_or(u8::MAX),
            has_atomics: attr.atomic_cap != IBV_ATOMIC_NONE,
            ports: attr.phys_port_cnt,
        })
    }

    /// Makes the device's links follow a model, or removes the model.
    ///
    /// # Errors
    /// The device cannot model links ([`Provider::set_link`] contains the reason), or a queue pair
    /// has outstanding work.
    pub fn set_link(&self, link: Option<&LinkModel>) -> Result<()> {
        let object = || self.device().name.clone();
        let Ok(set_link) = self.inner.provider().set_link else {
            return Err(Error::Verb { verb: "set_link", object: object(), errno: libc::EOPNOTSUPP });
        };
        let link = link.map_or(std::ptr::null(), |link| &raw const *link);
        // SAFETY: the context is open, and the model is readable or null.
        let returned = unsafe { set_link(self.inner.raw, link) };
        Error::check("set_link", object, returned)?;
        self.inner.imitates_link.store(!link.is_null(), Relaxed);
        Ok(())
    }

    /// Whether [`set_link`](Self::set_link) has set a model. Messages then progress only when their
    /// sender calls a verb.
    pub fn imitates_link(&self) -> bool {
        self.inner.imitates_link.load(Relaxed)
    }

    /// Returns the attributes of a port. Port numbers start at 1.
    ///
    /// # Errors
    /// The device does not answer, or has no such port.
    pub fn port(&self, port: u8) -> Result<Port> {
        let mut attr = ibv_port_attr::default();
        // SAFETY: the context is open and the attributes are writable.
        let returned = unsafe { (self.inner.provider().query_port)(self.inner.raw, port, &raw mut attr) };
        Error::check("query_port", || format!("{} port {port}", self.device().name), returned)?;
        Ok(Port::from(&attr))
    }

    /// Returns an entry of a port's P_Key table.
    ///
    /// # Errors
    /// There is no such entry.
    pub fn pkey(&self, port: u8, index: u16) -> Result<u16> {
        let mut pkey = 0;
        // SAFETY: the context is open and the key is writable.
        let returned =
            unsafe { (self.inner.provider().query_pkey)(self.inner.raw, port, index.into(), &raw mut pkey) };
        Error::check("query_pkey", || format!("{} port {port} index {index}", self.device().name), returned)?;
        Ok(u16::from_be(pkey))
    }
}
