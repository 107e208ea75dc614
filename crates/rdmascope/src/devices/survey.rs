//! The devices of all providers with their ports and GIDs, as plain facts. If something cannot be
//! read, there is an `error` in its place; everything else is still there.

use std::path::Path;

use bench::choice::{self, Candidate, Reason};
use bench::process::launcher::installed::InstalledMpi;
use bench::worker::{LocalPort, PortOptions};
use serde::{Serialize, Serializer};
use verbs::{Context, DeviceKind, GidEntry, LinkLayer, PortState, Provider, Transport};

use super::sysfs::Sysfs;

/// All devices, and the device that is measured by default.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Survey {
    pub(crate) devices: Vec<Device>,
    /// A sentence for each provider that has no device or cannot be used.
    pub(crate) missing: Vec<String>,
    pub(crate) default_device: Option<String>,
    pub(crate) default_reason: Option<String>,
    /// The MPI libraries and launchers of this host.
    #[serde(flatten)]
    pub(crate) mpi: InstalledMpi,
}

/// A device.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Device {
    pub(crate) name: String,
    pub(crate) provider: String,
    #[serde(serialize_with = "as_text")]
    pub(crate) kind: DeviceKind,
    /// `InfiniBand` (also for RoCE) or `iWARP`.
    pub(crate) transport: String,
    /// Kernel module that drives it.
    pub(crate) driver: Option<String>,
    pub(crate) firmware: Option<String>,
    pub(crate) pci_address: Option<String>,
    pub(crate) numa_node: Option<u32>,
    pub(crate) node_guid: Option<String>,
    pub(crate) vendor_id: Option<u32>,
    pub(crate) vendor_part_id: Option<u32>,
    pub(crate) max_qp: Option<u32>,
    pub(crate) max_qp_wr: Option<u32>,
    pub(crate) max_sge: Option<u32>,
    pub(crate) has_atomics: Option<bool>,
    pub(crate) is_default: bool,
    pub(crate) ports: Vec<Port>,
    /// Why nothing can be measured on it now, and what to do about it.
    pub(crate) unusable: Option<String>,
    /// Why it, or one of its ports, could not be examined.
    pub(crate) error: Option<String>,
}

/// A port.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Port {
    pub(crate) port: u8,
    /// `InfiniBand` or `Ethernet`.
    pub(crate) link_layer: String,
    /// `InfiniBand`, `RoCE` or `iWARP`; absent where packets never leave the host's memory.
    pub(crate) protocol: Option<String>,
    pub(crate) state: String,
    pub(crate) physical_state: String,
    /// Width and name of the lane rate, e.g. `4X FDR`.
    pub(crate) link: String,
    /// As in ibstat.
    pub(crate) rate_gbit_per_s: Option<f64>,
    pub(crate) active_mtu_bytes: u32,
    pub(crate) max_mtu_bytes: u32,
    pub(crate) max_message_bytes: u32,
    pub(crate) lid: u16,
    pub(crate) lmc: u8,
    pub(crate) sm_lid: u16,
    pub(crate) interface: Option<String>,
    pub(crate) interface_mtu_bytes: Option<u32>,
    pub(crate) gids: Vec<Gid>,
    pub(crate) default_gid_index: Option<u8>,
    pub(crate) default_gid_reason: String,
}

/// An entry of a GID table that is in use.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Gid {
    pub(crate) index: u8,
    pub(crate) gid: String,
    /// `IB`, `RoCE v1`, `RoCE v2` or `type unknown`.
    #[serde(rename = "type")]
    pub(crate) kind: String,
    /// `IPv4`, `global`, `link-local` or `loopback`.
    pub(crate) reach: String,
    pub(crate) interface: Option<String>,
}

impl Port {
    pub(crate) fn is_active(&self) -> bool {
        self.state == PortState::Active.to_string()
    }
}

fn as_text<S: Serializer>(kind: &DeviceKind, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&kind.to_string().replace([' ', '-'], "_"))
}

