//! The interface between the manager and its host.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use rustix::io::Errno;

use crate::abi::Space;

/// A link to another process, or to this one.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct Link(pub u64);

/// A port of a device.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Port {
    /// GUID of the device's node.
    pub guid: u64,
    /// Number of the port, from 1.
    pub number: u8,
    /// The GID of the address that led to this port.
    pub gid: [u8; 16],
    /// The GID's index in the port's table.
    pub gid_index: u8,
    /// LID; 0 on Ethernet.
    pub lid: u16,
    /// Whether its link layer is InfiniBand's.
    pub is_infiniband: bool,
    /// The largest packet, as `enum ibv_mtu`.
    pub mtu: u8,
}

/// A claim to a port of a port space.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Claim {
    /// The port space.
    pub space: Space,
    /// Address and port; port 0 stands for any free port.
    pub address: SocketAddr,
    /// Other identifiers with this option may claim the same address (`RDMA_OPTION_ID_REUSEADDR`).
    pub is_shared: bool,
    /// An address of all interfaces applies to its own family only (`RDMA_OPTION_ID_AFONLY`).
    pub is_of_one_family: bool,
    /// The program has asked for the address. Otherwise a path needs any local port.
    pub is_asked_for: bool,
}

/// The host of a manager.
pub trait Host {
    /// Keeps a port claimed as long as it lives.
    type Hold;

    /// Returns the port of the device that an address of this host belongs to.
    ///
    /// # Errors
    /// `EADDRNOTAVAIL` if no interface has the address, `ENODEV` if no device does.
    fn port_of(&mut self, address: IpAddr) -> Result<Port, Errno>;

    /// Returns this host's address that packets to an address leave from.
    ///
    /// # Errors
    /// `ENETUNREACH` or `EHOSTUNREACH` if there is no route.
    fn source_for(&mut self, destination: IpAddr) -> Result<IpAddr, Errno>;

    /// Claims a port. Returns its number, also if any port was asked for.
    ///
    /// # Errors
    /// `EADDRINUSE` or `EADDRNOTAVAIL` if another identifier has the port (the kernel uses both),
    /// `EACCES` if the program may not have it.
    fn take(&mut self, claim: &Claim) -> Result<(u16, Self::Hold), Errno>;

    /// Changes the options of a claimed port.
    ///
    /// # Errors
    /// If the host has no space for it.
    fn mark(&mut self, hold: &mut Self::Hold, is_shared: bool, is_of_one_family: bool) -> Result<(), Errno>;

    /// Directs requests for this port to this process. The port is no longer shared.
    ///
    /// # Errors
    /// `EADDRINUSE` if requests go to another identifier, or another one shares the port;
    /// `EADDRNOTAVAIL` as for [`take`](Self::take).
    fn listen(&mut self, hold: &mut Self::Hold) -> Result<(), Errno>;

    /// Returns a link to the process that listens at an address; `None` if none does.
    ///
    /// # Errors
    /// `EAGAIN` while the listening process's queue of connections is full: retry. Other errors if
    /// this process or the host has no space for the connection.
    fn reach(&mut self, space: Space, destination: SocketAddr) -> Result<Option<Link>, Errno>;

    /// Sends a message. If it cannot be sent, it is lost.
    fn send(&mut self, link: Link, message: &[u8]);

    /// Reports whether a channel has events.
    fn signal(&mut self, channel: u32, has_events: bool);

    /// The time since a fixed instant.
    fn now(&self) -> Duration;

    /// A random number.
    fn random(&mut self) -> u32;
}

/// The program's memory.
pub trait Memory {
    /// Reads from an address.
    ///
    /// # Errors
    /// `EFAULT` if the address is invalid.
    fn read(&self, address: u64, to: &mut [u8]) -> Result<(), Errno>;

    /// Writes to an address.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    fn write(&self, address: u64, from: &[u8]) -> Result<(), Errno>;
}
