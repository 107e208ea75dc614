//! What the manager needs of the host that it is on.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use rustix::io::Errno;

use crate::abi::Space;

/// A way to another process, or to the own one.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct Link(pub u64);

/// A port of a device.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Port {
    /// GUID of the device's node.
    pub guid: u64,
    /// Number of the port, from 1.
    pub number: u8,
    /// GID of the address that led here.
    pub gid: [u8; 16],
    /// Its index in the port's table.
    pub gid_index: u8,
    /// LID; 0 on Ethernet.
    pub lid: u16,
    /// Whether its link layer is InfiniBand's.
    pub is_infiniband: bool,
    /// What packets carry at most, as `enum ibv_mtu`.
    pub mtu: u8,
}

/// A claim to a port of a space.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Claim {
    /// Whose ports they are.
    pub space: Space,
    /// Address and port; port 0 stands for any that is free.
    pub address: SocketAddr,
    /// Others who say so as well may have the same address (`RDMA_OPTION_ID_REUSEADDR`).
    pub is_shared: bool,
    /// An address of all interfaces is meant for its own family alone (`RDMA_OPTION_ID_AFONLY`).
    pub is_of_one_family: bool,
    /// The program has asked for it, and not for a way that needs some port to begin at.
    pub is_asked_for: bool,
}

/// The host of a manager.
pub trait Host {
    /// What keeps a port from others as long as it lives.
    type Hold;

    /// The port of the device that an address of this host belongs to.
    ///
    /// # Errors
    /// `EADDRNOTAVAIL` where no interface has the address, `ENODEV` where no device does.
    fn port_of(&mut self, address: IpAddr) -> Result<Port, Errno>;

    /// The own address that packets to an address leave from.
    ///
    /// # Errors
    /// `ENETUNREACH` or `EHOSTUNREACH` where none reaches it.
    fn source_for(&mut self, destination: IpAddr) -> Result<IpAddr, Errno>;

    /// Takes a port; which one, where any was asked for.
    ///
    /// # Errors
    /// `EADDRINUSE` or `EADDRNOTAVAIL` where another one has it (the kernel has these two),
    /// `EACCES` where the program may not.
    fn take(&mut self, claim: &Claim) -> Result<(u16, Self::Hold), Errno>;

    /// Says of a port that is held what a claim says of it.
    ///
    /// # Errors
    /// Where the host has no room for it.
    fn mark(&mut self, hold: &mut Self::Hold, is_shared: bool, is_of_one_family: bool) -> Result<(), Errno>;

    /// From now on requests to that port come here. It is shared with nobody any more.
    ///
    /// # Errors
    /// `EADDRINUSE` where they go to another one, or another one shares it; `EADDRNOTAVAIL` as
    /// [`take`](Self::take).
    fn listen(&mut self, hold: &mut Self::Hold) -> Result<(), Errno>;

    /// A way to whoever listens at an address; `None` where nobody does.
    ///
    /// # Errors
    /// `EAGAIN` while the listening process's queue of connections is full: ask again. Other errors
    /// where this process or the host has no room for the connection.
    fn reach(&mut self, space: Space, destination: SocketAddr) -> Result<Option<Link>, Errno>;

    /// Sends a message. One that cannot be sent is lost.
    fn send(&mut self, link: Link, message: &[u8]);

    /// A channel has events now, or has none any more.
    fn signal(&mut self, channel: u32, has_events: bool);

    /// Time since some instant.
    fn now(&self) -> Duration;

    /// Any number.
    fn random(&mut self) -> u32;
}

/// The program's memory.
pub trait Memory {
    /// Reads from an address.
    ///
    /// # Errors
    /// `EFAULT` where no memory is there.
    fn read(&self, address: u64, to: &mut [u8]) -> Result<(), Errno>;

    /// Writes to an address.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    fn write(&self, address: u64, from: &[u8]) -> Result<(), Errno>;
}