/// Examines the devices of all providers, and MPI; `root` is the directory that has `sys`.
pub(crate) fn survey(providers: &[&'static Provider], missing: Vec<String>, root: &Path) -> Survey {
    let mut survey = Survey { missing, mpi: InstalledMpi::here(), ..Survey::default() };
    let sysfs = Sysfs::new(root);
    for provider in providers {
        match verbs::devices(provider) {
            Ok(found) if found.is_empty() => survey.missing.push(none_found(provider)),
            Ok(found) => survey.devices.extend(found.iter().map(|device| Device::of(device, &sysfs))),
            Err(error) => survey.missing.push(error.to_string()),
        }
    }
    if let Some((index, reason)) = survey.chosen() {
        let device = &mut survey.devices[index];
        device.is_default = true;
        survey.default_device = Some(device.name.clone());
        survey.default_reason = Some(reason.to_string());
    }
    survey
}

impl Survey {
    /// Returns the device that is measured by default, chosen as workers choose it.
    pub(crate) fn chosen(&self) -> Option<(usize, Reason)> {
        let candidate = |device: &Device| Candidate {
            name: device.name.clone(),
            kind: device.kind,
            unusable: device.unusable.clone(),
        };
        choice::choose(&self.devices.iter().map(candidate).collect::<Vec<_>>())
    }
}

fn none_found(provider: &Provider) -> String {
    format!(
        "{} finds no device: load the adapter's driver (`rdmascope doctor` looks for it), or for Soft-RoCE `modprobe \
         rdma_rxe` and `rdma link add rxe0 type rxe netdev eth0`",
        provider.name
    )
}

impl Device {
    fn of(device: &verbs::Device, sysfs: &Sysfs) -> Self {
        let place = sysfs.device(device.sysfs_path());
        let mut facts = Self {
            name: device.name().to_owned(),
            provider: format!("{} ({})", device.provider().name, device.provider().about),
            kind: DeviceKind::of(device, None),
            transport: match device.transport() {
                Transport::InfiniBand => "InfiniBand".to_owned(),
                Transport::Iwarp => "iWARP".to_owned(),
                Transport::Other(other) => format!("transport {other}"),
            },
            driver: place.driver(),
            firmware: None,
            pci_address: place.pci_address(),
            numa_node: place.numa_node(),
            node_guid: None,
            vendor_id: None,
            vendor_part_id: None,
            max_qp: None,
            max_qp_wr: None,
            max_sge: None,
            has_atomics: None,
            is_default: false,
            ports: Vec::new(),
            unusable: None,
            error: None,
        };
        if let Err(error) = facts.look(device, sysfs) {
            facts.error = Some(error.to_string());
            facts.unusable = facts.error.clone();
        }
        facts
    }

    /// Adds the facts that only an open device has.
    fn look(&mut self, device: &verbs::Device, sysfs: &Sysfs) -> Result<(), bench::Error> {
        let context = device.open()?;
        let limits = context.limits()?;
        self.kind = DeviceKind::of(device, Some(&limits));
        if self.kind == DeviceKind::KernelSoftware {
            // Older versions of rxe show the adapter below them as their own.
            let module = if device.transport() == Transport::Iwarp { "siw" } else { "rdma_rxe" };
            self.driver = Some(module.to_owned());
        }
        self.firmware = Some(limits.firmware.clone()).filter(|version| !version.is_empty());
        self.node_guid = Some(format!("{:016x}", limits.node_guid));
        (self.vendor_id, self.vendor_part_id) = (Some(limits.vendor.0), Some(limits.vendor.1));
        (self.max_qp, self.max_qp_wr) = (Some(limits.max_qp), Some(limits.max_qp_wr));
        (self.max_sge, self.has_atomics) = (Some(limits.max_sge), Some(limits.has_atomics));
        for number in 1..=limits.ports {
            match Port::of(&context, number, self.kind, sysfs) {
                Ok(port) => self.ports.push(port),
                Err(error) => self.error = Some(error.to_string()),
            }
        }
        let checked = LocalPort::find(&context, PortOptions::default()).and_then(|port| port.check());
        self.unusable = checked.err().map(|error| error.to_string());
        Ok(())
    }
}

impl Port {
    fn of(context: &Context, number: u8, kind: DeviceKind, sysfs: &Sysfs) -> Result<Self, bench::Error> {
        let is = context.port(number)?;
        let entries = context.gids(number)?;
        let place = sysfs.device(context.device().sysfs_path());
        let gid = |entry: &GidEntry| Gid {
            index: entry.index,
            gid: entry.gid.to_string(),
            kind: entry.kind.to_string(),
            reach: entry.reach().to_owned(),
            interface: place.gid_interface(number, entry.index),
        };
        let gids: Vec<_> = entries.iter().map(gid).collect();
        let (default, reason) = LocalPort::default_gid(&entries, is.link_layer);
        let of_default = default.and_then(|default| gids.iter().find(|gid| gid.index == default.index));
        let of_gid = of_default.and_then(|gid| gid.interface.clone());
        let interface = of_gid.or_else(|| place.interface(number));
        let is_link = kind != DeviceKind::UserSoftware;
        Ok(Self {
            port: number,
            link_layer: match is.link_layer {
                LinkLayer::Ethernet => "Ethernet".to_owned(),
                LinkLayer::InfiniBand => "InfiniBand".to_owned(),
                LinkLayer::Other(other) => format!("link layer {other}"),
            },
            protocol: match (is.link_layer, context.device().transport()) {
                _ if kind == DeviceKind::UserSoftware => None,
                (LinkLayer::InfiniBand, _) => Some("InfiniBand".to_owned()),
                (_, Transport::Iwarp) => Some("iWARP".to_owned()),
                (LinkLayer::Ethernet, _) => Some("RoCE".to_owned()),
                _ => None,
            },
            state: is.state.to_string(),
            physical_state: is.physical_state.to_string(),
            // A device that moves bytes in memory must name a rate (UCX needs one), but has none.
            link: if is_link { is.speed.to_string() } else { "-".to_owned() },
            rate_gbit_per_s: is.speed.gbit_per_s().filter(|_| is_link),
            active_mtu_bytes: is.active_mtu.bytes(),
            max_mtu_bytes: is.max_mtu.bytes(),
            max_message_bytes: is.max_message_bytes,
            lid: is.lid,
            lmc: is.lmc,
            sm_lid: is.sm_lid,
            interface_mtu_bytes: interface.as_ref().and_then(|name| sysfs.interface_mtu(name)),
            interface,
            gids,
            default_gid_index: default.map(|entry| entry.index),
            default_gid_reason: reason.to_owned(),
        })
    }
}
