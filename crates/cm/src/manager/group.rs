//! Multicast groups: maps an address to a group. The program's queue pair joins it.

use std::net::IpAddr;

use rustix::io::Errno;

use crate::abi::EventKind;
use crate::abi::answer::{AddressHandle, Event, Told};
use crate::abi::sockaddr::Address;
use crate::host::Host;
use crate::identifier::{HOP_LIMIT, Service, Stage, UDP_QKEY};
use crate::manager::state::{Group, Manager, Queued};

/// The destination queue pair of multicast datagrams (IBTA vol. 1, section 3.5.10).
const MULTICAST_QP: u32 = 0xff_ffff;

/// Returns GID and LID of the group for an address. On Ethernet the GID is the address (RoCE v2).
/// On InfiniBand the GID is that of IP over InfiniBand (RFC 4391, section 4), with the signature of
/// this manager's groups, and the LID is a multicast LID.
pub(super) fn address(ip: IpAddr, is_infiniband: bool) -> ([u8; 16], u16) {
    let mapped = match ip {
        IpAddr::V4(ip) => ip.to_ipv6_mapped().octets(),
        IpAddr::V6(ip) => ip.octets(),
    };
    if !is_infiniband {
        return (mapped, 0);
    }
    let signature = if ip.is_ipv4() { [0x40, 0x01] } else { [0x60, 0x01] };
    let mut gid = [0xff, 0x12, signature[0], signature[1], 0xff, 0xff, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    match ip {
        IpAddr::V4(ip) => {
            gid[12..].copy_from_slice(&ip.octets());
            gid[12] &= 0x0f;
        }
        IpAddr::V6(ip) => gid[6..].copy_from_slice(&ip.octets()[6..]),
    }
    let sum = gid.iter().fold(0_u16, |sum, byte| sum.wrapping_mul(31).wrapping_add((*byte).into()));
    (gid, 0xc000 | sum & 0x3fff & !1)
}

impl<H: Host> Manager<H> {
    /// rdma_join_multicast(). Returns the membership's number.
    pub(super) fn join(&mut self, id: u32, uid: u64, to: Address, flags: u16) -> Result<u32, Errno> {
        /// `RDMA_MC_JOIN_FLAG_RESERVED`: the first undefined value.
        const FLAGS: u16 = 2;
        let Address::Ip(to) = to else { return Err(Errno::INVAL) };
        let found = self.id(id);
        let may = found.service == Service::Ud
            && matches!(found.stage, Stage::AddressBound | Stage::AddressResolved);
        if flags >= FLAGS || !may || to.ip().is_unspecified() {
            return Err(Errno::INVAL);
        }
        let port = found.port.ok_or(Errno::INVAL)?;
        let qkey = if found.qkey == 0 { UDP_QKEY } else { found.qkey };
        found.qkey = qkey;
        let (gid, lid) = address(to.ip(), port.is_infiniband);
        let address = AddressHandle {
            gid,
            gid_index: port.gid_index,
            hop_limit: HOP_LIMIT,
            traffic_class: 0,
            lid,
            is_global: true,
            port: port.number,
        };
        let group = self.new_number();
        self.groups.insert(group, Group { id, reported: 0 });
        let told = Told::Datagram { qp_num: MULTICAST_QP, qkey, address, private_data: Vec::new() };
        let event = Event { uid, id: group, kind: EventKind::MulticastJoin, status: 0, told };
        self.queue(Queued { event, id, request: None, group: Some(group) });
        Ok(group)
    }

    /// rdma_leave_multicast(). Returns how many events of the membership were reported.
    pub(super) fn leave(&mut self, channel: u32, group: u32) -> Result<u32, Errno> {
        let found = self.groups.get(&group).ok_or(Errno::NOENT)?;
        let reported = found.reported;
        if self.identifiers.get(&found.id).is_none_or(|id| id.channel != channel) {
            return Err(Errno::INVAL);
        }
        self.forget_group(group);
        Ok(reported)
    }

    /// Ends a membership and drops its events.
    pub(super) fn forget_group(&mut self, group: u32) {
        let Some(Group { id, .. }) = self.groups.remove(&group) else { return };
        let Some(channel) = self.identifiers.get(&id).map(|id| id.channel) else { return };
        if let Some(found) = self.channels.get_mut(&channel) {
            found.events.retain(|queued| queued.group != Some(group));
        }
        self.show(channel);
    }
}
